"""What control flow is compiled to: the size of its text, what loops carry, where they copy, what compiles again."""

import gc
import weakref
from typing import Any

import numpy as np
import pytest

from tapeless.lowering import devices, dispatch, emit
from tapeless.tracer.jaxpr import Jaxpr
from tapeless.tracer.primitives import control_flow as c
from tapeless.tracer.primitives.elementwise import add, lt, mul, sin
from tapeless.tracer.primitives.indexing import dynamic_update_index_in_dim
from tapeless.tracer.settings.config import config
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import ShapedArray
from tests.growing import arrays_made_in_loops

F32, I32, BOOL = (ShapedArray((), np.dtype(name)) for name in ("float32", "int32", "bool"))
VECTOR = ShapedArray((3,), np.dtype(np.float32))


def program(f: Any, *avals: ShapedArray) -> Jaxpr:
    return trace_to_jaxpr(f, avals)[0]


def text(f: Any, *avals: ShapedArray) -> str:
    return emit.module(program(f, *avals)).text


def twice(x):
    return [add(x, x)]


def step(w, h, x):
    return [mul(h, w), mul(h, x)]


STEP = program(step, F32, F32, F32)


def scanned(length, **how):
    xs = ShapedArray((length,), np.dtype(np.float32))
    return lambda w, h, xs: c.scan(STEP, [w], [h], [xs], length=length, **how), (F32, F32, xs)


# ---- text ----------------------------------------------------------------------------------------------------


def test_a_branch_that_comes_once_is_written_in_place():
    branches = program(twice, F32), program(lambda x: [sin(x)], F32)
    found = text(lambda i, x: c.cond(i, [x], branches), I32, F32)
    assert "func.call" not in found
    assert found.count("stablehlo.case") == 1


def test_a_branch_that_comes_again_is_one_function():
    branch = program(twice, F32)

    def f(p, x):
        for _ in range(10):
            (x,) = c.cond(p, [x], [branch, branch])
        return [x]

    found = text(f, BOOL, F32)
    assert found.count("func.func private") == 1
    assert found.count("stablehlo.add") == 2  # in place, and in the function
    assert found.count("func.call") == 19


def test_text_grows_with_the_programs_there_are_and_not_with_the_paths_through_them():
    def nested(depth):
        jaxpr = program(lambda p, x: twice(x), BOOL, F32)
        for _ in range(depth):
            jaxpr = program(lambda p, x, inner=jaxpr: c.cond(p, [p, x], [inner, inner]), BOOL, F32)
        return len(emit.module(jaxpr).text)

    with config.scope(check_programs=False):  # which follows every path
        assert nested(20) - nested(10) == pytest.approx(nested(30) - nested(20), rel=0.1)


def test_an_index_below_the_branches_chooses_the_first():
    """To StableHLO it means the last: the rows of tests/samples say what comes out, here it is written."""
    branches = [program(twice, F32)] * 3
    assert "stablehlo.maximum" in text(lambda i, x: c.cond(i, [x], branches), I32, F32)


def test_constants_of_loops_are_not_carried():
    f, avals = scanned(4)
    (line,) = [line for line in text(f, *avals).splitlines() if '"stablehlo.while"(' in line]
    assert line.split("=")[0].strip().endswith(":3")  # the counter, the carry, the results

    condition, body = program(lambda n, i: [lt(i, n)], I32, I32), program(lambda k, i: [add(i, k)], I32, I32)
    found = text(lambda n, k, i: c.while_loop(condition, body, ([n], [k]), [i]), I32, I32, I32)
    (line,) = [line for line in found.splitlines() if '"stablehlo.while"(' in line]
    assert ":" not in line.split("=")[0]  # one result


@pytest.mark.parametrize(
    ("length", "unroll", "loops"), [(0, 1, 0), (1, 1, 0), (2, 1, 1), (5, 5, 0), (5, 7, 0), (5, 2, 1)]
)
def test_loops_are_written_only_where_there_is_one(length: int, unroll: int, loops: int):
    f, avals = scanned(length, unroll=unroll)
    assert text(f, *avals).count("stablehlo.while") == loops


