"""Views, joins and structured matrices: shapes change, numbers do not."""

from tests.fuzzing.builder import Builder, Unfit
from tests.fuzzing.program import Var


def axis_of(b: Builder, x: Var) -> int:
    axis = b.integer(0, x.ndim - 1)
    return axis - x.ndim if b.chance(0.3) else axis


def factored(n: int, b: Builder) -> tuple[int, ...]:
    """A shape of n elements."""
    divisors = [d for d in range(1, n + 1) if n % d == 0] if n else [0]
    d = b.choice(divisors)
    return b.choice(((n,), (d, n // d if n else 3), (n, 1), (1, n), (n // d if n else 2, d)))


def views(b: Builder) -> None:
    x = b.pick("fffciub", least=1)
    axis, other = axis_of(b, x), axis_of(b, x)
    order = tuple(int(i) for i in b.rng.permutation(x.ndim))
    n = b.integer(0, 4)
    repeats = b.listed(lambda: b.integer(0, 2), x.shape[axis])
    texts = [
        f"tnp.reshape({{0}}, {factored(x.size, b)})", "{0}.ravel()", f"tnp.transpose({{0}}, {order})", "{0}.T",
        f"tnp.swapaxes({{0}}, {axis}, {other})", f"tnp.moveaxis({{0}}, {axis}, {other})", f"tnp.flip({{0}}, {axis})",
        f"tnp.expand_dims({{0}}, {axis})", f"tnp.roll({{0}}, {b.integer(-3, 5)}, {axis})",
        f"lax.rev({{0}}, ({axis % x.ndim},))",
        f"tnp.broadcast_to({{0}}, {(b.size(), *x.shape)})", f"tnp.tile({{0}}, {b.choice((2, (2, 1), (1, 2), (3,)))})",
        f"tnp.repeat({{0}}, {b.integer(1, 3)}, {axis})", "tnp.squeeze({0})", "tnp.atleast_2d({0})", "tnp.flip({0})",
        f"lax.broadcast_in_dim({{0}}, {(*x.shape, b.size())}, {tuple(range(x.ndim))})",
        f"tnp.roll({{0}}, {n})", f"lax.collapse({{0}}, 0, {b.integer(1, x.ndim)})",
        f"tnp.repeat({{0}}, {repeats}, {axis})" if x.shape[axis] else "{0}.T",
        f"tnp.rot90({{0}}, {n})" if x.ndim > 1 else "{0}[::-1]", f"tnp.resize({{0}}, {(b.size(), b.size())})",
    ]  # fmt: skip
    b.emit(b.choice(texts), x, bound=x.bound)


def pads(b: Builder) -> None:
    x = b.pick("ffi", least=1)
    low_high = tuple((b.integer(0, 2), b.integer(0, 2)) for _ in range(x.ndim))
    config = tuple((b.integer(-1, 2), b.integer(-1, 2), b.choice((0, 0, 1, 2))) for _ in range(x.ndim))
    if any(n + low + high < 0 for n, (low, high, _) in zip(x.shape, config)):
        raise Unfit
    modes = ["constant"] + ["edge", "wrap", "reflect", "symmetric"] * (min(x.shape) > 2)
    mode = b.choice(modes)
    value = f"tnp.array({b.choice((0, 0, 1))}, '{x.dtype}')"
    b.emit(
        b.choice((f"lax.pad({{0}}, {value}, {config})", f"tnp.pad({{0}}, {low_high}, mode='{mode}')")),
        x,
        bound=x.bound + 1,
    )


def joins(b: Builder) -> None:
    x = b.pick("ffci", least=1)
    axis = b.integer(0, x.ndim - 1)

    def fits(v: Var) -> bool:
        return v.dtype == x.dtype and v.ndim == x.ndim and all(
            m == n for k, (m, n) in enumerate(zip(v.shape, x.shape)) if k != axis
        )  # fmt: skip

    y = b.find(fits) or x
    texts = [f"tnp.concatenate([{{0}}, {{1}}], {axis})", f"lax.concatenate([{{1}}, {{0}}, {{0}}], {axis})"]
    if y.shape == x.shape:
        texts += [f"tnp.stack([{{0}}, {{1}}], {axis})", "tnp.stack([{1}, {0}], -1)", "tnp.hstack([{0}, {1}])"]
        texts += [
            "tnp.vstack([{0}, {1}])",
            "tnp.append({0}, {1})",
            "tnp.column_stack([{0}, {1}])" if x.ndim < 3 else "{0}",
        ]
        texts += ["tnp.dstack([{0}, {1}])", "tnp.block([[{0}], [{1}]])" if x.ndim == 2 else "tnp.stack([{0}, {1}])"]
    b.emit(b.choice(texts), x, y, bound=max(x.bound, y.bound))


def splits(b: Builder) -> None:
    x = b.pick("ffi", least=1, full=True)
    axis = b.integer(0, x.ndim - 1)
    n = x.shape[axis]
    k = b.integer(0, n)
    texts = [f"tnp.split({{0}}, [{k}], {axis})[{b.integer(0, 1)}]", f"tnp.unstack({{0}}, axis={axis})[-1]"]
    texts += [f"tnp.array_split({{0}}, 2, {axis})[0]", f"lax.split({{0}}, ({k}, {n - k}), {axis})[1]"]
    b.emit(b.choice(texts), x, bound=x.bound)


VECTOR_MATRICES = (
    "tnp.diag({0})", "tnp.diag({0}, 1)", "tnp.diag({0}, -1) + tnp.diag({0}, 1)", "tnp.outer({0}, {1})",
    "tnp.diagflat({0})",
    "tnp.kron({0}, {1})", "tnp.vander({0}, 3)", "tnp.outer(tnp.sin({0}), {1}) * tnp.tri({0}.shape[0], {1}.shape[0])",
    "tnp.eye({0}.shape[0]) * {0}", "tnp.diag({0}) + .3 * tnp.eye({0}.shape[0], k=1)", "tnp.convolve({0}, {1})",
    "{0}[:, None] * (tnp.arange({1}.shape[0]) == 1)", "tnp.diag({0} * {0}) @ tnp.diag(tnp.sin({0}))",
    "(tnp.arange({0}.shape[0])[:, None] == tnp.arange({0}.shape[0])) * {0}", "tnp.correlate({0}, {1}, 'full')",
    "tnp.where(tnp.arange({0}.shape[0])[:, None] == tnp.arange({1}.shape[0]) + 1, {0}[:, None], {1})",
)  # fmt: skip
MATRIX_MATRICES = (
    "tnp.tril({0})", "tnp.triu({0}, 1)", "tnp.diagonal({0})", "tnp.trace({0})", "tnp.tril({0}, -1)", "tnp.diag({0}, 1)",
    "{0} * tnp.eye(*{0}.shape)", "tnp.triu(tnp.tril({0}, 1), -1)", "tnp.kron(tnp.eye(2), {0})",
    "tnp.kron({0}, tnp.eye(2))",
    "{0} * (tnp.arange({0}.shape[0]) == 1)[:, None]", "tnp.where(tnp.eye(*{0}.shape, dtype=bool), {0}, .2)",
    "tnp.where(tnp.arange({0}.shape[1]) == 1, {0}, 0.)", "tnp.where(tnp.arange({0}.shape[0])[:, None] > 0, {0}, 0.)",
    "{0} * tnp.tri(*{0}.shape)", "tnp.fill_diagonal({0}, .7, inplace=False)",
    "tnp.where(tnp.abs(tnp.arange({0}.shape[0])[:, None] - tnp.arange({0}.shape[1])) < 2, {0}, 0.)",
)  # fmt: skip


def structured(b: Builder) -> None:
    if b.chance(0.5):
        x = b.pick("f", ndim=1, full=True)
        y = b.pick("f", ndim=1, full=True)
        b.emit(b.choice(VECTOR_MATRICES), x, y, bound=max(x.bound, y.bound) ** 2 * 3)
    else:
        x = b.pick("f", ndim=2, full=True)
        b.emit(b.choice(MATRIX_MATRICES), x, bound=x.bound * max(min(x.shape), 1))


FAMILIES = {"views": views, "pads": pads, "joins": joins, "splits": splits, "structured": structured}
