"""Compiled functions written as bytes and read again: here, in another process, on another device; what is refused."""

import json
import os
import subprocess
import sys
import textwrap
from collections import OrderedDict, defaultdict, deque
from typing import Any, NamedTuple

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import stages
from tapeless.lowering import saved_programs
from tests.messages import place, raises

X = np.array([1.0, 2.0, 4.0])


class Point(NamedTuple):
    x: Any
    y: Any


@tl.tree_util.register_pytree_node_class
class Model:
    """An array with auxiliary data."""

    def __init__(self, w, aux):
        self.w, self.aux = w, aux

    def tree_flatten(self):
        return (self.w,), self.aux

    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(*children, aux)


def saved(f, *args, **kwargs):
    return tl.jit(f).lower(*args, **kwargs).compile().serialize()


def loaded(f, *args, **kwargs):
    return stages.load(saved(f, *args, **kwargs))


def test_loaded_it_is_the_same_function():
    weight = tnp.asarray(2 * X)

    def loss(p, *, scale):
        return {"y": Point(tnp.sin(p["x"]) * weight, p["n"]), "s": tnp.sum(p["x"]) * scale}

    args, kwargs = ({"x": X, "n": np.arange(3)},), {"scale": np.float32(3.0)}
    compiled = tl.jit(loss).lower(*args, **kwargs).compile()
    again = stages.load(compiled.serialize())
    assert repr(again) == repr(compiled) and again.in_tree == compiled.in_tree and again.out_info == compiled.out_info
    assert tl.tree.map(np.array_equal, again(*args, **kwargs), compiled(*args, **kwargs))
    expected = {"y": Point(np.sin(X) * 2 * X, np.arange(3)), "s": np.float32(3.0) * X.sum()}
    result = again(*args, **kwargs)
    assert tl.tree.structure(result) == tl.tree.structure(expected)
    for x, y in zip(tl.tree.leaves(result), tl.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(np.asarray(x), y, rtol=1e-14)
    assert "HloModule" in again.as_text() and again.cost_analysis() and again.memory_analysis()
    assert stages.load(again.serialize())(*args, **kwargs)["s"] == result["s"]


@pytest.mark.parametrize(
    "tree",
    [
        (X, [X, None], ()), {1: X, 2: X}, {(1, "a"): X}, {True: X}, {b"x": X}, {1.5: X, 2.5: X}, OrderedDict(b=X, a=X),
        defaultdict(list, {"a": X}), defaultdict(None, {"a": X}), deque([X], maxlen=3), Point(X, {"k": (X,)}),
        Model(X, None), Model([X], ("a", 1, True, 1.5, -0.0, 2j, b"b", [1], {"a": (np.dtype("int8"),)})),
    ],
)  # fmt: skip
def test_structures_and_auxiliary_data(tree):
    result = loaded(lambda p: p, tree)(tree)
    assert tl.tree.structure(result) == tl.tree.structure(tree)
    assert repr(tl.tree.structure(result)) == repr(tl.tree.structure(tree)) and type(result) is type(tree)


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "int4", "complex128", "bool", "uint64"])
def test_dtypes_of_constants(dtype):
    constant = tnp.asarray([0, 1, 1]).astype(dtype)
    result = loaded(lambda x: (x, constant), X)(X)[1]
    assert result.dtype == constant.dtype and np.array_equal(np.asarray(result), np.asarray(constant))


def test_donation_weak_types_and_numbers_that_must_fit():
    donating = tl.jit(lambda x, n: x + n, donate_argnums=0).lower(tl.ShapeDtypeStruct((3,), np.int8), 1).compile()
    function = stages.load(donating.serialize())
    x = tnp.ones(3, np.int8)
    assert function(x, 2).tolist() == [3, 3, 3] and x.is_deleted()
    with pytest.raises(OverflowError, match=r"jit: argument n of <lambda> at .* is 300, but must fit int8"):
        function(tnp.ones(3, np.int8), 300)
    wrong = r"^<lambda> at .* was compiled for int8\[3\] as argument x, but called with float64\[3\]\."
    with pytest.raises(TypeError, match=wrong):
        function(X, 1)


def test_nan_is_found():
    function = loaded(lambda x: tnp.log(x), X)
    with (
        tl.config.scope(debug_nans=True),
        raises(FloatingPointError, "nan in a result of f, which was loaded: its lines are not known."),
    ):
        function(-X)


PROGRAM = """
    import sys
    from pathlib import Path

    import numpy as np

    import tapeless as tl, tapeless.numpy as tnp
    from tapeless import stages

    path = Path(sys.argv[1])
    x = np.array([[2.0, 1.0], [1.0, 3.0]])
    for device in tl.devices():
        if not path.exists() or len(tl.devices()) == 1 and sys.argv[2] == "save":
            solve = lambda x: tnp.linalg.solve(x, tnp.ones(2)) + tnp.linalg.eigh(x)[0]
            path.write_bytes(tl.jit(solve).lower(x).compile().serialize())
        result = stages.load(path.read_bytes(), device)(x)
        assert result.device is device
        print(np.asarray(result).tolist())
"""


def test_other_processes_and_devices(tmp_path):
    """Saved when it was compiled, and when it came from the cache; loaded where LAPACK is not; on another device."""

    def run(mode, devices=1):
        environment = {**os.environ, "TAPELESS_CACHE": "1", "TAPELESS_CACHE_DIR": str(tmp_path / "cache")}
        environment["TAPELESS_NUM_CPU_DEVICES"] = str(devices)
        command = [sys.executable, "-c", textwrap.dedent(PROGRAM), str(tmp_path / "saved"), mode]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return set(done.stdout.splitlines())

    (result,) = run("save")
    assert run("load") == run("save") == run("load", devices=2) == {result}


