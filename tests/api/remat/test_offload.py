"""Policies that offload: what is moved to another memory and back, and that nothing else is changed by it.

On CPU all memories are the host's, and a move is nothing once it is compiled: this tests programs and values.
"""

import functools
import inspect
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.ad_checkpoint import checkpoint_name
from tapeless.interpreters.residuals.rematerialization import EXCLUDED
from tapeless.lowering import devices
from tapeless.tracer.jaxpr import Equation, Jaxpr, eval_jaxpr, subjaxprs
from tests.api.comparing import assert_same
from tests.close import fused_single_precision as close
from tests.jaxlib_release import RELEASE
from tests.messages import text_of

P = tl.checkpoint_policies
WHERE = {"offload_src": "device", "offload_dst": "pinned_host"}
rng = np.random.default_rng(0)
W = rng.normal(size=(4, 4)).astype(np.float32)
X = rng.normal(size=(3, 4)).astype(np.float32)
XS = rng.normal(size=(5, 3, 4)).astype(np.float32)


def names_offloaded(*names: str, saved: Any = ()) -> Any:
    return P.save_and_offload_only_these_names(
        names_which_can_be_saved=saved, names_which_can_be_offloaded=names, **WHERE
    )


NAMES, DOTS = names_offloaded("h"), P.offload_dot_with_no_batch_dims("device", "pinned_host")


def layer(w, x):
    return checkpoint_name(tnp.tanh(x @ w), "h")


def unrolled(w, x):
    for _ in range(2):
        x = layer(w, x)
    return tnp.sum(x * x)


def scanned(w, x):
    h, ys = lax.scan(lambda h, x: (layer(w, h) * x, tnp.sin(h)), x, XS)
    return tnp.sum(h) + tnp.sum(ys)


def chosen(w, x):
    y = lax.cond(x[0, 0] > 0, lambda w, x: layer(w, x) ** 2, lambda w, x: tnp.sin(tnp.cos(x) @ w) * x, w, x)
    return tnp.sum(y**2)


def jitted(w, x):
    f = tl.jit(layer)
    return tnp.sum(tnp.sin(f(w, f(w, x))))


@tl.custom_vjp
def square(x):
    return x * x


square.defvjp(lambda x: (x * x, checkpoint_name(2 * x, "h")), lambda double, ct: (double * ct,))


def with_a_rule(w, x):
    return tnp.sum(square(tnp.tanh(x @ w)))


PROGRAMS = [unrolled, scanned, chosen, jitted, with_a_rule]
each_program = pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)


def moves(jaxpr: Any) -> list[tuple[Equation, Jaxpr]]:
    """The moves of a program and of those inside, each with the program that it is in."""
    program: Jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    inside = [found for eqn in program.eqns for inner in subjaxprs(eqn.params) for found in moves(inner)]
    return [*inside, *[(eqn, program) for eqn in program.eqns if str(eqn.primitive) == "move"]]


def away_and_back(f: Any, *args: Any) -> tuple[int, int]:
    """How many moves there are to the host and to the device."""
    found = [eqn.params["dst"] for eqn, _ in moves(tl.make_jaxpr(f)(*args))]
    return found.count("pinned_host"), found.count("device")


def kept(f: Any, policy: Any, *args: Any) -> list[str]:
    """What is kept besides the arguments: its name, or what made it, and the memory if it is another."""
    residuals = [r for r in tl.saved_residuals(tl.checkpoint(f, policy=policy), *args) if r.argument is None]
    return [f"{r.name or r.primitive}{f' in {r.memory}' if r.memory else ''}" for r in residuals]


# ---- values --------------------------------------------------------------------------------------------------


def both(transform: Any) -> Any:
    return lambda f: transform(f, (0, 1))


FIRST_ORDER = {
    "grad": both(tl.grad),
    "vmap of grad": lambda f: lambda w, x: tl.vmap(tl.grad(f, (0, 1)), (None, 0))(w, tnp.stack([x, -x])),
    "grad of vmap": lambda f: tl.grad(lambda w, x: tnp.sum(tl.vmap(f, (None, 0))(w, tnp.stack([x, -x]))), (0, 1)),
}
OTHERS = {
    "linearize": lambda f: lambda w, x: tl.linearize(f, w, x)[1](w, x),
    "grad of grad": lambda f: tl.grad(lambda w, x: tnp.sum(tl.grad(f)(w, x) ** 2)),
    "jvp of grad": lambda f: lambda w, x: tl.jvp(lambda w: tl.grad(f)(w, x), (w,), (w,)),
}


