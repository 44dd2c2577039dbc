"""Names follow rules: lists of namespaces, words of the glossary, functions that other modules import."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.pages import maker

ROOT = Path(__file__).resolve().parents[1]
LAYERS = "tracer", "interpreters", "lowering", "api"
IRREGULAR = frozenset(
    "bound built caught chosen done drawn found given gone grown held hidden kept known left lost made met paid "
    "read rebuilt rewritten sent shown sought taken taught told undone unread withheld written".split()
)
PUBLIC = {
    ("tapeless.optimizers.transformation", "masked"),  # optax's name
    ("tapeless.custom.primitive_batching", "defvectorized"),  # a name of JAX
    ("tapeless.tracer.numpy.sorting", "searchsorted"),  # a name of NumPy
}


def test_lists_are_fresh() -> None:
    names = maker("names")
    stale = [str(path) for path in names.namespaces() if path.read_text() != names.rewritten(path)]
    assert len(names.namespaces()) > 5 and stale == [], "run python docs/make_names.py"


def test_classes_of_interpreters_are_in_the_glossary() -> None:
    """A public class names a concept, which the glossary explains by all of its name or by its last word.

    Private classes are not asked for: they are steps of one module, whose docstring explains them.
    """
    words = _glossary_words()
    missing = [
        f"{path.relative_to(ROOT)}: class {node.name}: no {phrase!r} and no {phrase.split()[-1]!r} in docs/glossary.md"
        for path, tree in _trees("interpreters")
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name[0] != "_" and not words & _forms(phrase := _phrase(node.name))
    ]
    assert missing == [], "\n".join(["Add one line each to docs/glossary.md, or use one of its words:", *missing])


def test_a_class_outside_of_the_glossary_is_found() -> None:
    assert _phrase("LinearizedJaxpr") == "linearized jaxpr" and _phrase("JVPTrace") == "jvp trace"
    assert _glossary_words() & _forms("placed axes") and not _glossary_words() & _forms("frobnicated gadgets")


def test_functions_that_other_modules_import_are_not_participles() -> None:
    """`read`, `checked` or `moved` name a result; a verb and a noun, as `read_program`, say what happens to what."""
    found = [f"{path}: {name} is imported elsewhere: name it by a verb and a noun" for path, name in _participles()]
    assert found == [], "\n".join(found)


@pytest.mark.parametrize("name", ["read", "written", "checked", "chosen", "kept"])
def test_participles_are_found(name: str) -> None:
    assert _is_participle(name) and not _is_participle(f"{name}_once") and not _is_participle("write_module")


def test_imports_are_found() -> None:
    text = "from a.b import (\n    moved,  # why\n    read as take,\n)\nfrom a import c as d\nx = d.kept(y.told)\n"
    assert [*_imports(text)] == [("a.b", "moved"), ("a.b", "read"), ("a", "c"), ("a.c", "kept")]


@cache
def _participles() -> list[tuple[str, str]]:
    """Return the functions that are named by a participle and imported by another module: path, name.

    Texts are searched, not parsed: all files take 0.2 s, instead of 3 s.
    """
    texts = {path: path.read_text() for layer in LAYERS for path in sorted((ROOT / layer).rglob("*.py"))}
    imported = {found for text in texts.values() for found in _imports(text)} - PUBLIC
    return [
        (str(path.relative_to(ROOT)), name)
        for path, text in texts.items()
        for name in re.findall(r"^def ([a-z]+)\(", text, re.MULTILINE)
        if _is_participle(name) and (_module(path), name) in imported
    ]


def _is_participle(name: str) -> bool:
    return name in IRREGULAR or bool(re.fullmatch("[a-z]+ed", name))


def _imports(text: str) -> Iterator[tuple[str, str]]:
    """Return what a module imports or reads from an imported module: (module, name)."""
    modules: dict[str, str] = {}
    for module, names in re.findall(r"^\s*from ([\w.]+) import (\([^)]*\)|.*)$", text, re.MULTILINE):
        for name, alias in re.findall(r"(\w+)(?: as (\w+))?", re.sub("#.*", "", names)):
            modules[alias or name] = f"{module}.{name}"
            yield module, name
    for value, name in re.findall(r"\b(\w+)\.([a-z]+)\b", text):
        if value in modules:
            yield modules[value], name


def _module(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(["tapeless", *parts[parts[0] == "api" :]]).removesuffix(".__init__")


def _glossary_words() -> set[str]:
    rows = [
        line.split("|")[1] for line in (ROOT / "docs/glossary.md").read_text().splitlines() if line.startswith("| ")
    ]
    return {word.strip() for row in rows for word in re.split(r"[,()]", row)}


def _phrase(name: str) -> str:
    return " ".join(re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z]+", name)).lower()


def _forms(phrase: str) -> set[str]:
    """Return a phrase and its last word, as they are and in the singular."""
    forms = {phrase, phrase.split()[-1]}
    endings = ("s", ""), ("es", ""), ("es", "is"), ("ies", "y")
    return forms | {f.removesuffix(plural) + single for f in forms for plural, single in endings if f.endswith(plural)}


def _trees(folder: str) -> Iterator[tuple[Path, ast.Module]]:
    return ((path, ast.parse(path.read_text())) for path in sorted((ROOT / folder).rglob("*.py")))
