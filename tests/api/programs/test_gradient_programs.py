"""Gradients as programs: DA16, what is computed, what is printed, and files, whole and damaged."""

import os
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.programs import program_files
from tapeless.saving.trees import write_tree
from tests.close import single_precision_and_dtypes as close
from tests.messages import raises, text_of

X = np.linspace(0.1, 1.2, 12, dtype=np.float32).reshape(3, 4)
W = tnp.asarray(np.linspace(-1, 1, 8, dtype=np.float32).reshape(4, 2))


def loss(params, x):
    hidden = tnp.tanh(x @ params["w"] + params["b"])
    steps = tl.lax.scan(lambda c, h: (tnp.sin(c) + h, c * h), hidden[0], hidden)[1]
    return tnp.sum(steps**2 * hidden) + tnp.sum(W)


PARAMS = {"w": np.array(W) + 0.25, "b": np.array([0.5, -0.5], np.float32)}


def test_differentiated_once_evaluated_often(tmp_path):
    """DA16: traced once in 100 evaluations; it prints, and it is the same after being written and read."""
    traced = []

    def counted(params, x):
        traced.append(x.shape)
        return loss(params, x)

    p = tl.gradient_program(counted, PARAMS, X)
    for k in range(100):
        found = p(PARAMS, X + np.float32(k))
    assert len(traced) == 1
    close(found, tl.grad(loss, (0, 1))(PARAMS, X + np.float32(99)))

    text = str(p.gradient)
    assert str(tl.parse_jaxpr(text, consts=p.gradient.consts)) == text
    p.save(tmp_path / "g.tl")
    again = tl.load(tmp_path / "g.tl")
    assert str(again) == str(p)
    for x, y in zip(tl.tree.leaves(again(PARAMS, X)), tl.tree.leaves(p(PARAMS, X)), strict=True):
        assert x.tobytes() == y.tobytes()


@pytest.mark.parametrize("name", ["source", "bulk", "differentiated", "gradient", "joint"])
def test_each_program_is_its_text(name):
    program = getattr(tl.gradient_program(loss, PARAMS, X), name)
    again = tl.parse_jaxpr(str(program), consts=program.consts)
    assert str(again) == str(program)
    n = len(program.in_avals)
    xs = [np.asarray(x, np.float32) for x in [PARAMS["b"], PARAMS["w"], X]]
    given = [*xs, *([np.float32(1)] if n == 4 else xs)][:n]
    both = [tl.core.eval_jaxpr(each.jaxpr, each.consts, *given) for each in (program, again)]
    for x, y in zip(*both, strict=True):
        np.testing.assert_array_equal(x, y)


def test_programs_are_what_they_are_called():
    p = tl.gradient_program(loss, PARAMS, X)
    args = [PARAMS["b"], PARAMS["w"], X]

    def run(program, *xs):
        return tl.core.eval_jaxpr(program.jaxpr, program.consts, *xs)

    value, gradient = tl.value_and_grad(loss, (0, 1))(PARAMS, X)
    for program in (p.source, p.bulk):
        np.testing.assert_allclose(run(program, *args)[0], value, rtol=1e-6)
    close(run(p.gradient, *args, np.float32(2)), [2 * g for g in tl.tree.leaves(gradient)])
    tangents = [0.5 * x for x in args]
    out, t = run(p.differentiated, *args, *tangents)
    np.testing.assert_allclose(out, value, rtol=1e-6)
    np.testing.assert_allclose(t, sum(np.vdot(g, t) for g, t in zip(tl.tree.leaves(gradient), tangents)), rtol=1e-5)
    assert p.differentiated.jaxpr.linear_in == (False,) * (len(p.differentiated.consts) + 3) + (True,) * 3
    assert str(p).startswith("loss(params['b'], params['w'], x) -> ret\n\nsource\n@") and "\n\ngradient\n" in str(p)


def test_value_and_gradient():
    p = tl.gradient_program(loss, PARAMS, X)
    close(p.value_and_gradient(PARAMS, X), tl.value_and_grad(loss, (0, 1))(PARAMS, X))


def test_structures(tmp_path):
    """Arguments and results are trees; integers among them have no gradient."""

    def f(x, n, pair):
        return {"y": [x * pair[0], tnp.exp(1j * pair[1])], "n": n + 1}

    args = (X[0], 3, (2.0, X[1]))
    p = tl.gradient_program(f, *args)
    dret = {"y": [X[2], X[0] + 1j * X[1]], "n": np.zeros((), tl.float0)}
    value, pull = tl.vjp(f, *args)
    p.save(tmp_path / "g.tl")
    for each in (p, tl.load(tmp_path / "g.tl")):
        close(each.value_and_gradient(*args, dret=dret), (value, pull(dret)))


