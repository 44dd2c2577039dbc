"""Documents: a page that needs nothing else, a fragment in it, and words that are safe in both."""

from pathlib import Path
from typing import Final

_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})


def document(title: str, fragment: str, style: str) -> str:
    """Write a whole document around a fragment, in a style for the page itself."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape_html(title)}</title>\n"
        f"<style>\n{style}</style>\n</head>\n<body>\n<main>\n{fragment}\n</main>\n</body>\n</html>\n"
    )


def escape_html(words: str) -> str:
    """Write words so that they mean nothing else in HTML, also in an attribute."""
    return words.translate(_ESCAPES)


def file_text(name: str) -> str:
    """Read a file that lies beside this one, when there is something to show."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


EXACT: Final = 100_000  # smaller numbers are written out
_PREFIXES = "kMGTPE"


def compact_number(n: int) -> str:
    """Write a number: `12,345`, and of larger numbers the leading digits: `12.3 M`."""
    if n < EXACT:
        return f"{n:,}"
    power = min((len(str(n)) - 1) // 3, len(_PREFIXES))
    return f"{n / 1000**power:.3g} {_PREFIXES[power - 1]}"
