"""NumPy source code of primitives without terms, for formulas that run with NumPy alone."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tapeless.interpreters.formulas.let_form import Computed
from tapeless.tracer import dtypes
from tapeless.tracer.core import Primitive
from tapeless.tracer.formulas.numpy_source import number_source
from tapeless.tracer.jaxpr import Literal
from tapeless.tracer.primitives import bits, reduction
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives.opaque import opaque_p, source_name
from tapeless.tracer.primitives.shape import broadcast_in_dim_p, iota_p
from tapeless.tracer.rules import Table

functions: Table[Any] = Table(
    "NumPy source",
    "source(operands, params) -> an expression of NumPy, of operands that are names or numbers",
    absent="formulas that read it have no source",
)


def computed_source(c: Computed, names: Sequence[str], dtype: dtypes.DType) -> str:
    """Generate the NumPy expression of a definition whose elements have this dtype.

    Raises: NotImplementedError naming the primitive if it has none.
    """
    if c.primitive not in functions or c.result:
        raise NotImplementedError(
            f"numpy: {c.primitive.name} has no source for NumPy: call the formula, or compile it."
        )
    given = [number_source(x.value) if isinstance(x, Literal) else names[x] for x in c.operands]
    if c.primitive is e.div_p and dtypes.is_integer(dtype):
        return f"({given[0]} - np.fmod({given[0]}, {given[1]})) // {given[1]}"  # rounds towards zero
    return functions[c.primitive](given, c.params)


def value_of_numbers(primitive: Primitive, numbers: Sequence[Any], params: Mapping[str, Any]) -> Any:
    """Evaluate a primitive on numbers by its NumPy source; None without source, or if a number is not finite."""
    if (
        not np.all(np.isfinite(numbers))
        or primitive not in functions
        or primitive is opaque_p
        or primitive is broadcast_in_dim_p
    ):
        return None
    with np.errstate(all="ignore"):
        found = eval(functions[primitive]([f"np.asarray({number!r})" for number in numbers], params), {"np": np})
    return found if np.isfinite(found) else None


def opaque_source(params: Mapping[str, Any]) -> str:
    """Return the name of the parameter that stands for a derivative of an opaque function in generated source."""
    return source_name(params["function"], params["ranks"], params["orders"])


def _call(name: str, *primitives: Primitive) -> None:
    for p in primitives:
        functions[p] = lambda given, params: f"np.{name}({', '.join(given)})"


def _operator(sign: str, primitive: Primitive) -> None:
    functions[primitive] = lambda given, params: f" {sign} ".join(given)


def _axes(name: str, primitive: Primitive) -> None:
    functions[primitive] = lambda given, params: f"np.{name}({given[0]}, axis={tuple(params['axes'])})"


def _broadcast(given: Sequence[str], params: Mapping[str, Any]) -> str:
    shape, dims = params["shape"], params["dims"]
    if not dims:
        return f"np.full({tuple(shape)}, {given[0]})"
    missing = tuple([d for d in range(len(shape)) if d not in dims])
    return f"np.broadcast_to(np.expand_dims({given[0]}, {missing}), {tuple(shape)})"


def _iota(given: Sequence[str], params: Mapping[str, Any]) -> str:
    shape, axis = tuple(params["shape"]), params["dimension"]
    values = f"np.arange({shape[axis]}, dtype='{params['dtype']}')"
    missing = tuple([d for d in range(len(shape)) if d != axis])
    return f"np.broadcast_to(np.expand_dims({values}, {missing}), {shape})" if missing else values


def _rounded(given: Sequence[str], params: Mapping[str, Any]) -> str:
    """Round ties to even, as NumPy does, or away from zero: half of a number is exact."""
    (x,) = given
    to_even = params["rounding_method"] is e.RoundingMethod.TO_NEAREST_EVEN
    return f"np.round({x})" if to_even else f"np.trunc({x}) + np.trunc(2 * ({x} - np.trunc({x})))"


def _selected(given: Sequence[str], params: Mapping[str, Any]) -> str:
    which, *cases = given
    if len(cases) == 2:
        return f"np.where({which}, {cases[1]}, {cases[0]})"
    return f"np.choose({which}, [{', '.join(cases)}], mode='clip')"


def _position(name: str, primitive: Primitive) -> None:
    functions[primitive] = lambda given, params: f"np.{name}({given[0]}, axis={params['axis']})"


def _converted(x: str, dtype: Any) -> str:
    """Generate the conversion of an array to a dtype; a real dtype takes the real part."""
    return f"np.asarray({x if dtypes.is_complex(dtype) else f'np.real({x})'}, '{dtype}')"


for _name, _primitive in (
    ("exp", e.exp_p), ("exp2", e.exp2_p), ("expm1", e.expm1_p), ("log", e.log_p), ("log1p", e.log1p_p),
    ("sin", e.sin_p), ("cos", e.cos_p), ("tan", e.tan_p), ("arcsin", e.asin_p), ("arccos", e.acos_p),
    ("arctan", e.atan_p), ("arctan2", e.atan2_p), ("sinh", e.sinh_p), ("cosh", e.cosh_p), ("tanh", e.tanh_p),
    ("arcsinh", e.asinh_p), ("arccosh", e.acosh_p), ("arctanh", e.atanh_p), ("sqrt", e.sqrt_p),
    ("sqrt", e.root_of_squares_p), ("cbrt", e.cbrt_p),
    ("abs", e.abs_p), ("floor", e.floor_p), ("ceil", e.ceil_p), ("sign", e.sign_p), ("maximum", e.max_p),
    ("minimum", e.min_p), ("power", e.pow_p), ("fmod", e.rem_p), ("equal", e.eq_p), ("not_equal", e.ne_p),
    ("less", e.lt_p), ("less_equal", e.le_p), ("greater", e.gt_p), ("greater_equal", e.ge_p),
    ("isfinite", e.is_finite_p), ("bitwise_and", bits.and_p), ("bitwise_or", bits.or_p), ("invert", bits.not_p),
):  # fmt: skip
    _call(_name, _primitive)
for _name, _primitive in (
    ("max", reduction.reduce_max_p), ("min", reduction.reduce_min_p), ("prod", reduction.reduce_prod_p),
    ("any", reduction.reduce_or_p), ("all", reduction.reduce_and_p),
):  # fmt: skip
    _axes(_name, _primitive)
for _sign, _primitive in (("+", e.add_p), ("-", e.sub_p), ("*", e.mul_p), ("/", e.div_p)):  # of integers, most often
    _operator(_sign, _primitive)
functions[e.neg_p] = lambda given, params: f"-{given[0]}"
_position("argmax", reduction.argmax_p)
_position("argmin", reduction.argmin_p)
functions[iota_p] = _iota
functions[e.round_p] = _rounded
functions[e.select_n_p] = _selected
functions[e.integer_pow_p] = lambda given, params: f"{given[0]} ** {float(params['y'])}"
functions[e.rsqrt_p] = lambda given, params: f"1 / np.sqrt({given[0]})"
functions[e.logistic_p] = lambda given, params: f"1 / (1 + np.exp(-{given[0]}))"
functions[e.convert_element_type_p] = lambda given, params: _converted(given[0], params["dtype"])
functions[broadcast_in_dim_p] = _broadcast
functions[opaque_p] = lambda given, params: f"{opaque_source(params)}({', '.join(given)})"
