"""Integers that wrap: products and powers beyond the dtype, and what XLA takes to be known of their signs."""

from tests.fuzzing.builder import Builder

GROWING = (
    "{0} * {0}", "{0} ** 2", "tnp.square({0}) * {0}", "{0} ** 4", "{0} * 113 * 101", "{0} << 3",
    "tnp.cumprod({0}.ravel() | 3, dtype={0}.dtype)", "lax.cumsum({0} * 77, axis=0)", "-({0} * {0})",
    "tnp.maximum({0} * {0}, -9)", "tnp.where({0} > 1, {0} * {0}, abs({0}))", "{0} ^ ({0} * 25)",
    "tnp.sum({0} * {0}, dtype={0}.dtype) + {0}",
)  # fmt: skip
TESTING = (
    "abs({0})", "tnp.sign({0})", "{0} < 0", "{0} >= 0", "0 > {0}", "tnp.maximum({0}, 0)", "{0} // 8", "{0} % 8",
    "lax.div({0}, tnp.asarray(4, {0}.dtype))", "lax.rem({0}, tnp.asarray(8, {0}.dtype))", "{0} >> 1", "abs(abs({0}))",
    "abs({0}).astype('float64')", "tnp.clip({0}, 0, 99)", "-abs({0})", "tnp.argmax({0})", "tnp.sort({0}.ravel())",
)  # fmt: skip
SIGNED = ("int8", "int16", "int32", "int64")
SQUARES = ("{0} * {0}", "{0} ** 2", "tnp.square({0})", "lax.integer_pow({0}, 2)", "{0} ** 4")
BEYOND = {"int8": 13, "int16": 182, "int32": 46_341, "int64": 3_037_000_500}  # whose squares wrap to negative numbers


def grown(b: Builder) -> None:
    """A few growing steps: numbers of every size and sign."""
    x = b.pick("i", least=1, full=True)
    if x.dtype not in SIGNED or b.chance(0.3):
        x = b.emit(f"({{0}} + 3).astype('{b.choice(SIGNED)}')", x, bound=5)
    for _ in range(b.integer(1, 3)):
        x = b.emit(b.choice(GROWING), x, bound=5)


def tested(b: Builder) -> None:
    x = b.pick("i", least=1, full=True)
    b.emit(b.choice(TESTING), x, bound=5)


def squared(b: Builder) -> None:
    """A test of squares that wrap: XLA takes squares of signed integers for non-negative."""
    x = b.pick("i", least=1, full=True)
    dtype = b.choice(SIGNED)
    large = b.emit(f"{{0}}.astype('{dtype}') * tnp.asarray({BEYOND[dtype]}, '{dtype}')", x, bound=5)
    b.emit(b.choice(TESTING), b.emit(b.choice(SQUARES), large, bound=5), bound=5)


FAMILIES = {"grown": grown, "tested": tested, "wrapped": squared}
