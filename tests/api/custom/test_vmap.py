"""Functions with a vmap rule of their own: when the rule is used, what its derivatives are, what it must return."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.custom_batching import custom_vmap, sequential_vmap
from tests.close import long_programs as close
from tests.messages import raises

pytestmark = pytest.mark.usefixtures("eager_by_steps")

X, Y = np.array([0.5, -1.0, 2.0]), np.array([3.0, 4.0, -5.0])
under = pytest.mark.parametrize("under", [lambda f: f, tl.jit], ids=["eager", "jit"])


def product(rule_is="cos"):
    """x * y of one example, cos(x) * y of many: so that one sees which is used. With the calls of its rule."""
    calls = []

    @custom_vmap
    def f(x, y=2.0):
        return x * y

    @f.def_vmap
    def rule(axis_size, in_batched, x, y):
        calls.append((axis_size, in_batched, x.shape, np.shape(y)))
        return getattr(tnp, rule_is)(x) * y, True

    return f, calls


@under
def test_values(under):
    f, calls = product()
    close(under(f)(X, Y), X * Y)
    close(under(f)(X), 2 * X)
    close(under(lambda x, y: f(y=x, x=y))(X, Y), X * Y)
    assert calls == []
    close(under(tl.vmap(f))(X, Y), np.cos(X) * Y)
    close(under(tl.vmap(f, (0, None)))(X, 3.0), 3 * np.cos(X))
    close(under(tl.vmap(lambda x: f(x)))(X), 2 * np.cos(X))
    close(under(tl.vmap(tl.jit(f)))(X, Y), np.cos(X) * Y)
    two = np.stack([X, 2 * X]), np.stack([Y, Y])
    close(under(tl.vmap(f, in_axes=1))(*two), (np.cos(two[0]) * two[1]).T)
    assert calls[:3] == [
        (3, [True, True], (3,), (3,)),
        (3, [True, False], (3,), ()),
        (3, [True, False], (3,), ()),
    ]


@under
def test_an_operand_that_no_example_has_of_its_own(under):
    f, calls = product()
    close(under(tl.vmap(lambda x, y: (f(3.0, 2.0) * x, y)))(X, Y), (6 * X, Y))
    assert calls == []


@under
def test_nested(under):
    """The rule is for one axis; what it is made of is mapped over the other."""
    f, calls = product()
    table = np.stack([X, 2 * X])
    close(under(tl.vmap(tl.vmap(f, (0, None)), (0, None)))(table, 2.0), 2 * np.cos(table))
    assert [call[0] for call in calls] == [3]


@under
def test_derivatives(under):
    f, _ = product()
    close(under(tl.grad(f, (0, 1)))(0.5, 3.0), (3.0, 0.5))
    of_rule = (-np.sin(X) * Y, np.cos(X))
    close(under(tl.grad(lambda x, y: tnp.sum(tl.vmap(f)(x, y)), (0, 1)))(X, Y), of_rule)
    close(under(tl.vmap(tl.grad(f, (0, 1))))(X, Y), of_rule)
    pushed = under(lambda x, y: tl.jvp(tl.vmap(f), (x, y), (y, x)))(X, Y)
    close(pushed, (np.cos(X) * Y, of_rule[0] * Y + of_rule[1] * X))
    inside = under(tl.vmap(lambda x, y: tl.jvp(f, (x, y), (y, x))))(X, Y)
    close(inside, pushed)
    close(under(tl.vmap(lambda x: tl.jvp(lambda x: f(x, 3.0), (x,), (2.0,))))(X), (3 * np.cos(X), -6 * np.sin(X)))
    by_tangent = under(tl.vmap(lambda t: tl.jvp(f, (np.array(0.5), np.array(3.0)), (t, np.array(1.0)))[1]))
    close(by_tangent(X), -3 * np.sin(0.5) * X + np.cos(0.5))
    close(under(tl.grad(tl.grad(lambda x: f(x, x))))(0.5), 2.0)
    close(under(tl.grad(lambda x: tnp.sum(tl.grad(lambda x: tnp.sum(tl.vmap(f)(x, Y)))(x))))(X), -np.cos(X) * Y)
    twice = under(tl.vmap(lambda x: tl.jvp(lambda x: tl.jvp(lambda x: f(x, 3.0), (x,), (1.0,))[1], (x,), (1.0,))[1]))
    close(twice(X), -3 * np.cos(X))
    close(under(tl.hessian(lambda x: tnp.sum(tl.vmap(f)(x, Y))))(X), -np.diag(np.cos(X) * Y))


@under
def test_reverse_mode_inside(under):
    """Of many examples it is the rule that is differentiated, wherever the derivative is taken."""
    f, calls = product()
    value, gradient = under(tl.vmap(tl.value_and_grad(f)))(X, Y)
    close((value, gradient), (np.cos(X) * Y, -np.sin(X) * Y))
    assert {call[0] for call in calls} == {3}
    close(under(tl.vmap(tl.grad(f), (0, None)))(X, 3.0), -3 * np.sin(X))
    close(under(tl.vmap(tl.grad(f, 1), (None, 0)))(np.array(0.5), Y), np.cos(0.5) * np.ones(3))
    close(under(tl.vmap(tl.grad(lambda x: tnp.sin(f(x, 3.0)) * x)))(X), _of_sine(X))
    close(under(tl.vmap(tl.grad(tl.jit(f))))(X, Y), -np.sin(X) * Y)
    close(under(tl.vmap(tl.grad(tl.checkpoint(lambda x, y: f(x, y)))))(X, Y), -np.sin(X) * Y)
    close(under(tl.vmap(tl.jacfwd(f)))(X, Y), -np.sin(X) * Y)
    pushed = under(tl.vmap(lambda x, y, t: tl.linearize(lambda x: f(x, y), x)[1](t)))(X, Y, Y)
    close(pushed, -np.sin(X) * Y * Y)
    table = np.stack([X, 2 * X])
    close(under(tl.vmap(tl.vmap(tl.grad(f), (0, None)), (0, None)))(table, 2.0), -2 * np.sin(table))


def _of_sine(x):
    inner = 3 * np.cos(x)
    return np.sin(inner) - np.cos(inner) * 3 * np.sin(x) * x


@under
def test_second_order_inside(under):
    f, _ = product()
    close(under(tl.vmap(tl.grad(tl.grad(f))))(X, Y), -np.cos(X) * Y)
    close(under(tl.vmap(tl.hessian(f, (0, 1))))(X, Y), ((-np.cos(X) * Y, -np.sin(X)), (-np.sin(X), np.zeros(3))))
    close(under(tl.grad(lambda x: tnp.sum(tl.vmap(tl.grad(f))(x, Y))))(X), -np.cos(X) * Y)
    close(under(tl.vmap(lambda x: tl.jvp(tl.grad(f), (x, 3.0), (1.0, 0.0))[1]))(X), -3 * np.cos(X))


@under
def test_reverse_mode_inside_with_results_of_all_kinds(under):
    @custom_vmap
    def f(x, k):
        return {"a": x * x, "k": k + 1, "mean": x}

    @f.def_vmap
    def rule(axis_size, in_batched, xs, ks):
        return {"a": xs**3, "k": ks + 1, "mean": tnp.mean(xs)}, {"a": True, "k": in_batched[1], "mean": False}

    def total(x, k):
        out = f(x, k)
        return out["a"] * 2 + out["mean"], out["k"]

    gradient, k = under(tl.vmap(tl.grad(total, has_aux=True)))(X, np.arange(3))
    close(k, np.arange(1, 4))
    close(gradient, 6 * X**2 + 1)  # of the mean every example has its own cotangent, and a third of all three


@under
def test_sequential_vmap_inside(under):
    f = sequential_vmap(lambda x, y: tnp.sin(x) * y)
    close(under(tl.vmap(tl.grad(f), (0, None)))(X, 2.0), 2 * np.cos(X))
    close(under(tl.vmap(tl.grad(f, (0, 1))))(X, Y), (np.cos(X) * Y, np.sin(X)))


@under
def test_linear_transpose(under):
    f, _ = product()
    close(under(lambda ct: tl.linear_transpose(lambda x: f(x, 3.0), 1.0)(ct))(0.5), (1.5,))

    @custom_vmap
    def g(x, y):
        return x * y

    g.def_vmap(lambda axis_size, in_batched, x, y: (7 * x * y, True))
    pulled = under(tl.vmap(lambda ct, y: tl.linear_transpose(lambda x: g(x, y), np.array(1.0))(ct)))(X, Y)
    close(pulled, (7 * X * Y,))
    close(under(tl.vmap(lambda ct: tl.linear_transpose(lambda y: g(3.0, y), np.array(1.0))(ct)))(X), (21 * X,))


@under
def test_pytrees(under):
    seen = []

    @custom_vmap
    def f(p, x):
        return {"sum": p["w"] @ x + p["b"], "b": p["b"]}

    @f.def_vmap
    def rule(axis_size, in_batched, p, x):
        seen.append(in_batched)
        assert in_batched == [{"w": False, "b": True}, True]
        return {"sum": x @ p["w"].T + p["b"], "b": 2 * p["b"][0]}, {"sum": True, "b": False}

    p = {"w": np.ones((2, 3)), "b": np.arange(8.0).reshape(4, 2)}
    out = under(tl.vmap(f, ({"w": None, "b": 0}, 0), {"sum": 0, "b": None}))(p, np.ones((4, 3)))
    close(out, {"sum": 3 + p["b"], "b": 2 * p["b"][0]})
    assert seen


@under
def test_rule_may_close_over_arrays(under):
    @custom_vmap
    def f(x):
        return x + Y[0]

    @f.def_vmap
    def rule(axis_size, in_batched, x):
        return x * Y, True

    close(under(f)(X[0]), X[0] + 3)
    close(under(tl.vmap(f))(X), X * Y)
    close(under(tl.vmap(tl.jit(f)))(X), X * Y)
    close(under(tl.vmap(lambda x: tl.lax.scan(lambda c, _: (f(c), None), x, length=2)[0]))(X), X * Y * Y)


@under
def test_in_control_flow(under):
    f, _ = product("sin")
    close(
        under(tl.vmap(lambda x: tl.lax.cond(x > 0, lambda x: f(x, 2.0), lambda x: -x, x)))(X),
        np.where(X > 0, 2 * np.sin(X), -X),
    )
    close(under(tl.vmap(lambda x: tl.lax.fori_loop(0, 2, lambda i, c: f(c, 2.0), x)))(X), 2 * np.sin(2 * np.sin(X)))


@under
@pytest.mark.parametrize("control_flow", ["select", "loop"])
def test_rule_that_closes_over_arrays_in_control_flow_that_differs(under, control_flow):
    """The rule's program holds the array; that of all examples together must hold it, too."""
    ruled = custom_vmap(lambda x: x * Y)
    ruled.def_vmap(lambda axis_size, in_batched, x: (x * Y, True))
    xs = np.array([[1.0, 1.0, 1.0], [-2.0, -2.0, -2.0], [0.1, 0.2, 0.3]])

    def chosen(x):
        return lax.cond(x.sum() > 1, ruled, lambda x: x, x)

    def looped(x):
        return lax.while_loop(lambda s: abs(s).sum() < 50, lambda s: ruled(s) + 1, x)

    def repeated(x):
        return lax.fori_loop(0, 1 + (x[0] > 0), lambda i, s: ruled(s), x)

    for f in (chosen, looped, repeated):
        batched = under(tl.vmap(tl.vmap(f, control_flow=control_flow), control_flow=control_flow))
        close(batched(xs[None])[0], np.stack([f(x) for x in xs]))
    gradients = under(tl.vmap(tl.grad(lambda x: chosen(x).sum()), control_flow=control_flow))(xs)
    close(gradients, np.stack([Y, np.ones(3), np.ones(3)]))


