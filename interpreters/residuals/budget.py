"""Memory budget: the policy that bounds the bytes that are live at once in a function and its backward pass.

Calls are inlined. The primal half is cut in segments (`segments`), each of which is computed again when the backward
pass arrives there. If that does not suffice, loops run in chunks (`chunks`), too, and then loops of an unknown number
of steps save fewer states (`state_limit`).
Left out: parts of branches, and of checkpoints inside of the program, are not chosen among.
"""

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Any, Final

import numpy as np

from tapeless.interpreters.inline import fully_inlined
from tapeless.interpreters.partial_eval import UnzippedJaxpr
from tapeless.interpreters.residuals import chunks
from tapeless.interpreters.residuals.chunks import ChunkedLoop
from tapeless.interpreters.residuals.rematerialization import ProgramPolicy
from tapeless.interpreters.residuals.segments import Flow, SegmentPlan, plan_segments
from tapeless.interpreters.residuals.state_limit import limit_states, most_states
from tapeless.tracer.jaxpr import Equation, Jaxpr
from tapeless.tracer.primitives.control_flow import as_scan


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

    def unzip(self, program: Jaxpr, unzip: Callable[[Jaxpr], UnzippedJaxpr]) -> UnzippedJaxpr:
        """Split a program in halves, of which the linear one computes again what does not fit.

        Raises: ValueError naming the fewest bytes and the largest of the values if the limit cannot be kept.
        """
        plans = BudgetPlans(program, unzip)
        limit = plans.bytes_of(self.limit)
        plan = plans.plan(limit)
        if plan.peak > limit > 0 and not self.lenient:
            raise ValueError(self._cannot_be_met(limit, plan))
        return plan.halves()

    def of_halves(self) -> "Budget":
        """Return the policy for derivatives of the halves, the fewest bytes: the limit is that of one backward pass."""
        return Budget(0)

    def _cannot_be_met(self, limit: int, plan: SegmentPlan) -> str:
        asked, least = repr(self), "budget(0)"
        if self.who != least.partition("(")[0]:
            asked, least = f"{self.who}={self.limit!r}", "a budget of 0"
        return (
            f"{asked}: {limit} bytes are too few for this function and its backward pass, which need at least "
            f"{plan.peak}. The largest value that they share is {plan.flow.describe_largest()}. Allow more, "
            f"or compute this value in parts; {least} uses as few bytes as it can."
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Budget) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[str, bool]:
        return repr(self), self.lenient  # 1 byte is not the whole, 1.0

    def __repr__(self) -> str:
        return f"budget({self.limit!r})"


class BudgetPlans:
    """The plans of one program: in segments, and where these do not suffice with its loops in chunks.

    flow: the program with everything saved. loops: those that run in chunks, if need be.
    """

    def __init__(self, program: Jaxpr, unzip: Callable[[Jaxpr], UnzippedJaxpr]) -> None:
        self._program, self._unzip = fully_inlined(program), unzip
        self.flow: Final = Flow(unzip(self._program))

    def bytes_of(self, limit: int | float) -> int:
        """Return the bytes of a limit, which may be a part of those that are live if everything is saved."""
        return int(limit * self.flow.peak) if isinstance(limit, float) else limit

    def plan(self, limit: int) -> SegmentPlan:
        """Plan what is computed again, so that at most `limit` bytes are live at once; else the fewest."""
        plan = plan_segments(self.flow, limit)
        if plan.peak > limit and self._in_chunks is not None:
            plan = min(plan, plan_segments(self._in_chunks, limit), key=attrgetter("peak"))
        return self._with_fewer_states(plan, limit) if plan.peak > limit > 0 else plan

    def _with_fewer_states(self, plan: SegmentPlan, limit: int) -> SegmentPlan:
        """Plan with the most states of while loops that fit, one at least; `plan` if there are no such loops.

        Not for the fewest bytes: with one state, n steps are computed again n / 2 times each.
        """
        fits, too_many = 1, most_states(self._chunked)
        if too_many <= fits:
            return plan
        best = self._with_states(fits, limit)
        if best.peak > limit:
            return min(plan, best, key=attrgetter("peak"))
        while too_many - fits > 1:
            states = (fits + too_many) // 2
            found = self._with_states(states, limit)
            if found.peak <= limit:
                fits, best = states, found
            else:
                too_many = states
        return best

    def _with_states(self, states: int, limit: int) -> SegmentPlan:
        return plan_segments(Flow(self._unzip(limit_states(self._chunked, states))), limit)

    @property
    def loops(self) -> tuple[ChunkedLoop, ...]:
        """The loops that save residuals, and in how many steps at a time they run if segments do not suffice."""
        return tuple(chunks.loops_in_chunks(self._program, self._saved_by).values())

    @cached_property
    def _in_chunks(self) -> Flow | None:
        """The program with its loops in chunks; None if it has no loops that save residuals."""
        return None if self._chunked is self._program else Flow(self._unzip(self._chunked))

    @cached_property
    def _chunked(self) -> Jaxpr:
        return chunks.scans_in_chunks(self._program, self._saved_by)

    def _saved_by(self, eqn: Equation) -> int:
        """Count the bytes that the steps of a loop save, by its source and number of steps."""
        return self._bytes_of_loops.get((eqn.source, as_scan(eqn).params.get("length")), 0)

    @cached_property
    def _bytes_of_loops(self) -> dict[Any, int]:
        return self.flow.bytes_of_loops()


class SurveyPolicy(ProgramPolicy):
    """The policy that saves everything, and remembers what budgets would plan for each program, in `plans`."""

    def __init__(self) -> None:
        self.plans: Final[list[BudgetPlans]] = []

    def unzip(self, program: Jaxpr, unzip: Callable[[Jaxpr], UnzippedJaxpr]) -> UnzippedJaxpr:
        """Split a program in halves, as a budget does of which nothing is computed again."""
        self.plans.append(BudgetPlans(program, unzip))
        return self.plans[-1].flow.halves


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
