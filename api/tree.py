"""Functions on pytrees, under the short names of `jax.tree`."""

from tapeless.tracer.late_imports import complete_namespace as _complete_namespace
from tapeless.tracer.pytree import flatten, flatten_with_path, leaves, leaves_with_path, static, structure, unflatten
from tapeless.tracer.pytree import tree_all as all
from tapeless.tracer.pytree import tree_broadcast as broadcast
from tapeless.tracer.pytree import tree_map as map
from tapeless.tracer.pytree import tree_map_with_path as map_with_path
from tapeless.tracer.pytree import tree_reduce as reduce
from tapeless.tracer.pytree import tree_reduce_associative as reduce_associative
from tapeless.tracer.pytree import tree_transpose as transpose

# ---- written by docs/make_names.py from the imports above
__all__ = [
    "all", "broadcast", "flatten", "flatten_with_path", "leaves", "leaves_with_path", "map", "map_with_path", "reduce",
    "reduce_associative", "static", "structure", "transpose", "unflatten",
]  # fmt: skip
# ---- end of what is written

_complete_namespace(globals())