def test_calls_of_lapack_are_noted():
    def solve(x, b):
        return tl.lax.linalg.tridiagonal_solve(x, x, x, b, perturb_singular=True)

    for f, args in ((solve, (X, X[:, None])), (tnp.linalg.det, (np.eye(2),))):
        header, _ = saved_programs.unpack_file("test", saved(f, *args))
        assert header["lapack"]


# ---- what is refused ------------------------------------------------------------------------------------------

DOUBLE = saved(lambda x: 2 * x, X)


def rewritten(**changes):
    header, parts = saved_programs.unpack_file("test", DOUBLE)
    for path, value in changes.items():
        *names, last = path.split("__")
        at = header
        for name in names:
            at = at[name]
        at[last] = value
    return saved_programs.pack_file(header, parts)


@pytest.mark.parametrize(
    "data, message",
    [
        (b"", "these bytes are not what serialize() of a compiled function wrote."),
        (json.dumps([1]).encode(), "these bytes are not what serialize() of a compiled function wrote."),
        (DOUBLE[:-1], "the bytes are damaged, or cut short: their checksum differs."),
        (DOUBLE[:30], "these bytes are not what serialize() of a compiled function wrote."),
        (DOUBLE[:50], "the bytes are damaged, or cut short: their checksum differs."),
        (
            DOUBLE[:-9] + bytes([DOUBLE[-9] ^ 1]) + DOUBLE[-8:],
            "the bytes are damaged, or cut short: their checksum differs.",
        ),
        (
            DOUBLE.replace(b"format 1", b"format 27"),
            "these bytes are of format 27, of another version of tapeless; this one reads 1.",
        ),
    ],
)
def test_foreign_and_damaged_bytes(data, message):
    with raises(ValueError, f"stages.load: {message}"):
        stages.load(data)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"environment__jaxlib": "jaxlib 0.1"}, "jaxlib: jaxlib 0.1 there, jaxlib "),
        ({"environment__device": "TPU v9"}, "device: TPU v9 there, cpu here."),
        ({"environment__machine": "z80 CP/M"}, "machine: z80 CP/M there, "),
        ({"environment__features": ["flying"]}, "processor: this one lacks flying."),
    ],
)
def test_functions_compiled_elsewhere(changes, message):
    with pytest.raises(ValueError, match=r"^stages.load: the function was compiled elsewhere\.\n") as raised:
        stages.load(rewritten(**changes))
    assert message in str(raised.value) and str(raised.value).endswith("\n  Compile it here.")


def test_arguments_of_load():
    with raises(TypeError, "stages.load: expected the bytes that serialize() returned, not str."):
        stages.load("text")
    with pytest.raises(TypeError, match=r"stages.load: the device must be one of tl.devices\(\)"):
        stages.load(DOUBLE, "cpu")


def test_classes_that_are_not_here():
    with raises(
        TypeError,
        "stages.load: the function takes or gives a Missing of module elsewhere, and no such node of pytrees is here.\n"
        "  Import the module, and register the class, before the function is loaded.",
    ):
        stages.load(rewritten(signature__out_tree=["elsewhere:Missing", None, ["*"]]))
    for name in ("os:system", "subprocess:Popen", "builtins:eval", "tests.api.compile.test_serialization:saved"):
        with pytest.raises(TypeError, match="no such node of pytrees is here"):
            stages.load(rewritten(signature__out_tree=[name, None, ["*"]]))


ADVICE = (
    "\n  Python's containers can, and named tuples and registered classes whose auxiliary data are None, numbers, "
    "strings, bytes, dtypes, or tuples, lists and dicts of these."
)


@pytest.mark.parametrize(
    "tree, what",
    [
        (Model(X, {1}), "a Model with {1} of type set as auxiliary data"),
        (Model(X, len), "a Model with <built-in function len> of type builtin_function_or_method as auxiliary data"),
        (tl.tree_util.Partial(len, X), "a Partial, a function with a program or a function of its own"),
        (tl.linearize(tnp.sin, X)[1], "a LinearMap, a function with a program or a function of its own"),
        (defaultdict(sorted, a=X), "a defaultdict of <built-in function sorted>"),
    ],
    ids=["set", "function", "Partial", "LinearMap", "defaultdict"],
)
def test_structures_that_cannot_be_saved(tree, what):
    with raises(TypeError, f"serialize: the structure of the arguments holds {what}, which cannot be saved.{ADVICE}"):
        saved(lambda p: 0.0, tree)


def test_functions_that_call_the_host():
    with raises(TypeError, "serialize: the function calls Python on the host, which cannot be saved."):
        saved(lambda x: tl.pure_callback(np.sin, x, x), X)


def test_loaded_functions_cannot_be_transformed():
    function = loaded(scaled, X)
    with pytest.raises(TypeError, match=r"scaled at .* is compiled, and a compiled program cannot be transformed"):
        tl.grad(lambda x: function(x).sum())(X)


def scaled(x):
    return 2 * x


def test_messages_name_the_function_and_its_line():
    function = loaded(narrow, 3)
    with pytest.raises(OverflowError) as raised:
        function(300)
    assert f"of {place(narrow)} is 300" in str(raised.value)


def narrow(n):
    return tnp.zeros(2, np.int8) + n
