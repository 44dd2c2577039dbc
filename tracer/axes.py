"""The axis environment: names and sizes of the mapped axes of the enclosing `vmap`s.

A collective looks up its axes when it is applied; from then on its params have their sizes.
"""

from collections.abc import Callable, Hashable
from contextvars import ContextVar
from typing import Final

from tapeless.tracer import source
from tapeless.tracer.settings.scopes import Arguments, Result, call_in_scope

_bound: ContextVar[tuple[tuple[Hashable, int], ...]] = ContextVar("axes", default=())

bound: Final = _bound.get  # names and sizes, the innermost last: a plain call, for the keys of caches


def binding(
    name: Hashable | None,
    size: int,
    f: Callable[Arguments, Result],
    /,
    *args: Arguments.args,
    **params: Arguments.kwargs,
) -> Result:
    """Call `f(*args, **params)` with an axis bound, none if `name` is None; it hides an outer axis of the same name."""
    if name is None:
        return f(*args, **params)
    return call_in_scope(_bound, (*_bound.get(), (name, size)), f, *args, **params)


def size_of(name: Hashable, who: str) -> int:
    """Return the size of the axis called `name`. Raises: NameError, in the name of `who`, if no such axis is bound."""
    found = dict(_bound.get())
    if name not in found:
        known = ", ".join(f"{other!r} of size {n}" for other, n in found.items())
        here = source.describe_here()
        used = f"\n  It was used at {here}." if here else ""
        there = f"Bound are {known}" if known else "None is bound"
        raise NameError(
            f"{who}: found an unbound axis name: {name!r}. {there}.{used}\n"
            f"  Bind it around the call: tl.vmap(f, axis_name={name!r})."
        )
    return found[name]
