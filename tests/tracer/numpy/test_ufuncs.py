"""What ufuncs have beside their calls, against NumPy's; ufuncs of users' functions."""

import math

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tests.messages import raises

pytestmark = pytest.mark.usefixtures("eager_by_steps")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4)).astype(np.float32)
N = RNG.integers(1, 9, (3, 4)).astype(np.int32)
MASK = RNG.random((3, 4)) < 0.5
UFUNCS = sorted(
    name
    for name in tnp.__all__
    if isinstance(getattr(np, name, None), np.ufunc) and getattr(np, name).signature is None
)
ASSOCIATIVE = "add multiply maximum minimum logaddexp logaddexp2 hypot fmax".split()
OF_INTEGERS = "bitwise_and bitwise_or bitwise_xor gcd lcm add multiply".split()


def agree(found, wanted, rtol=2e-6):
    assert np.shape(found) == np.shape(wanted)
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=rtol, atol=1e-6)


@pytest.mark.parametrize("name", UFUNCS)
def test_attributes(name):
    ours, theirs = getattr(tnp, name), getattr(np, name)
    assert isinstance(ours, tnp.ufunc) and callable(ours.reduce)
    assert (ours.nin, ours.nout, ours.nargs, ours.identity) == (
        *(theirs.nin, theirs.nout, theirs.nargs, theirs.identity),
    )


def test_other_functions_are_none():
    assert not isinstance(tnp.sum, tnp.ufunc) and not isinstance(tnp.matmul, tnp.ufunc)


def reductions(lib):
    for name in ASSOCIATIVE:
        f = getattr(lib, name)
        yield from (f.reduce(X), f.reduce(X, 1, keepdims=True), f.reduce(X, axis=None if f.identity is not None else 0))
        yield f.reduce(X, 1, initial=0.5)
        if f.identity is not None:
            yield from (f.reduce(X, (0, 1)), f.reduce(X, 0, where=MASK), f.reduce(X[:0]))
    for name in OF_INTEGERS:
        f = getattr(lib, name)
        yield from (f.reduce(N), f.reduce(N, 1, initial=6), f.reduce(N, keepdims=True))
    for name in ("logical_and", "logical_or", "logical_xor"):
        f = getattr(lib, name)
        yield from (
            f.reduce(X > 0),
            f.reduce(N, 1, initial=False),
            f.reduce(MASK, None),
            f.reduce(MASK, 1, where=~MASK),
        )
    yield from (lib.logaddexp.reduce(N), lib.logaddexp2.reduce(N, 1), lib.logaddexp.reduce(N, initial=1))
    yield from (lib.logaddexp.reduce(np.array([v, -np.inf])) for v in (1.0, np.inf, -np.inf))
    yield from (lib.subtract.reduce(X, 1), lib.true_divide.reduce(X, 0))
    yield lib.subtract.reduce(N, 0, dtype=np.float32)
    for name in (*ASSOCIATIVE, "subtract", "true_divide"):  # what does not count is not `initial` again
        yield getattr(lib, name).reduce(X, 1, initial=2.0, where=MASK)
        yield getattr(lib, name).reduce(X, 0, initial=2.0, where=MASK[:, :1])


def accumulations(lib):
    for name in (*ASSOCIATIVE, "subtract", "true_divide"):
        f = getattr(lib, name)
        yield from (f.accumulate(X), f.accumulate(X, 1), f.accumulate(X[:1]), f.accumulate(X[:0], 0))
    yield from (
        lib.logaddexp.accumulate(N),
        lib.logical_xor.accumulate(MASK, 1),
        lib.bitwise_or.accumulate(N),
        lib.add.accumulate(N, dtype=np.float32),
    )


AT = [0, 2, 2, 1, 3]


def parts(lib):
    for name in ("add", "multiply", "maximum", "subtract", "hypot"):
        f = getattr(lib, name)
        yield from (f.reduceat(X, np.array(AT), 1), f.reduceat(X, np.array([1, 0]), 0), f.reduceat(X, AT[:1], axis=1))
    yield lib.add.reduceat(N, np.array(AT), axis=-1, dtype=np.float32)
    for name in ("add", "hypot", "less", "logaddexp", "arctan2"):
        yield getattr(lib, name).outer(X, X[0])
    yield from lib.divmod.outer(N, N[0, :2])


