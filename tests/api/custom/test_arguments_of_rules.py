"""What users' functions are called with: arrays of ours, or tracers, with our promotion, which nobody shares."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.core import ShapedArray
from tapeless.custom_batching import custom_vmap
from tapeless.custom_derivatives import linear_call
from tapeless.extend import ad, batching, mlir
from tapeless.extend.core import Primitive

pytestmark = pytest.mark.usefixtures("eager_by_steps")

XS = np.ones(3, np.float32)


class Seen:
    """A wrapper of functions that notes what they are called with."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[Any]]] = []

    def __call__(self, name: str, f: Callable[..., Any]) -> Callable[..., Any]:
        def noting(*args: Any, **kwargs: Any) -> Any:
            self.calls.append((name, tl.tree.leaves((args, kwargs))))
            return f(*args, **kwargs)

        return noting

    def others(self) -> list[tuple[str, Any]]:
        """What is neither an array, nor a symbolic zero, nor a function that a solver is given."""
        known = (tl.Array, ad.Zero)
        return [(f, x) for f, leaves in self.calls for x in leaves if not isinstance(x, known) and not callable(x)]


def reversed_by_rule(seen: Seen, apply: Callable[[Any], Any]) -> None:
    f = tl.custom_vjp(seen("fun", lambda x, n: tnp.sin(x) * n))
    f.defvjp(seen("fwd", lambda x, n: (tnp.sin(x) * n, (x, n))), seen("bwd", lambda r, ct: (ct * r[0] * r[1], None)))
    apply(f)


def pushed_by_rule(seen: Seen, apply: Callable[[Any], Any]) -> None:
    f = tl.custom_jvp(seen("fun", lambda x, n: tnp.sin(x) * n))
    f.defjvp(seen("jvp", lambda primals, tangents: (f(*primals), tangents[0] * primals[1])))
    apply(f)


def batched_by_rule(seen: Seen, apply: Callable[[Any], Any]) -> None:
    f = custom_vmap(seen("fun", lambda x, n: x * n))
    f.def_vmap(lambda size, mapped, *args: seen("rule", lambda x, n: (x * n, True))(*args))
    apply(f)


def of_primitive(seen: Seen, apply: Callable[[Any], Any]) -> None:
    p = Primitive("p")
    p.def_abstract_eval(lambda x, n: ShapedArray(x.shape, x.dtype))
    p.def_impl(seen("impl", lambda x, n: x * n))
    ad.primitive_jvps[p] = seen("jvp", lambda primals, tangents: (p.bind(*primals), p.bind(tangents[0], primals[1])))
    ad.primitive_transposes[p] = lambda ct, x, n: seen("transpose", lambda ct, n: [ct * n, None])(ct, n)
    batching.fancy_primitive_batchers[p] = lambda axis, args, dims: seen("batch", lambda x, n: (x * n, 0))(*args)
    mlir.register_lowering(p, mlir.lower_fun(seen("lowering", lambda x, n: x * n), multiple_results=False))
    apply(p.bind)


def by_linear_call(seen: Seen, apply: Callable[[Any], Any]) -> None:
    apply(lambda x, n: linear_call(seen("fun", lambda r, x: x * r), seen("transpose", lambda r, ct: ct * r), n, x))


def by_gradient(seen: Seen, apply: Callable[[Any], Any]) -> None:
    apply(tl.custom_gradient(seen("fun", lambda x, n: (x * n, seen("rule", lambda ct: (ct * n, ct * x))))))


def by_solver(seen: Seen, apply: Callable[[Any], Any]) -> None:
    def solved(x: Any, n: Any) -> Any:
        solve = seen("solve", lambda _, b: b / 2.0)
        return n * lax.custom_linear_solve(seen("matvec", lambda v: 2.0 * v), x, solve, solve)

    apply(solved)


def by_root(seen: Seen, apply: Callable[[Any], Any]) -> None:
    def root(x: Any, n: Any) -> Any:
        solve, tangent_solve = (
            seen("solve", lambda f, guess: guess - f(guess)),
            seen("tangent", lambda g, y: y / g(1.0)),
        )
        return n * lax.custom_root(seen("f", lambda v: v - x), 1.0, solve, tangent_solve)

    apply(root)


