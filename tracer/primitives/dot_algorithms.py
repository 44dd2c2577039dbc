"""Algorithms of dot products: types that operands are rounded to, types of sums, and numbers of parts.

Source: StableHLO spec, dot_general, `algorithm`. Which of them a platform has is known to its compiler. On CPU XLA
rounds operands only if the type of the algorithm differs from theirs, and is more precise otherwise.
"""

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from tapeless.tracer import dtypes

_F8 = frozenset(
    np.dtype(getattr(ml_dtypes, f"float8_{name}"))
    for name in "e4m3b11fnuz e4m3fn e4m3fnuz e5m2 e5m2fnuz e3m4 e4m3 e8m0fnu".split()
)


class DotAlgorithm(NamedTuple):
    """An algorithm of dot products: types that operands are rounded to, the type of sums, and how operands are split.

    lhs_component_count, rhs_component_count: parts that operands are split into. num_primitive_operations: products of
    parts that are added. allow_imprecise_accumulation: whether some sums may be made in a narrower type. Only an
    algorithm that equals a `DotAlgorithmPreset` can be used.
    """

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False

    @property
    def preset(self) -> "DotAlgorithmPreset":
        """Return the preset that equals this algorithm. Raises: ValueError if there is none."""
        types = tuple(dtypes.canonical(t).name for t in self[:3])
        for preset in list(DotAlgorithmPreset)[1:]:  # DEFAULT has no types
            if preset.spec == (types, *self[3:]):
                return preset
        raise ValueError(f"no DotAlgorithmPreset is {self}.")


class DotAlgorithmPreset(Enum):
    """Algorithms of products of floating-point numbers, as `precision` of `lax.dot_general` and its kin.

    The names are of the types of the operands and of the sum. X3, X6 and X9 say how many products of parts of the
    operands make up one; FAST_ACCUM, that some sums may be less precise; ANY_F8, any numbers of 8 bits. CPU has
    DEFAULT, F16_F16_F16, BF16_BF16_F32, X3 and X6 of it, F32_F32_F32 and F64_F64_F64.
    """

    DEFAULT = "DEFAULT"
    ANY_F8_ANY_F8_F32 = "ANY_F8_ANY_F8_F32"
    ANY_F8_ANY_F8_F32_FAST_ACCUM = "ANY_F8_ANY_F8_F32_FAST_ACCUM"
    ANY_F8_ANY_F8_ANY = "ANY_F8_ANY_F8_ANY"
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = "ANY_F8_ANY_F8_ANY_FAST_ACCUM"
    F16_F16_F16 = "F16_F16_F16"
    F16_F16_F32 = "F16_F16_F32"
    BF16_BF16_BF16 = "BF16_BF16_BF16"
    BF16_BF16_F32 = "BF16_BF16_F32"
    BF16_BF16_F32_X3 = "BF16_BF16_F32_X3"
    BF16_BF16_F32_X6 = "BF16_BF16_F32_X6"
    BF16_BF16_F32_X9 = "BF16_BF16_F32_X9"
    TF32_TF32_F32 = "TF32_TF32_F32"
    TF32_TF32_F32_X3 = "TF32_TF32_F32_X3"
    F32_F32_F32 = "F32_F32_F32"
    F64_F64_F64 = "F64_F64_F64"

    __hash__: Callable[[Any], int] = object.__hash__  # as of Precision

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    @property
    def preset(self) -> "DotAlgorithmPreset":
        """Return the preset itself."""
        return self

    @property
    def spec(self) -> tuple[Any, ...]:
        """Return the fields of the algorithm, types by NumPy's names, None for a type that it leaves open."""
        lhs, rhs, total, *rest = self.name.replace("ANY_F8", "ANY").removesuffix("_FAST_ACCUM").split("_")
        times = int(rest[0].removeprefix("X")) if rest else 1
        return (_TYPES[lhs], _TYPES[rhs], _TYPES[total]), 1, 1, times, self.name.endswith("_F32_FAST_ACCUM")

    @property
    def is_of_8_bits(self) -> bool:
        """Tell whether operands are numbers of 8 bits."""
        return self.name.startswith("ANY_F8")

    def operand_dtype(self, dtype: Any) -> Any:
        """Return the dtype that an operand is converted to. Raises: TypeError if it should have 8 bits, and has not."""
        if self.is_of_8_bits:
            if dtype not in _F8:
                raise TypeError(f"precision {self} is of floating-point numbers of 8 bits, not of {dtype}.")
            return dtype
        name = self.spec[0][0]
        if name == "bfloat16" and self.spec[3] == 1:
            return dtype if dtype in (np.dtype("float32"), _BFLOAT16) else _BFLOAT16
        return dtypes.canonical(name if name in ("float16", "float64") else "float32")

    def sum_dtype(self, lhs: Any, rhs: Any, result: Any) -> Any:
        """Return the dtype of the sum: that of the algorithm, or of the result if left open, for halves or 8 bits."""
        name = self.spec[0][2]
        total = result if name is None else dtypes.canonical(name)
        halves = self.name in ("F16_F16_F32", "BF16_BF16_F32") and lhs == rhs == result
        return result if halves or (self.is_of_8_bits and dtypes.bits_of(result) <= 32) else total


_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_TYPES = {
    "ANY": None,
    "F16": "float16",
    "BF16": "bfloat16",
    "TF32": "tf32",
    "F32": "float32",
    "F64": "float64",
}
