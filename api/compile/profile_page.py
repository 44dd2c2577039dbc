"""A profile as HTML: an element for a notebook, and a page on its own; bars show the shares of the time."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tapeless.compile.profile_text import HEADS, NOTE, cells, share, source_text, time_text

if TYPE_CHECKING:
    from tapeless.compile.profile import Profile

_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})


def page(profile: "Profile") -> str:
    """Write a whole document."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{_escaped(profile.title)}: its profile</title>\n"
        "<style>:root { color-scheme: light dark; } body { margin: 20px; }</style>\n</head>\n<body>\n"
        f"{fragment(profile)}\n</body>\n</html>\n"
    )


def fragment(profile: "Profile") -> str:
    """Render the HTML element for a notebook, with its own style."""
    style = Path(__file__).with_name("profile.css").read_text(encoding="utf-8")
    note = f"No times by line: {profile.unrecorded}" if profile.kernels is None else NOTE
    return "\n".join(
        [
            f'<div class="tapeless-profile">\n<style>\n{style}</style>',
            f"<h2><code>{_escaped(profile.title)}</code></h2>",
            *_table(("stage", "time", ""), _stages(profile)),
            *_table((*HEADS, ""), _lines(profile)),
            f"<p>{_escaped(note)}</p>\n</div>",
        ]
    )


def _stages(profile: "Profile") -> Iterator[tuple[Sequence[str], float]]:
    longest = sum(stage.seconds for stage in profile.stages)
    for stage in profile.stages:
        yield (stage.name, time_text(stage.seconds), stage.result), stage.seconds / longest


def _lines(profile: "Profile") -> Iterator[tuple[Sequence[str], float]]:
    for line in profile.lines:
        yield (*cells(profile, line), source_text(line.place)), share(profile, line)


def _table(heads: Sequence[str], rows: Iterator[tuple[Sequence[str], float]]) -> Iterator[str]:
    yield f"<table>\n<tr>{''.join(f'<th>{head}</th>' for head in heads)}</tr>"
    for (first, *figures, words), part in rows:
        numbers = "".join(f"<td>{_escaped(cell)}</td>" for cell in figures)
        bar = f'<td class="words bar" style="--share: {part:.1%}"><code>{_escaped(words)}</code></td>'
        yield f"<tr><td><code>{_escaped(first)}</code></td>{numbers}{bar}</tr>"
    yield "</table>"


def _escaped(words: str) -> str:
    return words.translate(_ESCAPES)
