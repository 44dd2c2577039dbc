"""debug.breakpoint: what the commands show, of which frames, in eager, compiled and transformed programs."""

import io
import os

import numpy as np
import pytest

import tapeless as tl
from tests.messages import raises

X = np.arange(3, dtype=np.float32)
HERE = os.path.abspath(__file__)


def session(f, commands, **options):
    """What is written while a program takes commands; `f(x, stop)` calls `stop()` once."""
    written = io.StringIO()

    def stop(**more):
        given = io.StringIO("".join(f"{line}\n" for line in commands))
        return tl.debug.breakpoint(stdin=given, stdout=written, **options, **more)

    f(stop)
    tl.effects_barrier()
    return written.getvalue().replace("(tdb) ", "").splitlines()


def inner(x, stop):
    y = {"twice": 2 * x, "name": "y"}
    stop()
    return y["twice"].sum()


def outer(x, stop):
    return inner(x + 1, stop)


@pytest.mark.parametrize("way", [lambda f: f, tl.jit, lambda f: tl.jit(tl.grad(f))], ids=["eager", "jit", "grad"])
def test_expressions_and_frames(way):
    commands = ["up", "p x + 1", "pp y['name']", "", "y", "up", "x", "where", "unknown", "c"]
    lines = session(lambda stop: way(lambda x: outer(x, stop))(tl.numpy.asarray(X)), commands, num_frames=4)
    assert lines[0] == "Stopped at a breakpoint; help lists the commands."
    assert lines[1].startswith(f"> {HERE}(") and lines[1].endswith(" in session.<locals>.stop")
    text = "\n".join(lines)
    assert f"> {HERE}({inner.__code__.co_firstlineno + 2}) in inner" in text
    assert "->      stop()" in text
    shown = [line for line in lines if line.startswith(("Array", "'", "{"))]
    assert shown == [
        "Array([2., 3., 4.], dtype=float32)",
        "'y'",
        "{'name': 'y', 'twice': Array([2., 4., 6.], dtype=float32)}",
        "Array([0., 1., 2.], dtype=float32)",  # x, of outer
    ]
    assert text.count(f'  File "{HERE}", line ') == 4
    assert lines[-1] == "*** NameError: name 'unknown' is not defined"


def test_the_ends_of_the_frames():
    lines = session(lambda stop: tl.jit(lambda x: inner(x, stop))(X), ["down", "up", "up", "y", "c"], num_frames=2)
    assert "This is the innermost frame." in lines and "This is the outermost frame." in lines
    assert lines[-1] == "{'name': 'y', 'twice': Array([0., 2., 4.], dtype=float32)}"


def test_the_lines_around():
    lines = session(lambda stop: inner(X, stop), ["up", "list", "c"])
    assert lines.count("->      stop()") == 2
    assert lines[-1] == "        return inner(x + 1, stop)"  # the fifth line after it


def test_after_its_token():
    def f(x, stop):
        return stop(token=2 * x) + 1

    shown = session(
        lambda stop: np.testing.assert_array_equal(tl.jit(lambda x: f(x, stop))(X), 2 * X + 1), ["up", "x", "c"]
    )
    assert shown[-1] == "Array([0., 1., 2.], dtype=float32)"
    assert session(lambda stop: tl.grad(lambda x: f(x, stop).sum())(X), ["c"])[0].startswith("Stopped")


def test_leaving_the_program():
    with pytest.raises(SystemExit):
        session(lambda stop: inner(X, stop), ["q"])


def test_options_that_do_not_fit():
    with raises(ValueError, "debug.breakpoint: the backend is 'cli'; there is no 'web'."):
        tl.debug.breakpoint(backend="web")
    with raises(ValueError, "debug.breakpoint: with a token its order is that of the values: ordered must be False."):
        tl.debug.breakpoint(token=X, ordered=True)
