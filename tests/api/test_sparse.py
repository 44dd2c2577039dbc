"""Sparse Jacobians and Hessians against dense ones; products, bytes and traces counted; messages."""

import enum
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.index import SparseArray
from tests.fuzzing import oracle

X = np.linspace(0.5, 1.5, 6, dtype=np.float32)


def dense(tree: Any) -> Any:
    def is_entry(x: Any) -> bool:
        return isinstance(x, SparseArray)

    return tl.tree.map(lambda x: x.todense() if is_entry(x) else x, tree, is_leaf=is_entry)


def assert_same(tree: Any, other: Any) -> None:
    assert tl.tree.structure(tree) == tl.tree.structure(other)
    for x, y in zip(tl.tree.leaves(tree), tl.tree.leaves(other)):
        assert x.dtype == y.dtype
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)  # some float32 roundings, in another order


def evaluated(f: Callable[..., Any], *args: Any) -> Any:
    """A function of arrays, traced and evaluated by the oracle: nothing is compiled."""
    leaves, tree = tl.tree.flatten(args)
    shapes = list[Any]()

    def flat(*xs: Any) -> list[Any]:
        found, structure = tl.tree.flatten(dense(f(*tl.tree.unflatten(tree, xs))))
        shapes.append(structure)
        return found

    program = tl.make_jaxpr(flat)(*leaves)
    outs = oracle.evaluate(program.jaxpr, [*map(np.asarray, program.consts), *map(np.asarray, leaves)], exact=True)
    return tl.tree.unflatten(shapes[0], outs)


def residuals(p: Any, q: Any, scale: str = "one") -> Any:
    return {"r": p["a"][:, None] * q * (2 if scale == "two" else 1), "t": p["b"].sum() * q.sum()}


P, Q = {"a": X[:3], "b": X[:4].reshape(2, 2)}, X.reshape(3, 2)


@pytest.mark.parametrize(
    "mode, forward, reverse", [("auto", 0, 3), ("forward", 10, 0), ("reverse", 0, 3), ("both", 2, 1)]
)
def test_jacobians_of_pytrees_are_those_of_jacfwd(mode: Any, forward: int, reverse: int):
    sparse = tl.sparse.jacobian(residuals, (0, 1), mode=mode)
    structure = sparse.structure(P, Q)
    assert (structure.forward, structure.reverse) == (forward, reverse)
    for scale in ("one", "two"):
        found = evaluated(partial(sparse, scale=scale), P, Q)
        assert_same(found, evaluated(partial(tl.jacfwd(residuals, (0, 1)), scale=scale), P, Q))


def energy(p: Any, q: Any) -> Any:
    return tnp.sum(tnp.sin(p["a"][:, None] * q)) + p["b"].sum() ** 2 + tnp.sum(q[1:] * q[:-1])


@pytest.mark.parametrize("argnums", [0, 1, (0, 1), (1,)])
def test_hessians_of_pytrees_are_those_of_hessian(argnums: Any):
    expected = evaluated(tl.hessian(energy, argnums), P, Q)
    for coloring, ordering in (("star", None), ("star", "smallest_last"), ("acyclic", None)):
        sparse = tl.sparse.hessian(energy, argnums, coloring=coloring, ordering=ordering)
        assert_same(evaluated(sparse, P, Q), expected)


def on_graph(n: int) -> Callable[..., Any]:
    """A sum over the edges of a random graph of n vertices."""
    tails, heads = np.random.default_rng(0).integers(0, n, (2, 3 * n))
    return lambda x: tnp.sum(tnp.sin(x[tails] * x[heads])) + tnp.sum(x**3)


def test_acyclic_colorings_need_fewer_products():
    x, f = np.linspace(-1, 1, 40, dtype=np.float32), on_graph(40)
    sparse = tl.sparse.hessian(f, coloring="acyclic")
    assert str(sparse.structure(x)).endswith("products: 6 forwards, and 5 steps of substitution")
    assert tl.sparse.hessian(f).structure(x).forward == 9
    assert_same(sparse(x).todense(), tl.hessian(f)(x))


