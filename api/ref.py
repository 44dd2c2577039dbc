"""References, arrays that are read and written in place: the names of `jax.ref`."""

from tapeless.tracer.late_imports import complete_namespace as _complete_namespace
from tapeless.tracer.references import (
    AbstractRef,
    Ref,
    addupdate,
    empty_ref,
    free_ref,
    freeze,
    get,
    new_ref,
    set,
    swap,
)

# ---- written by docs/make_names.py from the imports above
__all__ = [
    "AbstractRef", "Ref", "addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref", "set", "swap",
]  # fmt: skip
# ---- end of what is written

_complete_namespace(globals())
