"""The NumPy namespace: `import tapeless.numpy as tnp`. See `tapeless.tracer.numpy`."""

import typing as _typing

from tapeless.batch.vmap import vectorize
from tapeless.tracer import numpy as _numpy
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

__all__ = ["apply_along_axis", "apply_over_axes", "fft", "from_dlpack", "frompyfunc", "linalg", "vectorize"]
__all__ += _numpy.__all__

__array_api_version__ = "2024.12"

if _typing.TYPE_CHECKING:  # what few programs use is loaded when it is used
    from tapeless.numpy import fft, linalg
    from tapeless.numpy.array_api import __array_namespace_info__ as __array_namespace_info__
    from tapeless.numpy.array_api import from_dlpack
    from tapeless.numpy.mapping import apply_along_axis, apply_over_axes, frompyfunc
    from tapeless.tracer.numpy import *  # noqa: F403
    from tapeless.numpy.mapping import pad as pad  # isort: skip  # instead of the one of the tracer
else:
    # `pad` of the tracer takes names of modes alone, that of `numpy.mapping` functions, too.
    globals().update((name, vars(_numpy)[name]) for name in _numpy.__all__ if name in vars(_numpy) and name != "pad")
    _LATE = {
        "": "fft linalg",
        "numpy.array_api": "__array_namespace_info__ from_dlpack",
        "numpy.mapping": "apply_along_axis apply_over_axes frompyfunc pad",
        "tracer.numpy": " ".join(name for name in _numpy.__all__ if name not in vars(_numpy) and name != "pad"),
    }
    _complete_namespace(globals(), _LATE)
