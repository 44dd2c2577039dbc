"""Formulas of the site: LaTeX between dollars becomes MathML as the site is built. A hook of mkdocs.

Browsers render MathML by themselves, by a font of the system's: a reader needs no script, no font of ours, no network.
"""

import html
import re
from typing import Any

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError

# What pymdownx.arithmatex leaves of a formula, with `generic: true`.
FORMULA = re.compile(r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<latex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL)


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Write the formulas of a page as MathML. Raises: PluginError for a command that is not known."""

    def rendered(match: re.Match[str]) -> str:
        try:
            return mathml(match["latex"], "block" if match["tag"] == "div" else "inline")
        except ValueError as error:
            raise PluginError(f"{page.file.src_uri}: {error}") from error

    return FORMULA.sub(rendered, html)


def mathml(latex: str, display: str) -> str:
    """Write a formula as MathML. Raises: ValueError for a command that is not known."""
    found = convert(html.unescape(latex), display=display)
    if "\\" in found:
        raise ValueError(f"the formula {latex} has a command that cannot be rendered.")
    return found
