"""Explanations as HTML, a fragment for a notebook and a page on its own: rows that belong together light up.

Every row is a button with a key; it names the keys of the rows that belong to it, and the script lights them. Styles
are nested under one class, and the script looks for what is not alive yet, so that a page may hold several.
"""

from collections.abc import Iterator, Sequence

from tapeless.explanation.documents import EXACT, compact_number, document, escape_html, file_text
from tapeless.explanation.links import Links
from tapeless.explanation.live_page import live_section
from tapeless.explanation.tables import RESIDUALS, InnerProgram, Line, Phase, Row, Saved, Tables
from tapeless.explanation.terminal_text import KINDS, body_title, saved_as
from tapeless.interpreters.analysis.cost import Cost

_HINT = (
    "Point at a row to light what belongs to it. Click, or press Enter, to keep it lit; Escape lets go. Arrows move."
)


def page(name: str, tables: Tables) -> str:
    """Write a whole document."""
    return document(f"{name}: its gradient, explained", fragment(name, tables), file_text("document.css"))


def fragment(name: str, tables: Tables) -> str:
    """Render the HTML element for a notebook, with its own style and script."""
    links = Links(tables)
    return "\n".join(
        [
            f'<div class="tapeless-explanation" style="{_widths(tables)}">',
            f"<style>\n{file_text('page.css')}</style>",
            *_header(name, tables),
            '<div class="above">',
            *_source(tables.lines, links),
            *_residuals(tables.residuals, links),
            "</div>",
            *live_section(tables, links),
            '<div class="phases">',
            *[line for phase in tables.phases for line in _phase(phase, links)],
            "</div>",
            f'<p class="note" role="status" aria-live="polite" data-hint="{_HINT}">{_HINT}</p>',
            f"<script>\n{file_text('page.js')}</script>",
            "</div>",
        ]
    )


def _tag(name: str, content: str, css: str = "") -> str:
    kind = f' class="{css}"' if css else ""
    return f"<{name}{kind}>{content}</{name}>"


def _header(name: str, tables: Tables) -> Iterator[str]:
    primal, linear, transposed = [phase.cost.work for phase in tables.phases]
    yield f"<header><h2><code>{escape_html(name)}</code></h2><dl>"
    figures = {"function": (primal, "operations"), "residuals": (tables.residual_bytes, "bytes")}
    figures |= {"tangent": (linear, "operations"), "gradient": (transposed, "operations")}
    for title, (number, unit) in figures.items():
        yield f"<div><dt>{title}</dt><dd>{number:,} <small>{unit}</small></dd></div>"
    yield "</dl></header>"


# ---- phases ---------------------------------------------------------------------------------------------------


def _phase(phase: Phase, links: Links) -> Iterator[str]:
    heads = "".join(_tag("span", head, css) for head, css in _HEADS)
    yield f'<section class="phase" aria-label="{phase.name} jaxpr">'
    yield f"<h3>{phase.name}</h3>"
    yield f'<p class="row head" aria-hidden="true">{heads}</p>'
    yield _bound("takes", phase.takes)
    yield from _rows(phase.rows, links)
    yield _bound("gives", phase.gives)
    if phase.unread:
        yield _sum("values that nobody reads", Cost(drops=phase.unread), "")
    yield _sum("total", phase.cost, _number(phase.nbytes))
    yield "</section>"


_HEADS = (("", ""), ("equation", ""), ("line", "number"), ("work", "number"), ("bytes", "number"))


def _bound(word: str, values: Sequence[str]) -> str:
    listed = [value if value == RESIDUALS else _tag("code", _variable(value)) for value in values]
    return f'<p class="bound">{word} {", ".join(listed) or "nothing"}</p>'


def _sum(words: str, cost: Cost, nbytes: str) -> str:
    return (
        f'<p class="row sum"><span></span><span>{words}</span><span></span>'
        f'<span class="number">{_work(cost)}</span><span class="number">{nbytes}</span></p>'
    )


def _widths(tables: Tables) -> str:
    """Set the widths of the columns of numbers: the widest number and its unit, over all phases."""
    columns = {
        "line": max([4, *[len(str(line.place.line)) for line in tables.lines]]),
        "work": max([_digits(phase.cost.work + phase.cost.moved) for phase in tables.phases]) + 7,
        "bytes": max([5, *[_digits(phase.nbytes) for phase in tables.phases]]) + 1,
        "saved": max([4, *[_digits(saved.residual.nbytes) for saved in tables.residuals]]) + 2,
    }
    return "; ".join(f"--{name}: {width}ch" for name, width in columns.items())


def _digits(n: int) -> int:
    return len(compact_number(n))


