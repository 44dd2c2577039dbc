"""grad, vjp, jvp, linearize, linear_transpose as users call them."""

import math
import threading

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.tracer.dtypes import float0
from tests.close import some_roundings as close
from tests.messages import raises

pytestmark = pytest.mark.usefixtures("eager_by_steps")

F64 = np.float64


def f(x, y):
    return tnp.sin(x) * y


# ---- grad: which arguments ------------------------------------------------------------------------------------

X, Y = np.array(0.5), np.array(3.0)
DX, DY = math.cos(0.5) * 3.0, math.sin(0.5)


@pytest.mark.parametrize(
    "argnums, expected",
    [
        (0, DX),
        (1, DY),
        (-1, DY),
        (np.int64(1), DY),
        ((0,), (DX,)),
        ((0, 1), (DX, DY)),
        ([1, 0], (DY, DX)),
        ((-1, 0), (DY, DX)),
        ((), ()),
    ],
)
def test_argnums(argnums, expected):
    gradient = tl.grad(f, argnums)(X, Y)
    assert isinstance(gradient, tuple) == isinstance(expected, tuple)
    close(gradient, expected)
    value, same = tl.value_and_grad(f, argnums=argnums)(X, Y)
    close(value, math.sin(0.5) * 3.0)
    close(same, expected)


def test_lists_are_pytrees_and_no_operands():
    told = (
        "unsupported operand type(s) for ** or pow(): 'list' and 'int'\n"
        "  {}: a list is a pytree, whose elements are arguments each. Give an array."
    )
    with raises(TypeError, told.format("grad")):
        tl.grad(lambda x: tnp.sum(x**2))([1.0, 2.0])
    with raises(TypeError, told.format("vjp")):
        tl.vjp(lambda x: x**2, [1.0, 2.0])
    with raises(TypeError, told.format("hessian")):
        tl.hessian(lambda x: tnp.sum(x**2))([1.0, 2.0])
    with raises(TypeError, "unsupported operand type(s) for ** or pow(): 'list' and 'int'"):
        tl.grad(lambda x: x + [1.0] ** 2)(1.0)


def test_keyword_arguments_are_passed_on():
    close(tl.grad(f)(X, y=Y), DX)
    close(tl.grad(lambda x, *, scale=2.0: scale * x)(X), 2)
    close(tl.jit(tl.grad(f))(X, y=Y), DX)


def test_pytrees():
    def loss(p, x):
        return tnp.sum(p["w"] * x + p["b"][0]) + p["b"][1]

    p = {"w": np.ones(3), "b": (np.array(2.0), np.array(4.0)), "none": None}
    gradient = tl.grad(loss)(p, np.arange(3.0))
    assert set(gradient) == set(p) and gradient["none"] is None
    close(gradient["w"], [0, 1, 2])
    close(gradient["b"], (3, 1))


@pytest.mark.parametrize("under", [lambda f: f, tl.jit])
def test_has_aux(under):
    def loss(x):
        return x * x, {"x": x, "twice": 2 * x, "n": 3}

    gradient, aux = under(tl.grad(loss, has_aux=True))(np.array(3.0))
    close(gradient, 6)
    close([aux["x"], aux["twice"], aux["n"]], [3, 6, 3])
    (value, aux), gradient = under(tl.value_and_grad(loss, has_aux=True))(np.array(3.0))
    close([value, gradient, aux["twice"]], [9, 6, 6])


def test_aux_may_hold_anything():
    _, aux = tl.grad(lambda x: (x, {"text": "abc", "object": np}), has_aux=True)(1.0)
    assert aux == {"text": "abc", "object": np}
    assert tl.grad(lambda x: [x * x, "abc"], has_aux=True)(3.0) == (6.0, "abc")


def test_aux_has_derivatives_of_transforms_around():
    """Only the tangent of the inner transform is dropped."""

    def outer(x):
        _, aux = tl.grad(lambda y: (x * y, x * y), has_aux=True)(x)
        return aux

    close(tl.grad(outer)(np.array(3.0)), 6)
    for transform in (
        lambda x: tl.vjp(lambda y: (y, y * y), x, has_aux=True)[2],
        lambda x: tl.jvp(lambda y: (y, y * y), (x,), (1.0,), has_aux=True)[2],
        lambda x: tl.linearize(lambda y: (y, y * y), x, has_aux=True)[2],
    ):
        close(tl.grad(transform)(np.array(3.0)), 6)
        close(transform(np.array(3.0)), 9)


