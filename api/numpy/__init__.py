"""The NumPy namespace: `import tapeless.numpy as tnp`. See `tapeless.tracer.numpy`."""

import typing as _typing

from tapeless.batch.vmap import vectorize
from tapeless.late_names import imported_late as _imported_late
from tapeless.numpy import linalg
from tapeless.tracer import numpy as _numpy
from tapeless.tracer.numpy import *  # noqa: F403

__all__ = ["fft", "linalg", "vectorize"]
__all__ += _numpy.__all__

if _typing.TYPE_CHECKING:  # what few programs use is loaded when it is used
    from tapeless.numpy import fft
else:
    __getattr__ = _imported_late(globals(), {"fft": ""})
