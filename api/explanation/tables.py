"""A gradient as tables: a row for each equation of its three programs, for each residual, for each line."""

import linecache
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any, Final, NamedTuple

from tapeless.differentiate import residuals
from tapeless.differentiate.residuals import Residual
from tapeless.differentiate.unzip import Unzipped
from tapeless.explanation.live_bytes import LiveBytes
from tapeless.interpreters import transpose
from tapeless.interpreters.analysis import cost as counting
from tapeless.interpreters.analysis.cost import Cost
from tapeless.interpreters.partial_eval import UnzippedJaxpr
from tapeless.interpreters.residuals.segments import Flow
from tapeless.tracer.bodies import bodies_of
from tapeless.tracer.jaxpr import Equation, Jaxpr, Var, map_subjaxprs, subjaxprs
from tapeless.tracer.primitives.contraction import dot_general_p
from tapeless.tracer.printing import Names, equation_text, is_default, titles_inside
from tapeless.tracer.source import Source

# Products of matrices and vectors as formulas write them: `a @ b`, `a.T @ b`, `outer a b`.


def readable_text(eqn: Equation, names: Names, titles: dict[Any, str]) -> str:
    """Print an equation as `equation_text` does; of a product of at most two axes each, the formula."""
    product = _product(eqn, names) if eqn.primitive is dot_general_p else None
    if product is None:
        return equation_text(eqn, names, titles)
    return f"{names.typed(eqn.outvars[0])} = {product}"


def _product(eqn: Equation, names: Names) -> str | None:
    """Write the formula of a product without batch axes and with the default precision; None for any other."""
    contracted, batch = eqn.params["dimension_numbers"]
    others = [value for name, value in eqn.params.items() if name != "dimension_numbers"]
    ranks = [x.aval.ndim for x in eqn.invars]
    if any(batch) or max(ranks) > 2 or len(contracted[0]) > 1 or not all(map(is_default, others)):
        return None
    left, right = map(names, eqn.invars)
    if not contracted[0]:
        return f"outer {left} {right}" if ranks == [1, 1] else None
    turned = contracted[0][0] != ranks[0] - 1, contracted[1][0] != 0
    return f"{left}{'.T' * turned[0]} @ {right}{'.T' * turned[1]}"


RESIDUALS = "the residuals"
CONTEXT = 2  # lines that are shown before and after one that was executed


class SourceLine(NamedTuple):
    """A line of a file."""

    file: str
    line: int


class Row(NamedTuple):
    """An equation: `p3` in the primal, `l3` in the linear or `t3` in the transposed program.

    cost, nbytes: what it computes, programs that it carries included, and the size of its results.
    source, place: the user's line, if there is one.
    """

    key: str
    eqn: Equation
    text: str
    cost: Cost
    nbytes: int
    source: Source | None
    place: SourceLine | None
    bodies: tuple["InnerProgram", ...]


class InnerProgram(NamedTuple):
    """A program that an equation carries, and how often it runs. `rows` is None if they are shown further up."""

    title: str
    often: str
    takes: tuple[str, ...]
    gives: tuple[str, ...]
    cost: Cost
    rows: tuple[Row, ...] | None


class Phase(NamedTuple):
    """One of the three programs, as rows. `unread`: the cost of dropping unread values, part of `cost`."""

    name: str
    program: Jaxpr
    takes: tuple[str, ...]
    gives: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def cost(self) -> Cost:
        """Cost of the whole program, as `tl.cost` counts it."""
        return counting.cost(self.program)

    @property
    def unread(self) -> int:
        """Scalars that the program itself drops, besides what its equations do."""
        return self.cost.drops - sum(row.cost.drops for row in self.rows)

    @property
    def nbytes(self) -> int:
        """Bytes of the results of all equations, without equations of inner jaxprs."""
        return sum(row.nbytes for row in self.rows)

    def walk(self) -> Iterator[Row]:
        """Walk all rows; rows of inner jaxprs follow the row that carries them."""
        return _walk(self.rows)


class Saved(NamedTuple):
    """A residual: its variable, the rows of the primal computing it, and the rows reading it later."""

    key: str
    text: str
    residual: Residual
    makers: tuple[str, ...]
    readers: tuple[str, ...]
    place: SourceLine | None