def test_holomorphic():
    gradient = tl.grad(lambda z: z**3 + tnp.exp(z), holomorphic=True)(np.array(1 + 2j))
    close(gradient, 3 * (1 + 2j) ** 2 + np.exp(1 + 2j))


def test_real_function_of_a_complex_argument():
    z = np.array([1 + 2j, -0.5j])
    gradient = tl.grad(lambda z: tnp.sum(tnp.abs(z) ** 2))(z)
    close(gradient, 2 * z.conj())  # JAX's convention: the tangent of f along t is Re(gradient * t)


def test_allow_int():
    gradient = tl.grad(lambda n, x: n * x, argnums=(0, 1), allow_int=True)(3, 2.0)
    assert gradient[0].dtype == float0 and gradient[0].shape == ()
    close(gradient[1], 3)
    gradient = tl.grad(lambda p: p["n"][0] * p["x"], allow_int=True)({"n": np.array([3, 4]), "x": 2.0})
    assert gradient["n"].dtype == float0 and gradient["n"].shape == (2,)
    close(gradient["x"], 3)


def test_constant_function():
    close(tl.grad(lambda x: 3.0)(X), 0)
    close(tl.grad(lambda x: tnp.sum(np.ones(3)))(np.ones((2, 2))), np.zeros((2, 2)))
    close(tl.jvp(lambda x: np.ones(3), (X,), (X,)), (np.ones(3), np.zeros(3)))


# ---- types of results -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("value, dtype, weak", [(2.0, "float32", True), (np.float32(2), "float32", True),
                                                (np.float64(2), "float64", True), (np.array(2.0), "float64", False),
                                                (np.array(2, "float16"), "float16", False)])  # fmt: skip
@pytest.mark.parametrize("function", [lambda x: x, lambda x: x * x, lambda x: 2 * x])
def test_results_are_arrays_of_the_arguments_type(value, dtype, weak, function):
    results = (
        tl.grad(function)(value),
        *tl.value_and_grad(function)(value),
        *tl.jvp(function, (value,), (value,)),
        tl.vjp(function, value)[1](value)[0],
        tl.linearize(function, value)[1](value),
    )
    for result in results:
        assert isinstance(result, tl.Array)
        assert (result.dtype, result.weak_type) == (dtype, weak)


def test_a_numpy_argument_is_not_handed_back():
    x = np.ones(3)
    for result in (tl.vjp(lambda x: x, x)[0], tl.jvp(lambda x: x, (x,), (x,))[1], tl.linearize(lambda x: x, x)[0]):
        x[0] = 7
        assert result[0] == 1
        x[0] = 1


def test_tangents_of_integers_are_float0():
    value, tangent = tl.jvp(lambda n: n + 1, (np.arange(3),), (np.zeros(3, float0),))
    assert value.tolist() == [1, 2, 3]
    assert tangent.dtype == float0 and tangent.shape == (3,)
    assert tl.vjp(lambda n, x: n * x, 2, 3.0)[1](1.0)[0].dtype == float0
    value, push_forward = tl.linearize(lambda n, x: n * x, 2, 3.0)
    close(push_forward(np.zeros((), float0), 1.0), 2)


def test_stop_gradient_takes_pytrees():
    def loss(p):
        still = tl.stop_gradient({"w": p, "n": 2, "none": None, "i": np.arange(2)})
        assert still["n"] == 2 and type(still["n"]) is int
        return tnp.sum(still["w"][0] * p[0]) * still["n"]

    for g in (tl.grad(loss), tl.jit(tl.grad(loss))):
        (of_array,) = g((np.array([3.0, 4.0]),))
        close(of_array, [6.0, 8.0])


# ---- vjp, jvp, linearize, linear_transpose --------------------------------------------------------------------


def test_pull_back_may_be_called_again():
    value, pull_back = tl.vjp(lambda x: {"sin": tnp.sin(x), "square": x * x}, X)
    assert set(value) == {"sin", "square"}
    close(pull_back({"sin": 1.0, "square": 0.0}), (math.cos(0.5),))
    close(pull_back({"sin": 0.0, "square": 1.0}), (1.0,))
    close(tl.jit(pull_back)({"sin": np.array(1.0), "square": np.array(1.0)}), (1 + math.cos(0.5),))


