"""Schedules of loops: states and evaluations as promised, and how near to the binomial optimum."""

from functools import partial
from math import comb, log2, sqrt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.interpreters.residuals.chunks import STEP, Schedule
from tapeless.interpreters.residuals.schedules import fewest_states, logarithmic, of_states, square_root
from tapeless.tracer.jaxpr import Jaxpr, subjaxprs
from tapeless.tracer.primitives.control_flow import scan_p


def binomial(length: int, states: int) -> int:
    """The fewest evaluations with so many states: Griewank & Walther 2000, theorem 2, and each step once more."""
    r = 0
    while comb(states + r, states) < length:
        r += 1
    return r * length - comb(states + r, r - 1) + length


LENGTHS = [*range(2, 400), 1000, 4000, 4096, 99991, 10**6]


def test_sqrt():
    """Carries and steps of a chunk, at most 2 sqrt(n) rounded up, and one recomputation."""
    for n in LENGTHS:
        found = square_root(n)
        assert found.length == n
        assert found.states < 2 * sqrt(n) + 1
        assert found.evaluations <= 2 * n


def test_log():
    for n in LENGTHS:
        found = logarithmic(n)
        assert found.length == n
        assert found.states < 2 * log2(n) + 2
        assert found.evaluations <= n * (2 + log2(n) / 2)
    assert (logarithmic(4096).states, logarithmic(4096).evaluations / 4096) == (24, 7)


@given(st.integers(2, 100_000), st.integers(0, 500))
def test_states(n: int, more: int):
    """The promised states, the number of steps, and no fewer evaluations than the optimum."""
    k = fewest_states(n) + more
    found = of_states(n, k)
    assert found.length == n
    assert found.states <= k
    assert binomial(n, k) <= found.evaluations <= 2.5 * binomial(n, k)
    with pytest.raises(ValueError, match=f"a loop of {n} steps needs at least {k - more} states"):
        of_states(n, k - more - 1)


# states for 4096 steps: evaluations of a step, over those of the optimum
@pytest.mark.parametrize(
    ("states", "evaluations", "ratio"), [(24, 7, 1.67), (32, 5, 1.3), (48, 4, 1.09), (128, 3, 1.02)]
)
def test_the_binomial_optimum(states: int, evaluations: int, ratio: float):
    found = of_states(4096, states)
    assert found.evaluations == evaluations * 4096
    assert found.evaluations <= ratio * binomial(4096, states)


def counted(jaxpr: Jaxpr, name: str) -> int:
    """Count how often a program evaluates a primitive."""
    inner = [
        (eqn.params["length"] if eqn.primitive is scan_p else 1) * counted(body, name)
        for eqn in jaxpr.eqns
        for body in subjaxprs(eqn.params)
    ]
    return sum(inner) + sum([eqn.primitive.name == name for eqn in jaxpr.eqns])


@pytest.mark.parametrize("checkpoint", ["sqrt", "log", 12, 20, 45])
@pytest.mark.parametrize("n", [64, 97])
def test_steps_are_evaluated_as_often_as_planned(checkpoint: Any, n: int):
    """The derivative of `exp` reads its result, so that each evaluation of a step is one `exp`."""
    step = lambda c, _: (tnp.exp(-c), c)  # noqa: E731
    f = lambda c: tl.lax.scan(step, c, None, n, checkpoint=checkpoint)[0]  # noqa: E731
    planner = {"sqrt": square_root, "log": logarithmic}.get(checkpoint, partial(of_states, states=checkpoint))
    plan = planner(n, stacked=True)
    found = counted(tl.make_jaxpr(tl.value_and_grad(f))(0.5).jaxpr, "exp")
    # results that nobody needs any more are not computed: of the last one of several single checkpoints
    assert 0.95 * plan.evaluations <= found <= plan.evaluations


def test_a_schedule_of_nested_checkpoints():
    """Equal levels; and digits for numbers of steps that have no such factors."""

    def nest(*times: int) -> Schedule:
        return Schedule(((times[0], nest(*times[1:])),)) if times else STEP

    assert of_states(4096, 24) == nest(4, 4, 4, 4, 4, 4)
    assert of_states(4097, 128) == Schedule(((56, nest(72)), (65, STEP)))
    # stacked results: one part, though of more evaluations
    assert of_states(128, 22) == Schedule(((9, nest(13)), (11, STEP)))
    assert of_states(128, 22, stacked=True) == nest(8, 4, 4)
    assert square_root(128) == Schedule(((16, Schedule(rest=8)),))
    assert of_states(7, 7) == of_states(7, 100) == nest(7)
