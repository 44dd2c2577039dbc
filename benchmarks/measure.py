"""Measure one case of the yardstick in this process, and print what was measured as JSON.

    python -m benchmarks.measure together CASE ...    both libraries in turn: tracing, compiling, running
    python -m benchmarks.measure alone CASE LIBRARY   the first call of one library in a new process, and its memory

`benchmarks.__main__` starts these processes; the cache on disk is where their environment says.
"""

import importlib
import json
import resource
import sys
from collections.abc import Callable, Sequence, Set
from functools import partial
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import Any

from benchmarks.harness import Pair, Thunk, in_turn, libraries, repeated, sample
from benchmarks.programs import PROGRAMS
from benchmarks.programs.program import Case

Measured = dict[str, tuple[float, float]]
SAMPLE = 0.02  # seconds that a sample of repeated calls takes at least, of both libraries the same number of calls
COMPILATIONS = 3
TRIAL = 0.002  # seconds of calls back to back that tell how long one takes: one alone has sleeping threads to wake


def to_text(case: Case) -> str:
    fields = ("name", "label", "sizes", "dtype", "composition")
    return json.dumps({field: getattr(case, field) for field in fields})


def from_text(text: str) -> Case:
    fields = json.loads(text)
    return Case(**fields, program=PROGRAMS[fields["name"]])


def set_width(lib: ModuleType, case: Case) -> None:
    lib.config.update("jax_enable_x64", case.dtype == "float64")


def lowering(lib: ModuleType, case: Case) -> Thunk:
    """Return a thunk that traces the derivative of a new function, and prints its program."""
    args = case.problem(lib)[2]
    return lambda: lib.jit(case.problem(lib)[1]).lower(*args).as_text()


def steady(lib: ModuleType, f: Callable[..., Any], args: tuple[Any, ...]) -> Thunk:
    run = lib.jit(f)
    return lambda: lib.block_until_ready(run(*args))


def fastest_in_turn(thunks: Sequence[Thunk], repeats: int, budget: float) -> tuple[float, float]:
    """Return the fastest samples of both: what else a machine does makes a sample slower, and none faster."""
    ours, baseline = in_turn(thunks[0], thunks[1], repeats, budget)
    return min(ours), min(baseline)


def per_call(pair: Pair, thunks: Sequence[Thunk], repeats: int, budget: float) -> tuple[float, float]:
    """Time thunks, run before, as many calls a sample as take `SAMPLE` seconds."""
    number = max(1, int(SAMPLE / min(map(seconds_per_call, thunks))))
    many = [repeated(lib, thunk, number) for lib, thunk in zip((pair.ours, pair.baseline), thunks)]
    ours, baseline = fastest_in_turn(many, repeats, budget)
    return ours / number, baseline / number


def repeatedly(thunk: Thunk, number: int) -> None:
    for _ in range(number):
        thunk()


def seconds_per_call(thunk: Thunk) -> float:
    number, took = 1, sample(thunk)
    while took < TRIAL:
        number *= 10
        took = sample(partial(repeatedly, thunk, number))
    return took / number


def together(pair: Pair, case: Case, columns: Set[str], repeats: int, budget: float) -> Measured:
    """Compare the values of both libraries, and measure them in turn."""
    both = (pair.ours, pair.baseline)
    for lib in both:
        set_width(lib, case)
    measured: Measured = {}
    if "lower" in columns:
        thunks = [lowering(lib, case) for lib in both]
        _ = [thunk() for thunk in thunks]  # imports what is imported late, fills caches of inner pieces
        measured["lower"] = fastest_in_turn(thunks, repeats, budget)
    functions, derivatives, arguments = zip(*(case.problem(lib) for lib in both))
    if columns & {"compile", "memory"}:
        measured |= compiled_in_turn(both, derivatives, arguments, budget)
    thunks = [steady(lib, f, args) for lib, f, args in zip(both, derivatives, arguments)]
    pair.agree(dict(zip(both, thunks)).__getitem__, case.tolerance)
    if "gradient" in columns:
        measured["gradient"] = per_call(pair, thunks, repeats, budget)
    if "function" in columns:
        thunks = [steady(lib, f, args) for lib, f, args in zip(both, functions, arguments)]
        pair.agree(dict(zip(both, thunks)).__getitem__, case.tolerance)
        measured["function"] = per_call(pair, thunks, repeats, budget)
    return {column: both for column, both in measured.items() if column in columns}


def compiled_in_turn(
    libraries: Sequence[ModuleType], functions: Sequence[Callable[..., Any]], arguments: Sequence[Any], budget: float
) -> Measured:
    """Compile with both libraries in turn, as often as the budget allows; the fastest counts."""
    began, samples = perf_counter(), []
    while not samples or (len(samples) < COMPILATIONS and perf_counter() - began < budget):
        name = f"sample_{len(samples)}"  # equal programs of one name may be found in memory
        samples.append([compiled(lib, f, args, name) for lib, f, args in zip(libraries, functions, arguments)])
    (ours, our_bytes), (baseline, its_bytes) = (min(of_one) for of_one in zip(*samples))
    return {"compile": (ours, baseline), "memory": (our_bytes, its_bytes)}


def compiled(lib: ModuleType, f: Callable[..., Any], args: tuple[Any, ...], name: str) -> tuple[float, float]:
    """Measure the seconds of compiling, and the bytes that the compiled program needs, arguments included."""

    def program(*args: Any) -> Any:
        return f(*args)

    program.__name__ = name
    lowered = lib.jit(program).lower(*args)
    began = perf_counter()
    done = lowered.compile()
    took = perf_counter() - began
    memory = done.memory_analysis()
    return took, memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes


def alone(lib: ModuleType, case: Case) -> tuple[float, float]:
    """Measure the seconds of the first call of a process that has its arguments, and the greatest memory it had."""
    set_width(lib, case)
    _, derivative, args = case.problem(lib)
    lib.block_until_ready(args)
    began = perf_counter()
    lib.block_until_ready(lib.jit(derivative)(*args))
    return perf_counter() - began, peak_bytes()


def peak_bytes() -> float:
    """Read the greatest resident memory. Linux's `ru_maxrss` may be that of the process which started this one."""
    status = Path("/proc/self/status")
    if status.exists():
        return 1024.0 * int(status.read_text().split("VmHWM:")[1].split()[0])
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * (1 if sys.platform == "darwin" else 1024)


def main() -> None:
    kind, text, *rest = sys.argv[1:]
    case = from_text(text)
    if kind == "alone":
        measured: Any = alone(importlib.import_module(rest[0]), case)
    else:
        control, repeats, budget, *columns = rest
        measured = together(libraries(control == "True"), case, set(columns), int(repeats), float(budget))
    print(json.dumps(measured))


if __name__ == "__main__":
    main()
