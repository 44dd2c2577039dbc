"""`tapeless.numpy.linalg` and `tapeless.lax.linalg`: names, parameters, values and derivatives, beside JAX's."""

import inspect
import subprocess
import sys

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.tracer.primitives import spectral
from tests.messages import raises

pytestmark = pytest.mark.usefixtures("eager_by_steps")

RNG = np.random.default_rng(1)
A, T = RNG.normal(size=(2, 4, 4))
C, TC = A + 1j * T, T - 1j * A.T
# Parameters that choose among implementations of which there is one here, or results in NumPy's form.
NOT_YET = {"use_magma", "out_sharding", "precision", "preferred_element_type", "numpy_resid", "algorithm"}


def test_names():
    for module in (tnp.linalg, tl.lax.linalg):
        assert all(inspect.getdoc(getattr(module, name)) for name in module.__all__)
        public = {n for n, x in vars(module).items() if not n.startswith("_") and not inspect.ismodule(x)}
        assert public == set(module.__all__)


def test_modules_are_imported_by_name():
    code = "import tapeless.numpy.linalg as a, tapeless.lax.linalg as b, tapeless as tl\n"
    code += "assert a is tl.numpy.linalg and b is tl.lax.linalg\n"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def named(f):
    """The parameters that a caller can name."""
    return [p for p in inspect.signature(f).parameters.values() if p.kind is not p.POSITIONAL_ONLY]


@pytest.mark.parametrize("space", ["numpy", "lax"])
def test_parameters_are_those_of_jax(space):
    jax = pytest.importorskip("jax")
    ours, theirs = getattr(tl, space).linalg, getattr(jax, space).linalg
    names = [n for n in ours.__all__ if inspect.isfunction(getattr(ours, n))]
    wrong = {}
    for name in names:
        expected = [p.name for p in named(getattr(theirs, name)) if p.name not in NOT_YET]
        mine = list(inspect.signature(getattr(ours, name)).parameters)
        if [p for p in mine if p in expected] != expected:
            wrong[name] = mine, expected
    assert wrong == {}


def leaves(y):
    return list(y) if isinstance(y, tuple) else [y]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("eigh", {}),
        ("svd", {"full_matrices": False}),
        ("qr", {}),
        ("slogdet", {}),
        ("det", {}),
        ("pinv", {}),
        ("norm", {"ord": "nuc"}),
        ("cond", {}),
    ],
)
def test_derivatives_are_those_of_jax(name, options):
    """With phases of complex vectors held in the same way."""
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        for x, t in ((A, T), (C, TC)):
            theirs = jax.jvp(lambda x: getattr(jax.numpy.linalg, name)(x, **options), (x,), (t,))
            ours = tl.jvp(lambda x: getattr(tnp.linalg, name)(x, **options), (x,), (t,))
            for found, wanted in zip(ours, theirs):
                for y, z in zip(leaves(found), leaves(wanted), strict=True):
                    np.testing.assert_allclose(y, np.asarray(z), rtol=1e-8, atol=1e-10)


def test_lax_forms():
    h = A + A.T
    v, w = tl.lax.linalg.eigh(h)
    np.testing.assert_allclose(h @ v, v * w, atol=1e-12)
    lower_triangle = tl.lax.linalg.eigh(np.tril(A), symmetrize_input=False)[1]
    np.testing.assert_allclose(lower_triangle, np.linalg.eigvalsh(A, "L"))
    np.testing.assert_allclose(tl.lax.linalg.svd(A, compute_uv=False), np.linalg.svd(A)[1])
    factors, _, permutation = map(np.asarray, tl.lax.linalg.lu(A))
    np.testing.assert_allclose((np.tril(factors, -1) + np.eye(4)) @ np.triu(factors), A[permutation], atol=1e-12)


