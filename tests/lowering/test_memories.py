"""What is moved to another memory comes back before a program ends; how moves are written, parsed as MLIR."""

import re
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.lowering import devices, emit, memories
from tapeless.lowering.compile import parse
from tapeless.tracer.jaxpr import Jaxpr
from tapeless.tracer.primitives.checkpoint import move

POLICY = tl.checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host")
W = X = np.ones((4, 4), np.float32)


def away(x: Any) -> Any:
    return move(x, "device", "pinned_host")


def back(x: Any) -> Any:
    return move(x, "pinned_host", "device")


def program(f: Any, *args: Any) -> Jaxpr:
    return tl.make_jaxpr(f)(*(args or (X,))).jaxpr


def brought(f: Any, *args: Any) -> list[bool]:
    """Which results are moved back at the end."""
    before = program(f, *args)
    after = memories.brought_back(before)
    added = after.eqns[len(before.eqns) :]
    assert all(eqn.params == {"src": "pinned_host", "dst": "device"} for eqn in added)
    made = {eqn.outvars[0]: eqn.invars[0] for eqn in added}
    assert [made.get(v, v) for v in after.outvars] == list(before.outvars)
    return [v in made for v in after.outvars]


# ---- what comes back -----------------------------------------------------------------------------------------


def test_programs_without_moves_are_left_alone():
    jaxpr = program(lambda x: tl.jit(tnp.sin)(x) + 1.0)
    assert memories.brought_back(jaxpr) is jaxpr


def test_results_that_are_away():
    assert brought(lambda x: (away(x), x, away(tnp.sin(x)), 1.0)) == [True, False, True, False]
    assert brought(lambda x: back(away(x))) == [False]
    assert brought(lambda x: tnp.sin(back(x))) == [False]
    assert brought(lambda x: (y := away(x), y)) == [True, True]


def test_what_is_only_shaped_is_still_away():
    assert brought(lambda x: away(x).reshape(-1)) == [True]
    assert brought(lambda x: lax.optimization_barrier((away(x), x))) == [True, False]


def test_results_of_programs_inside():
    inside = tl.jit(lambda x, y: (x, away(tnp.sin(y))))
    assert brought(lambda x: inside(x, x)) == [False, True]
    assert brought(lambda x: inside(away(x), x)) == [True, True]
    assert brought(lambda x: tl.jit(lambda x, y: (y, back(x)))(away(x), x)) == [False, False]
    assert brought(lambda x: tl.checkpoint(away)(x)) == [True]


def test_results_of_loops_and_branches():
    assert brought(lambda x: lax.scan(lambda h, x: (h + x, away(h)), x, tnp.stack([x, x]))) == [False, True]
    assert brought(lambda x: lax.cond(x[0, 0] > 0, away, tnp.sin, x)) == [True]
    assert brought(lambda x: lax.cond(x[0, 0] > 0, back, lambda x: 2 * back(x), away(x))) == [False]
    assert brought(lambda x: lax.while_loop(lambda x: x[0, 0] < 3, lambda x: x + 1, x)) == [False]


def test_halves_of_a_derivative():
    """Compiled apart, as eagerly they are. Together nothing is away at the end."""

    def f(w, x):
        return tnp.sum(tnp.sin(x @ w))

    halves = tl.unzip(f, W, X, policy=POLICY)
    after = memories.brought_back(halves.primal.jaxpr)
    assert [str(eqn.primitive) for eqn in after.eqns].count("move") == 2
    for whole in (tl.grad(tl.checkpoint(f, policy=POLICY)), halves.linear):
        jaxpr = whole if isinstance(whole, Jaxpr) else program(whole, W, X)
        assert memories.brought_back(jaxpr).eqns == jaxpr.eqns


# ---- how it is written ---------------------------------------------------------------------------------------


def placements(text: str) -> list[str]:
    """The memories that a module moves values to, once it is parsed."""
    return re.findall(r'_xla_buffer_placement = "(\w+)"', str(parse(text)))


def both_ways(x: Any) -> Any:
    return tnp.cos(back(away(tnp.sin(x))))


@pytest.mark.parametrize("platform", ["gpu", "cuda", "tpu"])
def test_moves_are_annotations(platform):
    text = emit.module(program(both_ways), platform=platform).text
    assert placements(text) == ["pinned_host", "device"]


def test_on_cpu_they_are_nothing():
    assert "custom_call" not in emit.module(program(both_ways), platform="cpu").text
    assert "custom_call" not in tl.jit(both_ways).lower(X).as_text()


def test_results_are_moved_back():
    text = emit.module(program(lambda x: away(x)), platform="gpu").text
    assert placements(text) == ["pinned_host", "device"]


def test_the_annotation_is_that_of_jax():
    jax = pytest.importorskip("jax")

    def f(x: Any) -> Any:
        there = jax.device_put(x, jax.memory.Space.Host)
        return jax.device_put(there, jax.memory.Space.Device) + 1

    theirs = jax.jit(f).trace(X).lower(lowering_platforms=("cuda",)).as_text()
    ours = str(parse(emit.module(program(lambda x: back(away(x)) + 1), platform="gpu").text))
    assert annotations(theirs) == annotations(ours) != []


def annotations(text: str) -> list[str]:
    lines = [line.split("annotate_device_placement")[1] for line in text.splitlines() if "annotate_device" in line]
    return [line.partition("{")[2].replace('backend_config = "", ', "") for line in lines]


def test_memories_of_the_cpu():
    """That the names are there; and where the moves of a policy go."""
    assert devices.devices("cpu")[0].memory_kinds == ("device", "pinned_host", "unpinned_host")