@pytest.mark.parametrize("transform", FIRST_ORDER.values(), ids=FIRST_ORDER)
@each_program
def test_gradients_are_the_same(f, transform):
    """Bit for bit, but for gradients of batches: a checkpoint is a fence around which sums are not reordered.

    From jaxlib 0.12 on the tanh of a fused loop is rounded otherwise than that of a loop of its own.
    """
    rounded = transform is FIRST_ORDER["grad of vmap"] or (f is with_a_rule and RELEASE >= (0, 12))
    compare = close if rounded else assert_same
    compare(transform(tl.checkpoint(f, policy=NAMES))(W, X), plain(f, transform))


@functools.cache
def plain(f: Any, transform: Any) -> Any:
    """The same of the function itself, whatever the policy."""
    return transform(f)(W, X)


@pytest.mark.parametrize("transform", OTHERS.values(), ids=OTHERS)
@each_program
def test_other_derivatives(f, transform):
    close(tl.jit(transform(tl.checkpoint(f, policy=NAMES)))(W, X), tl.jit(transform(f))(W, X))


@pytest.mark.parametrize("f", [unrolled, scanned, chosen], ids=lambda f: f.__name__)
def test_second_derivatives_are_those_of_saving(f):
    """Bit for bit: on CPU the same is compiled."""
    offloaded, saved = (tl.checkpoint(f, policy=policy) for policy in (NAMES, P.save_names("h")))
    second = OTHERS["grad of grad"]
    assert_same(second(offloaded)(W, X), second(saved)(W, X))


def test_named_arguments_are_offloaded():
    """The body of a loop names what it starts from: of all steps that is stacked in the other memory."""

    def f(w, x):
        step = tl.checkpoint(lambda h, x: (tnp.sin(checkpoint_name(h, "h") @ w) * x, None), policy=NAMES)
        return tnp.sum(lax.scan(step, x, XS)[0])

    residuals = [(str(r.aval), r.name, r.memory) for r in tl.saved_residuals(f, W, X) if r.argument is None]
    assert residuals == [("float32[5,3,4]", "h", "pinned_host")]
    assert away_and_back(tl.grad(f), W, X) == (1, 1)
    plain = lambda w, x: tnp.sum(lax.scan(lambda h, x: (tnp.sin(h @ w) * x, None), x, XS)[0])  # noqa: E731
    assert_same(tl.grad(f, (0, 1))(W, X), tl.grad(plain, (0, 1))(W, X))


def scalar(x):
    return tnp.sin(checkpoint_name(tnp.sin(x), "h"))


# ---- what is moved -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("f", "n"), [(unrolled, 2), (scanned, 1), (chosen, 1), (jitted, 2), (with_a_rule, 1)])
def test_every_named_value_is_moved_once_each_way(f, n):
    assert away_and_back(tl.grad(tl.checkpoint(f, policy=NAMES)), W, X) == (n, n)


def test_what_nobody_needs_is_not_moved():
    def f(w, x):
        checkpoint_name(x @ w, "h")
        return tnp.sum(checkpoint_name(x @ w, "h") + x)

    policy = P.save_from_both_policies(NAMES, DOTS)
    assert away_and_back(tl.grad(tl.checkpoint(f, policy=policy), (0, 1)), W, X) == (0, 0)
    assert away_and_back(tl.checkpoint(unrolled, policy=NAMES), W, X) == (0, 0)
    inside = tl.jit(lambda w, x: (layer(w, x), checkpoint_name(x + 1, "h"))[0])
    grad = tl.grad(tl.checkpoint(lambda w, x: tnp.sum(inside(w, x)), policy=NAMES))
    assert away_and_back(grad, W, X) == (1, 1)


