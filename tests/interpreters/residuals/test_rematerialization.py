"""Save or recompute, on programs in hand: each plan is carried out, and gives what the program gives."""

from typing import Any

import numpy as np
import pytest

from tapeless.interpreters import partial_eval
from tapeless.interpreters.jvp import jvp_jaxpr
from tapeless.interpreters.residuals.rematerialization import (
    EXCLUDED,
    Offload,
    plan_rematerialization,
    save_all,
    save_none,
)
from tapeless.tracer.jaxpr import Jaxpr
from tapeless.tracer.primitives import call
from tapeless.tracer.primitives import control_flow as control
from tapeless.tracer.primitives.checkpoint import checkpoint, move, name
from tapeless.tracer.primitives.elementwise import add, cos, lt, mul, sin
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import ShapedArray
from tests.interpreters.plans import carried_out

SCALAR, VECTOR = ShapedArray((), np.dtype(np.float64)), ShapedArray((3,), np.dtype(np.float64))


def program(f: Any, *avals: ShapedArray) -> Jaxpr:
    jaxpr, consts = trace_to_jaxpr(f, avals or [SCALAR])
    assert not consts
    return jaxpr


def saving(*primitives: str) -> Any:
    return lambda primitive, *_, **__: str(primitive) in primitives


def planned(jaxpr: Jaxpr, policy: Any) -> tuple[list[str], list[str]]:
    """What is saved, by what makes it, and what is computed again, once it is known to give the same values."""
    plan = carried_out(jaxpr, policy)
    made = {v: str(eqn.primitive) for eqn in plan.eqns for v in eqn.outvars}
    return [made.get(v, "input") for v in plan.saved], [str(eqn.primitive) for eqn in plan.again]


def test_straight_line():
    f = program(lambda x: [mul(sin(x), cos(sin(x)))])
    assert planned(f, save_all) == (["mul"], [])
    assert planned(f, save_none) == (["input"], ["sin", "sin", "cos", "mul"])
    assert planned(f, saving("sin")) == (["sin", "sin"], ["cos", "mul"])
    assert planned(f, saving("cos")) == (["input", "cos"], ["sin", "mul"])


def test_only_what_is_needed_is_asked_for():
    asked = []
    f = program(lambda x: [sin(x), cos(sin(x))])
    plan_rematerialization(
        f, f.outvars[:1], lambda primitive, *avals, **params: asked.append((str(primitive), avals, params))
    )
    assert asked == [("sin", (SCALAR,), {})]


def test_results_that_are_inputs_or_literals():
    f = program(lambda x: [x, 2.0, sin(x)])
    assert planned(f, save_none) == (["input"], ["sin"])


def test_names_stand_for_what_they_name():
    f = program(lambda x: [cos(y := sin(x)), sin(name(y, "y"))])
    assert planned(f, saving("name")) == (["name"], ["cos", "sin"])
    assert planned(f, save_none) == (["input"], ["sin", "cos", "name", "sin"])
    excluding = lambda primitive, *_, **__: EXCLUDED if str(primitive) == "name" else str(primitive) == "sin"  # noqa: E731
    assert planned(f, excluding) == (["input", "sin"], ["sin", "cos"])


def moving(*primitives: str) -> Any:
    return lambda primitive, *_, **__: Offload("here", "there") if str(primitive) in primitives else False


def test_what_is_offloaded_is_moved_away_and_back():
    f = program(lambda x: [mul(sin(x), cos(sin(x)))])
    assert planned(f, moving("sin")) == (["move", "move"], ["move", "move", "cos", "mul"])
    assert planned(f, moving("cos")) == (["input", "move"], ["move", "sin", "mul"])
    plan = plan_rematerialization(f, f.outvars, moving("cos"))
    assert [str(eqn.primitive) for eqn in plan.eqns] == ["sin", "sin", "cos", "move", "mul"]
    away, back = plan.eqns[3], plan.again[0]
    assert (away.params, back.params) == ({"src": "here", "dst": "there"}, {"src": "there", "dst": "here"})
    assert (away.invars, away.outvars) == (back.outvars, back.invars)


def test_offloaded_names_stand_for_what_they_name():
    f = program(lambda x: [cos(y := sin(x)), sin(name(y, "y"))])
    assert planned(f, moving("name")) == (["move"], ["move", "cos", "sin"])
    assert planned(program(lambda x: [sin(name(x, "x"))]), moving("name")) == (["move"], ["move", "sin"])
    assert planned(program(lambda x: [name(x, "x"), sin(x)]), moving("name")) == (["input", "move"], ["move", "sin"])


def test_what_is_moved_already_is_not_moved_again():
    f = program(lambda x: [move(y := sin(x), "here", "there"), cos(y)])
    both = lambda primitive, *_, **__: str(primitive) == "move" or moving("sin")(primitive)  # noqa: E731
    assert planned(f, both) == (["move"], ["move", "cos"])
    assert planned(f, moving("sin")) == (["move"], ["move", "move", "cos"])  # a move that is not saved is done again


