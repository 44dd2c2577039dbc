"""Descriptions of bodies: every primitive that carries programs, and a loop that has nothing but a description."""

import sys
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.interpreters.index_rows import index_row
from tapeless.interpreters.rules import control_flow as transformed
from tapeless.interpreters.simplify import simplify_program
from tapeless.lowering.rules import control_flow as lowered
from tapeless.tracer.bodies import (
    CARRY,
    CONST,
    Bodies,
    Description,
    bodies_of,
    descriptions,
    in_groups,
    rebuild_equation,
)
from tapeless.tracer.core import Primitive, all_primitives
from tapeless.tracer.jaxpr import Equation, Jaxpr
from tapeless.tracer.settings.config import Scope
from tests.settings import forget

# Their programs are functions of the user, or the linear map of a rule.
NOT_DESCRIBED = {"pure_callback", "io_callback", "debug_callback", "custom_linear", "linear_while", "linear_scan"}


def test_every_primitive_that_carries_programs_describes_them():
    carrying = {p.name for p in all_primitives() if p.carries_programs}
    assert carrying - {p.name for p in descriptions} == NOT_DESCRIBED


def loops() -> dict[str, Any]:
    step = lambda c, a: (c * tnp.sin(a) + 2, c)  # noqa: E731
    return {
        "scan": lambda x: lax.scan(step, x[0], x)[1],
        "reversed": lambda x: lax.scan(step, x[0], x, reverse=True)[1],
        "while": lambda x: lax.while_loop(lambda c: c[0] < x[2], lambda c: (c[0] + 1, c[1] * x[1]), (x[0], x))[1],
        "cond": lambda x: lax.cond(x[0] > 0, lambda y: tnp.sin(x) * y, lambda y: y - x, x),
        "jit": lambda x: tl.jit(lambda y: tnp.sin(x) * y)(x),
        "checkpoint": lambda x: tl.checkpoint(lambda y: tnp.sin(x) * y)(x),
    }


@pytest.mark.parametrize("name", loops())
def test_rebuilt_with_operands_in_another_order_it_computes_the_same(name):
    """Operands, and inputs of bodies, are brought into the order of the primitive."""
    x = np.array([0.5, 1.5, 3.0])
    jaxpr = tl.make_jaxpr(loops()[name])(x).jaxpr
    eqns = [_turned(eqn) if bodies_of(eqn) is not None else eqn for eqn in jaxpr.eqns]
    turned = jaxpr.replace(eqns=eqns)
    assert any(new is not old for new, old in zip(eqns, jaxpr.eqns))
    np.testing.assert_array_equal(*[tl.core.eval_jaxpr(program, (), x)[0] for program in (turned, jaxpr)])


def _turned(eqn: Equation) -> Equation:
    bodies = bodies_of(eqn)
    assert bodies is not None
    last = len(eqn.invars) - 1
    turned = [body._replace(operands=tuple([last - at for at in body.operands])) for body in bodies.each]
    if bodies.selector is not None:  # which stays the first operand
        order = [0, *range(last, 0, -1)]
        turned = [body._replace(operands=tuple([order.index(at) for at in body.operands])) for body in bodies.each]
        return rebuild_equation(eqn, turned, [eqn.invars[k] for k in order])
    return rebuild_equation(eqn, turned, eqn.invars[::-1])


# ---- a loop that has nothing but a description ----------------------------------------------------------------


def _repeat_type(*avals: Any, jaxpr: Jaxpr, n: int, fixed: int) -> Any:
    if n < 0:
        raise ValueError(f"repeat: n must not be negative, and is {n}.")
    return jaxpr.out_avals


def _repeat_bodies(jaxpr: Jaxpr, n: int, fixed: int) -> Bodies:
    carries = len(jaxpr.outvars)
    return Bodies((in_groups(jaxpr, [(CONST, fixed), (CARRY, carries)], [(CARRY, carries)]),), range(n))


