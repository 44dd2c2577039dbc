"""The platform that a program is compiled for, which is not known while tracing."""

from typing import Final

import numpy as np

from tapeless.tracer.array import Array
from tapeless.tracer.core import Primitive
from tapeless.tracer.types import ShapedArray

Platforms = tuple[tuple[str, ...] | None, ...]


def platform_index(platforms: Platforms) -> Array:
    """Return the number, int32[], of the first group of names that has the compilation platform; None has all.

    Raises: when the program is compiled, NotImplementedError if the platform is in no group.
    """
    return platform_index_p.bind(platforms=platforms)[0]


def _platform_index_type(*, platforms: Platforms) -> tuple[ShapedArray, ...]:
    return (ShapedArray((), np.dtype(np.int32)),)


platform_index_p: Final = Primitive("platform_index", _platform_index_type)
