"""The model that knows of zeros: figures by hand, supports against values, and never more than counting zeros too."""

from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.interpreters import limits
from tapeless.interpreters.analysis import cost, operation_counts, sparse_cost, sparsity, sparsity_rules
from tapeless.interpreters.analysis.sparsity import SparsityFact
from tapeless.interpreters.index_rows import Combination, rows
from tapeless.tracer.types import aval_of
from tests.interpreters import structured_programs
from tests.interpreters.test_random_programs import dealt
from tests.samples import SAMPLES
from tests.samples.sample import Sample, numpys, ours
from tests.stepping import by_steps
from tests.test_primitives import applied, bind, expected, over


def spec(*shape: int) -> Any:
    return tl.ShapeDtypeStruct(shape, "float64")


def counted(f: Any, *args: Any) -> int:
    closed = tl.make_jaxpr(f)(*args)
    return sparse_cost.cost(closed.jaxpr, closed.consts).work


# ---- stencils, sums with a gap, traces: figures of the paper -----------------------------------------------------


N, M = 7, 3  # results and taps


def stacked(x: Any, g: Any) -> Any:
    return tnp.stack([x[k : k + N] for k in range(M)], axis=1) @ g


def summed(x: Any, g: Any) -> Any:
    return sum(x[k : k + N] * g[k] for k in range(M))


def windowed(x: Any, g: Any) -> Any:
    return tnp.convolve(x, g[::-1], mode="valid")


FILTERS = [stacked, summed, windowed]


@pytest.mark.parametrize("f", FILTERS)
def test_a_filter(f):
    assert counted(f, spec(N + M - 1), spec(M)) == N * (2 * M - 1)


@pytest.mark.parametrize("f", FILTERS)
def test_adjoints_of_a_filter(f):
    def in_x(x: Any, g: Any, ct: Any) -> Any:
        return tl.linear_transpose(lambda x: f(x, g), x)(ct)

    def in_g(x: Any, g: Any, ct: Any) -> Any:
        return tl.linear_transpose(lambda g: f(x, g), g)(ct)

    args = spec(N + M - 1), spec(M), spec(N)
    assert counted(in_x, *args) == 2 * N * M - (N + M - 1)
    assert counted(in_g, *args) == M * (2 * N - 1)


WITHOUT_ONE = {
    "select": lambda x: tnp.sum(tnp.where(tnp.arange(N) != 2, x, 0)),
    "mask": lambda x: tnp.sum((tnp.arange(N) != 2) * x),
    "captured": lambda x: tnp.sum((np.arange(N) != 2) * x),
    "written": lambda x: tnp.sum(x.at[2].set(0)),
    "joined": lambda x: tnp.sum(tnp.concatenate([x[:2], tnp.zeros(1, "float64"), x[3:]])),
    "contracted": lambda x: tnp.asarray(np.arange(N) != 2, "float64") @ x,
}


@pytest.mark.parametrize("name", WITHOUT_ONE)
def test_a_sum_without_one(name):
    f = WITHOUT_ONE[name]
    assert counted(f, spec(N)) == N - 2
    assert counted(lambda ct: tl.linear_transpose(f, spec(N))(ct), spec()) == 0
    assert counted(lambda x, ct: tl.linear_transpose(f, spec(N))(ct)[0] + x, spec(N), spec()) == N - 1


def trace(x: Any) -> Any:
    return tnp.trace(tnp.outer(x, x))


def trace_and_adjoint(x: Any, ct: Any) -> Any:
    """As written: the cotangent of the matrix is a diagonal."""
    pulled = tnp.where(tnp.eye(N, dtype=bool), ct, 0)
    return trace(x), tnp.sum(pulled * x, axis=1) + tnp.sum(pulled * x[:, None], axis=0)


def test_a_trace():
    assert counted(trace, spec(N)) == N * N + N - 1
    assert counted(trace_and_adjoint, spec(N), spec()) == N * N + 4 * N - 1
    assert counted(tl.value_and_grad(trace), spec(N)) <= N * N + 4 * N - 1
    assert counted(lambda x: tnp.sum(x * x), spec(N)) == 2 * N - 1


# ---- by hand ---------------------------------------------------------------------------------------------------


ZERO = np.float64(0)