def test_a_body_written_out_is_one_function():
    short, long = (len(text(f, *avals)) for f, avals in (scanned(4, unroll=4), scanned(8, unroll=8)))
    assert long < 2 * short
    f, avals = scanned(8, unroll=8)
    assert text(f, *avals).count("stablehlo.multiply") == 4


# ---- memory --------------------------------------------------------------------------------------------------

N = 100_000


def writing(buffer, i, x):
    return [dynamic_update_index_in_dim(buffer, x, i, 0), add(i, np.int32(1))]


def test_a_loop_that_writes_a_carried_buffer_does_it_in_place():
    long = ShapedArray((N,), np.dtype(np.float32))
    body = program(writing, long, I32, F32)
    jaxpr = program(lambda b, i, xs: c.scan(body, [], [b, i], [xs], length=N)[:1], long, I32, long)
    compiled = dispatch.executable(jaxpr, devices.current_device())
    assert compiled.memory_analysis().temp_size_in_bytes < 4 * N + 10_000
    assert arrays_made_in_loops(compiled.as_text(), N) == []


def test_results_are_written_in_place():
    body = program(lambda h: [sin(h), h], F32)
    jaxpr = program(lambda h: c.scan(body, [], [h], [], length=N), F32)
    compiled = dispatch.executable(jaxpr, devices.current_device())
    assert compiled.memory_analysis().temp_size_in_bytes < 10_000
    assert arrays_made_in_loops(compiled.as_text(), N) == []


# ---- eagerly -------------------------------------------------------------------------------------------------


def test_only_the_chosen_branch_is_compiled():
    taken, other = program(twice, F32), program(lambda x: [sin(x)], F32)
    c.cond(np.int32(0), [np.float32(1)], [taken, other])
    assert taken in dispatch._executables
    assert other not in dispatch._executables


def test_equal_programs_compile_once():
    def run():
        body = program(lambda h, x: [add(h, x)], VECTOR, VECTOR)
        return c.scan(body, [], [np.zeros(3, np.float32)], [np.ones((4, 3), np.float32)], length=4)

    run()
    before = dispatch._compiled.cache_info()
    np.testing.assert_array_equal(run()[0], [4, 4, 4])
    after = dispatch._compiled.cache_info()
    assert after.misses == before.misses
    assert after.hits == before.hits + 1


def test_a_program_that_is_applied_again_is_not_even_written_again(monkeypatch: pytest.MonkeyPatch):
    loop = program(lambda i: [lt(i, np.int32(3))], I32), program(lambda i: [add(i, np.int32(1))], I32)
    c.while_loop(*loop, ([], []), [np.int32(0)])
    monkeypatch.setattr(emit, "module", None)
    assert int(c.while_loop(*loop, ([], []), [np.int32(1)])[0]) == 3


def test_programs_are_not_kept_alive():
    def run() -> list[Any]:
        body = program(lambda i: [add(i, np.int32(1))], I32)
        condition = program(lambda i: [lt(i, np.int32(3))], I32)
        pair = program(lambda i: [i, i], I32)
        c.while_loop(condition, body, ([], []), [np.int32(0)])
        c.scan(pair, [], [np.int32(0)], [], length=3)
        c.cond(True, [np.int32(0)], [body, body])
        return [weakref.ref(x) for x in (body, condition, pair)]

    programs = run()
    gc.collect()
    assert [x() for x in programs] == [None, None, None]


def test_operands_are_checked():
    with pytest.raises(TypeError, match=r"cond: .* takes \(float32\[\]\), not \(float32\[3\]\)"):
        c.cond(np.int32(0), [np.zeros(3, np.float32)], [program(twice, F32)] * 2)


def test_a_loop_with_nothing_to_carry():
    assert c.scan(program(list), [], [], [], length=3) == ()
