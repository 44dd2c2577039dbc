"""The memory of a gradient before anything is compiled: it adds up, and is what the compiled program needs."""

from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tests.interpreters.residuals.test_budget import PROGRAMS, array
from tests.messages import place, raises


def layers(p: Any, x: Any) -> Any:
    for w in p["w"]:
        x = tnp.tanh(x @ w)
    return x * p["scale"]


P, X = {"w": [array(8, 8)] * 3, "scale": array(8)}, array(100, 8)


@pytest.mark.parametrize("name", PROGRAMS)
def test_figures_add_up(name: str):
    f, args = PROGRAMS[name]
    found = tl.memory(f, *args)
    for parts in (found.lines, found.operations):
        assert sum(part.live for part in parts) == found.peak
        assert sum(part.residuals for part in parts) == found.residual_bytes
        assert [part.live for part in parts] == sorted([part.live for part in parts], reverse=True)
    assert found.residual_bytes == sum(r.nbytes for r in found.residuals if r.argument is None)
    assert sum(x.nbytes for x in found.arguments if x.name != "arrays from outside") == sum(
        x.nbytes for x in tl.tree.leaves(args)
    )


# Temporaries over the prediction: copies of a convolution's operands on the CPU, which is the worst of all programs.
@pytest.mark.parametrize(("name", "low", "high"), [("recurrent", 0.95, 1.1), ("dropout", 0.85, 1.0), ("U-net", 1, 3.4)])
def test_compiled_programs_need_what_is_predicted(name: str, low: float, high: float):
    f, args = PROGRAMS[name]
    found = tl.memory(f, *args, compile=True)
    assert low <= found.compiled.temp_size_in_bytes / found.peak <= high
    assert str(found).endswith(str(found.compiled))


def test_checkpoints_inside_count_what_they_compute_again():
    """A checkpoint around all of a function keeps nothing, but holds all of it at once in the backward pass."""
    whole, again = tl.memory(layers, P, X), tl.memory(tl.checkpoint(layers), P, X, compile=True)
    assert again.residual_bytes == 0
    assert again.peak >= 0.9 * whole.peak
    assert again.compiled.temp_size_in_bytes <= 1.05 * again.peak


def test_arguments_of_all_kinds():
    """Pytrees, NumPy, types, keywords and arrays that are closed over; nothing runs."""
    right = str(tl.memory(layers, P, X))
    types = tl.tree.map(lambda x: tl.ShapeDtypeStruct(x.shape, x.dtype), (P, X))
    arrays = tl.tree.map(tnp.asarray, (P, X))
    with tl.no_execution(True):
        assert str(tl.memory(layers, *types)) == str(tl.memory(layers, *arrays)) == right
        assert tl.memory(lambda p, *, x: layers(p, x), P, x=X).peak == tl.memory(layers, P, X).peak
    outside = tl.memory(lambda x: layers(P, x), X).arguments
    assert [x.name for x in outside] == ["x", "arrays from outside"]
    assert outside[1].read


def test_text():
    where = place(layers, "tnp.tanh")
    assert str(tl.memory(layers, P, X)) == (
        "layers: memory of value and gradient, in bytes, as predicted\n"
        "arguments  4,000\n"
        "residuals  9,600  kept for the backward pass, beyond arguments\n"
        f"peak       9,600  live at once, beyond arguments and results, where the backward pass is at {where}\n"
        "\n"
        "residuals  at the peak  line\n"
        f"    9,600        6,400  {where}\n"
        "                 3,200  cotangents, and what bodies compute again\n"
        "\n"
        "residuals  at the peak  operation\n"
        "    9,600        6,400  tanh\n"
        "                 3,200  cotangents, and what bodies compute again\n"
        "\n"
        "bytes        argument\n"
        "3,200  kept  x\n"
        "  256  kept  p['w'][0]\n"
        "  256  kept  p['w'][1]\n"
        "  256  kept  p['w'][2]\n"
        "   32  kept  p['scale']"
    )


def test_text_of_extremes():
    """A function that keeps nothing has no tables of lines; of many arguments only the largest are shown."""
    assert str(tl.memory(lambda x: 2 * x, X)) == (
        "<lambda>: memory of value and gradient, in bytes, as predicted\n"
        "arguments  3,200\n"
        "residuals      0  kept for the backward pass, beyond arguments\n"
        "peak           0  live at once, beyond arguments and results\n"
        "\n"
        "bytes    argument\n"
        "3,200    x"
    )
    many = str(tl.memory(lambda xs: sum(map(tnp.sum, xs)), [np.ones(k) for k in range(1, 20)]))
    assert many.splitlines()[-13].endswith("xs[18]") and many.endswith("\nand 7 more")


def test_errors():
    with raises(TypeError, "memory: expected a function and its arguments, not 'f'."):
        tl.memory("f", X)
    no_derivative = "is int32[2], and integers have no derivative.\n  Convert it with astype(float)."
    with raises(TypeError, f"memory: argument x of <lambda> {no_derivative}"):
        tl.memory(lambda x: x, np.ones(2, np.int32))