@pytest.mark.parametrize("calls", [reductions, accumulations, parts])
def test_against_numpy(calls):
    found = tl.jit(lambda: list(calls(tnp)))()
    for ours, theirs in zip(found, calls(np), strict=True):
        agree(ours, theirs)


def written(lib, f, x, *args):
    if lib is tnp:
        return f.at(x, *args, inplace=False)
    x = x.copy()
    f.at(x, *args)
    return x


def writes(lib):
    v = X[0]
    for name in ("add", "subtract", "multiply", "maximum", "minimum", "true_divide", "hypot"):
        f = getattr(lib, name)
        yield from (written(lib, f, X, [0, 2, 0], 2.0), written(lib, f, v, np.array([1, 1, -1]), X[1, :3]))
        yield from (written(lib, f, X, (slice(None), [1, 1]), X[:, :2]), written(lib, f, X, MASK, np.float32(3)))
    yield from (written(lib, lib.negative, v, [0, 0, 1]), written(lib, lib.square, X, (1, slice(1, 3))))


def test_at_against_numpy():
    for ours, theirs in zip(tl.jit(lambda: list(writes(tnp)))(), writes(np), strict=True):
        agree(ours, theirs, 1e-5)


def test_derivatives_in_both_modes(rng: np.random.Generator):
    t = rng.normal(size=X.shape).astype(np.float32)

    def f(x):
        parts = [tnp.hypot.reduce(x), tnp.logaddexp.accumulate(x, 1), tnp.multiply.reduceat(x, [0, 2, 1], 1)]
        return sum(tnp.sin(p).sum() for p in parts) + tnp.arctan2.at(x, [0, 0], x[1], inplace=False).sum()

    gradient = np.asarray(tl.grad(f)(X), np.float64)
    assert tl.jvp(f, (X,), (t,))[1] == pytest.approx(float((gradient * t).sum()), rel=1e-4)
    wide, h = X.astype(np.float64), 1e-6
    difference = (float(f(wide + h * t)) - float(f(wide - h * t))) / (2 * h)
    assert float((gradient * t).sum()) == pytest.approx(difference, rel=1e-4)
    np.testing.assert_allclose(tl.vmap(tnp.subtract.reduce)(X), np.subtract.reduce(X, 1), rtol=1e-6)


def test_functions_of_users():
    norm = tnp.frompyfunc(lambda x, y: tnp.sqrt(x * x + y * y), 2, 1, identity=0)
    assert isinstance(norm, tnp.ufunc) and (norm.nin, norm.nout, norm.identity) == (2, 1, 0)
    agree(norm(X, X[0]), np.hypot(X, X[0]))
    agree(norm.reduce(X, 1), np.hypot.reduce(X, 1))
    agree(norm.outer(X[0], X[1]), np.hypot.outer(X[0], X[1]))
    both = tnp.frompyfunc(lambda x: (x + 1, 2 * x), nin=1, nout=2)
    agree(both(X)[1], 2 * X)
    agree(tl.grad(lambda x: norm.reduce(x, None))(X), X / np.linalg.norm(X), 1e-5)
    assert repr(norm) == "<tapeless.numpy.ufunc '<lambda>'>"


def test_what_is_refused():
    with raises(ValueError, "sin.reduce: two operands with one result are needed, not 1 with 1."):
        tnp.sin.reduce(X)
    with raises(ValueError, "add.at: arrays are never changed in place; pass inplace=False."):
        tnp.add.at(X, 0, 1.0)
    with raises(ValueError, "subtract.reduce: there is no identity; float32[3,4] over axes (0, 1) needs initial."):
        tnp.subtract.reduce(X, (0, 1))
    with raises(ValueError, "hypot.outer: there must be two operands, not 1."):
        tnp.ufunc(math.hypot, 1, 1, "hypot").outer(X, X)
    with raises(TypeError, "bitwise_and.reduce: elements must be integers or booleans, not float32[3,4]."):
        tnp.bitwise_and.reduce(X)
    with raises(TypeError, "negative.at: there are 1 operands, so b is not needed."):
        tnp.negative.at(X, 0, 1.0, inplace=False)
    for f in (
        lambda: tnp.frompyfunc(3, 1, 1),
        lambda: tnp.add.reduceat(X, [0.5]),
        lambda: tnp.add.at(X, 0, inplace=False),
    ):
        with pytest.raises(TypeError):
            f()
    for f in (lambda: tnp.add.reduceat(X, [7]), lambda: tnp.add.accumulate(X, 2)):
        with pytest.raises((IndexError, ValueError)):
            f()
