"""Memory budget: the policy that bounds the bytes that are live at once in a function and its backward pass.

Calls are inlined. The primal half is cut in segments (`segments`), each of which is computed again when the backward
pass arrives there. If that does not suffice, loops run in chunks (`chunks`), too, and then loops of an unknown number
of steps save fewer states (`state_limit`). Segments are chosen by a count of the bytes that cross their ends; what they
need is then predicted of the programs that they give (`live_bytes`).
Left out: parts of branches, and of checkpoints inside of the program, are not chosen among.
"""

import operator
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Any, Final

import numpy as np

from tapeless.interpreters import transpose
from tapeless.interpreters.analysis.live_bytes import temporary_bytes
from tapeless.interpreters.inline import fully_inlined
from tapeless.interpreters.partial_eval import UnzippedJaxpr
from tapeless.interpreters.residuals import chunks
from tapeless.interpreters.residuals.chunks import ChunkedLoop
from tapeless.interpreters.residuals.rematerialization import ProgramPolicy, save_all
from tapeless.interpreters.residuals.segments import Flow, SegmentPlan, plan_segments
from tapeless.interpreters.residuals.state_limit import limit_states, most_states
from tapeless.tracer.jaxpr import Equation, Jaxpr
from tapeless.tracer.primitives.control_flow import as_scan

Unzip = Callable[..., UnzippedJaxpr]  # of a program, and a policy other than that which asks


@dataclass(frozen=True, eq=False)
class Budget(ProgramPolicy):
    """The policy that bounds the bytes of a program that are live at once, beyond arguments and results.

    limit: bytes, of which 0 asks for the fewest; or a fraction of the bytes that are live without recomputation.
    who: asks for it, in messages. lenient: a limit that cannot be kept asks for the fewest bytes, and is no error.
    """

    limit: int | float
    who: str = "budget"
    lenient: bool = False

    @staticmethod
    def of(limit: int | float | str, who: str) -> "Budget":
        """Return the policy for a limit as users give it: bytes, a text such as "2GB", or a part from 0.0 to 1.0.

        Raises: TypeError and ValueError, which begin with `who`, if the limit is none of these.
        """
        return Budget(_parsed_bytes(limit, who) if isinstance(limit, str) else _bytes_or_part(limit, who), who)

    def unzip(self, program: Jaxpr, unzip: Unzip) -> UnzippedJaxpr:
        """Split a program in halves, of which the linear one computes again what does not fit.

        Raises: ValueError naming the fewest bytes and the largest of the values if the limit cannot be kept.
        """
        plans = BudgetPlans(program, unzip)
        limit = plans.bytes_of(self.limit)
        plan = plans.plan(limit)
        if plan.peak > limit > 0 and not self.lenient:
            raise ValueError(self._cannot_be_met(limit, plan, plans.loops if plan.flow is not plans.flow else ()))
        return plan.halves()

    def of_halves(self) -> "Budget":
        """Return the policy for derivatives of the halves, the fewest bytes: the limit is that of one backward pass."""
        return Budget(0)

    def _cannot_be_met(self, limit: int, plan: "BudgetPlan", chunked: Sequence[ChunkedLoop]) -> str:
        asked, least, largest = repr(self), "budget(0)", plan.flow.describe_largest()
        if self.who != least.partition("(")[0]:
            asked, least = f"{self.who}={self.limit!r}", "a budget of 0"
        return (
            f"{asked}: {limit} bytes are too few for this function and its backward pass, which need at least "
            f"{plan.peak}. {f'The largest value that they share is {largest}. ' if largest else ''}Allow more"
            f"{', or compute this value in parts' if largest else ''}; {least} uses as few bytes as it can."
            f"{_hint_of_loops(chunked)}"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Budget) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[str, bool]:
        return repr(self), self.lenient  # 1 byte is not the whole, 1.0

    def __repr__(self) -> str:
        return f"budget({self.limit!r})"


