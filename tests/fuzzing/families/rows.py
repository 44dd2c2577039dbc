"""What is computed for every row of a long array and reduced, as one expression: products, windows, distances.

Compilers fuse these into one kernel, or give them to a library, from some size on.
"""

import math
from collections.abc import Sequence

from tests.fuzzing.builder import Builder, Unfit
from tests.fuzzing.families.reductions import JITTER
from tests.fuzzing.program import Var
from tests.fuzzing.sizes import summed

FUNCTIONS = (
    *["{}"] * 3, "({}) ** 2", "tnp.abs({} - .0213)", "tnp.sin({})", "({} - .3171) ** 2", "tnp.exp(-({}) ** 2)",
    "tnp.maximum({}, .0137)", "tnp.tanh({})", "1 / (1 + ({}) ** 2)", "({} > .0171) * ({})",
)  # fmt: skip
NUMBERS = (
    *["tnp.sum({}, {axis})"] * 3, "tnp.mean({}, {axis})", "tnp.max({}, {axis})", "tnp.min({}, {axis})",
    "tnp.linalg.norm({} + 1.3171, axis={axis})", "tl.nn.logsumexp({}, {axis})", "tnp.var({}, {axis})", "tnp.sum({})",
)  # fmt: skip
REDUCTIONS = (
    *NUMBERS, "tl.nn.softmax({}, {axis})", "tnp.cumsum({}, {axis})", "tnp.argmax({}, {axis})", "{}",
)  # fmt: skip


def reduced(
    b: Builder, text: str, shape: Sequence[int], rather: int = 0, reductions: Sequence[str] = REDUCTIONS
) -> tuple[str, float]:
    """An expression of this shape, under a function, reduced along an axis; how much that adds up."""
    axis = rather if b.chance(0.6) else b.integer(0, len(shape) - 1)
    made: str = b.choice(reductions)
    terms = math.prod(shape) if "axis" not in made else shape[axis]
    made = made.replace("{axis}", str(axis)).replace("{}", b.choice(FUNCTIONS).replace("{}", text))
    return made, summed(terms) if "sum(" in made else 1.0


def matrices(b: Builder) -> None:
    """Rows, which a small matrix maps, each or all at once; or a matrix for each row."""
    x = b.pick("f", least=2, full=True, where=lambda v: v.ndim > 1 and v.shape[-1] <= 9)
    k = x.shape[-1]
    m = b.pick("f", shape=(b.choice((k, b.size())), k), dtype=x.dtype)
    if m.shape[0] == 0:
        raise Unfit
    shape = (*x.shape[:-1], m.shape[0])
    texts = [("{0} @ {1}.T", shape), ("tnp.einsum('ij,...j->i...', {1}, {0})", (m.shape[0], *x.shape[:-1]))]
    if x.ndim == 2:
        texts += [("{1} @ {0}.T", shape[::-1]), ("tl.vmap(lambda r: {1} @ r)({0})", shape)]
    text, shape = b.choice(texts)
    made, grown = reduced(b, text, shape, shape.index(m.shape[0]))
    if x.ndim == 2 and b.chance(0.5):  # row by row, as users write
        derived = b.chance(0.3)
        made, grown = reduced(b, "({1} @ r)", m.shape[:1], reductions=NUMBERS if derived else REDUCTIONS)
        row = f"lambda r: {made}"
        made = f"tl.vmap(tl.value_and_grad({row}))({{0}})[{b.integer(0, 1)}]" if derived else f"tl.vmap({row})({{0}})"
    b.emit(made, x, m, bound=k * x.bound * m.bound * grown, feature="rows.matrices")


def pairs(b: Builder) -> None:
    """Products and distances of two arrays of one shape."""
    x = b.pick("f", least=1, full=True, where=lambda v: v.size > 1)
    y = another(b, x)
    text = b.choice(("{0} * {1}", "({0} - {1})", "({0} * {1} - {0})", "{0} / (1.3 + {1} * {1})", "{0} * {1} * {1}"))
    made, grown = reduced(b, text, x.shape)
    b.emit(made, x, y, bound=x.bound * max(y.bound, 1) * grown, feature="rows.pairs")


def sums_of_products(b: Builder) -> None:
    """Two arrays of one shape multiplied, and summed along an axis or two."""
    x = b.pick("f", least=1, full=True, where=lambda v: v.size > 1)
    y = another(b, x)
    text = b.choice(("{0} * {1}", "{0} * {1}", "{0} * {1} * {1}", "{0} * {1} * {0}"))
    axes = sorted(int(a) for a in b.rng.permutation(x.ndim)[: b.choice((1, 1, 1, 2))])
    terms = math.prod(x.shape[a] for a in axes)
    b.emit(
        f"tnp.sum({text}, {tuple(axes)})",
        x,
        y,
        bound=x.bound * max(y.bound, 1) ** 2 * summed(terms),
        feature="rows.sums",
    )


def another(b: Builder, x: Var) -> Var:
    """An array of the same type that is not x itself."""
    return b.find(lambda v: v.same_type(x) and v is not x) or b.argument(x.shape, x.dtype)


def pooled(b: Builder) -> None:
    """Windows of one or two axes with strides and dilations, and what is done with them."""
    x = b.pick("f", least=1, full=True, where=lambda v: v.ndim > 0 and max(v.shape) > 3)
    sizes = [1] * x.ndim
    for d in b.rng.permutation(x.ndim)[: b.integer(1, 2)]:
        sizes[d] = b.integer(1, min(3, x.shape[d]))
    strides = tuple(b.integer(1, 2) if n > 1 else 1 for n in sizes)
    dilated = tuple(b.integer(1, 3) if n > 1 else 1 for n in sizes)
    more = f", {b.choice(('base_dilation', 'window_dilation'))}={dilated}" if b.chance(0.5) else ""
    name, init, operand = b.choice(
        (("lax.add", "0.", "{0}"), ("lax.max", "-np.inf", JITTER), ("lax.min", "np.inf", JITTER))
    )
    padding = b.choice(("'VALID'", "'SAME'"))
    text = f"lax.reduce_window({operand}, np.array({init}, '{x.dtype}')[()], {name}, {tuple(sizes)}, {strides}, "
    text = f"tnp.clip({text}{padding}{more}), -9.1371, 9.1371)"
    b.emit(b.choice(FUNCTIONS).replace("{}", text), x, bound=9 * x.bound, feature=f"rows.pooled.{name[4:]}")


FAMILIES = {"rows": matrices, "pairs": pairs, "sums_of_products": sums_of_products, "pooled": pooled}
