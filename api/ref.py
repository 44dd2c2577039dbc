"""References, arrays that are read and written in place: the names of `jax.ref`."""

import typing as _typing

from tapeless.tracer.late_imports import imported_late as _imported_late
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

if not _typing.TYPE_CHECKING:  # type checkers know better what is there
    __getattr__ = _imported_late(globals(), {})
