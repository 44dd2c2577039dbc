"""Programs that grow with n as they do on paper, counted: what is computed and moved under jit, at n and at 4 n.

A program of the table is measured as it is compiled: simplified as a whole, the value alone, then the value with its
gradient. Pointful programs, written with `vmap` over `arange`, compile to the operations that one writes for arrays:
without gathers, scatters and more contractions than on paper.
"""

from collections.abc import Callable
from math import log
from typing import Any, NamedTuple

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.interpreters.analysis import cost
from tapeless.interpreters.structured_constants import with_structure
from tapeless.lowering import emit
from tapeless.tracer.jaxpr import Jaxpr, subjaxprs
from tests.stepping import by_steps

Function = Callable[..., Any]


class Program(NamedTuple):
    """A function of arrays with so many axes, each of length n, which takes of the order of n**order."""

    order: int
    axes: tuple[int, ...]
    function: Function

    def at(self, n: int) -> list[Any]:
        """Types of arguments."""
        return [tl.ShapeDtypeStruct((n,) * k, "float64") for k in self.axes]


def same_place(n: int) -> Any:
    places = tnp.arange(n)
    return places[:, None] == places


def read_by_branches(x: Any, y: Any) -> Any:
    return lax.cond(x[0] > 0, lambda a: a[0], lambda a: a[1], tnp.outer(x, y))


PROGRAMS = {
    "(A @ B) @ v": Program(2, (2, 2, 1), lambda a, b, v: (a @ b) @ v),
    "(A @ B @ A)[:, 0]": Program(2, (2, 2), lambda a, b: (a @ b @ a)[:, 0]),
    "diag(x) @ diag(y) @ x": Program(1, (1, 1), lambda x, y: tnp.diag(x) @ tnp.diag(y) @ x),
    "sum(outer * eye)": Program(1, (1, 1), lambda x, y: tnp.sum(tnp.outer(x, y) * tnp.eye(len(x)))),
    "where(eye, outer, 0) @ x": Program(
        1, (1, 1), lambda x, y: tnp.where(tnp.eye(len(x), dtype=bool), tnp.outer(x, y), 0) @ x
    ),
    "where(iota == iota.T, outer, 0) @ x": Program(
        1, (1, 1), lambda x, y: tnp.where(same_place(len(x)), tnp.outer(x, y), 0) @ x
    ),
    "take(outer, [0, 2, 5], axis=1)": Program(
        1, (1, 1), lambda x, y: tnp.take(tnp.outer(x, y), np.array([0, 2, 5]), axis=1)
    ),
    "cumsum(outer)[0]": Program(1, (1, 1), lambda x, y: tnp.cumsum(tnp.outer(x, y))[0]),
    "cumsum(outer, 0)[0]": Program(1, (1, 1), lambda x, y: tnp.cumsum(tnp.outer(x, y), axis=0)[0]),
    "cumsum(outer, 1)[0]": Program(1, (1, 1), lambda x, y: tnp.cumsum(tnp.outer(x, y), axis=1)[0]),
    "where(eye, A @ B, 0)": Program(2, (2, 2), lambda a, b: tnp.where(tnp.eye(len(a), dtype=bool), a @ b, 0)),
    "(A @ B) * eye": Program(2, (2, 2), lambda a, b: (a @ b) * tnp.eye(len(a))),
    "(A @ B) * eye of NumPy": Program(2, (2, 2), lambda a, b: (a @ b) * np.eye(len(a))),
    "eye of NumPy @ x": Program(1, (1,), lambda x: np.eye(len(x)) @ x),
    "jit(outer)[0]": Program(1, (1, 1), lambda x, y: tl.jit(tnp.outer)(x, y)[0]),
    "jit(read)(outer)": Program(1, (1, 1), lambda x, y: tl.jit(lambda a: a[0])(tnp.outer(x, y))),
    "cond(read, read)(outer)": Program(1, (1, 1), read_by_branches),
    "checkpoint(read)(outer)": Program(
        1, (1, 1), lambda x, y: tl.checkpoint(lambda a: a[0] * a[:, 1])(tnp.outer(x, y))
    ),
    "Hessian of x @ A @ x": Program(2, (1, 2), lambda x, a: tl.hessian(lambda x: x @ a @ x)(x)),
    "Jacobian of the gradient of x @ A @ x": Program(
        2, (1, 2), lambda x, a: tl.jacrev(tl.grad(lambda x: x @ a @ x))(x)
    ),
}


