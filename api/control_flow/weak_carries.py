"""Type probes: trace a loop body only to find the types of a carry that begins weakly typed.

A loop whose carry begins weak is traced to see what type it takes, and then for good. Were each loop inside traced
twice in both, d nested loops would be traced 2^d times. So while a loop is probed, those inside guess instead: they
are traced once, and take for granted that with the type they found the rest stays as it is. What is written then is
thrown away if anything was guessed; the loop is traced again for good, where those inside explore in turn: a trace or
two for each level. Only what is traced directly counts: functions that are remembered (jit, checkpoint) are never given
guesses.
"""

from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeVar

from tapeless.tracer import core
from tapeless.tracer.settings.scopes import scoped

T = TypeVar("T")


class TypeProbe:
    """A loop that is traced for types.

    guessed: whether a loop inside took something for granted.
    """

    def __init__(self) -> None:
        self.guessed = False
        self._traces: list[core.Trace] = [core.current_trace()]  # what is written into these is not for good

    @staticmethod
    def here() -> "TypeProbe | None":
        """Return the type probe that the current trace belongs to, or None."""
        found = _current.get()
        return found if found and core.current_trace() in found._traces[1:] else None

    @staticmethod
    def enter() -> None:
        """Start tracing a body; a body traced inside a type probe belongs to that probe."""
        found, trace = _current.get(), core.current_trace()
        if found and trace.parent in found._traces:
            found._traces.append(trace)


def probe(f: Callable[[], T]) -> tuple[T, bool]:
    """Call `f`, which traces a body, in a type probe; return its result, and whether it is good for types only."""
    found = TypeProbe()
    return scoped(_current, found, f), found.guessed


def commit(f: Callable[[], T]) -> tuple[T, bool]:
    """Call `f` outside any type probe: its result is final."""
    return f(), False


_current: ContextVar[TypeProbe | None] = ContextVar("type probe", default=None)
