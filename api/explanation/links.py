"""Links between rows of an explanation: made from, saved as, read by, on the line."""

from collections.abc import Iterator, Sequence
from itertools import chain

from tapeless.explanation.tables import Line, Row, Saved, SourceLine, Tables, inverse
from tapeless.explanation.terminal_text import keys_text, saved_as
from tapeless.tracer.source import Source


class Links:
    """The rows that each row of an explanation lights, nearest first, and a sentence about them."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._rows: dict[str, Row] = {row.key: row for phase in tables.phases for row in phase.walk()}
        self._residuals: dict[str, Saved] = {saved.key: saved for saved in tables.residuals}
        self._lines: dict[str, Line] = {line.key: line for line in tables.lines if line.executed}
        self._at: dict[SourceLine, str] = {line.place: line.key for line in self._lines.values()}
        self._made = inverse(tables.origins)
        self._saves = tables.saves()
        self._reads = inverse({saved.key: saved.readers for saved in tables.residuals})

    def to(self, key: str) -> tuple[str, ...]:
        """List the keys to light together with `key`."""
        found = self._of_line(key) if key in self._lines else self._of_row(key)
        return tuple(dict.fromkeys(other for other in found if other != key))

    def note(self, key: str) -> str:
        """Write a note: `l2: made from p3; becomes t2; reads m1; model.py:7  y = sin(x) * x`."""
        if key in self._lines:
            line = self._lines[key]
            return f"line {line.place.line}: {keys_text(sorted(self.to(key), key=_in_order))}"
        parts = [f"{verb} {keys_text(keys)}" for verb, keys in self._relations(key) if keys]
        return "; ".join([f"{key}: {', '.join(parts)}" if parts else key, *self._where(key)])

    def line(self, source: Source | None) -> str | None:
        """Return the key of a line, if it is shown."""
        return source and self._at.get(SourceLine(source.file, source.line))

    def short(self, lines: Sequence[Line]) -> str:
        """Return the short name of the file of `lines`."""
        sources = chain(
            [row.source for row in self._rows.values()], [x.residual.source for x in self._residuals.values()]
        )
        return next(str(s).rpartition(":")[0] for s in sources if s and s.file == lines[0].place.file)

    def _relations(self, key: str) -> Iterator[tuple[str, Sequence[str]]]:
        if key in self._residuals:
            yield f"{saved_as(self._residuals[key])}, made by", self._residuals[key].makers
            yield "read by", self._residuals[key].readers
            return
        guessed = "on the line of" if key in self._tables.by_line else "made from"
        yield guessed, self._tables.origins.get(key, ())
        yield "transposed into" if key[0] == "l" else "linearized into", self._made.get(key, ())
        yield "saved as", self._saves.get(key, ())
        yield "reads", self._reads.get(key, ())

    def _where(self, key: str) -> Iterator[str]:
        source = self._residuals[key].residual.source if key in self._residuals else self._rows[key].source
        if source is not None:
            yield f"{source}  {self._lines[self._at[SourceLine(source.file, source.line)]].text.strip()}"

    def _of_row(self, key: str) -> Iterator[str]:
        for _, keys in self._relations(key):
            yield from keys
        yield from self._beyond(key)
        place = self._residuals[key].place if key in self._residuals else self._rows[key].place
        if place is not None:
            yield self._at[place]

    def _beyond(self, key: str) -> Iterator[str]:
        """Follow origins over two programs: from transposed to primal rows, and back."""
        for other in self._tables.origins.get(key, ()):
            yield from self._tables.origins.get(other, ())
        for other in self._made.get(key, ()):
            yield from self._made.get(other, ())

    def _of_line(self, key: str) -> Iterator[str]:
        place = self._lines[key].place
        yield from [row.key for row in self._rows.values() if row.place == place]
        yield from [saved.key for saved in self._residuals.values() if saved.place == place]


def _in_order(key: str) -> tuple[int, int]:
    return "pltms".index(key[0]), int(key[1:])