class Line(NamedTuple):
    """A line of the user's, with the text that it had; `executed` if an equation comes from it."""

    key: str
    place: SourceLine
    text: str
    executed: bool


class Tables(NamedTuple):
    """All rows of an explanation.

    origins: for rows of the linear and the transposed program, those of the program before that they were made from.
    by_line: keys of rows whose origins are only known to come from the same line. live: the curve of live bytes.
    """

    phases: tuple[Phase, Phase, Phase]
    residuals: tuple[Saved, ...]
    lines: tuple[Line, ...]
    origins: dict[str, tuple[str, ...]]
    by_line: frozenset[str]
    live: LiveBytes

    @property
    def residual_bytes(self) -> int:
        """Bytes of all residuals."""
        return sum(saved.residual.nbytes for saved in self.residuals)

    def saves(self) -> dict[str, list[str]]:
        """Map each row of the primal to the residuals that it computes."""
        return inverse({saved.key: saved.makers for saved in self.residuals})


def inverse(pairs: dict[str, tuple[str, ...]]) -> dict[str, list[str]]:
    """Invert a mapping of keys to keys."""
    found: dict[str, list[str]] = {}
    for key, others in pairs.items():
        for other in others:
            found.setdefault(other, []).append(key)
    return found


def tables(unzipped: Unzipped, names: Sequence[str], differentiated: Sequence[str]) -> Tables:
    """Make the rows of an unzipped derivative, of a program whose equations `mark_equations` marked.

    Args:
      names: of the primal's inputs, its constants excepted; `differentiated`: of those that have a tangent.
    """
    primal, linear = unzipped.primal.jaxpr, unzipped.linear
    backward, reached = transpose.transpose_jaxpr(mark_equations(linear), (True,) * len(linear.outvars))
    given = Names()
    of_primal = _primal(unzipped, names, given)
    read = [v for v in linear.invars if not v.linear]
    _share(given, read, primal.outvars[len(primal.outvars) - len(read) :])
    of_linear = _linear(linear, differentiated, given)
    _share(given, [v for v in backward.invars if not v.linear], read)
    wanted = [name for name, yes in zip(differentiated, reached, strict=True) if yes]
    phases = of_primal, of_linear, _transposed(backward, wanted, given)
    saved = tuple(_residuals(unzipped, phases, given))
    origins, by_line = _origins(phases)
    return Tables(phases, saved, tuple(_lines(phases, saved)), origins, by_line, _live(unzipped, names))


def _live(unzipped: Unzipped, names: Sequence[str]) -> LiveBytes:
    """Follow the live bytes, of what the halves save and read."""
    primal, linear = unzipped.primal.jaxpr, unzipped.linear
    n = sum(not v.linear for v in linear.invars)
    flow = Flow(UnzippedJaxpr(primal, linear, (True,) * len(primal.outvars), n))
    return LiveBytes(flow, residuals.residuals_of(flow.halves, len(unzipped.primal.consts), names))


# ---- programs -------------------------------------------------------------------------------------------------


def _share(given: Names, variables: Sequence[Any], others: Sequence[Any]) -> None:
    for v, other in zip(variables, others, strict=True):
        if isinstance(other, Var):
            given.share(v, other)


def _primal(unzipped: Unzipped, names: Sequence[str], given: Names) -> Phase:
    program, n = unzipped.primal.jaxpr, sum(not v.linear for v in unzipped.linear.invars)
    labels = [*["constant"] * len(unzipped.primal.consts), *names]
    takes = [f"{given.typed(v)} ({label})" for v, label in zip(program.invars, labels, strict=True)]
    rows = _RowWriter("p", program, given).rows(program)
    gives = [given(v) for v in program.outvars[: len(program.outvars) - n]]
    return Phase("primal", program, tuple(takes), tuple(gives), rows)


def _linear(program: Jaxpr, names: Sequence[str], given: Names) -> Phase:
    inputs = [v for v in program.invars if v.linear]
    takes = [f"{given.typed(v)} (tangent of {name})" for v, name in zip(inputs, names, strict=True)]
    rows = _RowWriter("l", program, given).rows(program)
    return Phase("linear", program, (RESIDUALS, *takes), tuple(map(given, program.outvars)), rows)


