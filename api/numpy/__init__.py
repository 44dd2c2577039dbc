"""The NumPy namespace: `import tapeless.numpy as tnp`. See `tapeless.tracer.numpy`."""

import typing as _typing

from tapeless.batch.vmap import vectorize
from tapeless.late_names import imported_late as _imported_late
from tapeless.numpy import linalg
from tapeless.tracer import numpy as _numpy
from tapeless.tracer.numpy import *  # noqa: F403

__all__ = ["apply_along_axis", "apply_over_axes", "fft", "from_dlpack", "frompyfunc", "linalg", "vectorize"]
__all__ += _numpy.__all__

__array_api_version__ = "2024.12"

if _typing.TYPE_CHECKING:  # what few programs use is loaded when it is used
    from tapeless.numpy import fft
    from tapeless.numpy.array_api import __array_namespace_info__ as __array_namespace_info__
    from tapeless.numpy.array_api import from_dlpack
    from tapeless.numpy.mapping import apply_along_axis, apply_over_axes, frompyfunc
else:
    __getattr__ = _imported_late(
        globals(),
        {
            "fft": "",
            **dict.fromkeys(("__array_namespace_info__", "from_dlpack"), "numpy.array_api"),
            **dict.fromkeys(("apply_along_axis", "apply_over_axes", "frompyfunc"), "numpy.mapping"),
        },
    )