def test_rule_that_closes_over_traced_arrays_wherever_it_is_called():
    """They stand for themselves: they are mapped by outer vmaps, and derivatives go through them."""

    def ruled(a):
        f = custom_vmap(lambda x: x * a)
        f.def_vmap(lambda axis_size, in_batched, x: (10 * x * tl.jit(lambda: a + 0)(), True))  # tells who computed it
        return f

    def in_places(a, multiplied):
        return {
            "called": lambda x: multiplied(a)(x),
            "jit": tl.jit(lambda x: multiplied(a)(x)),
            "checkpoint": tl.checkpoint(lambda x: multiplied(a)(x)),
            "argument of jit": lambda x: tl.jit(lambda a, x: multiplied(a)(x))(a, x),
            "cond": lambda x: lax.cond(x > 1, multiplied(a), lambda x: x, x),
            "while": lambda x: lax.while_loop(lambda x: x < 30, multiplied(a), x),
            "fori": lambda x: lax.fori_loop(0, 2, lambda i, x: multiplied(a)(x) + 1, x),
            "scan": lambda x: lax.scan(lambda c, _: (multiplied(a)(c) + 1, None), x, length=2)[0],
            "scan of cond": lambda x: lax.scan(
                lambda c, _: (lax.cond(c > 1, multiplied(a), lambda x: x, c), c), x, length=2
            )[0],
        }

    xs, a = np.array([0.5, 2.0, 3.0]), np.array(0.7)

    def everything(multiplied):
        def batched(a, forward_only=True):
            places = in_places(a, multiplied)
            return {k: tl.vmap(f)(xs) for k, f in places.items() if forward_only or k != "while"}

        both_modes = lambda a: batched(a, forward_only=False)  # noqa: E731
        several = tl.vmap(batched)(np.array([0.7, 0.9]))
        branched = lambda a: tl.vmap(in_places(a, multiplied)["scan of cond"])(xs)  # noqa: E731
        return batched(a), tl.jacfwd(batched)(a), tl.jacrev(both_modes)(a), tl.hessian(branched)(a), several

    known = tl.jit(lambda: everything(lambda a: lambda x: 10 * a * x))()
    tl.tree.map(close, tl.jit(lambda: everything(ruled))(), known)
    close(tl.vmap(tl.jit(lambda a, x: ruled(a)(x)), (None, 0))(a, xs), 7 * xs)
    close(tl.grad(lambda a: tl.vmap(in_places(a, ruled)["cond"])(xs).sum())(a), 50)


