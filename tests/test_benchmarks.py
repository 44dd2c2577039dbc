"""The benchmarks are programs too: they run, both sides compute the same, the table says what it should. No times."""

import importlib
import json
import re
import sys

import numpy as np
import pytest

import tapeless
from benchmarks import __main__ as yardstick
from benchmarks import dispatch, eager, harness, importing, index, measure, memory, steady
from benchmarks.programs import PROGRAMS, classical
from benchmarks.programs.compositions import COMPOSITIONS
from benchmarks.programs.program import Case, Program, drawn, usual

SIZES = {"points": 4, "dimensions": 2, "clusters": 2}
TINY = Program(classical.k_means, SIZES, SIZES)


@pytest.fixture(scope="module")
def pair() -> harness.Pair:
    return harness.Pair(tapeless, pytest.importorskip("jax"))


@pytest.mark.parametrize("prepare", steady.ROWS.values(), ids=list(steady.ROWS))
def test_rows_of_steady_agree(pair, prepare):
    pair.agree(prepare)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_have_one_type_in_both_libraries(pair, name):
    """Their values and gradients are compared by whoever measures: to compile all of them takes minutes."""
    (case, _), types = usual(name, PROGRAMS[name]), []
    for lib in (pair.ours, pair.baseline):
        f, _, args = case.problem(lib)
        types.append([(x.shape, str(x.dtype)) for x in lib.tree.leaves(lib.eval_shape(f, *args))])
    assert types == [[((), "float32")]] * 2


@pytest.mark.parametrize("name", memory.DEEP)
def test_deep_programs_have_one_type_in_both_libraries(pair, name):
    types = []
    for lib in (pair.ours, pair.baseline):
        f, args = memory.problem(name, lib)
        types.append([(x.shape, str(x.dtype)) for x in lib.tree.leaves(lib.eval_shape(lib.grad(f), *args))])
    assert types[0] == types[1]


def test_memory_of_budgets_and_policies(pair, monkeypatch):
    def tiny(lib):
        f, (ws, x) = memory.layers(lib)
        return f, (ws[:8], x)

    monkeypatch.setitem(memory.DEEP, "tiny", tiny)
    found = list(memory.rows(pair, "tiny", 1))
    ours = {policy: row for library, policy, row in found if library == "tapeless"}
    assert ours["none"].endswith(" MB") and ours["budget 0"][0] < 0.9
    assert ours["budget 0.1"].startswith("refused: ")
    assert [policy for library, policy, _ in found if library == "jax"] == ["none", *memory.POLICIES]


@pytest.mark.parametrize("composition", COMPOSITIONS)
def test_compositions_agree(pair, composition):
    case = Case("k-means", "tiny", SIZES, composition=composition, program=TINY)

    def prepare(lib):
        _, derivative, args = case.problem(lib)
        return lambda: lib.jit(derivative)(*args)

    pair.agree(prepare, case.tolerance)


def test_a_case_survives_its_text():
    (case,) = drawn("k-means", TINY, 3)
    assert measure.from_text(measure.to_text(case)) == case


def test_draws_depend_on_seed_and_name_alone():
    def draw(seed, names=PROGRAMS):
        return {name: drawn(name, PROGRAMS[name], seed) for name in names}

    assert draw(1) == draw(1) != draw(2)
    assert draw(1, ["LSTM"])["LSTM"] == draw(1)["LSTM"]
    cases = [case for seed in range(20) for (case,) in draw(seed).values()]
    assert {case.composition for case in cases} == set(COMPOSITIONS)
    assert {case.dtype for case in cases} == {"float32", "float64"}
    for case in cases:
        assert all(case.program.small[key] <= n <= case.program.large[key] for key, n in case.sizes.items())


def test_a_case_is_measured():
    (case, _), same = usual("k-means", TINY), harness.Pair(tapeless, tapeless)
    measured = measure.together(same, case, set(yardstick.TOGETHER), repeats=1, budget=0)
    assert measured.keys() == set(yardstick.TOGETHER)
    assert all(x > 0 for both in measured.values() for x in both)
    took, peak = measure.alone(tapeless, case)
    assert took > 0 and peak > 2**20


def test_values_that_differ_are_an_error(pair):
    with pytest.raises(AssertionError, match="Mismatched"):
        pair.agree(lambda lib: lambda: [np.float32(1 if lib is tapeless else 1.1)])


def test_the_yardstick_prints_means_and_the_worst_rows(monkeypatch, capsys):
    def child(kind, text, *rest, cache=""):
        factor = 4 if "MAML" in text else 1
        if kind == "together":
            return json.dumps(dict.fromkeys(rest[3:], (factor * 1e-3, 2e-3)))
        return json.dumps((factor * (1 + (rest[0] == "jax")), 2**20))

    monkeypatch.setattr(yardstick, "child", child)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--only", "M", "--column", "lower", "--column", "first"])
    assert yardstick.main() == 0
    printed = capsys.readouterr().out
    assert re.search(r"^MAML +4 ms +2\.00 +4 s +0\.50 +small$", printed, re.MULTILINE)
    assert re.search(r"^LSTM +1 ms +0\.50 +1 s +0\.50 +large$", printed, re.MULTILINE)
    assert re.search(r"lower +above 1: 1 of \d+; worst: MAML 2\.00, ", printed)
    assert "compile" not in printed


def test_the_yardstick_goes_on_after_a_failure(monkeypatch, capsys):
    def child(*_, cache=""):
        raise RuntimeError("values differ")

    monkeypatch.setattr(yardstick, "child", child)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--only", "MAML", "--held-out", "1"])
    assert yardstick.main() == 1
    assert "failed: values differ" in capsys.readouterr().out


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

            pair.agree(prepare)


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
    listed = ("dispatch", "eager", "importing", "steady", "index", "growth", "memory")
    assert all(f"benchmarks.{module}" in package.__doc__ for module in listed)