def each(n: int, f: Function) -> Any:
    """The array of f(0), .., f(n - 1)."""
    return tl.vmap(f)(tnp.arange(n))


def product(a: Any, b: Any) -> Any:
    n = len(a)
    return each(n, lambda i: each(n, lambda j: tnp.sum(each(n, lambda k: a[i, k] * b[k, j]))))


POINTFUL = {
    "x[i] * x[n-1-i]": Program(1, (1,), lambda x: each(len(x), lambda i: x[i] * x[len(x) - 1 - i])),
    "sum_k A[i,k] B[k,j]": Program(3, (2, 2), product),
    "where(i < 10, x[i], x[i-10])": Program(1, (1,), lambda x: each(20, lambda i: tnp.where(i < 10, x[i], x[i - 10]))),
    "[x[j], 7, x[0], -0.2][i]": Program(
        1, (1,), lambda x: each(3, lambda i: each(4, lambda j: tnp.stack([x[j], 7.0, x[0], -0.2])[i]))
    ),
    "nested constant builds": Program(
        1, (1,), lambda x: each(2, lambda i: each(3, lambda j: each(4, lambda k: x[k])[j])[i])
    ),
}
POINTFUL |= {
    "x[i+1] + x[i-1], periodic": Program(1, (1,), lambda x: each(len(x), lambda i: x[(i + 1) % len(x)] + x[i - 1])),
    "A[i,j+1] + A[j,i], at most the last": Program(
        2,
        (2,),
        lambda a: each(len(a), lambda i: each(len(a), lambda j: a[i, tnp.minimum(j + 1, len(a) - 1)] + a[j, i])),
    ),
    "sum_k where(i == k, x[k], 0)": Program(
        1, (1,), lambda x: each(len(x), lambda i: tnp.sum(each(len(x), lambda k: tnp.where(i == k, x[k], 0.0))))
    ),
    "y[n-1-i] = x[i]": Program(1, (1,), lambda x: tnp.zeros_like(x).at[len(x) - 1 - tnp.arange(len(x))].set(x)),
}
CONTRACTIONS = {"sum_k A[i,k] B[k,j]": {"value": 1, "gradient": 3}}
MODES = ("value", "gradient")
each_mode = pytest.mark.parametrize("mode", MODES)


def in_mode(f: Function, mode: str) -> Function:
    """The function, or the value and gradient, by all arguments, of the sum of a function of all its elements."""

    def with_gradient(*args: Any) -> Any:
        return tl.value_and_grad(lambda *args: tnp.sum(tnp.sin(f(*args))), tuple(range(len(args))))(*args)

    return f if mode == "value" else with_gradient


def compiled(program: Program, mode: str, n: int) -> Jaxpr:
    """What is handed to the compiler, without the call of `jit` around it."""
    return before_emission(with_structure(tl.make_jaxpr(in_mode(program.function, mode))(*program.at(n))).jaxpr)


def before_emission(jaxpr: Jaxpr) -> Jaxpr:
    for run in emit.passes:
        jaxpr = run(jaxpr)
    return jaxpr


def scalars(jaxpr: Jaxpr) -> int:
    """Operations, and scalars that are moved or repeated."""
    found = cost.cost(jaxpr)
    return found.work - found.drops + found.moved


def primitives(jaxpr: Jaxpr) -> list[str]:
    """Names of the operations, those of programs inside too."""
    inner = [name for eqn in jaxpr.eqns for program in subjaxprs(eqn.params) for name in primitives(program)]
    return [*[eqn.primitive.name for eqn in jaxpr.eqns], *inner]


