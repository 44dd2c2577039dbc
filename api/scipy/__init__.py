"""The namespaces of `jax.scipy`, which are loaded when they are used."""

import typing as _typing

from tapeless.tracer.late_imports import imported_late as _imported_late

__all__ = [
    "cluster", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse", "spatial",
    "special", "stats",
]  # fmt: skip

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
else:
    __getattr__ = _imported_late(globals(), {"": " ".join(__all__)})
