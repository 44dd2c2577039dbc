"""Exceptions as users meet them: by the name that they import, and in other processes."""

import pickle
import subprocess
import sys

import pytest

import tapeless as tl
from tapeless import errors

ARGUMENTS = {
    errors.InternalError: ("broken",),
    errors.LinearityError: ("f: not linear.", "not linear", lambda: "an equation"),
    errors.ProgramTextError: ("no such primitive.", 3, 7),
}
TYPES = [getattr(errors, name) for name in errors.__all__ if name != "JaxRuntimeError"]


@pytest.mark.parametrize("kind", TYPES)
def test_types_are_named_as_users_import_them(kind):
    assert kind.__module__ == "tapeless.errors" and getattr(errors, kind.__name__) is kind


@pytest.mark.parametrize("kind", TYPES)
def test_pickling(kind):
    """With the notes and attributes; equations stay where they are."""
    error = kind(*ARGUMENTS.get(kind, ("message",)))
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind and str(again) == str(error)
    kept = {name: x for name, x in vars(error).items() if name != "equation"}
    assert kept.items() <= vars(again).items() and vars(again).get("equation") is None


def test_what_python_prints():
    code = "import tapeless as tl\ntl.jit(lambda x: 1 if x else 2)(1)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "\ntapeless.errors.TracerBoolConversionError: " in done.stderr


def test_errors_of_checked_functions():
    kind = tl.experimental.checkify.JaxRuntimeError
    assert kind.__module__ == "tapeless.experimental.checkify"
