"""Sparsity rules besides index rows: NumPy values of primitives, and where elementwise functions are zero or one."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tapeless.interpreters.analysis import strict_form
from tapeless.interpreters.index_rows import rows, same, terms
from tapeless.tracer.jaxpr import Equation
from tapeless.tracer.primitives import bits, special
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives import shape as s
from tapeless.tracer.rules import Table

Support = Any  # where a value may be nonzero: True for everywhere, False for nowhere, or a mask


class FunctionFacts(NamedTuple):
    """The known facts of a function.

    value: value(eqn, *arrays) -> arrays, computed by NumPy; None if only a sum of exact products has values.
    support: support(params, *supports of the operands) -> where it may differ from zero.
    binary: binary(support of the operand, where it is zero or one) -> where it is zero or one.
    """

    value: Callable[..., Sequence[Any]] | None = None
    support: Callable[..., Support] = lambda params, *operands: True
    binary: Callable[..., Support] = lambda support, binary: False


functions: Table[FunctionFacts] = Table(
    "sparsity of functions",
    "its `FunctionFacts`: its value; where its elements may be nonzero, and are zero or one, if its row is pointwise",
    absent="its index row says these, or its value is unknown, and may be nonzero everywhere",
)

# ---- values --------------------------------------------------------------------------------------------------


def _elementwise(f: Callable[..., Any]) -> Callable[..., Sequence[Any]]:
    return lambda eqn, *xs: (f(*xs),)


def _remainder(x: Any, y: Any) -> Any:
    """Compute the remainder that has the sign of `x`; for integers, the remainder by 0 is `x`."""
    if not np.issubdtype(x.dtype, np.integer):
        return np.fmod(x, y)
    return np.where(y == 0, x, np.fmod(x, np.where(y == 0, 1, y)))


def _quotient(x: Any, y: Any) -> Any:
    """Divide; integers are rounded towards zero, and divided by 0 they are -1, as compiled programs have it."""
    if not np.issubdtype(x.dtype, np.integer):
        return np.divide(x, y)
    by = np.where(y == 0, 1, y)
    return np.where(y == 0, np.asarray(-1).astype(x.dtype), (x - np.fmod(x, by)) // by)


def _iota(eqn: Equation) -> Sequence[Any]:
    shape, axis = eqn.params["shape"], eqn.params["dimension"]
    counted = np.arange(shape[axis]).astype(eqn.params["dtype"])
    return (np.broadcast_to(counted.reshape([n if d == axis else 1 for d, n in enumerate(shape)]), shape),)


# ---- where elements may be nonzero, and are zero or one ------------------------------------------------------


def _of_first(params: Any, x: Support, *others: Support) -> Support:
    return x


def _of_either(params: Any, x: Support, y: Support) -> Support:
    return x | y


def _kept(support: Support, binary: Support) -> Support:
    return binary


def _one_at_zero(support: Support, binary: Support) -> Support:
    return np.logical_not(support)


functions[s.iota_p] = FunctionFacts(_iota)
functions[e.clamp_p] = FunctionFacts(_elementwise(lambda low, x, high: np.clip(x, low, high)))
functions[e.rem_p] = FunctionFacts(_elementwise(_remainder), _of_first)
functions[e.real_p] = functions[e.convert_element_type_p] = FunctionFacts(_elementwise(lambda x: x), _of_first, _kept)
functions[e.abs_p] = FunctionFacts(_elementwise(np.abs), _of_first, _kept)
functions[e.div_p] = FunctionFacts(_elementwise(_quotient))
functions[e.integer_pow_p] = FunctionFacts(None, lambda params, x: x if params["y"] > 0 else True)
functions[e.complex_p] = FunctionFacts(None, _of_either)
functions[bits.not_p] = FunctionFacts(_elementwise(np.invert))
functions[bits.and_p] = FunctionFacts(_elementwise(np.bitwise_and), lambda params, x, y: x & y)
for _primitive, _f in (
    (e.eq_p, np.equal), (e.ne_p, np.not_equal), (e.lt_p, np.less), (e.le_p, np.less_equal), (e.gt_p, np.greater),
    (e.ge_p, np.greater_equal),
):  # fmt: skip
    functions[_primitive] = FunctionFacts(_elementwise(_f))
for _primitive, _f in (
    (e.max_p, np.maximum), (e.min_p, np.minimum), (bits.or_p, np.bitwise_or), (bits.xor_p, np.bitwise_xor),
):  # fmt: skip
    functions[_primitive] = FunctionFacts(_elementwise(_f), _of_either)
for _primitive, _f in ((e.sign_p, np.sign), (e.floor_p, np.floor), (e.ceil_p, np.ceil)):
    functions[_primitive] = FunctionFacts(_elementwise(_f), _of_first)
for _primitive in (
    e.imag_p, e.round_p, e.sqrt_p, e.cbrt_p, e.root_of_squares_p, e.expm1_p, e.log1p_p,
    e.log_plus_one_p, e.sin_p, e.tan_p,
    e.asin_p, e.atan_p, e.sinh_p, e.tanh_p, e.asinh_p, e.atanh_p, special.erf_p, special.erf_inv_p,
    bits.reduce_precision_p, bits.shift_left_p, bits.shift_right_logical_p, bits.shift_right_arithmetic_p,
    bits.population_count_p,
):  # fmt: skip
    functions[_primitive] = FunctionFacts(None, _of_first)
for _primitive in (e.exp_p, e.exp2_p, e.cos_p, e.cosh_p, special.erfc_p, special.bessel_i0e_p):
    functions[_primitive] = FunctionFacts(binary=_one_at_zero)

# ---- the strict form -----------------------------------------------------------------------------------------

rows[strict_form.lit] = same
rows[strict_form.dup] = lambda params, avals: terms(*same(params, avals).results * 2)
rows[strict_form.lzero] = lambda params, avals: terms([])
