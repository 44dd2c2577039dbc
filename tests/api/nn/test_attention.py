"""Attention against a loop in NumPy, and against JAX."""

from typing import Any

import numpy as np
import pytest

import tapeless as tl
from tapeless.nn import dot_product_attention
from tests.messages import raises

pytestmark = pytest.mark.usefixtures("eager_by_steps")

RNG = np.random.default_rng(0)
B, T, S, N, K, H = 2, 5, 4, 4, 2, 3
Q = RNG.normal(size=(B, T, N, H)).astype(np.float32)
KEY, VALUE = (RNG.normal(size=(B, S, K, H)).astype(np.float32) for _ in range(2))
BIAS = RNG.normal(size=(N, T, S)).astype(np.float32)
MASK = RNG.random((B, 1, T, S)) < 0.7
LENGTHS = {"query_seq_lengths": np.array([5, 2], np.int32), "key_value_seq_lengths": np.array([3, 4], np.int32)}
CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "bias and scale": {"bias": BIAS, "scale": 0.3},
    "mask": {"mask": MASK},
    "causal": {"is_causal": True},
    "window": {"local_window_size": (2, 1)},
    "window of one number": {"local_window_size": 1, "is_causal": True},
    "lengths": LENGTHS,
    "all": {"bias": BIAS, "mask": MASK, "is_causal": True, **LENGTHS},
}


def by_loop(*, bias: Any = None, mask: Any = None, scale: Any = None, is_causal: bool = False, **more: Any) -> Any:
    """One query after the other, in float64."""
    out = np.zeros(Q.shape)
    left, right = np.broadcast_to(more.get("local_window_size", S + T), 2)
    queries, keys = (more.get(name, (n,) * B) for name, n in (("query_seq_lengths", T), ("key_value_seq_lengths", S)))
    for b, t, n in np.ndindex(B, T, N):
        if t >= queries[b]:
            continue
        k = n // (N // K)
        logits = (KEY[b, :, k].astype(float) @ Q[b, t, n]) * (H**-0.5 if scale is None else scale)
        logits += 0 if bias is None else bias[n, t]
        seen = [
            (mask is None or mask[b, 0, t, s])
            and (not is_causal or s <= t)
            and t - left <= s <= t + right
            and s < keys[b]
            for s in range(S)
        ]
        weights = np.exp(logits) * seen if any(seen) else np.ones(S)
        out[b, t, n] = weights @ VALUE[b, :, k] / weights.sum()
    return out


@pytest.mark.parametrize("name", CASES)
def test_against_a_loop(name: str):
    found = tl.jit(lambda q, k, v: dot_product_attention(q, k, v, **CASES[name]))(Q, KEY, VALUE)
    np.testing.assert_allclose(found, by_loop(**CASES[name]), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_against_jax(name: str):
    jax = pytest.importorskip("jax")
    found = dot_product_attention(Q, KEY, VALUE, return_residual=True, **CASES[name])
    expected = jax.nn.dot_product_attention(Q, KEY, VALUE, return_residual=True, **CASES[name])
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)

    def gradients(library: Any, attention: Any) -> Any:
        return library.grad(lambda *qkv: (attention(*qkv, **CASES[name]) ** 2).sum(), (0, 1, 2))(Q, KEY, VALUE)

    for ours, theirs in zip(
        gradients(tl, dot_product_attention), gradients(jax, jax.nn.dot_product_attention), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_without_batches_and_in_narrow_types():
    whole = dot_product_attention(Q, KEY, VALUE)
    np.testing.assert_allclose(dot_product_attention(Q[0], KEY[0], VALUE[0]), whole[0], rtol=1e-6)
    for dtype in ("bfloat16", "float16"):
        narrow = dot_product_attention(*[tl.numpy.asarray(x, dtype) for x in (Q, KEY, VALUE)])
        assert str(narrow.dtype) == dtype
        np.testing.assert_allclose(narrow.astype("float32"), whole, atol=0.03)


@pytest.mark.parametrize("name", CASES)
def test_float64_is_computed_in_float64(name: str):
    """Logits and softmax too, which JAX rounds to float32."""
    wide = [np.float64(x) for x in (Q, KEY, VALUE)]
    found = dot_product_attention(*wide, **CASES[name])
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, by_loop(**CASES[name]), rtol=1e-12, atol=1e-13)
    tl.testing.check_grads(lambda *qkv: dot_product_attention(*qkv, **CASES[name]), wide, order=2)


def test_what_does_not_fit_is_refused():
    with raises(ValueError, "dot_product_attention: key is float32[2,4,2,3], but value is float32[2,3,2,3]."):
        dot_product_attention(Q, KEY, VALUE[:, :3])
    with pytest.raises(ValueError, match=r"query is float32\[2,5,3,3\], but key is float32\[2,4,2,3\]"):
        dot_product_attention(Q[:, :, :3], KEY, VALUE)
    with pytest.raises(ValueError, match="mask must be boolean"):
        dot_product_attention(Q, KEY, VALUE, mask=BIAS)
    message = "dot_product_attention: bias must be numbers, which are added, not bool[2,1,5,4]. Pass booleans as mask=."
    with raises(TypeError, message):
        dot_product_attention(Q, KEY, VALUE, MASK)
    with raises(ValueError, "dot_product_attention: query_seq_lengths must be int32[2], not int32[3]."):
        dot_product_attention(Q, KEY, VALUE, query_seq_lengths=np.ones(3, np.int32))
    with raises(TypeError, "dot_product_attention: is_causal must be True or False, not 'yes'."):
        dot_product_attention(Q, KEY, VALUE, is_causal="yes")  # pyright: ignore[reportArgumentType]  # which is the test
    with pytest.raises(NotImplementedError, match="cuDNN"):
        dot_product_attention(Q, KEY, VALUE, implementation="cudnn")
    with raises(ValueError, "dot_product_attention: implementation must be None or 'xla', not 'flash'."):
        dot_product_attention(Q, KEY, VALUE, implementation="flash")
