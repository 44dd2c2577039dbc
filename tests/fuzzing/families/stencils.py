"""Stencils over periodic ranges, and reductions over reversed rows of padded arrays: docs/xla_defects.md.

A few operations each, which read one array several times: that is one kernel of the compiled program.
"""

from tests.fuzzing.builder import Builder, Unfit
from tests.fuzzing.program import Var


def _vector(b: Builder) -> Var:
    x = b.pick("f", least=1, most=2, full=True)
    if min(x.shape) < 2:
        raise Unfit
    return x


def periodic(b: Builder) -> None:
    """Write a sum of products of elements, at offsets up to several periods."""
    x = _vector(b)
    names = "ij"[: x.ndim]

    def place() -> str:
        steps = [b.choice(("", "", "", "-", "2 * ")) for _ in names]
        return ", ".join(
            f"{k}{v} + {b.choice((-1, 1, 1, 2, 0, 3 * n + 1, -n - 1))}" for k, v, n in zip(steps, names, x.shape)
        )

    terms = [" * ".join(f"{{0}}[{place()}]" for _ in range(b.integer(1, 2))) for _ in range(b.integer(2, 3))]
    ranges = ", ".join(f"tl.index.range('{v}', {n}, periodic=True)" for v, n in zip(names, x.shape))
    body = " + ".join(terms)
    text = f"tl.index.build(({ranges},), lambda {', '.join(names)}: {body})"
    b.emit(text, x, bound=3 * max(x.bound, x.bound**2), feature="index.range.periodic")


def rows(b: Builder) -> None:
    """Write two reductions over reversed rows that are cut from a padded array, behind masks."""
    x = _vector(b)
    if x.ndim > 1:
        raise Unfit
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