def test_a_chain_has_no_substitution_as_long_as_it():
    assert str(tl.sparse.hessian(rosenbrock, coloring="acyclic").structure(spec(60))).endswith(
        "30 steps of substitution"
    )
    assert str(tl.sparse.hessian(rosenbrock, coloring="acyclic").structure(spec(1000))).endswith("products: 3 forwards")


def test_a_hessian_whose_rule_is_not_symmetric_is_that_of_hessian():
    @tl.custom_jvp
    def f(x: Any) -> Any:
        return tnp.sin(x) * x[::-1]

    f.defjvp(lambda xs, ts: (f(*xs), ts[0] * xs[0] + tnp.roll(ts[0], 2) * xs[0][0]))
    g = lambda x: tnp.sum(tnp.sin(f(x)))  # noqa: E731
    assert_same(evaluated(tl.sparse.hessian(g), X), evaluated(tl.hessian(g), X))


SPARSE = tl.sparse.jacobian(lambda x: x[1:] * x[:-1] ** 2)
DENSE = tl.jacfwd(lambda x: x[1:] * x[:-1] ** 2)


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: f,
        tl.jit,
        lambda f: lambda x: tl.vmap(f)(tnp.stack([x, 2 * x])),
        lambda f: lambda x: tl.jit(tl.vmap(f))(tnp.stack([x, 2 * x])),
        lambda f: tl.grad(lambda x: tnp.sum(tnp.sin(f(x)))),
        lambda f: lambda x: tl.jvp(f, (x,), (x,))[1],
    ],
    ids=["eager", "jit", "vmap", "jit vmap", "grad", "jvp"],
)
def test_transformations(transform: Callable[..., Any]):
    def sparse(x: Any) -> Any:
        return SPARSE(x).todense()

    assert_same(transform(sparse)(tnp.asarray(X)), transform(DENSE)(tnp.asarray(X)))


def test_results_of_jit_and_vmap_are_sparse_arrays_of_known_coordinates():
    jitted, mapped = tl.jit(SPARSE)(X), tl.vmap(SPARSE)(np.stack([X, X]))
    assert [list(map(int, c)) for c in jitted.coords] == [
        [0, 0, 1, 1, 2, 2, 3, 3, 4, 4],
        [0, 1, 1, 2, 2, 3, 3, 4, 4, 5],
    ]
    assert mapped.values.shape == (2, 10) and mapped.shape == (5, 6)


def test_coordinates_are_those_that_scipy_takes():
    scipy_sparse = pytest.importorskip("scipy.sparse")
    found = SPARSE(X)
    row, col = map(np.asarray, found.coords)
    made = scipy_sparse.coo_array((np.asarray(found.values), (row, col)), found.shape)
    np.testing.assert_array_equal(made.todense(), found.todense())
    np.testing.assert_array_equal(found.to_scipy().todense(), found.todense())


def test_pattern_and_colors_are_found_once_for_each_type():
    calls = list[int]()

    def f(x: Any) -> Any:
        calls.append(x.size)
        return x[1:] * x[:-1]

    sparse = tl.sparse.jacobian(f)
    sparse(X), sparse(2 * X)
    assert calls == [6]
    sparse(X[:4]), sparse(X[:4])
    assert calls == [6, 4]


class Kind(enum.IntEnum):
    FORWARDS = 1
    BACKWARDS = 2


def by_kind(x: Any, kind: Any, times: Any) -> Any:
    assert type(times) is int
    return (x if kind is Kind.FORWARDS else x[::-1]) * times


def test_other_arguments_are_what_they_are():
    sparse = tl.sparse.jacobian(by_kind)
    for kind, times in ((Kind.FORWARDS, 2), (Kind.BACKWARDS, 2), (1, 2), (True, 3)):
        found = evaluated(lambda x, kind=kind, times=times: sparse(x, kind, times), X)
        np.testing.assert_array_equal(found, tl.jacfwd(by_kind)(X, kind, times))


