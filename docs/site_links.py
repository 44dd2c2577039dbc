"""Links of the site to files of the repository that are no pages: source, examples, tests."""

import posixpath
import re
from typing import Any

LINK = re.compile(r"\]\((?!https?:|mailto:|#)(?P<path>[^)#\s]+)(?P<rest>[^)]*)\)")
FENCE = re.compile(r"(^ *```.*?^ *```[ \t]*$)", re.MULTILINE | re.DOTALL)


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Rewrite links that lead out of docs/ to where the repository is; a hook of mkdocs."""
    folder = posixpath.join("docs", posixpath.dirname(page.file.src_uri))

    def rewritten(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, match["path"]))
        if path.startswith("docs/") and path.endswith((".md", ".svg")):
            return match[0]
        if path.startswith("docs/") and path.endswith(".ipynb"):  # a page, by notebook_pages.py
            return f"]({match['path'].removesuffix('.ipynb')}.md{match['rest']})"
        return f"]({config['repo_url']}/blob/main/{path}{match['rest']})"

    parts = FENCE.split(markdown)  # code is at odd positions
    return "".join(part if i % 2 else LINK.sub(rewritten, part) for i, part in enumerate(parts))
