"""The benchmarks are programs too: they run, both sides compute the same, the table says what it should. No times."""

import importlib
import re

import pytest

import tapeless
from benchmarks import dispatch, eager, harness, importing, index, steady, trace


@pytest.fixture(scope="module")
def pair() -> harness.Pair:
    return harness.Pair(tapeless, pytest.importorskip("jax"))


@pytest.mark.parametrize("prepare", steady.ROWS.values(), ids=list(steady.ROWS))
def test_rows_of_steady_agree(pair, prepare):
    steady.check_agreement(pair, prepare)


@pytest.mark.parametrize("program", trace.PROGRAMS.values(), ids=list(trace.PROGRAMS))
def test_gradients_of_trace_agree(pair, program):
    def prepare(lib):
        f, args = program(lib, 10)  # layers or steps: to compile all of them takes long
        return lambda: lib.jit(lib.grad(f))(*args)

    steady.check_agreement(pair, prepare)


@pytest.mark.parametrize("stage", trace.STAGES.values(), ids=list(trace.STAGES))
def test_stages_of_trace_run(stage):
    stage(tapeless, trace.recurrence)()


@pytest.mark.parametrize("problem", index.PROBLEMS.values(), ids=list(index.PROBLEMS))
def test_programs_by_elements_agree_with_those_in_bulk(problem):
    args = [tapeless.numpy.asarray(x) for x in problem.args]
    each = tuple(range(len(args)))
    found, wanted = [
        tapeless.tree.leaves(tapeless.jit(tapeless.value_and_grad(f, each))(*args))
        for f in (problem.by_elements, problem.in_bulk(tapeless))
    ]
    for x, y in zip(found, wanted, strict=True):
        scale = float(abs(y).max())
        assert float(abs(x - y).max()) <= 1e-5 * scale  # sums of up to 1e5 products, in other orders


@pytest.mark.parametrize("name", dispatch.ROWS)
def test_rows_of_dispatch_run(name):
    prepare, _ = dispatch.ROWS[name]
    prepare(tapeless)()


def test_rows_of_eager_agree(pair):
    for name, operation in eager.ROWS.items():
        if name not in ("tree.map", "random.split"):  # whose results are no arrays

            def prepare(lib, operation=operation):
                x, a = lib.numpy.asarray(eager.VECTOR), lib.numpy.asarray(eager.MATRIX)
                return lambda: operation(lib, x, a)

            steady.check_agreement(pair, prepare)


def test_importing_measures():
    assert importing.import_seconds("colorsys") > 0


@pytest.mark.parametrize("value, text", [(2.0, "2 s"), (0.0123, "12.3 ms"), (4.56e-6, "4.56 us"), (7e-9, "7 ns")])
def test_seconds(value, text):
    assert harness.seconds(value) == text


def test_table(capsys):
    rows = [harness.Row("fast", 1.0, 4.0, 0.5), harness.Row("slow", 3.0, 4.0, 0.5), harness.Row("free", 1.0, 1.0)]
    harness.report("How?", rows, names=("tapeless", "jax"), cannot_show="all.")
    printed = capsys.readouterr().out
    assert re.search(r"fast +1 s +4 s +0\.25  0\.50$", printed, re.MULTILINE)
    assert re.search(r"slow +3 s +4 s +0\.75  0\.50  <- missed$", printed, re.MULTILINE)


def test_every_benchmark_is_listed_in_the_package():
    package = importlib.import_module("benchmarks")
    assert all(
        f"benchmarks.{module}" in package.__doc__
        for module in ("trace", "dispatch", "eager", "importing", "steady", "index")
    )