def test_method():
    class Model:
        @custom_vmap
        def f(self, x):
            return x

        @f.def_vmap
        def rule(axis_size, in_batched, self, x):  # arguments come as the function has them
            return 2 * x, True

    with pytest.raises(TypeError, match=r"argument self of f is <.*Model object.*> of type Model"):
        Model().f(X)


def test_the_function_is_traced_once_in_a_program():
    traced = []

    @custom_vmap
    def f(x):
        traced.append(x)
        return 2 * x

    f.def_vmap(lambda axis_size, in_batched, x: (3 * x, True))
    close(f(X), 2 * X)
    close(tl.jit(tl.vmap(lambda x: f(x) + f(x + 1)))(np.stack([X, X])), np.stack([6 * X + 3] * 2))
    assert len(traced) == 2


def test_against_jax():
    jax = pytest.importorskip("jax")

    def build(custom, np_):
        @custom
        def f(x, y):
            return np_.sin(x) * y

        @f.def_vmap
        def rule(axis_size, in_batched, x, y):
            return np_.cos(x) * (y if in_batched[1] else 2 * y), True

        return f

    ours, theirs = build(custom_vmap, tnp), build(jax.custom_batching.custom_vmap, jax.numpy)
    x, y = X.astype(np.float32), Y.astype(np.float32)
    for in_axes, args in [(0, (x, y)), ((0, None), (x, y[0])), (None, (x, y))]:
        named = {"axis_size": 3} if in_axes is None else {}
        close(tl.vmap(ours, in_axes, **named)(*args), np.asarray(jax.vmap(theirs, in_axes, **named)(*args)))
    pushed = jax.vmap(lambda x, y: jax.jvp(theirs, (x, y), (y, x))[1])(x, y)
    np.testing.assert_allclose(tl.vmap(lambda x, y: tl.jvp(ours, (x, y), (y, x))[1])(x, y), pushed, rtol=1e-6)


