"""The curve of live bytes in the page of an explanation, and what is live at the peak, or where it is pointed at."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from tapeless.explanation.charts import Point, Scale, chart, round_marks, table, write_bytes
from tapeless.explanation.documents import escape_html, file_text
from tapeless.explanation.links import Links
from tapeless.explanation.live_bytes import LiveBytes, LiveGroup
from tapeless.explanation.tables import Tables

SPANS: Final = 80  # points of each pass
SHOWN: Final = 6  # kinds of values
LIT: Final = 32  # residuals


def live_section(tables: Tables, links: Links) -> Iterator[str]:
    """Render the chart, of which each point lights its equation and what is live there, and a table of the peak."""
    live = tables.live
    most = live.nbytes[live.peak]
    if not most:
        return
    yield '<section class="tapeless-chart live" aria-label="live bytes">'
    yield f"<style>\n{file_text('chart.css')}</style>"
    yield f"<h3>live bytes: at most {write_bytes(most)} at once, beyond arguments and results</h3>"
    yield _chart(live, _Keys(tables, links))
    yield "<div>"
    yield from table(
        ("bytes", "live at the peak"), [(write_bytes(g.nbytes), str(g)) for g in _first(live.groups(live.peak))]
    )
    yield "</div></section>"


def _first(groups: Sequence[LiveGroup]) -> Iterator[LiveGroup]:
    """List the largest groups, and the others as one."""
    yield from groups[:SHOWN]
    others = groups[SHOWN:]
    if others:
        yield LiveGroup("other values", sum([g.number for g in others]), sum([g.nbytes for g in others]), None)


def _chart(live: LiveBytes, keys: "_Keys") -> str:
    end, most, n = len(live.nbytes), live.nbytes[live.peak], live.turn - 1
    passes = [(0.0, "first"), (float(live.turn), "last, and back" if n > 1 else "and back"), (float(end), "first")]
    x = Scale(f"{n:,} equation{'s' * (n != 1)} of the function, forward and backward", passes, 0, end)
    y = Scale("live bytes", [(v, write_bytes(v)) for v in round_marks(0, most)], 0, most)
    return chart(x, y, [_point(live, keys, i, *span) for i, span in enumerate(live.highest(SPANS))])


def _point(live: LiveBytes, keys: "_Keys", i: int, begin: int, moment: int) -> Point:
    nbytes, peak, eqn = live.nbytes[moment], moment == live.peak, live.equation(moment)
    when = "forward" if moment < live.turn else "backward"
    place = f" at {eqn.source}" if eqn and eqn.source else ""
    title = f"{write_bytes(nbytes)} live, {when}{place}{', the most' if peak else ''}"
    groups = live.groups(moment)
    told = "\n".join([title, *[f"{write_bytes(g.nbytes)}  {g}" for g in _first(groups)]])
    attributes = (
        f'data-key="b{i + 1}" data-to="{" ".join(keys.lit(live, moment, groups))}" data-note="{escape_html(told)}" '
        f'tabindex="{0 if peak else -1}" aria-pressed="false"{" data-peak" if peak else ""}'
    )
    return Point(begin, nbytes, title, attributes)


class _Keys:
    """The keys of rows by what they stand for."""

    def __init__(self, tables: Tables, links: Links) -> None:
        primal, linear, _ = tables.phases
        n = sum(not v.linear for v in linear.program.invars)
        kept = dict.fromkeys(primal.program.outvars[len(primal.program.outvars) - n :])
        self._rows: dict[Any, str] = {row.eqn: row.key for row in primal.walk()}
        self._saved: dict[Any, str] = {v: saved.key for v, saved in zip(kept, tables.residuals, strict=True)}
        self._links = links

    def lit(self, live: LiveBytes, moment: int, groups: Sequence[LiveGroup]) -> list[str]:
        """List what a moment lights: its equation, the largest values that are live, the lines of the groups shown."""
        found = [self._rows.get(live.equation(moment))]
        found += [self._saved.get(v) for v in live.live_values(moment)[:LIT]]
        found += [self._links.line(group.source) for group in groups[:SHOWN]]
        return [key for key in dict.fromkeys(found) if key]
