"""Stencils over periodic ranges, and reductions over reversed rows of padded arrays: docs/xla_defects.md.

A few operations each, which read one array several times: that is one kernel of the compiled program.
"""

import itertools

from tests.fuzzing.builder import Builder, Unfit
from tests.fuzzing.program import Var


def _array(b: Builder, most: int) -> Var:
    x = b.pick("f", least=1, most=most, full=True)
    if min(x.shape) < 2:
        raise Unfit
    return x


def periodic(b: Builder) -> None:
    """Write a sum of products of elements, of a few neighbours, or at strides and offsets up to several periods."""
    x = _array(b, most=1 if b.chance(0.7) else 2)
    names, of_neighbours = "ij"[: x.ndim], b.chance(0.6)
    near = itertools.cycle((b.choice((1, 1, 2)), b.choice((-1, -1, -2))))  # both are read

    def place() -> str:
        if of_neighbours:
            return ", ".join(f"{v} + {0 if b.chance(0.2) else next(near)}" for v in names)
        steps = [b.choice(("", "", "", "-", "2 * ")) for _ in names]
        return ", ".join(
            f"{k}{v} + {b.choice((-1, 1, 1, 2, 0, 3 * n + 1, -n - 1))}" for k, v, n in zip(steps, names, x.shape)
        )

    count = b.integer(1, 2) if of_neighbours else b.integer(2, 3)  # a kernel of two reads is written otherwise
    terms = [" * ".join(f"{{0}}[{place()}]" for _ in range(b.integer(1, 2))) for _ in range(count)]
    ranges = ", ".join(f"tl.index.range('{v}', {n}, periodic=True)" for v, n in zip(names, x.shape))
    body = " + ".join(terms)
    text = f"tl.index.build(({ranges},), lambda {', '.join(names)}: {body})"
    b.emit(text, x, bound=3 * max(x.bound, x.bound**2), feature="index.range.periodic")


def rows(b: Builder) -> None:
    """Write two reductions over reversed rows that are cut from a padded array, behind masks."""
    x = _array(b, most=1)
    (n,), count = x.shape, b.choice((2, 2, 3, 4))

    def part() -> str:
        low = b.choice((1, n - 1, (count - 1) * n - 1, 0))
        cut = f"tnp.pad({{0}}, ({low}, {(count - 1) * n - low})).reshape({count}, {n})[::-1]"
        j, i = f"tnp.arange({count})[:, None]", f"tnp.arange({n})"
        mask = b.choice(("", f"{n} * {j} >= {i}", f"{i} + 1 >= {n} * {j}", f"{j} < 1"))
        return f"{f'tnp.where({mask}, {cut}, 0)' if mask else cut}.{b.choice(('sum', 'sum', 'max'))}(0)"

    text = f"{part()} {b.choice('+*')} {part()}"
    b.emit(text, x, bound=max(2 * count * x.bound, (count * x.bound) ** 2), feature="reversed rows")


FAMILIES = {"periodic": periodic, "rows": rows}
