"""The NumPy namespace: `import tapeless.numpy as tnp`. See `tapeless.tracer.numpy`."""

import sys as _sys
import typing as _typing

from tapeless import numpy_linalg as linalg
from tapeless.arguments.checks import missing as _missing
from tapeless.batch.vmap import vectorize
from tapeless.tracer import numpy as _numpy
from tapeless.tracer.numpy import *  # noqa: F403

_sys.modules[f"{__name__}.linalg"] = linalg  # as os.path is a module: no package is needed to import it by name
linalg.__name__ = f"{__name__}.linalg"  # as users write it: Python's own messages show it

__all__ = ["linalg", "vectorize"]
__all__ += _numpy.__all__

if not _typing.TYPE_CHECKING:  # type checkers know better what is there

    def __getattr__(name: str) -> _typing.NoReturn:
        raise _missing("tapeless.numpy", name)