def test_programs_inside_move_what_they_offload():
    inner = program(lambda x: [mul(sin(x), cos(x))])
    call_inner = program(lambda x: call.jit(inner, x))
    plan = plan_rematerialization(call_inner, call_inner.outvars, moving("sin", "cos"))
    assert inside(plan.eqns[0]) == ["sin", "move", "cos", "move", "mul"]
    assert sorted(inside(plan.again[0])) == ["move", "move", "mul"]
    known, again = scanned(moving("sin"), lambda h, x: [mul(sin(h), x), cos(sin(h))])
    assert inside(known).count("move") == inside(again).count("move") == 2
    assert [str(v.aval) for v in known.outvars[2:]] == ["float64[3]", "float64[3]"]
    one, two = program(lambda x: [mul(sin(x), x)]), program(lambda x: [cos(cos(x))])
    branches = program(lambda x: control.cond(np.int32(0), [x], [one, two]))
    assert planned(branches, moving("sin")) == (["input", "cond"], ["cond"])


def test_calls_are_split():
    inner = program(lambda x: [mul(sin(x), cos(x)), sin(sin(x))])
    f = program(lambda x: [add(*call.jit(inner, x))])
    saved, again = planned(f, saving("cos"))
    assert (saved, again) == (["input", "jit"], ["jit", "add"])
    assert planned(f, saving("mul", "sin")) == (["jit", "jit"], ["add"])  # its results, as they are
    assert planned(f, saving("sin", "cos")) == (["jit", "jit", "jit"], ["jit", "add"])


def test_the_same_call_is_split_into_the_same_programs():
    inner = program(lambda x: [mul(sin(x), cos(x))])
    f = program(lambda x: call.jit(inner, *call.jit(inner, x)))
    plan = plan_rematerialization(f, f.outvars, saving("cos"))
    first, second = plan.again
    assert first.params["jaxpr"] is second.params["jaxpr"] and first.params["jaxpr"] is not inner
    first, second = plan.eqns
    assert first.params["jaxpr"] is second.params["jaxpr"]


def scanned(policy: Any, body: Any, wanted: Any = slice(None)) -> tuple[Any, Any]:
    """The scans, first and second, that give results of a scan of three steps."""
    step = program(body, SCALAR, SCALAR)
    jaxpr = program(lambda h, xs: control.scan(step, [], [h], [xs], length=3)[wanted], SCALAR, VECTOR)
    planned(jaxpr, policy)
    plan = plan_rematerialization(jaxpr, jaxpr.outvars, policy)
    return plan.eqns[0], plan.again[0] if plan.again else None


def inside(eqn: Any) -> list[str]:
    return [str(e.primitive) for e in eqn.params["jaxpr"].eqns]


def test_scans_are_split():
    """A second scan takes what the first one saved at every step for elements."""

    def body(h: Any, x: Any) -> Any:
        return [mul(sin(h), x), cos(sin(h))]

    known, again = scanned(saving("sin"), body)
    assert [str(v.aval) for v in known.outvars[2:]] == ["float64[3]", "float64[3]"]
    assert sorted(inside(again)) == ["cos", "mul"]
    assert again.params["n_carry"] == 1
    assert scanned(save_all, body)[1] is None


def test_a_scan_carries_again_only_what_it_reads():
    def body(h: Any, x: Any) -> Any:
        return [mul(h, x), cos(sin(x))]

    _, again = scanned(saving("nothing"), body, slice(1, None))
    assert again is not None and again.params["n_carry"] == 0 and inside(again) == ["sin", "cos"]


def test_branches_are_split():
    one, two = program(lambda x: [mul(sin(x), x)]), program(lambda x: [cos(cos(x))])

    def f(x: Any) -> Any:
        return [sin(*control.cond(np.int32(1), [x], [one, two]))]

    assert planned(program(f), saving("sin", "cos")) == (["sin"], [])
    assert planned(program(f), saving("nothing")) == (["input"], ["cond", "sin"])
    saved, again = planned(program(lambda x: control.cond(np.int32(0), [x], [one, two])), saving("sin"))
    assert (saved, again) == (["input", "cond"], ["cond"])


def test_while_loops_are_one_operation():
    condition = program(lambda c: [lt(c, 0.0)])
    body = program(lambda c: [add(sin(c), 1.0)])
    f = program(lambda x: [sin(*control.while_loop(condition, body, ([], []), [x]))])
    assert planned(f, saving("lt", "add")) == (["input"], ["while", "sin"])
    assert planned(f, saving("lt", "add", "sin")) == (["sin"], [])


def test_checkpoints_inside_are_calls():
    inner = program(lambda x: [mul(sin(x), cos(x))])
    f = program(lambda x: checkpoint(inner, x, policy=save_none))
    assert planned(f, saving("mul")) == (["checkpoint"], [])
    assert planned(f, save_none) == (["input"], ["checkpoint"])


@pytest.mark.parametrize("policy", [save_all, save_none, saving("cos")])
def test_halves_are_remembered(policy):
    both, _, _ = jvp_jaxpr(program(lambda x: [mul(sin(x), x)]), (True,))
    first = partial_eval.unzip_jaxpr(both, (False, True), policy)
    assert partial_eval.unzip_jaxpr(both, (False, True), policy) is first
    assert len(first.primal.outvars) - first.residuals == 1
