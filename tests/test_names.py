"""The lists of names of namespaces are what their imports say."""

from tests.pages import maker


def test_lists_are_fresh() -> None:
    names = maker("names")
    stale = [str(path) for path in names.namespaces() if path.read_text() != names.rewritten(path)]
    assert len(names.namespaces()) > 5 and stale == [], "run python docs/make_names.py"