def _transposed(program: Jaxpr, names: Sequence[str], given: Names) -> Phase:
    takes = [f"{given.typed(v)} (cotangent)" for v in program.invars if v.linear]
    rows = _RowWriter("t", program, given).rows(program)
    gives = [f"{given(v)} (of {name})" for v, name in zip(program.outvars, names, strict=True)]
    return Phase("transposed", program, (RESIDUALS, *takes), tuple(gives), rows)


class _RowWriter:
    """Writes the rows of a program, and of the programs inside where they are first met."""

    def __init__(self, letter: str, program: Jaxpr, given: Names) -> None:
        self._keys = (f"{letter}{i}" for i in count(1))
        self._titles, self._given = titles_inside(program), given
        self._shown: set[Jaxpr] = set()

    def rows(self, jaxpr: Jaxpr) -> tuple[Row, ...]:
        for v in jaxpr.invars:
            self._given(v)
        return tuple([self._row(eqn) for eqn in jaxpr.eqns])

    def _row(self, eqn: Equation) -> Row:
        key, text = next(self._keys), readable_text(eqn, self._given, self._titles)
        inside = list(subjaxprs(eqn.params))
        bodies = tuple([self._body(eqn, i, jaxpr) for i, jaxpr in enumerate(inside)])
        nbytes = sum(v.aval.nbytes for v in eqn.outvars)
        return Row(key, eqn, text, counting.equation_cost(eqn), nbytes, eqn.source, _place(eqn.source), bodies)

    def _body(self, eqn: Equation, i: int, jaxpr: Jaxpr) -> InnerProgram:
        rows = None if jaxpr in self._shown else self._rows_inside(jaxpr)
        takes, gives = tuple(map(self._given.typed, jaxpr.invars)), tuple(map(self._given, jaxpr.outvars))
        return InnerProgram(self._titles[jaxpr], _how_often(eqn, i), takes, gives, counting.cost(jaxpr), rows)

    def _rows_inside(self, jaxpr: Jaxpr) -> tuple[Row, ...]:
        self._shown.add(jaxpr)
        return self.rows(jaxpr)


def _how_often(eqn: Equation, i: int) -> str:
    """Say how often the i-th program of an equation runs, and how it is counted."""
    bodies, programs = bodies_of(eqn), list(subjaxprs(eqn.params))
    if bodies is None:
        return ""
    if len(programs) > len(bodies.each):
        return "counted" if programs[i] is bodies.each[0].jaxpr else "not counted"
    if bodies.selector is not None:
        return f"branch {i} of {len(bodies.each)}; the dearest counts"
    if bodies.steps is None:
        return "as long as the loop runs; counted once"
    return _times(len(bodies.steps)) if bodies.loops else ""


def _times(n: int) -> str:
    return "once" if n == 1 else f"{n:,} times"


def _walk(rows: Sequence[Row]) -> Iterator[Row]:
    for row in rows:
        yield row
        for body in row.bodies:
            yield from _walk(body.rows or ())


def _place(source: Source | None) -> SourceLine | None:
    return SourceLine(source.file, source.line) if source else None


# ---- links ----------------------------------------------------------------------------------------------------


def _origins(phases: tuple[Phase, Phase, Phase]) -> tuple[dict[str, tuple[str, ...]], frozenset[str]]:
    """Map linear and transposed rows to the rows they were made from; also list the keys matched by line only."""
    primal, linear, backward = [list(phase.walk()) for phase in phases]
    of_user = _grouped([(made_from(row.eqn), row) for row in primal])
    of_linear = {row.eqn: [row] for row in linear}
    found, by_line = dict[str, tuple[str, ...]](), set[str]()
    for rows, exact, others in ((linear, of_user, primal), (backward, of_linear, linear)):
        near = _grouped([(row.place, row) for row in others])
        for row in rows:
            origin = made_from(row.eqn)
            made = exact.get(origin, []) if origin is not None else near.get(row.place, [])
            found[row.key] = tuple([other.key for other in made])
            by_line.update([row.key] if origin is None and made else [])
    return found, frozenset(by_line)


def _grouped(pairs: Sequence[tuple[Any, Row]]) -> dict[Any, list[Row]]:
    groups: dict[Any, list[Row]] = {}
    for key, row in pairs:
        if key is not None:
            groups.setdefault(key, []).append(row)
    return groups


