"""Charts as SVG: a curve over a range of numbers, whose points say on hover what they stand for.

A point of few is a dot. A point of many, as of a curve over time, is all that is above and below its step; a script may
tell more of it, by the attributes that it has.
"""

from collections.abc import Iterable, Iterator, Sequence
from math import ceil, floor, log10
from typing import Final, NamedTuple

from tapeless.explanation.documents import compact_number, escape_html

WIDTH, HEIGHT = 720, 300
LEFT, RIGHT, TOP, BOTTOM = 78, 20, 14, 44  # margins, where the scales are written
TICKS: Final = 5


class Point(NamedTuple):
    """A point of a curve, and what is shown when it is pointed at; of one of many, the attributes of its element."""

    x: float
    y: float
    title: str
    attributes: str = ""


class Scale(NamedTuple):
    """An axis: its title, its marks, each with its text, and the range that it shows."""

    title: str
    marks: Sequence[tuple[float, str]]
    low: float
    high: float

    def part(self, value: float) -> float:
        """Return where a value lies on the axis, from 0.0 to 1.0."""
        return (value - self.low) / (self.high - self.low)


def round_marks(low: float, high: float) -> list[float]:
    """List round numbers between two, about five of them."""
    if high <= low:
        return [low]
    rough = (high - low) / TICKS
    power = 10 ** floor(log10(rough))
    step = min([k * power for k in (1, 2, 2.5, 5, 10) if k * power >= rough], default=10 * power)
    return [k * step for k in range(ceil(low / step), floor(high / step) + 1)]


def chart(x: Scale, y: Scale, points: Sequence[Point]) -> str:
    """Draw a curve in steps, each from a point to the next, with marks along both axes."""
    label = escape_html(f"{y.title} by {x.title}")
    return "\n".join(
        [
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">',
            *_axes(x, y),
            f'<path class="curve" d="{_stairs([_place(x, y, p) for p in points])}"/>',
            *([_step(x, y, *pair) for pair in _followed(x, points)] if points[0].attributes else []),
            *[_dot(x, y, p) for p in points if not p.attributes],
            "</svg>",
        ]
    )


def _axes(x: Scale, y: Scale) -> Iterator[str]:
    for value, text in x.marks:
        at = _across(x, value)
        yield f'<line class="rule" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
        yield f'<text x="{at:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{escape_html(text)}</text>'
    for value, text in y.marks:
        at = _down(y, value)
        yield f'<line class="rule" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>'
        yield f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{escape_html(text)}</text>'
    middle = (LEFT + WIDTH - RIGHT) / 2
    yield f'<text x="{middle:.1f}" y="{HEIGHT - 8}" text-anchor="middle">{escape_html(x.title)}</text>'
    yield f'<text transform="translate(14 {(TOP + HEIGHT - BOTTOM) / 2:.1f}) rotate(-90)" text-anchor="middle">'
    yield f"{escape_html(y.title)}</text>"


def _across(x: Scale, value: float) -> float:
    return LEFT + x.part(value) * (WIDTH - LEFT - RIGHT)


def _down(y: Scale, value: float) -> float:
    return HEIGHT - BOTTOM - y.part(value) * (HEIGHT - TOP - BOTTOM)


def _place(x: Scale, y: Scale, point: Point) -> tuple[float, float]:
    return _across(x, point.x), _down(y, point.y)


def _stairs(places: Sequence[tuple[float, float]]) -> str:
    """Write the path: a point's height holds until the next point."""
    first, *others = places
    return f"M{first[0]:.1f} {first[1]:.1f}" + "".join([f"H{x:.1f}V{y:.1f}" for x, y in others])


def _dot(x: Scale, y: Scale, point: Point) -> str:
    across, down = _place(x, y, point)
    title = f"<title>{escape_html(point.title)}</title>"
    return f'<circle tabindex="0" cx="{across:.1f}" cy="{down:.1f}" r="4">{title}</circle>'


def _followed(x: Scale, points: Sequence[Point]) -> list[tuple[Point, float]]:
    """Pair each point with the place where the next begins."""
    return list(zip(points, [*[_across(x, p.x) for p in points[1:]], WIDTH - RIGHT]))


def _step(x: Scale, y: Scale, point: Point, end: float) -> str:
    across, down = _place(x, y, point)
    title = escape_html(point.title)
    return (
        f'<g class="step" role="button" aria-label="{title}" {point.attributes}><title>{title}</title>'
        f'<rect x="{across:.1f}" y="{TOP}" width="{max(end - across, 0.1):.1f}" height="{HEIGHT - TOP - BOTTOM}"/>'
        f'<circle cx="{(across + end) / 2:.1f}" cy="{down:.1f}" r="4"/></g>'
    )


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Render a table, of whose columns the last has words, the others numbers."""
    yield f"<table>\n<tr>{''.join(f'<th>{escape_html(head)}</th>' for head in heads)}</tr>"
    for row in rows:
        yield f"<tr>{''.join(f'<td>{escape_html(cell)}</td>' for cell in row)}</tr>"
    yield "</table>"


def write_bytes(n: float) -> str:
    """Write a size: `512 B`, `1.44 MB`."""
    text = compact_number(round(n))
    return f"{text}B" if text[-1].isalpha() else f"{text} B"
