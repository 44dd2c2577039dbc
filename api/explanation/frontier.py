"""The frontier of a gradient: bytes that are live at once against operations, from everything saved to the least."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from tapeless.arguments.argument_checks import FUNCTION_AND_ARGUMENTS, check_callable
from tapeless.differentiate.gradients import TracedGradient, analyze_memory, operations
from tapeless.explanation import frontier_page as html
from tapeless.interpreters.residuals.budget import BudgetPlan
from tapeless.tracer.source import Source, short_path

STEP: Final = 0.85  # of the bytes of a row are the limit for the next


class LoopInChunks(NamedTuple):
    """A loop that runs in chunks: its source, the number of its steps, and how many of them are one chunk."""

    source: Source | None
    length: int
    steps: int

    def __str__(self) -> str:
        place = f" at {self.source}" if self.source else ""
        return f"the loop of {self.length:,} steps{place} in chunks of {self.steps:,}"


class FrontierRow(NamedTuple):
    """One choice of what is computed again: as a budget, its `peak` gives this choice.

    peak: bytes that are live at once, beyond arguments and results, as predicted. part: of those of the first row.
    operations: of value and gradient, over those of the first row.
    cuts: the sources of the last operations of the segments that are computed again. loops: those that run in chunks.
    states: how many each loop of an unknown length saves at most; None if as many as it asks for. `operations` counts
      one step of such a loop, so it does not tell what fewer states cost.
    temporaries: bytes that the compiled program needs besides arguments and results; None if it was not compiled.
    """

    peak: int
    part: float
    operations: float
    cuts: tuple[Source | None, ...]
    loops: tuple[LoopInChunks, ...]
    temporaries: int | None
    states: int | None = None

    @property
    def choice(self) -> str:
        """Say what is computed again."""
        n, places = len(self.cuts), _places([source for source in self.cuts if source])
        again = [f"{n} segment{'s' * (n != 1)}{f', cut behind {places}' if places else ''}"] if n else []
        states = self.states
        fewer = [] if states is None else [f"steps of while loops, from {states} state{'s' * (states != 1)}"]
        return "; ".join([*again, *map(str, self.loops), *fewer]) or "nothing"


def _places(sources: Sequence[Source]) -> str:
    """Write places once each: `model.py:12, 14, layers.py:3`."""
    lines = dict.fromkeys([(short_path(source.file), source.line) for source in sources])
    files = [None, *[file for file, _ in lines]]
    return ", ".join([f"{line}" if file == before else f"{file}:{line}" for (file, line), before in zip(lines, files)])


class Frontier:
    """The least operations for each number of bytes; prints as a table, and shows itself as a picture in a notebook.

    rows: a `FrontierRow` for each choice; the first saves everything, the last needs the fewest bytes. None of them
    needs more bytes, and more operations, than another. least: bytes of the last; smaller budgets are refused.
    largest: the largest value that the last one holds, with the operation that made it; "" if there is none.
    """

    def __init__(self, name: str, rows: Sequence[FrontierRow], largest: str) -> None:
        self.name: Final = name
        self.rows: Final = tuple(rows)
        self.largest: Final = largest

    subject = "bytes live at once, and operations of value and gradient"

    @property
    def least(self) -> int:
        """The fewest bytes of a budget that can be kept."""
        return self.rows[-1].peak

    def __str__(self) -> str:
        return "\n".join([f"{self.name}: {self.subject}", *self._table()])

    __repr__ = __str__

    def _table(self) -> Iterator[str]:
        heads, shown = self.heads, [self.cells(row) for row in self.rows]
        widths = [max(map(len, column)) for column in zip(heads, *shown)]
        for *numbers, words in (heads, *shown):
            yield "  ".join([*[cell.rjust(width) for cell, width in zip(numbers, widths)], words])
        yield self.note

    @property
    def heads(self) -> tuple[str, ...]:
        """The titles of the columns."""
        measured = () if self.rows[0].temporaries is None else ("temporaries",)
        return ("budget", "part", "operations", *measured, "computed again")

    def cells(self, row: FrontierRow) -> tuple[str, ...]:
        """Write a row, under `heads`."""
        measured = () if row.temporaries is None else (f"{row.temporaries:,}",)
        return (f"{row.peak:,}", f"{row.part:.2f}", f"{row.operations:.2f}", *measured, row.choice)

    @property
    def note(self) -> str:
        """Say what holds up the last row."""
        if not self.least:
            return "Nothing is kept for the backward pass, beyond arguments and results."
        largest = f" The largest value is {self.largest}." if self.largest else ""
        loops = " Loops in chunks need less with checkpoint='log', or a number of states." * bool(self.rows[-1].loops)
        return f"A budget of fewer than {self.least:,} bytes is refused.{largest}{loops}"

    def _repr_html_(self) -> str:
        return html.fragment(self)

    def save(self, path: str | Path) -> None:
        """Write a page with the picture and the table, which needs nothing else.

        Raises: OSError if the file cannot be written.
        """
        Path(path).write_text(html.page(self), encoding="utf-8")


def frontier(fun: Callable[..., Any], /, *args: Any, compile: bool = False, **kwargs: Any) -> Frontier:
    """Tabulate bytes against operations of value and gradient, from everything saved to the least a budget allows.

    Nothing is run; nothing is compiled unless you ask for it. A row is what `tl.checkpoint_policies.budget`, or the
    argument `memory_budget` of `tl.grad`, does for its number of bytes.

    Args:
      fun: a function to an array or a pytree of arrays.
      args, kwargs: arguments of `fun`, of any kind, as those of `tl.memory`. It is differentiated in all inexact
        arrays; a gradient in fewer of them has fewer results, whose buffers hold other values before.
      compile: whether each row is compiled, for the bytes of temporaries that XLA allots to it.
    Returns: a `Frontier`, with `.rows` and `.least`; prints, is a picture in a notebook, and is saved as a page by
      `.save("x.html")`. Bytes are predicted from the program, see `docs/memory.md` for how well.
    Raises: TypeError if `fun` cannot be called, a result is no array, or no argument is inexact; whatever tracing `fun`
      raises.
    Source: Beaumont et al. 2019 for the cuts; Griewank & Walther 2008, section 12.2, for loops.

    >>> import tapeless.numpy as tnp
    >>> def layers(x, w):
    ...     for _ in range(8):
    ...         x = tnp.tanh(x @ w)
    ...     return x
    >>> found = frontier(layers, tnp.ones((32, 8)), tnp.ones((8, 8)))
    >>> [(row.peak, round(row.operations, 2)) for row in found.rows]
    [(8448, 1.0), (6400, 1.08), (5376, 1.12)]
    """
    check_callable("frontier", fun, expected=FUNCTION_AND_ARGUMENTS)
    gradient = TracedGradient("frontier", fun, args, kwargs)
    plans = list(_plans(gradient))
    halves = [plan.halves() for plan in plans]
    work = [operations(each) for each in halves]
    temporaries = [analyze_memory(each).temp_size_in_bytes if compile else None for each in halves]
    rows = [
        FrontierRow(
            plan.peak,
            plan.peak / plans[0].peak if plan.peak else 1.0,
            n / work[0] if work[0] else 1.0,
            _cuts(plan),
            () if plan.flow is gradient.plans.flow else _loops(gradient),
            nbytes,
            gradient.plans.states(plan),
        )
        for plan, n, nbytes in zip(plans, work, temporaries, strict=True)
    ]
    return Frontier(gradient.name, list(_least_work(rows)), plans[-1].flow.describe_largest())


def _plans(gradient: TracedGradient) -> Iterator[BudgetPlan]:
    """Plan for smaller and smaller limits, until one cannot be kept: that gives the fewest bytes."""
    plans = gradient.plans
    plan = plans.everything
    yield plan
    while plan.peak:
        limit = min(int(STEP * plan.peak), plan.peak - 1)
        plan, before = plans.plan(limit), plan
        if plan.peak < plans.least.peak and not plans.states(plan):
            plan = (
                plans.least
            )  # of fewer bytes the search for a greater limit may know, which one for these does not find
        if plan.peak < before.peak:
            yield plan
        if plan.peak > limit:
            return


def _cuts(plan: BudgetPlan) -> tuple[Source | None, ...]:
    eqns = plan.flow.halves.primal.eqns
    return tuple([eqns[cut - 1].source for cut in plan.cuts])


def _loops(gradient: TracedGradient) -> tuple[LoopInChunks, ...]:
    return tuple(
        [LoopInChunks(loop.eqn.source, loop.eqn.params["length"], loop.steps) for loop in gradient.plans.loops]
    )


def _least_work(rows: Sequence[FrontierRow]) -> Iterator[FrontierRow]:
    """Leave out rows that need more bytes than another without sparing operations; the first stays."""
    for i, row in enumerate(rows):
        if not i or all(row.operations < other.operations for other in rows[i + 1 :]):
            yield row
