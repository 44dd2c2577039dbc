"""Cuts of programs into segments: as good as the best of all choices, by a count of their own."""

from itertools import combinations
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tapeless.interpreters.jvp import jvp_jaxpr
from tapeless.interpreters.partial_eval import unzip_body
from tapeless.interpreters.residuals import segments
from tapeless.interpreters.residuals.rematerialization import save_all
from tapeless.interpreters.residuals.segments import Flow, plan_segments
from tapeless.tracer.jaxpr import Jaxpr
from tapeless.tracer.primitives.elementwise import exp, mul, sin
from tapeless.tracer.primitives.reduction import reduce_sum
from tapeless.tracer.primitives.shape import broadcast_in_dim
from tapeless.tracer.staging import trace_closed
from tapeless.tracer.types import ShapedArray, aval_of
from tests.stepping import by_steps


def grown(x: Any) -> Any:
    """An array of eight copies of a vector, whose derivative reads none."""
    return broadcast_in_dim(x, (8, *aval_of(x).shape), tuple(range(1, aval_of(x).ndim + 1)))


def product(x: Any, y: Any) -> Any:
    """The elementwise product, with what the larger array has more summed."""
    while aval_of(x).ndim > aval_of(y).ndim:
        x = reduce_sum(x, (0,))
    return mul(x, y) if aval_of(x).ndim == aval_of(y).ndim else product(y, x)


UNARY = {"sin": sin, "exp": exp, "exp of sin": lambda x: exp(sin(x)), "grown": grown}
VECTOR = ShapedArray((4,), np.dtype(np.float64))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(sorted(UNARY)), st.integers(0, 2)),
        st.tuples(st.just("product"), st.integers(0, 2), st.integers(0, 4)),
    ),
    min_size=3,
    max_size=7,
)


def program(steps: Any) -> Jaxpr:
    """A program of one vector, each of whose steps reads one or two of the values before, counted from the latest."""

    def f(x: Any) -> Any:
        values = [x]
        for name, *back in steps:
            read = [values[-1 - min(k, len(values) - 1)] for k in back]
            y = UNARY[name](*read) if name in UNARY else product(*read)
            values.append(y if aval_of(y).ndim < 4 else reduce_sum(y, (0, 1)))
        return [values[-1]]

    return trace_closed(f, [VECTOR])


def halves_of(jaxpr: Jaxpr) -> Any:
    pushed, _, _ = jvp_jaxpr(jaxpr, (True,))
    return unzip_body(pushed, (False, True), save_all)


def live_bytes(flow: Flow, cuts: tuple[int, ...]) -> int:
    """The greatest number of bytes that are live at once, if a program is cut there."""
    own = flow.residual_bytes()
    at_once = []
    for begin, end in zip((0, *cuts), (*cuts, len(own) - 1)):
        saved = {v for cut in cuts if cut <= begin for v in flow.crossing(cut)}
        kept = sum(v.aval.nbytes for v in saved)
        first = begin if begin == 0 else begin + 1
        for k in range(first, end + 1):
            at_once.append(kept + sum(own[first : k + 1]) + flow.cotangent_bytes()[k])
    return max(at_once, default=0)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(STEPS)
def test_no_choice_of_cuts_is_better(steps: Any):
    """Neither in bytes, nor, of those within a limit, in how much of the program is computed again."""
    flow = Flow(halves_of(program(steps)))
    places = [cut.at for cut in flow.cuts if cut.at]
    every = {c: live_bytes(flow, c) for n in range(len(places) + 1) for c in combinations(places, n)}
    assert flow.peak == every[()]
    least = min(every.values())
    assert segments._least(flow) == least
    assert {c: flow.peak_of(c) for c in every} == every
    for limit in {least, (least + flow.peak) // 2, flow.peak}:
        found = segments._cuts(flow, limit)
        assert every[found] <= limit
        assert max(found, default=0) == min(max(c, default=0) for c, n in every.items() if n <= limit)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(STEPS)
def test_halves_in_segments_have_the_same_values(steps: Any):
    """Bit for bit, op by op: the same operations of the same values, in another place."""
    halves = halves_of(program(steps))
    x, t = np.linspace(0.1, 0.7, 4), np.linspace(-1, 1, 4)
    flow = Flow(halves)
    for limit in {flow.least, (flow.least + flow.peak) // 2, flow.peak}:
        in_segments = segments.SegmentPlan(flow, segments._cuts(flow, limit), 0).halves()
        for one, other in zip(computed(halves, x, t), computed(in_segments, x, t), strict=True):
            np.testing.assert_array_equal(one, other)


def computed(halves: Any, x: Any, t: Any) -> list[Any]:
    outs = by_steps(halves.primal, [x])
    n = len(outs) - halves.residuals
    return [*outs[:n], *by_steps(halves.linear, [*outs[n:], t])]


def layers(n: int) -> Jaxpr:
    """Layers of the same size, of which each saves one array."""

    def f(x: Any) -> Any:
        for _ in range(n):
            x = sin(sin(x))
        return [x]

    return trace_closed(f, [ShapedArray((1000,), np.dtype(np.float64))])


def test_the_least_of_equal_layers_grows_with_the_root_of_their_number():
    """Of n layers with 2 residuals: sqrt(2 n) segments, and as many arrays saved; so 2 sqrt(2 n), and the cotangent."""
    for n in (8, 32, 128):
        flow = Flow(halves_of(layers(n)))
        assert plan_segments(flow, 0).peak <= (2 * np.sqrt(2 * n) + 2) * 8000


def test_a_program_that_fits_is_not_cut():
    flow = Flow(halves_of(layers(8)))
    assert plan_segments(flow, flow.peak).cuts == ()
    assert plan_segments(flow, flow.peak - 1).cuts != ()


def test_where_recomputation_spares_little_nothing_is_computed_again():
    flow = Flow(halves_of(trace_closed(lambda x: [exp(x)], [VECTOR])))
    assert plan_segments(flow, 0).cuts == ()