class BudgetPlan:
    """A choice of what is computed again: the cuts of a flow, or none, if other halves are given.

    peak: the bytes that are live at once, beyond arguments and results, as predicted of its programs.
    """

    def __init__(self, flow: Flow, cuts: tuple[int, ...], halves: UnzippedJaxpr | None = None) -> None:
        self.flow: Final = flow
        self.cuts: Final = cuts
        self._given = halves

    @cached_property
    def peak(self) -> int:
        """Predict the bytes of temporaries of both halves; if the linear one has no transpose, of it as it is."""
        primal, linear, _, _ = self.halves()
        with suppress(NotImplementedError):
            linear = transpose.transpose_jaxpr(linear, (True,) * len(linear.outvars))[0]
        return temporary_bytes(primal, linear)

    def halves(self) -> UnzippedJaxpr:
        """Write the halves."""
        return self._halves

    @cached_property
    def _halves(self) -> UnzippedJaxpr:
        return self._given or SegmentPlan(self.flow, self.cuts, 0).halves()


class BudgetPlans:
    """The plans of one program: in segments, and where these do not suffice with its loops in chunks.

    flow: the program with everything saved. loops: those that run in chunks, if need be.
    """

    def __init__(self, program: Jaxpr, unzip: Unzip) -> None:
        self._program, self._unzip = fully_inlined(program), unzip
        self.flow: Final = Flow(unzip(self._program))
        self.everything: Final = BudgetPlan(self.flow, (), unzip(program, save_all))
        self._known: dict[tuple[Flow, tuple[int, ...]], BudgetPlan] = {}
        self._states: dict[Flow, int] = {}

    def bytes_of(self, limit: int | float) -> int:
        """Return the bytes of a limit, which may be a part of those that are live if everything is saved."""
        return int(limit * self.everything.peak) if isinstance(limit, float) else limit

    def plan(self, limit: int) -> BudgetPlan:
        """Plan what is computed again, so that at most `limit` bytes are live at once; else the fewest."""
        if self.everything.peak <= limit:
            return self.everything
        for flow in self._flows:
            found = self._first_within(flow, limit)
            if found:
                return found
        fewer = self._with_fewer_states(limit) if limit else None
        return min([self.least, fewer or self.least], key=attrgetter("peak"))

    @cached_property
    def least(self) -> BudgetPlan:
        """The plan that needs the fewest bytes; of several, the one that computes the least again.

        Loops of an unknown number of steps save their states: with one state, n steps are computed again n / 2 times.
        """
        every = [self._at(flow, limit) for flow in self._flows for limit in _limits(flow)]
        return min([self.everything, *every], key=attrgetter("peak"))

    @cached_property
    def _flows(self) -> list[Flow]:
        """The program, and with its loops in chunks, if it has any that save residuals."""
        chunked = [] if self._chunked is self._program else [Flow(self._unzip(self._chunked))]
        return [self.flow, *chunked]

    def _first_within(self, flow: Flow, limit: int) -> BudgetPlan | None:
        """Find a plan that computes little again and keeps a limit, by bisection; None if all need more."""
        every = [*_limits(flow)]
        low, high = 0, len(every)
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self._at(flow, every[middle]).peak <= limit else (middle + 1, high)
        if low == len(every):
            return next((plan for plan in [self._at(flow, n) for n in every] if plan.peak <= limit), None)
        best, fits, above = self._at(flow, every[low]), every[low], every[low - 1] if low else flow.peak
        for _ in range(_HALVINGS):
            middle = (fits + above) // 2
            plan = self._at(flow, middle)
            best, fits, above = (plan, middle, above) if plan.peak <= limit else (best, fits, middle)
        return best

    def _at(self, flow: Flow, count: int) -> BudgetPlan:
        """Return the plan of segments that keeps a limit by the flow's own count."""
        cuts = plan_segments(flow, count).cuts
        return self._known.setdefault((flow, cuts), BudgetPlan(flow, cuts))

    def _with_fewer_states(self, limit: int) -> BudgetPlan | None:
        """Plan with the most states of while loops that fit, one at least; None if there are no such loops."""
        fits, too_many = 1, most_states(self._chunked)
        if too_many <= fits:
            return None
        best = self._with_states(fits, limit)
        if best.peak > limit:
            return best
        while too_many - fits > 1:
            states = (fits + too_many) // 2
            found = self._with_states(states, limit)
            if found.peak <= limit:
                fits, best = states, found
            else:
                too_many = states
        return best

    def _with_states(self, states: int, limit: int) -> BudgetPlan:
        flow = Flow(self._unzip(limit_states(self._chunked, states)))
        self._states[flow] = states
        return self._first_within(flow, limit) or self._at(flow, flow.least)

    def states(self, plan: BudgetPlan) -> int | None:
        """Return how many states loops of an unknown length save in a plan; None if as many as they ask for."""
        return self._states.get(plan.flow)

    @property
    def loops(self) -> tuple[ChunkedLoop, ...]:
        """The loops that save residuals, and in how many steps at a time they run if segments do not suffice."""
        return tuple(chunks.loops_in_chunks(self._program, self._saved_by).values())

    @cached_property
    def _chunked(self) -> Jaxpr:
        return chunks.scans_in_chunks(self._program, self._saved_by)

    def _saved_by(self, eqn: Equation) -> int:
        """Count the bytes that the steps of a loop save, by its source and number of steps."""
        return self._bytes_of_loops.get((eqn.source, as_scan(eqn).params.get("length")), 0)

    @cached_property
    def _bytes_of_loops(self) -> dict[Any, int]:
        return self.flow.bytes_of_loops()


