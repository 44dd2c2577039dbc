"""Values that pass a barrier and are read beside it, compiled as users compile: in programs, steps, branches, calls."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax

pytestmark = pytest.mark.usefixtures("optimized")
C, X = np.arange(4.0).reshape(2, 2), np.array([0.5, 0.4])


def behind(x: Any) -> Any:
    return lax.optimization_barrier(x)


def beside(b: Any) -> Any:
    """A kernel that reads a value in reverse, and what passed a barrier of it as it is."""
    return behind(2 * b[::-1] + behind(b))


def logical(c: Any, x: Any) -> Any:
    b = c @ x > 0.5
    return behind(b[::-1] ^ behind(b))


def stepped(c: Any, x: Any) -> Any:
    return lax.scan(lambda s, _: (tnp.sin(beside(c @ s)), None), x, None, length=3)[0]


def branched(c: Any, x: Any) -> Any:
    b = c @ x
    return lax.cond(x[0] > 0, beside, lambda b: b, b)


def called(c: Any, x: Any) -> Any:
    f = tl.jit(beside)
    return f(c @ x) + f(c @ x + 1)


def checkpointed(c: Any, x: Any) -> Any:
    def value(x: Any) -> Any:
        b = c @ x
        return tnp.sum(b[::-1] * tl.checkpoint(lambda b: tnp.sin(b) * b)(b))

    return tl.grad(value)(x)


PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "floats": lambda c, x: beside(c @ x),
    "integers": lambda c, x: beside((10 * (c @ x)).astype("int32")),
    "unsigned integers": lambda c, x: beside((10 * (c @ x)).astype("uint8")),
    "bfloat16": lambda c, x: beside((c @ x).astype("bfloat16")),
    "complex numbers": lambda c, x: beside(c @ x + 1j * x),
    "truth values": logical,
    "in steps": stepped,
    "in branches": branched,
    "in calls": called,
    "a checkpoint": checkpointed,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_behind_and_beside(name: str):
    """Step by step nothing is fused, and each value has a buffer of its own."""
    f = PROGRAMS[name]
    found, expected = np.asarray(tl.jit(f)(C, X)), np.asarray(f(C, X))
    np.testing.assert_allclose(found.astype(complex), expected.astype(complex), rtol=1e-6)  # sums in another order


def test_a_donated_argument():
    def f(x: Any) -> Any:
        return beside(x)

    x = tnp.asarray(np.arange(64.0))
    expected = np.asarray(f(x))
    np.testing.assert_array_equal(tl.jit(f, donate_argnums=0)(x), expected)


def test_arguments_that_stay_are_not_copied():
    """Parameters of a checkpointed network are as large as the network."""
    text = tl.jit(lambda x: tnp.sum(behind(x) * 2)).lower(tl.ShapeDtypeStruct((1000,), "float32")).as_text()
    assert "optimization_barrier" in text
    assert "bitcast_convert" not in text