# ---- one after the other -------------------------------------------------------------------------------------


@under
def test_sequential_vmap(under):
    f = sequential_vmap(lambda p, x: {"y": tnp.sin(x) * p["a"], "b": p["b"]})
    out = under(tl.vmap(f, ({"a": None, "b": 0}, 0)))({"a": 2.0, "b": Y}, X)
    close(out, {"y": 2 * np.sin(X), "b": Y})
    text = str(tl.make_jaxpr(tl.vmap(f, ({"a": None, "b": 0}, 0)))({"a": 2.0, "b": Y}, X))
    assert "scan" in text
    g = sequential_vmap(lambda x, y: tnp.sin(x) * y)
    table = under(tl.vmap(tl.vmap(g, (None, 0)), (0, None)))(X, Y)
    close(table, np.sin(X)[:, None] * Y)
    close(under(tl.grad(lambda x: tnp.sum(tl.vmap(g)(x, Y))))(X), np.cos(X) * Y)
    close(under(tl.vmap(tl.grad(g)))(X, Y), np.cos(X) * Y)


# ---- errors --------------------------------------------------------------------------------------------------


def of(rule):
    @custom_vmap
    def f(x, y):
        return {"a": x + y}

    f.def_vmap(rule)
    return f


WRONG = [
    (
        lambda n, b, x, y: {"a": x + y},
        TypeError,
        "custom_vmap: the rule of f must return (results, out_batched), but returned {'a': BatchTracer<f32[2]>}.",
    ),
    (
        lambda n, b, x, y: ({"a": x}, True),
        ValueError,
        "custom_vmap: the rule of f must return out_batched as booleans in the structure of its results, "
        "not True.\n  The root is a dict with 'a' in the results, a leaf in out_batched.",
    ),
    (
        lambda n, b, x, y: ({"a": x}, {"a": 0}),
        ValueError,
        "custom_vmap: the rule of f must return out_batched as booleans in the structure of its results, not {'a': 0}.",
    ),
    (
        lambda n, b, x, y: ((x, y), (True, True)),
        ValueError,
        "custom_vmap: the rule of f returned results of another structure than the function.\n"
        "  The root is a dict with 'a' in the function, a tuple of 2 in the rule.",
    ),
    (
        lambda n, b, x, y: ({"a": "no"}, {"a": True}),
        TypeError,
        "custom_vmap: the result['a'] of the rule of f is 'no' of type str, which is not an array.",
    ),
    (
        lambda n, b, x, y: ({"a": x[0]}, {"a": True}),
        TypeError,
        "custom_vmap: the rule of f, for 3 examples, returned other types than the function has:\n"
        "  result['a'] is float64[], but must be float64[3]",
    ),
    (
        lambda n, b, x, y: ({"a": x}, {"a": False}),
        TypeError,
        "custom_vmap: the rule of f, for 3 examples, returned other types than the function has:\n"
        "  result['a'] is float64[3], but must be float64[]",
    ),
    (
        lambda n, b, x, y: ({"a": x.astype(np.float32)}, {"a": True}),
        TypeError,
        "custom_vmap: the rule of f, for 3 examples, returned other types than the function has:\n"
        "  result['a'] is float32[3], but must be float64[3]",
    ),
]


