"""Detect traced arrays that outlive their function: `config.check_tracer_leaks`.

After a function is traced, the garbage collector's referrers of its tracers are followed, through containers and
closures, up to an object of the user: a module, a function, an instance, a variable of a function that is running.
"""

import functools
import gc
import types
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from tapeless.tracer import core
from tapeless.tracer.core import Trace, Tracer
from tapeless.tracer.errors import UnexpectedTracerError
from tapeless.tracer.settings.config import config
from tapeless.tracer.settings.scopes import call_in_scope

T = TypeVar("T")


def check_leaks(work: Callable[[], T]) -> T:
    """Run work that traces a user's function, and return its result.

    Raises: UnexpectedTracerError if the setting is on, and an object of the user holds a tracer of a trace that is
      over by then.
    """
    if not config.check_tracer_leaks:
        return work()
    ended: list[weakref.ref[Trace]] = []
    done = call_in_scope(core.ended_traces, ended, work)
    gc.collect()
    for trace in [ref() for ref in ended]:
        for tracer in gc.get_referrers(trace) if trace is not None else ():
            holder = _holder_of(tracer) if isinstance(tracer, Tracer) and tracer.owner is trace else ""
            if holder:
                raise UnexpectedTracerError(
                    f"a traced array outlives its function: {tracer.aval} of {tracer.owner.describe()}.\n"
                    f"  It is held by {holder}. Return it from the function instead of storing it."
                )
    return done


def _holder_of(tracer: Tracer) -> str:
    """Describe an object of the user that holds a tracer; "" if only objects of ours do."""
    seen, todo = {id(tracer)}, deque[Any]([tracer])
    while todo and len(seen) < _LIMIT:
        for holder in gc.get_referrers(todo.popleft()):
            if id(holder) in seen or holder is todo:
                continue
            seen.add(id(holder))
            if isinstance(holder, _CONTAINERS):
                todo.append(holder)
            elif not _module_of(holder).startswith(_OURS):
                return _described(holder)
    return ""


_LIMIT = 10_000
_OURS = ("tapeless", "builtins")  # builtins: iterators, for instance
_CONTAINERS = (dict, list, tuple, set, frozenset, deque, types.CellType, types.MethodType, functools.partial)


def _module_of(holder: Any) -> str:
    if isinstance(holder, types.FrameType):
        return holder.f_globals.get("__name__", "")
    if isinstance(holder, (types.ModuleType, types.FunctionType, type)):
        return getattr(holder, "__module__", None) or getattr(holder, "__name__", "")
    return type(holder).__module__


def _described(holder: Any) -> str:
    if isinstance(holder, types.FrameType):
        return f"a variable of {holder.f_code.co_name}"
    if isinstance(holder, types.ModuleType):
        return f"the module {holder.__name__}"
    if isinstance(holder, types.FunctionType):
        return f"the function {core.describe_function(holder)}"
    return f"an object of type {type(holder).__name__}"
