"""Arrays in the hands of other libraries: NumPy's functions, SciPy's optimizers, and those that read arrays.

Each is skipped where it is not installed. Torch's are in tests/lowering/test_torch.py.
"""

import array
import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp

X = np.arange(6.0, dtype=np.float32).reshape(2, 3) - 2


@pytest.mark.parametrize("name", "sin mean std sort argsort linalg.norm abs where".split())
def test_functions_of_numpy_take_arrays(name):
    f = np
    for part in name.split("."):
        f = getattr(f, part)
    args = (X > 0, X, -X) if name == "where" else (X,)
    found, wanted = f(*map(tnp.asarray, args)), f(*args)  # some ask arrays for the method of that name
    assert found.dtype == (np.int32 if name == "argsort" else wanted.dtype)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_numpy_joins_and_writes_them():
    x = tnp.asarray(X)
    assert np.concatenate([x, X]).shape == (4, 3) and np.stack([x, x]).shape == (2, 2, 3)
    buffer = np.zeros((2, 3))
    buffer[...] = x
    np.testing.assert_array_equal(buffer, X)
    buffer[tnp.asarray([0, 1]), tnp.asarray([1, 2])] = 9
    assert buffer[0, 1] == buffer[1, 2] == 9
    assert np.from_dlpack(x).ctypes.data == x.unsafe_buffer_pointer() and not np.asarray(x).flags.writeable
    assert (np.ones((2, 3), np.float32) * x).dtype == np.float32 and isinstance(X + x, tl.Array)
    assert list(range(tnp.asarray(3))) == [0, 1, 2] and f"{tnp.asarray(1.5):.2f}" == "1.50"


def test_memory_of_pythons_own():
    for x in (array.array("i", [1, -2]), memoryview(b"ab"), array.array("d")):
        np.testing.assert_array_equal(tnp.asarray(x), np.asarray(x))
    for text in (b"ab", bytearray(b"ab"), "ab"):
        with pytest.raises(TypeError, match="is not an array, a number or a list of these"):
            tnp.asarray(text)


def test_copies_and_pickles():
    x = tnp.asarray(X)
    for y in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert isinstance(y, tl.Array) and y is not x
        np.testing.assert_array_equal(y, X)


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


@pytest.mark.parametrize("method", ["BFGS", "L-BFGS-B", "trust-ncg"])
def test_scipy_minimizes(method):
    optimize = pytest.importorskip("scipy.optimize")
    with tl.enable_x64():
        more = {"hess": tl.jit(tl.hessian(rosenbrock))} if method == "trust-ncg" else {}
        found = optimize.minimize(tl.jit(tl.value_and_grad(rosenbrock)), np.zeros(4), jac=True, method=method, **more)
        assert found.success
        np.testing.assert_allclose(found.x, 1.0, atol=1e-3)


def test_scipy_finds_roots_integrates_and_fits():
    optimize, integrate = pytest.importorskip("scipy.optimize"), pytest.importorskip("scipy.integrate")

    def f(x):
        return tnp.array([x[0] + 2 * x[1] - 2, x[0] ** 2 + 4 * x[1] ** 2 - 4])

    found = optimize.root(tl.jit(f), np.array([1.0, 2.0]), jac=tl.jit(tl.jacfwd(f)))
    np.testing.assert_allclose(f(found.x), 0.0, atol=1e-8)
    fitted = optimize.curve_fit(tl.jit(lambda x, a, b: a * tnp.exp(b * x)), X[1], 2 * np.exp(-X[1]), p0=(1.0, -0.5))[0]
    np.testing.assert_allclose(fitted, [2.0, -1.0], rtol=1e-3)
    solved = integrate.solve_ivp(tl.jit(lambda t, y: -y), (0, 1), np.ones(1), rtol=1e-8)
    np.testing.assert_allclose(solved.y[0, -1], np.exp(-1.0), rtol=1e-6)


