"""The named axes around the code that runs: those of the `vmap`s it is inside of, and how long they are.

A collective looks up its axes when it is applied; from then on the program says itself what it needs.
"""

import contextlib
from collections.abc import Hashable
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any

from tapeless.tracer import source

_bound: ContextVar[tuple[tuple[Hashable, int], ...]] = ContextVar("axes", default=())

bound = _bound.get  # names and sizes, the innermost last: a plain call, for the keys of caches


def binding(name: Hashable | None, size: int) -> AbstractContextManager[None]:
    """Bind an axis inside a with block; None binds nothing. An axis of the same name outside is hidden."""
    return contextlib.nullcontext() if name is None else _binding(name, size)


@contextmanager
def _binding(name: Hashable, size: int) -> Any:
    token = _bound.set((*_bound.get(), (name, size)))
    try:
        yield
    finally:
        _bound.reset(token)


def size_of(name: Hashable, who: str) -> int:
    """Size of the axis called `name`. Raises: NameError, in the name of `who`, if there is none around."""
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
