"""check_grads finds what is wrong, in either mode, at any order, and says where."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.testing import check_grads
from tests.messages import place, raises

X = np.array([[0.3, 0.5, -0.2], [1.0, 0.7, 0.1]])
each_mode = pytest.mark.parametrize("mode", ["fwd", "rev"])


def with_rule(function, derivative, name="f"):
    f = tl.custom_jvp(function)
    f.defjvps(lambda t, y, x: derivative(x) * t)
    f.__name__ = name
    return f


wrong_square = with_rule(lambda x: x * x, lambda x: 2.1 * x)
right_square = with_rule(lambda x: x * x, lambda x: 2 * x)
wrong_cosine = with_rule(tnp.cos, tnp.sin)
sine = with_rule(tnp.sin, wrong_cosine)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize(
    "function, args",
    [
        (tnp.sin, (0.5,)),
        (right_square, (X,)),
        (lambda x, y: tnp.sum(tnp.sin(x) @ y), (X, X.T)),
        (lambda p, n: {"a": p["x"] ** n, "n": n, "b": (tnp.exp(p["x"]),)}, ({"x": X, "none": None}, 3)),
        (lambda z: z * tnp.exp(z), (np.array(0.5 + 0.25j),)),
        (lambda x: tnp.sum(x**2), (X.astype(np.float32),)),
        (lambda n: n + 1, (3,)),
    ],
)
def test_what_is_right_passes(order, function, args):
    assert check_grads(function, args, order) is None


def test_under_jit():
    check_grads(tl.jit(lambda x: tnp.tanh(x) * x), (X,), order=2)


DIRECTION = "  direction: [[ 0.3456 0.8216 0.3304] [-1.3032 0.9054 0.4464]]"
GIVEN = "(atol=1e-05, rtol=1e-05, eps=0.00048828125)"


def test_forward_mode_says_where():
    with pytest.raises(AssertionError) as caught:
        check_grads(lambda x: {"y": (wrong_square(x),)}, (X,), 2, modes=("fwd",))
    first, second, *direction = str(caught.value).splitlines()
    assert first == "check_grads: forward mode disagrees with central differences of <lambda> at order 1 (fwd)."
    assert second.startswith("  result['y'][0][1, 0] along the direction below: jvp gives -2.73663")
    assert "differences give -2.60631" in second and second.endswith(f"{GIVEN}.")
    assert "\n".join(direction) == DIRECTION


def product(x, y, *more):
    z = x.astype(np.float32) * y.astype(np.float32)
    return z.astype(np.float64)


@each_mode
def test_a_function_that_rounds_is_named(mode):
    with pytest.raises(AssertionError) as caught:
        check_grads(tl.jit(product), (np.array(0.7), np.array(1.3), X, X), 1, modes=mode)
    *_, direction, rounding = str(caught.value).splitlines()
    assert direction.endswith(", ... of 4 arrays") and len(direction) < 200
    line = place(product, "z = x.astype(np.float32) * y.astype(np.float32)")
    assert rounding == f"  product rounds to float32 at {line}: compute it in 64 bits, or pass atol=0.002, rtol=0.002."
    check_grads(product, (np.array(0.7), np.array(1.3)), 1, modes=mode, atol=2e-3, rtol=2e-3)


def test_reverse_mode_says_where():
    with pytest.raises(AssertionError) as caught:
        check_grads(wrong_square, (X,), 2, modes="rev")
    first, second, *direction = str(caught.value).splitlines()
    assert first == "check_grads: reverse mode disagrees with central differences of f at order 1 (rev)."
    assert second.startswith("  the sum of cotangent * derivative along the direction below: vjp gives ")
    assert second.endswith(f"{GIVEN}.")
    assert "\n".join(direction) == DIRECTION


@each_mode
def test_second_order_is_named(mode):
    check_grads(sine, (X,), 1, modes=mode)
    full = {"fwd": "forward", "rev": "reverse"}[mode]
    message = f"{full} mode disagrees with central differences of f at order 2 \\({mode} of {mode}\\)"
    with pytest.raises(AssertionError, match=message):
        check_grads(sine, (X,), 2, modes=mode)


def test_both_modes_are_tried():
    for mode in ("fwd", "rev"):
        with pytest.raises(AssertionError, match=f"at order 1 \\({mode}\\)"):
            check_grads(wrong_square, (X,), 1, modes=[mode])


def test_a_wrong_value_is_found():
    f = tl.custom_jvp(tnp.sin)
    f.defjvp(lambda p, t: (2 * tnp.sin(p[0]), tnp.cos(p[0]) * t[0]))
    f.__name__ = "f"
    with pytest.raises(AssertionError, match="forward mode disagrees with f itself at order 1 "):
        check_grads(f, (X,), 1, modes="fwd")


@each_mode
def test_nan_and_infinity_are_found(mode):
    f = with_rule(lambda x: x * x, lambda x: x * np.nan)
    with pytest.raises(AssertionError, match="gives nan"):
        check_grads(f, (X,), 1, modes=mode)


def test_tolerances():
    check_grads(wrong_square, (X,), 1, atol=1.0)
    check_grads(wrong_square, (X,), 1, rtol=0.5)
    with pytest.raises(AssertionError):
        check_grads(lambda x: tnp.sin(40 * x), (X,), 1, eps=0.5)
    check_grads(lambda x: tnp.sin(40 * x), (X,), 1, eps=1e-6)


@each_mode
@pytest.mark.parametrize("scale", [40, 100, 300])
def test_steps_that_are_too_long_are_shortened(mode, scale):
    """Third derivatives are of the size of scale³, so that the first differences have few digits."""
    check_grads(lambda x: tnp.sin(scale * x), (X,), 1, modes=mode, atol=1e-2 if scale == 300 else None)
    f = with_rule(lambda x: tnp.sin(scale * x), lambda x: scale * 1.001 * tnp.cos(scale * x))
    with pytest.raises(AssertionError, match=r"eps=0\.00048828125"):
        check_grads(f, (X,), 1, modes=mode)


@each_mode
def test_a_kink_nearby_is_not_stepped_over(mode):
    check_grads(tl.nn.relu, (1e-4,), 1, modes=mode)
    with pytest.raises(AssertionError):
        check_grads(tl.nn.relu, (0.0,), 1, modes=mode)


@pytest.mark.parametrize("order, modes", [(0, ("fwd",)), (1, ()), (1, ("forward",)), (-1, ("rev",))])
def test_orders_and_modes_there_are_not(order, modes):
    message = f"check_grads: order must be at least 1 and modes some of ('fwd', 'rev'), not {order} and {modes}."
    with raises(ValueError, message):
        check_grads(tnp.sin, (1.0,), order, modes)


# ---- counting


def test_compilations_are_counted():
    f, x, y = tl.jit(lambda x: tnp.sin(x) * 3), tnp.ones(3), tnp.ones(5)
    with tl.testing.count_compilations() as count:
        f(x)
        f(x)
        with tl.testing.count_compilations() as inner:
            f(y)
        tl.make_jaxpr(lambda x: x)(x)
    assert (count.traces, count.compilations) == (2, 2) and (inner.traces, inner.compilations) == (1, 1)
    assert count.compiled == ["f", "f"] and count.traced[0].startswith("<lambda> at ")
    assert repr(inner).startswith("<1 traced: <lambda> at ") and repr(inner).endswith("; 1 compiled: f>")
    f(tnp.ones(7))
    assert count.compilations == 2


def test_single_operations_and_what_is_on_disk_count(tmp_path, monkeypatch):
    monkeypatch.setenv("TAPELESS_CACHE", str(tmp_path))
    x = tnp.ones((3, 5, 7, 11))
    for _ in range(2):
        with tl.testing.count_compilations() as count:
            _ = x + 1.25
        assert count.compiled == ["add"] and count.traces == 0
        tl.clear_caches()
