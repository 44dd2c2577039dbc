"""Constants of NumPy's that are functions of their indices, as equations: recognized exactly, element by element."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.interpreters.structured_constants import structure, with_structure
from tests.stepping import by_steps

N = np.arange(7)
STRUCTURED: dict[str, Any] = {
    "identity": np.eye(5),
    "off-diagonal": np.eye(4, 7, 2, dtype=np.int8),
    "in a corner": np.eye(5, k=-4),
    "antidiagonal": np.eye(6)[::-1],
    "below an antidiagonal": np.tri(6)[::-1],
    "triangle": np.tri(5, 3, -1, dtype=bool),
    "upper triangle": np.triu(np.ones((6, 6), np.float32), 1),
    "band": np.tri(6, k=1) - np.tri(6, k=-3),
    "attention mask": np.tri(5, dtype=bool)[None, None],
    "repeated identity": np.broadcast_to(np.eye(3), (2, 3, 3)),
    "one-hot": np.arange(5) == 3,
    "prefix": (np.arange(6) < 4).astype(np.float16),
    "window": (np.abs(np.arange(9) - 4) < 2).astype("complex64").real,
    "rows": np.repeat([[0.0], [1.0], [1.0]], 4, 1),
    "range": np.arange(5),
    "range of floats": np.arange(9.0) * -2 + 3,
    "range of bytes": np.arange(5, dtype=np.uint8)[::-1] * 50,
    "range of narrow floats": np.arange(-250, 250, 10).astype(ml_dtypes.bfloat16),
    "flat positions": np.arange(20).reshape(4, 5),
    "rows of positions": np.indices((4, 5))[0],
    "ones": np.ones((2, 3)),
    "zeros": np.zeros(4, np.int32),
    "truths": np.ones((3, 1), bool),
    "falsehoods": np.zeros(4, bool),
}


def _changed(x: Any, at: Any, value: Any) -> Any:
    x = x.copy()
    x[at] = value
    return x


OTHERS: dict[str, Any] = {
    "one element off": _changed(np.eye(400), (399, 0), 1),
    "one nan": _changed(np.eye(40), (39, 39), np.nan),
    "negative zero": _changed(np.eye(5), (4, 0), -0.0),
    "negative zeros": -np.zeros(5),
    "negative zero in a range": np.arange(3.0) * -1,
    "almost one": _changed(np.eye(5), (2, 2), 1 + 1e-15),
    "infinite range": np.array([0, 1, np.inf]),
    "range that ends otherwise": np.array([0, 1, 2, 4]),
    "range that turns": np.array([0, 1, 5, 3]),
    "two ranges": np.array([1, 0, 1, 0]),
    "off-diagonal ones": 1 - np.eye(4),
    "fractions": np.linspace(0, 1, 5),
    "range that wraps around": np.arange(125, 131).astype(np.int8),
    "rounded range": np.arange(300).astype(ml_dtypes.bfloat16),
    "of large steps": np.array([0, 2**31, 2**32]),
    "by chance": np.array([3.0, 5.0]),
    "of few rows": np.array([[1, 0, 0], [0, 1, 0]]),
    "empty": np.zeros((0, 3)),
    "three axes": np.indices((3, 3, 3)).sum(0) == 2,
    "complex": np.eye(3, dtype=complex),
    "symmetric": np.array([[1, 0, 1], [0, 1, 0], [1, 0, 1]]),
    "outer": np.outer(np.arange(4), np.arange(4)),
}


@pytest.mark.parametrize("name", STRUCTURED)
def test_written_as_equations(name: str):
    x = STRUCTURED[name]
    given = tl.make_jaxpr(lambda: lax.optimization_barrier(x))()
    found = with_structure(given)
    assert given.consts and not found.consts
    ((value,),) = [by_steps(found.jaxpr, [])]
    assert found.out_avals == given.out_avals and value.dtype == given.out_avals[0].dtype
    np.testing.assert_array_equal(np.asarray(value), x)


@pytest.mark.parametrize("name", OTHERS)
def test_others_stay_constants(name: str):
    given = tl.make_jaxpr(lambda: lax.optimization_barrier(OTHERS[name]))()
    assert with_structure(given) is given


def test_some_of_several():
    """Constants are in their order, before the arguments; results may be constants."""
    a, b = np.array([2.0, 7.0, 1.0]), np.array([[0.5, 3.0, 1.0]])
    f = tl.jit(lambda x, y: (np.eye(3) @ x + a, N, b * y - np.tri(3)))
    for found, expected in zip(f(a, b), (2 * a, N, b * b - np.tri(3)), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert len(f.trace(a, b).to_compile.consts) == 2
    assert f.lower(a, b).compile()(a, b)[1].tolist() == N.tolist()


def test_donated_arguments_follow():
    mask, other, x = np.tri(4), np.array([1.0, 5.0, 2.0, 3.0]), tnp.asarray(np.arange(4.0))
    f = tl.jit(lambda y: (mask * other) @ y, donate_argnums=0)
    np.testing.assert_allclose(f(x), (mask * other) @ np.arange(4.0))
    assert x.is_deleted()


def test_arrays_that_change_later():
    """As any constant, it is what it was when the program was traced."""
    x = np.eye(3)
    f = tl.jit(lambda y: x @ y)
    f(np.ones(3))
    x[:] = 0
    np.testing.assert_array_equal(f(np.ones(3)), np.ones(3))


def test_random_near_misses():
    """What is recognized of arrays near structured ones is what they are."""
    random = np.random.default_rng(0)
    for _ in range(400):
        n, m = random.integers(1, 7, 2)
        x = np.tri(n, m, random.integers(-3, 4)) - np.tri(n, m, random.integers(-3, 4)) * random.integers(0, 2)
        x = x[:: random.choice([-1, 1])] if random.integers(2) else np.add.outer(*[np.arange(k) * 2 for k in (n, m)])
        x = x.astype(random.choice(["float32", "int8", "bool"]))
        if random.integers(2):
            x[random.integers(n), random.integers(m)] = random.integers(0, 3)
        given = tl.make_jaxpr(lambda x=x: lax.optimization_barrier(x))()
        found = with_structure(given)
        (value,) = by_steps(found.jaxpr, found.consts)
        assert (found is given) == (structure(x) is None)
        np.testing.assert_array_equal(np.asarray(value), x)