def test_gradient_in_the_cotangent():
    _, pull_back = tl.vjp(tnp.sin, X)
    close(tl.grad(lambda ct: pull_back(ct)[0] ** 2)(np.array(3.0)), 6 * math.cos(0.5) ** 2)


def test_linearize_runs_the_function_once():
    calls = []

    def counted(x, y):
        calls.append(1)
        return x * y

    value, push_forward = tl.linearize(counted, X, Y)
    for t in (1.0, 2.0):
        close(push_forward(t, 0.0), 3 * t)
    close(tl.jit(push_forward)(1.0, 1.0), 3.5)
    close([value, len(calls)], [1.5, 1])
    assert " ; " in repr(push_forward) and str(push_forward.jaxpr) == repr(push_forward)


def test_linear_transpose_needs_types_only():
    transposed = tl.linear_transpose(lambda x: tnp.sum(2 * x), tl.ShapeDtypeStruct((3,), "float64"))
    close(transposed(np.array(1.0)), ([2, 2, 2],))


def test_linear_transpose_is_weak_where_arguments_are():
    for x, weak in ((1.0, True), (tnp.ones(()), False), (tl.ShapeDtypeStruct((), "float32", weak_type=True), True)):
        assert tl.linear_transpose(lambda x: 2 * x, x)(3.0)[0].weak_type == weak


def test_linear_transpose_of_pytrees_and_through_calls():
    def linear(p, x):
        return {"sum": tl.jit(lambda a, b: a + 3 * b)(p["a"], x), "x": x}

    pulled = tl.linear_transpose(linear, {"a": X}, X)({"sum": np.array(1.0), "x": np.array(10.0)})
    close([pulled[0]["a"], pulled[1]], [1, 13])
    once = tl.linear_transpose(lambda x: tl.jit(lambda x: tl.jit(lambda x: 2 * x)(x) + x)(x), X)
    close(tl.jit(once)(np.array(1.0)), (3,))


def test_linear_transpose_of_zero_and_of_what_does_not_use_its_argument():
    close(tl.linear_transpose(lambda x: tnp.zeros(2, F64), X)(np.ones(2)), (0,))
    close(tl.linear_transpose(lambda x, y: 2 * x, X, X)(np.array(1.0)), (2, 0))


def test_linear_transpose_with_captured_coefficients():
    a, mask = np.arange(3.0), np.array([True, False, True])
    transposed = tl.linear_transpose(lambda x: tnp.where(mask, a * x, 2 * x), np.ones(3))
    close(transposed(np.ones(3)), ([0, 2, 2],))


# ---- nesting --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("under", [lambda f: f, tl.jit])
def test_gradient_to_order_four(under):
    derivative = under(lambda x: tnp.sin(2 * x))
    for value in (math.sin(1), 2 * math.cos(1), -4 * math.sin(1), -8 * math.cos(1), 16 * math.sin(1)):
        close(derivative(X), value)
        derivative = under(tl.grad(derivative))


def test_modes_nest_in_every_order():
    g = lambda x: tnp.exp(x * x)  # noqa: E731
    second = (2 + 4 * 0.25) * math.exp(0.25)

    def forward(f):
        return lambda x: tl.jvp(f, (x,), (np.array(1.0),))[1]

    def linear(f):
        return lambda x: tl.linearize(f, x)[1](np.array(1.0))

    for outer in (forward, tl.grad, linear):
        for inner in (forward, tl.grad, linear):
            close(outer(inner(g))(X), second)
            close(tl.jit(outer(tl.jit(inner(g))))(X), second)


def test_closures_over_outer_tracers():
    def outer(x):
        inner = tl.grad(lambda y: x * x * y * y)
        return tl.jit(lambda z: inner(z) * x)(x)

    close(tl.grad(outer)(X), 2 * 4 * 0.5**3)  # d/dx of 2 x^4
    close(tl.jit(tl.grad(outer))(X), 2 * 4 * 0.5**3)


