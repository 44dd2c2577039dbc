"""Arrays and relations by coordinates: values, derivatives, and work in proportion to the entries."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import index as ix
from tests.index_language.programs import work
from tests.messages import raises

N = 60
RNG = np.random.default_rng(0)
ROWS, COLUMNS = RNG.integers(0, N, (2, 12))  # some are repeated
VALUES = tnp.asarray(RNG.normal(size=12).astype(np.float32))
X = tnp.asarray(RNG.normal(size=N).astype(np.float32))
DENSE = np.zeros((N, N), np.float32)
np.add.at(DENSE, (ROWS, COLUMNS), VALUES)


def product(values, x):
    s = ix.sparse((ROWS, COLUMNS), values, (N, N))
    return ix.build(N, lambda i: ix.sum(N, lambda j: s[i, j] * x[j]))


def test_product():
    for f in (product, tl.jit(product)):
        np.testing.assert_allclose(f(VALUES, X), DENSE @ X, rtol=1e-5, atol=1e-6)


def test_gradients_are_values_on_the_pattern():
    loss = lambda v, x: (product(v, x) ** 2).sum() / 2  # noqa: E731
    values, x = tl.grad(loss, (0, 1))(VALUES, X)
    y = DENSE @ X
    np.testing.assert_allclose(values, y[ROWS] * np.asarray(X)[COLUMNS], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(x, DENSE.T @ y, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("f", [product, tl.grad(lambda v, x: (product(v, x) ** 2).sum(), (0, 1))])
def test_work_is_in_proportion_to_the_entries(f):
    assert work(f, VALUES, X) <= 20 * 12 + 4 * N


def test_matrix_products():
    """`S @ x` is the product by indices: coordinates outside are no entries, dtypes are promoted."""
    columns = tnp.asarray(RNG.normal(size=(N, 3)))
    s = ix.sparse((ROWS, COLUMNS), VALUES, (N, N))
    by_values = tl.jit(tl.value_and_grad(lambda v, x: ((ix.sparse((ROWS, COLUMNS), v, (N, N)) @ x) ** 2).sum(), (0, 1)))
    for x in (X, columns):
        found = s @ x
        assert found.dtype == x.dtype
        np.testing.assert_allclose(found, DENSE @ np.asarray(x), rtol=1e-5, atol=1e-6)
    value, (of_values, of_x) = by_values(VALUES, columns)
    y, x = DENSE @ np.asarray(columns), np.asarray(columns)
    np.testing.assert_allclose(value, (y**2).sum(), rtol=1e-5)
    np.testing.assert_allclose(of_values, 2 * (y[ROWS] * x[COLUMNS]).sum(1), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(of_x, 2 * DENSE.T @ y, rtol=1e-5, atol=1e-6)
    wide = ix.sparse(([0, 1, 1, 4], [3, 0, -1, 1]), [1.0, 2.0, 3.0, 5.0], (2, 5))  # the last two are outside
    np.testing.assert_array_equal(wide @ np.arange(5.0), [3, 0])
    np.testing.assert_array_equal(ix.sparse(([0, 1], [1, 1]), [2, 3], (2, 3)) @ np.arange(3), [2, 3])
    assert work(lambda v, x: ix.sparse((ROWS, COLUMNS), v, (N, N)) @ x, VALUES, X) <= 20 * 12 + 4 * N


def test_matrix_products_that_do_not_fit():
    s = ix.sparse(([0], [1]), [1.0], (2, 3))
    with raises(
        ValueError, "matmul: SparseArray(float32[1], shape=(2, 3)) @ float32[2] needs [m, n] @ [n] or [m, n] @ [n, k]."
    ):
        s @ tnp.ones(2)
    with raises(
        TypeError,
        "matmul: SparseArray(float32[1], shape=(2, 3)) @ SparseArray(float32[1], shape=(2, 3)) multiplies two sparse "
        "arrays. Use todense() of one of them.",
    ):
        s @ s


def test_coordinates_that_are_known_to_be_inside_are_not_clipped():
    def f(values, x, coords):
        s = ix.sparse(coords, values, (4, 4))
        return (ix.build(4, lambda i: ix.sum(4, lambda j: s[i, j] * x[j])) ** 2).sum()

    known, values, x = (np.array([0, 3, 3]), np.array([2, 0, 3])), np.array([1.0, 2.0, 3.0]), np.arange(4.0)
    run = tl.jit(tl.value_and_grad(lambda values, x: f(values, x, known), (0, 1)))
    assert "clamp" not in run.lower(values, x).as_text()
    beyond = (known[0] * 2 - 1, known[1])  # -1 and 5: no entry has such a coordinate
    for coords in (known, beyond):
        dense = np.zeros((4, 4))
        inside = (coords[0] >= 0) & (coords[0] < 4)
        np.add.at(dense, (coords[0][inside], coords[1][inside]), values[inside])
        for given in (coords, tuple(map(tnp.asarray, coords))):
            np.testing.assert_allclose(tl.jit(lambda v, x, c=given: f(v, x, c))(values, x), ((dense @ x) ** 2).sum())


def test_relation():
    """TL14 with coordinates; repeated ones count once."""
    r = ix.relation(([0, 2, 2, 2], [1, 0, 2, 0]), (3, 3))
    a, v = tnp.arange(1.0, 10).reshape(3, 3), tnp.array([1.0, -1, 2])
    f = lambda a, v: ix.build(3, lambda i: ix.sum(3, lambda j: r[i, j] * a[i, j] * v[j]))  # noqa: E731
    np.testing.assert_array_equal(f(a, v), [-2, 0, 25])
    da, dv = tl.vjp(f, a, v)[1](tnp.ones(3))
    np.testing.assert_array_equal(da, [[0, -1, 0], [0, 0, 0], [1, 0, 2]])
    np.testing.assert_array_equal(dv, [7, 2, 9])
    some = ix.build(3, lambda i: ix.exists(3, lambda j: r[i, j]) * v[i])
    np.testing.assert_array_equal(some, [1, 0, 2])
    np.testing.assert_array_equal(r.todense(), np.asarray(r.todense()) & (np.arange(9).reshape(3, 3) > -1))
    assert r.todense().sum() == 3


def test_work_of_a_relation():
    r = ix.relation((ROWS, COLUMNS), (N, N))
    a = tnp.asarray(DENSE)
    f = lambda a, v: ix.build(N, lambda i: ix.sum(N, lambda j: r[i, j] * a[i, j] * v[j]))  # noqa: E731
    np.testing.assert_allclose(f(a, X), DENSE @ X, rtol=1e-5, atol=1e-6)
    assert work(f, a, X) <= 20 * 12 + 4 * N


def test_layouts():
    s = ix.sparse((ROWS, COLUMNS), VALUES, (N, N))
    np.testing.assert_allclose(s.todense(), DENSE, rtol=1e-6)
    np.testing.assert_allclose(s.to_scipy().toarray(), DENSE, rtol=1e-6)
    with raises(
        ValueError,
        f"to_scipy: SparseArray(float32[1], shape=(1, 1, {N})) has 3 axes, and matrices of SciPy have 2.\n"
        "  A derivative has 2 if the function takes an array of one axis and returns one: reshape inside of it.",
    ):
        ix.sparse(([0], [0], [0]), VALUES[:1], (1, 1, N)).to_scipy()
    again = ix.SparseArray.from_scipy(scipy.sparse.csr_array(DENSE))
    np.testing.assert_allclose(again.todense(), DENSE, rtol=1e-6)
    bcoo = SimpleNamespace(data=s.values, indices=s.bcoo_indices(), shape=s.shape)
    np.testing.assert_allclose(ix.SparseArray.from_bcoo(bcoo).todense(), DENSE, rtol=1e-6)
    gradient = tl.grad(lambda s: (s.todense() ** 2).sum() / 2)(s)
    assert isinstance(gradient, ix.SparseArray)
    np.testing.assert_allclose(gradient.values, DENSE[ROWS, COLUMNS], rtol=1e-6)


def test_errors():
    with pytest.raises(ValueError, match="1 arrays of coordinates for 2 axes"):
        ix.sparse(([0],), [1.0], (2, 2))
    with pytest.raises(ValueError, match="must be integers of one axis"):
        ix.sparse(([0.5],), [1.0], (2,))
    with pytest.raises(ValueError, match="for entries at coordinates"):
        ix.sparse(([0, 1],), [1.0], (2,))
    with pytest.raises(IndexError, match="1 indices for 2 axes"):
        ix.build(2, lambda i: ix.sparse(([0], [0]), [1.0], (2, 2))[i])


@pytest.mark.parametrize("f", [tnp.log, tnp.sqrt, lambda x: 1 / x, lambda x: x**0.5])
def test_derivatives_where_a_relation_does_not_hold(f):
    """No nan of what is infinite there; where it holds, they are as ever."""
    x, related = tnp.array([0.0, 1.0, 0.0, 4.0]), ix.relation(([1, 3],), (4,))
    g = lambda x: ix.sum(4, lambda i: related[i] * f(x[i]))  # noqa: E731
    expected = np.array(tl.vmap(tl.grad(f))(tnp.array([1.0, 1.0, 1.0, 4.0])) * np.array([0, 1, 0, 1]))
    for h in (g, tl.jit(g)):
        np.testing.assert_allclose(tl.grad(h)(x), expected, rtol=1e-6)


# ---- reads of entries at all kinds of indices --------------------------------------------------------------------

AT, HELD = [1, 9, 0, 1, -1], [1.0, 2.0, 3.0, 4.0, 5.0]  # two are outside of six elements
ELEMENTS = [3.0, 5.0, 0.0, 0.0, 0.0, 0.0]
PLACES = [5, -1, 0, 3, 1, 9]


@pytest.mark.parametrize(
    ("index", "place"),
    [
        (lambda i: 2 * i - 3, lambda i: 2 * i - 3),
        (lambda i: i // 2, lambda i: i // 2),
        (lambda i: tnp.asarray(PLACES)[i], lambda i: PLACES[i]),
        (lambda i: 1 - tnp.asarray(PLACES)[i], lambda i: 1 - PLACES[i]),
        (lambda i: i + 4, lambda i: i + 4),
    ],
)
@pytest.mark.parametrize("is_traced", [False, True])
def test_reads_at_indices(index, place, is_traced):
    """What is read outside of the shape is 0, whatever coordinates are; those of a relation, too."""
    expected = [ELEMENTS[place(i)] if 0 <= place(i) < 6 else 0.0 for i in range(6)]

    def f(rows):
        s = ix.sparse((rows,), HELD, (6,))
        return ix.build(6, lambda i: s[index(i)])

    np.testing.assert_array_equal((tl.jit(f) if is_traced else f)(tnp.asarray(AT)), expected)
    found = ix.build(6, lambda i: ix.relation((AT,), (6,))[index(i)])
    np.testing.assert_array_equal(found, np.array(expected) != 0)


def test_reads_at_indices_of_ranges():
    s = ix.sparse(([0, 2, 4],), [1.0, 2.0, 3.0], (5,))
    periodic, symmetric = ix.range("k", 5, periodic=True), ix.range("b", 5, symmetric=True)
    np.testing.assert_array_equal(ix.build(periodic, lambda k: s[k + 1]), [0, 2, 0, 3, 1])
    np.testing.assert_array_equal(ix.build(symmetric, lambda b: s[-b]), [3, 0, 2, 0, 1])


def test_entries_are_read_one_by_one():
    s = ix.sparse(([0], [1]), [1.0], (2, 3))
    for index, message in (
        ((-1, 0), "index -1 is outside of axis 0 of SparseArray(float32[1], shape=(2, 3))."),
        ((0, 3), "index 3 is outside of axis 1 of SparseArray(float32[1], shape=(2, 3))."),
    ):
        with pytest.raises(IndexError, match=re.escape(message)):
            ix.build(2, lambda i, index=index: s[index])
    with pytest.raises(
        TypeError, match=r"axis 1 of .* is read by slice\(None, None, None\): entries are read one by one"
    ):
        ix.build(2, lambda i: s[i, :])


def test_no_entries():
    assert not ix.relation(([],), (3,)).todense().any()
    np.testing.assert_array_equal(ix.sparse(([],), tnp.zeros(0), (3,)).todense(), [0, 0, 0])


def test_one_compilation_for_each_pattern():
    """Whatever values are, and whether coordinates are the same objects; of relations, for each number of entries."""
    traced = []

    @tl.jit
    def doubled(s):
        traced.append(s)
        return tl.tree.map(lambda v: 2 * v, s)

    @tl.jit
    def counted(r):
        traced.append(r)
        return r.todense().sum()

    rows, columns = np.array([0, 3, 3]), np.array([1, 0, 2])
    s = ix.sparse((rows, columns), tnp.ones(3), (4, 4))
    same = ix.sparse((tnp.asarray(rows), list(columns)), tnp.arange(3.0), (4, 4))
    for given in (s, s, same, doubled(s), tl.grad(lambda s: (s.todense() ** 2).sum())(s)):
        np.testing.assert_array_equal(doubled(given).todense(), 2 * given.todense())
    assert len(traced) == 1
    doubled(ix.sparse((columns, rows), tnp.ones(3), (4, 4)))
    assert len(traced) == 2
    for given in ((rows, columns), (columns, rows)):
        assert counted(ix.relation(given, (4, 4))) == 3
    assert len(traced) == 3


def test_sparse_arrays_made_in_jitted_functions():
    made = tl.jit(lambda v: ix.sparse(([0, 2], [1, 0]), 2 * v, (3, 3)))(tnp.ones(2))
    np.testing.assert_array_equal(made.todense(), [[0, 2, 0], [0, 0, 0], [2, 0, 0]])
