"""An explanation as text of a terminal: one table for each phase, columns aligned across them."""

import unicodedata
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from tapeless.explanation.live_bytes import LiveBytes
from tapeless.explanation.tables import InnerProgram, Phase, Row, Saved, Tables
from tapeless.interpreters.analysis.cost import Cost

WIDTH = 120
NARROWEST = 36  # of the column of equations
KINDS = {"nonlinear": "nonlinear", "adds": "adds", "multiplies": "muls", "drops": "drops", "moved": "moved"}


class _TableLine(NamedTuple):
    """One line of a table: number cells align to the right, the text in the middle takes the rest."""

    key: str = ""
    text: str = ""
    numbers: tuple[str, ...] = ()
    origin: str = ""
    place: str = ""


def text(name: str, tables: Tables) -> str:
    """Render the phases one above the other, then the residuals."""
    kinds = [kind for kind in KINDS if any(getattr(phase.cost, kind) for phase in tables.phases)]
    blocks = [list(_phase(phase, tables, kinds)) for phase in tables.phases]
    blocks.append(list(_residuals(tables, len(kinds))))
    file, blocks = _without_file(blocks)
    widths = _widths([line for block in blocks for line in block])
    drawn = ["\n".join(row for line in block for row in _drawn(line, widths)) for block in blocks]
    head = [summary(name, tables), *_live(tables.live), *([f"lines of {file}"] if file else [])]
    return "\n\n".join(["\n".join(head), *drawn])


def _live(live: LiveBytes) -> Iterator[str]:
    """Draw the live bytes over both passes."""
    most = live.nbytes[live.peak]
    if most:
        eqn = live.equation(live.peak)
        place = f" at {eqn.source}" if eqn and eqn.source else ""
        yield f"live {live} forward, and backward; at most {most:,} bytes{place}"


def _without_file(blocks: list[list[_TableLine]]) -> tuple[str, list[list[_TableLine]]]:
    """Return the file of all places, which then are lines only; empty if they are in several."""
    places = {line.place.rpartition(":")[0] for block in blocks for line in block if ":" in line.place}
    if len(places) != 1:
        return "", blocks
    return places.pop(), [
        [x._replace(place=x.place.rpartition(":")[2].rjust(len("line"))) for x in block] for block in blocks
    ]


def summary(name: str, tables: Tables) -> str:
    """Render the costs of the function, its tangent and its gradient in one line."""
    primal, linear, transposed = [phase.cost.work for phase in tables.phases]
    return (
        f"{name}: work {primal:,} and {tables.residual_bytes:,} bytes of residuals; "
        f"then {linear:,} for a tangent, {transposed:,} for a gradient"
    )


def numbers(cost: Cost, nbytes: int | None, kinds: Sequence[str]) -> tuple[str, ...]:
    """Write cells for the operations by kind, and the bytes; nothing is written for nothing."""
    cells = [*[getattr(cost, kind) for kind in kinds], nbytes]
    return tuple([f"{n:,}" if n else "" for n in cells])


def keys_text(keys: Sequence[str]) -> str:
    """Write keys, `p2-p5 p7`: runs of keys of one letter are shortened."""
    runs: list[list[str]] = []
    for key in keys:
        if runs and _follows(runs[-1][-1], key):
            runs[-1].append(key)
        else:
            runs.append([key])
    return " ".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else " ".join(run) for run in runs)


def _follows(before: str, key: str) -> bool:
    return key[0] == before[0] and int(key[1:]) == int(before[1:]) + 1


def _phase(phase: Phase, tables: Tables, kinds: Sequence[str]) -> Iterator[_TableLine]:
    heads = (*[KINDS[kind] for kind in kinds], "bytes")
    title, note = f"{phase.name.upper()}: work {phase.cost.work:,}", "saved" if phase.name == "primal" else "from"
    yield _TableLine(text=title, numbers=heads, origin=note, place="line")
    yield _TableLine(text=f"takes {', '.join(phase.takes)}")
    yield from _rows(phase.rows, _notes(phase, tables), kinds, "")
    yield _TableLine(text=f"gives {', '.join(phase.gives)}" if phase.gives else "gives nothing")
    if phase.unread:
        yield _TableLine(text="values that nobody reads", numbers=numbers(Cost(drops=phase.unread), None, kinds))
    yield _TableLine(text="total", numbers=numbers(phase.cost, phase.nbytes, kinds))


def _notes(phase: Phase, tables: Tables) -> dict[str, str]:
    """Map each row to its saved residuals, or to the rows that it was made from."""
    if phase.name != "primal":
        return {key: keys_text(keys) + "?" * (key in tables.by_line) for key, keys in tables.origins.items()}
    return {key: keys_text(keys) for key, keys in tables.saves().items()}