@pytest.mark.parametrize("rule, kind, text", WRONG)
def test_errors_of_rules(rule, kind, text):
    if "BatchTracer" in text:
        with pytest.raises(kind, match=r"must return \(results, out_batched\), but returned {'a': "):
            tl.vmap(of(rule))(X, Y)
        return
    with raises(kind, text):
        tl.vmap(of(rule))(X, Y)


def test_error_no_rule():
    with raises(AttributeError, "custom_vmap: f has no rule: define one with def_vmap."):

        @custom_vmap
        def f(x):
            return x

        f(X)


def test_error_arguments_by_name_only():
    @custom_vmap
    def f(x, *, y):
        return x

    f.def_vmap(lambda n, b, x: (x, True))
    with raises(TypeError, "custom_vmap: f takes y by name only, but its rule takes positions."):
        f(X, y=Y)


def test_arguments_by_name_only_keep_their_defaults():
    @custom_vmap
    def f(x, *, y=2.0):
        return x * y

    f.def_vmap(lambda n, b, x: (3.0 * x, True))
    close(f(X), 2 * X)
    close(tl.vmap(f)(np.ones(2)), np.full(2, 3))


def test_error_closures():
    f = custom_vmap(lambda x: x)

    def closing(z):
        @custom_vmap
        def f(x):
            return x * z

        f.def_vmap(lambda n, b, x: (x * 2, True))
        return f

    assert f.vmap_rule is None
    text = (
        "custom_vmap: f closes over a value that is mapped, float64[3], axis 0, which its rule is not given.\n"
        "  Pass it as an argument."
    )
    with raises(TypeError, text):
        tl.vmap(lambda x: closing(x)(x))(X)
    close(tl.grad(lambda z: closing(z)(0.5))(2.0), 0.5)
    text = (
        "custom_vmap: f closes over a value that is being differentiated, float32[], which its rule is not given.\n"
        "  Pass it as an argument."
    )
    with raises(TypeError, text):
        tl.vmap(lambda x: tl.jvp(lambda z: closing(z)(x), (2.0,), (1.0,)))(X)


