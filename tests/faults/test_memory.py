"""Long lives: however many functions, types and structures a process meets, what it remembers of them is bounded.

By hand, with a bound of its own on the time that it may take: `python -m tests.faults.long_life 10000`.
"""

import functools
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.compile import jit_cache
from tapeless.lowering import dispatch, hlo
from tapeless.tracer import caches, core, source, types
from tapeless.tracer.pytree import registry, treedef
from tests.faults.long_life import WAYS
from tests.faults.processes import run

# Objects for each call that may be left besides: tables that other tests have not filled yet.
SOME = 0.5


@pytest.mark.parametrize("name", WAYS)
def test_a_function_that_is_gone_leaves_nothing(name: str):
    call = WAYS[name]
    for i in range(20):
        call(i)
    before = _objects()
    for i in range(20, 60):
        call(i)
    assert _objects() - before < 40 * SOME


def _objects() -> int:
    gc.collect()
    return len(gc.get_objects())


def _gradient(x: tl.Array) -> None:
    tl.grad(lambda x: tnp.sum(tnp.tanh(x) * x[0]))(x)


def _program_of_a_gradient(x: tl.Array) -> None:
    tl.jit(tl.grad(lambda x: tnp.sum(tnp.tanh(x) * x[0]))).lower(x).as_text()


def _chain(x: tl.Array) -> None:
    tnp.linalg.multi_dot([x, tnp.ones((3, 3)), x])


@pytest.mark.parametrize("compute", [_gradient, _program_of_a_gradient, _chain])
def test_nothing_waits_for_the_collector_of_cycles(compute: Callable[[tl.Array], None]):
    """Arrays and programs go with the last reference to them: large ones would fill the memory while they wait."""
    x = tnp.ones(3)
    compute(x)
    gc.collect()
    gc.disable()
    try:
        compute(x)
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_ten_thousand_calls():
    """New functions, shapes, structures and code: the second half of them adds next to nothing to the first.

    Tables are full after 100 entries here: with their own limits some still grow after ten thousand calls.
    """
    objects, megabytes = map(float, run(LIFE, timeout=300).split())
    assert objects < 5000 * SOME and megabytes < 8


LIFE = """
from tapeless.tracer import core, source, types
from tapeless.tracer.pytree import treedef
from tapeless.tracer.pytree import registry
treedef._FULL = registry._DICT_FORMS_LIMIT = types._RECENT_LIMIT = source._LIMIT = core._TYPED_LIMIT = 100
from tests.faults.long_life import lived
print(*lived(10_000))
"""

# ---- tables


def test_recent_keeps_what_is_used():
    table: caches.Recent[int, str] = caches.Recent(4)
    for i in range(100):
        table.enter(i, str(i))
        assert (table.get(0) or table.recall(0)) == "0"
        assert (table.get(i) or table.recall(i)) == str(i)
        assert len(table) <= 8
    assert table.get(50) is None and table.recall(50) is None


def test_recent_keeps_the_last_of_two_entries():
    table: caches.Recent[str, object] = caches.Recent(2)
    table.enter("a", 1)
    assert table.enter("a", 2) == table.get("a") == 2


def test_types_are_bounded():
    kept = types.ShapedArray((7, 11, 13), np.dtype(np.float32))
    for i in range(3 * types._RECENT_LIMIT):
        types.ShapedArray((i, 3, 1, 4), np.dtype(np.int8))
    gc.collect()
    assert len(types._recent) <= types._RECENT_LIMIT
    assert len(types._interned) <= 2 * types._RECENT_LIMIT  # also those that other tests hold
    assert types.ShapedArray((7, 11, 13), np.dtype(np.float32)) is kept


def test_names_of_types_are_bounded():
    for i in range(2 * hlo._TENSORS_LIMIT):
        hlo.tensor(types.ShapedArray((i,), np.dtype(np.int8)))
    assert len(hlo._tensors) <= hlo._TENSORS_LIMIT


def test_places_are_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(source, "_LIMIT", 50)
    monkeypatch.setattr(source, "_ours", {})  # other tests may have left more than that
    monkeypatch.setattr(source, "_known", {})
    for i in range(200):
        f = eval(f"lambda x: x * {i} + 1", {})
        assert tl.make_jaxpr(f)(1.0).eqns[0].source.file == "<string>"
    assert max(len(source._known), len(source._ours)) <= 50


def test_structures_are_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(treedef, "_FULL", 100)
    monkeypatch.setattr(registry, "_DICT_FORMS_LIMIT", 100)
    before = _objects()
    for i in range(2000):
        tl.tree.structure({f"{i}": (1, 2), "b": {"c": i}})
    assert _objects() - before < 100 * 20


# ---- executables


@contextmanager
def _few_executables(monkeypatch: pytest.MonkeyPatch, n: int) -> Iterator[None]:
    """Let there be few of them in each place, which are empty: the limits themselves would take minutes to reach."""
    monkeypatch.setattr(dispatch, "_EAGER_LIMIT", n)
    monkeypatch.setattr(jit_cache, "_PROGRAMS_LIMIT", n)
    monkeypatch.setattr(dispatch, "_compiled", functools.lru_cache(n)(dispatch._compiled.__wrapped__))
    core.set_evaluator(dispatch.EagerEvaluator())
    try:
        yield
    finally:
        core.set_evaluator(dispatch.EagerEvaluator())


def _executables() -> int:
    gc.collect()
    return sum(isinstance(x, dispatch.Executable) for x in gc.get_objects())


@pytest.mark.parametrize("jitted", [False, True])
def test_executables_are_bounded(monkeypatch: pytest.MonkeyPatch, jitted: bool):
    f: Callable[[Any], Any] = tl.jit(tnp.negative) if jitted else tnp.negative
    with _few_executables(monkeypatch, 4):
        before = _executables()
        for i in range(40):
            f(tnp.asarray(np.ones(i + 1, np.int8)))
        assert _executables() - before <= 16