def test_inside_of_transformations():
    p = tl.gradient_program(lambda x: tnp.sum(tnp.sin(x) ** 2), X[0])
    hessian = tl.jacrev(p)(X[0])
    np.testing.assert_allclose(hessian, np.diag(2 * np.cos(2 * X[0])), atol=1e-6)
    np.testing.assert_allclose(tl.vmap(p)(X), np.sin(2 * X), rtol=1e-5)
    np.testing.assert_allclose(tl.jit(p)(X[0]), np.sin(2 * X[0]), rtol=1e-5)


def test_from_types():
    p = tl.gradient_program(lambda x: x**3, tl.ShapeDtypeStruct((), "float32"))
    assert p(2.0) == 12.0 and p(np.float32(3)) == 27.0


OTHER_PROCESS = """
import sys, numpy as np
import tapeless as tl
p = tl.load(sys.argv[1])
found = p(*tl.load(sys.argv[2]))
tl.save(sys.argv[3], found)
print(p.function, p.names)
try:
    p(*tl.load(sys.argv[2]), 1.0)
except TypeError as error:
    print(error)
print(p)
"""


def test_in_another_process(tmp_path):
    """Without the function: the file is all that goes there."""
    p = tl.gradient_program(loss, PARAMS, X)
    p.save(tmp_path / "g.tl")
    tl.save(tmp_path / "args", (PARAMS, X))
    paths = [str(tmp_path / name) for name in ("g.tl", "args", "out")]
    done = subprocess.run([sys.executable, "-c", OTHER_PROCESS, *paths], capture_output=True, text=True, check=True)
    error = "gradient_program: loss takes 2 arguments, params, x; here there are 3."
    assert done.stdout == f"loss ('params', 'x')\n{error}\n{p}\n"
    close(tl.load(tmp_path / "out"), p(PARAMS, X))


def test_rules_are_not_saved(tmp_path):
    """What calls a function with a rule computes as before, and is not differentiated by another rule."""

    @tl.custom_jvp
    def cube(x):
        return x**3

    cube.defjvp(lambda primals, tangents: (cube(*primals), 3 * primals[0] ** 2 * tangents[0]))
    p = tl.gradient_program(lambda x: cube(tnp.sin(x)) * x, 1.0)
    p.save(tmp_path / "g.tl")
    again = tl.load(tmp_path / "g.tl")
    close(again.value_and_gradient(1.0), p.value_and_gradient(1.0))
    assert str(again) == str(p) and str(again.source) == str(p.source)
    np.testing.assert_allclose(tl.vmap(again)(X[0]), tl.vmap(p)(X[0]), rtol=1e-6)
    np.testing.assert_allclose(tl.grad(p)(1.0), tl.grad(tl.grad(lambda x: tnp.sin(x) ** 3 * x))(1.0), rtol=1e-5)
    ones = tnp.ones(3)
    for differentiate in (
        lambda: tl.grad(again)(1.0),
        lambda: tl.jvp(again, (1.0,), (1.0,)),
        lambda: tl.vmap(tl.grad(again))(ones),
        lambda: tl.jvp(tl.vmap(again), (ones,), (ones,)),
    ):
        with pytest.raises(NotImplementedError) as caught:
            differentiate()
        assert text_of(caught.value) == (
            "load: the derivative of cube has a rule, a Python function, which files do not hold.\n"
            "  Differentiate the function itself, where it is defined."
        )


# ---- what is refused -----------------------------------------------------------------------------------------


def test_callbacks_are_not_saved(tmp_path):
    def f(x):
        tl.debug.callback(print, x)
        return x * tl.pure_callback(np.sin, tl.ShapeDtypeStruct((), "float32"), tl.lax.stop_gradient(x))

    p = tl.gradient_program(f, 1.0)
    with pytest.raises(TypeError) as caught:
        p.save(tmp_path / "g.tl")
    assert str(caught.value).startswith("save: the program 'gradient' cannot be saved.\n  save: line ")
    assert "is a Python object, such as a function" in str(caught.value)
    assert not os.listdir(tmp_path)


class Pair(NamedTuple):
    x: float
    y: float


def test_classes_are_not_saved(tmp_path):
    p = tl.gradient_program(lambda pair: pair.x * pair.y, Pair(1.0, 2.0))
    assert p(Pair(2.0, 3.0)) == Pair(3.0, 2.0)
    with raises(
        TypeError,
        "save: there is a Pair in the arguments, and files do not say how to make one.\n"
        "  Give the function tuples, lists and dicts.",
    ):
        p.save(tmp_path / "g.tl")


