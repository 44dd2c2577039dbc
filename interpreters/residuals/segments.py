"""Recomputation in segments, under a limit on the bytes that are live at once.

The equations of a primal half are cut in segments. The values at the cuts are saved, those inside of a segment are not.
The linear half holds one checkpoint for each segment: when the cotangents of its results arrive, it computes the values
inside again from those at its beginning, and drops them at its end. The last segment saves everything, as its residuals
are read first. So what the cuts before a segment save and its own residuals are live while it is pulled back; the later
segments are done.

The cuts are chosen by dynamic programming over positions of the program, exactly for a chain: of the ways to cover the
first equations with segments that fit, one saves the fewest bytes, and the first position from which the rest fits
without recomputation spares the most work.
Left out: values of a segment that are saved for their work; segments of segments, so that nothing is computed more than
twice.
Source: Beaumont et al. 2019, "Optimal checkpointing for heterogeneous chains", for chains; Chen et al. 2016.
"""

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

from tapeless.interpreters import limits
from tapeless.interpreters.partial_eval import UnzippedJaxpr
from tapeless.interpreters.residuals import rematerialization
from tapeless.interpreters.residuals.rematerialization import save_none
from tapeless.interpreters.simplifications.repeatable_equations import is_fused
from tapeless.tracer import core, passes
from tapeless.tracer.check import check_if_configured
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Literal, Var, effects, subjaxprs
from tapeless.tracer.primitives.checkpoint import checkpoint_p
from tapeless.tracer.primitives.control_flow import as_scan, scan_p
from tapeless.tracer.primitives.linear_while import linear_while_p
from tapeless.tracer.primitives.shape import reshape_p


class SegmentPlan(NamedTuple):
    """The cuts of a program, and the greatest number of bytes that are then live at once, as predicted."""

    flow: "Flow"
    cuts: tuple[int, ...]
    peak: int

    def halves(self) -> UnzippedJaxpr:
        """Write the halves."""
        return _built(self.flow, self.cuts)


def plan_segments(flow: "Flow", limit: int) -> SegmentPlan:
    """Choose the segments that are computed again, so that at most `limit` bytes are live at once; else the fewest."""
    if flow.peak <= limit:
        return SegmentPlan(flow, (), flow.peak)
    cuts = _cuts(flow, limit)
    if cuts is None:
        cuts = _cuts(flow, flow.least) or ()
    return SegmentPlan(flow, cuts, flow.peak_of(cuts))


def _without_derived(halves: UnzippedJaxpr) -> UnzippedJaxpr:
    """Compute residuals again that are sums and products of elements of others: compilers do not store them."""
    primal, linear, linear_out, n = halves
    wanted = primal.outvars[len(primal.outvars) - n :]
    there: set[Atom] = {*primal.invars, *wanted}
    derived: list[Equation] = []
    for eqn in primal.eqns:
        if is_fused(eqn) and all(isinstance(v, Literal) or v in there for v in eqn.invars):
            derived.append(eqn)
            there.update(eqn.outvars)
    again, read = passes.live(derived, wanted)
    made = {v for eqn in again for v in eqn.outvars}
    available = [*primal.invars, *[v for eqn in primal.eqns for v in eqn.outvars]]
    saved = [v for v in dict.fromkeys(available) if v in read and v not in made]
    plan = rematerialization.RematerializationPlan(primal.eqns, tuple(saved), tuple(again), wanted)
    new_primal, new_linear, saved_ones = rematerialization.with_plan(primal, linear, plan)
    return UnzippedJaxpr(new_primal, new_linear, linear_out, saved_ones)


def _reshaped_inputs(program: Jaxpr) -> set[Atom]:
    """Collect the inputs and their reshaped forms, which take no bytes of their own."""
    found: set[Atom] = set(program.invars)
    for eqn in program.eqns:
        if eqn.primitive is reshape_p and found.issuperset(eqn.invars):
            found.update(eqn.outvars)
    return found


@core.memoize_by_program
def recomputed_bytes(linear: Jaxpr) -> int:
    """Count the bytes that a linear half computes again for its linear equations, and the most of a body's."""
    again = [eqn for eqn in linear.eqns if not eqn.linear]
    read = {v for eqn in linear.eqns if eqn.linear for v in eqn.invars}
    for eqn in reversed(again):
        if is_fused(eqn):
            read.update(eqn.invars if not read.isdisjoint(eqn.outvars) else ())
            read.difference_update(eqn.outvars)
    own = sum([v.aval.nbytes for eqn in again for v in eqn.outvars if v in read])
    inside = [recomputed_bytes(program) for eqn in linear.eqns if eqn.linear for program in subjaxprs(eqn.params)]
    return own + max(inside, default=0)


