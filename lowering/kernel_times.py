"""Times of the kernels of a compiled program, as jaxlib's profiler records them while it runs."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tapeless.lowering import optimized_program, profiler_sessions
from tapeless.lowering.compile import Executable
from tapeless.lowering.optimized_program import CONTROL_FLOW, Computations, Instruction, SourcePlace
from tapeless.lowering.profiler_sessions import RecordedEvent


class Kernel(NamedTuple):
    """An instruction of a compiled program, and its cost in one run, on average.

    places: the user's source lines: its own, and those of instructions fused into it. calls: how often it ran.
    seconds, nbytes: the time of all calls together, and the bytes that they write.
    """

    name: str
    places: tuple[SourcePlace, ...]
    calls: float
    seconds: float
    nbytes: float


def kernels(executable: Executable, run: Callable[[], Any], runs: int) -> tuple[Kernel, ...]:
    """Run a program `runs` times and return its kernels with their times, in the order of the program's text.

    Args:
      run: runs the program once, and waits for it.
    Returns: no kernels if the profiler records none on this device.
    Raises: RuntimeError if a trace is being recorded.
    """
    program = optimized_program.computations(executable.as_text())
    spans = _spans(_recorded(run, runs), executable.loaded.hlo_modules()[0].name)
    instructions = {i.name: i for body in program.values() for i in body.values()}
    return tuple(
        [
            _kernel(i, program, spans[name], runs)
            for name, i in instructions.items()
            if name in spans and not _is_apart(i, program, spans)
        ]
    )


def _kernel(instruction: Instruction, program: Computations, spans: list[float], runs: int) -> Kernel:
    calls = len(spans) / runs
    nbytes = calls * optimized_program.bytes_written(instruction, program)
    return Kernel(
        instruction.name, optimized_program.lines_fused(instruction, program), calls, sum(spans) / runs, nbytes
    )


def _is_apart(instruction: Instruction, program: Computations, spans: dict[str, list[float]]) -> bool:
    """Tell whether the kernels inside a loop or branch were recorded by themselves; a small one is a single kernel."""
    return instruction.opcode in CONTROL_FLOW and any(
        name in spans for body in instruction.calls for name in program.get(body, {})
    )


def _recorded(run: Callable[[], Any], runs: int) -> list[RecordedEvent]:
    options = profiler_sessions.profiler.ProfileOptions()
    options.python_tracer_level = 0
    return profiler_sessions.record_events(lambda: [run() for _ in range(runs)], options)


def _spans(recorded: Sequence[RecordedEvent], module: str) -> dict[str, list[float]]:
    """Map names of instructions to the seconds of each of their recorded executions.

    A kernel may go on in other threads after its event is over; another event, for its end, then names the first.
    """
    ends = {e.stats["_c"]: e.start for e in recorded if e.name.startswith("end: ") and "_c" in e.stats}
    found: dict[str, list[float]] = {}
    for event in recorded:
        if event.stats.get("hlo_module") == module and "hlo_op" in event.stats:
            last = max(event.end, ends.get(event.stats.get("_p"), event.end))
            found.setdefault(event.stats["hlo_op"], []).append((last - event.start) * 1e-9)
    return found
