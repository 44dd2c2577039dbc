"""The NumPy namespace: `import tapeless.numpy as tnp`. See `tapeless.tracer.numpy`."""

from tapeless.tracer import numpy as _numpy
from tapeless.tracer.numpy import *  # noqa: F403
from tapeless.vectorization import vectorize

__all__ = ["vectorize"]
__all__ += _numpy.__all__
