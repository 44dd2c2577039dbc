"""A profile as text of a terminal: the stages, then the lines, the dearest first."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tapeless.lowering.optimized_program import SourcePlace
from tapeless.tracer.source import line_of, short_path

if TYPE_CHECKING:
    from tapeless.compile.profile import LineProfile, Profile

SHOWN = 30  # lines
TEXT = 60  # characters of a line's text
NOTE = (
    "time: of the kernels whose result is computed at the line, by XLA's profiler, with what is fused into them\n"
    "(+ lines); writes: what these kernels write; operations: of the simplified program, as tl.cost counts."
)


def text(profile: "Profile") -> str:
    """Render the stages and the lines."""
    return "\n".join([profile.title, *_stages(profile), "", *_lines(profile)])


def _stages(profile: "Profile") -> Iterator[str]:
    width = max(len(stage.name) for stage in profile.stages)
    for stage in profile.stages:
        yield f"{stage.name:{width}}  {time_text(stage.seconds):>8}  {stage.result}"


def _lines(profile: "Profile") -> Iterator[str]:
    if profile.kernels is None:
        yield f"No times by line: {profile.unrecorded}"
    kept = range(len(HEADS)) if profile.kernels is not None else [HEADS.index("line"), HEADS.index("operations")]
    heads, *shown = [[row[i] for i in kept] for row in (HEADS, *[cells(profile, x) for x in profile.lines[:SHOWN]])]
    widths = [max(map(len, column)) for column in zip(heads, *shown, strict=True)]
    for row, line in zip([heads, *shown], [None, *profile.lines]):
        first, *others = [cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths))]
        words = source_text(line.place)[:TEXT] if line else ""
        yield "  ".join([first, *others, words]).rstrip()
    if len(profile.lines) > SHOWN:
        yield f"and {len(profile.lines) - SHOWN} lines more, in .lines"
    yield from [NOTE] if profile.kernels is not None else []


HEADS = ("line", "time", "share", "kernels", "writes", "operations", "fused")


def cells(profile: "Profile", line: "LineProfile") -> tuple[str, ...]:
    """Write the cells of a line, under HEADS; nothing is written for nothing."""
    measured = (
        time_text(line.seconds),
        f"{share(profile, line):.0%}",
        f"{line.kernels:,}",
        bytes_text(line.nbytes),
    )
    blank = ("",) * len(measured)
    fused = " ".join(f"+{_short(other, line.place)}" for other in line.fused)
    operations = f"{line.operations:,}" if line.operations else ""
    return place_text(line.place), *(measured if line.kernels else blank), operations, fused


def share(profile: "Profile", line: "LineProfile") -> float:
    """Compute the part of the time of all kernels that is spent in those of a line."""
    return line.seconds / (sum(each.seconds for each in profile.lines) or 1.0)


def place_text(place: SourcePlace | None) -> str:
    """Write a place: `model.py:12`."""
    return f"{short_path(place.file)}:{place.line}" if place else "no line"


def _short(place: SourcePlace, beside: SourcePlace | None) -> str:
    """Write the number of a line in the same file, the file as well in another."""
    return str(place.line) if beside and beside.file == place.file else place_text(place)


def source_text(place: SourcePlace | None) -> str:
    """Return the text of a line."""
    return line_of(*place).strip() if place else ""


def time_text(seconds: float) -> str:
    """Write a duration in three digits: `1.23 s`, `45.6 ms`, `789 µs`."""
    unit, factor = next(((u, f) for u, f in _UNITS if seconds >= f), _UNITS[-1])
    n = seconds / factor
    return f"{n:.{2 if n < 10 else 1 if n < 100 else 0}f} {unit}"


_UNITS = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6))


def bytes_text(n: float) -> str:
    """Write a size in three digits: `512 B`, `1.44 MB`."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n >= factor:
            return f"{n / factor:.3g} {unit}"
    return f"{n:.0f} B"


def describe_spread(first: float, runs: Sequence[float]) -> str:
    """Say of how many calls a time is the median, and how they differ."""
    extremes = f"from {time_text(min(runs))} to {time_text(max(runs))}"
    return f"the median of {len(runs)} calls, {extremes}; the first took {time_text(first)}"
