"""The pages of the API show every public name, with its signature and what it says."""

import importlib
import inspect
import re

import pytest

from tests.pages import DOCS, hook

reference = hook("reference_pages")
PAGES = {
    found["name"]: page
    for page in sorted((DOCS / "reference").glob("*.md"))
    for found in [reference.NAMESPACE.search(page.read_text())]
    if found
}
each_namespace = pytest.mark.parametrize("namespace", PAGES)


@each_namespace
def test_every_public_name_is_shown(namespace: str):
    module = importlib.import_module(namespace)
    shown = set(re.findall(r"^## `(\w+)`", "\n".join(reference.reference(namespace)), re.MULTILINE))
    assert shown == {name for name in module.__all__ if not inspect.ismodule(getattr(module, name))}


def test_a_name_has_its_signature_sections_and_examples():
    text = "\n".join(reference.reference("tapeless"))
    jvp = text[text.index("## `jvp`") : text.index("## `legacy_prng_key`")]
    assert "```python\njvp(\n    fun: Callable[..., Any],\n    primals: Sequence[Any]," in jvp
    assert "**Args**\n\n- `primals, tangents`: sequences" in jvp and "\n**Raises** TypeError if" in jvp
    assert "```pycon\n>>> jvp(lambda x: x**2" in jvp and "tapeless.tracer" not in jvp


def test_continued_lines_are_no_code():
    """Four spaces begin a block of code in Markdown, but within a list."""
    lines = "\n".join(reference.reference("tapeless.lax")).splitlines()
    wrong = []
    inside = listed = False
    for line in lines:
        inside ^= line.startswith("```")
        listed = line.startswith("- ") or (listed and line.startswith("    "))
        if line.startswith("    ") and not (inside or listed):
            wrong.append(line)
    assert wrong == []
