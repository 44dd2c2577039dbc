"""Code blocks of the site: what a block prints, ```text output, gets a title. A hook of mkdocs."""

import re
from typing import Any

from mkdocs.exceptions import PluginError

OUTPUT = re.compile(r"^( *)```text output$", re.MULTILINE)  # which Markdown takes for no fence: of two words
STRAY = re.compile(r"<p>\s*```.{0,40}", re.DOTALL)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Write the fences as Markdown of the site knows them."""
    return OUTPUT.sub(r'\1```text title="prints"', markdown)


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Raise PluginError if a fence was taken for text, and with it the text that follows for code."""
    if found := STRAY.search(html):
        raise PluginError(f"{page.file.src_uri}: this is no code block: {found[0]!r}")
    return html
