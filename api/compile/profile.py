"""Profile a function: the time that its stages take, and the cost of each of its lines while it runs."""

import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from tapeless.arguments.argument_checks import FUNCTION_AND_ARGUMENTS, check_callable
from tapeless.compile import profile_text as terminal
from tapeless.compile.jit import trace_apart
from tapeless.compile.placement import block_until_ready
from tapeless.compile.profile_text import HEADS, NOTE, cells, share, source_text, time_text
from tapeless.interpreters.analysis import cost as counting
from tapeless.lowering import dispatch, emit, kernel_times
from tapeless.lowering.compile import Executable, compile_module
from tapeless.lowering.kernel_times import Kernel
from tapeless.lowering.optimized_program import SourcePlace
from tapeless.tracer.bodies import bodies_of
from tapeless.tracer.jaxpr import Equation, Jaxpr, subjaxprs

# Count the operations of a program by the user's line; those inside loops and branches by the lines of the bodies.


def operations_by_line(jaxpr: Jaxpr) -> Counter[SourcePlace | None]:
    """Count the operations of a program, as `tl.cost` does, by the line that they come from; None where none is known.

    Of branches the dearest counts, of a `while` loop one step; values that nobody reads are of no line.
    """
    found = Counter[SourcePlace | None]()
    for eqn in jaxpr.eqns:
        found.update(_of_equation(eqn))
    found[None] += counting.work(jaxpr) - found.total()
    return found


def _of_equation(eqn: Equation) -> Counter[SourcePlace | None]:
    place = SourcePlace(eqn.source.file.replace("\\", "/"), eqn.source.line) if eqn.source else None
    found = Counter[SourcePlace | None]()
    for body, times in _programs_that_count(eqn):
        found.update({at: times * n for at, n in operations_by_line(body).items() if at})
    found[place] += counting.equation_cost(eqn).work - found.total()
    return found


def _programs_that_count(eqn: Equation) -> Iterator[tuple[Jaxpr, int]]:
    """Yield the programs that an equation carries, and how often they count in its cost."""
    bodies = bodies_of(eqn)
    if bodies is None:
        yield from ((program, 1) for program in subjaxprs(eqn.params))
    elif bodies.selector is not None:
        yield max([body.jaxpr for body in bodies.each], key=counting.work), 1
    else:
        yield from ((body.jaxpr, 1 if bodies.steps is None else len(bodies.steps)) for body in bodies.each)


T = TypeVar("T")
LONGEST, MOST_RUNS, FEWEST_RUNS = 0.5, 50, 3  # seconds and calls that measuring takes
RECORDED_RUNS = 3


class StageTime(NamedTuple):
    """A stage: its duration, and a word on its result."""

    name: str
    seconds: float
    result: str


class LineProfile(NamedTuple):
    """A line, and its cost in one run; `place` is None for operations of no line.

    operations: of the program that is compiled, as `tl.cost` counts them.
    kernels: those whose result is computed at this line; calls, seconds, nbytes: theirs, all together.
    fused: lines whose operations these kernels compute besides.
    """

    place: SourcePlace | None
    operations: int
    kernels: int
    calls: float
    seconds: float
    nbytes: float
    fused: tuple[SourcePlace, ...]


class Profile:
    """Times of tracing, simplifying, lowering, compiling and running, and the costs of each line.

    stages: a `StageTime` for each. lines: a `LineProfile` for each line, the dearest first. runs: seconds of each call.
    kernels: what the compiled program consists of; None if they were not recorded, as `unrecorded` says.
    Prints; shows itself in a notebook; `save("f.html")` writes a page.
    """

    def __init__(
        self,
        title: str,
        stages: Sequence[StageTime],
        runs: Sequence[float],
        operations: dict[SourcePlace | None, int],
        kernels: Sequence[Kernel] | None,
        unrecorded: str,
    ) -> None:
        self.title: Final = title
        self.stages: Final = tuple(stages)
        self.runs: Final = tuple(runs)
        self.kernels: Final = kernels
        self.unrecorded: Final = unrecorded
        self.lines: Final = tuple(_lines(operations, kernels or ()))

    def __str__(self) -> str:
        return terminal.text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return fragment(self)

    def save(self, path: str | Path) -> None:
        """Write a page that needs nothing else, to be opened in a browser.

        Raises: OSError if the file cannot be written.
        """
        Path(path).write_text(page(self), encoding="utf-8")


