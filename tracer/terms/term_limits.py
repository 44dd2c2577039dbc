"""Limits: the numbers at which searches end, each with what it counts and what is lost beyond it.

`Limit.is_passed` is the test; `collect_stops` lists the limits that stopped something. Those of terms are here, all
others in `interpreters/limits.py`.
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, NamedTuple

from tapeless.tracer.source import Source


class Limit(int):
    """A number at which a search ends: what it counts, and what is not done beyond it."""

    name: str
    counts: str
    lost: str

    def __new__(cls, value: int, name: str, counts: str, lost: str) -> "Limit":
        made = super().__new__(cls, value)
        made.name, made.counts, made.lost = name, counts, lost
        return made

    def is_passed(self, n: int, source: Source | None = None, unit: int = 1) -> bool:
        """Tell whether a count of units is beyond the limit, and note it if somebody listens.

        Args:
          source: the line of what is not done.
        """
        if n <= self * unit:
            return False
        self.stop(source)
        return True

    def stop(self, source: Source | None = None) -> None:
        """Note that the limit stopped something."""
        listener = _listener.get()
        if listener is not None:
            listener.append(Stop(self, source))


class Stop(NamedTuple):
    """A limit that stopped something, and the source line of that, None if it is not known."""

    limit: Limit
    source: Source | None

    def __str__(self) -> str:
        where = "" if self.source is None else f", at {self.source.describe()}"
        return f"{self.limit.name} = {int(self.limit):,} {self.limit.counts}{where}: {self.limit.lost}"


_listener: ContextVar[list[Stop] | None] = ContextVar("listener of limits", default=None)


@contextmanager
def collect_stops() -> Generator[list[Stop], None, None]:
    """Collect the limits that stop something inside of a `with` block, each with its source line once."""
    found: list[Stop] = []
    token = _listener.set(found)
    try:
        yield found
    finally:
        _listener.reset(token)
        found[:] = dict.fromkeys(found)


COMBINED_BRACKETS: Final = Limit(
    3,
    "COMBINED_BRACKETS",
    "brackets that bound an index together",
    "an index that more of them bound is tested where it need not be",
)
ORDERS: Final = Limit(
    120,
    "ORDERS",
    "orders of variables that nothing tells apart",
    "two terms with more may be equal and not be known to be",
)
