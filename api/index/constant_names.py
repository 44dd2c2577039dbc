"""Names of the arrays that a function closes over."""

import inspect
from collections.abc import Iterator, Sequence
from types import CodeType
from typing import Any

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer.array import Array
from tapeless.tracer.core import Tracer
from tapeless.tracer.types import aval_of


def constant_names(fun: Any, constants: Sequence[Any], taken: Sequence[str]) -> Iterator[str]:
    """Name constants as the variables that hold them, of the function's closure or module; else A, B, ..."""
    known = dict(_variables(fun))
    letters = (f"{letter}{n or ''}" for n in range(len(constants) + 1) for letter in "ABCDEFGHKLMNPQRSTUVWXYZ")
    used = set(taken)
    for x in constants:
        own = next((name for name, value in known.items() if name not in used and _is_same(x, value)), None)
        name = own or next(letter for letter in letters if letter not in used and letter not in known)
        used.add(name)
        yield name


def _variables(fun: Any) -> Iterator[tuple[str, Any]]:
    code = getattr(inspect.unwrap(fun), "__code__", None)
    if code is None:
        return
    function = inspect.unwrap(fun)
    for name, cell in zip(code.co_freevars, function.__closure__ or ()):
        try:
            yield name, cell.cell_contents
        except ValueError:  # a variable without a value yet
            continue
    for name in _globals_read(code):
        if name in function.__globals__:
            yield name, function.__globals__[name]


def _globals_read(code: CodeType) -> Iterator[str]:
    """List names that a function, or one inside of it, may read from its module."""
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _globals_read(inner)


def _is_same(x: Any, value: Any) -> bool:
    if x is value:
        return True
    if isinstance(value, Tracer) or isinstance(x, Tracer) or not isinstance(value, (np.ndarray, Array)):
        return False
    aval = aval_of(value)
    if aval.shape != x.shape or dtypes.kind(aval.dtype) != dtypes.kind(x.dtype):
        return False
    return bool(np.array_equal(np.asarray(x), np.asarray(value).astype(x.dtype)))