@pytest.mark.parametrize("loaded", [False, True])
def test_arguments_are_compared(tmp_path, loaded):
    """A loaded program says the same as the one that was saved."""
    p = tl.gradient_program(loss, PARAMS, X)
    if loaded:
        p.save(tmp_path / "g.tl")
        p = tl.load(tmp_path / "g.tl")
    wrong = "argument params['b'] of loss is float32[3], and the program takes float32[2]."
    with raises(TypeError, f"gradient_program: {wrong}"):
        p({**PARAMS, "b": np.ones(3, np.float32)}, X)
    with raises(TypeError, "gradient_program: loss takes 2 arguments, params, x; here there is 1."):
        p(PARAMS)
    with raises(
        TypeError,
        "gradient_program: the structure of argument params of loss is not that which the program takes.\n"
        "  ['b'] is nothing in what is given, a leaf in the program.",
    ):
        p({"w": W}, X)
    with raises(TypeError, "gradient_program: argument x of loss is 'x' of type str, which is not an array."):
        p(PARAMS, "x")
    with raises(TypeError, "gradient_program: dret is float32[2], and the program takes float32[]."):
        p(PARAMS, X, dret=np.ones(2, np.float32))


def test_functions_without_a_gradient_program():
    with raises(
        TypeError,
        "gradient_program: the result is float32[4], not one real number: pass its cotangent, dret.",
    ):
        tl.gradient_program(lambda x: x * x, X[0])(X[0])
    with raises(
        TypeError,
        "gradient_program: an argument and a result must be floating point or complex, and they are int32[] and "
        "int32[].",
    ):
        tl.gradient_program(lambda x: x + 1, 1)
    with pytest.raises(TypeError, match="gradient_program: expected a function"):
        tl.gradient_program(3)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("programs") / "g.tl"
    tl.gradient_program(loss, PARAMS, X).save(path)
    return path.read_bytes()


@pytest.mark.parametrize("seed", range(30))
def test_damaged_files_are_refused(saved, tmp_path, seed):
    """A byte is another one, or the file ends early: nothing but a ValueError that names the file comes of it."""
    rng = np.random.default_rng(seed)
    data, k = bytearray(saved), int(rng.integers(len(saved)))
    path = tmp_path / "g.tl"
    data[k] ^= int(rng.integers(1, 256))
    path.write_bytes(bytes(data) if seed % 3 else saved[:k])
    try:
        found = tl.load(path)
    except ValueError as error:
        assert str(error).startswith(f"load: {path} cannot be read: ")
    else:  # spaces behind the header
        np.testing.assert_array_equal(found(PARAMS, X)[1], tl.gradient_program(loss, PARAMS, X)(PARAMS, X)[1])


def forged(path, **changes):
    """A file whose checksums are right, and whose contents are not."""
    p = tl.gradient_program(lambda x: x * x, 1.0)
    p.save(path)
    tree = {
        "programs": {name: {"text": p._parts.text(name), "consts": []} for name in program_files.NAMES},
        "consts": [],
        "arguments": (0,),
        "results": 0,
        "function": "f",
        "names": ("x",),
    }
    write_tree(path, {**tree, **changes}, "gradient program")
    return tl.load(path)


@pytest.mark.parametrize(
    "changes",
    [
        {"programs": {}},
        {"programs": 3},
        {"consts": None, "arguments": 5, "results": [0, 1]},
        {"arguments": (0, 1, 2)},
        {"arguments": ("x",)},
        {"results": (0, 1)},
        {"function": 3},
        {"names": ("x", "y")},
        {"names": (1,)},
    ],
    ids=str,
)
def test_forged_files_are_refused(tmp_path, changes):
    assert forged(tmp_path / "g.tl")(3.0) == 6.0
    with pytest.raises(ValueError, match=r"^load: .*g\.tl cannot be read: "):
        forged(tmp_path / "g.tl", **changes)


def test_forged_programs_are_refused(tmp_path):
    wrong = "{ lambda a:~f32[] b:~f32[]. let c:f32[3] = mul a b in c }"
    names = ("source", "bulk", "differentiated", "gradient", "joint")
    with pytest.raises(ValueError, match="a program in it cannot be read: load: line 1, column 33: c is "):
        forged(tmp_path / "g.tl", programs={name: {"text": wrong, "consts": []} for name in names})


def test_files_of_other_kinds(tmp_path):
    write_tree(tmp_path / "x", {"a": 1}, "poem")
    with raises(ValueError, f"load: {tmp_path / 'x'} cannot be read: it holds a poem, of another version of tapeless."):
        tl.load(tmp_path / "x")
