"""The pages of the API show every public name, with its signature and what it says."""

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import tapeless as tl
from tests.pages import DOCS, hook
from tests.settings import restored_settings
from tests.test_docs import Block, run_doctest

reference = hook("reference_pages")
PAGES = {
    found["name"]: page
    for page in sorted((DOCS / "reference").glob("*.md"))
    for found in reference.NAMESPACE.finditer(page.read_text())
}
each_namespace = pytest.mark.parametrize("namespace", PAGES)


examples = hook("example_calls")
record = hook("make_examples").recorded()
REMEDY = "run python docs/make_examples.py"
QUICK = (
    "tapeless",
    "tapeless.numpy.fft",
    "tapeless.numpy.linalg",
    "tapeless.tree",
    "tapeless.tree_util",
    "tapeless.index",
)


@each_namespace
def test_every_function_has_an_example(namespace: str):
    module, written = importlib.import_module(namespace), examples.calls(namespace)
    functions = {name: found for name in module.__all__ if inspect.isroutine(found := getattr(module, name))}
    documented = {name for name, found in functions.items() if ">>> " in (inspect.getdoc(found) or "")}
    assert functions.keys() - written.keys() - documented == set()


@pytest.mark.parametrize("namespace", QUICK)
def test_examples_show_what_is_recorded(namespace: str):
    """Those of other namespaces run when docs/make_examples.py records them."""
    for name, shown in examples.shown_examples(namespace).items():
        words, numbers = _parts(shown)
        recorded_words, recorded_numbers = _parts(record[namespace][name])
        assert words == recorded_words, REMEDY
        # the last digits of float32 differ between processors and releases of jaxlib
        np.testing.assert_allclose(numbers, recorded_numbers, rtol=1e-5, atol=1e-6, err_msg=f"{shown}: {REMEDY}")


def _parts(text: str) -> tuple[list[str], list[float]]:
    """Split a text at its numbers; spaces depend on how many digits these have."""
    parts = re.split(r"((?<![\w.])-?\d+\.?\d*(?:e[+-]?\d+)?)", text)
    return ["".join(part.split()) for part in parts[::2]], [float(number) for number in parts[1::2]]


def test_the_record_has_the_calls_of_all_examples():
    calls = {name: examples.calls(name) for name in examples.namespaces()}
    recorded = {name: {k: v.partition("\n")[0] for k, v in of.items()} for name, of in record.items()}
    assert recorded == {n: {k: f">>> {v}" for k, v in of.items()} for n, of in calls.items()}, REMEDY


@each_namespace
def test_docstring_examples_run(namespace: str):
    public = importlib.import_module(namespace)
    for name, text in _docstrings(public):
        found = getattr(public, name)
        names = {**vars(inspect.getmodule(found) or public), name: found}
        with restored_settings():
            run_doctest(Block("", text, 1), names, Path(f"{namespace}.{name}"))


def _docstrings(module: ModuleType) -> Iterator[tuple[str, str]]:
    """List names with the docstrings of them, or of their methods, that have examples; in one namespace each."""
    for name in module.__all__:
        found = getattr(module, name)
        for each in (found, *(vars(found).values() if inspect.isclass(found) else ())):
            text = inspect.getdoc(each) if inspect.isroutine(each) or inspect.isclass(each) else None
            if ">>> " in (text or "") and namespaces_of_docstrings.setdefault(text, module) is module:
                yield name, text


namespaces_of_docstrings: dict[str, ModuleType] = {}


@each_namespace
def test_every_public_name_is_shown(namespace: str):
    module = importlib.import_module(namespace)
    shown = set(re.findall(r"^::::\{py:\w+\} (\w+)", "\n".join(reference.reference(namespace)), re.MULTILINE))
    assert shown == {name for name in module.__all__ if not inspect.ismodule(getattr(module, name))}


@each_namespace
def test_addresses_are_not_shown(namespace: str):
    assert " at 0x" not in "\n".join(reference.reference(namespace))


@each_namespace
def test_examples_are_blocks_of_code(namespace: str):
    lines = "\n".join(reference.reference(namespace)).splitlines()
    fenced, inside = [], False
    for line in lines:
        inside ^= line.startswith("```")
        fenced.append(inside)
    assert [line for line, within in zip(lines, fenced, strict=True) if ">>> " in line and not within] == []


def test_a_name_has_its_signature_sections_and_examples():
    text = "\n".join(reference.reference("tapeless"))
    jvp = text[text.index("{py:function} jvp(") : text.index("{py:function} legacy_prng_key(")]
    assert jvp.startswith("{py:function} jvp(fun: Callable[..., Any], primals: Sequence[Any],")
    assert jvp.partition("\n")[2].startswith(":module: tapeless\n")
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


def test_every_namespace_has_a_page():
    assert {module.__name__ for module in _namespaces(tl)} - PAGES.keys() == set()


def _namespaces(module: ModuleType) -> Iterator[ModuleType]:
    """List the public namespaces, but for those of which all names are namespaces."""
    inner = [found for name in module.__all__ if inspect.ismodule(found := getattr(module, name))]
    if len(inner) < len(module.__all__):
        yield module
    for x in inner:
        yield from _namespaces(x)
