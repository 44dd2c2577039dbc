"""A frontier as HTML, an element for a notebook and a page on its own: the curve, and the table below it."""

from collections.abc import Iterator
from math import log10
from typing import TYPE_CHECKING

from tapeless.explanation.charts import Point, Scale, chart, round_marks, table, write_bytes
from tapeless.explanation.documents import document, escape_html, file_text

if TYPE_CHECKING:
    from tapeless.explanation.frontier import Frontier, FrontierRow

WIDE = 20  # times the least are the most bytes of an axis that is not logarithmic


def page(frontier: "Frontier") -> str:
    """Write a whole document."""
    return document(f"{frontier.name}: memory and operations", fragment(frontier), file_text("document.css"))


def fragment(frontier: "Frontier") -> str:
    """Render the HTML element for a notebook, with its own style."""
    return "\n".join(
        [
            f'<div class="tapeless-chart">\n<style>\n{file_text("chart.css")}</style>',
            f"<h2><code>{escape_html(frontier.name)}</code>: {frontier.subject}</h2>",
            _picture(frontier),
            *table(frontier.heads, map(frontier.cells, frontier.rows)),
            f"<p>{escape_html(frontier.note)}</p>\n</div>",
        ]
    )


def _picture(frontier: "Frontier") -> str:
    rows = frontier.rows
    most, dearest = rows[0].peak, max(1.05, *[row.operations for row in rows])
    logarithmic = frontier.least > 0 and most > WIDE * frontier.least
    x = _logarithmic(frontier.least, most) if logarithmic else _linear(most)
    y = Scale("operations", [(v, f"{v:.2f}") for v in round_marks(1.0, dearest)], 1.0, dearest)
    points = [
        Point(log10(row.peak) if logarithmic else row.peak, row.operations, "; ".join(_said(row)))
        for row in reversed(rows)
    ]
    return chart(x, y, points)


def _linear(most: int) -> Scale:
    high = max(most, 1)
    return Scale(_BUDGET, [(v, write_bytes(v)) for v in round_marks(0, high)], 0, high)


def _logarithmic(least: int, most: int) -> Scale:
    low, high = log10(least), log10(most)
    powers = [k * 10**power for power in range(int(low), int(high) + 1) for k in (1, 2, 5)]
    marks = [(log10(v), write_bytes(v)) for v in powers if low <= log10(v) <= high]
    return Scale(f"{_BUDGET}, logarithmic", marks, low, high)


_BUDGET = "budget: bytes live at once, beyond arguments and results"


def _said(row: "FrontierRow") -> Iterator[str]:
    """Say what a point stands for."""
    yield f"{write_bytes(row.peak)}, {row.part:.2f} of the most"
    yield f"{row.operations:.2f} times the operations"
    if row.temporaries is not None:
        yield f"{write_bytes(row.temporaries)} of temporaries, compiled"
    yield f"computed again: {row.choice}"
