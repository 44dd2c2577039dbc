"""Cache of `jit`: a later `jit` of the same function finds the programs traced and compiled before.

The key is the function itself and the options, as in JAX; types of arguments, devices and settings are keys within.
Only plain functions are shared: an object that is called has attributes, a bound method or a partial has arguments,
which may have changed between two calls of `jit`. The cache holds functions weakly, and nothing in it holds them
(but a program of a function with rules of its own does, if those close over the function that is jitted); it forgets
the function jitted longest ago when it is full.
"""

import threading
import weakref
from collections.abc import Callable, Hashable
from types import FunctionType
from typing import Any

from tapeless.lowering import devices


class Programs:
    """Programs of one function jitted with one set of options, by settings and types of its arguments.

    fast: how to run buffers; compiled: what is called; traces: before compilation; tree: the structure of the
    arguments of the last call.
    """

    __slots__ = ("__weakref__", "compiled", "fast", "traces", "tree")

    def __init__(self, tree: Any) -> None:
        self.fast: dict[Any, Callable[[list[Any]], Any]] = {}
        self.compiled: dict[Any, Any] = {}
        self.traces: dict[Any, Any] = {}
        self.tree: Any = tree
        _all.add(weakref.ref(self, _all.discard))

    def clear(self) -> None:
        """Forget all programs."""
        self.fast.clear()
        self.compiled.clear()
        self.traces.clear()


def remember(table: dict[Any, Any], key: Any, value: Any) -> Any:
    """Enter `value` into a table, which is emptied first if it is full; return it."""
    if len(table) >= _PROGRAMS_LIMIT:
        table.clear()
    table[key] = value
    return value


def programs_of(fun: Any, options: Hashable, make: Callable[[], Programs]) -> Programs:
    """Find the programs of an earlier `jit` of this function with these options, else `make()` them."""
    if type(fun) is not FunctionType:
        return make()
    key = (fun.__code__, options)  # reloading a module may give a function object other code
    with _lock:
        by_options = _functions.pop(fun, None)
        if by_options is None:
            by_options = {}
        if len(_functions) >= _FUNCTIONS_LIMIT:
            _functions.pop(next(iter(_functions.keys())), None)
        _functions[fun] = by_options  # the newest is last, the first to go is first
        return by_options.get(key) or remember(by_options, key, make())


def note_traced(fun: Any) -> bool:
    """Remember that a function is traced; tell whether another one of the same code was."""
    code = getattr(fun, "__code__", None)
    if code is None:
        return False
    last, _traced_codes[code] = _traced_codes.get(code), weakref.ref(fun)
    return last is not None and last() is not fun


def clear_programs() -> None:
    """Clear the cache of `jit`, of all functions."""
    with _lock:
        for programs in [ref() for ref in list(_all)]:
            if programs is not None:
                programs.clear()


def clear_fast_calls() -> None:
    """Forget how to run buffers: where there are several devices, the arguments say on which."""
    with _lock:
        for programs in [ref() for ref in list(_all)]:
            if programs is not None:
                programs.fast.clear()


devices.when_connected.append(clear_fast_calls)
_FUNCTIONS_LIMIT = 1024
_PROGRAMS_LIMIT = 1024
_functions: weakref.WeakKeyDictionary[Any, dict[Any, Programs]] = weakref.WeakKeyDictionary()
_traced_codes: weakref.WeakKeyDictionary[Any, weakref.ref[Any]] = weakref.WeakKeyDictionary()
_all: set[weakref.ref[Programs]] = set()
_lock = threading.RLock()  # reentrant: collecting garbage while it is held may run a finalizer that calls jit
