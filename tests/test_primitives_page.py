"""docs/primitives.md is what the tables say."""

from tests.pages import DOCS, maker


def test_page_is_fresh() -> None:
    assert (DOCS / "primitives.md").read_text() == maker("primitives").page(), "run python docs/make_primitives.py"