def test_aux_of_any_kind():
    aux = {"text": "a", "none": None, "kind": Kind.FORWARDS, "function": len}
    for f in (lambda x: (x[0] ** 2, (aux, x.sum())), lambda x: (x**2, (aux, x.sum()))):
        found, (kept, total) = tl.sparse.jacobian(f, has_aux=True)(X)
        assert kept["text"] == "a" and kept["function"] is len and kept["none"] is None
        assert_same((dense(found), total), (tl.jacfwd(lambda x: f(x)[0])(X), X.sum()))  # noqa: B023


def test_a_loop_that_is_too_long_to_be_followed_is_a_warning():
    def f(x: Any) -> Any:
        return tl.lax.scan(lambda c, z: (c * 0.5 + z, c * z), x[0], x)[1][:2]

    with pytest.warns(UserWarning, match="sparse.jacobian: .* more entries than .* steps of a loop, at .*test_sparse"):
        tl.sparse.jacobian(f).structure(spec(20_000))
    assert len(tl.sparse.jacobian(lambda x: tl.lax.map(tnp.sin, x)).structure(spec(40_000)).rows) == 40_000


def test_aux_scalars_and_no_entries():
    found, aux = tl.sparse.jacobian(lambda x: (x**2, x.sum()), has_aux=True)(X)
    assert_same((dense(found), aux), tl.jacfwd(lambda x: (x**2, x.sum()), has_aux=True)(X))
    found, aux = tl.sparse.hessian(lambda x: (tnp.sum(x**3), x.sum()), has_aux=True)(X)
    assert_same((dense(found), aux), tl.hessian(lambda x: (tnp.sum(x**3), x.sum()), has_aux=True)(X))
    assert float(tl.sparse.jacobian(lambda x: x**2)(3.0)) == 6.0
    for f, x in ((lambda x: tnp.zeros(3), X), (lambda x: 2 * x, X[:0]), (lambda x: x[:0], X)):
        assert_same(dense(tl.sparse.jacobian(f)(x)), tl.jacfwd(f)(x))


# ---- growth ----------------------------------------------------------------------------------------------------


def rosenbrock(x: Any) -> Any:
    return tnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def five_points(u: Any) -> Any:
    p = tnp.pad(u, 1)
    return p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * u + tnp.exp(u)


