"""What is moved to another memory comes back before a program ends; how moves are written, parsed as MLIR."""

import functools
import re
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.ad_checkpoint import checkpoint_name
from tapeless.lowering import devices, emit
from tapeless.lowering.compile import parse
from tapeless.lowering.xla_workarounds import memories
from tapeless.tracer.check import check
from tapeless.tracer.jaxpr import Jaxpr, eval_jaxpr
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
    """Which results come from the other memory, by a move that ends the program as it is rewritten."""
    after = memories.brought_back(program(f, *args))
    assert_placed(after)
    back_from = {eqn.outvars[0] for eqn in after.eqns if eqn.params.get("dst") == "device"}
    return [v in back_from for v in after.outvars]


def assert_placed(jaxpr: Jaxpr, given: tuple[Any, ...] = ()) -> tuple[Any, ...]:
    """Check where each operation reads its operands; return the memories of the results.

    A simulation of the device: a move must find its operand where it says, an operation must find all in the device's
    own memory, and so must a conditional its branches' results, a loop what it carries.
    """
    at: dict[Any, Any] = dict(zip(jaxpr.invars, given or ["device"] * len(jaxpr.invars), strict=True))
    for eqn in jaxpr.eqns:
        places = tuple([at.get(v, "device") for v in eqn.invars])
        at.update(zip(eqn.outvars, results_of(str(eqn.primitive), eqn, places), strict=True))
    return tuple([at.get(v, "device") for v in jaxpr.outvars])


def results_of(name: str, eqn: Any, places: tuple[Any, ...]) -> tuple[Any, ...]:
    n, params = len(eqn.outvars), eqn.params
    if name == "move":
        assert places == (params["src"],) != (params["dst"],), eqn
        return (params["dst"],)
    if name in ("optimization_barrier", "reshape"):
        return places
    if name in ("jit", "checkpoint", "custom_vjp"):
        return assert_placed(params["jaxpr"], places)
    if name == "cond":
        assert {assert_placed(branch, places[1:]) for branch in params["branches"]} == {("device",) * n}, eqn
        assert not any(re.search(r"move\[.* dst='pinned_host'\]", str(branch)) for branch in params["branches"]), eqn
        return ("device",) * n
    if name == "scan":
        carry = slice(params["n_consts"], params["n_consts"] + params["n_carry"])
        found = assert_placed(params["jaxpr"], places)
        assert set(places[carry] + found[: params["n_carry"]]) <= {"device"}, eqn
        away = {v for v, place in zip(params["jaxpr"].invars[carry.stop :], places[carry.stop :]) if place != "device"}
        assert {str(each.primitive) for each in params["jaxpr"].eqns if not away.isdisjoint(each.invars)} <= {"move"}
        assert params["unroll"] < params["length"] or set(found) <= {"device"}, eqn
        return found
    assert set(places) <= {"device"}, eqn
    return ("device",) * n


# ---- what comes back -----------------------------------------------------------------------------------------


def test_programs_without_moves_are_left_alone():
    jaxpr = program(lambda x: tl.jit(tnp.sin)(x) + 1.0)
    assert memories.brought_back(jaxpr) is jaxpr


def test_results_that_are_away():
    """What the program has moved away itself, and what is computed from it, is not moved at all."""
    assert brought(lambda x: (away(x), x, away(tnp.sin(x)), 1.0)) == [False] * 4
    assert brought(lambda x: back(away(x))) == [True]
    assert brought(lambda x: tnp.sin(back(x))) == [False]
    assert brought(lambda x: (y := away(x), y)) == [False, False]


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
    assert brought(lambda x: lax.cond(x[0, 0] > 0, away, tnp.sin, x)) == [False]
    assert brought(lambda x: lax.cond(x[0, 0] > 0, back, lambda x: 2 * back(x), away(x))) == [False]
    assert brought(lambda x: lax.while_loop(lambda x: x[0, 0] < 3, lambda x: x + 1, x)) == [False]


def test_halves_of_a_derivative():
    """Compiled apart, as eagerly they are, they move nothing away. Together nothing is away at the end."""

    def f(w, x):
        return tnp.sum(tnp.sin(x @ w))

    halves = tl.unzip(f, W, X, policy=POLICY)
    assert "move" not in [str(eqn.primitive) for eqn in memories.brought_back(halves.primal.jaxpr).eqns]
    whole = program(tl.grad(tl.checkpoint(f, policy=POLICY)), W, X)
    assert [str(eqn) for eqn in memories.brought_back(whole).eqns] == [str(eqn) for eqn in whole.eqns]


# ---- where operations compute --------------------------------------------------------------------------------

H = tl.checkpoint_policies.save_and_offload_only_these_names(
    names_which_can_be_saved=[],
    names_which_can_be_offloaded=["h"],
    offload_src="device",
    offload_dst="pinned_host",
)


def layer(w: Any, x: Any) -> Any:
    return checkpoint_name(tnp.tanh(x @ w), "h")


def chosen(w: Any, x: Any) -> Any:
    return lax.cond(x[0, 0] > 0, lambda w, x: layer(w, x) ** 2, lambda w, x: tnp.sin(tnp.cos(x) @ w) * x, w, x)


def nested(w: Any, x: Any) -> Any:
    called = tl.jit(layer)
    return lax.cond(x[0, 1] > 0, chosen, lambda w, x: called(w, called(w, x)) ** 2, w, x)


def scanned(w: Any, x: Any, unroll: int = 1) -> Any:
    return lax.scan(lambda h, x: (layer(w, chosen(w, h)), tnp.sin(h) * x), x, tnp.stack([x, -x, x]), unroll=unroll)[1]


def written_out(w: Any, x: Any) -> Any:
    return scanned(w, x, unroll=3)


def repeated(w: Any, x: Any) -> Any:
    return lax.fori_loop(0, 3, lambda i, x: chosen(w, x), x)


def gradient(f: Any) -> Any:
    return tl.grad(tl.checkpoint(lambda w, x: tnp.sum(f(w, x) ** 2), policy=H), (0, 1))


PROGRAMS = [chosen, nested, scanned, written_out, repeated]
TRANSFORMATIONS = {
    "grad": gradient,
    "vmap": lambda f: lambda w, x: tl.vmap(gradient(f), (None, 0))(w, tnp.stack([x, -x])),
    "vmap, loop": lambda f: lambda w, x: tl.vmap(gradient(f), (None, 0), control_flow="loop")(w, tnp.stack([x, -x])),
}


@pytest.mark.parametrize("how", TRANSFORMATIONS)
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_operations_compute_in_device_memory(f: Any, how: str):
    """Also in branches, loops and calls; and the values are those of the program with its moves as they are."""
    w, x = np.random.default_rng(0).normal(size=(2, 4, 4)).astype(np.float32)
    before = program(TRANSFORMATIONS[how](f), w, x)
    after = check(emit.prepare_program(before, platform="gpu"))
    assert set(assert_placed(after)) == {"device"}
    assert "move" in str(after)
    pairs = zip(*[tl.jit(functools.partial(eval_jaxpr, jaxpr))((w, x)) for jaxpr in (after, before)], strict=True)
    for found, wanted in pairs:
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


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
    text = emit.module(program(lambda x: away(x).reshape(-1)), platform="gpu").text
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
