"""Work in proportion to the entries: what reads relations and sparse arrays, with derivatives, against dense ones.

The same entries are put into arrays of n x n and of 10 n x 10 n elements. What runs may grow with n, as vectors do, but
not with n², and no value is larger than a vector.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import index as ix
from tests.index_language.programs import bulk, work_of

ENTRIES = 12
RNG = np.random.default_rng(0)
FIRST, SECOND = RNG.integers(0, 30, (2, ENTRIES)), RNG.integers(0, 30, (2, ENTRIES))
SECOND[:, :5] = FIRST[:, :5]
FIRST[:, -1] = FIRST[:, 0]  # once more


class Data(NamedTuple):
    """Arrays of n x n elements: relations r and q, and s of values; or the same as dense arrays."""

    n: int
    r: Any
    q: Any
    s: Any


def sparse(n: int, values: Any) -> Data:
    shape = (n, n)
    return Data(n, ix.relation(FIRST, shape), ix.relation(SECOND, shape), ix.sparse(FIRST, values, shape))


def dense(n: int, values: Any) -> Data:
    found = sparse(n, values)
    return Data(n, *[x.todense() for x in found[1:]])


def rows(body: Callable[..., Any]) -> Callable[..., Any]:
    """The vector of `body(data, x, i)`."""
    return lambda d, x: ix.build(d.n, lambda i: body(d, x, i))


def row_sums(element: Callable[..., Any]) -> Callable[..., Any]:
    """The vector of sums over j of `element(data, x, i, j)`."""
    return rows(lambda d, x, i: ix.sum(d.n, lambda j: element(d, x, i, j)))


PROGRAMS = {
    "exists": rows(lambda d, x, i: ix.exists(d.n, lambda j: d.r[i, j]) * x[i]),  # TL14
    "exists with a condition": rows(lambda d, x, i: ix.exists(d.n, lambda j: d.r[i, j] & (x[j] > 0)) * x[i]),
    "exists of one or the other": rows(lambda d, x, i: ix.exists(d.n, lambda j: d.r[i, j] | d.q[j, i]) * x[i]),
    "forall": rows(lambda d, x, i: ix.forall(d.n, lambda j: ~d.r[i, j] | (x[j] > 0)) * x[i]),
    "count": rows(lambda d, x, i: ix.sum(d.n, lambda j: d.r[i, j]) * x[i]),
    "count with a condition": rows(lambda d, x, i: ix.sum(d.n, lambda j: d.r[i, j] & (x[j] > 0)) * x[i]),
    "exponentials": row_sums(lambda d, x, i, j: d.r[i, j] * tnp.exp(x[i] - x[j])),
    "squares": row_sums(lambda d, x, i, j: d.r[i, j] * (x[i] - x[j]) ** 2),
    "all squares": lambda d, x: ix.sum((d.n, d.n), lambda i, j: d.r[i, j] * (x[i] - x[j]) ** 2),
    "custom derivatives": row_sums(lambda d, x, i, j: d.r[i, j] * tl.nn.softplus(x[i] * x[j])),
    "loops": row_sums(lambda d, x, i, j: d.r[i, j] * ix.fold(lambda c, k: tnp.sin(c * x[i]) + x[j], x[j], 2)),
    "what an outer body computed": rows(
        lambda d, x, i: (lambda y: ix.sum(d.n, lambda j: d.r[i, j] * tnp.exp(y - x[j])))(tnp.sin(x[i]))
    ),
    "inner products": rows(
        lambda d, x, i: ix.sum(d.n, lambda j: d.r[i, j] * ix.sum(2, lambda k: x[i + k] * x[j - k]) * x[j])
    ),
    "arrays": row_sums(lambda d, x, i, j: d.r[i, j] * (x[:3] * tnp.sin(x[j] + x[i]))),
    "shifted indices": row_sums(lambda d, x, i, j: d.r[i + 1, d.n - 1 - j] * tnp.exp(x[i] - x[j])),
    "both": row_sums(lambda d, x, i, j: (d.r[i, j] & d.q[i, j]) * tnp.exp(x[j])),
    "both directions": row_sums(lambda d, x, i, j: (d.r[i, j] & d.r[j, i]) * tnp.exp(x[j])),
    "either": row_sums(lambda d, x, i, j: (d.r[i, j] | d.q[i, j]) * tnp.exp(x[j])),
    "either with a condition": row_sums(lambda d, x, i, j: ((d.r[i, j] | d.q[j, i]) & (x[i] < x[j])) * tnp.exp(x[j])),
    "one but not the other": row_sums(lambda d, x, i, j: (d.r[i, j] & ~d.q[i, j]) * tnp.exp(x[j])),
    "above the diagonal": row_sums(lambda d, x, i, j: (d.r[i, j] & (i < j)) * tnp.exp(x[j])),
    "where": row_sums(lambda d, x, i, j: ix.where(d.r[i, j], tnp.exp(x[j]), 0.0)),
    "where not": row_sums(lambda d, x, i, j: ix.where(~d.r[i, j], 0.0, tnp.exp(x[j]))),
    "max": rows(lambda d, x, i: ix.max(d.n, lambda j: ix.where(d.r[i, j], x[j], -9.0))),
    "max of products": rows(lambda d, x, i: ix.max(d.n, lambda j: d.r[i, j] * (x[j] * x[i] - 0.5))),
    "min": rows(lambda d, x, i: ix.min(d.n, lambda j: ix.where(d.r[i, j] & (i < j), tnp.exp(x[j]), 9.0))),
    "max of all": lambda d, x: ix.max((d.n, d.n), lambda i, j: ix.where(d.r[i, j], x[j] * x[i], -9.0)),
    "two steps": rows(lambda d, x, i: ix.sum((d.n, d.n), lambda j, k: d.r[i, j] * d.r[j, k] * x[k])),
    "two steps, one by one": row_sums(lambda d, x, i, j: d.r[i, j] * ix.sum(d.n, lambda k: d.q[j, k] * tnp.exp(x[k]))),
    "reached": rows(
        lambda d, x, i: ix.exists(d.n, lambda j: d.r[i, j] & ix.exists(d.n, lambda k: d.q[j, k] & (x[k] > 0))) * x[i]
    ),
    "softmax": rows(
        lambda d, x, i: (
            ix.sum(d.n, lambda j: d.r[i, j] * tnp.exp(x[j]) * x[j])
            / (1 + ix.sum(d.n, lambda j: d.r[i, j] * tnp.exp(x[j])))
        )
    ),
    "sum of values": lambda d, x: ix.sum((d.n, d.n), lambda i, j: d.s[i, j]) * x[0],
    "row sums": rows(lambda d, x, i: ix.sum(d.n, lambda j: d.s[i, j]) * x[i]),
    "matrix times vector": row_sums(lambda d, x, i, j: d.s[i, j] * x[j]),
    "sum of a product": lambda d, x: ix.build(d.n, lambda i: ix.sum(d.n, lambda j: d.s[i, j] * x[j])).sum(),
    "values times a function": row_sums(lambda d, x, i, j: d.s[i, j] * tnp.exp(x[j] - x[i]) / (1 + x[j] ** 2)),
    "values where related": row_sums(lambda d, x, i, j: d.q[i, j] * d.s[i, j] * tnp.exp(x[j])),
    "differences": row_sums(lambda d, x, i, j: d.s[i, j] * x[j] - d.s[i, j] * x[i]),
}


def value_of(program: Callable[..., Any], make: Callable[..., Data], n: int) -> Callable[..., Any]:
    return lambda x, values: program(make(n, values), x)


def gradient_of(program: Callable[..., Any], make: Callable[..., Data], n: int) -> Callable[..., Any]:
    f = value_of(program, make, n)
    return tl.grad(lambda x, values: (f(x, values) ** 2).sum(), (0, 1))


def inputs(n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    return tnp.asarray(rng.normal(size=n)), tnp.asarray(rng.normal(size=ENTRIES))


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_derivatives(name: str):
    with tl.enable_x64():
        program, n = PROGRAMS[name], 30
        functions = [[of(program, make, n) for of in (value_of, gradient_of)] for make in (sparse, dense)]
        found, expected = tl.jit(lambda *a: tuple([[f(*a) for f in fs] for fs in functions]))(*inputs(n))
        for x, y in zip(tl.tree.leaves(found), tl.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", PROGRAMS)
def test_work_and_size(name: str):
    """Sorting, to find what two relations have in common, is counted as n log n."""
    for of in (value_of, gradient_of):
        programs = [bulk(of(PROGRAMS[name], sparse, n), *inputs(n)) for n in (40, 400)]
        few, many = map(work_of, programs)
        assert few <= 300 * ENTRIES + 20 * 40 and many <= few + 20 * 360, (few, many)
        assert max(v.aval.size for eqn in programs[1].eqns for v in eqn.outvars) <= 3 * 400


MODES = {
    "eager": lambda f: f,
    "eager gradient": lambda f: tl.grad(lambda x: f(x).sum()),
    "tangent": lambda f: lambda x: tl.jvp(f, (x,), (x,))[1],
    "second derivative": lambda f: lambda x: tl.jvp(tl.grad(lambda x: (f(x) ** 2).sum()), (x,), (x,))[1],
    "reverse over reverse": lambda f: tl.grad(lambda x: (tl.grad(lambda x: (f(x) ** 2).sum())(x) ** 2).sum()),
    "batch": lambda f: lambda x: tl.vmap(f)(tnp.stack([x, 2 * x])),
    "checkpoint": lambda f: tl.grad(lambda x: tl.checkpoint(f)(x).sum()),
}


@pytest.mark.parametrize("name", ["exponentials", "either", "max", "two steps", "what an outer body computed"])
@pytest.mark.parametrize("mode", MODES)
def test_modes(name: str, mode: str):
    with tl.enable_x64():
        x, values = inputs(30)
        found, expected = [
            run(MODES[mode](lambda x, make=make: value_of(PROGRAMS[name], make, 30)(x, values)))(x)
            for make, run in ((sparse, lambda f: f if "eager" in mode else tl.jit(f)), (dense, tl.jit))
        ]
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


GUARDED = {
    "in the product": row_sums(lambda d, x, i, j: d.r[i, j] * ((x[j] > 0) * tnp.log(x[j]))),
    "in the condition": row_sums(lambda d, x, i, j: (d.r[i, j] & (x[j] > 0) & (x[i] > 0)) * tnp.log(x[j] * x[i])),
    "of values": row_sums(lambda d, x, i, j: (x[j] > 0) * (d.s[i, j] * tnp.log(x[j]))),
    "either": row_sums(lambda d, x, i, j: (d.r[i, j] | d.q[j, i]) * ((x[j] > 0) * tnp.log(x[j]))),
    "min": rows(lambda d, x, i: ix.min(d.n, lambda j: ix.where(d.r[i, j] & (x[j] > 0), tnp.log(x[j]), 9.0))),
    "at an element": rows(
        lambda d, x, i: ix.sum(d.n, lambda j: (d.r[tnp.arange(30)[i], j] & (x[i] > 0)) * tnp.sqrt(x[i] * x[j] ** 2))
    ),
}


@pytest.mark.parametrize("name", GUARDED)
def test_conditions_keep_infinities_out(name: str):
    with tl.enable_x64():
        for of in (value_of, gradient_of):
            f, reference = of(GUARDED[name], sparse, 30), of(GUARDED[name], dense, 30)
            compiled, expected = tl.jit(lambda *a, fs=(f, reference): tuple([f(*a) for f in fs]))(*inputs(30))
            for found in (f(*inputs(30)), compiled):
                for x, y in zip(tl.tree.leaves(found), tl.tree.leaves(expected), strict=True):
                    assert np.all(np.isfinite(x))
                    np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9)


def test_what_is_evaluated_nowhere_else():
    """A logarithm of 0 where no entry is has no effect, without a condition that says so."""
    x = tnp.array([0.0, 1.0, 2.0, 0.0])
    s, r = ix.sparse(([0, 3], [1, 2]), [3.0, 4.0], (4, 4)), ix.relation(([0, 3], [1, 2]), (4, 4))
    for f in (
        lambda x: ix.sum((4, 4), lambda i, j: s[i, j] * tnp.log(x[j])),
        lambda x: ix.sum((4, 4), lambda i, j: r[i, j] * tnp.log(x[j])),
        lambda x: ix.sum((4, 4), lambda i, j: s[i, j] / x[j]),
    ):
        for g in (tl.grad(f), tl.jit(tl.grad(f))):
            assert np.all(np.isfinite(g(x)))


# ---- more entries than indices, entries outside, coordinates that are traced -----------------------------------------


@pytest.mark.parametrize("name", PROGRAMS)
def test_traced_coordinates(name: str):
    """Some are outside of the array, and some are repeated; there are more of them than rows."""
    rng, n = np.random.default_rng(2), 6
    coords = rng.integers(-1, n + 1, (4, 20))
    coords[:, 3:8] = coords[:, 8:13]

    def f(x: Any, values: Any, coords: Any) -> Any:
        shape = (n, n)
        s = ix.sparse(coords[:2], values, shape)
        return PROGRAMS[name](Data(n, ix.relation(coords[:2], shape), ix.relation(coords[2:], shape), s), x)

    def expected(x: Any, values: Any) -> Any:
        s, a, b = np.zeros((n, n)), np.zeros((n, n), bool), np.zeros((n, n), bool)
        s, inside = tnp.asarray(s), [np.all((c >= 0) & (c < n), 0) for c in (coords[:2], coords[2:])]
        a[tuple(coords[:2, inside[0]])], b[tuple(coords[2:, inside[1]])] = True, True
        s = s.at[tuple(coords[:2, inside[0]])].add(values[inside[0]])
        return PROGRAMS[name](Data(n, tnp.asarray(a), tnp.asarray(b), s), x)

    with tl.enable_x64():
        x, values = tnp.asarray(rng.normal(size=n)), tnp.asarray(rng.normal(size=20))
        found, wanted = [
            tl.jit(lambda *a, g=g: [g(*a), *tl.grad(lambda *a: (g(*a) ** 2).sum(), (0, 1))(*a)])(x, values, *more)
            for g, more in ((f, (coords,)), (expected, ()))
        ]
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


# ---- three rows and columns: entries of one relation where another has none ------------------------------------------

FEW = {
    "both rows": lambda d, x: ix.build(3, lambda i: d.r[0, i] & d.r[1, i]) * 1.0,
    "a row in the other": lambda d, x: ix.build(3, lambda i: ~d.r[0, i] | d.r[1, i]) * 1.0,
    "difference of rows": lambda d, x: ix.build(3, lambda i: d.s[0, i] * x[i] - d.s[1, i] * x[i]),
    "condition on a row": lambda d, x: ix.build(3, lambda i: (x[i] > 0) * (d.s[2, i] * tnp.log(x[i]))),
    "row and condition": lambda d, x: ix.sum(3, lambda i: (d.r[2, i] & (x[i] > 0)) * tnp.log(x[i])),
    "max of a row": lambda d, x: ix.max(3, lambda i: ix.where(d.r[0, i] & (x[i] > 0), x[i] - 5, -7.0)),
    "max of one of two rows": lambda d, x: ix.max(3, lambda i: ix.where(d.r[0, i] & ~d.r[1, i], i - 5.0, -7.0)),
    "one by one": lambda d, x: ix.sum((3, 3), lambda i, j: d.r[i, j] * (d.q[i, j] * tnp.log(x[j]))),
    "both": lambda d, x: ix.sum((3, 3), lambda i, j: (d.r[i, j] & d.q[i, j]) * tnp.log(x[j])),
    "values": lambda d, x: ix.sum((3, 3), lambda i, j: d.q[i, j] * (d.s[i, j] * tnp.log(x[j]))),
    "two steps": lambda d, x: ix.build(
        3,
        lambda i: ix.exists(3, lambda k: d.q[2 - i, k] & d.r[k, 0]) * ix.sum(3, lambda j: d.s[i, j] * tnp.log(x[j])),
    ),
    "quotients": lambda d, x: ix.sum((3, 3), lambda i, j: ((d.q[i, j] | d.r[j, i]) & (x[j] > 0)) * (d.s[i, j] / x[j])),
    "at multiples": lambda d, x: ix.build(
        3, lambda i: ix.sum(3, lambda j: (d.r[i, 2 * j] & (i <= j)) * tnp.log(x[j] * (i > 0)))
    ),
    "on the diagonal": lambda d, x: ix.sum((3, 3), lambda i, j: d.r[j, j] * ((x[j] > 0) * tnp.log(x[i] + x[j]))),
    "quotients elsewhere": lambda d, x: ix.sum((3, 3), lambda i, j: (~d.q[i, j] & (x[j] > 0)) * (d.s[i, j] / x[j])),
}


@pytest.mark.parametrize("names", [list(FEW)[:7], list(FEW)[7:]], ids=["rows", "infinities"])
def test_few_entries(names: list[str]):
    """Row 0 of a relation is not row 1 of it; what is infinite at entries of one relation alone has no effect."""
    at, x = ([0, 0, 1, 2], [0, 1, 1, 2]), tnp.array([0.0, 1.0, 2.0])
    q = ix.relation(([0, 1, 1, 2], [1, 1, 2, 2]), (3, 3))
    of_entries = Data(3, ix.relation(at, (3, 3)), q, ix.sparse(at, [1.0, 2.0, 3.0, 4.0], (3, 3)))
    of_all = Data(3, *[y.todense() for y in of_entries[1:]])

    def everything(d: Data) -> Any:
        return tl.jit(lambda x: {k: (FEW[k](d, x), tl.grad(lambda x, k=k: FEW[k](d, x).sum())(x)) for k in names})(x)

    found, expected = everything(of_entries), everything(of_all)
    for name in names:
        for one, other in zip(found[name], expected[name], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6, err_msg=name)
    if "both rows" in names:
        np.testing.assert_array_equal(expected["both rows"][0], [0, 1, 0])
