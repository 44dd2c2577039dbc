"""Operands that are seldom tried: what NumPy refuses is refused, and unsigned integers do not wrap on the way."""

from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp

pytestmark = pytest.mark.usefixtures("eager_by_steps")

BYTES, COMPLEX = np.array([0, 200, 28, 3], np.uint8), np.array([1 + 2j, -0.0 - 1j])


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint32, np.uint64, np.int64])
def test_coordinates_of_gradients_may_be_unsigned_and_fall(dtype: Any):
    f, x = np.array([0, 20, 28, 3]).astype(dtype), np.array([100, 50, 7, 0]).astype(dtype)
    with tl.enable_x64():
        for args in ((f,), (f, x)):
            np.testing.assert_allclose(tnp.gradient(*args), np.gradient(*args), rtol=1e-6)


def test_differences_of_polynomials_promote_first():
    x = np.array([0.5, -2.5, 1.5, 2.5, -0.5])
    np.testing.assert_array_equal(tnp.polysub(x, BYTES), np.polysub(x, BYTES))
    np.testing.assert_array_equal(
        tnp.polysub(np.array([-1], np.int16), BYTES), np.polysub(np.array([-1], np.int16), BYTES)
    )


@pytest.mark.parametrize("compute", [lambda f: f, tl.jit], ids=["eager", "jit"])
def test_booleans_are_positions_in_take(compute: Any):
    x, places = np.array([5, 7, 9]), np.array([True, False, True, True])
    np.testing.assert_array_equal(compute(tnp.take)(x, places), np.take(x, places))
    np.testing.assert_array_equal(tnp.take(x, True), np.take(x, True))


def test_linspace_without_its_end_is_linspace_but_for_it(rng: np.random.Generator):
    """To the last bit, as the array API standard defines it."""
    for n in range(1, 30):
        start, stop = rng.normal(size=2)
        np.testing.assert_array_equal(
            tnp.linspace(start, stop, n, endpoint=False), tnp.linspace(start, stop, n + 1)[:-1]
        )


@pytest.mark.parametrize("endpoint", [True, False])
def test_integers_of_linspace_are_not_one_too_small(endpoint: bool):
    for start, stop, num in [(-3, 3, 4), (0, 7, 8), (-100, 100, 201), (5, -7, 13), (1, 10, 4), (0, 5, 4), (3, 3, 5)]:
        found = tnp.linspace(start, stop, num, endpoint=endpoint, dtype=int)
        np.testing.assert_array_equal(found, np.linspace(start, stop, num, endpoint=endpoint, dtype=int))


def test_scalars_are_not_sorted():
    np.testing.assert_array_equal(tnp.argsort(2.5 * tnp.ones(())), np.argsort(np.array(2.5)))
    np.testing.assert_array_equal(tnp.sort(tnp.ones(()), axis=None), np.sort(np.ones(()), axis=None))


REFUSED: list[tuple[Any, Any, type[Exception]]] = [
    (lambda np_: np_.sort(np_.array(2.5)), "sort: axis -1 is out of range", ValueError),
    (lambda np_: np_.argsort(np_.array(2.5), axis=1), "argsort: axis 1 is out of range", ValueError),
    (lambda np_: np_.cumulative_sum(np_.ones((2, 3)), axis=(0, 1)), "axis", TypeError),
    (lambda np_: np_.cumulative_prod(np_.ones((2, 3)), axis=(0, 1)), "axis", TypeError),
    (lambda np_: np_.fabs(np_.array(COMPLEX)), "fabs: complex numbers have no sign", TypeError),
    (lambda np_: np_.signbit(np_.array(COMPLEX)), "signbit: complex numbers have no sign", TypeError),
    (lambda np_: np_.isposinf(np_.array(COMPLEX)), "isposinf: complex numbers have no sign", TypeError),
    (lambda np_: np_.isneginf(np_.array(COMPLEX)), "isneginf: complex numbers have no sign", TypeError),
    (lambda np_: np_.tril_indices_from(np_.ones((2, 3, 4))), "tril_indices_from: a matrix has two axes", ValueError),
    (lambda np_: np_.triu_indices_from(np_.ones(3)), "triu_indices_from: a matrix has two axes", ValueError),
    (lambda np_: np_.zeros((2**31, 2**31, 2)), "has more bytes than 64 bits count", ValueError),
    (lambda np_: np_.bincount(np_.array([5, 2**62])), "has more bytes than 64 bits count", (ValueError, MemoryError)),
    (lambda np_: np_.take(np_.ones(3), 0, mode="nearest"), "mode 'nearest' is none of 'clip', 'fill'", ValueError),
    (lambda np_: np_.sort(np_.ones(3), order="x"), "sort: order='x' names fields", ValueError),
    (lambda np_: np_.sort(np_.ones(3), kind="bubble"), "sort: kind must be one of None, 'quicksort'", ValueError),
    (lambda np_: np_.argsort(np_.ones(3), order="x"), "argsort: order='x' names fields", ValueError),
    (lambda np_: np_.array([1], order="Q"), "array: order must be 'K', 'A', 'C' or 'F', not 'Q'", ValueError),
    (lambda np_: np_.asarray(np_.ones(1), order="Q"), "asarray: order must be", ValueError),
    (lambda np_: np_.copy(np_.ones(1), order="Q"), "copy: order must be", ValueError),
    (lambda np_: np_.lexsort([]), "lexsort: there must be at least one key", TypeError),
    (lambda np_: np_.hstack([]), "at least one array", ValueError),
    (lambda np_: np_.block([]), "block: a list of blocks is empty", ValueError),
    (lambda np_: np_.broadcast_shapes((-1,)), "broadcast_shapes: lengths must be at least 0", ValueError),
    (lambda np_: np_.broadcast_shapes("ab"), "broadcast_shapes: a shape must be", TypeError),
    (lambda np_: np_.vander(np_.ones(3), -1), "vander: N must be at least 0, not -1", ValueError),
    (lambda np_: np_.vander(np_.ones(3), 2.5), "vander: N must be an integer, not 2.5", TypeError),
    (lambda np_: np_.polyder(np_.ones(3), -1), "polyder: m must be at least 0, not -1", ValueError),
    (lambda np_: np_.isdtype(np_.float32, "floats"), "'floats' is not a dtype", TypeError),
]


@pytest.mark.parametrize("f, message, kind", REFUSED, ids=range(len(REFUSED)))
def test_refused_as_in_numpy(f: Any, message: str, kind: Any):
    with pytest.raises((TypeError, ValueError, MemoryError)):
        f(np)
    with pytest.raises(kind, match=message), tl.enable_x64():
        f(tnp)


def test_sizes_are_whole_and_not_negative():
    for call in (lambda: tnp.tril_indices(2.5), lambda: tnp.triu_indices(2, 0.5)):  # NumPy takes these
        with pytest.raises(TypeError, match="must be an integer"):
            call()
    with pytest.raises(TypeError, match="repeat: repeats must be whole numbers, not"):
        tnp.repeat(tnp.ones(3), 1.5)
    with pytest.raises(ValueError, match="unique: size must be at least 0, not -1"):
        tnp.unique(tnp.ones(3), size=-1)


def test_modes_are_refused_where_they_would_not_matter():
    """Of a position that is inside, every mode would read and write the same."""
    x = tnp.ones((2, 3))
    for call in (
        x.at[0].get,
        x.at[x > 0].get,
        lambda mode: x.at[0].set(1, mode=mode),
        lambda mode: x.at[0].add(1, mode=mode),
    ):
        with pytest.raises(ValueError, match="mode 'nearest' is none of 'clip', 'fill'"):
            call(mode="nearest")
