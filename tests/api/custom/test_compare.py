"""check_custom_rule: a rule against the derivative of the function's own body, and what it says of a wrong one."""

import functools

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.testing import check_custom_rule
from tests.messages import raises

pytestmark = pytest.mark.usefixtures("eager_by_steps")

X = np.array([[0.3, 0.5, -0.2], [1.0, 0.7, 0.1]])


def by_jvp(factor=1.0, of_value=1.0):
    @tl.custom_jvp
    def f(p, n=2):
        return {"y": (tnp.sin(p["x"]) * n, n)}

    @f.defjvp
    def rule(primals, tangents):
        (p, n), (dp, _) = primals, tangents
        value = {"y": (of_value * tnp.sin(p["x"]) * n, n)}
        zero = tl.custom_derivatives.zero_from_primal(n)
        return value, {"y": (tnp.cos(p["x"]) * n * dp["x"] * tnp.where(p["x"] > 0.9, factor, 1.0), zero)}

    return f


def by_vjp(factor=1.0):
    f = tl.custom_vjp(lambda p, n=2: {"y": (tnp.sin(p["x"]) * n, n)})
    f.__name__ = "f"

    def bwd(residuals, ct):
        x, n = residuals
        return {"x": tnp.cos(x) * n * ct["y"][0] * tnp.where(x > 0.9, factor, 1.0)}, None

    f.defvjp(lambda p, n: (f(p, n), (p["x"], n)), bwd)
    return f


@pytest.mark.parametrize("make", [by_jvp, by_vjp])
@pytest.mark.parametrize("modes", [("fwd", "rev"), "fwd", ["rev"]])
def test_what_is_right_passes(make, modes):
    assert check_custom_rule(make(), ({"x": X},), modes=modes) is None
    check_custom_rule(make(), ({"x": X.astype(np.float32)}, 3), modes=modes)


def test_other_arguments_and_results():
    f = tl.custom_vjp(lambda g, z, n: (g(z) * n, n), nondiff_argnums=(0,))
    f.defvjp(lambda g, z, n: (f(g, z, n), (z, n)), lambda g, res, ct: (res[1] * tl.vjp(g, res[0])[1](ct[0])[0], None))
    check_custom_rule(f, (tnp.exp, np.array(0.5 + 0.25j), 3))
    check_custom_rule(f, (tnp.sin, X, 2))


def test_methods():
    class Model:
        w = 3.0

        @functools.partial(tl.custom_jvp, nondiff_argnums=(0,))
        def scaled(self, x):
            return self.w * x

        @scaled.defjvp
        def scaled_jvp(self, primals, tangents):
            return self.scaled(*primals), self.w * tangents[0]

    check_custom_rule(Model().scaled, (X,))


@pytest.mark.parametrize("make", [by_jvp, by_vjp])
def test_a_wrong_derivative_is_found_where_it_is(make):
    f, true = make(1.5), 2 * np.cos(1.0)
    with pytest.raises(AssertionError) as caught:
        check_custom_rule(f, ({"x": X},), modes="rev")
    text = str(caught.value)
    begin = "check_custom_rule: the cotangent in reverse mode disagrees at argument p['x'][1, 0]: the rule of f gives "
    assert text.startswith(begin) and text.endswith(" (rtol=1e-09, atol=1e-09).")
    ours, theirs = [float(part) for part in text.removeprefix(begin).split(" (")[0].split(", its body ")]
    np.testing.assert_allclose(ours, 1.5 * theirs, rtol=1e-12)
    with pytest.raises(AssertionError) as caught:
        check_custom_rule(f, ({"x": X},), modes="fwd")
    begin = "check_custom_rule: the tangent in forward mode disagrees at result['y'][0][1, 0]: the rule of f gives "
    assert str(caught.value).startswith(begin) and abs(true) > 1
    check_custom_rule(f, ({"x": X[:1]},))


def test_a_wrong_value_is_found():
    with pytest.raises(AssertionError, match="the value in forward mode disagrees at result"):
        check_custom_rule(by_jvp(of_value=2.0), ({"x": X},))


def test_tolerances():
    check_custom_rule(by_jvp(1.01), ({"x": X},), rtol=0.02)
    check_custom_rule(by_jvp(1.01), ({"x": X},), atol=0.02)
    with pytest.raises(AssertionError, match=r"rtol=0\.001, atol=1e-09"):
        check_custom_rule(by_jvp(1.01), ({"x": X},), rtol=0.001)


def test_what_cannot_be_checked():
    with raises(ValueError, "check_custom_rule: modes must be some of ('fwd', 'rev'), not ('forward',)."):
        check_custom_rule(by_jvp(), ({"x": X},), modes=("forward",))
    with pytest.raises(TypeError, match=r"is not a custom_jvp or custom_vjp function\."):
        check_custom_rule(tnp.sin, (X,))


def test_one_argument_is_no_sequence_of_them():
    advice = "  Write check_custom_rule(f, (x, y)), as check_grads(f, (x, y), order=1)."
    for x, name in ((X, "ndarray"), ({"x": X}, "dict"), (2.0, "float"), (tnp.asarray(X), "DeviceArray")):
        message = f"check_custom_rule: args must be a tuple or list of arguments, not {name}.\n{advice}"
        with raises(TypeError, message):
            check_custom_rule(by_jvp(), x)
    check_custom_rule(by_jvp(), [{"x": X}], ("fwd",), 1e-9, 1e-9)  # in the order of check_grads
