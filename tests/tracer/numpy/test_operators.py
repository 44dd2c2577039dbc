"""Operators: what is said when they do not apply names them as they are written, and both sides."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.tracer.array import Array
from tapeless.tracer.core import Tracer
from tests.messages import raises

pytestmark = pytest.mark.usefixtures("eager_by_steps")

X, Y, N = np.ones(3, np.float32), np.ones(4, np.float32), np.ones(3, np.int32)
C, B = np.ones(3, np.complex64), np.ones(3, bool)


@pytest.mark.parametrize(
    "under", [lambda f: f, tl.jit, lambda f: lambda *xs: tl.vmap(f, in_axes=None, axis_size=2)(*xs)]
)
@pytest.mark.parametrize(("f", "x", "y", "kind", "message"), [
    (lambda x, y: x + y, X, Y, ValueError, "+: shapes (3,) and (4,) do not broadcast."),
    (lambda x, y: x / y, X, Y, ValueError, "/: shapes (3,) and (4,) do not broadcast."),
    (lambda x, y: x == y, X, Y, ValueError, "==: shapes (3,) and (4,) do not broadcast."),
    (lambda x, y: x >= y, X, Y, ValueError, ">=: shapes (3,) and (4,) do not broadcast."),
    (lambda x, y: x & y, X, X, TypeError,
     "&: the operand must be boolean or an integer, not float32[3] and float32[3].\n"
     "  Put comparisons in parentheses, (x > 0) & (y > 0), or convert with astype."),
    (lambda x, y: x < y, C, Y, ValueError, "<: shapes (3,) and (4,) do not broadcast."),
    (lambda x, y: x << y, X, N, TypeError, "<<: operands must be integers, not float32[3] and float32[3]."),
    (lambda x, y: x % y, C, C, TypeError,
     "%: complex numbers have no remainder; the operands are complex64[3] and complex64[3]."),
    (lambda x, y: x - y, B, B, TypeError, "-: the operand must be a number, not bool[3] and bool[3].\n"
     "  Convert with astype, or use the operators of booleans: &, |, ^ and ~."),
    (lambda x, y: ~x, X, X, TypeError, "~: the operand must be boolean or an integer, not float32[3].\n"
     "  Put comparisons in parentheses, (x > 0) & (y > 0), or convert with astype."),
    (lambda x, y: -x, B, B, TypeError,
     "-: booleans have no negative: bool[3]. Use tnp.logical_not, or convert with astype."),
    (lambda x, y: x @ y, X, Y, TypeError,
     "@: contracted axes differ in size: axis 0 of float32[3] has 3, axis 0 of float32[4] has 4."),
    (lambda x, y: x**-1, N, N, TypeError,
     "**: int32[3] has no power -1 among the integers. Convert it to a float first."),
])  # fmt: skip
def test_operators_are_named_as_written(under, f, x, y, kind, message):
    with raises(kind, message):
        under(f)(tnp.asarray(x), tnp.asarray(y))


def test_functions_are_named_as_functions():
    with raises(ValueError, "add: shapes (3,) and (4,) do not broadcast."):
        tnp.add(tnp.asarray(X), Y)


class Foreign:
    """Knows nothing of arrays."""

    def __repr__(self) -> str:
        return "Foreign()"


HELP = "\n  Write tnp.array(...) around a list: it is copied to the device."


@pytest.mark.parametrize("under", [lambda f: f, tl.jit, tl.grad])
@pytest.mark.parametrize(("f", "message"), [
    (lambda x: x + "a", "+: the left operand is {}, the right one is not an array or a number, but str: 'a'."),
    (lambda x: "a" + x, "+: the right operand is {}, the left one is not an array or a number, but str: 'a'."),
    (lambda x: x * [2], "*: the left operand is {}, the right one is not an array or a number, but list: [2]." + HELP),
    (lambda x: [2] * x, "*: the right operand is {}, the left one is not an array or a number, but list: [2]." + HELP),
    (lambda x: x - None, "-: the left operand is {}, the right one is not an array or a number, but NoneType: None."),
    (lambda x: x < "a", "<: the left operand is {}, the right one is not an array or a number, but str: 'a'."),
    (lambda x: x @ Foreign(),
     "@: the left operand is {}, the right one is not an array or a number, but Foreign: Foreign()."),
    (lambda x: Foreign() > x,
     "<: the left operand is {}, the right one is not an array or a number, but Foreign: Foreign()."),
])  # fmt: skip
def test_what_is_no_operand(under, f, message):
    with raises(TypeError, message.format("float32[]")):
        under(f)(tnp.float32(1))


def test_equality_with_what_is_no_operand():
    x = tnp.asarray(X)
    assert (x == "a") is False and (x != None) is True  # noqa: E711
    with pytest.raises(TypeError, match=r"^==: the left operand is float32\[3\], the right one is not an array"):
        bool(x == [1, 1, 1])


def classes(of):
    return [of, *[below for each in of.__subclasses__() for below in classes(each)]]


def test_no_tracer_hides_a_method():
    methods = [name for name in vars(Array) if not name.startswith("_") and callable(getattr(Array, name))]
    hidden = [
        (kind, name) for kind in classes(Tracer) for name in methods if getattr(kind, name) != getattr(Array, name)
    ]
    assert len(methods) > 40 and hidden == []


@pytest.mark.parametrize("under", [lambda f: f, tl.jit, tl.grad, lambda f: lambda x: tl.vmap(f)(x[None])[0]])
def test_methods_named_as_parts_of_tracers(under):
    x = tnp.arange(9.0).reshape(3, 3)
    np.testing.assert_array_equal(
        under(lambda x: x.trace() + x.var())(x), under(lambda x: tnp.trace(x) + tnp.var(x))(x)
    )


def test_other_classes_may_answer():
    class Unit:
        def __rmul__(self, other):
            return "answered"

        def __gt__(self, other):
            return "greater"

    assert tnp.asarray(X) * Unit() == "answered"
    assert (tnp.asarray(X) < Unit()) == "greater"
    with pytest.raises(TypeError, match=r"^\+: the left operand is float32\[3\]"):
        tnp.asarray(X) + Unit()


def test_pythons_round_gives_integers():
    """As JAX, arrays of integers; of 64 bits where the numbers have them."""
    for run in (round, tl.jit(round)):
        found = run(tnp.float32(2.5))
        assert found == 2 and found.dtype == np.int32
        assert run(tnp.array([1.5, -0.5])).tolist() == [2, 0]
        assert run(tnp.asarray(np.array([2.0**40]))).tolist() == [2**40]
        assert run(tnp.asarray(np.array([3]))).dtype == np.int64
    assert round(tnp.float32(2.54), 1).dtype == np.float32 and round(tnp.float32(2.5), 0).dtype == np.float32


def test_iteration_over_what_has_no_axes():
    for run in (list, tl.jit(list)):
        with raises(TypeError, "iteration over float32[], an array without axes. x[None] has one, of length 1."):
            run(tnp.array(1.0))
