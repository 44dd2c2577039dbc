"""Windows as indices against NumPy's slices: where they start outside, with other items, in reading and writing."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tests.messages import raises

pytestmark = pytest.mark.usefixtures("eager_by_steps")

X = np.arange(60.0).reshape(3, 4, 5)
ways = pytest.mark.parametrize("way", [lambda f: f, tl.jit], ids=["eager", "jit"])


@ways
@pytest.mark.parametrize(("start", "first"), [(0, 0), (1, 1), (3, 3), (4, 3), (9, 3), (-1, 3), (-5, 0), (-3, 2)])
def test_starts_are_moved_inside(way, start, first):
    x = tnp.asarray(X[0, 0])
    np.testing.assert_array_equal(way(lambda x, i: x[tl.ds(i, 2)])(x, start), X[0, 0, first : first + 2])
    np.testing.assert_array_equal(way(lambda x, i: x[tl.ds(i, 2, 2)])(x, start), X[0, 0][min(first, 2) :: 2][:2])


@ways
def test_among_other_items(way):
    def parts(x, i):
        w = tl.ds(i, 2)
        return [x[w], x[:, w], x[..., w], x[0, w, 1:3], x[w, None, 1], x[w, ..., w], x[i, w], x[w, np.array([0, 2])]]

    s = slice(1, 3)
    want = [X[s], X[:, s], X[..., s], X[0, s, 1:3], X[s, None, 1], X[s, ..., s], X[1, s], X[s][:, np.array([0, 2])]]
    for found, right in zip(way(parts)(tnp.asarray(X), 1), want, strict=True):
        np.testing.assert_array_equal(found, right)


@ways
def test_writing(way):
    y = X.copy()
    y[1:3, :, 2] += 1
    found = way(lambda x, i: x.at[tl.ds(i, 2), :, 2].add(1))(tnp.asarray(X), 1)
    np.testing.assert_array_equal(found, y)
    x = tnp.asarray(X[0, 0])
    np.testing.assert_array_equal(way(lambda x, i: x.at[tl.ds(i, 2)].set(9))(x, 4), X[0, 0])  # it would reach beyond
    np.testing.assert_array_equal(way(lambda x, i: x.at[tl.ds(i, 2)].set(9, mode="clip"))(x, 4), [0, 1, 2, 9, 9])
    np.testing.assert_array_equal(way(lambda x, i: x.at[tl.ds(i, 2)].get(fill_value=-1))(x, 4), [-1, -1])
    np.testing.assert_array_equal(way(lambda x, i: x.at[tl.ds(i, 2)].get())(x, 4), [3, 4])
    np.testing.assert_array_equal(way(lambda x, i: x.at[tl.ds(i, 2)].apply(tnp.square))(x, 1), [0, 1, 4, 3, 4])


def test_references():
    def f(x, i):
        ref = tl.new_ref(x)
        ref[tl.ds(i, 2)] = 2 * ref[tl.ds(i, 2)]
        return ref[...]

    np.testing.assert_array_equal(tl.jit(f)(X[0, 0], 1), [0, 2, 4, 3, 4])


def test_derivatives_and_vmap():
    grad = tl.grad(lambda x, i: (x[tl.ds(i, 2)] ** 2).sum())(X[0, 0], 2)
    np.testing.assert_array_equal(grad, [0, 0, 4, 6, 0])
    starts = np.array([0, 3, 7])
    found = tl.vmap(lambda i: tnp.asarray(X[0, 0])[tl.ds(i, 2)])(starts)
    np.testing.assert_array_equal(found, [[0, 1], [3, 4], [3, 4]])


def test_what_ds_makes():
    assert tl.ds(None) == slice(None)
    assert tl.ds(3) == tl.ds(0, 3) and repr(tl.ds(1, 2)) == "Slice(start=1, size=2, stride=1)"
    leaves, tree = tl.tree.flatten(tl.ds(tnp.asarray(4), 2))
    assert leaves == [4] and tl.tree.unflatten(tree, [5]) == tl.ds(5, 2)
    with raises(ValueError, "ds: the stride must be at least 1, not -1."):
        tl.ds(0, 1, -1)
    with raises(ValueError, "ds: axis 0 of float64[3,4,5] has no window of 4 elements, 1 apart."):
        tnp.asarray(X)[tl.ds(0, 4)]
    with raises(TypeError, "ds: the size of a window must be known, that for axis 0 of float64[5] is traced."):
        tl.jit(lambda x, n: x[tl.ds(0, n)])(X[0, 0], 2)
    assert tnp.asarray(X)[tl.ds(2, 0)].shape == (0, 4, 5)


def test_agreement_with_jax():
    jax = pytest.importorskip("jax")
    x, theirs = tnp.arange(10), jax.numpy.arange(10)
    for i in (-12, -3, 0, 4, 9, 20):
        np.testing.assert_array_equal(x[tl.ds(i, 3)], theirs[jax.ds(i, 3)])
        np.testing.assert_array_equal(x.at[tl.ds(i, 3)].set(-1), theirs.at[jax.ds(i, 3)].set(-1))