def profile(fun: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Profile:
    """Measure how long a function takes to trace, simplify, lower, compile and run, and the time of each source line.

    Nothing that was traced or compiled before is used, neither the cache on disk. The function is run many times, with
    all that it does besides (callbacks, prints); nothing is donated. Times are of this machine and this moment.

    Args:
      fun: a function of arrays, jitted or not; it is compiled as a whole.
      args, kwargs: values.
    Returns: a `Profile`. Operations are those of the simplified program, by line. Times and bytes by line are those of
      the compiled program, as far as XLA tells: a kernel belongs to the line of its result, whatever else is fused into
      it. Their sum is more than a run where kernels run side by side, and less where the device waits.
    Raises: TypeError if `fun` cannot be called, or reads or writes references, or arguments are no values; whatever
      tracing, compiling or running `fun` raises; OverflowError as `jit`.

    >>> import tapeless.numpy as tnp
    >>> [stage.name for stage in profile(lambda x: tnp.sum(tnp.sin(x)), tnp.ones(100)).stages]
    ['tracing', 'simplifying', 'lowering', 'compiling', 'running']
    """
    check_callable("profile", fun, expected=FUNCTION_AND_ARGUMENTS)
    (traced, leaves, device), tracing = _timed(lambda: trace_apart("profile", fun, args, kwargs))
    if traced.references is not None:
        raise TypeError(f"profile: {traced.type.function} reads or writes references, which each run would change.")
    traced.type.check_fit(leaves)
    jaxpr, consts = traced.to_compile.jaxpr, traced.to_compile.consts
    prepared, simplifying = _timed(lambda: emit.prepare_program(jaxpr, jaxpr.name, device.platform))
    module, lowering = _timed(lambda: emit.write_module(prepared, (), jaxpr.name, device.platform))
    executable, compiling = _timed(lambda: _compiled(module, jaxpr, device, traced.options))
    bufs = [dispatch.buffer_on(x, device) for x in (*consts, *leaves)]
    first, *runs = _runs(lambda: block_until_ready(executable.call(bufs)))
    kernels, unrecorded = _recorded(executable, bufs)
    stages = (
        StageTime("tracing", tracing, f"a program of size {counting.program_size(jaxpr):,}"),
        StageTime("simplifying", simplifying, f"to size {counting.program_size(prepared):,}"),
        StageTime("lowering", lowering, f"{module.text.count(chr(10)):,} lines of StableHLO"),
        StageTime("compiling", compiling, _compiled_to(executable, kernels)),
        StageTime("running", statistics.median(runs), terminal.describe_spread(first, runs)),
    )
    return Profile(
        f"{traced.type.name} on {device}", stages, runs, dict(operations_by_line(prepared)), kernels, unrecorded
    )


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    start = time.perf_counter()
    return work(), time.perf_counter() - start


def _compiled(module: emit.Emitted, jaxpr: Jaxpr, device: Any, options: Any) -> Executable:
    return compile_module(
        module.text,
        out_avals=jaxpr.out_avals,
        device=device,
        options=options,
        callbacks=module.callbacks,
        use_cache=False,
    )


def _compiled_to(executable: Executable, kernels: Sequence[Kernel] | None) -> str:
    memory = executable.memory_analysis().temp_size_in_bytes
    parts = [] if kernels is None else [f"{len(kernels):,} kernels"]
    return ", ".join([*parts, f"{terminal.bytes_text(memory)} of temporaries"])


def _runs(run: Callable[[], Any]) -> list[float]:
    """Measure the seconds of each of many runs, of which the first may wait for more than the others."""
    found: list[float] = []
    while len(found) <= FEWEST_RUNS or (len(found) <= MOST_RUNS and sum(found) < LONGEST):
        found.append(_timed(run)[1])
    return found


def _recorded(executable: Executable, bufs: Sequence[Any]) -> tuple[tuple[Kernel, ...] | None, str]:
    """Record the kernels, or say why there are none."""
    try:
        found = kernel_times.kernels(executable, lambda: block_until_ready(executable.call(bufs)), RECORDED_RUNS)
    except RuntimeError as error:
        return None, str(error)
    return (found, "") if found else (None, f"the profiler records no kernels on {executable.device}.")


# ---- lines


def _lines(operations: dict[SourcePlace | None, int], kernels: Sequence[Kernel]) -> Iterator[LineProfile]:
    by_line: dict[SourcePlace | None, list[Kernel]] = {place: [] for place, n in operations.items() if n}
    for kernel in kernels:
        by_line.setdefault(kernel.places[0] if kernel.places else None, []).append(kernel)
    lines = [_line(place, operations.get(place, 0), found) for place, found in by_line.items()]
    yield from sorted(lines, key=lambda line: (-line.seconds, -line.operations, str(line.place)))


def _line(place: SourcePlace | None, operations: int, kernels: Sequence[Kernel]) -> LineProfile:
    fused = sorted({other for kernel in kernels for other in kernel.places if other != place})
    return LineProfile(
        place,
        operations,
        len(kernels),
        sum(kernel.calls for kernel in kernels),
        sum(kernel.seconds for kernel in kernels),
        sum(kernel.nbytes for kernel in kernels),
        tuple(fused),
    )


# ---- the page ------------------------------------------------------------------------------------------------
# A profile as HTML: an element for a notebook, and a page on its own; bars show the shares of the time.


_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})


