"""The namespaces of `jax.scipy`, which are loaded when they are used."""

import typing as _typing

from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

if _typing.TYPE_CHECKING:
    from tapeless.scipy import (
        cluster,
        fft,
        integrate,
        interpolate,
        linalg,
        ndimage,
        optimize,
        signal,
        sparse,
        spatial,
        special,
        stats,
    )

# ---- written by docs/make_names.py from the imports above
__all__ = [
    "cluster", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse", "spatial",
    "special", "stats",
]  # fmt: skip

_LATE = {
    "": "cluster fft integrate interpolate linalg ndimage optimize signal sparse spatial special stats",
}  # fmt: skip
# ---- end of what is written

_complete_namespace(globals(), _LATE)