def _residuals(unzipped: Unzipped, phases: tuple[Phase, Phase, Phase], given: Names) -> Iterator[Saved]:
    primal = phases[0].program
    n = sum(not v.linear for v in unzipped.linear.invars)
    kept = dict.fromkeys(primal.outvars[len(primal.outvars) - n :])
    made, read = _made(phases[0]), _readers(phases[1:], given)
    for i, (v, residual) in enumerate(zip(kept, unzipped.residuals, strict=True), 1):
        inner = residuals.origin_of(primal, v).eqn  # in a program that the equation carries whose result it is
        makers = tuple(key for key in dict.fromkeys([made.get(v), made.get(inner)]) if key is not None)
        readers = tuple(read.get(given(v), ()))
        yield Saved(f"m{i}", given.typed(v), residual, makers, readers, _place(residual.source))


def _made(primal: Phase) -> dict[Any, str]:
    """Map equations of the primal, and their results, to rows."""
    return {made: row.key for row in primal.walk() for made in (row.eqn, *row.eqn.outvars)}


def _readers(phases: Sequence[Phase], given: Names) -> dict[str, list[str]]:
    """Map the name of each residual to the rows that read it."""
    found: dict[str, list[str]] = {}
    for phase in phases:
        saved = {v for v in phase.program.invars if not v.linear}
        for row in phase.rows:
            for v in dict.fromkeys(v for v in row.eqn.invars if v in saved):
                found.setdefault(given(v), []).append(row.key)
    return found


# ---- lines ----------------------------------------------------------------------------------------------------


def _lines(phases: Sequence[Phase], saved: Sequence[Saved]) -> Iterator[Line]:
    """List the lines that equations come from, with context, file by file in order of appearance."""
    sources = [row.source for phase in phases for row in phase.walk() if row.source]
    sources += [s.residual.source for s in saved if s.residual.source]
    executed = dict.fromkeys(SourceLine(source.file, source.line) for source in sources)
    heads = {SourceLine(source.file, source.code.co_firstlineno) for source in sources}
    keys = (f"s{i}" for i in count(1))
    for file in dict.fromkeys(place.file for place in executed):
        linecache.checkcache(file)
        shown = {n for at, n in executed if at == file for n in range(n - CONTEXT, n + CONTEXT + 1)}
        shown |= {n for at, n in heads if at == file}
        for n in sorted(shown):
            place, text = SourceLine(file, n), linecache.getline(file, n).rstrip("\n")
            if text or place in executed:
                yield Line(next(keys), place, text, place in executed)


# ---- provenance ----------------------------------------------------------------------------------------------
# Provenance of equations across transformations, by the source lines that they carry.
#
# Transforms run the rule of an equation under its line, so that what the rule builds has that line. A mark is a line
# that also knows its equation: of a program whose lines are marks, every program that is derived says equation by
# equation what it is made from, however it was simplified since.


class Mark(Source):
    """The place of an equation, and the equation."""

    __slots__ = ("equation",)

    def __init__(self, place: Source, equation: Equation) -> None:
        super().__init__(place.code, place.instruction)
        self.equation: Final = equation


def mark_equations(jaxpr: Jaxpr, known: dict[Jaxpr, Jaxpr] | None = None) -> Jaxpr:
    """Mark the equations of a program, and of the programs it carries, so that provenance can be told.

    Args:
      known: programs marked already, which stay shared.
    """
    known = {} if known is None else known
    if jaxpr not in known:
        known[jaxpr] = jaxpr.replace(eqns=[_marked_equation(eqn, known) for eqn in jaxpr.eqns])
    return known[jaxpr]


def made_from(eqn: Equation) -> Equation | None:
    """Return the equation of a marked program that `eqn` was made from, if its source line says so."""
    return eqn.source.equation if isinstance(eqn.source, Mark) else None


def _marked_equation(eqn: Equation, known: dict[Jaxpr, Jaxpr]) -> Equation:
    params = map_subjaxprs(lambda inner: mark_equations(inner, known), eqn.params)
    return eqn.replace(params=params, source=Mark(eqn.source, eqn) if eqn.source else None)
