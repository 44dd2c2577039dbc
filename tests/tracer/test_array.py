"""What type checkers are told about arrays is what is installed on them."""

import inspect
import runpy
import typing
from typing import Any

import pytest

from tapeless.tracer import array
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array
from tapeless.tracer.core import Tracer


def array_class(monkeypatch: pytest.MonkeyPatch, type_checking: bool) -> dict[str, Any]:
    """Attributes of the class as it is defined, without what is installed; as type checkers see it, or as it runs."""
    monkeypatch.setattr(typing, "TYPE_CHECKING", type_checking)
    return dict(vars(runpy.run_path(array.__file__)["Array"]))


@pytest.fixture
def attributes(monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, Any], dict[str, Any]]:
    """The declared ones and the installed ones."""
    bare = array_class(monkeypatch, False)
    declared = array_class(monkeypatch, True)
    assert declared.pop("__hash__") is None  # Python's own doing, where __eq__ is defined
    assert parameters(declared.pop("__array__")) == parameters(Tracer.__array__)  # each kind of array has its own
    return (
        {name: f for name, f in declared.items() if name not in bare},
        {name: f for name, f in vars(Array).items() if name not in bare},
    )


def parameters(f: Any) -> list[tuple[str, Any]]:
    """Names and defaults, without the array itself."""
    return [(p.name, p.default) for p in inspect.signature(f).parameters.values()][1:]


def test_the_declared_names_are_those_installed(attributes):
    declared, installed = attributes
    assert sorted(declared) == sorted(installed)
    assert {n for n, f in declared.items() if isinstance(f, property)} == {
        n for n, f in installed.items() if isinstance(f, property)
    }


def test_the_declared_functions_are_those_installed(attributes):
    declared, installed = attributes
    for name, f in declared.items():
        if isinstance(f, property):
            continue
        if f.__module__.startswith(tnp.__name__):
            # Operators are wrapped, so that they give up on what is no operand, and keep the documentation.
            assert installed[name] is f or (installed[name].__name__, installed[name].__doc__) == (name, f.__doc__)
        else:
            assert parameters(f) == parameters(installed[name]), name