def _number(n: int, unit: str = "") -> str:
    """Render a number with its unit; a shortened one shows all digits on hover."""
    exact = f' title="{n:,}"' if n >= EXACT else ""
    return f"<span{exact}>{compact_number(n)}{f' <small>{unit}</small>' if unit else ''}</span>"


def _rows(rows: Sequence[Row], links: Links) -> Iterator[str]:
    if not rows:
        return
    yield "<ol>"
    for row in rows:
        cells = [
            _tag("span", row.key, "key"),
            _tag("code", _equation(row)),
            _tag("span", str(row.place.line) if row.place else "", "number line"),
            _tag("span", _work(row.cost), "number"),
            _tag("span", _number(row.nbytes), "number"),
        ]
        yield f"<li>{_button(row.key, ''.join(cells), links)}"
        for body in row.bodies:
            yield from _body(body, links)
        yield "</li>"
    yield "</ol>"


def _body(body: InnerProgram, links: Links) -> Iterator[str]:
    title, _, often = body_title(body).partition(", ")
    words = f"<code>{escape_html(title)}</code> {escape_html(often)}"
    if body.rows is None:
        yield f'<p class="again">{words}</p>'
        return
    yield f"<details open><summary>{words}</summary>"
    yield _bound("takes", body.takes)
    yield from _rows(body.rows, links)
    yield _bound("gives", body.gives)
    yield "</details>"


def _button(key: str, content: str, links: Links) -> str:
    return (
        f'<button type="button" class="row" aria-pressed="false" data-key="{key}" '
        f'data-to="{" ".join(links.to(key))}" data-note="{escape_html(links.note(key))}">{content}</button>'
    )


def _equation(row: Row) -> str:
    """Write the printed equation, its parts told apart: results with types, the primitive, its parameters, operands."""
    results, equals, rest = row.text.rpartition(" = ") if row.eqn.outvars else ("", "", row.text)
    name = str(row.eqn.primitive)
    if not rest.startswith(name):  # a formula
        name = ""
    head, bracket, operands = rest.removeprefix(name).rpartition("]")
    typed = " ".join(map(_variable, results.split()))
    params = f"<small>{_breakable(head + bracket)}</small>" if bracket else ""
    return f"{typed}{equals}<b>{escape_html(name)}</b>{params}{escape_html(operands)}"


def _breakable(params: str) -> str:
    """Write params, with places for a line to end."""
    return escape_html(params).replace("[", "<wbr>[").replace("=", "=<wbr>")


def _variable(typed: str) -> str:
    """Write `x:f32[3]`, the type less loud than the name."""
    name, colon, kind = typed.partition(":")
    return f"{escape_html(name)}<i>{escape_html(colon + kind)}</i>" if colon else escape_html(name)


def _work(cost: Cost) -> str:
    """Write the operations by kind, `8 add`, `12 mul`, one below the other."""
    found = [(getattr(cost, kind), unit) for kind, unit in _UNITS.items()]
    return "<br>".join(_number(n, unit) for n, unit in found if n)


_UNITS = dict(zip(KINDS, ("nonlin", "add", "mul", "drop", "move"), strict=True))


# ---- source and residuals ------------------------------------------------------------------------------------------


def _source(lines: Sequence[Line], links: Links) -> Iterator[str]:
    yield '<section class="source" aria-label="source"><h3>source</h3><div class="scroll">'
    for file in dict.fromkeys(line.place.file for line in lines):
        of_file = [line for line in lines if line.place.file == file]
        yield f'<p class="file">{escape_html(links.short(of_file))}</p><ol>'
        yield from _lines(of_file, links)
        yield "</ol>"
    yield "</div></section>"


def _lines(lines: Sequence[Line], links: Links) -> Iterator[str]:
    margin = min((len(x.text) - len(x.text.lstrip()) for x in lines if x.text.strip()), default=0)
    for before, line in zip([None, *lines], lines):
        if before is not None and line.place.line > before.place.line + 1:
            yield '<li class="gap" aria-hidden="true">⋯</li>'
        content = f'<span class="key">{line.place.line}</span><code>{escape_html(line.text[margin:]) or " "}</code>'
        yield f"<li>{_button(line.key, content, links) if line.executed else _tag('p', content, 'row')}</li>"


def _residuals(residuals: Sequence[Saved], links: Links) -> Iterator[str]:
    yield '<section class="residuals" aria-label="residuals"><h3>residuals</h3><div class="scroll"><ol>'
    for saved in residuals:
        cells = [
            _tag("span", saved.key, "key"),
            _tag("code", f"{_variable(saved.text)} <small>{escape_html(saved_as(saved))}</small>"),
            _tag("span", str(saved.place.line) if saved.place else "", "number line"),
            _tag("span", _number(saved.residual.nbytes, "B"), "number"),
        ]
        yield f"<li>{_button(saved.key, ''.join(cells), links)}</li>"
    yield "</ol>"
    yield "</div></section>"