def test_the_program():
    """Moved when it has its name, and back before anything is computed from it; what it names is not kept."""

    def f(x):
        return tnp.sin(checkpoint_name(tnp.tanh(x), "h"))

    unzipped = tl.unzip(f, tnp.ones(3), policy=NAMES)
    assert [str(eqn.primitive) for eqn in unzipped.primal.jaxpr.eqns] == ["tanh", "name", "move", "sin"]
    assert [str(eqn.primitive) for eqn in unzipped.linear.eqns][:2] == ["move", "add"]
    away, back = unzipped.primal.jaxpr.eqns[2], unzipped.linear.eqns[0]
    assert away.params == {"src": "device", "dst": "pinned_host"}
    assert back.params == {"src": "pinned_host", "dst": "device"}
    assert unzipped.primal.jaxpr.outvars[1:] == away.outvars and unzipped.linear.invars[0] is back.invars[0]
    assert [r.memory for r in unzipped.residuals] == ["pinned_host"]
    assert tl.residual_bytes(unzipped) == 12
    assert tl.work(unzipped.primal) == tl.work(tl.unzip(f, tnp.ones(3), policy=P.save_names("h")).primal)


def test_what_is_in_the_other_memory_is_not_moved_there_again():
    """By a second derivative, and by a checkpoint around another."""
    second = tl.make_jaxpr(tl.grad(tl.grad(tl.checkpoint(scalar, policy=NAMES))))(1.0)
    known = [eqn.invars[0] for eqn, _ in moves(second) if eqn.params["dst"] == "pinned_host" and not eqn.linear]
    assert len(known) == 1

    def f(w, x):
        return tnp.sum(tl.checkpoint(lambda w, x: tnp.sin(layer(w, x)), policy=NAMES)(w, x) ** 2)

    assert away_and_back(tl.grad(tl.checkpoint(f, policy=NAMES)), W, X)[0] == 1
    assert_same(tl.grad(tl.checkpoint(f, policy=NAMES))(W, X), tl.grad(f)(W, X))


def test_the_derivative_of_a_move_is_a_move_and_its_transpose_is_back():
    first = tl.unzip(scalar, 1.0, policy=NAMES).primal.jaxpr
    unzipped = tl.unzip(lambda x: eval_jaxpr(first, [x]), 1.0)
    found = {
        half: [eqn.params["dst"] for eqn, _ in moves(getattr(unzipped, half)) if eqn.linear]
        for half in ("linear", "transposed")
    }
    assert found == {"linear": ["pinned_host"], "transposed": ["device"]}


# ---- with other policies -------------------------------------------------------------------------------------


def one_layer(w, x):
    return tnp.sum(tnp.sin(layer(w, x)))


def test_of_two_policies_the_one_that_saves():
    saving = P.save_names("h")
    for pair in ((saving, NAMES), (NAMES, saving)):
        assert kept(one_layer, P.save_from_both_policies(*pair), W, X) == ["h"]
    assert kept(one_layer, P.save_from_both_policies(NAMES, P.save_none), W, X) == ["h in pinned_host"]
    assert kept(one_layer, P.save_from_both_policies(P.save_none, NAMES), W, X) == ["h in pinned_host"]


def test_of_two_memories_the_first():
    other = P.save_and_offload_only_these_names(
        names_which_can_be_saved=(),
        names_which_can_be_offloaded=["h"],
        offload_src="device",
        offload_dst="unpinned_host",
    )
    assert kept(one_layer, P.save_from_both_policies(other, NAMES), W, X) == ["h in unpinned_host"]


def test_a_name_decides_for_what_it_names():
    def f(w, x):
        return tnp.sum(tnp.sin(checkpoint_name(x @ w, "h") @ w))

    policy = P.save_from_both_policies(NAMES, P.dots_saveable)
    assert kept(f, policy, W, X) == ["h in pinned_host", "dot_general"]
    policy = P.save_from_both_policies(P.save_names("h"), DOTS)
    assert kept(f, policy, W, X) == ["h", "dot_general in pinned_host"]


def test_saved_and_offloaded_names():
    def f(x):
        for name in "abc":
            x = tnp.sin(checkpoint_name(x * 2.0, name))
        return x

    assert kept(f, names_offloaded("b", saved="a"), 0.5) == ["a", "b in pinned_host"]


def test_save_if_and_policies_of_ones_own():
    assert kept(one_layer, P.save_if(NAMES), W, X) == ["h in pinned_host"]
    own = lambda primitive, *operands, **params: NAMES(primitive, *operands, **params)  # noqa: E731
    assert kept(one_layer, own, W, X) == ["h in pinned_host"]
    no_names = lambda primitive, *_, **__: EXCLUDED if str(primitive) == "name" else str(primitive) == "tanh"  # noqa: E731
    assert kept(one_layer, no_names, W, X) == []


def test_a_while_loop_is_one_operation():
    def f(x):
        return lax.while_loop(lambda x: x < 2.0, lambda x: checkpoint_name(x * 2.0, "h"), x)

    assert kept(lambda x: tnp.sin(tl.stop_gradient(f(x)) * x), NAMES, 0.5) == []


