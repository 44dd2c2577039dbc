"""Links of the site to files of the repository that are no pages: source, examples, tests. An extension of Sphinx."""

import posixpath
import re
import tomllib
from pathlib import Path
from typing import Any

LINK = re.compile(r"\]\((?!https?:|mailto:|#)(?P<path>[^)#\s]+)(?P<rest>[^)]*)\)")
FENCE = re.compile(r"(^ *```.*?^ *```[ \t]*$)", re.MULTILINE | re.DOTALL)
PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REPOSITORY: str = PROJECT["urls"]["Source"]


def setup(app: Any) -> dict[str, Any]:
    """Register the extension."""
    app.connect("source-read", _rewrite)
    return {"parallel_read_safe": True}


def _rewrite(app: Any, name: str, source: list[str]) -> None:
    """Rewrite links that lead out of docs/ to where the repository is."""
    folder = posixpath.join("docs", posixpath.dirname(name))

    def rewritten(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, match["path"]))
        if path.startswith("docs/") and path.endswith((".md", ".svg", ".ipynb")):
            return match[0]
        return f"]({REPOSITORY}/blob/main/{path}{match['rest']})"

    parts = FENCE.split(source[0])  # code is at odd positions
    source[0] = "".join(part if i % 2 else LINK.sub(rewritten, part) for i, part in enumerate(parts))
