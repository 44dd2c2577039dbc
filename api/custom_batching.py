"""Rules of one's own for `vmap`, under the names of `jax.custom_batching`."""

import typing as _typing

from tapeless.custom.vmap import custom_vmap, sequential_vmap
from tapeless.tracer.late_imports import imported_late as _imported_late

__all__ = ["custom_vmap", "sequential_vmap"]

if not _typing.TYPE_CHECKING:  # type checkers know better what is there
    __getattr__ = _imported_late(globals(), {})