def _hint_of_loops(chunked: Sequence[ChunkedLoop]) -> str:
    """Say how the longest of the loops that run in chunks needs fewer bytes; "" if there is none."""
    if not chunked:
        return ""
    eqn = max([loop.eqn for loop in chunked], key=lambda eqn: eqn.params["length"])
    place = f" at {eqn.source}" if eqn.source else ""
    return (
        f"\n  The loop of {eqn.params['length']} steps{place} runs in chunks. With checkpoint='log', or a number of "
        "states, it needs less."
    )


def _limits(flow: Flow) -> Iterator[int]:
    """Yield limits by a flow's own count, from everything saved to the least that its segments keep."""
    limit, least = flow.peak, flow.least
    while limit > least:
        yield limit
        limit = int(_STEP * limit)
    yield least


_STEP: Final = 0.85  # of a limit is the next
_HALVINGS: Final = 3  # of the way between a limit whose plan fits and the next larger one


class SurveyPolicy(ProgramPolicy):
    """The policy that saves everything, and remembers what budgets would plan for each program, in `plans`."""

    def __init__(self) -> None:
        self.plans: Final[list[BudgetPlans]] = []

    def unzip(self, program: Jaxpr, unzip: Unzip) -> UnzippedJaxpr:
        """Split a program in halves, as a budget does of which nothing is computed again."""
        self.plans.append(BudgetPlans(program, unzip))
        return self.plans[-1].everything.halves()


def _bytes_or_part(limit: int | float, who: str) -> int | float:
    if isinstance(limit, float | np.floating):
        if not 0 <= limit <= 1:
            raise ValueError(
                f"{who}: expected a part from 0.0 to 1.0, not {float(limit)!r}. Give a number of bytes as an integer."
            )
        return float(limit) or 0
    if isinstance(limit, bool) or not hasattr(limit, "__index__"):
        raise TypeError(
            f"{who}: expected a number of bytes, a text such as '2GB', or a part from 0.0 to 1.0, not "
            f"{limit!r} of type {type(limit).__name__}."
        )
    if operator.index(limit) < 0:
        raise ValueError(f"{who}: expected a number of bytes, not {limit!r}, which is negative.")
    return operator.index(limit)


_BYTES: Final = re.compile(r"\s*(\d+(?:\.\d*)?)\s*([kKMGT]?)(i?)B\s*")


def _parsed_bytes(text: str, who: str) -> int:
    found = _BYTES.fullmatch(text)
    if found is None:
        raise ValueError(f"{who}: expected a number of bytes such as '2GB' or '512 MiB', not {text!r}.")
    number, prefix, binary = found.groups()
    return int(float(number) * (1024 if binary else 1000) ** " KMGT".index(prefix.upper() or " "))
