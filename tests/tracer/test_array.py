"""What type checkers are told about arrays is what is installed on them."""

import ast
import inspect
import runpy
from pathlib import Path
from typing import Any

import pytest

from tapeless.tracer import array
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array

SOURCE = Path(array.__file__)
IMPORTED = {"_astype": tnp.astype}


def block() -> list[ast.stmt]:
    """The declarations for type checkers in the class."""
    body = next(node for node in ast.parse(SOURCE.read_text()).body if isinstance(node, ast.ClassDef)).body
    return next(node.body for node in body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")


ALIASES = [(target.id, node.value) for node in block() if isinstance(node, ast.Assign) for target in node.targets]
FUNCTIONS = [node for node in block() if isinstance(node, ast.FunctionDef)]
PROPERTIES = [f.name for f in FUNCTIONS if f.decorator_list]


def installed() -> dict[str, Any]:
    """What the class has now and had not when it was defined."""
    bare = vars(runpy.run_path(str(SOURCE))["Array"])
    return {name: f for name, f in vars(Array).items() if name not in bare}


def function_of(value: ast.expr) -> Any:
    """The function that an alias names: `reductions.sum`."""
    if isinstance(value, ast.Name):
        return IMPORTED[value.id]
    module, name = ast.unparse(value).split(".")
    return getattr(inspect.getmodule(getattr(tnp, name, None)) or getattr(tnp, module), name)


def test_the_declared_names_are_those_installed():
    declared = [name for name, _ in ALIASES] + [f.name for f in FUNCTIONS]
    assert sorted(declared) == sorted(installed())
    assert sorted(PROPERTIES) == sorted(name for name, f in installed().items() if isinstance(f, property))
