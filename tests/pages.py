"""The programs of docs/, which write pages of the documentation and its site, as modules."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from unittest import mock

DOCS = Path(__file__).parents[1] / "docs"


def maker(name: str) -> ModuleType:
    """docs/make_NAME.py."""
    return hook(f"make_{name}")


def hook(name: str) -> ModuleType:
    """docs/NAME.py."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec and spec.loader
    found = importlib.util.module_from_spec(spec)
    with mock.patch.object(sys, "path", [str(DOCS), *sys.path]):  # where docs/conf.py looks, too
        spec.loader.exec_module(found)
    return found