USES: dict[str, Callable[[Any], Any]] = {
    "number": lambda f: f(2.0, 3.0),
    "NumPy": lambda f: f(np.float32(2.0), np.ones((), np.float32)),
    "grad": lambda f: tl.grad(f)(2.0, 3.0),
    "grad of NumPy": lambda f: tl.grad(f)(np.float32(2.0), np.ones((), np.float32)),
    "grad of an array": lambda f: tl.grad(lambda x: tnp.sum(f(x, 3.0)))(tnp.ones(())),
    "grad of a multiple": lambda f: tl.grad(lambda x: 2.0 * f(x, 3.0))(2.0),
    "jit of grad": lambda f: tl.jit(tl.grad(lambda x: f(x, 3.0)))(2.0),
    "grad of jit": lambda f: tl.grad(tl.jit(lambda x: f(x, 3.0)))(2.0),
    "vjp": lambda f: tl.vjp(lambda x: f(x, 3.0), np.float32(2.0))[1](np.float32(1.0)),
    "vmap": lambda f: tl.vmap(f, (0, None))(XS, 3.0),
    "vmap of grad": lambda f: tl.vmap(tl.grad(lambda x: f(x, 3.0)))(XS),
    "grad of vmap": lambda f: tl.grad(lambda x: tnp.sum(tl.vmap(f, (0, None))(x, 3.0)))(XS),
    "jvp": lambda f: tl.jvp(lambda x: f(x, 3.0), (2.0,), (1.0,)),
}
KINDS = [
    reversed_by_rule,
    pushed_by_rule,
    batched_by_rule,
    of_primitive,
    by_linear_call,
    by_gradient,
    by_solver,
    by_root,
]


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_functions_of_users_are_called_with_arrays_of_ours(kind: Any, use: str) -> None:
    seen = Seen()
    kind(seen, USES[use])
    assert seen.calls and seen.others() == []


def test_a_function_called_without_derivative_gets_arrays() -> None:
    seen = Seen()
    reversed_by_rule(seen, lambda f: f(2.0, np.float32(3.0)))
    assert [repr(x) for x in seen.calls[0][1]] == [
        "Array(2., dtype=float32, weak_type=True)",
        "Array(3., dtype=float32, weak_type=True)",
    ]


# ---- nothing that is shared can be changed


def test_a_rule_that_computes_in_place_changes_no_other_gradient() -> None:
    """`ct *= 2` on a NumPy array would change the array itself, which is the seed of all gradients."""

    @tl.custom_vjp
    def doubled(x: Any) -> Any:
        return tnp.sum(x)

    def backward(_: Any, ct: Any) -> Any:
        ct *= 2
        return (ct * tnp.ones(3),)

    doubled.defvjp(lambda x: (tnp.sum(x), None), backward)
    for gradient in (tl.grad(doubled), tl.grad(doubled), tl.jit(tl.grad(doubled))):
        np.testing.assert_array_equal(gradient(tnp.ones(3)), 2 * XS)
    np.testing.assert_array_equal(tl.grad(lambda x: tnp.sum(x * 1.5))(tnp.ones(3)), 1.5 * XS)
    np.testing.assert_array_equal(tl.jit(tl.grad(lambda x: tnp.sum(x * 1.5)))(tnp.ones(3)), 1.5 * XS)


def test_a_transpose_rule_that_computes_in_place_changes_no_other_gradient() -> None:
    p = Primitive("p")
    p.def_abstract_eval(lambda x: ShapedArray(x.shape, x.dtype))
    p.def_impl(lambda x: x)

    def transpose(ct: Any, x: Any) -> Any:
        ct += 1
        return [ct]

    ad.deflinear2(p, transpose)
    assert [float(tl.grad(p.bind)(tnp.float32(2.0))) for _ in range(3)] == [2.0, 2.0, 2.0]
    assert float(tl.grad(lambda x: 1.5 * x)(2.0)) == 1.5