repeat_p = Primitive("repeat", _repeat_type, remember=False, registered=False)


@pytest.fixture(scope="module", autouse=True)
def described():
    """Describe the loop, and enter its rules, for these tests alone."""
    with_body = lambda params, bodies: {**params, "jaxpr": bodies[0].jaxpr, "fixed": bodies[0].number_of(CONST)}  # noqa: E731
    descriptions[repeat_p] = Description(_repeat_bodies, with_body)
    transformed.enter_loop(repeat_p)
    lowered.enter_loop(repeat_p)
    yield
    forget({repeat_p})


def repeat(n: int, body: Any, x: Any) -> Any:
    """Apply `body` n times."""
    closed = tl.make_jaxpr(body)(x)
    return repeat_p.bind(*closed.consts, x, jaxpr=closed.jaxpr, n=n, fixed=len(closed.consts))[0]


def by_repeat(x: Any) -> Any:
    return repeat(3, lambda c: tnp.where(c > 0.8, tnp.sqrt(c), tnp.sin(c)) + 0.1, x)


def by_scan(x: Any) -> Any:
    step = lambda c, _: (tnp.where(c > 0.8, tnp.sqrt(c), tnp.sin(c)) + 0.1, None)  # noqa: E731
    return lax.scan(step, x, None, length=3)[0]


TRANSFORMATIONS = {
    "eager": lambda f: f,
    "jit": tl.jit,
    "jvp": lambda f: lambda x: tl.jvp(f, (x,), (tnp.cos(x),))[1],
    "grad": lambda f: tl.grad(lambda x: f(x).sum()),
    "jit grad": lambda f: tl.jit(tl.grad(lambda x: f(x).sum())),
    "Hessian": lambda f: tl.hessian(lambda x: f(x).sum()),
    "vmap": lambda f: lambda x: tl.vmap(f)(tnp.stack([x, x + 1])),
    "vmap grad": lambda f: lambda x: tl.vmap(tl.grad(lambda x: f(x).sum()))(tnp.stack([x, x + 1])),
    "linearize": lambda f: lambda x: tl.linearize(f, x)[1](x),
    "jacrev": tl.jacrev,
    "checkpoint": lambda f: tl.grad(tl.checkpoint(lambda x: f(x).sum())),
    "budget": lambda f: tl.grad(tl.checkpoint(lambda x: f(x).sum(), policy=tl.checkpoint_policies.budget(0))),
    "Taylor mode": lambda f: lambda x: tl.experimental.jet.jet(f, (x,), ((np.ones(4), np.zeros(4)),))[1],
}


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_a_described_loop_has_all_transformations(name):
    x = np.array([0.0, 0.5, 0.9, 2.0])
    ours, wanted = [TRANSFORMATIONS[name](f)(x) for f in (by_repeat, by_scan)]
    for a, b in zip(tl.tree.leaves(ours), tl.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=0)  # the same operations in the same order


def test_analyses_and_passes_know_it():
    x = np.arange(1.0, 5.0)
    assert tl.cost(by_repeat, x).work == tl.cost(by_scan, x).work
    tl.check_linear(lambda x: repeat(3, lambda c: 2 * c, x), x)
    with pytest.raises(tl.errors.LinearityError, match="bilinear"):
        tl.check_linear(lambda x: repeat(3, lambda c: c * c, x), x)
    program = simplify_program(
        tl.make_jaxpr(lambda x: repeat(3, lambda c: c + tl.jit(lambda a, b: a)(x, tnp.log(x)), x))(x).jaxpr
    )
    assert "log" not in str(program)


def test_it_has_no_index_row():
    (eqn,) = tl.make_jaxpr(lambda x: repeat(3, tnp.sin, x))(np.ones(3)).jaxpr.eqns
    assert index_row(eqn) is None


