"""Products of scaled numbers against their definition in NumPy; errors of quantization; straight-through gradients."""

import ml_dtypes
import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax, nn
from tests.messages import raises

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(2, 3, 64)).astype(np.float32), RNG.normal(size=(2, 5, 64)).astype(np.float32)
CONFIGS = {mode: [nn.get_scaled_dot_general_config(mode)] * 3 for mode in ("mxfp8", "nvfp4")}
BATCHED = (((2,), (2,)), ((0,), (0,)))

# Without optimizations XLA rounds to 4 bits in two steps.


def quantized(x, mode):
    """Quantize along the last axis, and return the numbers that are meant: by loops over blocks."""
    size, dtype = {"mxfp8": (32, ml_dtypes.float8_e4m3fn), "nvfp4": (16, ml_dtypes.float4_e2m1fn)}[mode]
    most, found = float(ml_dtypes.finfo(dtype).max), np.zeros_like(x)
    for row, out in zip(x.reshape(-1, size), found.reshape(-1, size), strict=True):
        wanted = np.abs(row).max() / np.float32(most)
        scale = 2.0 ** np.ceil(np.log2(wanted)) if mode == "mxfp8" else float(ml_dtypes.float8_e4m3fn(wanted))
        out[:] = np.clip(row / np.float32(scale), -most, most).astype(dtype).astype(np.float32) * scale
    return found


def test_scaled_matmul():
    p, q = RNG.uniform(1, 2, (2, 3, 4)).astype(np.float32), RNG.uniform(1, 2, (2, 5, 4)).astype(np.float32)
    want = np.einsum("bmk,bnk->bmn", A * p.repeat(16, 2), B * q.repeat(16, 2))
    np.testing.assert_allclose(tl.jit(nn.scaled_matmul)(A, B, p, q), want, rtol=1e-4, atol=1e-4)
    few = A.astype(ml_dtypes.float8_e4m3fn), B.astype(ml_dtypes.float8_e4m3fn)
    powers = [s.astype(ml_dtypes.float8_e8m0fnu) for s in (p, q)]
    found = nn.scaled_matmul(*few, *powers, preferred_element_type=tnp.bfloat16)
    assert found.dtype == tnp.bfloat16
    x, y = (v.astype(np.float32) * s.astype(np.float32).repeat(16, 2) for v, s in zip(few, powers, strict=True))
    np.testing.assert_allclose(found.astype(np.float32), np.einsum("bmk,bnk->bmn", x, y), rtol=1e-2, atol=1e-2)
    with raises(
        ValueError,
        "scaled_matmul: it takes [b, m, k] and [b, n, k], scales [b, m, s] and [b, n, s]: float32[2,3,64] and "
        "float32[2,5,64], scales float32[2,3,4] and float32[2,5,5].",
    ):
        nn.scaled_matmul(A, B, p, np.ones((2, 5, 5), np.float32))
    with pytest.raises(ValueError, match="all operands must have 3 axes"):
        nn.scaled_matmul(A[0], B, p, q)


def test_axes_and_types():
    a, b = A.transpose(2, 0, 1), B[0].reshape(5, 8, 8)
    contracted = (((0, 1), (1, 2)), ((), ()))
    multiply = tl.jit(lambda a, b: nn.scaled_dot_general(a, b, contracted, tnp.bfloat16, CONFIGS["mxfp8"]))
    found = multiply(a.reshape(8, 8, 2, 3), b)
    want = np.einsum("bmk,nk->bmn", quantized(A, "mxfp8"), quantized(B[0], "mxfp8"))
    assert found.shape == (2, 3, 5) and found.dtype == tnp.bfloat16
    np.testing.assert_allclose(found.astype(np.float32), want, rtol=2e-2, atol=2e-2)
    plain = nn.scaled_dot_general(A, B, BATCHED)
    np.testing.assert_array_equal(plain, lax.dot_general(A, B, BATCHED))
    zeros = tl.jit(lambda a, b: nn.scaled_dot_general(a, b, BATCHED, configs=CONFIGS["nvfp4"]))(0 * A, B)
    np.testing.assert_array_equal(zeros, np.zeros((2, 3, 5)))


