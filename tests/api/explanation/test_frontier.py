"""The frontier of a gradient: what budgets cost, before anything is compiled, and how well that is predicted."""

import functools
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests.api.explanation.test_page import Document
from tests.interpreters.residuals.test_budget import PROGRAMS, array
from tests.messages import place, raises, short

budget = tl.checkpoint_policies.budget


def layers(ws: Any, x: Any) -> Any:
    for w in ws:
        x = tnp.tanh(x @ w)
    return x


WS, X = [array(8, 8)] * 8, array(32, 8)


def loop(x: Any) -> Any:
    return lax.fori_loop(0, 100, lambda _, c: tnp.sin(c * x), x)


@functools.cache
def found(name: str) -> Any:
    f, args = PROGRAMS[name]
    return tl.frontier(f, *args)


# ---- rows


@pytest.mark.parametrize("name", PROGRAMS)
def test_rows_trade_bytes_for_operations(name: str):
    rows = found(name).rows
    assert (rows[0].part, rows[0].operations, rows[0].choice) == (1.0, 1.0, "nothing")
    for row, after in pairwise(rows):
        assert after.peak < row.peak
        assert after.operations > row.operations
        assert after.choice != "nothing"
        assert after.part == after.peak / rows[0].peak


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_least_is_that_of_budgets(name: str):
    f, args = PROGRAMS[name]
    least = found(name).least
    again = tl.checkpoint(f, policy=budget(least))
    everything = tuple(range(len(args)))
    tl.make_jaxpr(tl.grad(again, everything))(*args)
    with pytest.raises(ValueError, match=rf"budget\({least - 1}\): .* which need at least {least}\."):
        tl.make_jaxpr(tl.grad(tl.checkpoint(f, policy=budget(least - 1)), everything))(*args)


def test_a_row_is_what_its_budget_computes_again():
    """Compiled temporaries of each row are those of the gradient with this budget, and the first row's of none."""
    first, *rows = tl.frontier(layers, WS, X, compile=True).rows

    def temporaries(f: Any) -> int:
        pulled = tl.jit(lambda ws, x, ct: (lambda y, pull: (y, pull(ct)))(*tl.vjp(f, ws, x)))
        return pulled.lower(WS, X, X).compile().memory_analysis().temp_size_in_bytes

    assert first.temporaries == temporaries(layers)
    for row in rows:
        assert row.temporaries == temporaries(tl.checkpoint(layers, policy=budget(row.peak)))


