"""Functions whose results are places, counts, sets or bits: integers, without derivatives."""

from tests.fuzzing.builder import Builder
from tests.fuzzing.families.reductions import JITTER
from tests.fuzzing.families.shaping import axis_of

OF_FLOATS = (
    "tnp.searchsorted(tnp.linspace(-1.13, 1.17, 5), {0})", "tnp.digitize({0}, np.array([-.537, .0113, .471]))",
    "tnp.nonzero({0} > .0317, size=4, fill_value=-1)[0]", "tnp.isclose({0}, .5)", "tnp.signbit({0} + .0173)",
    "tnp.histogram({0}, bins=4, range=(-1.317, 1.291))[0]", "tnp.argwhere({0} > .0317, size=3, fill_value=0)",
    "tnp.flatnonzero({0} < .0171, size=3, fill_value=7)", "tnp.isfinite({0})", "tnp.count_nonzero({0} > .0113)",
    "tnp.array_equal({0}, {0})", "lax.bitcast_convert_type({0}.astype('float32'), 'int32') & 0", "tnp.isnan({0} / 1)",
    "lax.top_k({jitter}, 1)[1]", "tnp.lexsort((tnp.sin(9 * {0} + .1), {0} > .0137))", "tnp.all(tnp.abs({0}) < 99.)",
)  # fmt: skip
OF_INTEGERS = (
    "tnp.bincount(tnp.abs({0}.ravel()) % 4, length=5)", "tnp.unique({0}, size=4, fill_value=0)",
    "tnp.isin({0}, np.array([1, 3]))",
    "tnp.sort({0}.ravel())", "tnp.argsort({0}.ravel())", "tnp.unique({0} % 3, size=3, fill_value=9)",
    "tnp.cumsum({0}.ravel())",
    "lax.reduce_xor({0}, (0,))", "lax.reduce_and({0} > 1, (0,))", "lax.reduce_or({0}, (0,))",
    "lax.reduce_max({0}, (0,))",
    "tnp.cumprod({0}.ravel() % 3)", "tnp.diff({0}.ravel())", "tnp.left_shift({0} & 3, 1)", "tnp.right_shift({0}, 1)",
    "lax.shift_right_logical({0}, {0} * 0 + 1)", "lax.shift_left({0}, {0} * 0 + 2)", "tnp.outer({0}, {0})",
    "tnp.max({0}) - {0}",
    "tnp.unravel_index(tnp.abs({0}) % 6, (2, 3))[1]", "tnp.where({0} > 1, size=3, fill_value=0)[0]",
    "tnp.median({0}).astype('int32')",
    "tnp.concatenate([{0}.ravel(), {0}.ravel()[::-1]])",
    "tnp.tri(3, dtype='int32') @ tnp.resize({0}, (3,)).astype('int32')",
    "tnp.union1d({0}, np.array([0, 1]), size=4, fill_value=-1)", "tnp.argpartition({0}.ravel(), 0)[:1] * 0",
)  # fmt: skip


def of_floats(b: Builder) -> None:
    x = b.pick("f", least=1, full=True)
    b.emit(b.choice(OF_FLOATS).replace("{jitter}", JITTER), x, bound=10)


def of_integers(b: Builder) -> None:
    x = b.pick("i", least=1, full=True)
    b.emit(b.choice(OF_INTEGERS), x, bound=4 * x.bound * x.size)


def used(b: Builder) -> None:
    """Integers where they matter: as indices, masks and factors of floats."""
    i = b.pick("iub", most=2)
    x = b.pick("f", least=1, full=True)
    axis = axis_of(b, x)
    texts = (
        "tnp.sum({0}.astype('float64')) * {1}", f"tnp.roll({{1}}, tnp.sum({{0}}) % 5, {axis})",
        "{1} * (tnp.max({0}) > 1)",
        f"tnp.take({{1}}, {{0}}.astype('int32'), {axis}, mode='clip')", "tnp.where(tnp.any({0} > 0), {1}, 2 * {1})",
    )  # fmt: skip
    b.emit(b.choice(texts) if i.size else "{1} + tnp.sum({0})", i, x, bound=2 * x.bound * max(1, i.bound * i.size))


FAMILIES = {"counts_of_floats": of_floats, "counts_of_integers": of_integers, "integers_used": used}
