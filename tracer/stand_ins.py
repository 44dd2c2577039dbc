"""Values that stand for traced arrays of outside, while a function of a user that closes over those runs elsewhere.

A vmap rule is called when a program is batched, where the traces that its closure belongs to may be over, or around the
program. The call of its function takes these arrays as operands, which stand for them in the rule.
"""

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, TypeVar

from tapeless.tracer.scopes import scoped

R = TypeVar("R")
_values: ContextVar[Mapping[int, Any]] = ContextVar("stand-ins", default=MappingProxyType({}))


def stand_in(x: Any) -> Any:
    """Return the value that stands for a traced array of outside here; the array itself if none does."""
    return _values.get().get(id(x), x)


def standing_for(tracers: Sequence[Any], values: Sequence[Any], f: Callable[..., R], /, *args: Any) -> R:
    """Call `f(*args)`, where `values` stand for traced arrays of outside."""
    return scoped(_values, {**_values.get(), **dict(zip(map(id, tracers), values, strict=True))}, f, *args)
