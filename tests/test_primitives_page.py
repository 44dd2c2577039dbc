"""docs/primitives.md is what the tables say."""

from tests.pages import DOCS, maker


def test_page_is_fresh() -> None:
    assert (DOCS / "primitives.md").read_text() == maker("primitives").page(), "run python docs/make_primitives.py"


def test_tables_have_names_of_their_own() -> None:
    """An error that names a table by its name can be located."""
    names = [table.name for table in maker("primitives").tables().values()]
    assert sorted(names) == sorted(set(names))


def test_tables_say_what_an_entry_is_and_what_none_means() -> None:
    assert [path for path, table in maker("primitives").tables().items() if not (table.entry and table.absent)] == []
