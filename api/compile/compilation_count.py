"""Count traces and compilations, for tests that a function is compiled once."""

from collections.abc import Generator
from contextlib import contextmanager

from tapeless.tracer.settings import logs


class CompilationCount:
    """Names of what was traced for `jit`, and of what was compiled, in order.

    traced: `loss at model.py:3`, each time that Python runs a function to trace it. compiled: names of programs, found
    in the cache on disk or not. Prints as both lists.
    """

    def __init__(self) -> None:
        self.traced: list[str] = []
        self.compiled: list[str] = []

    @property
    def traces(self) -> int:
        """Number of times that a function was traced for `jit`."""
        return len(self.traced)

    @property
    def compilations(self) -> int:
        """Number of programs that were compiled."""
        return len(self.compiled)

    def note(self, event: str, name: str, purpose: str) -> None:
        """Take up an event of the log."""
        if (event, purpose) == ("traced", "jit"):
            self.traced.append(name)
        elif event == "compiled":
            self.compiled.append(name)

    def __repr__(self) -> str:
        return f"<{_listed('traced', self.traced)}; {_listed('compiled', self.compiled)}>"


def _listed(what: str, names: list[str]) -> str:
    return f"{len(names)} {what}{': ' if names else ''}{', '.join(names)}"


@contextmanager
def count_compilations() -> Generator[CompilationCount]:
    """Count traces and compilations in a with block, in all threads.

    A single operation outside of `jit` is compiled, too, once for the types of its operands.

    >>> import tapeless as tl, tapeless.numpy as tnp
    >>> f, x, y = tl.jit(lambda x: x * 2), tnp.ones(3), tnp.ones(4)
    >>> with count_compilations() as count:
    ...     for each in (x, x, y):
    ...         _ = f(each)
    >>> count.traces, count.compilations
    (2, 2)
    """
    count = CompilationCount()
    logs.listeners.append(count.note)
    try:
        yield count
    finally:
        logs.listeners.remove(count.note)
