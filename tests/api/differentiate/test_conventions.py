"""The hermitian convention of `grad`, `value_and_grad` and `vjp`, by the rules that are stated for it."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp


@pytest.fixture(autouse=True)
def in_64_bits():
    with tl.enable_x64():
        yield


Z, K, V = 0.3 + 0.7j, 1.1 - 0.4j, -0.6 + 0.2j
# What the hermitian convention pulls k back to: Li & Damle 2024.
PULLBACKS = {
    "conj": (tnp.conj, lambda z, k: np.conj(k)),
    "v z": (lambda z: V * z, lambda z, k: np.conj(V) * k),
    "z + v": (lambda z: z + V, lambda z, k: k),
    "z**3": (lambda z: z**3, lambda z, k: np.conj(3 * z**2) * k),
    "exp": (tnp.exp, lambda z, k: np.conj(np.exp(z)) * k),
    "|z|**2": (lambda z: tnp.abs(z) ** 2, lambda z, k: 2 * z * np.real(k)),
    "Re": (tnp.real, lambda z, k: np.real(k)),
}


@pytest.mark.parametrize("name", PULLBACKS)
@pytest.mark.parametrize("transform", [lambda f: f, tl.jit])
def test_pullbacks(name, transform):
    f, expected = PULLBACKS[name]

    def pulled(z, k):
        y, pull_back = tl.vjp(f, z, convention="hermitian")
        return pull_back(k if tnp.iscomplexobj(y) else tnp.real(k))[0]

    k = K if np.iscomplexobj(f(Z)) else K.real
    np.testing.assert_allclose(transform(pulled)(np.complex128(Z), np.complex128(K)), expected(Z, k), rtol=1e-12)


def test_gradients_are_the_direction_of_ascent():
    A, x = np.array([[2, 1j], [-1j, 3]]), np.array([1 + 1j, 2 - 1j])

    def f(x):
        return tnp.real(tnp.conj(x) @ A @ x)

    np.testing.assert_allclose(tl.grad(f, convention="hermitian")(x), [6 + 8j, 14 - 8j], rtol=1e-12)
    np.testing.assert_allclose(tl.grad(f)(x), [6 - 8j, 14 + 8j], rtol=1e-12)
    value, slope = tl.value_and_grad(lambda p: f(p["x"]) * p["c"], convention="hermitian")({"x": x, "c": 2.0})
    np.testing.assert_allclose(value, 50, rtol=1e-12)
    np.testing.assert_allclose(slope["x"], [12 + 16j, 28 - 16j], rtol=1e-12)
    np.testing.assert_allclose(slope["c"], 25, rtol=1e-12)


def test_the_pullback_stays_a_pytree():
    _, pull_back = tl.vjp(lambda z: z * z, np.array([1j, 2.0]), convention="hermitian")
    leaves, tree = tl.tree.flatten(pull_back)
    assert leaves
    np.testing.assert_allclose(tl.tree.unflatten(tree, leaves)(np.array([1.0 + 0j, 1j]))[0], [-2j, 4j])


def test_with_aux():
    value, pull_back, aux = tl.vjp(lambda z: (z * V, z), Z, has_aux=True, convention="hermitian")
    np.testing.assert_allclose([value, aux, pull_back(K + 0j)[0]], [Z * V, Z, np.conj(V) * K], rtol=1e-12)


@pytest.mark.parametrize(
    "function", [tl.grad, tl.value_and_grad, lambda f, convention: tl.vjp(f, 1.0, convention=convention)]
)
def test_unknown_conventions(function):
    with pytest.raises(ValueError, match=r"convention='wirtinger' is none of \('hermitian', 'bilinear'\)"):
        function(tnp.abs, convention="wirtinger")
