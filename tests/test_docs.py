"""README.md, its neighbours and docs/*.md are programs: each python block runs, in order; blocks of a file share names.

Settings end with a file.

    ```python             executed
    ```python             containing `>>> `: run by doctest (an ellipsis ... matches anything)
    ```text output        what the block before it printed, compared (an ellipsis ... matches anything)
    ```text, ```bash, …   only shown

A python block that would not run is not allowed to say so (```python no-run): a reader would copy it.
"""

import contextlib
import doctest
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tapeless.tracer import core
from tapeless.tracer.settings.config import config
from tests.settings import forget, restored_settings

ROOT = Path(__file__).resolve().parents[1]
FILES = [
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
FENCE = re.compile(
    r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=indent)```[ \t]*$", re.MULTILINE | re.DOTALL
)
LINK = re.compile(r"\]\((?!https?:|mailto:|#)(?P<target>[^)#\s]+)[^)]*\)")
OPTIONS = doctest.ELLIPSIS
each_file = pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))


@dataclass(frozen=True)
class Block:
    info: str
    body: str
    line: int  # of its first line of code in the file

    @property
    def is_python(self) -> bool:
        return self.info.split()[:1] in (["python"], ["py"], ["pycon"])


def blocks(text: str) -> Iterator[Block]:
    for match in FENCE.finditer(text):
        indent = match["indent"]
        body = "".join(line.removeprefix(indent) for line in match["body"].splitlines(keepends=True))
        yield Block(match["info"].strip(), body, text.count("\n", 0, match.start()) + 2)


def run_doctest(block: Block, namespace: dict[str, object], path: Path) -> None:
    test = doctest.DocTestParser().get_doctest(block.body, {}, path.name, str(path), block.line - 1)
    test.globs = namespace
    report = io.StringIO()
    failed, _ = doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=report.write, clear_globs=False)
    assert not failed, report.getvalue()


def run_block(block: Block, namespace: dict[str, object], path: Path) -> str:
    """Runs a python block so that a traceback shows the Markdown file and its line; returns what it printed."""
    if block.body.lstrip().startswith(">>> "):
        run_doctest(block, namespace, path)
        return ""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("\n" * (block.line - 1) + block.body, str(path), "exec"), namespace)
    return printed.getvalue()


def check_output(block: Block, printed: str | None, where: str) -> None:
    assert printed is not None, f"{where}: `text output` must follow a python block"
    if not doctest.OutputChecker().check_output(block.body, printed, OPTIONS):
        assert printed == block.body, f"{where}: this is not what the block before it prints"


def run_file(path: Path, text: str) -> None:
    with restored_settings():
        run_blocks(path, blocks(text))


def run_blocks(path: Path, found: Iterable[Block]) -> None:
    namespace: dict[str, object] = {"__name__": "__main__"}
    printed = None
    for block in found:
        where = f"{path.name}:{block.line}"
        if block.is_python:
            assert block.info == "python", f"{where}: ```{block.info} is refused; every python block runs"
            printed = run_block(block, namespace, path)
        elif block.info == "text output":
            check_output(block, printed, where)
        else:
            printed = None


@each_file
def test_blocks_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    before = set(core._registry)
    try:
        run_file(path, path.read_text())
    finally:
        # A primitive of the docs is gone with its test; those of modules that a page was the first to import stay.
        new = [p for name, p in core._registry.items() if name not in before]
        forget({p for p in new if not p.family.startswith("tapeless.")})


@each_file
def test_links_lead_somewhere(path: Path):
    targets = [match["target"] for match in LINK.finditer(FENCE.sub("", path.read_text()))]
    missing = [target for target in targets if not (path.parent / target).exists()]
    assert not missing


# ---- the machinery above, on small texts

HERE = Path("here.md")


def test_blocks_share_names_and_output_is_compared():
    run_file(HERE, "```python\nx = 2\nprint(x)\n```\n\n```text output\n2\n```\n```python\n>>> x + 1\n3\n```\n")


def test_settings_of_a_file_end_with_it():
    run_file(HERE, '```python\nimport tapeless as tl\n\ntl.config.update("default_bits", 64)\n```\n')
    assert config.default_bits == 32


@pytest.mark.parametrize(
    "text, message",
    [
        ("```python no-run\nx = 1\n```\n", "here.md:2: ```python no-run is refused"),
        (
            "```python\nprint(1)\n```\n```text output\n2\n```\n",
            "here.md:5: this is not what the block before it prints",
        ),
        ("```text output\n2\n```\n", "here.md:2: `text output` must follow a python block"),
        ("```python\n>>> 1 + 1\n3\n```\n", "Expected:\n      3\n  Got:\n      2"),
    ],
)
def test_what_is_wrong_is_found(text: str, message: str):
    with pytest.raises(AssertionError) as caught:
        run_file(HERE, text)
    assert message in str(caught.value)


def test_an_error_has_the_line_of_the_markdown_file():
    with pytest.raises(ZeroDivisionError) as caught:
        run_file(HERE, "text\n\n```python\nx = 1\nx / 0\n```\n")
    assert caught.traceback[-1].lineno + 1 == 5
