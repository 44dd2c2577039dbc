"""docs/primitives.md is what the tables say."""

import importlib.util
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"


def test_page_is_fresh() -> None:
    spec = importlib.util.spec_from_file_location("make_primitives", DOCS / "make_primitives.py")
    assert spec and spec.loader
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    assert (DOCS / "primitives.md").read_text() == maker.page(), "run python docs/make_primitives.py"