def _bytes_at_hand(eqn: Equation) -> int:
    """Count the bytes of a state and of the cotangents that a while loop carries backwards, beside saved states."""
    if eqn.primitive is not linear_while_p:
        return 0
    state = eqn.params["step"].out_avals[: eqn.params["n_states"]]
    return sum([aval.nbytes for aval in (*state, *eqn.params["linear"].out_avals)])


# ---- the choice of cuts --------------------------------------------------------------------------------------


def _least(flow: "Flow") -> int:
    """Find the least limit that segments keep: near it by bisection, then from one choice of cuts to the next."""
    low, high = 0, flow.peak
    while high - low > max(high // 1000, 1):
        middle = (low + high) // 2
        cuts = _cuts(flow, middle)
        low, high = (middle, high) if cuts is None else (low, flow.peak_of(cuts))
    while high - low > 1 and (cuts := _cuts(flow, high - 1)) is not None:
        high = flow.peak_of(cuts)
    return high


class _Cover(NamedTuple):
    """Segments that cover a program up to a cut: the bytes that their cuts save, and the cut before, by its number."""

    saved: int
    before: int


def _cuts(flow: "Flow", limit: int) -> tuple[int, ...] | None:
    """Choose cuts, so that at most `limit` bytes are live at once, with the first possible last one; None if none."""
    cuts = flow.cuts
    covers: list[_Cover | None] = [_Cover(0, -1)]
    for j in range(len(cuts)):
        if j:
            covers.append(_cheapest_cover(covers, j, cuts, flow.peaks, limit))
        if covers[j] and (found := _last_cut(covers, j, flow, limit)) is not None:
            return found
    return None


def _cheapest_cover(
    covers: Sequence[_Cover | None], j: int, cuts: Sequence["_CutPoint"], peaks: Sequence[int], limit: int
) -> _Cover | None:
    """Find the cut i before cut j from which one segment fits, where the fewest bytes are saved at both."""
    best: _Cover | None = None
    highest, end = 0, cuts[j].at
    for i in range(j - 1, -1, -1):
        begin = cuts[i].at
        highest = max(highest, *peaks[begin + 1 : end + 1])
        end = begin
        cover = covers[i]
        if cover and cover.saved + highest - cuts[i].before <= limit:
            saved = cover.saved + cuts[j].bytes_made_after(begin)
            if best is None or saved < best.saved:
                best = _Cover(saved, i)
    return best


def _last_cut(covers: Sequence[_Cover | None], j: int, flow: "Flow", limit: int) -> tuple[int, ...] | None:
    """Return the cuts up to the j-th if the rest fits without recomputation."""
    cover, cut = covers[j], flow.cuts[j]
    assert cover is not None
    if cover.saved + max(flow.peaks[cut.at + 1 :], default=0) - cut.before > limit:
        return None
    found = []
    while j > 0:
        found.append(flow.cuts[j].at)
        j = covers[j].before  # type: ignore[union-attr]  # a cover begins at another
    return tuple(found[::-1])


class _CutPoint(NamedTuple):
    """A cut: its position, the bytes of residuals read before it, and the values that cross it, by where they are made.

    totals: of the latest value that crosses, the latest two, ...: their bytes together. made: minus their positions.
    """

    at: int
    before: int
    made: Sequence[int]
    totals: Sequence[int]

    def bytes_made_after(self, position: int) -> int:
        """Count the bytes of the values that cross this cut and are made after a position."""
        return self.totals[bisect_left(self.made, -position)]


class Recomputation(NamedTuple):
    """An equation of a linear half, and the bytes that its bodies compute again."""

    eqn: Equation
    nbytes: int


# ---- what is read where --------------------------------------------------------------------------------------


class Flow:
    """The positions of values: where a primal half makes each, and where it and the linear half read it.

    A position is a number of equations of the primal half. An equation of the linear half stands at the last of the
    values that it depends on.

    available: inputs and values of the primal half. wanted: residuals, as the linear half names them -> values. made:
    values -> positions. reads, place: of linear equations, the values that they read, and their positions. needed:
    primal equations that residuals depend on. last: values -> positions of their last readers. peaks: the bytes that
    are live at each position if nothing is computed again, and `peak` the most.
    """

    halves: UnzippedJaxpr
    available: list[Var]
    results: tuple[Atom, ...]
    wanted: dict[Var, Atom]
    made: dict[Atom, int]
    reads: dict[Equation, list[Atom]]
    place: dict[Equation, int]
    needed: set[Equation]
    last: dict[Atom, int]
    peaks: list[int]
    peak: int

    def __init__(self, halves: UnzippedJaxpr) -> None:
        self.halves = halves = _without_derived(halves)
        primal, linear, _, n = halves
        self.available = [*primal.invars, *[v for eqn in primal.eqns for v in eqn.outvars]]
        self.results = primal.outvars[: len(primal.outvars) - n]
        self.wanted = dict(zip([v for v in linear.invars if not v.linear], primal.outvars[len(self.results) :]))
        given = _reshaped_inputs(primal)
        self.made = {v: k for k, eqn in enumerate(primal.eqns, 1) for v in eqn.outvars if v not in given}
        self.reads = self._reads()
        self.place = self._places()
        self.needed = self._needed()
        self.last = self._last_reads()
        residuals = list(accumulate(self.residual_bytes()))
        # at each position, the bytes of the residuals read up to it, and of the cotangents there
        self.peaks = [a + b for a, b in zip(residuals, self.cotangent_bytes(), strict=True)]
        self.peak = max(self.peaks)
        self._residuals = residuals

    @cached_property
    def least(self) -> int:
        """The least limit that segments keep."""
        return _least(self)

    @cached_property
    def cuts(self) -> list["_CutPoint"]:
        """The positions that may be cuts."""
        return [self._cut(at, self._residuals[at]) for at in self._candidates()]

    def peak_of(self, cuts: Sequence[int]) -> int:
        """Count the bytes that are live at once, at most, if the program is cut there."""
        if not cuts:
            return self.peak
        at = {cut.at: cut for cut in self.cuts}
        saved, before, peaks = 0, 0, list[int]()
        for begin, end in zip((0, *cuts), (*cuts, len(self.peaks) - 1), strict=True):
            saved += at[begin].bytes_made_after(before)
            before = begin
            peaks.append(saved + max(self.peaks[begin + 1 : end + 1], default=0) - at[begin].before)
        return max(peaks)

    def _candidates(self) -> list[int]:
        """List the positions that may be cuts: where the fewest bytes cross, in each of some ranges."""
        n = len(self.halves.primal.eqns)
        steps = [0] * (n + 2)
        for v, k in self.last.items():
            steps[self.made[v]] += v.aval.nbytes
            steps[k] -= v.aval.nbytes
        crossing = list(accumulate(steps))
        width = max(1, -(-n // limits.SEGMENTS))
        return [0, *[min(range(k, min(k + width, n)), key=crossing.__getitem__) for k in range(1, n, width)]]

    def _cut(self, at: int, before: int) -> _CutPoint:
        values = self.crossing(at)
        totals = list(accumulate([v.aval.nbytes for v in values], initial=0))
        return _CutPoint(at, before, [-self.made[v] for v in values], totals)

    def _reads(self) -> dict[Equation, list[Atom]]:
        """Find the primal values that each linear equation reads, also by equations that are not linear."""
        found: dict[Atom, list[Atom]] = {r: [v] for r, v in self.wanted.items()}
        reads: dict[Equation, list[Atom]] = {}
        for eqn in self.halves.linear.eqns:
            values = list(dict.fromkeys(x for v in eqn.invars for x in found.get(v, ()) if x in self.made))
            if eqn.linear:
                reads[eqn] = values
            else:
                found.update(dict.fromkeys(eqn.outvars, values))
        return reads

    def _places(self) -> dict[Equation, int]:
        """Place each linear equation: as early as it can be, but one that reads inputs alone by its first reader."""
        at: dict[Atom, int] = {}
        place: dict[Equation, int] = {}
        free: set[Atom] = {v for v in self.halves.linear.invars if v.linear}
        late: set[Equation] = set()  # equations that read inputs, or what is made of them without a residual
        for eqn in self.reads:
            linear = [v for v in eqn.invars if isinstance(v, Var) and v.linear]
            place[eqn] = max([at.get(v, 0) for v in linear] + [self.made[x] for x in self.reads[eqn]], default=0)
            if free.issuperset(linear):
                late.add(eqn)
                free.update(eqn.outvars if not self.reads[eqn] else ())
            at.update(dict.fromkeys(eqn.outvars, place[eqn]))
        first: dict[Atom, int] = {}
        end = len(self.halves.primal.eqns)
        for eqn in reversed(list(self.reads)):
            if eqn in late:
                place[eqn] = max(place[eqn], min([first.get(v, end) for v in eqn.outvars], default=end))
            for v in eqn.invars:
                first[v] = min(first.get(v, end), place[eqn])
        return place

    def _needed(self) -> set[Equation]:
        """Find the equations of the primal half that residuals depend on."""
        needed, _ = passes.live(self.halves.primal.eqns, list(self.wanted.values()))
        return set(needed)

    def _last_reads(self) -> dict[Atom, int]:
        """Find the last position where each value is read, by primal equations that residuals need or linear ones."""
        last: dict[Atom, int] = {}
        for k, eqn in enumerate(self.halves.primal.eqns, 1):
            if eqn in self.needed:
                last.update(dict.fromkeys([v for v in eqn.invars if v in self.made], k))
        for eqn, values in self.reads.items():
            last.update({v: max(last.get(v, 0), self.place[eqn]) for v in values})
        return last

    def describe_largest(self) -> str:
        """Describe the largest value that the linear half, or a segment of it, reads: `f32[3] from sin at f.py:2 (f)`.

        Returns: "" if there is no such value.
        """
        pairs = [(v, eqn) for eqn in self.halves.primal.eqns for v in eqn.outvars if v in self.last]
        if not pairs:
            return ""
        v, eqn = max(pairs, key=lambda pair: pair[0].aval.nbytes)
        return f"{v.aval} from {eqn.primitive}{f' at {eqn.source.describe()}' if eqn.source else ''}"

    def bytes_of_loops(self) -> dict[Any, int]:
        """Count what loops save, by their source and number of steps."""
        found: dict[Any, int] = {}
        for eqn in self.halves.primal.eqns:
            loop = as_scan(eqn)
            if loop.primitive is scan_p:
                n = loop.params["n_carry"]
                saved = sum([v.aval.nbytes for v in loop.outvars[n:] if v in self.last])
                key = eqn.source, loop.params["length"]
                found[key] = max(found.get(key, 0), saved)
        return found

    @cached_property
    def first_reads(self) -> dict[Atom, int]:
        """Find the first position where the linear half reads each value."""
        first: dict[Atom, int] = {}
        for eqn, values in self.reads.items():
            for v in values:
                first[v] = min(first.get(v, self.place[eqn]), self.place[eqn])
        return first

    def crossing(self, cut: int) -> list[Atom]:
        """List the values that are made before a cut and read after it, latest first."""
        found = [v for v, k in self.last.items() if self.made[v] <= cut < k]
        return sorted(found, key=self.made.__getitem__, reverse=True)

    def residual_bytes(self) -> list[int]:
        """Count at each position the bytes of the residuals that the linear half reads first there."""
        found = [0] * (len(self.halves.primal.eqns) + 1)
        for v, k in self.first_reads.items():
            found[k] += v.aval.nbytes
        return found

    def cotangent_bytes(self) -> list[int]:
        """Count at each position the bytes of the cotangents, and of what the bodies of an equation compute again."""
        at: dict[Atom, int] = {}
        last: dict[Atom, int] = {}
        for eqn, k in self.place.items():
            at.update(dict.fromkeys(eqn.outvars, k))
            last.update({v: max(last.get(v, 0), k) for v in eqn.invars if v in at})
        steps = [0] * (len(self.halves.primal.eqns) + 2)
        for v, k in last.items():
            steps[at[v]] += v.aval.nbytes
            steps[k] -= v.aval.nbytes
        inner = self.recomputing()
        return [n + (inner[k].nbytes if k in inner else 0) for k, n in enumerate(list(accumulate(steps))[:-1])]

    def recomputing(self) -> dict[int, "Recomputation"]:
        """Find at each position the equation whose bodies compute the most bytes again, if any do."""
        found: dict[int, Recomputation] = {}
        for eqn, k in self.place.items():
            again = max([recomputed_bytes(p) for p in subjaxprs(eqn.params)], default=0)
            nbytes = again + _bytes_at_hand(eqn)
            if nbytes > (found[k].nbytes if k in found else 0):
                found[k] = Recomputation(eqn, nbytes)
        return found


# ---- the halves ----------------------------------------------------------------------------------------------


class _Segment(NamedTuple):
    """A part of the linear half, and how the primal values that it reads are computed again.

    eqns: equations of the linear half. wanted: the residuals among what they read. again: equations of the primal half.
    saved: the primal values from which `again` computes the wanted ones, and those that are saved themselves.
    """

    eqns: Sequence[Equation]
    wanted: Sequence[Var]
    again: Sequence[Equation]
    saved: Sequence[Var]


def _segment(flow: Flow, begin: int, end: int, again: bool) -> _Segment:
    """Collect the segment between two positions; the first begins with equations that read no residual."""
    primal, linear, _, _ = flow.halves
    inside = {eqn for eqn, k in flow.place.items() if begin < k <= end or k == begin == 0}
    read = [v for eqn in inside for v in eqn.invars]
    others, _ = passes.live([eqn for eqn in linear.eqns if not eqn.linear], read)
    inside.update(others)
    read.extend([v for eqn in others for v in eqn.invars])
    wanted = [v for v in flow.wanted if v in read]
    needed: set[Atom] = {flow.wanted[v] for v in wanted}
    computed: list[Equation] = []
    for eqn in reversed(primal.eqns[begin:end] if again else ()):
        if not needed.isdisjoint(eqn.outvars) and not _is_kept(eqn):
            computed.append(eqn)
            needed.update(eqn.invars)
    made = {v for eqn in computed for v in eqn.outvars}
    saved = [v for v in flow.available if v in needed and v not in made]
    return _Segment([eqn for eqn in linear.eqns if eqn in inside], wanted, computed[::-1], saved)


def _is_kept(eqn: Equation) -> bool:
    """Tell whether an equation is never computed again: it has effects, or the user named its result."""
    return "io" in effects(eqn) or eqn.primitive in rematerialization.names


def _built(flow: Flow, cuts: Sequence[int]) -> UnzippedJaxpr:
    """Write the linear half as one checkpoint for each segment but the last, whose equations stay as they are."""
    primal, linear, linear_out, _ = flow.halves
    segments = [_segment(flow, begin, end, True) for begin, end in zip([0, *cuts], cuts)]
    last = _segment(flow, cuts[-1] if cuts else 0, len(primal.eqns), False)
    needed = {v for segment in (*segments, last) for v in segment.saved}
    saved = [v for v in flow.available if v in needed]
    fresh: dict[Atom, Var] = {v: Var(v.aval) for v in saved}
    known: dict[Atom, Atom] = {r: fresh.get(v, v) for r, v in flow.wanted.items()}
    eqns = [eqn.replace(invars=[known.get(v, v) for v in eqn.invars]) for eqn in last.eqns]
    later: set[Atom] = {*linear.outvars, *[v for eqn in eqns for v in eqn.invars]}
    for segment in reversed([segment for segment in segments if segment.eqns]):
        eqns.insert(0, _checkpoint(flow, segment, fresh, later))
        later.update(eqns[0].invars)
    inputs = [*fresh.values(), *[v for v in linear.invars if v.linear]]
    return UnzippedJaxpr(
        check_if_configured(passes.dead_code(primal.replace(outvars=[*flow.results, *saved]))),
        check_if_configured(Jaxpr(inputs, eqns, [known.get(v, v) for v in linear.outvars], linear.name)),
        linear_out,
        len(saved),
    )


def _checkpoint(flow: Flow, segment: _Segment, saved: Mapping[Atom, Var], later: Collection[Atom]) -> Equation:
    """Write the checkpoint of a segment: saved values ; linear values -> those that are read later."""
    made = dict.fromkeys([v for eqn in segment.eqns for v in eqn.outvars])
    inputs = dict.fromkeys([v for eqn in segment.eqns for v in eqn.invars if isinstance(v, Var) and v.linear])
    operands = [v for v in inputs if v not in made]
    results = [v for v in made if v.linear and v in later]  # others are made in each segment that reads them
    part = Jaxpr([*segment.wanted, *operands], segment.eqns, results, flow.halves.linear.name)
    wanted = tuple([flow.wanted[v] for v in segment.wanted])
    plan = rematerialization.RematerializationPlan(
        flow.halves.primal.eqns, tuple(segment.saved), tuple(segment.again), wanted
    )
    primal = flow.halves.primal.replace(outvars=wanted)
    _, body, _ = rematerialization.with_plan(primal, part, plan)
    params = {"jaxpr": body, "policy": save_none, "prevent_cse": True}
    return Equation(
        checkpoint_p, [*[saved[v] for v in segment.saved], *operands], params, results, segment.eqns[0].source
    )
