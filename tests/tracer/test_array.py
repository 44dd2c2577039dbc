"""The methods of arrays are those of one class: type checkers see `Array` inherit it, and programs find them there."""

import ast
import inspect
import pickle
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.tracer import array
from tapeless.tracer.array import Array
from tapeless.tracer.core import Tracer
from tapeless.tracer.numpy.array_methods import ArrayMethods

METHODS = [n for n, f in vars(ArrayMethods).items() if callable(f) or isinstance(f, property)]
OPERATORS = [
    "__eq__ __ne__ __lt__ __le__ __gt__ __ge__ __neg__ __invert__ __pos__ __abs__ __getitem__",
    *(
        f"__{n}__ __r{n}__"
        for n in "add sub mul truediv floordiv mod divmod pow matmul and or xor lshift rshift".split()
    ),
]


def test_type_checkers_see_the_class_whose_methods_are_copied():
    """`Array` has the base of this name for them, and no other declaration of a method that is copied."""
    tree = ast.parse(inspect.getsource(array))
    [declared] = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Array"]
    assert [ast.unparse(base) for base in declared.bases] == [ArrayMethods.__name__]
    assert [
        node.name for node in ast.walk(declared) if isinstance(node, ast.FunctionDef) and node.name in METHODS
    ] == []
    assert array.ArrayMethods is object and Array.__mro__ == (Array, object)


def test_every_method_is_on_arrays():
    assert set(METHODS) >= {*" ".join(OPERATORS).split(), "sum", "reshape", "T", "at", "view", "item"}
    assert [n for n in METHODS if vars(Array)[n] is not vars(ArrayMethods)[n]] == []
    assert Array.sum is tnp.sum and Array.__abs__ is tnp.abs
    assert [n for n in METHODS if not inspect.getdoc(getattr(Array, n))] == []
    assert {n for n in vars(Array) if n.startswith("__") and n not in vars(object)} & {"__annotate_func__"} == set()
    assert Array.__annotations__ == {"aval": array.ShapedArray} and Array.__hash__ is object.__hash__


def parameters(f: Any) -> list[tuple[str, Any]]:
    """Kinds and defaults, without the array itself."""
    return [(p.kind, p.default) for p in list(inspect.signature(f).parameters.values())[1:]]


def test_declarations_of_operators_have_the_parameters_of_what_runs():
    """A decorator replaces a declaration without a body; type checkers read the declaration."""
    [declared] = [node for node in ast.parse(inspect.getsource(ArrayMethods)).body if isinstance(node, ast.ClassDef)]
    stubs = [node for node in declared.body if isinstance(node, ast.FunctionDef) and "_same_as" in ast.dump(node)]
    assert {node.name for node in stubs} == {"__pos__", "__abs__", "__getitem__", "view"}
    for name in " ".join(OPERATORS).split():
        f = getattr(Array, name)
        unary = name in ("__neg__", "__invert__", "__pos__", "__abs__")
        inspect.signature(f).bind(*([0] if unary else [0, 1]))
        if f.__module__ == ArrayMethods.__module__:
            assert (f.__name__, f.__qualname__) == (name, f"Array.{name}")
    assert len(parameters(Array.view)) == 2


@pytest.mark.parametrize("name", ["reshape", "transpose", "compress", "item", "tolist", "tobytes", "__round__"])
def test_written_methods_have_their_own_names(name: str):
    f = getattr(Array, name)
    assert (f.__name__, f.__qualname__, f.__module__) == (name, f"Array.{name}", ArrayMethods.__module__)


def test_methods_are_kept_by_pickle_and_found_by_dir():
    x = tnp.arange(3.0)
    for bound in (x.sum, x.reshape, x.__add__):
        assert pickle.loads(pickle.dumps(bound)).__name__ == bound.__name__
    assert pickle.loads(pickle.dumps(x.reshape))(3, 1).shape == (3, 1)
    assert set(METHODS) <= set(dir(x)) and set(METHODS) <= set(dir(Tracer))


def test_operators_and_methods_of_arrays_and_tracers():
    def both(x: Any) -> Any:
        return [2 - x, x**2, abs(-x), round(x), x[1:], x.T, x.real, x.at[0].add(1), x.reshape(-1, 1), x.sum(), x == 1]

    x = np.float32([0.5, 1.0, -2.5])
    wanted = [2 - x, x**2, abs(x), np.round(x).astype(int), x[1:], x, x, x + np.eye(3)[0], x[:, None], x.sum(), x == 1]
    for found in (both(tnp.asarray(x)), tl.jit(both)(x)):
        for ours, theirs in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(ours, theirs)