@each_mode
@pytest.mark.parametrize("name", PROGRAMS)
def test_order(name: str, mode: str):
    program = PROGRAMS[name]
    small, large = [scalars(compiled(program, mode, n)) for n in (32, 128)]
    assert log((large + 1) / (small + 1), 4) <= program.order + 0.2


@each_mode
@pytest.mark.parametrize("name", POINTFUL)
def test_pointful_programs_index_nothing(name: str, mode: str):
    found = primitives(compiled(POINTFUL[name], mode, 32))
    assert not [each for each in found if each.startswith(("gather", "scatter", "dynamic"))]
    assert found.count("dot_general") == CONTRACTIONS.get(name, {}).get(mode, 0)


@each_mode
@pytest.mark.parametrize("name", [*PROGRAMS, *POINTFUL])
def test_values(name: str, mode: str):
    """The program that is compiled gives what the one that was written does."""
    program = {**PROGRAMS, **POINTFUL}[name]
    random, n = np.random.default_rng(0), 12
    args = [random.uniform(0.5, 1, size=(n,) * k) for k in program.axes]
    closed = tl.make_jaxpr(in_mode(program.function, mode))(*args)
    expected = by_steps(closed.jaxpr, [*closed.consts, *args])
    structured = with_structure(closed)
    found = by_steps(before_emission(structured.jaxpr), [*structured.consts, *args])
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10)  # sums of n squared positive numbers, in another order


# ---- programs of programs ------------------------------------------------------------------------------------


def nested(depth: int) -> Function:
    """So many calls in calls, each with an operation of its own before and after."""
    f: Function = tnp.sin
    for _ in range(depth):
        f = tl.jit(lambda x, f=f: tnp.sin(f(tnp.sin(x))))
    return f


SIZED: dict[str, Callable[[Function], Jaxpr]] = {
    "value and gradient": lambda f: tl.make_jaxpr(tl.value_and_grad(f))(1.0).jaxpr,
    "gradient of the gradient": lambda f: tl.make_jaxpr(tl.grad(tl.grad(f)))(1.0).jaxpr,
    "linear": lambda f: tl.unzip(f, 1.0).linear,
    "transposed": lambda f: tl.unzip(f, 1.0).transposed,
    "pushed": lambda f: tl.make_jaxpr(lambda t: tl.linearize(f, 1.0)[1](t))(1.0).jaxpr,
    "before emission": lambda f: before_emission(tl.make_jaxpr(tl.grad(f))(1.0).jaxpr),
}


@pytest.mark.parametrize("form", SIZED)
def test_size_is_linear_in_the_depth(form: str):
    """Equations and references: no call passes on the residuals of the calls inside of it."""
    small, middle, large = [cost.program_size(SIZED[form](nested(depth))) for depth in (8, 16, 32)]
    assert large - middle == 2 * (middle - small)


def masked(x: Any) -> Any:
    return tnp.where(x > 0, tnp.log(x), 0)


def looped(f: Function) -> Function:
    return lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0]


LINEARIZED: dict[str, Function] = {
    "a mask": masked,
    "a mask in a call": tl.jit(masked),
    "a mask in a loop": looped(masked),
    "a mask around a loop": lambda x: tnp.where(x > 0, looped(tnp.sqrt)(x), 0),
}


@pytest.mark.parametrize("name", LINEARIZED)
def test_linearizing_a_linear_map_adds_no_choice(name: str):
    def choices(times: int) -> int:
        def pushed(x: Any, t: Any) -> Any:
            f = LINEARIZED[name]
            for _ in range(times):
                f = tl.linearize(tl.jit(f) if "call" in name else f, x)[1]
            return f(t)

        args = [tl.ShapeDtypeStruct((3,), "float64")] * 2
        return primitives(before_emission(tl.make_jaxpr(pushed)(*args).jaxpr)).count("select_n")

    assert choices(3) == choices(1)