def page(profile: Profile) -> str:
    """Write a whole document."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{_escaped(profile.title)}: its profile</title>\n"
        "<style>:root { color-scheme: light dark; } body { margin: 20px; }</style>\n</head>\n<body>\n"
        f"{fragment(profile)}\n</body>\n</html>\n"
    )


def fragment(profile: Profile) -> str:
    """Render the HTML element for a notebook, with its own style."""
    style = Path(__file__).with_name("profile.css").read_text(encoding="utf-8")
    note = f"No times by line: {profile.unrecorded}" if profile.kernels is None else NOTE
    return "\n".join(
        [
            f'<div class="tapeless-profile">\n<style>\n{style}</style>',
            f"<h2><code>{_escaped(profile.title)}</code></h2>",
            *_table(("stage", "time", ""), _stages(profile)),
            *_table((*HEADS, ""), _rows_of_lines(profile)),
            f"<p>{_escaped(note)}</p>\n</div>",
        ]
    )


def _stages(profile: Profile) -> Iterator[tuple[Sequence[str], float]]:
    longest = sum(stage.seconds for stage in profile.stages)
    for stage in profile.stages:
        yield (stage.name, time_text(stage.seconds), stage.result), stage.seconds / longest


def _rows_of_lines(profile: Profile) -> Iterator[tuple[Sequence[str], float]]:
    for line in profile.lines:
        yield (*cells(profile, line), source_text(line.place)), share(profile, line)


def _table(heads: Sequence[str], rows: Iterator[tuple[Sequence[str], float]]) -> Iterator[str]:
    yield f"<table>\n<tr>{''.join(f'<th>{head}</th>' for head in heads)}</tr>"
    for (first, *figures, words), part in rows:
        numbers = "".join(f"<td>{_escaped(cell)}</td>" for cell in figures)
        bar = f'<td class="words bar" style="--share: {part:.1%}"><code>{_escaped(words)}</code></td>'
        yield f"<tr><td><code>{_escaped(first)}</code></td>{numbers}{bar}</tr>"
    yield "</table>"


def _escaped(words: str) -> str:
    return words.translate(_ESCAPES)
