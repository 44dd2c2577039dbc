"""Late modules: imported when a name is first read, looked up once, and not kept before their import has ended."""

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

from tapeless.tracer.late_imports import LateModule, interrupted


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return a function that writes the source of a module named `late_example`."""
    monkeypatch.syspath_prepend(tmp_path)
    yield lambda source: (tmp_path / "late_example.py").write_text(source)
    sys.modules.pop("late_example", None)


def test_a_module_is_looked_up_once(module: Any, monkeypatch: pytest.MonkeyPatch):
    module("x = 1")
    late, calls, looked_up = LateModule("late_example"), [], importlib.import_module
    monkeypatch.setattr(importlib, "import_module", lambda name: calls.append(name) or looked_up(name))
    assert [late.x, late.x, late.x] == [1, 1, 1]
    assert calls == ["late_example"]
    sys.modules["late_example"].x = 2
    assert late.x == 2  # its names are read anew


def test_a_module_whose_import_has_not_ended_is_not_kept(module: Any):
    """A reader inside of an import that fails must find the module that a later import makes."""
    late = LateModule("late_example")
    module("import builtins\nx = 1\nbuiltins.late_reader()\nraise RuntimeError")
    seen: list[int] = []
    vars(__import__("builtins"))["late_reader"] = lambda: seen.append(late.x)
    try:
        with pytest.raises(RuntimeError):
            late.x
    finally:
        del vars(__import__("builtins"))["late_reader"]
    assert seen == [1]
    assert interrupted.pop() == "late_example"
    module("x = 'of the second import'")
    importlib.invalidate_caches()
    assert late.x == "of the second import"