@pytest.mark.parametrize(
    "f, args, expected",
    [
        (lambda x: tnp.pad(x, 2) + tnp.pad(x, (0, 4)), (spec(5),), 3),
        (lambda x: tnp.pad(x, 2) * tnp.pad(x, (0, 4)), (spec(5),), 3),
        (lambda x: tnp.sin(tnp.pad(x, 2)), (spec(5),), 5),
        (lambda x: tnp.cos(tnp.pad(x, 2)), (spec(5),), 5),  # the others are 1
        (lambda x: tnp.exp(tnp.pad(x[:2], (0, 3))) * x, (spec(5),), 2 + 2),
        (lambda x: tnp.pad(x, 1, constant_values=1.0) * tnp.arange(2.0, 7.0), (spec(3),), 3),
        (lambda x: (1 - tnp.pad(x[:2], (0, 3))) * x, (spec(5),), 2 + 2),
        (lambda x: tnp.arcsin(tnp.pad(x, 2)), (spec(5),), 5 * 5),
        (lambda x: -tnp.pad(x, 2), (spec(5),), 5),
        (lambda x: x - tnp.pad(x[:2], (0, 3)), (spec(5),), 2),
        (lambda x: tnp.pad(x[:2], (0, 3)) - x, (spec(5),), 5),
        (lambda x: tnp.sum(tnp.diag(x)), (spec(5),), 4),
        (lambda x: tnp.diag(x) @ x, (spec(5),), 5),
        (lambda x: tnp.eye(5, dtype="float64") @ x, (spec(5),), 0),
        (lambda x: tnp.tril(x) @ tnp.ones(4, "float64"), (spec(4, 4),), 0 + 1 + 2 + 3),
        (lambda x: tnp.tril(x) @ tnp.tril(x), (spec(3, 3),), 10 + 4),
        (lambda x: tnp.cumsum(tnp.pad(x, 2)), (spec(3),), 2),
        (lambda x: tnp.prod(tnp.pad(x, 1)), (spec(3),), 0),
        (lambda x: tnp.zeros(9, "float64").at[np.array([1, 1, 4])].add(x), (spec(3),), 1),
        (lambda x: x + tnp.pad(x[1:3], (2, 1))[np.array([0, 2, 3, 1, 4])], (spec(5),), 2),
        (lambda x: x * tnp.arange(5), (spec(5),), 3),  # neither by 0 nor by 1
        (lambda x: tnp.arange(50) * 2 + 1, (spec(5),), 0),
        (lambda x: lax.dynamic_update_slice(tnp.zeros(9, "float64"), x, (2,)) + 1.0, (spec(3),), 3),
        (lambda x: lax.fori_loop(0, 5, lambda i, b: b.at[i].add(x[i] * x[i]), tnp.zeros(5)), (spec(5),), 5),
        (lambda x: lax.scan(lambda c, a: (c + a, None), ZERO, x)[0], (spec(9),), 8),
        (lambda x: lax.scan(lambda c, a: (c + a, None), ZERO, x)[0], (spec(99),), 98),
        (lambda x: lax.cond(x[0] > 0, lambda x: tnp.pad(x, 2), lambda x: tnp.pad(x * x, 2), x) + 1.0, (spec(3),), 6),
    ],
)
def test_by_hand(f, args, expected):
    assert counted(f, *args) == expected


def test_of_large_arrays_zeros_are_all_or_none():
    large = limits.SPARSE_ELEMENTS + 1
    assert counted(lambda x: tnp.pad(x, 1) + 1.0, spec(large)) == large + 2
    assert counted(lambda x: x + tnp.zeros(large), spec(large)) == 0


LONG = 60_000


