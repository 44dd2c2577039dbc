"""Errors about operands that do not fit name the function that was called, and the operands that it was given."""

import operator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tests.messages import text_of

A, B, V, X = tnp.ones((2, 3)), tnp.ones((4, 5)), tnp.ones(4), tnp.ones(3)
MASK, INTEGERS = tnp.ones(3, bool), tnp.ones(3, int)
CONTRACTED = "contracted axes differ in size: axis"

CASES = [
    (lambda: tl.lax.select(MASK, X, V), ValueError,
     "select: operands differ in shape: float32[3] and float32[4]. Broadcast them first."),
    (lambda: tl.lax.select(tnp.ones(4, bool), X, X), ValueError,
     "select: operands differ in shape: bool[4] and float32[3] and float32[3]. Broadcast them first."),
    (lambda: tl.lax.select(MASK, X, INTEGERS), TypeError,
     "select: operands differ in dtype: float32[3] and int32[3]. Convert with astype."),
    (lambda: tl.lax.select(X, X, X), TypeError,
     "select: pred must be bool, not float32[3], to choose between float32[3] and float32[3]."),
    (lambda: tnp.select([MASK], [V]), ValueError, "select: shapes (3,) and (4,) and () do not broadcast."),
    (lambda: tnp.matvec(A, V), TypeError,
     f"matvec: {CONTRACTED} 1 of float32[2,3] has 3, axis 0 of float32[4] has 4."),
    (lambda: tnp.matvec(tnp.ones((2, 3, 3)), tnp.ones((4, 3))), ValueError,
     "matvec: the leading axes of float32[2,3,3] and float32[4,3] do not broadcast: (2,) and (4,)."),
    (lambda: tnp.vecmat(V, A), TypeError,
     f"vecmat: {CONTRACTED} 0 of float32[4] has 4, axis 0 of float32[2,3] has 2."),
    (lambda: tnp.vecmat(tnp.ones((4, 3)), tnp.ones((2, 3, 3))), ValueError,
     "vecmat: the leading axes of float32[4,3] and float32[2,3,3] do not broadcast: (4,) and (2,)."),
    (lambda: tnp.linalg.multi_dot([X, B, V]), TypeError,
     f"multi_dot: {CONTRACTED} 0 of float32[3] has 3, axis 0 of float32[4,5] has 4."),
    (lambda: tnp.linalg.multi_dot([A, tnp.ones((3, 4)), tnp.ones((5, 6)), tnp.ones((6, 1))]), TypeError,
     f"multi_dot: {CONTRACTED} 1 of float32[3,4] has 4, axis 0 of float32[5,6] has 5."),
    (lambda: tnp.vdot(A, B), TypeError,
     "vdot: the numbers of elements differ: float32[2,3] has 6, float32[4,5] has 20."),
    (lambda: tnp.cov(A, V), ValueError,
     "cov: the numbers of observations differ: float32[2,3] has 3, float32[4] has 4."),
    (lambda: tnp.corrcoef(A, V), ValueError,
     "corrcoef: the numbers of observations differ: float32[2,3] has 3, float32[4] has 4."),
    (lambda: tnp.polyval(A, B), ValueError, "polyval: shapes (3,) and (4,5) do not broadcast."),
    (lambda: tnp.piecewise(X, [tnp.ones(4, bool)], [1.0]), ValueError,
     "piecewise: shapes (3,) and (4,) do not broadcast."),
    (lambda: tnp.trapezoid(X, V), ValueError,
     "trapezoid: y, float32[3], and x, float32[4], do not have as many samples along the axis -1."),
    (lambda: tnp.hypot(tnp.ones(2, complex), 2.0), TypeError,
     "hypot: operands must be real, not complex64[2] and float32[]: take tnp.abs of complex ones."),
    (lambda: tnp.trapezoid(A, dx=V), ValueError,
     "trapezoid: dx, float32[4], does not broadcast to (2, 2), the gaps of y, float32[2,3]."),
    (lambda: tnp.trapezoid(A, tnp.ones(3), axis=0), ValueError,
     "trapezoid: y, float32[2,3], and x, float32[3], do not have as many samples along the axis 0."),
    (lambda: tnp.bincount(INTEGERS, V), ValueError, "bincount: weights float32[4] must have the shape of x, int32[3]."),
]  # fmt: skip


@pytest.mark.parametrize("call, kind, message", CASES)
def test_messages_name_the_function_and_its_operands(call, kind, message):
    for run in (call, tl.jit(call)):
        with pytest.raises(kind) as caught:
            run()
        assert text_of(caught.value).partition("\n")[0] == message
        assert caught.value.__cause__ is None and (caught.value.__suppress_context__ or not caught.value.__context__)


def test_what_fits_still_does():
    assert float(tnp.trapezoid(A, tnp.array([0.0, 2.0]), axis=1).sum()) == 8.0  # one step for all
    assert tnp.bincount(INTEGERS, 2.0).tolist() == [0, 6]
    assert tl.lax.select(True, X, 0.0).tolist() == [1, 1, 1]
    assert tnp.matvec(tnp.ones((5, 1, 2, 3)), tnp.ones((4, 3))).shape == (5, 4, 2)


def test_operands_of_several_dtypes_are_promoted():
    """Sizes are checked of what is promoted."""
    a, b = np.arange(6.0, dtype=np.float32).reshape(2, 3), np.array([[True, False], [True, True], [False, True]])
    np.testing.assert_array_equal(tnp.matvec(b, a[:, 0]), b @ a[:, 0])
    np.testing.assert_array_equal(tnp.vecmat(a[:, 0], b.T), a[:, 0] @ b.T)
    np.testing.assert_array_equal(tnp.linalg.multi_dot([a, b, np.arange(2)]), a @ b @ np.arange(2))
    np.testing.assert_array_equal(tnp.vdot(b[0], a[0, :2]), a[0, 0])


class Pair(NamedTuple):
    a: tl.Array
    b: tl.Array


@tl.tree_util.register_dataclass
@dataclass
class Model:
    w: tl.Array


@pytest.mark.parametrize("tree", [{"w": X}, Pair(X, X), Model(X)], ids=lambda tree: type(tree).__name__)
def test_operators_refuse_trees_and_name_the_map(tree):
    advice = (
        "  For the arrays of containers write tl.tree.map: tl.tree.map(lambda p, g: p - 0.1 * g, params, gradients)."
    )
    operators = (operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.matmul, operator.lt)
    for op in operators:
        for symbol, call in (("left", lambda x, op=op: op(x, tree)), ("right", lambda x, op=op: op(tree, x))):
            for run in (call, tl.jit(call)):
                with pytest.raises(TypeError) as caught:
                    run(X)
                first, *_, last = text_of(caught.value).split("\n")
                assert last == advice and f"but {type(tree).__name__}: " in first
                assert op is operator.lt or f": the {symbol} operand is float32[3]" in first