def test_perturbations_in_closures_of_pull_backs():
    def outer(x):
        _, pull_back = tl.vjp(lambda y: x * y, x)
        return tl.grad(lambda ct: pull_back(ct)[0] * x)(x)

    close(tl.grad(outer)(X), 1.0)  # of x²


def test_gradient_of_a_constant_inside_another():
    close(tl.grad(lambda x: x * tl.grad(lambda y: x)(2.0))(X), 0)
    close(tl.grad(lambda x: tl.jvp(lambda y: x * x, (2.0,), (1.0,))[0])(X), 1)


def test_deep_nesting():
    def nested(depth):
        return lambda x: x if depth == 0 else tl.jit(nested(depth - 1))(x) * 1.5

    close(tl.grad(nested(12))(X), 1.5**12)
    deep = lambda x: x  # noqa: E731
    for _ in range(6):
        deep = tl.grad(lambda x, f=deep: f(x) * x)
    close(deep(X), 2**6 * 0.5)


def test_long_programs():
    def chain(x):
        for _ in range(300):
            x = x * 0.99 + 0.01
        return x

    close(tl.jit(tl.grad(chain))(X), 0.99**300, rtol=1e-12)


def test_eight_threads():
    """Every thread has a current trace of its own; caches are shared."""
    jitted, results, start = tl.jit(lambda x, y: f(x, y) * y), {}, threading.Barrier(8)

    def work(k):
        start.wait()
        for i in range(5):
            x = np.array(0.1 * k)
            results[k, i] = tl.grad(tl.grad(jitted))(x, Y), jitted(x, Y), tl.jit(tl.grad(jitted))(x, Y)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 40
    for (k, _), (second, value, first) in results.items():
        close(
            np.stack([second, value, first]), 9 * np.array([-math.sin(0.1 * k), math.sin(0.1 * k), math.cos(0.1 * k)])
        )


# ---- names ----------------------------------------------------------------------------------------------------


def test_derived_functions_are_named_after_theirs():
    def loss(x):
        "How far off."
        return x

    gradient = tl.grad(loss)
    assert gradient.__name__ == "gradient_of_loss"
    assert gradient.__doc__ == "The gradient of loss.\n\nHow far off."
    assert tl.vjp(loss, 1.0)[1].__name__ == "pull_back_of_loss"
    assert tl.jit(gradient, static_argnames=()).trace(1.0).jaxpr.jaxpr.name == "gradient_of_loss"


def test_scope_of_the_default_width():
    with tl.config.scope(default_bits=64):
        _, push_forward = tl.linearize(lambda x: x * x, 3.0)
        value, gradient = tl.value_and_grad(tnp.sin)(1.0)
    assert push_forward(1.0).dtype == F64
    close([value, gradient], [math.sin(1), math.cos(1)])


def test_device_get_keeps_traced_arrays():
    """Functions that fetch their results can be differentiated, as in JAX."""
    assert tl.grad(lambda x: tl.device_get({"y": x})["y"] ** 2)(3.0) == 6 == tl.jit(lambda x: 2 * tl.device_get(x))(3.0)
    assert isinstance(tl.device_get(tnp.ones(2)), np.ndarray)


WAYS_TO_PUSH = {
    "jvp: the tangent of x": lambda x, t: tl.jvp(tnp.sin, (x,), (t,)),
    "linearize: tangent 0": lambda x, t: tl.linearize(tnp.sin, x)[1](t),
    "vjp: cotangent 0": lambda x, t: tl.vjp(tnp.sin, x)[1](t),
    "linear_transpose: cotangent 0": lambda x, t: tl.linear_transpose(lambda x: 2 * x, x)(t),
}


@pytest.mark.parametrize("who", WAYS_TO_PUSH)
def test_integers_are_no_tangents_of_floats(who):
    """Nor are numbers, or traced ones, which are weakly typed; numbers that are floats are."""
    push = WAYS_TO_PUSH[who]
    for t in (1, True, np.int32(1), np.array(1), tnp.asarray(1)):
        for way in (push, tl.jit(push)):
            with pytest.raises(TypeError, match=f"{who} is (int32|int64|bool)\\[\\], but .* asks for float32\\[\\]"):
                way(1.0, t)
    for t in (1.0, np.float32(1), np.float16(1)):
        assert all(x.dtype == np.float32 for x in tl.tree.leaves(push(1.0, t)))
