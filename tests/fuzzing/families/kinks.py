"""Smooth functions that are composed of functions with kinks, at the kinks: second derivatives are those of the whole.

Roots are squared in the statement that makes them. Of other even functions of a root nothing is promised.
"""

from tests.fuzzing.builder import Builder
from tests.fuzzing.families.elementwise import broadcasts

ROOTS = (
    "abs({0})", "tnp.linalg.norm({0})", "tnp.linalg.norm({0}, axis=-1, keepdims=True)", "tnp.hypot({0}, {1})",
    "tnp.std({0})", "tnp.std({0}, axis=0)", "abs(lax.complex(*tnp.broadcast_arrays({0}, {1})))", "tl.jit(abs)({0})",
    "tnp.sqrt(tnp.sum({0} ** 2))", "tl.vmap(tnp.linalg.norm)({0}[None])",
)  # fmt: skip
MOVED = (
    "{}",
    "{}",
    "-{}",
    "0.5 * {}",
    "{} / 3.",
    "{} * {1}",
    "({})[None]",
    "({}).T",
    "tnp.where(tnp.isnan({}), 1., {})",
)
EVEN = ("({}) ** 2", "lax.square({})", "({}) ** 4", "(lambda r: r * r)({})", "tnp.power({}, 2.)", "abs({}) ** 3")
SMOOTH = (
    "{0} ** 2", "{0} ** 3", "tnp.sin({0})", "tnp.exp(-({0} ** 2))", "tnp.prod({0})", "tl.nn.logsumexp({0})",
    "tnp.logaddexp({0}, 0.5)", "tnp.sinc({0})", "tl.nn.softplus({0})", "tnp.cumprod({0}.reshape(-1))",
    "lax.logistic({0})",
    "tnp.mean({0}, where={0} < 5.)", "tnp.where({0} > -9., {0} * {0}, tnp.sqrt({0}))", "tnp.var({0})",
    "{0}.at[..., 0].multiply(0.5)", "tl.nn.silu({0})", "tnp.nanmean({0}) * {0}",
)  # fmt: skip
PAIRS = (
    "{0} * {1}", "tnp.logaddexp({0}, {1})", "{0} - {1}", "tnp.average({0} + 0 * {1}, weights=tnp.ones_like({0} + {1}))",
    "tl.nn.logsumexp({0} + 0 * {1}, b=1. + {1} ** 2)",
)  # fmt: skip


def squared(b: Builder) -> None:
    """An even power of a root, which may be moved and scaled before."""
    x = b.pick("f", least=1)
    y = b.pick("f", where=lambda v: broadcasts(v.shape, x.shape))
    moved = b.choice(MOVED)
    moved = "{}" if "{1}" in moved and "norm" in moved else moved
    root = b.choice(ROOTS[:4] if "{1}" in moved else ROOTS)
    even = EVEN[:-1] if "sqrt" in root else EVEN  # the cube of sqrt is 0 times infinity at 0
    text = b.choice(even).replace("{}", moved.replace("{}", root) if "{1}" not in moved else "abs({0}) * {1}")
    b.emit(text, x, y, bound=20.0)


def smooth(b: Builder) -> None:
    b.emit(b.choice(SMOOTH), b.pick("f", least=1), bound=4.0)


def pairs(b: Builder) -> None:
    x = b.pick("f")
    b.emit(b.choice(PAIRS), x, b.pick("f", where=lambda v: broadcasts(v.shape, x.shape)), bound=8.0)


FAMILIES = {"squared": squared, "smooth": smooth, "pairs": pairs}
