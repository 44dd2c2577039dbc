"""Operations as they are, at zeros of both signs, ties, infinities and nan: eager, jitted and mapped they are the same.

Products that sum are left out, as of zeros times infinities nothing is promised when compiled; and products with
booleans, which XLA turns into choices.
"""

from tests.fuzzing.builder import Builder
from tests.fuzzing.families.elementwise import broadcasts
from tests.fuzzing.families.shaping import axis_of

UNARY = (
    "tnp.sin({0})", "tnp.exp({0})", "tnp.log({0})", "tnp.sqrt({0})", "tnp.abs({0})", "tnp.sign({0})", "tnp.floor({0})",
    "tnp.ceil({0})", "tnp.round({0})", "tnp.trunc({0})", "-{0}", "{0} ** 2", "{0} ** -1", "{0} ** .5", "1 / {0}",
    "tnp.isnan({0})",
    "tnp.isinf({0})", "tnp.isfinite({0})", "tnp.signbit({0})", "tnp.nan_to_num({0})",
    "tnp.nan_to_num({0}, nan=1., posinf=2.)",
    "tnp.tanh({0})", "tnp.arctan({0})", "tnp.log1p({0})", "tnp.expm1({0})", "tnp.cbrt({0})", "lax.rsqrt({0})",
    "tnp.sinc({0})",
    "tnp.square({0})", "tnp.reciprocal({0})", "lax.logistic({0})", "lax.erf({0})", "tnp.cosh({0})", "tnp.arcsinh({0})",
    "tnp.clip({0}, -1, 1)", "tnp.clip({0}, None, 0.)", "{0} % 1.", "tnp.exp2({0})", "tnp.log2({0})",
    "tnp.isposinf({0})",
    "lax.lgamma({0})", "lax.erfc({0})", "tnp.arcsin({0})", "tnp.arccosh({0})", "tnp.arctanh({0})", "tnp.sinh({0})",
    "tnp.heaviside({0}, .5)", "tnp.positive({0})", "tnp.deg2rad({0})", "lax.is_finite({0})", "{0} + 0.", "{0} - {0}",
    "{0} / {0}",
    "{0} * 0", "tnp.frexp({0})[0]", "tnp.modf({0})[0]", "tnp.fix({0})", "tnp.i0(tnp.clip({0}, -3, 3))", "{0} == {0}",
)  # fmt: skip
BINARY = (
    "{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / {1}", "tnp.maximum({0}, {1})", "tnp.minimum({0}, {1})",
    "tnp.fmax({0}, {1})",
    "tnp.fmin({0}, {1})", "{0} ** {1}", "tnp.arctan2({0}, {1})", "tnp.hypot({0}, {1})", "tnp.logaddexp({0}, {1})",
    "{0} < {1}",
    "{0} == {1}", "{0} >= {1}", "{0} != {1}", "tnp.copysign({0}, {1})", "tnp.where({0} < {1}, {0}, {1})",
    "tnp.fmod({0}, {1})",
    "tnp.remainder({0}, {1})", "tnp.floor_divide({0}, {1})", "tnp.nextafter({0}, {1})",
    "tnp.isclose({0}, {1}, equal_nan=True)",
    "tnp.clip({0}, {1}, 1.)", "lax.clamp(-1., {0} + 0 * {1}, 1.)", "tnp.equal({0}, {1})", "tnp.allclose({0}, {1})",
)  # fmt: skip
REDUCTIONS = (
    "tnp.sum", "tnp.max", "tnp.min", "tnp.prod", "tnp.argmax", "tnp.argmin", "tnp.nanmax", "tnp.nanmin", "tnp.nansum",
    "tnp.any",
    "tnp.all", "tnp.sort", "tnp.argsort", "tnp.cumsum", "tnp.nancumsum", "tnp.median", "tnp.nanmedian", "tnp.ptp",
    "lax.cummax",
    "lax.cummin", "tnp.mean", "tnp.nanmean", "tnp.count_nonzero", "tnp.nanargmax", "lax.cumlogsumexp", "tnp.var",
    "tnp.nanvar",
)  # fmt: skip


def special_unary(b: Builder) -> None:
    b.emit(b.choice(UNARY), b.pick("f"), bound=1.0)


def special_binary(b: Builder) -> None:
    x = b.pick("f")
    y = b.pick("f", where=lambda v: broadcasts(v.shape, x.shape))
    b.emit(b.choice(BINARY), x, y, bound=1.0)


def special_choice(b: Builder) -> None:
    m = b.pick("b")
    x, y = (b.pick("f", where=lambda v: broadcasts(v.shape, m.shape)) for _ in range(2))
    b.emit(
        b.choice(("tnp.where({0}, {1}, {2})", "tnp.where({0}, {1}, 0)", "tnp.where({0}, 0., {2})")), m, x, y, bound=1.0
    )


def special_reduction(b: Builder) -> None:
    x = b.pick("f", least=1, full=True)
    name = b.choice(REDUCTIONS)
    operand = (
        f"tnp.where(tnp.arange({x.shape[0]}).reshape({(-1,) + (1,) * (x.ndim - 1)}) == 0, 1., {{0}})"
        if "nanarg" in name
        else "{0}"
    )
    axis = f"axis={axis_of(b, x) % x.ndim}" if "nanarg" not in name else "axis=0"
    b.emit(f"{name}({operand}, {axis})", x, bound=1.0)


def special_places(b: Builder) -> None:
    x = b.pick("f", least=1, full=True)
    y = b.pick("f", shape=())
    k = b.integer(1, x.shape[-1])
    texts = (
        f"lax.top_k({{0}}, {k})[0]", f"lax.top_k({{0}}, {k})[1]", "tnp.searchsorted(tnp.array([-1., 0., 1.]), {0})",
        "tnp.digitize({0}, np.array([-1., 0., 1.]))", "tnp.unique({0}, size=4, fill_value=7.)", "{0}.at[0].set({1})",
        "{0}.at[0].max({1})", "{0}.at[-1].min({1})", "{0}.at[0].add({1})",
        "tnp.interp({0}, np.array([-1., 0., 2.]), np.array([3., 1., 2.]))",
        "tnp.nonzero({0}, size=3, fill_value=-1)[0]", "tnp.isin({0}, np.array([0., 1.]))", "{0}.astype('float32')",
        "{0}.astype(bool)",
        "tnp.select([{0} > 0, {0} == 0], [{0}, {1}], -5.)", "tnp.where(tnp.isnan({0}), {1}, {0})",
        "lax.cond(tnp.any({0} > 0), lambda a: a, lambda a: -a, {0})",
        "lax.fori_loop(0, 3, lambda i, c: tnp.maximum(c, {1}) + 1, {0})", "tnp.quantile({0}, .5)",
        "tnp.quantile({0}, .3, axis=0)",
    )  # fmt: skip
    b.emit(b.choice(texts), x, y, bound=1.0)


FAMILIES = {
    "special_unary": special_unary,
    "special_binary": special_binary,
    "special_choice": special_choice,
    "special_reduction": special_reduction,
    "special_places": special_places,
}
