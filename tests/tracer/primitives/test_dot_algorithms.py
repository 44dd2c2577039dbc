"""Algorithms of products: what is rounded, what CPU has, and that derivatives and conversions keep them."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests.messages import raises

A, B = (np.random.default_rng(seed).normal(size=(8, 8)).astype(np.float32) for seed in (0, 1))
ON_CPU = "F16_F16_F16 BF16_BF16_F32 BF16_BF16_F32_X3 BF16_BF16_F32_X6 F32_F32_F32 F64_F64_F64".split()
ELSEWHERE = [p for p in lax.DotAlgorithmPreset if p.name not in (*ON_CPU, "DEFAULT")]


@pytest.mark.parametrize("name", ON_CPU)
def test_products_and_gradients(name):
    preset = lax.DotAlgorithmPreset[name]
    halves = name.startswith("F16")
    wide = np.float16 if halves else np.float64 if name.startswith("F64") else np.float32
    want = (A.astype(wide).astype(np.float64) @ B.astype(wide).astype(np.float64)).astype(np.float32)
    tolerance = 2e-2 if halves else 1e-5  # sums of 8 numbers of 11, or of 24 bits
    for precision in (name, preset):
        found = lax.dot(A, B, precision=precision)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, want, atol=tolerance)
    pulled = tl.jit(tl.grad(lambda a: tnp.matmul(a, B, precision=preset).sum()))(A)
    np.testing.assert_allclose(pulled, np.ones((8, 8)) @ B.T, atol=tolerance)
    program = str(tl.make_jaxpr(tl.grad(lambda a: lax.dot(a, B, precision=preset).sum()))(A))
    assert f"precision=({name}, {name})" in program


def test_the_types_of_results():
    x = A.astype(tnp.bfloat16)
    assert lax.dot(x, x, precision="BF16_BF16_F32").dtype == tnp.bfloat16
    assert lax.dot(x, x, precision="BF16_BF16_F32", preferred_element_type=np.float32).dtype == np.float32
    assert lax.dot(A.astype(np.float16), B.astype(np.float16), precision="F32_F32_F32").dtype == np.float16
    exact = lax.dot(np.array([2**25 + 1]), np.array([1]), precision="F32_F32_F32")  # integers have none
    assert exact == 2**25 + 1


def test_as_the_default():
    with tl.default_matmul_precision("F16_F16_F16"):
        np.testing.assert_array_equal(A @ tnp.asarray(B), lax.dot(A, B, precision="F16_F16_F16"))
        image = np.ones((1, 1, 3, 3), np.float32)
        assert lax.conv(image, image[..., :2, :2], (1, 1), "VALID").shape == (1, 1, 2, 2)  # these have no algorithms
    np.testing.assert_array_equal(lax.dot(A, B, precision="DEFAULT"), lax.dot(A, B))


def test_algorithms_that_are_presets():
    algorithm = lax.DotAlgorithm(np.float16, np.float16, np.float16)
    assert algorithm.preset is lax.DotAlgorithmPreset.F16_F16_F16
    np.testing.assert_array_equal(lax.dot(A, B, precision=algorithm), lax.dot(A, B, precision="F16_F16_F16"))
    assert lax.DotAlgorithm(tnp.bfloat16, tnp.bfloat16, np.float32, 1, 1, 3).preset.name == "BF16_BF16_F32_X3"
    with pytest.raises(ValueError, match="no DotAlgorithmPreset is DotAlgorithm"):
        lax.dot(A, B, precision=lax.DotAlgorithm(np.float64, np.float32, np.float32))


@pytest.mark.parametrize("preset", ELSEWHERE, ids=str)
def test_what_cpu_has_not(preset):
    message = f"not {preset}: float32[8,8] and float32[8,8]."
    with pytest.raises(
        NotImplementedError, match=r"dot_general: CPU has the precisions DEFAULT, F16_F16_F16"
    ) as caught:
        lax.dot(A, B, precision=preset)
    assert str(caught.value).endswith(message)


def test_other_precisions():
    with raises(ValueError, "conv_general_dilated: F32_F32_F32 is an algorithm of dot_general, not of convolutions."):
        lax.conv(np.ones((1, 1, 3, 3)), np.ones((1, 1, 2, 2)), (1, 1), "SAME", precision="F32_F32_F32")
    with pytest.raises(ValueError, match="precision 'F8_F8_F8' is none of Precision's members"):
        lax.dot(A, B, precision="F8_F8_F8")


def test_they_are_jaxs():
    jax = pytest.importorskip("jax")
    assert [p.name for p in jax.lax.DotAlgorithmPreset] == [p.name for p in lax.DotAlgorithmPreset]
    assert jax.lax.DotAlgorithm._fields == lax.DotAlgorithm._fields
    for name in ON_CPU:
        theirs = jax.lax.dot(A, B, precision=name)
        np.testing.assert_allclose(lax.dot(A, B, precision=name), theirs, atol=1e-6)
