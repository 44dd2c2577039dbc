"""How elementwise operations transform. A row per operand: `t` is its tangent, the letters are the operands."""

from typing import Any

from tapeless.interpreters import jvp, transpose
from tapeless.interpreters.transpose import Linear
from tapeless.interpreters.zero import Zero
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives.elementwise import add, cos, div, integer_pow, log, mul, neg, sin, sub
from tapeless.tracer.primitives.reduction import reduce_sum
from tapeless.tracer.primitives.shape import broadcast_in_dim, full
from tapeless.tracer.types import aval_of


def _fit(ct: Any, x: Any) -> Any:
    """A cotangent in the shape of the operand `x`: summed if `x` was broadcast from rank 0."""
    aval = aval_of(ct)
    return ct if aval.shape == x.aval.shape else reduce_sum(ct, range(aval.ndim))


def _spread(t: Any, *operands: Any) -> Any:
    """A tangent in the shape of the result: a rank-0 one is broadcast."""
    shape = max((aval_of(x).shape for x in operands), key=len)
    return broadcast_in_dim(t, shape, ()) if aval_of(t).shape != shape else t


# ---- linear --------------------------------------------------------------------------------------------------

jvp.linear(e.neg_p)
transpose.unary(e.neg_p, lambda ct, x: neg(ct))

jvp.partials(e.add_p, lambda t, x, y: _spread(t, x, y), lambda t, x, y: _spread(t, x, y))
transpose.joint(e.add_p, lambda ct, x, y: _fit(ct, x), lambda ct, x, y: _fit(ct, y))

jvp.partials(e.sub_p, lambda t, x, y: _spread(t, x, y), lambda t, x, y: neg(_spread(t, x, y)))
transpose.joint(e.sub_p, lambda ct, x, y: _fit(ct, x), lambda ct, x, y: neg(_fit(ct, y)))

jvp.multilinear(e.mul_p)
transpose.multilinear(e.mul_p, lambda ct, x, y: _fit(mul(ct, y), x), lambda ct, x, y: _fit(mul(ct, x), y))

jvp.partials(e.div_p, lambda t, x, y: div(t, y), lambda t, x, y: mul(neg(t), div(div(x, y), y)))
transpose.multilinear(e.div_p, lambda ct, x, y: _fit(div(ct, y), x), transpose.never)

# ---- one operand ---------------------------------------------------------------------------------------------

jvp.partials(e.sin_p, lambda t, x: mul(t, cos(x)))
jvp.partials(e.cos_p, lambda t, x: neg(mul(t, sin(x))))
jvp.partials_of_result(e.exp_p, lambda t, y, x: mul(t, y))
jvp.partials(e.log_p, lambda t, x: div(t, x))
jvp.partials_of_result(e.tanh_p, lambda t, y, x: mul(t, sub(1.0, mul(y, y))))
jvp.partials_of_result(e.sqrt_p, lambda t, y, x: div(mul(0.5, t), y))
jvp.partials(e.integer_pow_p, lambda t, x, y: mul(t, mul(float(y), integer_pow(x, y - 1))))

# ---- choice --------------------------------------------------------------------------------------------------


def _select_n_jvp(primals: Any, tangents: Any) -> Any:
    which, *cases = primals
    out = e.select_n(which, *cases)
    ts = tangents[1:]
    if all(type(t) is Zero for t in ts):
        return (out,), (Zero(aval_of(out).tangent()),)
    shape = aval_of(out).shape
    dense = [full(shape, 0, t.aval.dtype) if type(t) is Zero else _spread(t, out) for t in ts]
    return (out,), (e.select_n(which, *dense),)


def _select_n_transpose(cts: Any, which: Any, *cases: Any) -> Any:
    ct = cts[0]
    zero = full(aval_of(ct).shape, 0, aval_of(ct).dtype)

    def pulled(k: int, case: Any) -> Any:
        if type(case) is not Linear:
            return None
        return _fit(e.select_n(which, *[ct if i == k else zero for i in range(len(cases))]), case)

    return None, *[pulled(k, case) for k, case in enumerate(cases)]


jvp.rules[e.select_n_p] = _select_n_jvp
transpose.rules[e.select_n_p] = _select_n_transpose

# ---- conversions ---------------------------------------------------------------------------------------------


def _convert_jvp(primals: Any, tangents: Any, *, dtype: Any, weak_type: bool) -> Any:
    out = e.convert_element_type_p.bind(*primals, dtype=dtype, weak_type=weak_type)
    zero = Zero(aval_of(out[0]).tangent())
    if type(tangents[0]) is Zero or dtype.kind in "biu":
        return out, (zero,)
    return out, e.convert_element_type_p.bind(tangents[0], dtype=dtype, weak_type=weak_type)


jvp.rules[e.convert_element_type_p] = _convert_jvp
transpose.unary(
    e.convert_element_type_p,
    lambda ct, x, **_: e.convert_element_type(ct, x.aval.dtype, x.aval.weak_type),
)

# ---- piecewise constant --------------------------------------------------------------------------------------

for _primitive in (e.sign_p, e.floor_p, e.eq_p, e.lt_p):
    jvp.zero(_primitive)
