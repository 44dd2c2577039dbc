"""Pages of the site from notebooks, run as the site is built: what `tl.explain` shows is live. A hook of mkdocs."""

import tempfile
from pathlib import Path
from typing import Any

import make_notebooks
from mkdocs.structure.files import File

SHOWN: dict[str, str] = {}  # documents to show in frames, by the marks that stand for them
HIDDEN = "---\nhide: [navigation, toc]\n---\n\n"  # room for three columns
FRAME = (
    '<iframe title="{title}" srcdoc="{document}" loading="lazy" style="width: 100%; height: 60em; border: 0" '
    "onload=\"this.style.height = this.contentDocument.documentElement.scrollHeight + 20 + 'px'\"></iframe>"
)


def on_files(files: Any, config: Any, **_: Any) -> Any:
    """Add a page for each notebook."""
    for path in make_notebooks.notebooks():
        source = f"[This page as a notebook]({config['repo_url']}/blob/main/docs/notebooks/{path.name})\n"
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=HIDDEN + _page(path) + source))
    return files


def on_page_content(html: str, **_: Any) -> str:
    """Put the documents where their marks are."""
    for mark, document in SHOWN.items():
        html = html.replace(f"<p>{mark}</p>", document)
    return html


def _page(path: Path) -> str:
    """Write a notebook as Markdown: its cells and what they show."""
    parts: list[str] = []
    for number, ran in enumerate(make_notebooks.run(make_notebooks.read(path))):
        source = "".join(ran.cell["source"])
        if ran.cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        parts += [f"```text\n{ran.printed.rstrip()}\n```"] if ran.printed else []
        parts += [_shown(f"{path.stem}-cell-{number}", ran.value)] if ran.value is not None else []
    return "\n\n".join(parts) + "\n\n"


def _shown(mark: str, value: Any) -> str:
    """Write a value as a notebook displays it: as a document in a frame if it can be one, else as text."""
    if not hasattr(value, "_repr_html_"):
        return f"```text\n{value!r}\n```"
    with tempfile.TemporaryDirectory() as folder:
        value.save(Path(folder) / "document.html")
        document = (Path(folder) / "document.html").read_text(encoding="utf-8")
    escaped = document.replace("&", "&amp;").replace('"', "&quot;")
    SHOWN[f"shown-{mark}"] = FRAME.format(title=mark, document=escaped)
    return f"shown-{mark}"