def test_inside_another_function_with_rules():
    @tl.custom_vjp
    @custom_vmap
    def f(x, y):
        return tnp.sin(x) * y

    f.def_vmap(lambda axis_size, in_batched, xs, ys: (tnp.cos(xs) * ys, True))
    f.defvjp(lambda x, y: (f(x, y), (x, y)), lambda xy, ct: (ct * xy[1], ct))
    assert tl.vmap(f)(np.zeros(3), np.ones(3)).tolist() == [1, 1, 1] and tl.grad(f)(0.0, 5.0) == 5.0
    for name in ("defjvp", "other"):
        with pytest.raises(AttributeError, match=f"'custom_vjp' object has no attribute '{name}'"):
            getattr(f, name)


def _of_a_loop(x):
    return lax.scan(lambda c, s: (tnp.sin(x - c * s), c), x, tnp.arange(1.0, 4.0), reverse=True)


def _of_a_branch(x):
    return lax.cond(x[0] > 0, lambda c: tnp.sin(c) * x, lambda c: c * x, x)


@pytest.mark.parametrize("f", [_of_a_loop, _of_a_branch])
@pytest.mark.parametrize("transform", [tl.jit, lambda f: f], ids=["jit", "eager"])
def test_pull_back_of_a_rule_that_computes_the_value_in_the_same_loop(f, transform, rng):
    """Batched, the rule is linearized as a whole: its loops hold values and tangents."""
    ruled = custom_vmap(f)
    ruled.def_vmap(lambda n, mapped, x: (tl.vmap(f)(x), tl.tree.map(lambda _: True, tl.eval_shape(f, x[0]))))
    x = rng.normal(size=(3, 2)).astype(np.float32)

    def pulled(g):
        def of_one(x, y):
            out, pull_back = tl.vjp(g, x)
            return pull_back(tl.tree.map(lambda v: v * y, out))[0]

        return [transform(tl.vmap(of_one))(x, x[:, 0]), transform(tl.vmap(of_one, (None, 0)))(x[0], x[:, 0])]

    for found, expected in zip(pulled(ruled), pulled(f), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)  # float32
