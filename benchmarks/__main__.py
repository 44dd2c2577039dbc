"""How do whole programs compare with JAX, from Python to the last of many calls?

Baseline: JAX, the same programs (benchmarks/programs) through the same compiler, their values compared. Each entry is
ours, and its ratio to JAX's; of times the fastest of samples in turn. The columns, all of value and gradient but for
"function":

    lower      until XLA starts: `jit(gradient).lower(*args).as_text()` of a new function
    compile    XLA, nothing on disk
    first      the first call of a process that finds nothing on disk, and keeps what it compiles
    second     the first call of the next process, which finds it there
    function   a call of the jitted function, waited for; its inputs are on the device
    gradient   the same of its gradient
    memory     bytes of arguments, results and temporaries of the gradient, as the compiler says
    peak       the greatest memory of the process of "first", imports and compiler included
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from benchmarks.harness import machine, seconds
from benchmarks.measure import Measured, to_text
from benchmarks.programs import PROGRAMS
from benchmarks.programs.program import Case, drawn, usual

TOGETHER = ("lower", "compile", "function", "gradient", "memory")
ALONE = ("first", "second", "peak")
COLUMNS = ("lower", "compile", "first", "second", "function", "gradient", "memory", "peak")
BYTES = ("memory", "peak")


@dataclass(frozen=True)
class Result:
    """A case and what was measured of it: ours and the baseline's by column, or why there is nothing."""

    case: Case
    measured: Measured = field(default_factory=dict)
    failure: str = ""

    def ratio(self, column: str) -> float:
        ours, baseline = self.measured[column]
        return ours / baseline if baseline else 1.0 if not ours else math.inf


def child(*arguments: str, cache: str = "") -> str:
    """Run `benchmarks.measure` in a new process, the caches on disk in a directory, or off; return what it prints."""
    caches = {
        "TAPELESS_CACHE": "1" if cache else "0",
        "TAPELESS_CACHE_DIR": cache,
        "JAX_ENABLE_COMPILATION_CACHE": "true" if cache else "false",
        "JAX_COMPILATION_CACHE_DIR": cache,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",  # keep all programs, as ours does
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    command = [sys.executable, "-m", "benchmarks.measure", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | caches)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().rpartition("\n  File ")[2][:1000])  # the last frame, and the error
    return done.stdout


def first_calls(case: Case, control: bool, rounds: int) -> Measured:
    """Measure first calls of both libraries in turn; the least of some rounds counts."""
    libraries = ("jax" if control else "tapeless", "jax")
    found = [[two_processes(case, library) for library in libraries] for _ in range(rounds)]
    both = ([min(samples) for samples in zip(*of_one)] for of_one in zip(*found))
    return dict(zip(ALONE, zip(*both)))


def two_processes(case: Case, library: str) -> tuple[float, float, float]:
    """Measure the first calls of two processes, the second with the cache of the first, and the memory of the first."""
    with tempfile.TemporaryDirectory() as cache:
        first, second = (json.loads(child("alone", to_text(case), library, cache=cache)) for _ in range(2))
    return first[0], second[0], first[1]


def measure(case: Case, columns: Collection[str], options: argparse.Namespace) -> Result:
    wanted = [column for column in TOGETHER if column in columns]
    arguments = (str(options.control), str(options.repeats), str(options.budget), *wanted)
    try:
        measured = json.loads(child("together", to_text(case), *arguments)) if wanted else {}
        if set(columns) & set(ALONE):
            measured |= first_calls(case, options.control, options.rounds)
    except RuntimeError as error:
        return Result(case, failure=str(error))
    return Result(case, measured)


def geometric_mean(ratios: Iterable[float]) -> float:
    return math.exp(sum(logarithms := [math.log(max(x, 1e-9)) for x in ratios]) / len(logarithms))


def entry(result: Result, column: str) -> str:
    ours, _ = result.measured[column]
    text = f"{ours / 2**20:.3g} MB" if column in BYTES else seconds(ours)
    return f"{text:>8}{result.ratio(column):6.2f}"


def row(result: Result, columns: Sequence[str], width: int) -> str:
    name = f"{result.case.name:{width}}"
    if result.failure:
        return f"{name}  failed: {result.failure}\n{'':{width}}  of {result.case!r}"
    return name + "".join(f"  {entry(result, column)}" for column in columns) + f"   {result.case.label}"


def summary(results: Sequence[Result], columns: Sequence[str], width: int) -> str:
    """Print of each column the geometric mean, how many rows are above 1, and the worst row."""
    lines = [f"{'geometric mean':{width}}"]
    lines[0] += "".join(f"  {geometric_mean(r.ratio(c) for r in results):14.2f}" for c in columns)
    lines.append(f"{'worst':{width}}" + "".join(f"  {max(r.ratio(c) for r in results):14.2f}" for c in columns))
    for column in columns:
        ranked = sorted(results, key=lambda r: r.ratio(column), reverse=True)
        worst = ", ".join(f"{r.case.name} {r.ratio(column):.2f}" for r in ranked[:3])
        above = sum(r.ratio(column) > 1 for r in results)
        lines.append(f"  {column:10} above 1: {above} of {len(results)}; worst: {worst}")
    return "\n".join(lines)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--held-out", type=int, metavar="SEED", help="draw sizes, dtypes and compositions anew")
    parser.add_argument("--only", default="", metavar="NAME", help="run programs whose name contains this")
    parser.add_argument("--column", action="append", choices=COLUMNS, help="measure this column, or several")
    parser.add_argument("--size", choices=("small", "large"), help="run programs at this size alone")
    parser.add_argument("--control", action="store_true", help="JAX on both sides: shows the noise")
    parser.add_argument("--repeats", type=int, default=15, help="samples per side")
    parser.add_argument("--rounds", type=int, default=2, help="processes per side, of first calls")
    parser.add_argument("--budget", type=float, default=2.0, help="seconds for the samples of a column, if three fit")
    return parser.parse_args()


def cases(options: argparse.Namespace) -> list[Case]:
    chosen = {name: program for name, program in PROGRAMS.items() if options.only in name}
    if options.held_out is not None:
        return [case for name, program in chosen.items() for case in drawn(name, program, options.held_out)]
    both = [usual(name, program) for name, program in chosen.items()]
    return [case for size in zip(*both) for case in size if options.size in (None, case.label)]


def main() -> int:
    options = arguments()
    columns = [column for column in COLUMNS if column in (options.column or COLUMNS)]
    width, results = max(map(len, PROGRAMS)), list[Result]()
    held_out = "" if options.held_out is None else f", held-out draw {options.held_out}"
    print(f"{(__doc__ or '').splitlines()[0]}\n{machine()}{held_out}\n\n{'':{width}}", end="")
    print("".join(f"  {column:>14}" for column in columns), flush=True)
    for case in cases(options):
        results.append(measure(case, columns, options))
        print(row(results[-1], columns, width), flush=True)
    groups = "drawn" if options.held_out is not None else ""
    good = [result for result in results if not result.failure]
    for label, group in groupby(good, key=lambda result: groups or result.case.label):
        print(f"\nAll {label}\n{summary(list(group), columns, width)}")
    print("\nCannot show: other devices; programs that exceed the caches; differences below the noise, see --control.")
    return int(len(good) < len(results))


if __name__ == "__main__":
    sys.exit(main())