@pytest.mark.parametrize("length", [0, 1, 2])
@pytest.mark.parametrize("carries", [False, True])
@pytest.mark.parametrize("scans", [False, True])
@pytest.mark.parametrize("stacks", [False, True])
def test_loops_of_every_form_are_loops(length, carries, scans, stacks):
    """Also those of one step, without a carry, without elements, or without results: values, costs and derivatives."""
    x = np.arange(1.0, 1.0 + length)

    def looped(w: Any) -> Any:
        step = lambda c, a: ((c * w if carries else ()), (w * (1 if a is None else a) if stacks else None))  # noqa: E731
        c, ys = lax.scan(step, w if carries else (), x if scans else None, length=length)
        return (c if carries else 0 * w) + (ys.sum() if stacks else 0)

    power = 1.5 ** (1 + length) if carries else 0.0
    slope = (1 + length) * 1.5**length if carries else 0.0
    total = (x.sum() if scans else length) if stacks else 0.0
    for f in (looped, tl.jit(looped)):
        assert f(1.5) == pytest.approx(power + 1.5 * total, rel=1e-6)
        assert tl.grad(f)(1.5) == pytest.approx(slope + total, rel=1e-6)
        assert tl.vmap(tl.grad(f))(tnp.array([1.5, 0.0]))[0] == pytest.approx(slope + total, rel=1e-6)
    product = lambda w: lax.scan(lambda c, a: (c * w, None), w, x)[0]  # noqa: E731
    assert tl.cost(product, 1.5).sparse.work == length  # a product in each step
    tl.cost(looped, 1.5)  # of every form, without an error
    tl.check_linear(lambda w: lax.scan(lambda c, a: (c, w), (), x)[1], 1.5)


@pytest.mark.parametrize("transform", [lambda f: f, tl.jit, tl.grad, tl.vmap, lambda f: lambda x: tl.linearize(f, x)])
def test_its_own_type_is_checked_in_every_mode(transform):
    """A described loop runs as a scan does, which knows nothing of its own conditions."""
    x = np.ones(3)
    with pytest.raises(ValueError, match=r"repeat: n must not be negative, and is -1\."):
        transform(lambda x: repeat(-1, tnp.sin, x).sum())(x)


# ---- the price of descriptions -------------------------------------------------------------------------------


def loop_in_branch(x):
    loop = lambda x: lax.fori_loop(0, 5, lambda i, c: tnp.sin(c) * x, x)  # noqa: E731
    return lax.cond(tnp.sum(x) > 0, loop, lambda x: x * 2, x)


def scan_of_sines(xs):
    return lax.scan(lambda c, a: (c * a, tnp.sin(c)), xs[0], xs)[1]


# Calls of functions while a program is traced, which say more than its time on a machine that does other things, too.
# So many were called, in Python 3.11, before bodies had descriptions and each transformation knew each primitive.
CALLS = {
    "gradient of a loop in a branch": (lambda x: tl.grad(loop_in_branch)(x[0]), 7_750),
    "hessian of a loop in a branch": (tl.hessian(lambda x: tnp.sum(loop_in_branch(x))), 49_100),
    "gradient of a scan": (tl.grad(lambda x: tnp.sum(scan_of_sines(x))), 3_430),
    "gradient of mapped scans": (tl.grad(lambda x: tnp.sum(tl.vmap(lambda c: scan_of_sines(c * x))(x))), 5_350),
}


@pytest.mark.parametrize("name", CALLS)
def test_tracing_bodies_takes_few_calls(name: str):
    f, most = CALLS[name]
    x, calls = tnp.linspace(0.1, 1.0, 8), 0

    def count(frame: Any, event: str, arg: Any) -> None:
        nonlocal calls
        calls += event == "call"

    trace = lambda: tl.jit(lambda x: f(x)).trace(x)  # noqa: E731
    with Scope({"check_programs": False}):
        trace()
        sys.setprofile(count)
        try:
            trace()
        finally:
            sys.setprofile(None)
    assert most / 2 < calls <= most, calls
