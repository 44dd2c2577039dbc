"""The namespaces of `jax.scipy`, which are loaded when they are used."""

import typing as _typing

from tapeless.late_names import imported_late as _imported_late

__all__ = ["cluster", "fft", "integrate", "linalg", "ndimage", "optimize", "sparse", "special", "stats"]

if _typing.TYPE_CHECKING:
    from tapeless.scipy import cluster, fft, integrate, linalg, ndimage, optimize, sparse, special, stats
else:
    __getattr__ = _imported_late(globals(), dict.fromkeys(__all__, ""))