def test_gradients():
    x, y, ct = (RNG.normal(size=s).astype(np.float32) for s in ((1, 32, 32), (1, 32, 32), (1, 32, 32)))

    def product(mode):
        return lambda x, y: (nn.scaled_dot_general(x, y, BATCHED, configs=CONFIGS[mode]) * ct).sum()

    to_x, to_y = tl.jit(tl.grad(product("mxfp8"), (0, 1)))(x, y)
    q = quantized(ct, "mxfp8")
    turned = quantized(ct.transpose(0, 2, 1).copy(), "mxfp8")
    q_x, q_y = (quantized(v.transpose(0, 2, 1).copy(), "mxfp8").transpose(0, 2, 1) for v in (x, y))
    np.testing.assert_allclose(to_x, q @ q_y, atol=1e-3)
    np.testing.assert_allclose(to_y, turned @ q_x, atol=1e-3)
    to_x, to_y = tl.jit(tl.grad(product("nvfp4"), (0, 1)))(x, y)
    np.testing.assert_allclose(to_x, ct @ y, atol=1e-4)
    np.testing.assert_allclose(to_y, ct.transpose(0, 2, 1) @ x, atol=1e-4)
    small = [nn.get_scaled_dot_general_config("nvfp4", tnp.array([1e-4]))] * 3  # what is above 0.27 is clipped
    to_x = tl.jit(tl.grad(lambda x: (nn.scaled_dot_general(x, y, BATCHED, configs=small) * ct).sum()))(x)
    np.testing.assert_allclose(to_x, np.where(np.abs(x) <= 1e-4 * 6 * 448, ct @ y, 0), atol=1e-4)


def test_mistakes():
    with raises(ValueError, "get_scaled_dot_general_config: the mode is 'mxfp8' or 'nvfp4', not 'int8'."):
        nn.get_scaled_dot_general_config("int8")
    with raises(ValueError, "scaled_dot_general: mxfp8 has blocks of 32, the axes contracted 16 elements."):
        nn.scaled_dot_general(A[..., :16], B[..., :16], BATCHED, configs=CONFIGS["mxfp8"])
    with raises(TypeError, "scaled_dot_general: the result is of float32, bfloat16, float16, not of float64."):
        nn.scaled_dot_general(A, B, BATCHED, np.float64, CONFIGS["mxfp8"])


# ---- lax.scaled_dot ------------------------------------------------------------------------------------------


def test_scaled_dot():
    scale = RNG.uniform(1, 2, (2, 3, 4)).astype(np.float32)
    b = B.transpose(0, 2, 1)
    found = lax.scaled_dot(A, b, lhs_scale=scale, preferred_element_type=np.float32)
    np.testing.assert_allclose(found, A * scale.repeat(16, 2) @ b, rtol=0.05, atol=0.2)
    assert lax.scaled_dot(A, b).dtype == tnp.bfloat16
    grad = tl.grad(lambda s: lax.scaled_dot(A, b, lhs_scale=s, preferred_element_type=np.float32).sum())(scale)
    want = (A * (b.sum(2)[:, None])).reshape(2, 3, 4, 16).sum(-1)
    np.testing.assert_allclose(grad, want, rtol=0.1, atol=0.5)
    with raises(
        TypeError,
        "scaled_dot: lhs is float32[2,3,64], its scale float32[2,3,5]: sizes must be equal, except along the axes that "
        "are contracted, (2,), where the scale's divides the other at least twice.",
    ):
        lax.scaled_dot(A, b, lhs_scale=np.ones((2, 3, 5), np.float32))
    with pytest.raises(TypeError, match="without dimension_numbers it takes batches of matrices"):
        lax.scaled_dot(A[0, 0], b)


def test_agreement_with_jax():
    jax = pytest.importorskip("jax")
    b = B.transpose(0, 2, 1)
    p, q = RNG.uniform(1, 2, (2, 3, 4)).astype(np.float32), RNG.uniform(1, 2, (2, 4, 5)).astype(np.float32)
    options = {"lhs_scale": p, "rhs_scale": q}
    theirs = jax.lax.scaled_dot(A, b, preferred_element_type=np.float32, **options)
    ours = lax.scaled_dot(A, b, preferred_element_type=np.float32, **options)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("mode", CONFIGS)
@pytest.mark.parametrize("way", [lambda f: f, tl.jit], ids=["eager", "jit"])
def test_scaled_dot_general(mode, way, optimized):
    found = way(lambda a, b: nn.scaled_dot_general(a, b, BATCHED, configs=CONFIGS[mode]))(A, B)
    want = np.einsum("bmk,bnk->bmn", quantized(A, mode), quantized(B, mode))
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-4)
    exact = np.einsum("bmk,bnk->bmn", A, B)
    assert 0 < np.abs(found - exact).max() < (4 if mode == "nvfp4" else 1)