def reprojection(n: int) -> Callable[..., Any]:
    """Residuals of bundle adjustment: each observation is of one of n / 10 cameras and of one of n / 4 points."""
    rng = np.random.default_rng(0)
    camera, point = rng.integers(0, n // 10, n), rng.permutation(n) % (n // 4)

    def f(cameras: Any, points: Any) -> Any:
        c, p = cameras[camera], points[point]
        turned = p + tnp.cross(c[:, :3], p) + c[:, 3:]
        return turned[:, :2] / (2 + turned[:, 2:])

    return f


def collocation(y: Any) -> Any:
    """The defects of the midpoint rule for a pendulum, [steps, 2]."""
    middle, h = (y[1:] + y[:-1]) / 2, 0.1
    return y[1:] - y[:-1] - h * tnp.stack([middle[:, 1], -tnp.sin(middle[:, 0])], 1)


def spec(*shape: int) -> Any:
    return tl.ShapeDtypeStruct(shape, "float32")


def _parts(n: int) -> tuple[Any, Any]:
    return spec(n // 10, 6), spec(n // 4, 3)


GROWING = {
    "rosenbrock": lambda n: (tl.sparse.hessian(rosenbrock), (spec(n),), 3),
    "five points": lambda n: (tl.sparse.jacobian(five_points), (spec(n // 20, 20),), 5),
    "bundle adjustment": lambda n: (
        tl.sparse.jacobian(reprojection(n), (0, 1)),
        (spec(n // 10, 6), spec(n // 4, 3)),
        9,
    ),
    "collocation": lambda n: (tl.sparse.jacobian(collocation), (spec(n, 2),), 6),
}


@pytest.mark.parametrize("name", GROWING)
def test_products_do_not_grow_and_bytes_grow_with_the_entries(name: str):
    entries, temporaries = list[int](), list[int]()
    for n in (200, 800):
        sparse, args, most = GROWING[name](n)
        structure = sparse.structure(*args)
        assert structure.forward + structure.reverse <= most, structure
        entries.append(len(structure.rows))
        memory = tl.jit(sparse).lower(*args).compile().memory_analysis()
        temporaries.append(memory.temp_size_in_bytes + memory.output_size_in_bytes)
    assert 3.8 < entries[1] / entries[0] < 4.2
    assert temporaries[1] < 4.5 * temporaries[0] + 4096


def _calls(f: Callable[[], Any]) -> int:
    """Count the functions that are called and left, of Python and of C."""
    found = [0]

    def count(*_: Any) -> None:
        found[0] += 1

    sys.setprofile(count)
    try:
        f()
    finally:
        sys.setprofile(None)
    return found[0]


@pytest.mark.parametrize("name", ["rosenbrock", "five points"])
def test_calls_that_find_patterns_and_colors_grow_with_the_entries(name: str):
    counts = list[int]()
    for n in (240, 480, 960, 1920):  # the first fills caches; in no other test, which would fill those of one
        sparse, args, _ = GROWING[name](n)
        counts.append(_calls(lambda sparse=sparse, args=args: sparse.structure(*args)))
    assert 0 < counts[3] - counts[2] < 2.3 * (counts[2] - counts[1]), counts


# ---- messages --------------------------------------------------------------------------------------------------

WRONG: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: tl.sparse.jacobian(3), TypeError, "sparse.jacobian: expected a function, not 3"),  # pyright: ignore
    (lambda: tl.sparse.jacobian(lambda x: x, mode="z"), ValueError, "mode='z' is none of 'auto', 'forward'"),  # pyright: ignore
    (lambda: tl.sparse.hessian(lambda x: x, coloring="z"), ValueError, "coloring='z' is none of 'star', 'acyclic'"),  # pyright: ignore
    (lambda: tl.sparse.jacobian(lambda x: abs(x))(X + 1j), TypeError, "argument x of <lambda>"),
    (lambda: tl.sparse.jacobian(lambda x: x * 1j)(X), TypeError, "Give real and imaginary parts, as x.real"),
    (lambda: tl.sparse.jacobian(lambda x: x, has_aux=True)(X), TypeError, "must return (value, aux), but returned"),
    (lambda: tl.sparse.hessian(lambda x: x, ordering="z"), ValueError, "ordering='z' is none of 'natural'"),  # pyright: ignore
    (lambda: tl.sparse.jacobian(lambda x: x)(np.arange(3)), TypeError, "argument x of <lambda> is int"),
    (lambda: tl.sparse.jacobian(lambda x: x > 0)(X), TypeError, "is bool[6], and booleans have no derivative"),
    (lambda: tl.sparse.jacobian(lambda x: x, 1)(X), ValueError, "argnums=1 names argument 1"),
    (lambda: tl.sparse.hessian(lambda x: x)(X), TypeError, "must return a scalar, but returned float32[6]"),
]


@pytest.mark.parametrize("call, kind, text", WRONG, ids=[text for _, _, text in WRONG])
def test_messages(call: Callable[[], Any], kind: type[Exception], text: str):
    with pytest.raises(kind) as info:
        call()
    assert text in str(info.value)


def test_a_structure_says_what_it_costs():
    assert str(SPARSE.structure(X)) == "10 entries of 5 x 6, 1.7 for each of 6; products: 2 forwards"
    assert str(tl.sparse.jacobian(tnp.sort).structure(X)) == "36 entries of 6 x 6, all of them; products: 6 forwards"
