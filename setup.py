"""Make the description of the package: the README, whose links to files of the repository become absolute.

An index of packages shows the README where there are no files beside it. All else is in pyproject.toml.
"""

import re
import tomllib
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).parent
RELATIVE_LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)\s]+)\)")


def description() -> str:
    """The README with absolute links."""
    source = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"]["Source"]

    def absolute(match: re.Match[str]) -> str:
        kind = "raw" if match[1].endswith(".svg") else "blob"  # a page about a picture is no picture
        return f"]({source}/{kind}/main/{match[1]})"

    return RELATIVE_LINK.sub(absolute, (ROOT / "README.md").read_text("utf-8"))


if __name__ == "__main__":
    setup(long_description=description(), long_description_content_type="text/markdown")