@pytest.mark.parametrize("name", ["layers", "scan of blocks", "recurrent", "U-net"])
def test_compiled_programs_need_what_is_predicted(name: str):
    """Within 5 %, for what XLA allots besides: counters, alignment, arrays of some elements."""
    f, args = PROGRAMS[name]
    rows = tl.frontier(f, *args, compile=True).rows
    for row in (rows[0], rows[len(rows) // 2], rows[-1]):
        assert 0.95 <= row.temporaries / row.peak <= 1.05


def test_arguments_of_all_kinds():
    """Pytrees, NumPy, types, keywords and arrays that are closed over: the same rows; nothing runs."""
    right = tl.frontier(layers, WS, X).rows
    types = [tl.ShapeDtypeStruct(w.shape, w.dtype) for w in WS], tl.ShapeDtypeStruct(X.shape, X.dtype)
    arrays = [tnp.asarray(w) for w in WS], tnp.asarray(X)
    with tl.no_execution(True):
        assert tl.frontier(layers, *types).rows == right
        assert tl.frontier(layers, *arrays).rows == right
        assert tl.frontier(lambda p: layers(p["ws"], p["x"]), {"ws": WS, "x": X}).rows[0].peak == right[0].peak
        assert tl.frontier(lambda ws, *, x: layers(ws, x), WS, x=X).rows[0].peak == right[0].peak
        assert tl.frontier(lambda x: layers(WS, x), X).rows[0].peak <= right[0].peak


def test_results_of_all_kinds():
    """Not only scalars, but what `vjp` takes: pytrees, integers among them, and a function that saves nothing."""
    rows = tl.frontier(lambda x, n: {"y": tnp.sin(tnp.sin(x)), "n": n}, X, np.arange(3)).rows
    assert rows[0].peak > 0
    linear = tl.frontier(lambda x: 2 * x, X, compile=True)
    assert [(row.peak, row.part, row.operations) for row in linear.rows] == [(0, 1.0, 1.0)]
    assert str(linear).endswith("Nothing is kept for the backward pass, beyond arguments and results.")


def test_loops_in_chunks():
    frontier = tl.frontier(loop, X)
    (again,) = frontier.rows[-1].loops
    assert (again.length, again.steps) == (100, 10)
    where = place(loop, "fori_loop").partition(" (")[0]
    assert frontier.rows[-1].choice == f"the loop of 100 steps at {where} in chunks of 10"
    assert frontier.note.endswith(". Loops in chunks need less with checkpoint='log', or a number of states.")


def test_while_loops_save_fewer_states():
    def f(x: Any) -> Any:
        return tnp.sum(lax.while_loop(lambda x: x[0, 0] > 0.5, tnp.sin, x))

    first, *_, last = tl.frontier(f, X).rows
    assert (first.states, first.choice) == (None, "nothing")
    assert (last.states, last.choice) == (1, "steps of while loops, from 1 state")


# ---- text and page


def test_text():
    where = place(layers, "tnp.tanh")
    line = where.partition(" (")[0]
    assert str(tl.frontier(layers, WS, X)) == (
        "layers: bytes live at once, and operations of value and gradient\n"
        "budget  part  operations  computed again\n"
        " 8,192  1.00        1.00  nothing\n"
        f" 6,144  0.75        1.08  1 segment, cut behind {line}\n"
        f" 5,120  0.62        1.12  1 segment, cut behind {line}\n"
        "A budget of fewer than 5,120 bytes is refused. "
        f"The largest value is float32[32,8] from dot_general at {where}."
    )


def test_text_without_a_largest_value():
    found = tl.frontier(lambda x: 1.0 + 0.0 * tnp.sum(lax.stop_gradient(x)), array(3))
    assert str(found).endswith("\nA budget of fewer than 4 bytes is refused.")


def test_places_name_their_file_once():
    def f(x: Any) -> Any:
        for _ in range(4):
            x = tnp.sin(x @ x)
            x = tnp.tanh(x @ x)
        return x

    file = short(__file__)
    choices = [row.choice for row in tl.frontier(f, array(16, 16)).rows[1:]]
    assert max(choice.count(file) for choice in choices) == 1


def test_page(tmp_path: Path):
    def f(x: Any) -> Any:
        return layers(WS, x)

    f.__name__ = "<img src=x>"
    frontier = tl.frontier(f, X, compile=True)
    frontier.save(tmp_path / "x.html")
    text = (tmp_path / "x.html").read_text(encoding="utf-8")
    document = Document(text)
    tags = [tag for tag, _ in document.elements]
    assert tags.count("circle") == len(frontier.rows)
    assert tags.count("tr") == 1 + len(frontier.rows)
    assert not {"img", "script", "link"} & set(tags)
    shown = "".join(document.text)
    assert "<img src=x>" in shown
    assert f"{frontier.rows[-1].temporaries:,}" in shown
    assert frontier._repr_html_() in text


@pytest.mark.parametrize("f", [loop, lambda x: 2 * x])
def test_pages_of_extremes(f: Any):
    """A frontier that is drawn over a logarithmic axis, as it has rows a hundred times apart, and one of no bytes."""
    document = Document(tl.frontier(f, X)._repr_html_())
    numbers = [attrs["cx"] for tag, attrs in document.elements if tag == "circle"]
    assert all(np.isfinite(float(n)) and 0 <= float(n) <= 720 for n in numbers)


# ---- errors


def test_errors():
    def f(x: Any) -> Any:
        return "a" if x.ndim == 1 else tnp.sum(x)

    with raises(TypeError, "frontier: expected a function and its arguments, not 3.0."):
        tl.frontier(3.0, X)
    at = place(f, "def f").partition(" (")[0]
    with raises(TypeError, f"frontier: the result of f at {at} is 'a' of type str, which is not an array."):
        tl.frontier(f, X[0])
    with raises(
        TypeError,
        "frontier: argument x of f is int32[2,2], and integers have no derivative.\n  Convert it with astype(float).",
    ):
        tl.frontier(f, np.ones((2, 2), np.int32))