@pytest.mark.parametrize(
    "f, expected",
    [
        (lambda x: tnp.cumsum(tnp.pad(x, 2)), LONG - 1),
        (lambda x: tnp.pad(x, 2)[np.arange(LONG)[::-1]] * x, LONG - 2),
        (lambda x: tnp.cumprod(tnp.pad(x, 2)), 0),
        (lambda x: lax.cummax(tnp.pad(x, 2)), LONG + 3),
        (lambda x: tnp.zeros(LONG).at[np.arange(LONG) // 2].add(x), LONG // 2),
    ],
)
def test_of_long_arrays_positions_are_not_compared_in_pairs(f, expected):
    assert counted(f, spec(LONG)) == expected


def test_of_long_loops():
    """The first step has its own zeros, the others have none that they do not all have."""
    n = limits.SCAN_STEPS + 1
    zeros = np.zeros(n)

    def f(x: Any) -> Any:
        return lax.fori_loop(0, n, lambda i, b: tnp.roll(b, 1) + tnp.pad(x, (0, n - 1)), zeros)

    assert counted(f, spec(1)) <= n - 1  # one element of `b` is hit at every step
    assert counted(lambda x: lax.fori_loop(0, n, lambda i, b: tnp.roll(b, 1) + x, zeros), spec(n)) == n * (n - 1)


def test_the_halves_of_a_derivative_share_what_is_known():
    u = tl.unzip(lambda x: tnp.tril(x) @ tnp.tril(x), spec(4, 4))
    assert tl.cost(u).sparse.work <= 4 * counted(lambda x: tnp.tril(x) @ tnp.tril(x), spec(4, 4))


# ---- what is known is true ---------------------------------------------------------------------------------------


def check_supports(f: Any, args: Any) -> None:
    """Where a result is said to be zero, or zero or one, it is, and what is said of its elements."""
    closed = tl.make_jaxpr(f)(*args)
    given = [sparsity.abstract_constant(x, static=True) for x in closed.consts]
    anything = [SparsityFact(v.aval) for v in closed.jaxpr.invars[len(given) :]]
    _, outs = sparse_cost.run(closed.jaxpr, [*given, *anything])
    results = by_steps(closed.jaxpr, [*closed.consts, *tl.tree.leaves(args)])
    for k, y in zip(outs, results, strict=True):
        assert not np.any(numpys(y)[~k.mask])
        brackets = numpys(y)[sparsity.broadcast_mask(k.binary, k.aval)]
        assert np.all((brackets == 0) | (brackets == 1))
        if k.value is not None:
            np.testing.assert_allclose(k.value, numpys(y), rtol=2e-7)  # a rounding of float32


@pytest.mark.parametrize("seed", range(15))
def test_supports_of_structured_programs(seed):
    f, args = structured_programs.program(seed), structured_programs.arguments()
    check_supports(f, args)
    check_supports(lambda x, a: tl.vjp(f, x, a)[1](f(x, a)), args)


def is_plain(row: Sample) -> bool:
    """Of numbers, with something said of its zeros."""
    if row.primitive not in rows:
        return False
    numbers = {np.asarray(x).dtype.kind for x in (*row.args, *expected(row, row.args))} <= {*"biufc"}
    combination = rows[row.primitive](row.params, [aval_of(ours(x)) for x in row.args]).combination
    return numbers and (combination is not Combination.POINTWISE or row.primitive in sparsity_rules.functions)


@over([row for row in SAMPLES if is_plain(row)])
def test_supports_of_primitives(row: Sample):
    """All operands known, and all of them with zeros in places that are known."""
    args = [np.asarray(x) for x in row.args]
    check_supports(lambda: bind(row, args), ())
    masks = [np.random.default_rng(k).random(x.shape) < 0.6 for k, x in enumerate(args)]
    if row.primitive.effect is None and row.linear_in:
        check_supports(lambda *xs: applied(row)(*[tnp.where(m, x, 0) if k in row.linear_in else a
                       for k, (m, x, a) in enumerate(zip(masks, xs, args))]), args)  # fmt: skip


# ---- never more --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_no_more_than_with_zeros(seed):
    closed = tl.make_jaxpr(structured_programs.program(seed))(*structured_programs.arguments())
    assert sparse_cost.cost(closed.jaxpr, closed.consts).work <= cost.work(closed.jaxpr)


@pytest.mark.parametrize("program", dealt(2)[:5])
def test_no_more_for_numpy(program, monkeypatch):
    """But for functions that count as what they are composed of."""
    monkeypatch.setattr(operation_counts, "operations", {})
    closed = tl.make_jaxpr(lambda x, y: program(tnp, x, y))(spec(3, 4), spec(3, 4))
    assert sparse_cost.cost(closed.jaxpr, closed.consts).work <= cost.work(closed.jaxpr)


@pytest.mark.parametrize("wrapped", [lambda f: f, tl.jit, tl.checkpoint])
def test_of_large_arrays_the_count_is_said_to_be_a_bound(wrapped: Any):
    """At 256 the Hessian, which is diagonal, is counted as such; at 257 it has too many elements to tell them apart."""
    f = wrapped(tl.hessian(lambda x: (tnp.sin(x) ** 2).sum()))
    for n, is_bound in ((256, False), (257, True)):
        found = tl.cost(f, tl.ShapeDtypeStruct((n,), "float32"))
        assert found.sparse_is_bound is is_bound is str(found.sparse).startswith("at most work ")
        assert ("<= " in str(found)) is is_bound
        assert found.sparse.work <= found.strict.work
    assert not tl.cost(lambda x: 2 * x, tl.ShapeDtypeStruct((2**16,), "float32")).sparse_is_bound
