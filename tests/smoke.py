"""The whole path once, without a test framework: `python tests/smoke.py` on an installed tapeless, in seconds.

For stacks on which the full test-suite is not run: trace, linearize, transpose, compile, run, ahead of time, eagerly.
"""

import pickle
from importlib.metadata import version

import numpy as np

import tapeless as tl
import tapeless.numpy as tnp


@tl.custom_jvp
def cube(x):
    return x**3


@cube.defjvp
def cube_jvp(primals, tangents):
    return cube(*primals), 3 * primals[0] ** 2 * tangents[0]


def energy(params, x):
    hidden = tnp.tanh(x @ params["w"] + params["b"])
    return tnp.sum(cube(hidden)) + tnp.max(x[:, 0])


PARAMS = {"w": np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3), "b": np.zeros(3, np.float32)}
X = np.array([[0.5, -1.0], [2.0, 0.25]], np.float32)


def close(actual, expected, rtol=1e-5):
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=rtol)


def gradients():
    value, gradient = tl.jit(tl.value_and_grad(energy))(PARAMS, X)
    hidden = np.tanh(X @ PARAMS["w"])
    close(value, (hidden**3).sum() + 2.0)
    close(gradient["w"], X.T @ (3 * hidden**2 * (1 - hidden**2)))
    _, tangent = tl.jvp(lambda x: energy(PARAMS, x), (X,), (np.ones_like(X),))
    close(tl.grad(energy, argnums=1)(PARAMS, X).sum(), tangent)
    close(tl.grad(tl.grad(tl.grad(tnp.sin)))(1.0), -np.cos(1.0))


def ahead_of_time():
    lowered = tl.jit(energy).lower(PARAMS, X)
    assert "stablehlo" in lowered.as_text()
    close(lowered.compile()(PARAMS, X), energy(PARAMS, X))


def arrays():
    x = tnp.arange(6.0).reshape(2, 3)
    close(x.at[0, 1].set(10.0)[0], [0, 10, 2])
    close(x[[1, 0], 2], [5, 2])
    close(pickle.loads(pickle.dumps(x)), x)
    close(np.from_dlpack(x), x)
    wide = tnp.asarray(np.array([1.0, 1e-17]))
    assert wide.dtype == np.float64 and float((wide / 3)[0]) == 1 / 3


def random_bits():
    """The first bits of threefry2x32 under key 0, from the reference implementation."""
    assert np.asarray(tl.random.bits(tl.random.key(0))).tolist() == 4070199207


def formulas():
    """For all sizes: nothing of them branches on one, which is for Python to say."""
    n = tl.index.size("n")
    A, x = tl.index.Space("A", (n, n), symmetries="symmetric"), tl.index.Space("x", (n,))
    found = tl.index.grad(lambda x, A: x @ A @ x)(x, A).simplify()
    assert str(found) == "2 * Σ[j<n] A[a,j] * x[j]\n  if A[i,j] = A[j,i]", found
    try:
        tl.index.cost(lambda x: x.sum() if len(x) > 100 else x, x)
    except ValueError as error:
        assert "They branch on a size at" in str(error), error
    else:
        raise AssertionError("a branch on a size was not found")


def main():
    for check in (gradients, ahead_of_time, arrays, random_bits, formulas):
        check()
        print(f"{check.__name__}: ok")
    print(f"tapeless {version('tapeless')} on jaxlib {version('jaxlib')}, numpy {np.__version__}, {tl.devices()[0]}")


if __name__ == "__main__":
    main()
