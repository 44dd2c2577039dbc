"""Barriers are found in loops and in what loops call, and nowhere else; loops beside a barrier stay one kernel."""

from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.lowering.xla_workarounds.barriers_in_loops import has_barrier_in_loop

X = np.ones(3, np.float32)


def passed(x: Any) -> Any:
    return lax.optimization_barrier(x)


def looped(body: Any) -> Any:
    return lambda x: lax.fori_loop(0, 5, lambda _, x: body(x), x)


called = tl.jit(lambda x: passed(x) * 2)
calling = tl.jit(lambda x: called(x) + called(x + 1))
plain = looped(tnp.sin)

PROGRAMS: dict[str, tuple[Any, bool]] = {
    "none": (plain, False),
    "no loop": (passed, False),
    "before": (lambda x: plain(passed(x)), False),
    "after": (lambda x: passed(plain(x)), False),
    "between": (lambda x: plain(passed(plain(x))), False),
    "after nested loops": (lambda x: passed(looped(plain)(x)), False),
    "called before and after": (lambda x: calling(plain(called(x))), False),
    "inside": (looped(passed), True),
    "inside of a nested loop": (looped(looped(passed)), True),
    "behind a nested loop": (looped(lambda x: passed(plain(x))), True),
    "in the second loop": (lambda x: looped(passed)(plain(x)), True),
    "in the condition": (lambda x: lax.while_loop(lambda x: passed(x).sum() < 9, lambda x: x + 1, x), True),
    "in a branch": (looped(lambda x: lax.cond(x[0] > 0, passed, tnp.sin, x)), True),
    "in a function": (looped(lambda x: called(x) + called(x + 1)), True),
    "in a function of a function": (looped(lambda x: calling(x) + calling(x + 1)), True),
    "in a function that is called outside, too": (lambda x: called(looped(calling)(called(x))), True),
    "of a derivative": (tl.grad(lambda x: looped(lambda x: x * x.max())(x).sum()), True),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_where_barriers_are(name: str):
    f, wanted = PROGRAMS[name]
    text = tl.jit(f).lower(X).as_text()
    assert has_barrier_in_loop(text) == wanted
    assert has_barrier_in_loop(text.encode()) == ("optimization_barrier" in text)  # bytes are not read


def test_other_texts_with_a_barrier_are_not_read():
    short = "%1 = stablehlo.while(%0) cond { } do { %2 = stablehlo.optimization_barrier %0 }"
    assert has_barrier_in_loop(short)
    assert not has_barrier_in_loop(short.replace("optimization_barrier", "sine"))


def test_braces_in_names_are_no_regions():
    text = tl.jit(looped(passed)).lower(X).as_text()
    assert has_barrier_in_loop(text.replace('"stablehlo.while"', '"}" "\\"}" "stablehlo.while"'))


@pytest.mark.usefixtures("optimized")
def test_a_loop_beside_a_barrier_is_one_kernel():
    def likelihood(rows: Any, which: Any) -> Any:
        start = rows[:, which[0]]
        last = lax.scan(lambda x, i: (tnp.log(tnp.exp(x).sum()) + rows[:, i], None), start, which[1:])[0]
        return lax.optimization_barrier(last).sum()

    rows, which = np.linspace(-1, 1, 20, dtype=np.float32).reshape(4, 5), np.array([1, 4, 0, 2, 2])
    found = tl.jit(tl.grad(likelihood)).lower(rows, which)
    assert "optimization_barrier" in found.as_text()
    assert found.compile().as_text().count("xla_cpu_small_call") == 2
