"""The memory of a gradient before anything is compiled: what is kept and what is live at the peak, and where from."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from tapeless.arguments.argument_checks import FUNCTION_AND_ARGUMENTS, check_callable
from tapeless.differentiate import residuals
from tapeless.differentiate.gradients import TracedGradient, analyze_memory
from tapeless.differentiate.residuals import Residual
from tapeless.explanation.live_bytes import COTANGENTS, LiveBytes
from tapeless.interpreters.residuals.budget import BudgetPlan
from tapeless.interpreters.residuals.segments import Flow
from tapeless.lowering.compile import MemoryAnalysis
from tapeless.tracer.jaxpr import Equation
from tapeless.tracer.source import Source

SHOWN: Final = 12  # rows of a table


class MemoryPart(NamedTuple):
    """A part of the memory, by a line or an operation: bytes of residuals, and bytes that are live at the peak."""

    name: str
    residuals: int
    live: int


class ArgumentMemory(NamedTuple):
    """An argument: its name, `x` or `params['w']`, its bytes, and whether the backward pass reads it."""

    name: str
    nbytes: int
    read: bool


class Memory:
    """The memory of value and gradient, as predicted; prints.

    peak: the most bytes of values that are live at once, beyond arguments and results, counted on the program before it
      is compiled: residuals, until the backward pass has read them, and cotangents. at: the operation of the function
      that the backward pass has reached then; None if nothing is live, or if it has no line.
    temporaries: the bytes that the compiled program, which fuses and copies values, is predicted to allot beyond
      arguments and results. Budgets and `tl.frontier` bound these.
    residuals: the arrays that are live between the two passes, arguments included, as `tl.saved_residuals` lists them,
      but without those that compilers do not store: sums and products of elements of others.
    residual_bytes: of those that are no arguments. cotangents, recomputed: bytes at the peak that are no residuals: of
      cotangents, and of what the body of a checkpoint or a loop computes again.
    lines, operations, transformations: a `MemoryPart` for each, the largest at the peak first; values are counted, not
      buffers of kernels. What comes from no transformation of the function's is a part without a name.
    arguments: an `ArgumentMemory` for each, the largest first. live: the curve of live bytes over both passes.
    compiled: XLA's figures, if they were asked for.
    """

    def __init__(self, gradient: TracedGradient, compiled: MemoryAnalysis | None) -> None:
        flow, n = Flow(gradient.halves), gradient.constants
        place = max(range(len(flow.peaks)), key=flow.peaks.__getitem__)
        described = residuals.residuals_of(flow.halves, n, gradient.names)
        saved = list(_saved(flow, described))
        live = {v for v, k in flow.first_reads.items() if k <= place}
        again = flow.recomputing().get(place)
        self.name: Final = gradient.name
        self.peak: Final = flow.peak
        self.temporaries: Final = BudgetPlan(flow, (), flow.halves).peak
        self.at: Final[Source | None] = flow.halves.primal.eqns[place - 1].source if place else None
        self.residuals: Final = described
        self.residual_bytes: Final = sum([residual.nbytes for _, residual in saved])
        self.recomputed: Final = again.nbytes if again else 0
        self.cotangents: Final = flow.cotangent_bytes()[place] - self.recomputed
        kept = [_MadeBytes(residual, residual.nbytes, residual.nbytes if v in live else 0) for v, residual in saved]
        others = [
            _MadeBytes(None, 0, self.cotangents),
            *([_MadeBytes(_made_by(again.eqn), 0, again.nbytes)] if again else []),
        ]
        parts = [part for part in (*kept, *others) if part.residuals or part.live]
        self.lines: Final = _grouped(parts, _line)
        self.operations: Final = _grouped(parts, lambda r: r.maker or "")
        self.transformations: Final = _grouped(parts, lambda r: _nested(r.transformations))
        self.arguments: Final = tuple(_arguments(gradient, described))
        self.live: Final = LiveBytes(flow, described)
        self.compiled: Final = compiled

    def __str__(self) -> str:
        tables = [_table("line", self.lines), _table("operation", self.operations)]
        if any(part.name not in ("", COTANGENTS) for part in self.transformations):
            tables.append(_table("transformation", self.transformations))
        tables.append(_argument_table(self.arguments))
        blocks = ["\n".join(block) for block in (list(self._summary()), *tables) if block]
        return "\n\n".join([*blocks, *([str(self.compiled)] if self.compiled else [])])

    __repr__ = __str__

    def _summary(self) -> Iterator[str]:
        arguments = sum([x.nbytes for x in self.arguments])
        place = f", where the backward pass is at {self.at.describe()}" if self.at else ""
        figures = [
            ("arguments", arguments, ""),
            ("residuals", self.residual_bytes, "kept for the backward pass, beyond arguments"),
            ("peak", self.peak, f"of values live at once, beyond arguments and results{place}"),
            ("temporaries", self.temporaries, "of the compiled program, which budgets bound"),
        ]
        width = max([len(f"{n:,}") for _, n, _ in figures])
        yield f"{self.name}: memory of value and gradient, in bytes, as predicted"
        for name, n, words in figures:
            yield f"{name:11}  {n:{width},}  {words}".rstrip()
        if self.peak:
            yield f"over time    {self.live}  the forward pass, and the backward pass"


def memory(fun: Callable[..., Any], /, *args: Any, compile: bool = False, **kwargs: Any) -> Memory:
    """Predict the memory of value and gradient: by line, operation, transformation and argument.

    It is what is kept, and what is live at the peak. Nothing is run; nothing is compiled unless you ask for it.

    Args:
      fun: a function to an array or a pytree of arrays, all of which are differentiated: wrap a function with aux,
        `lambda *args: fun(*args)[0]`.
      args, kwargs: arguments of `fun`, of any kind: pytrees of arrays or of their types (`tl.ShapeDtypeStruct`), and
        numbers, texts, functions, None. It is differentiated in all that are inexact. Values are not used, but of what
        is no array, and, if `fun` needs them, of numbers and of arrays that are not inexact.
      compile: whether the program is compiled, for XLA's figures of arguments, results, temporaries and code.
    Returns: a `Memory`, which prints. `tl.frontier` tells how the peak may be lower.
    Raises: TypeError if `fun` cannot be called, a result is no array, or no argument is inexact; whatever tracing `fun`
      raises.

    >>> import tapeless.numpy as tnp
    >>> found = memory(lambda x: tnp.sum(tnp.sin(x) * x), tnp.ones(1000))
    >>> found.residual_bytes, found.peak, found.temporaries
    (8000, 8000, 4000)
    """
    check_callable("memory", fun, expected=FUNCTION_AND_ARGUMENTS)
    gradient = TracedGradient("memory", fun, args, kwargs)
    return Memory(gradient, analyze_memory(gradient.halves) if compile else None)


def _saved(flow: Flow, described: Sequence[Residual]) -> Iterator[tuple[Any, Residual]]:
    """Pair the residuals that are no arguments with the values that they are."""
    primal, _, _, n = flow.halves
    for v, residual in zip(dict.fromkeys(primal.outvars[len(primal.outvars) - n :]), described, strict=True):
        if v in flow.made:
            yield v, residual


class _MadeBytes(NamedTuple):
    """Bytes of one residual, or of what else is live at the peak: made by what it stands for, or a cotangent."""

    made: Residual | None
    residuals: int
    live: int


def _made_by(eqn: Equation) -> Residual:
    """Describe what the bodies of an equation compute again as what it makes."""
    found = residuals.transformations_of(eqn)
    return Residual(eqn.outvars[0].aval, None, str(eqn.primitive), None, eqn.source, transformations=found)


def _grouped(parts: Sequence[_MadeBytes], key: Callable[[Residual], str]) -> tuple[MemoryPart, ...]:
    """Sum the bytes by a key, all residuals and what is live; cotangents are a part of their own."""
    kept, alive = Counter[str](), Counter[str]()
    for part in parts:
        name = COTANGENTS if part.made is None else key(part.made)
        kept[name] += part.residuals
        alive[name] += part.live
    groups = [MemoryPart(name, kept[name], n) for name, n in alive.items()]
    return tuple(sorted(groups, key=lambda group: (-group.live, -group.residuals)))


def _nested(names: Sequence[str]) -> str:
    """Write transformations as calls of each other: `vmap(scan)`."""
    return f"{'('.join(names)}{')' * (len(names) - 1)}"


def _line(residual: Residual) -> str:
    if residual.source is None:
        return residual.argument or "no line"
    return residual.source.describe()


def _arguments(gradient: TracedGradient, described: Sequence[Residual]) -> list[ArgumentMemory]:
    read, n = {residual.argument for residual in described}, gradient.constants
    sizes = [aval.nbytes for aval in gradient.halves.primal.in_avals]
    found = [
        ArgumentMemory(name.removeprefix("the argument "), nbytes, name in read)
        for name, nbytes in zip(gradient.names, sizes[n:], strict=True)
    ]
    outside = [ArgumentMemory("arrays from outside", sum(sizes[:n]), "a constant" in read)] if n else []
    return sorted([*found, *outside], key=lambda x: -x.nbytes)


# ---- text ----------------------------------------------------------------------------------------------------


def _table(title: str, parts: Sequence[MemoryPart]) -> list[str]:
    rows = [(_number(part.residuals), _number(part.live), part.name or "none") for part in parts]
    return _columns(("residuals", "at the peak", title), rows)


def _argument_table(arguments: Sequence[ArgumentMemory]) -> list[str]:
    rows = [(f"{x.nbytes:,}", "kept" if x.read else "", x.name) for x in arguments]
    return _columns(("bytes", "", "argument"), rows)


def _number(n: int) -> str:
    return f"{n:,}" if n else ""


def _columns(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Align the columns of numbers to the right; the last has words. Only the first rows are shown."""
    shown = [heads, *rows[:SHOWN]] if rows else []
    widths = [max(map(len, column)) for column in zip(*shown)]
    lines = ["  ".join([*[cell.rjust(width) for cell, width in zip(row[:-1], widths)], row[-1]]) for row in shown]
    return [*lines, *([f"and {len(rows) - SHOWN} more"] if len(rows) > SHOWN else [])]
