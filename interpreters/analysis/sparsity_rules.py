"""Sparsity rules besides index rows: NumPy values of primitives, and where elementwise functions are zero or one."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapeless.interpreters.analysis import strict_form
from tapeless.interpreters.index_rows import rows, same, terms
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Equation
from tapeless.tracer.primitives import bits, special
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives import shape as s
from tapeless.tracer.rules import Table

Support = Any  # where a value may be nonzero: True for everywhere, False for nowhere, or a mask

# ---- values --------------------------------------------------------------------------------------------------

values: Table[Callable[..., Sequence[Any]]] = Table(
    "NumPy values",
    "row(eqn, *arrays) -> arrays: NumPy computes its value",
    absent="its value is not computed, unless its index row is a sum of exact products",
)


def _elementwise(primitive: Primitive, f: Callable[..., Any]) -> None:
    values[primitive] = lambda eqn, *xs: (f(*xs),)


def _remainder(x: Any, y: Any) -> Any:
    """Compute the remainder that has the sign of `x`; for integers, the remainder by 0 is `x`."""
    if not np.issubdtype(x.dtype, np.integer):
        return np.fmod(x, y)
    return np.where(y == 0, x, np.fmod(x, np.where(y == 0, 1, y)))


def _iota(eqn: Equation) -> Sequence[Any]:
    shape, axis = eqn.params["shape"], eqn.params["dimension"]
    counted = np.arange(shape[axis]).astype(eqn.params["dtype"])
    return (np.broadcast_to(counted.reshape([n if d == axis else 1 for d, n in enumerate(shape)]), shape),)


values[s.iota_p] = _iota
for _primitive, _f in (
    (e.max_p, np.maximum), (e.min_p, np.minimum), (e.rem_p, _remainder), (e.eq_p, np.equal), (e.ne_p, np.not_equal),
    (e.lt_p, np.less), (e.le_p, np.less_equal), (e.gt_p, np.greater), (e.ge_p, np.greater_equal),
    (e.clamp_p, lambda low, x, high: np.clip(x, low, high)), (e.convert_element_type_p, lambda x: x),
    (e.real_p, lambda x: x), (bits.not_p, np.invert), (bits.and_p, np.bitwise_and), (bits.or_p, np.bitwise_or),
    (bits.xor_p, np.bitwise_xor),
):  # fmt: skip
    _elementwise(_primitive, _f)

# ---- zeros ---------------------------------------------------------------------------------------------------

zeros: Table[Callable[..., Support]] = Table(
    "zeros of functions",
    "row(params, *supports of the operands) -> where a function, element by element, may differ from zero",
    absent="everywhere; if its index row is not pointwise, that says where",
)
zeros[e.integer_pow_p] = lambda params, x: x if params["y"] > 0 else True
zeros[bits.and_p] = lambda params, x, y: x & y
for _primitive in (e.max_p, e.min_p, e.complex_p, bits.or_p, bits.xor_p):
    zeros[_primitive] = lambda params, x, y: x | y
for _primitive in (
    e.imag_p, e.real_p, e.rem_p, e.sign_p, e.abs_p, e.floor_p, e.ceil_p, e.round_p, e.sqrt_p, e.cbrt_p, e.expm1_p,
    e.log1p_p, e.sin_p, e.tan_p, e.asin_p, e.atan_p, e.sinh_p, e.tanh_p, e.asinh_p, e.atanh_p, e.convert_element_type_p,
    special.erf_p, special.erf_inv_p, bits.reduce_precision_p, bits.shift_left_p, bits.shift_right_logical_p,
    bits.shift_right_arithmetic_p, bits.population_count_p,
):  # fmt: skip
    zeros[_primitive] = lambda params, x, *others: x

# ---- ones ----------------------------------------------------------------------------------------------------

ones: Table[Callable[..., Support]] = Table(
    "ones of functions",
    "row(support of the operand, where it is zero or one) -> where a function, element by element, is zero or one",
    absent="nowhere; if its index row is not pointwise, that says where",
)
for _primitive in (e.abs_p, e.real_p, e.convert_element_type_p):
    ones[_primitive] = lambda support, binary: binary
for _primitive in (e.exp_p, e.exp2_p, e.cos_p, e.cosh_p, special.erfc_p, special.bessel_i0e_p):
    ones[_primitive] = lambda support, binary: np.logical_not(support)

# ---- the strict form -----------------------------------------------------------------------------------------

rows[strict_form.lit] = same
rows[strict_form.dup] = lambda params, avals: terms(*same(params, avals).results * 2)
rows[strict_form.lzero] = lambda params, avals: terms([])
