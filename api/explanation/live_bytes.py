"""Bytes that are live over a gradient: what the forward pass has kept so far, then what the backward pass still needs.

Time runs over the equations of the function, forward and then back. As in the prediction of a peak, values that die in
the forward pass are left out, and so are arguments and results.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any, Final, NamedTuple

from tapeless.differentiate.residuals import Residual
from tapeless.interpreters.residuals.segments import Flow
from tapeless.interpreters.simplifications.repeatable_equations import is_fused
from tapeless.tracer.jaxpr import Atom, Equation
from tapeless.tracer.source import Source

COTANGENTS: Final = "cotangents"
AGAIN: Final = "computed again"
_LEVELS: Final = "▁▂▃▄▅▆▇█"
WIDTH: Final = 56  # of the curve in text


class LiveGroup(NamedTuple):
    """Live values of one kind: what they are, how many, their bytes together, and their line."""

    what: str
    number: int
    nbytes: int
    source: Source | None

    def __str__(self) -> str:
        many = f"{self.number:,} × " if self.number > 1 else ""
        return f"{many}{self.what}{f'  {self.source.describe()}' if self.source else ''}"


class LiveBytes:
    """The live bytes at each moment of a gradient, and what is live then.

    nbytes: at moment t of the forward pass, after its first t equations; then at those of the backward pass, which
      comes back from the last equation to none. turn: the first moment of the backward pass. peak: the last moment of
      the most.
    """

    def __init__(self, flow: Flow, described: Sequence[Residual]) -> None:
        primal, _, _, n = flow.halves
        saved = dict(zip(dict.fromkeys(primal.outvars[len(primal.outvars) - n :]), described, strict=True))
        self._saved = {v: residual for v, residual in saved.items() if v in flow.made}
        self._flow, self._first = flow, flow.first_reads
        self._recomputing, self._cotangents = flow.recomputing(), flow.cotangent_bytes()
        self.turn: Final = len(primal.eqns) + 1
        self.nbytes: Final = [*self._forward(), *reversed(self._backward())]
        self.peak: Final = self._highest(range(len(self.nbytes)))

    def _forward(self) -> list[int]:
        made = [0] * self.turn
        for v in self._saved:
            made[self._flow.made[v]] += v.aval.nbytes
        return list(accumulate(made))

    def _backward(self) -> list[int]:
        steps = [0] * self.turn
        for v, k in self._again.items():
            steps[k] += v.aval.nbytes
        return [a + b for a, b in zip(self._flow.peaks, accumulate(steps), strict=True)]

    @cached_property
    def _again(self) -> dict[Atom, int]:
        """The values that the linear half computes again at its beginning, and where they are read last."""
        linear = self._flow.halves.linear
        made = {v for eqn in linear.eqns if not eqn.linear and not is_fused(eqn) for v in eqn.outvars}
        last: dict[Atom, int] = {}
        for eqn, k in self._flow.place.items():
            last.update({v: min(last.get(v, k), k) for v in eqn.invars if v in made})
        return last

    def position(self, moment: int) -> int:
        """Return how many equations the forward pass has behind it, or the backward pass has still before it."""
        return moment if moment < self.turn else 2 * self.turn - 1 - moment

    def equation(self, moment: int) -> Equation | None:
        """Return the equation of the function that either pass is at; None before the first."""
        k = self.position(moment)
        return self._flow.halves.primal.eqns[k - 1] if k else None

    def live_values(self, moment: int) -> list[Any]:
        """List the residuals that are live at a moment, the largest first."""
        k = self.position(moment)
        found = [
            v for v in self._saved if (self._flow.made[v] if moment < self.turn else self._first.get(v, k + 1)) <= k
        ]
        return sorted(found, key=lambda v: -v.aval.nbytes)

    def groups(self, moment: int) -> list[LiveGroup]:
        """Group what is live at a moment by kind and line, the largest first."""
        found: dict[tuple[str, str], LiveGroup] = {}
        for what, source, nbytes in self._named(moment):
            known = found.get(key := (what, str(source)), LiveGroup(what, 0, 0, source))
            found[key] = known._replace(number=known.number + 1, nbytes=known.nbytes + nbytes)
        return sorted([group for group in found.values() if group.nbytes], key=lambda group: -group.nbytes)

    def _named(self, moment: int) -> Iterator[tuple[str, Source | None, int]]:
        for v in self.live_values(moment):
            residual = self._saved[v]
            yield f"{residual.aval} {residual.maker or residual.argument}", residual.source, residual.nbytes
        if moment < self.turn:
            return
        k = self.position(moment)
        inside = self._recomputing.get(k)
        yield COTANGENTS, None, self._cotangents[k] - (inside.nbytes if inside else 0)
        if inside:
            yield f"{AGAIN} in {inside.eqn.primitive}", inside.eqn.source, inside.nbytes
        yield AGAIN, None, sum([v.aval.nbytes for v, last in self._again.items() if last <= k])

    def highest(self, n: int) -> list[tuple[int, int]]:
        """Cut both passes into at most `n` spans of time each; return for each its beginning and its highest moment."""
        spans: list[tuple[int, int]] = []
        for first, end in ((0, self.turn), (self.turn, 2 * self.turn)):
            width = max(1, -(-(end - first) // n))
            for begin in range(first, end, width):
                spans.append((begin, self._highest(range(begin, min(begin + width, end)))))
        return spans

    def _highest(self, moments: range) -> int:
        """Return the moment of the most bytes, of several the last."""
        return max(reversed(moments), key=self.nbytes.__getitem__)

    def __str__(self) -> str:
        """Draw the curve in one line: the forward pass, a bar, the backward pass."""
        most = max(self.nbytes) or 1
        drawn = [(begin, _LEVELS[-(-7 * self.nbytes[at] // most)]) for begin, at in self.highest(WIDTH // 2)]
        return "".join([f"{'│' if begin == self.turn else ''}{level}" for begin, level in drawn])
