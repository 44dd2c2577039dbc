"""Draw docs/explain.svg, the picture of `tl.explain` in the README, one row lit: python docs/make_picture.py"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.explanation.links import Links
from tapeless.explanation.tables import Line, Phase, Saved

PICTURE = Path(__file__).with_name("explain.svg")
LIT = "l4"  # and what belongs to it
COLUMN, GAP, ROW, MARGIN = 348, 24, 23, 24
WIDTH = 2 * MARGIN + 3 * COLUMN + 2 * GAP
STYLE = """
  svg { --ground: #fdfdfb; --ink: #1d1f24; --quiet: #6b6f76; --rule: #d9dad6; --lit: #dde9fe; --chosen: #abc9fb;
    --kept: #f7e5c5; --bar: #3478f6; --kept-bar: #d98c0a; }
  @media (prefers-color-scheme: dark) {
    svg { --ground: #15171b; --ink: #e3e5e9; --quiet: #979ca6; --rule: #33363d; --lit: #1a2a48; --chosen: #28498a;
      --kept: #3d2f14; }
  }
  text { font: 13px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: var(--ink); }
  .quiet { fill: var(--quiet); }
  .head { font: 600 11px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; letter-spacing: 0.09em; }
  .end { text-anchor: end; }
  .lit { fill: var(--lit); } .self { fill: var(--chosen); } .kept { fill: var(--kept); }
  .lit-bar, .self-bar { fill: var(--bar); } .kept-bar { fill: var(--kept-bar); }
  line { stroke: var(--rule); }
"""


def f(a, b):
    return tnp.sin(a @ b) * b


def picture() -> str:
    """Draw the picture as SVG."""
    explained = tl.explain(f, tnp.ones((3, 3)), tnp.ones(3))
    tables = explained._rows  # what the notebook shows is drawn of the same
    lit = {LIT, *Links(tables).to(LIT)}
    top = MARGIN + 6 * ROW
    body = [*_source(tables.lines, lit), *_residuals(tables.residuals, lit)]
    for i, phase in enumerate(tables.phases):
        body += _phase(phase, MARGIN + i * (COLUMN + GAP), top, lit)
    height = top + (max(len(phase.rows) for phase in tables.phases) + 2) * ROW + MARGIN
    others = ", ".join(sorted(lit - {LIT}))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">\n'
        "<title>What tl.explain shows of sin(a @ b) * b</title>\n"
        f"<desc>A function, its derivative and its gradient, as three programs side by side. Lit are the row {LIT} "
        f"and what belongs to it: {others}.</desc>\n<style>{STYLE}</style>\n"
        f'<rect width="{WIDTH}" height="{height}" rx="8" style="fill: var(--ground)"/>\n'
        + "\n".join(body)
        + "\n</svg>\n"
    )


def _phase(phase: Phase, x: int, y: int, lit: set[str]) -> Iterator[str]:
    yield from _head(phase.name, x, y, (("work", COLUMN - 56), ("bytes", COLUMN - 8)))
    for n, row in enumerate(phase.rows, 1):
        cells = ((f"{row.cost.work}", COLUMN - 56), (f"{row.nbytes}", COLUMN - 8))
        yield from _row(row.key, row.text, cells, (x, y + n * ROW, COLUMN), lit)
    under = y + (len(phase.rows) + 1) * ROW
    yield _rule(x, under - ROW + 8)
    total = ((f"{phase.cost.work}", COLUMN - 56), (f"{phase.nbytes}", COLUMN - 8))
    yield from _row("", "total", total, (x, under + 2, COLUMN), lit)


def _source(lines: Sequence[Line], lit: set[str]) -> Iterator[str]:
    """Draw the function's two lines."""
    yield from _head("source", MARGIN, MARGIN + 10, ())
    (at,) = [i for i, line in enumerate(lines) if line.executed]
    for n, line in enumerate(lines[at - 1 : at + 1], 1):
        yield from _row(line.key, line.text, (), (MARGIN, MARGIN + 10 + n * ROW, COLUMN), lit, f"{line.place.line}")


def _residuals(residuals: Sequence[Saved], lit: set[str]) -> Iterator[str]:
    x = MARGIN + 2 * (COLUMN + GAP)
    yield from _head("residuals", x, MARGIN + 10, (("bytes", COLUMN - 8),))
    for n, saved in enumerate(residuals, 1):
        cells = ((f"{saved.residual.nbytes}", COLUMN - 8),)
        yield from _row(saved.key, saved.text, cells, (x, MARGIN + 10 + n * ROW, COLUMN), lit)


Cells = Sequence[tuple[str, int]]  # numbers, and where they end


def _head(title: str, x: int, y: int, cells: Cells) -> Iterator[str]:
    yield f'<text class="head" x="{x + 8}" y="{y}">{title.upper()}</text>'
    for words, end in cells:
        yield f'<text class="head quiet end" x="{x + end}" y="{y}">{words}</text>'
    yield _rule(x, y + 7)


def _rule(x: int, y: int) -> str:
    return f'<line x1="{x}" x2="{x + COLUMN}" y1="{y}" y2="{y}"/>'


def _row(
    key: str, words: str, cells: Cells, at: tuple[int, int, int], lit: set[str], shown: str | None = None
) -> Iterator[str]:
    """Draw a row, under it the light if it is lit; `shown` is what it shows of its key."""
    x, y, width = at
    if key in lit:
        kind = "self" if key == LIT else "kept" if key.startswith("m") else "lit"
        yield f'<rect class="{kind}" x="{x}" y="{y - 15}" width="{width}" height="{ROW - 2}" rx="3"/>'
        yield f'<rect class="{kind}-bar" x="{x}" y="{y - 15}" width="3" height="{ROW - 2}"/>'
    yield f'<text class="quiet" x="{x + 8}" y="{y}">{key if shown is None else shown}</text>'
    yield f'<text x="{x + 38}" y="{y}" xml:space="preserve">{escape(words)}</text>'
    for number, end in cells:
        yield f'<text class="end" x="{x + end}" y="{y}">{number}</text>'


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