def _rows(rows: Sequence[Row], notes: dict[str, str], kinds: Sequence[str], indent: str) -> Iterator[_TableLine]:
    for row in rows:
        cells = numbers(row.cost, row.nbytes, kinds)
        yield _TableLine(row.key, indent + row.text, cells, notes.get(row.key, ""), str(row.source or ""))
        for body in row.bodies:
            yield _TableLine(text=f"{indent}  {body_title(body)}: takes {' '.join(body.takes) or 'nothing'}")
            if body.rows is not None:
                yield from _rows(body.rows, notes, kinds, indent + "    ")
                yield _TableLine(text=f"{indent}    gives {' '.join(body.gives) or 'nothing'}")


def body_title(body: InnerProgram) -> str:
    """Write the title of a body: `@body, 3 times`."""
    return ", ".join(filter(None, [body.title, body.often, "shown above" if body.rows is None else ""]))


def _residuals(tables: Tables, kinds: int) -> Iterator[_TableLine]:
    blank = ("",) * kinds
    yield _TableLine(text="RESIDUALS", numbers=(*blank, "bytes"), origin="made by", place="line")
    for saved in tables.residuals:
        nbytes, line = f"{saved.residual.nbytes:,}", str(saved.residual.source or "")
        yield _TableLine(saved.key, f"{saved.text}, {saved_as(saved)}", (*blank, nbytes), keys_text(saved.makers), line)
    yield _TableLine(text="total", numbers=(*blank, f"{tables.residual_bytes:,}"))


def saved_as(saved: Saved) -> str:
    """Say where a residual comes from: an argument, or the operation that computes it."""
    made = saved.residual
    if made.argument is not None:
        return made.argument
    moved = f", moved to {made.memory}" if made.memory else ""
    return f"{repr(made.name) if made.name else f'from {made.primitive}'}{moved}"


class _Widths(NamedTuple):
    key: int
    text: int
    numbers: tuple[int, ...]
    origin: int
    place: int


def _widths(lines: Sequence[_TableLine]) -> _Widths:
    """Compute column widths: as wide as the cells; the text takes the rest of the terminal."""
    key = max(len(line.key) for line in lines)
    cells = [line.numbers for line in lines if line.numbers]
    widest = tuple([max(map(len, column)) for column in zip(*cells, strict=True)])
    origin, place = min(16, max(len(line.origin) for line in lines)), max(len(line.place) for line in lines)
    left = WIDTH - key - sum(widest) - origin - place - 2 * (len(widest) + 3)
    longest = max(_length(line.text) for line in lines if line.numbers)
    return _Widths(key, max(NARROWEST, min(left, longest)), widest, origin, place)


def _drawn(line: _TableLine, widths: _Widths) -> Iterator[str]:
    """Draw a line of a table, wrapped where a text is too long."""
    texts = wrapped(line.text, widths.text if line.numbers else WIDTH - widths.key - 2)
    origins = wrapped(line.origin, widths.origin, 0)
    once, blank = line, ("",) * len(widths.numbers)
    for words, origin in zip_longest(texts, origins, fillvalue=""):
        figures = [n.rjust(w) for n, w in zip(once.numbers or blank, widths.numbers)]
        cells = [once.key.ljust(widths.key), _padded(words, widths.text), *figures, origin.ljust(widths.origin)]
        yield "  ".join([*cells, once.place]).rstrip()
        once = _TableLine()  # the rest stands on the first line only


def wrapped(words: str, width: int, hang: int = 4) -> list[str]:
    """Wrap a text at `width`, at spaces if possible, with a hanging indent of `hang`."""
    indent = len(words) - len(words.lstrip())
    lines, now = list[str](), " " * indent
    for word in _pieces(words.split(), width - indent - hang):
        longer = f"{now} {word}" if now.strip() else now + word
        if _length(longer) > width and now.strip():
            lines.append(now)
            longer = " " * (indent + hang) + word
        now = longer
    return [*lines, now]


def _pieces(words: Sequence[str], width: int) -> Iterator[str]:
    """Break words that are too long for a line."""
    for word in words:
        while width > 0 and len(word) > width:
            yield word[:width]
            word = word[width:]
        yield word


def _length(words: str) -> int:
    """Count columns of a terminal: the dot of a linear variable stands over its letter."""
    return sum(not unicodedata.combining(c) for c in words)


def _padded(words: str, width: int) -> str:
    return words + " " * max(width - _length(words), 0)
