"""tl.profile: stages, lines of the compiled program, refusals; the reader of optimised HLO behind it."""

import re
from pathlib import Path

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.compile.profile import operations_by_line
from tapeless.compile.profile_text import bytes_text, time_text
from tapeless.lowering import optimized_program
from tapeless.lowering.optimized_program import SourcePlace
from tests.messages import raises

HERE = __file__.replace("\\", "/")
N = 300


def model(w, x):
    h = x @ w
    return tnp.sort(h)  # no part of the kernel of the product


DOT, SORT = [SourcePlace(HERE, model.__code__.co_firstlineno + i) for i in (1, 2)]


@pytest.fixture(scope="module")
def profile():
    return tl.profile(model, tnp.ones((N, N)), tnp.ones((N, N)))


def test_stages(profile):
    assert [stage.name for stage in profile.stages] == ["tracing", "simplifying", "lowering", "compiling", "running"]
    assert all(stage.seconds > 0 for stage in profile.stages)
    assert min(profile.runs) <= profile.stages[-1].seconds <= max(profile.runs)


def test_lines(profile):
    lines = {line.place: line for line in profile.lines}
    product, sort = lines[DOT], lines[SORT]
    assert product.operations == N * N * (2 * N - 1)
    assert min(product.seconds, sort.seconds) > 0 and product.kernels == product.calls == 1
    assert product.nbytes == 4 * N * N <= sort.nbytes
    seconds = [line.seconds for line in profile.lines]
    assert seconds == sorted(seconds, reverse=True)
    assert sum(line.seconds for line in profile.lines) == pytest.approx(sum(k.seconds for k in profile.kernels))


def test_the_sum_of_the_kernels_is_about_a_run(profile):
    """The machine may be busy, so only the order of magnitude is compared."""
    total = sum(kernel.seconds for kernel in profile.kernels)
    assert min(profile.runs) / 10 < total < 10 * max(profile.runs)


def test_printed_and_saved(profile, tmp_path: Path):
    printed = str(profile)
    assert printed.startswith("model on CpuDevice(id=0)\ntracing ")
    assert re.search(r"test_profile.py:\d+ .*%.* h = x @ w\n", printed)
    profile.save(tmp_path / "model.html")
    page = (tmp_path / "model.html").read_text()
    assert page.startswith("<!DOCTYPE html>") and profile._repr_html_() in page
    assert "h = x @ w" in page and "--share: " in page


def test_loops_count_for_each_step():
    def loop(x):
        return tl.lax.scan(lambda c, _: (tnp.sin(c), None), x, None, length=7)[0]

    lines = tl.profile(loop, tnp.ones(50_000)).lines
    (body,) = [line for line in lines if line.operations]
    assert body.operations == 7 * 50_000
    assert body.calls >= 7 and body.nbytes >= 7 * 4 * 50_000


def test_branches_count_the_dearest():
    def branch(x):
        return tl.lax.cond(x[0] > 0, tnp.sin, lambda y: tnp.cos(tnp.exp(y)), x)

    found = operations_by_line(tl.make_jaxpr(branch)(tnp.ones(10)).jaxpr)
    assert found.total() == tl.cost(branch, tnp.ones(10)).work


def test_jitted_functions_with_static_arguments():
    scaled = tl.jit(lambda x, n: n * x, static_argnames="n")
    assert tl.profile(scaled, np.ones(3), n=4).title == "f on CpuDevice(id=0)"


def test_nothing_is_remembered_or_donated():
    calls = []

    def f(x):
        calls.append(x)
        return x + 1

    x, given = tnp.ones(3), tl.jit(f, donate_argnums=0)
    for _ in range(2):
        tl.profile(given, x)
    assert len(calls) == 2
    np.testing.assert_array_equal(x, [1, 1, 1])


def test_while_a_trace_is_recorded(tmp_path: Path):
    with tl.profiler.trace(tmp_path):
        profile = tl.profile(tnp.sin, tnp.ones(3))
    assert profile.kernels is None
    assert "No times by line: a trace is being recorded, and there is one at a time." in str(profile)
    assert "No times by line" in profile._repr_html_()


def test_refusals():
    with raises(TypeError, "profile: expected a function and its arguments, not 3."):
        tl.profile(3)
    with pytest.raises(TypeError, match=r"profile: model at .* is to be run: give values, outside of jit and grad\."):
        tl.profile(model, tl.ShapeDtypeStruct((3,), "float32"), 1.0)
    with pytest.raises(TypeError, match=r"is to be run: give values"):
        tl.grad(lambda x: tl.profile(tnp.sin, x))(1.0)
    cell = tl.new_ref(tnp.zeros(3))

    def writes(x):
        cell[...] = x
        return x

    with pytest.raises(TypeError, match="reads or writes references, which each run would change"):
        tl.profile(writes, tnp.ones(3))


def test_units():
    assert [time_text(t) for t in (2.5, 0.0123456, 1e-3, 4.56e-7)] == ["2.50 s", "12.3 ms", "1.00 ms", "0.46 µs"]
    assert [bytes_text(n) for n in (0, 999, 1440, 3.2e6, 1e10)] == ["0 B", "999 B", "1.44 kB", "3.2 MB", "10 GB"]


PROGRAM = """\
HloModule f, is_scheduled=true

%fused (p0: f32[3,200], p1: s32[], p2: f32[200]) -> f32[3,200] {
  %p0 = f32[3,200]{1,0} parameter(0)
  %p2 = f32[200]{0} parameter(2)
  %cosine.2 = f32[200]{0} cosine(%p2), metadata={source_file="a.py" source_line=8 source_end_line=8}
  %bitcast.6 = f32[1,200]{1,0} bitcast(%cosine.2), metadata={source_file="a.py" source_line=8 source_end_line=8}
  %p1 = s32[] parameter(1)
  ROOT %dus = f32[3,200]{1,0} dynamic-update-slice(%p0, %bitcast.6, %p1, %p1)
}

ENTRY %main.3 (x: f32[3,200]) -> (f32[3,200], pred[5]) {
  %x = f32[3,200]{1,0} parameter(0)
  %written = f32[3,200]{1,0} fusion(%x, %i, %y), kind=kLoop, calls=%fused, metadata={source_file="a.py" source_line=10}
  %loop = (s32[], /*index=1*/bf16[2,5]{1,0}) while(%written), condition=%c, body=%b
  %choice = f8e4m3fn[4]{0} conditional(%p, %x), branch_computations={%b0, %b1}
  ROOT %pair = (f32[3,200]{1,0}, pred[5]{0}) tuple(%written, %x)
}
"""


def test_optimized_programs_are_read():
    program = optimized_program.computations(PROGRAM)
    main, fused = program["main.3"], program["fused"]
    assert list(fused) == ["p0", "p2", "cosine.2", "bitcast.6", "p1", "dus"]
    assert [main[name].nbytes for name in ("x", "loop", "choice", "pair")] == [2400, 4 + 20, 4, 2400 + 5]
    assert main["loop"].calls == ("c", "b") and main["choice"].calls == ("b0", "b1")
    assert main["written"].operands == ("x", "i", "y") and fused["dus"].is_root
    assert optimized_program.bytes_written(main["written"], program) == 800  # in place: the update, not the array
    assert optimized_program.lines_fused(main["written"], program) == (SourcePlace("a.py", 10), SourcePlace("a.py", 8))
