"""Pages of the site from notebooks, run as it is built: what `tl.explain` shows is live. An extension of Sphinx."""

import json
import tempfile
from pathlib import Path
from typing import Any

import make_notebooks
from site_links import REPOSITORY

WIDE = "---\nhide-toc: true\n---\n\n"  # room for three columns
FRAME = (
    '<iframe title="{title}" srcdoc="{document}" loading="lazy" style="width: 100%; height: 60em; border: 0" '
    "onload=\"this.style.height = this.contentDocument.documentElement.scrollHeight + 20 + 'px'\"></iframe>"
)


def setup(app: Any) -> dict[str, Any]:
    """Register the extension."""
    app.connect("source-read", _write, priority=400)  # before the links of Markdown are rewritten
    return {"parallel_read_safe": True}


def _write(app: Any, name: str, source: list[str]) -> None:
    """Replace a notebook by a page of its cells."""
    if name.startswith("notebooks/"):
        address = f"[This page as a notebook]({REPOSITORY}/blob/main/docs/{name}.ipynb)\n"
        source[0] = WIDE + _page(name.rpartition("/")[2], json.loads(source[0])) + address


def _page(name: str, notebook: dict[str, Any]) -> str:
    """Write a notebook as Markdown: its cells and what they show."""
    parts: list[str] = []
    for number, ran in enumerate(make_notebooks.run(notebook)):
        code = "".join(ran.cell["source"])
        if ran.cell["cell_type"] == "markdown":
            parts.append(code)
            continue
        parts.append(f"```python\n{code}\n```")
        parts += [f"```text output\n{ran.printed.rstrip()}\n```"] if ran.printed else []
        parts += [_shown(f"{name}, cell {number}", ran.value)] if ran.value is not None else []
    return "\n\n".join(parts) + "\n\n"


def _shown(title: str, value: Any) -> str:
    """Write a value as a notebook displays it: as a document in a frame if it can be one, else as text."""
    if not hasattr(value, "_repr_html_"):
        return f"```text output\n{value!r}\n```"
    with tempfile.TemporaryDirectory() as folder:
        value.save(Path(folder) / "document.html")
        document = (Path(folder) / "document.html").read_text(encoding="utf-8")
    escaped = document.replace("&", "&amp;").replace('"', "&quot;")
    return "````{raw} html\n" + FRAME.format(title=title, document=escaped) + "\n````"
