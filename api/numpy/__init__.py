"""The NumPy namespace: `import tapeless.numpy as tnp`. See `tapeless.tracer.numpy`."""

import typing as _typing

from tapeless.batch.vmap import vectorize
from tapeless.numpy import linalg
from tapeless.tracer import numpy as _numpy
from tapeless.tracer.errors import missing_name as _missing_name
from tapeless.tracer.numpy import *  # noqa: F403

__all__ = ["linalg", "vectorize"]
__all__ += _numpy.__all__

if not _typing.TYPE_CHECKING:  # type checkers know better what is there

    def __getattr__(name: str) -> _typing.NoReturn:
        raise _missing_name("tapeless.numpy", name)
