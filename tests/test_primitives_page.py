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


SIMPLIFIER = "index_rows", "simplif", "analysis.sparsity", "analysis.sparse_cost", "residual_", "lower_ein"


def test_no_primitive_has_entries_in_more_than_five_tables_of_the_simplifier() -> None:
    """Knowledge that two tables state is one table's, which the other reader derives its own from."""
    found: dict[str, list[str]] = {}
    for path, table in maker("primitives").tables().items():
        for primitive in table if path.startswith(tuple([f"interpreters.{name}" for name in SIMPLIFIER])) else ():
            found.setdefault(str(primitive), []).append(table.name)
    assert len({name for names in found.values() for name in names}) > 7  # the tables are found
    assert {primitive: names for primitive, names in found.items() if len(names) > 5} == {}
