"""Code blocks of the site: what a block prints, ```text output, gets a title. An extension of Sphinx."""

import re
from typing import Any

from sphinx.errors import ExtensionError

OUTPUT = re.compile(r"^( *)```text output$", re.MULTILINE)
STRAY = re.compile(r"<p>\s*```.{0,40}", re.DOTALL)


def setup(app: Any) -> dict[str, Any]:
    """Register the extension."""
    app.connect("source-read", _title_outputs)
    app.connect("html-page-context", _refuse_stray_fences)
    return {"parallel_read_safe": True}


def _title_outputs(app: Any, name: str, source: list[str]) -> None:
    """Write the fences as Sphinx knows them."""
    source[0] = OUTPUT.sub(r"\1```{code-block} text\n\1:caption: prints", source[0])


def _refuse_stray_fences(app: Any, name: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Raise ExtensionError if a fence was taken for text, and with it the text that follows for code."""
    if found := STRAY.search(context.get("body", "")):
        raise ExtensionError(f"{name}: this is no code block: {found[0]!r}")
