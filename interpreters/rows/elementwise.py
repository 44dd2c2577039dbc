"""Index rows of elementwise primitives: sums and products are terms, selects have brackets, others are pointwise."""

from collections.abc import Sequence

from tapeless.interpreters.index_rows import IndexRow, Params, elements, pointwise, rows, same, terms
from tapeless.tracer import dtypes
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.terms.affine import Affine
from tapeless.tracer.terms.term import Lookup, Term, Use
from tapeless.tracer.types import ShapedArray

Avals = Sequence[ShapedArray]

rows[e.neg_p] = lambda params, avals: terms([elements(avals, [0], coefficient=-1)])
rows[e.add_p] = lambda params, avals: terms([elements(avals, [0]), elements(avals, [1])])
rows[e.sub_p] = lambda params, avals: terms([elements(avals, [0]), elements(avals, [1], coefficient=-1)])
rows[e.mul_p] = lambda params, avals: terms([elements(avals, [0, 1])])
rows[e.square_p] = lambda params, avals: terms([elements(avals, [0, 0])])
rows[e.conj_p] = lambda params, avals: terms([elements(avals, [0], uses=[Use.CONJUGATED])])
rows[e.copy_p] = rows[e.stop_gradient_p] = same


def _div(params: Params, avals: Avals) -> IndexRow:
    """Make the row of a quotient: pointwise for integers, whose division is no product with an inverse."""
    if not dtypes.is_inexact(avals[0].dtype):
        return pointwise(params, avals)
    return terms([elements(avals, [0, 1], uses=[Use.PLAIN, Use.DIVIDED])])


def _select_n(params: Params, avals: Avals) -> IndexRow:
    """Make the row of a select: a term for each case, with a bracket, so that only the selected case is read."""
    return terms([_case(avals, k) for k in range(1, len(avals))])


def _case(avals: Avals, k: int) -> Term:
    last = len(avals) - 2

    def chosen(i: tuple[Affine, ...]) -> list[Lookup]:
        return [Lookup(Affine(k - 1), 0, i if avals[0].shape else (), (0, last))] if last else []

    return elements(avals, [k], chosen)


def _convert_element_type(params: Params, avals: Avals) -> IndexRow:
    return (same if is_exact(avals[0].dtype, params["dtype"]) else pointwise)(params, avals)


def is_exact(old: dtypes.DType, new: dtypes.DType) -> bool:
    """Tell whether the dtype `new` holds every number of `old` exactly, so that a conversion is an identity."""
    if old == new or dtypes.is_bool(old):
        return True
    if dtypes.is_bool(new) or dtypes.is_key(old) or (dtypes.is_complex(old) and not dtypes.is_complex(new)):
        return False
    if dtypes.is_inexact(old):
        return dtypes.is_inexact(new) and _mantissa(old) <= _mantissa(new) and _exponent(old) <= _exponent(new)
    low, high = dtypes.iinfo(old).min, dtypes.iinfo(old).max
    if dtypes.is_inexact(new):
        return high <= 2 ** (_mantissa(new) + 1)
    return dtypes.iinfo(new).min <= low and high <= dtypes.iinfo(new).max


def _mantissa(dtype: dtypes.DType) -> int:
    return dtypes.finfo(dtype).nmant


def _exponent(dtype: dtypes.DType) -> int:
    return dtypes.finfo(dtype).maxexp


rows[e.div_p], rows[e.select_n_p], rows[e.convert_element_type_p] = _div, _select_n, _convert_element_type

for _primitive in (
    e.rem_p, e.difference_p, e.max_p, e.min_p, e.sign_p, e.abs_p, e.floor_p, e.ceil_p, e.nextafter_p, e.round_p,
    e.sqrt_p, e.rsqrt_p, e.cbrt_p, e.root_of_squares_p, e.integer_pow_p, e.pow_p, e.exp_p, e.exp2_p, e.expm1_p, e.log_p,
    e.log1p_p, e.log_plus_one_p, e.logistic_p, e.sin_p,
    e.cos_p, e.tan_p, e.asin_p, e.acos_p, e.atan_p, e.atan2_p, e.sinh_p, e.cosh_p, e.tanh_p, e.asinh_p, e.acosh_p,
    e.atanh_p, e.real_p, e.imag_p, e.complex_p, e.eq_p, e.ne_p, e.lt_p, e.le_p, e.gt_p, e.ge_p, e.is_finite_p,
    e.clamp_p,
):  # fmt: skip
    rows[_primitive] = pointwise
