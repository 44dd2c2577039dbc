"""cg, bicgstab and gmres: real and complex systems, pytrees, preconditioners, derivatives, bad input."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import tapeless as tl
from tapeless.index import SparseArray
from tapeless.scipy.sparse.linalg import bicgstab, cg, gmres

N = 8
RNG = np.random.default_rng(0)
REAL = RNG.normal(size=(N, N))
COMPLEX = REAL + 1j * RNG.normal(size=(N, N))
METHODS: list[tuple[Any, dict[str, Any]]] = [
    (cg, {}),
    (bicgstab, {}),
    (gmres, {}),
    (gmres, {"solve_method": "incremental", "restart": 5}),
]


def system(f: Any, a: Any) -> Any:
    return a @ a.conj().T + np.eye(N) if f is cg else a + 6 * np.eye(N)


@pytest.mark.parametrize("a", [REAL, COMPLEX], ids=["real", "complex"])
def test_solutions(a: Any):
    b = a[0]
    cases = [(f, options, system(f, a), m) for f, options in METHODS for m in (False, True)]

    @tl.jit
    def every() -> Any:
        inverse = [np.diag(1 / np.diag(s)) if m else None for _, _, s, m in cases]
        return [f(s, b, tol=1e-12, M=p, **o)[0] for (f, o, s, _), p in zip(cases, inverse, strict=True)]

    for found, (_, _, s, _) in zip(every(), cases, strict=True):
        assert found.dtype == a.dtype
        np.testing.assert_allclose(found, np.linalg.solve(s, b), rtol=1e-6, atol=1e-8)


def test_pytrees_and_where_to_begin():
    s = system(cg, REAL)
    b = {"a": REAL[0], "b": [np.ones((2, 2))]}
    apply = lambda t: {"a": s @ t["a"], "b": [2 * t["b"][0]]}  # noqa: E731
    for x, info in tl.jit(lambda: [f(apply, b, tol=1e-12, **options) for f, options in METHODS[2:]])():
        np.testing.assert_allclose(x["a"], np.linalg.solve(s, b["a"]), rtol=1e-6)
        np.testing.assert_allclose(x["b"][0], np.full((2, 2), 0.5), rtol=1e-6)
        assert info is None or int(info) == 0
    right = np.linalg.solve(s, REAL[0])
    every = tl.jit(lambda: [(f(s, np.zeros(N), **o)[0], f(s, REAL[0], right, maxiter=1, **o)[0]) for f, o in METHODS])
    for nothing, same in every():
        np.testing.assert_array_equal(nothing, np.zeros(N))
        np.testing.assert_allclose(same, right, rtol=1e-9)
    assert int(gmres(np.eye(2), np.array([np.nan, 1]))[1]) == -1


def test_steps_are_those_of_jax():
    theirs = pytest.importorskip("jax.scipy.sparse.linalg")
    b = REAL[0].astype(np.float32)
    for f, options in (*METHODS[:2], (gmres, {"restart": 3})):
        a = system(f, REAL).astype(np.float32)
        found, right = f(a, b, maxiter=2, **options)[0], getattr(theirs, f.__name__)(a, b, maxiter=2, **options)[0]
        np.testing.assert_allclose(found, right, rtol=1e-3, atol=1e-4)


def test_derivatives():
    b = REAL[0, :3]
    for f, options in METHODS[:3]:
        a = REAL[:3, :3] @ REAL[:3, :3].T + np.eye(3)
        solve = tl.jit(lambda m, b, f=f, o=options: f((m + m.T) / 2 if f is cg else m, b, tol=1e-14, **o)[0])
        tl.testing.check_grads(solve, (a, b), 1, rtol=1e-5, atol=1e-6, eps=1e-4)


def laplacian(n: int) -> Any:
    return scipy.sparse.diags([-np.ones(n - 1), 2.5 * np.ones(n), -np.ones(n - 1)], [-1, 0, 1], format="csr")


def test_sparse_matrices():
    """Matrices of SciPy and of the index language; the gradient by the values is that of the dense solution."""
    a, b = laplacian(N), REAL[0]
    right, s = np.linalg.solve(a.toarray(), b), SparseArray.from_scipy(a)
    for x in tl.jit(lambda b: [f(a, b, rtol=1e-12)[0] for f in (cg, bicgstab, gmres)] + [cg(s, b, M=s, rtol=1e-12)[0]])(
        b
    ):
        np.testing.assert_allclose(x, right, rtol=1e-6, atol=1e-8)
    values, of_b = tl.jit(tl.grad(lambda s, b: (cg(s, b, rtol=1e-12)[0] ** 2).sum(), (0, 1)))(s, b)
    ct = np.linalg.solve(a.toarray(), 2 * right)
    np.testing.assert_allclose(of_b, ct, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(values.values, -ct[s.coords[0]] * right[s.coords[1]], rtol=1e-6, atol=1e-8)


def test_bad_input():
    for message, error, call in [
        (r"cg: A must be a square matrix, not float64\[2,3\]", ValueError, lambda: cg(np.ones((2, 3)), np.ones(2))),
        (r"cg: A must be a square matrix, not SparseArray", ValueError, lambda: cg(laplacian(3)[:2], np.ones(3))),
        ("gmres: M must be a function or a matrix, not str", TypeError, lambda: gmres(REAL, REAL[0], M="M")),
        (r"bicgstab: x0 has float64\[2\] where b has", ValueError, lambda: bicgstab(REAL, REAL[0], np.ones(2))),
        ("cg: x0 and b differ in structure", ValueError, lambda: cg(REAL, REAL[0], [REAL[0]])),
        ("gmres: solve_method must be", ValueError, lambda: gmres(REAL, REAL[0], solve_method="other")),
    ]:
        with pytest.raises(error, match=message):
            call()


def test_conjugate_gradients_ask_for_the_size_of_the_residual_once_a_step():
    """Without a preconditioner the step has computed it, and another pass over the residual takes as long as others."""
    going = str(tl.make_jaxpr(lambda b: cg(lambda x: 3 * x, b)[0])(np.ones(N))).partition("@going")[2]
    condition, _, rest = going.partition("in ")
    assert "sqrt" in condition and "reduce_sum" not in condition and "dot_general" not in condition
    assert rest.partition(" in ")[0].count("dot_general") == 2  # of the direction's image, and of the residual
