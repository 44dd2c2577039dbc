"""Running averages and norms of pytrees, and counters, for gradient transformations."""

from typing import Any

import numpy as np

from tapeless.optimizers.transformation import UPDATES_AND_STATE, Updates, map_updates
from tapeless.scipy.iterative.vectors import total
from tapeless.tracer import dtypes, pytree
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.dtypes import DTypeLike
from tapeless.tracer.types import aval_of


def dtype_of(x: Any) -> Any:
    """Return the dtype of an array, or of a value that is taken for an array."""
    return aval_of(x).dtype


def zero_count() -> Array:
    """Make a counter: int32[], 0."""
    return tnp.zeros((), np.int32)


def safe_increment(count: ArrayLike) -> Array:
    """Add 1 to a number, without overflow: the greatest number of its dtype stays.

    Raises: ValueError if it is neither an integer nor real.
    """
    count = tnp.asarray(count)
    if not (dtypes.is_integer(count.dtype) or dtypes.is_float(count.dtype)):
        raise ValueError(f"safe_increment takes an integer or a real number, not {count.dtype}.")
    limits = tnp.iinfo(count.dtype) if dtypes.is_integer(count.dtype) else tnp.finfo(count.dtype)
    most = tnp.array(limits.max, count.dtype)
    return tnp.where(count < most, count + tnp.array(1, count.dtype), most)


def zeros_like(params: Any, dtype: DTypeLike | None = None) -> Any:
    """Make zeros of the shapes of arrays, and of their dtypes if none is given."""
    return map_updates(lambda p: tnp.zeros_like(p, dtype=dtype), params)


def real_full_like(params: Any, value: ArrayLike) -> Any:
    """Make arrays of one value, of the shapes of others and the real dtypes of their widths."""
    return map_updates(lambda p: tnp.full_like(p, value, dtype=real_dtype(p)), params)


def real_dtype(x: Any) -> Any:
    """Return the dtype of real and imaginary parts of an array."""
    return dtypes.real_part_dtype(dtype_of(x))


def cast_tree(tree: Any, dtype: DTypeLike | None) -> Any:
    """Convert arrays to a dtype; None leaves them as they are."""
    return tree if dtype is None else map_updates(lambda x: x.astype(dtype), tree)


def cast_like(tree: Any, other: Any) -> Any:
    """Convert arrays to the dtypes of others."""
    return map_updates(lambda x, y: x.astype(dtype_of(y)), tree, other)


def moment(updates: Updates, averages: Any, decay: Any) -> Any:
    """Update running averages: (1 - decay) g + decay m."""
    return map_updates(lambda g, m: (1 - decay) * g + decay * m, updates, averages, trees=UPDATES_AND_STATE)


def second_moment(updates: Updates, averages: Any, decay: Any) -> Any:
    """Update running averages of squared moduli: (1 - decay) |g|² + decay v, which are real."""

    def averaged(g: Any, v: Any) -> Any:
        return (1 - decay) * squared_modulus(g) + decay * v

    return map_updates(averaged, updates, averages, trees=UPDATES_AND_STATE)


def squared_modulus(x: Any) -> Array:
    """Compute |x|², elementwise."""
    x = tnp.asarray(x)
    return tnp.square(tnp.real(x)) + tnp.square(tnp.imag(x)) if dtypes.is_complex(x.dtype) else tnp.square(x)


def bias_correction(averages: Any, decay: ArrayLike, count: Array) -> Any:
    """Divide running averages that began with 0 by the weight of what they have seen: 1 - decay^count.

    The weight is computed in 32 bits at least, and in 64 for averages of 64.
    """

    def corrected(m: Any) -> Any:
        wide = tnp.promote_types(real_dtype(m), np.float32)
        weight = 1 - tnp.asarray(decay, dtype=wide) ** count
        return m / weight.astype(m.dtype)

    return map_updates(corrected, averages)


def global_norm(updates: Updates) -> Array:
    """Compute the square root of the sum of the squared moduli of all elements of all arrays: a real number []."""
    return tnp.sqrt(squared_norm(updates))


def squared_norm(updates: Updates) -> Array:
    """Sum the squared moduli of all elements of all arrays."""
    return total([squared_modulus(x).sum() for x in pytree.leaves(updates)])