# ---- what is said --------------------------------------------------------------------------------------------


def test_saved_residuals_says_where():
    def f(w, x):
        return tnp.sum(tnp.sin(checkpoint_name(x @ w, "h")))

    lines = str(tl.saved_residuals(tl.checkpoint(f, policy=NAMES), W, X)).splitlines()
    line = inspect.getsourcelines(f)[1] + 1
    title = "save_and_offload_only_these_names([], ['h'], 'device', 'pinned_host')"
    assert lines[2].startswith(f"float32[3,4] 'h', moved to pinned_host by {title} at ")
    assert f"test_offload.py:{line} (test_saved_residuals_says_where.<locals>.f), return " in lines[2]
    assert lines[3] == "3 arrays of 160 bytes, 48 of them in pinned_host; 1 operation computed again"
    lines = str(tl.saved_residuals(tl.checkpoint(f, policy=DOTS), W, X)).splitlines()
    title = "offload_dot_with_no_batch_dims('device', 'pinned_host')"
    assert lines[2].startswith(f"float32[3,4] from dot_general, moved to pinned_host by {title} at ")


def test_explain_says_where():
    text = str(tl.explain(one_layer, W, X, policy=NAMES))
    assert "'h', moved to pinned_host" in text


def test_the_same_policy_is_the_same_function():
    """So that programs made with one serve the other."""
    assert names_offloaded("b", "a") is names_offloaded("a", "b", "a") is not names_offloaded("a")
    assert P.offload_dot_with_no_batch_dims(**WHERE) is P.offload_dot_with_no_batch_dims(**WHERE)


# ---- errors --------------------------------------------------------------------------------------------------


def message(raised: Any) -> str:
    return str(raised.value)


def test_names_that_are_in_both():
    with pytest.raises(ValueError) as raised:
        P.save_and_offload_only_these_names(names_which_can_be_saved="ab", names_which_can_be_offloaded="bc", **WHERE)
    assert message(raised) == (
        "save_and_offload_only_these_names: 'b' cannot be both saved and offloaded. To be saved are ['a', 'b'], "
        "to be offloaded ['b', 'c']."
    )


def test_memories_are_two_strings():
    with pytest.raises(ValueError) as raised:
        P.offload_dot_with_no_batch_dims("device", "device")
    assert message(raised) == (
        "offload_dot_with_no_batch_dims: cannot offload from 'device' to 'device', which is the same memory."
    )
    with pytest.raises(TypeError) as raised:
        P.save_and_offload_only_these_names(
            names_which_can_be_saved=(), names_which_can_be_offloaded=(), offload_src=None, offload_dst="device"
        )
    assert message(raised) == (
        "save_and_offload_only_these_names: expected the kind of a memory, a string, not None of type NoneType."
    )


def test_memories_that_the_device_has_not():
    """Asked for when there is something to move: a policy can be made before there is a device."""
    policy = P.offload_dot_with_no_batch_dims("device", "attic")
    f = tl.checkpoint(one_layer, policy=policy)
    assert_same(f(W, X), tl.jit(one_layer)(W, X))
    with pytest.raises(ValueError) as raised:
        tl.grad(f)(W, X)
    device = devices.current_device()
    assert text_of(raised.value) == (
        "offload_dot_with_no_batch_dims: cannot offload from 'device' to 'attic', there is no memory 'attic' on "
        f"{device!r}, which has {', '.join(map(repr, device.memory_kinds))}."
    )
    policy = functools.partial(P.save_and_offload_only_these_names, names_which_can_be_saved=())
    with pytest.raises(ValueError, match=r"^save_and_offload_only_these_names: .* there is no memory 'cellar' on "):
        policy = policy(names_which_can_be_offloaded="h", offload_src="cellar", offload_dst="device")
        tl.saved_residuals(tl.checkpoint(one_layer, policy=policy), W, X)


# The last of this module, because what follows is compiled as users compile it, too, which takes longer.
@each_program
def test_compiled_gradients_are_the_same_bit_for_bit(f, optimized):
    want = tl.jit(tl.grad(f, (0, 1)))(W, X)
    for policy in [NAMES, DOTS]:
        assert_same(tl.jit(tl.grad(tl.checkpoint(f, policy=policy), (0, 1)))(W, X), want)
