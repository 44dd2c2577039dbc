"""The memory of a gradient before anything is compiled: it adds up, and is what the compiled program needs."""

import dataclasses
import functools
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
    at = f"where the backward pass is at {where}"
    assert str(tl.memory(layers, P, X)) == (
        "layers: memory of value and gradient, in bytes, as predicted\n"
        "arguments    4,000\n"
        "residuals    9,600  kept for the backward pass, beyond arguments\n"
        f"peak         9,600  of values live at once, beyond arguments and results, {at}\n"
        "temporaries  9,600  of the compiled program, which budgets bound\n"
        "over time    ▁▁▄▄▆▆███│█████▆▆▁▁  the forward pass, and the backward pass\n"
        "\n"
        "residuals  at the peak  line\n"
        f"    9,600        6,400  {where}\n"
        "                 3,200  cotangents\n"
        "\n"
        "residuals  at the peak  operation\n"
        "    9,600        6,400  tanh\n"
        "                 3,200  cotangents\n"
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
        "arguments    3,200\n"
        "residuals        0  kept for the backward pass, beyond arguments\n"
        "peak             0  of values live at once, beyond arguments and results\n"
        "temporaries      0  of the compiled program, which budgets bound\n"
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


# ---- transformations


@tl.custom_vjp
def with_rule(x: Any) -> Any:
    return tnp.sin(x)


with_rule.defvjp(lambda x: (tnp.sin(x), tnp.cos(x)), lambda cosine, ct: (cosine * ct,))


@tl.custom_jvp
def pushed_by_rule(x: Any) -> Any:
    return tnp.sin(x)


@pushed_by_rule.defjvp
def _(primals: Any, tangents: Any) -> Any:
    return tnp.sin(primals[0]), tangents[0] * tnp.cos(primals[0])


def scanned(x: Any) -> Any:
    return tl.lax.scan(lambda c, _: (tnp.sin(c), None), x, None, 3)[0]


def second_order(x: Any) -> Any:
    return tl.grad(lambda x: tnp.sum(tnp.exp(tnp.sin(x))))(x)


def checkpointed(x: Any) -> Any:
    return tl.checkpoint(lambda x: tnp.sin(tnp.sin(x)))(2 * x)


@pytest.mark.parametrize(
    ("f", "names"),
    [
        (tnp.sin, {""}),
        (tl.jit(tnp.sin), {""}),
        (tl.vmap(tnp.sin), {"vmap"}),
        (lambda x: tl.jvp(tnp.sin, (x,), (x,))[1], {"jvp"}),
        (second_order, {"jvp", "cotangents"}),
        (checkpointed, {"checkpoint", "cotangents"}),
        (scanned, {"scan", "cotangents"}),
        (tl.vmap(scanned), {"vmap(scan)", "cotangents"}),
        (with_rule, {"custom_vjp"}),
        (tl.vmap(with_rule), {"vmap(custom_vjp)"}),
        (pushed_by_rule, {"custom_jvp"}),
        (lambda x: tl.lax.scan(lambda c, _: (with_rule(c), None), x, None, 3)[0], {"scan(custom_vjp)", "cotangents"}),
    ],
)
def test_parts_by_transformation(f: Any, names: set[str]):
    found = tl.memory(f, X)
    assert {part.name for part in found.transformations} - {"cotangents"} == names - {"cotangents"}
    assert sum(part.live for part in found.transformations) == found.peak
    assert sum(part.residuals for part in found.transformations) == found.residual_bytes
    assert ("the peak  transformation" in str(found)) is (names - {"cotangents"} != {""})


def test_what_a_body_computes_again_is_a_part_of_its_line():
    found = tl.memory(checkpointed, X)
    (part,) = [part for part in found.transformations if part.name == "checkpoint"]
    assert part.live == found.recomputed == 2 * X.nbytes
    (line,) = [part for part in found.lines if part.name == place(checkpointed, "tl.checkpoint")]
    assert line.live >= found.recomputed


# ---- arguments of all kinds


def of_anything(
    p: Any,
    x: Any,
    n: Any = 50,
    name: str = "tanh",
    g: Any = None,
    mask: Any = None,
    rate: Any = 0.5,
    labels: Any = None,
) -> Any:
    y = getattr(tnp, name)(x[: int(n)] @ p.w["a"])
    y = y if mask is None else y[mask]
    y = g(y) if g else y
    y = y * rate if rate > 0.1 else y
    return y if labels is None else y * labels[:, None]


@tl.tree_util.register_dataclass
@dataclasses.dataclass
class Parameters:
    w: Any
    settings: Any


@pytest.mark.parametrize("function", [tl.memory, tl.frontier, tl.explain, tl.saved_residuals])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"n": 20, "name": "sin", "rate": 0.0},
        {"n": 60.0, "g": tnp.cos, "mask": None},
        {"mask": np.arange(50) > 20},
        {"labels": np.arange(50)},
    ],
)
def test_arguments_are_what_gradients_take(function: Any, more: Any):
    """They give what the function without them gives, where they are what they are."""
    p = Parameters({"a": array(8, 8), "kind": "dense", "none": None}, {"f": np.sin, "deep": ["text", 3, {"x": None}]})
    rest = functools.wraps(of_anything)(lambda w, x: of_anything(Parameters({"a": w}, None), x, **more))
    found, right = function(of_anything, p, X, **more), function(rest, p.w["a"], X)
    if function is tl.memory:
        assert (found.peak, found.residual_bytes) == (right.peak, right.residual_bytes)
        assert [x.name for x in found.arguments if x.name in ("x", "p.w['a']")] == ["x", "p.w['a']"]
    if function is tl.frontier:
        assert [row.peak for row in found.rows] == [row.peak for row in right.rows]
    if function is tl.saved_residuals:
        assert found.nbytes == right.nbytes
    tl.grad(lambda *args, **kwargs: tnp.sum(of_anything(*args, **kwargs)), 1, memory_budget=0)(p, X, **more)


def test_numbers_are_differentiated_if_there_are_no_arrays():
    assert tl.memory(lambda x, n: tnp.sin(x) ** n, 2.0, 3).residual_bytes > 0
    with pytest.raises(TypeError, match=r"memory: argument n of <lambda> is int32\[\], and integers have no"):
        tl.memory(lambda n: n, 3)
