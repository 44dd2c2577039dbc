"""The NumPy namespace: `import tapeless.numpy as tnp`. See `tapeless.tracer.numpy`."""

import typing as _typing

from tapeless.describing import missing as _missing
from tapeless.tracer import numpy as _numpy
from tapeless.tracer.numpy import *  # noqa: F403
from tapeless.vectorization import vectorize

__all__ = ["vectorize"]
__all__ += _numpy.__all__

if not _typing.TYPE_CHECKING:  # type checkers know better what is there

    def __getattr__(name: str) -> _typing.NoReturn:
        raise _missing("tapeless.numpy", name)
