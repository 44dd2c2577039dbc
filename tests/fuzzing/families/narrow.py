"""Formats of fewer than 32 bits: conversions up and down, and operations between operands of one dtype.

Floats of 8 and 4 bits are promoted to nothing, so the families of other modules seldom find operands for them.
"""

from tests.fuzzing.builder import Builder, Unfit
from tests.fuzzing.families.elementwise import broadcasts
from tests.fuzzing.families.shaping import axis_of
from tests.fuzzing.program import Var
from tests.fuzzing.sizes import ELEMENTS

FLOATS = (
    "bfloat16", "bfloat16", "bfloat16", "float16", "float16", "float16", "float32", "float32", "float8_e4m3fn",
    "float8_e5m2", "float4_e2m1fn",
)  # fmt: skip
INTEGERS = ("int4", "uint4", "int2", "uint2", "int8", "uint8", "int32")
UNARY = (
    "lax.sin({0})", "lax.exp({0})", "lax.expm1({0})", "lax.tanh({0})", "lax.logistic({0})", "lax.log1p({0} * {0})",
    "lax.sqrt(lax.abs({0}))", "lax.rsqrt({0} * {0} + .3)", "lax.erf({0})", "{0} ** 3", "{0} ** -2", "2 ** {0}",
    "{0} / 3",
    "tl.nn.gelu({0})", "tl.nn.silu({0})", "tl.nn.softplus({0})", "tnp.round(3 * {0})", "lax.floor({0})", "1 / {0}",
    "lax.reduce_precision({0}, 4, 1)", "300 * {0}", ".003 * {0}", "{0} + 1.7 - 1.7", "tnp.clip({0}, -.41, .61)",
    "lax.exp({0}) / lax.exp(-{0})", "lax.log(lax.exp({0}))", "-{0}", "lax.abs({0})", "({0} + .5) * .37 + .11",
    "lax.optimization_barrier({0})", "{0} * {0}",
)  # fmt: skip
BINARY = (
    "{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / {1}", "tnp.maximum({0}, {1})", "tnp.minimum({0}, {1})",
    "{0} * {1} + {0}",
    "tnp.where({0} > {1}, {0}, {1})", "tnp.where({0} < .3, {1}, {0} * {1})", "lax.rem(*tnp.broadcast_arrays({0}, {1}))",
    "({0} + {1}) - {0}", "({0} * {1}) * .3", "tnp.clip({0}, -1., {1})", "{0} / {1} / 3",
)  # fmt: skip
SUMS = (
    "tnp.sum({0}, {axis})", "tnp.mean({0}, {axis})", "lax.cumsum({0}, {axis})", "tl.nn.softmax({0}, {axis})",
    "tl.nn.logsumexp({0}, {axis})", "tnp.prod({0}, {axis})", "tnp.var({0}, {axis})", "lax.cumprod({0}, {axis})",
    "{0} / tnp.sum({0}, {axis}, keepdims=True)", "{0} - tnp.mean({0}, {axis}, keepdims=True)",
    "tnp.sum({0} * {0}, {axis})", "tnp.sum({0}, {axis}, dtype='float32')",
)  # fmt: skip
ORDERS = (
    "tnp.max({0}, {axis})", "tnp.min({0}, {axis})", "tnp.argmax({0}, {axis})", "tnp.argmin({0}, {axis})",
    "tnp.sort({0}, {axis})", "tnp.argsort({0}, {axis})", "lax.cummax({0}, {axis})", "lax.top_k({0}, 1)[0]",
    "{0} / tnp.max({0}, {axis}, keepdims=True)", "lax.sort(({0}, {0} * {0}), num_keys=1)[1]",
)  # fmt: skip


def same_dtype(b: Builder, x: Var) -> Var:
    return b.pick(x.kind, dtype=x.dtype, where=lambda v: broadcasts(v.shape, x.shape))


def narrowed(b: Builder) -> None:
    """To another format, and perhaps on, or back."""
    x = b.pick(b.choice("fffiub"))
    formats = [b.choice(FLOATS if b.chance(0.7) else INTEGERS) for _ in range(b.choice((1, 1, 2)))]
    formats += [x.dtype] if b.chance(0.4) else []
    scaled = b.choice(("{0}", "{0}", "{0}", "({0} * 40)", "({0} * 3000)")) if x.kind == "f" else "{0}"
    text = scaled + "".join(f".astype('{to}')" for to in formats)
    b.emit(text, x, bound=x.bound, feature=f"astype.{formats[-1]}")


def narrow_unary(b: Builder) -> None:
    b.emit(b.choice(UNARY), b.pick("f"), bound=3)


def narrow_binary(b: Builder) -> None:
    x = b.pick("f")
    b.emit(b.choice(BINARY), x, same_dtype(b, x), bound=3)


def narrow_sums(b: Builder) -> None:
    x = b.pick("f", least=1, full=True)
    axis = axis_of(b, x) % x.ndim
    if x.shape[axis] > ELEMENTS:  # the order of so many roundings is open
        raise Unfit
    text = b.choice(SUMS).replace("{axis}", str(axis))
    b.emit(text, x, bound=x.bound * x.size)


def narrow_orders(b: Builder) -> None:
    x = b.pick("fffiu", least=1, full=True)
    text = b.choice(ORDERS).replace("{axis}", str(axis_of(b, x) % x.ndim))
    b.emit(text, x, bound=max(x.bound, x.size))


def narrow_products(b: Builder) -> None:
    """A sum of products, in the dtype of the operands or a stated one."""
    x = b.pick("fffi", least=1, most=2)
    y = b.pick(x.kind, dtype=x.dtype, least=1, most=2, where=lambda v: v.shape[0] == x.shape[-1])
    if x.shape[-1] != y.shape[0] or y.shape[0] > ELEMENTS:
        raise Unfit
    wide = b.choice(("float32", "float32", "bfloat16", "float16") if x.kind == "f" else ("int32", "int8"))
    more = b.choice(("", f", preferred_element_type='{wide}'"))
    dims = f"((({x.ndim - 1},), (0,)), ((), ()))"
    b.emit(f"lax.dot_general({{0}}, {{1}}, {dims}{more})", x, y, bound=5 * x.bound * y.bound)


FAMILIES = {
    "narrowed": narrowed,
    "narrow_unary": narrow_unary,
    "narrow_binary": narrow_binary,
    "narrow_sums": narrow_sums,
    "narrow_orders": narrow_orders,
    "narrow_products": narrow_products,
}
