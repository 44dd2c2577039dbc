"""Types of parameters of `jax.lax`, for annotations."""

from collections.abc import Sequence

from tapeless.tracer.primitives.contraction import Precision
from tapeless.tracer.primitives.dimension_numbers import ConvDimensionNumbers

ConvGeneralDilatedDimensionNumbers = None | ConvDimensionNumbers | tuple[str, str, str]
DotDimensionNumbers = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]
PrecisionLike = None | str | Precision | tuple[str, str] | tuple[Precision, Precision]