BESIDE_JAX = """
import numpy as np, jax, jax.numpy as jnp, tapeless as tl, tapeless.numpy as tnp
theirs = jnp.arange(8.0)
ours = tl.from_dlpack(theirs, copy=False)
assert ours.unsafe_buffer_pointer() == theirs.unsafe_buffer_pointer()
back = jnp.from_dlpack(ours)
assert back.unsafe_buffer_pointer() == ours.unsafe_buffer_pointer()
np.testing.assert_array_equal(back, np.arange(8.0))
assert tnp.from_dlpack(theirs, copy=True).unsafe_buffer_pointer() != theirs.unsafe_buffer_pointer()
np.testing.assert_allclose(jax.jit(jnp.sin)(np.asarray(ours)), tl.jit(tnp.sin)(tl.from_dlpack(theirs)), rtol=1e-6)
"""


def test_arrays_are_shared_with_jax():
    pytest.importorskip("jax")
    done = subprocess.run([sys.executable, "-c", BESIDE_JAX], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_pandas_takes_arrays():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"x": tnp.arange(3), "y": tnp.ones(3)})
    assert table["x"].tolist() == [0, 1, 2] and table["y"].dtype == np.float32
    assert pandas.DataFrame(tnp.asarray(X)).shape == (2, 3) and pandas.Series(tnp.ones(2)).sum() == 2.0
    np.testing.assert_array_equal(tnp.asarray(table["y"].to_numpy()), [1.0, 1.0, 1.0])


def test_matplotlib_draws_arrays():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    figure = pytest.importorskip("matplotlib.figure").Figure()
    axes = figure.subplots()
    line = axes.plot(tnp.arange(3), tnp.sin(tnp.arange(3.0)))[0]
    np.testing.assert_allclose(line.get_ydata(), np.sin(np.arange(3.0)), rtol=1e-6)
    axes.imshow(tnp.asarray(X))
    axes.hist(tnp.ones(4))
    axes.fill_between(tnp.arange(3), tnp.zeros(3), tnp.ones(3))
    figure.canvas.draw()


def test_sklearn_fits_arrays():
    linear_model = pytest.importorskip("sklearn.linear_model")
    model = linear_model.LinearRegression().fit(tnp.arange(4.0)[:, None], 2 * tnp.arange(4.0))
    np.testing.assert_allclose(model.predict(tnp.asarray([[5.0]])), [10.0], rtol=1e-5)


def test_methods_of_numpys_arrays():
    x = tnp.asarray(X)
    assert x.tobytes() == X.tobytes() and x.tobytes("F") == X.tobytes("F")
    assert 3.0 in x and 7.0 not in x and np.float32(-2) in x
    np.testing.assert_array_equal(tnp.asarray([1, 0]).choose([X[0, :2], X[1, :2]]), [X[1, 0], X[0, 1]])
    kept = tl.jit(lambda x, m: x.compress(m, 1, size=2, fill_value=9))(x, np.array([False, True, False]))
    np.testing.assert_array_equal(kept, [[-1, 9], [2, 9]])
    with pytest.raises(TypeError, match="traced"):
        tl.jit(lambda x: 3.0 in x)(x)


def test_arrays_that_are_given_to_jax_say_so():
    jax = pytest.importorskip("jax")
    said = "an array of Tapeless was given to JAX, or to a library that was imported with it, such as optax.\n"
    x = tnp.ones(3)
    for f in (jax.numpy.zeros_like, jax.typeof, jax.vmap(lambda x: x), jax.device_put, jax.numpy.flip):
        with pytest.raises(TypeError) as caught:
            f(x)
        assert said in f"{caught.value}\n{caught.value.__cause__}"
    for f in (jax.numpy.asarray, jax.numpy.array, np.asarray):
        assert f(x).tolist() == [1, 1, 1]
    assert not hasattr(x, "__jax_array__")
