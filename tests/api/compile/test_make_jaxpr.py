"""make_jaxpr and eval_shape; what programs look like in print (tests/golden)."""

import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tests.messages import place, raises

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
X = np.array([1.0, 2.0])


@tl.custom_jvp
def cube(x):
    return x**3


cube.defjvps(lambda t, y, x: 3 * x**2 * t)


@tl.jit
def layer(w, x):
    return tnp.tanh(w @ x)


def loss(w, x):
    return tnp.sum(layer(w, layer(w, x)) ** 2)


W = np.eye(2)
PROGRAMS = {
    "scalars": lambda: tl.make_jaxpr(lambda x: tnp.where(x > 0.1, x, -2.5) * np.float32(1e-3) + 1)(1.5),
    "constants": lambda: tl.make_jaxpr(lambda x: x @ W + X)(X),
    "calls": lambda: tl.make_jaxpr(loss)(W, X),
    "gradient": lambda: tl.make_jaxpr(tl.grad(lambda x, y: tnp.sin(x) * y, (0, 1)))(1.5, 2.5),
    "gradient_of_calls": lambda: tl.make_jaxpr(tl.grad(loss))(W, X),
    "linear": lambda: tl.linearize(lambda x: tnp.sum(tnp.sin(x) * x), X)[1],
    "linear_of_calls": lambda: tl.linearize(lambda w: loss(w, X), W)[1],
    "custom_jvp": lambda: tl.make_jaxpr(lambda x: cube(x) + cube(2 * x))(1.5),
    "indexing": lambda: tl.make_jaxpr(lambda x: x.at[1].add(x[0]))(X),
    "nothing": lambda: tl.make_jaxpr(lambda x, y: y)(1.5, True),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_print_as_agreed(name):
    """After a change that was meant, set UPDATE_GOLDEN=1, run pytest on this file, and read the diff."""
    path, text = GOLDEN / f"{name}.txt", f"{PROGRAMS[name]()}\n"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


def test_golden_files_are_all_used():
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(PROGRAMS)


def test_make_jaxpr_with_static_arguments_and_shapes():
    make = tl.make_jaxpr(lambda x, n: {"y": x**n}, static_argnums=1, return_shape=True)
    jaxpr, shape = make(X, 3)
    assert len(jaxpr.eqns) == 1
    assert shape == {"y": tl.ShapeDtypeStruct((2,), "float64")}


def test_make_jaxpr_keeps_names_and_lines():
    def f(x):
        return tnp.sin(x)

    jaxpr = tl.make_jaxpr(f)(X)
    assert jaxpr.jaxpr.name == "f"
    assert jaxpr.eqns[0].source.describe() == place(f, "sin")
    derivative = tl.make_jaxpr(tl.grad(lambda x: f(x) * 2.0))(1.0)
    assert {str(eqn.primitive): eqn.source for eqn in derivative.eqns}["cos"].describe() == place(f, "sin")


def test_dead_code_is_left_out():
    assert len(tl.make_jaxpr(lambda x: (x * x, x + 1)[1])(X).eqns) == 1


def test_make_jaxpr_inside_of_transforms():
    texts = []
    tl.jit(tl.grad(lambda x: texts.append(str(tl.make_jaxpr(tnp.sin)(x))) or x))(1.5)
    assert texts == [str(tl.make_jaxpr(tnp.sin)(1.5))]


def test_eval_shape():
    spec = tl.ShapeDtypeStruct((3, 4), "float32")
    assert tl.eval_shape(lambda a, b: a @ b, spec, tl.ShapeDtypeStruct((4, 5), "float32")).shape == (3, 5)
    shapes = tl.eval_shape(lambda d, *, k: {"x": tnp.sum(d["a"]) + k, "n": 3}, {"a": spec}, k=1.0)
    assert shapes == {
        "x": tl.ShapeDtypeStruct((), "float32"),
        "n": tl.ShapeDtypeStruct((), "int32", weak_type=True),
    }
    assert tl.eval_shape(tl.grad(lambda x: tnp.sum(x**2)), spec) == spec
    assert tl.eval_shape(lambda x: x["a"] + 1, {"a": SimpleNamespace(shape=(3, 4), dtype=np.dtype("float32"))}) == spec


def test_eval_shape_computes_nothing_and_finds_what_does_not_fit():
    huge = tl.ShapeDtypeStruct((10**6, 10**6), "float64")
    assert tl.eval_shape(lambda x: x @ x.T, huge).size == 10**12
    with raises(ValueError, "+: shapes (2,) and (3,) do not broadcast."):
        tl.eval_shape(lambda x, y: x + y, tl.ShapeDtypeStruct((2,), "float32"), np.ones(3))


def test_shape_dtype_struct():
    spec = tl.ShapeDtypeStruct((2, 3), np.float32)
    assert (spec.ndim, spec.size, spec.dtype, len(spec)) == (2, 6, np.dtype("float32"), 2)
    with raises(TypeError, "len() of a ShapeDtypeStruct without axes."):
        len(tl.ShapeDtypeStruct((), "float32"))
    assert repr(spec) == "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"
    assert spec == tl.ShapeDtypeStruct([2, 3], "float32") and hash(spec) == hash(tl.ShapeDtypeStruct((2, 3), "float32"))
    assert spec != tl.ShapeDtypeStruct((2, 3), "float32", weak_type=True) and spec != (2, 3)
    assert tl.ShapeDtypeStruct.like(tnp.ones((2, 3))) == spec == tl.ShapeDtypeStruct.like(spec)
    assert tl.ShapeDtypeStruct.like(2.0) == tl.ShapeDtypeStruct((), "float32", weak_type=True)
    assert spec.update(shape=(), weak_type=True) == tl.ShapeDtypeStruct.like(2.0)


def test_shardings_of_types():
    x = tl.device_put(np.ones(3, np.float32))
    spec = tl.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding)
    assert spec.sharding == x.sharding and spec != tl.ShapeDtypeStruct((3,), "float32")
    assert tl.jit(lambda x: x + 1).lower(spec).compile()(x).tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(NotImplementedError, match="ShapeDtypeStruct: sharding='elsewhere' is not where programs"):
        tl.ShapeDtypeStruct((3,), "float32", sharding="elsewhere")


def test_eval_shape_of_a_function_that_returns_types():
    """A leaf may be a type already, as of a function that looks at types itself."""
    key = tl.eval_shape(tl.random.key, 0)
    given = {
        "x": tl.ShapeDtypeStruct((2, 0), tnp.int8),
        "weak": tl.ShapeDtypeStruct((), tnp.float32, weak_type=True),
        "key": key,
    }
    assert tl.eval_shape(lambda x: {**given, "y": 2 * x}, given["x"]) == {**given, "y": given["x"]}
    assert tnp.iscomplexobj(tl.ShapeDtypeStruct((2,), tnp.complex64)) and tnp.isrealobj(given["x"])
    with pytest.raises(TypeError, match="not an array"):
        tl.jit(lambda: given["x"])()