def test_scipy_is_loaded_by_the_first_program_that_needs_it():
    code = (
        "import sys, numpy, tapeless.numpy as tnp\n"
        "tnp.linalg.norm(numpy.ones(3))\n"
        "assert 'scipy' not in sys.modules\n"
        "tnp.linalg.eigvalsh(numpy.eye(2))\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("order", ["ours(); theirs(); ours()", "theirs(); ours(); theirs()"])
def test_beside_jax(order):
    pytest.importorskip("jax")
    code = (
        "import numpy, tapeless.numpy as tnp, jax.numpy as jnp\n"
        "def ours(): assert abs(tnp.linalg.eigvalsh(numpy.eye(2)) - 1).max() < 1e-6\n"
        "def theirs(): assert abs(jnp.linalg.eigvalsh(jnp.eye(2)) - 1).max() < 1e-6\n"
    )
    done = subprocess.run([sys.executable, "-c", code + order], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_names_that_are_not_there():
    message = "module 'tapeless.numpy.linalg' has no attribute 'schur'.\n  It is tl.scipy.linalg.schur."
    with raises(AttributeError, message):
        _ = tnp.linalg.schur  # type: ignore[attr-defined]
    with raises(ImportError, message):
        exec("from tapeless.numpy.linalg import schur")


def test_eig():
    for a in (np.stack([A, T]), C, A.astype(np.float32)):
        w, v = tnp.linalg.eig(a)
        tolerance = 1e-5 if a.dtype == np.float32 else 1e-12
        np.testing.assert_allclose(a @ np.asarray(v), np.asarray(v) * np.asarray(w)[..., None, :], atol=20 * tolerance)
        np.testing.assert_allclose(np.sort_complex(w), np.sort_complex(np.linalg.eigvals(a)), atol=20 * tolerance)
        np.testing.assert_allclose(np.sort_complex(tnp.linalg.eigvals(a)), np.sort_complex(w), atol=20 * tolerance)
    assert w.dtype == v.dtype == np.complex64
    assert np.isnan(tnp.linalg.eigvals(np.array([[np.nan, 1.0], [0.0, 1.0]]))).all()
    assert tnp.linalg.eig(np.zeros((2, 0, 0))).eigenvectors.shape == (2, 0, 0)


@pytest.mark.parametrize(("a", "t"), [(A, T), (C, TC)], ids=["real", "complex"])
def test_derivatives_of_eig_follow_its_choice_of_vectors(a, t):
    pushed = tl.jvp(tnp.linalg.eig, (a,), (t,))[1]
    h = 1e-6
    for p, ahead, behind in zip(pushed, tnp.linalg.eig(a + h * t), tnp.linalg.eig(a - h * t)):
        np.testing.assert_allclose(p, (np.asarray(ahead) - np.asarray(behind)) / (2 * h), atol=1e-6)

    def f(a):
        w, v = tnp.linalg.eig(a)
        return (tnp.abs(v) ** 3).sum() + tnp.real(w**2).sum() + tnp.abs(tnp.linalg.eigvals(a)).sum()

    gradient = np.asarray(tl.grad(f)(a))
    np.testing.assert_allclose(np.sum(np.real(gradient * t)), tl.jvp(f, (a,), (t,))[1], rtol=1e-9)


def test_derivatives_of_eigenvalues_of_every_order_and_where_they_are_equal():
    powers = tl.hessian(lambda a: tnp.real((tnp.linalg.eigvals(a) ** 3).sum()))(A)
    traces = tl.hessian(lambda a: tnp.trace(a @ a @ a))(A)
    np.testing.assert_allclose(powers, traces, atol=1e-9)
    both = tl.grad(lambda a: tnp.real((tnp.linalg.eig(a)[0] ** 2).sum()))(np.eye(3))
    np.testing.assert_allclose(both, 2 * np.eye(3), atol=1e-12)
    assert np.isfinite(tl.grad(lambda a: tnp.abs(tnp.linalg.eig(a)[1]).sum())(np.eye(3))).all()


def test_derivatives_of_vectors_are_promised():
    message = (
        "eig: eigenvectors of general matrices have a derivative only where eigenvalues differ: float64[4,4].\n"
        "  Pass enable_eigvec_derivs=True to promise that they do, or ask for eigenvalues alone."
    )
    with raises(NotImplementedError, message):
        tl.jvp(lambda a: spectral.eig(a)[0], (A,), (T,))
    with raises(NotImplementedError, "eig: implementation=qr: LAPACK has None, EigImplementation.LAPACK."):
        spectral.eig(A, implementation="qr")
    _, vl, vr = spectral.eig(A, enable_eigvec_derivs=True)
    overlaps = np.conj(np.swapaxes(vl, -1, -2)) @ np.asarray(vr)
    np.testing.assert_allclose(overlaps * (1 - np.eye(4)), 0, atol=1e-12)
