"""docs/coverage.md tells the truth: what it ticks is there, what it lists as absent is not."""

import importlib
import re
import types

import pytest

from tests.pages import DOCS, hook

SECTION = re.compile(r"^## (?P<theirs>\S+)\n\nin `(?P<ours>\S+)`: (?P<here>\d+) of (?P<all>\d+)", re.MULTILINE)
PAGE = (DOCS / "coverage.md").read_text()
TEXTS = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
SECTIONS = [(head, text) for head, text in zip(SECTION.finditer(PAGE), TEXTS, strict=True)]
OTHER_MEANINGS = hook("coverage_reasons").OTHER_MEANINGS
LEAST = {"jax.numpy": 98, "jax.random": 98, "jax.tree_util": 98, "jax.nn": 98, "jax.lax": 95}  # percent


def ticked(text: str) -> list[str]:
    """The names of a section that Tapeless has."""
    return [name for line in text.splitlines() if line.startswith("✓") for name in re.findall(r"`(\w+)`", line)]


def absent(text: str) -> list[str]:
    """The names of a section that Tapeless does not have."""
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    return [name for row in rows for name in re.findall(r"`(\w+)`", row)]


def namespace(path: str) -> types.ModuleType | None:
    """Import a namespace, if it is there."""
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError:
        return None


@pytest.mark.parametrize(("head", "text"), SECTIONS, ids=[match["theirs"] for match, _ in SECTIONS])
def test_page_is_true(head: re.Match[str], text: str) -> None:
    ours = namespace(head["ours"])
    assert [name for name in ticked(text) if not hasattr(ours, name)] == []
    here = [name for name in absent(text) if hasattr(ours, name)]
    assert [name for name in here if (head["ours"], name) not in OTHER_MEANINGS] == [], (
        "run python docs/make_coverage.py"
    )
    assert (len(ticked(text)), len(ticked(text) + absent(text))) == (int(head["here"]), int(head["all"]))


@pytest.mark.parametrize("theirs", LEAST)
def test_most_names_are_there(theirs: str) -> None:
    [head] = [match for match, _ in SECTIONS if match["theirs"] == theirs]
    assert 100 * int(head["here"]) / int(head["all"]) >= LEAST[theirs]
