"""Where windows begin: negative starts count from the end, as in jax.lax, unless a caller says that they do not."""

from typing import Any

import numpy as np
import pytest

import tapeless as tl
from tapeless.tracer.primitives import indexing as i
from tapeless.tracer.primitives.shape import reshape, transpose

jax = pytest.importorskip("jax")
X = np.arange(12.0, dtype=np.float32).reshape(3, 4)
STARTS = [(-1, -2), (0, -4), (-3, 1), (-9, -5), (2, 9)]
CALLS = {
    "dynamic_slice": lambda lax, a, b: lax.dynamic_slice(X, (a, b), (1, 2)),
    "dynamic_slice_in_dim": lambda lax, a, b: lax.dynamic_slice_in_dim(X, b, 2, axis=1),
    "dynamic_index_in_dim": lambda lax, a, b: lax.dynamic_index_in_dim(X, a, keepdims=False),
    "dynamic_update_slice": lambda lax, a, b: lax.dynamic_update_slice(X, -X[:1, :2], (a, b)),
    "dynamic_update_slice_in_dim": lambda lax, a, b: lax.dynamic_update_slice_in_dim(X, -X[:, :2], b, 1),
    "dynamic_update_index_in_dim": lambda lax, a, b: lax.dynamic_update_index_in_dim(X, -X[0], a, 0),
    "one axis": lambda lax, a, b: lax.dynamic_slice(X, (a, b), (1, 2), allow_negative_indices=(True, False)),
}
each_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
each_start = pytest.mark.parametrize("starts", STARTS, ids=str)


@each_call
@each_start
def test_traced_starts_are_those_of_jax(call: Any, starts: tuple[int, int]):
    at = [np.asarray(k, np.int32) for k in starts]
    expected = jax.jit(lambda a, b: call(jax.lax, a, b))(*at)
    np.testing.assert_array_equal(tl.jit(lambda a, b: call(tl.lax, a, b))(*at), expected)
    np.testing.assert_array_equal(call(tl.lax, *map(tl.numpy.asarray, at)), expected)


@each_call
@each_start
def test_known_starts_are_those_of_jax(call: Any, starts: tuple[int, int]):
    if call is CALLS["one axis"] and starts[1] < 0:
        pytest.skip("jax refuses a known negative start that may not be one")
    expected = call(jax.lax, *starts)
    np.testing.assert_array_equal(call(tl.lax, *starts), expected)
    np.testing.assert_array_equal(call(tl.lax, *map(np.int32, starts)), expected)


def equations(f: Any, *args: Any) -> list[str]:
    return [str(eqn.primitive) for eqn in tl.make_jaxpr(f)(*args).jaxpr.eqns]


def test_only_traced_signed_starts_take_operations():
    read = lambda x, k: i.dynamic_slice_in_dim(x, k, 1)  # noqa: E731
    assert len(equations(read, X, np.int32(-1))) == 4
    assert len(equations(read, X, np.uint32(1))) == 1
    assert len(equations(lambda x: read(x, -1), X)) == 1
    exact = lambda x, k: i.dynamic_slice_in_dim(x, k, 1, allow_negative_indices=False)  # noqa: E731
    assert len(equations(exact, X, np.int32(-1))) == 1


def test_a_start_too_narrow_for_the_size_is_widened():
    x = np.arange(300)
    read = tl.jit(lambda k: i.dynamic_slice(x, (k,), (2,)))
    np.testing.assert_array_equal(read(np.int8(-3)), x[-3:-1])


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint8, np.uint64])
def test_index_take_counts_modulo_the_size(dtype):
    limits, src = np.iinfo(dtype), np.arange(12.0).reshape(3, 4)
    rows = np.array([5, limits.min, limits.max, 1], dtype)
    columns = np.array([limits.max, 4, 0, limits.min], dtype)
    expected = src[rows % 3, columns % 4]
    np.testing.assert_array_equal(i.index_take(src, (rows, columns), (0, 1)), expected)
    np.testing.assert_array_equal(tl.jit(lambda s, *at: i.index_take(s, at, (0, 1)))(src, rows, columns), expected)


def test_index_take_in_a_mode():
    src, positions = np.arange(3.0), np.array([5, -1, 1])
    np.testing.assert_array_equal(i.index_take(src, (positions,), (0,), mode="clip"), [2, 0, 1])
    np.testing.assert_array_equal(i.index_take(src, (positions,), (0,), mode="fill"), [np.nan, np.nan, 1])
    np.testing.assert_array_equal(tl.grad(lambda s: i.index_take(s, (positions,), (0,)).sum())(src), [0, 1, 2])


def test_allow_negative_indices_is_one_per_axis():
    with pytest.raises(ValueError, match=r"allow_negative_indices \(True,\) must be one boolean, or one per axis"):
        i.dynamic_slice(X, (0, 0), (1, 1), allow_negative_indices=(True,))


def test_reshape_transposes_first():
    np.testing.assert_array_equal(reshape(X, (6, 2), (1, 0)), jax.lax.reshape(X, (6, 2), (1, 0)))
    np.testing.assert_array_equal(reshape(X, (12,), dimensions=(1, 0)), reshape(transpose(X, (1, 0)), (12,)))