@pytest.mark.parametrize("strong", [False, True])
def test_what_a_rule_computes_has_the_dtype_that_arrays_have(strong: bool) -> None:
    """A NumPy scalar times `np.sqrt(3.0)` is float64, as NumPy promotes."""

    @tl.custom_vjp
    def total(x: Any) -> Any:
        return tnp.sum(x) if strong else x

    total.defvjp(
        lambda x: (total(x), x.shape),
        lambda shape, ct: (ct / np.sqrt(3.0) * (tnp.ones(shape) if strong else 1),),
    )
    x: Any = tnp.ones(3) if strong else 2.0
    for gradient in (tl.grad(total), tl.jit(tl.grad(total)), tl.grad(lambda x: 2 * total(x))):
        assert gradient(x).dtype == np.float32


def test_gradients_inside_of_a_traced_function_are_arrays() -> None:
    """That of a linear function is a number, which NumPy would promote."""
    inner: list[Any] = []

    def f(x: Any) -> Any:
        inner.extend([tl.grad(lambda y: 1.5 * y)(x), *tl.vjp(lambda y: (1.5 * y, 2.0), x)[1]((1.0, 0.0))])
        return inner[0] / np.sqrt(3.0) * x

    assert tl.jit(f)(tnp.ones(3)[0]).dtype == np.float32
    assert all(isinstance(x, tl.Array) for x in inner)


def test_truth_values_of_python_stay_what_they_are() -> None:
    @tl.custom_vjp
    def f(x: Any, negated: bool) -> Any:
        return -x if negated else x

    f.defvjp(lambda x, negated: (f(x, negated), negated), lambda negated, ct: (-ct if negated else ct, None))
    assert float(tl.grad(f)(2.0, True)) == -1.0


def test_whole_numbers_in_rules_may_be_counts_and_indices() -> None:
    @tl.custom_vjp
    def power(x: Any, n: int) -> Any:
        return x**n

    def forward(x: Any, n: int) -> Any:
        return power(x, n), (x, n)

    def backward(residuals: Any, ct: Any) -> Any:
        x, n = residuals
        for _ in range(n - 1):
            ct = ct * x
        return ct * n, None

    power.defvjp(forward, backward)
    assert float(tl.grad(power)(2.0, 3)) == 12.0


# ---- control flow that runs in Python

BODIES: dict[str, Callable[[Seen], Any]] = {
    "cond": lambda seen: lax.cond(True, seen("true", lambda x: x), lambda x: x, 2.0),
    "switch": lambda seen: lax.switch(1, [lambda x: x, seen("branch", lambda x: x)], 2.0),
    "switch of one": lambda seen: lax.switch(0, [seen("branch", lambda x: x)], 2.0),
    "while": lambda seen: lax.while_loop(seen("cond", lambda x: x < 5.0), seen("body", lambda x: x + 1), 2.0),
    "fori": lambda seen: lax.fori_loop(0, 2, seen("body", lambda i, x: x * i), 2.0),
    "scan": lambda seen: lax.scan(seen("body", lambda c, x: (c, x)), 2.0, XS)[0],
    "map": lambda seen: lax.map(seen("body", lambda x: x), XS),
    "jit": lambda seen: tl.jit(seen("f", lambda x, y: x * y))(2.0, y=XS),
    "checkpoint": lambda seen: tl.checkpoint(seen("f", lambda x: x))(2.0),
    "gradient": lambda seen: tl.grad(lambda x: lax.fori_loop(0, 2, seen("body", lambda i, c: c * x), 2.0))(2.0),
}


@pytest.mark.parametrize("name", BODIES)
def test_bodies_that_run_without_jit_are_called_with_arrays(name: str) -> None:
    seen = Seen()
    with tl.disable_jit():
        found = BODIES[name](seen)
    assert seen.calls and isinstance(found, tl.Array)
    assert seen.others() == []


def test_without_jit_static_arguments_stay_what_they_are() -> None:
    with tl.disable_jit():
        assert tl.jit(lambda x, n: (x, tnp.float32(type(n) is int)), static_argnums=1)(2.0, 3)[1] == 1.0


@pytest.mark.parametrize(
    "f", [lambda x: x, lax.optimization_barrier, lambda x: tl.ad_checkpoint.checkpoint_name(x, "x")]
)
def test_results_that_are_operands_are_arrays_of_their_own(f: Any) -> None:
    given = XS.copy()
    found = tl.vmap(f, None, None, axis_size=2)(given)
    given[:] = 7
    assert isinstance(found, tl.Array)
    np.testing.assert_array_equal(found, XS)
