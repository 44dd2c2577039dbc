"""Write the lists of names of namespaces: `__all__`, and which lazy name is in which module.

A namespace imports its names, those that few programs use under `if typing.TYPE_CHECKING:`; a person keeps only these
imports. The two lists follow from them, and stand between the lines BEGIN and END of the file. `python
docs/make_names.py` writes them anew; tests/test_names.py asks whether they are fresh.
"""

import ast
import textwrap
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LAYERS = "api", "tracer"
BEGIN, END = "# ---- written by docs/make_names.py from the imports above", "# ---- end of what is written"
WIDTH = 120


def namespaces() -> list[Path]:
    """Return the files that have lists of names."""
    return [path for layer in LAYERS for path in sorted((ROOT / layer).rglob("*.py")) if BEGIN in path.read_text()]


def rewritten(path: Path) -> str:
    """Return the text of a namespace with fresh lists of names."""
    text = path.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{_lists(path, ast.parse(text).body)}{END}{after}"


def _lists(path: Path, body: list[ast.stmt]) -> str:
    late = [node for block in body if _is_type_checking(block) for node in block.body]
    names = {name for node in [*body, *late] for _, name in _imports(node)} | {
        n for node in body for n in _defined(node)
    }
    lists = _filled("__all__ = [", [f'"{name}",' for name in sorted(names) if name[0] != "_"])
    return lists + _late_names(package_name(path), late)


def _late_names(package: str, late: list[ast.stmt]) -> str:
    """Write the table of lazy names: modules within `tapeless`, and the names from each; "" stands for submodules."""
    found: dict[str, list[str]] = {}
    for node in late:
        for module, name in _imports(node):
            found.setdefault("" if module == package else module.removeprefix("tapeless."), []).append(name)
    if not found:
        return ""
    rows = [row for module, names in sorted(found.items()) for row in _row(module, sorted(names))]
    return "\n".join(["", "_LATE = {", *rows, "}  # fmt: skip\n"])


def _row(module: str, names: list[str]) -> list[str]:
    lines = textwrap.wrap(" ".join(names), WIDTH - 12, break_on_hyphens=False)
    if len(lines) == 1 and len(module) + len(lines[0]) < WIDTH - 12:
        return [f'    "{module}": "{lines[0]}",']
    return [f'    "{module}": (', *[f'        "{line} "' for line in lines[:-1]], f'        "{lines[-1]}"', "    ),"]


def _filled(opening: str, words: list[str]) -> str:
    indent = " " * 4
    lines = textwrap.wrap(" ".join(words), WIDTH, initial_indent=indent, subsequent_indent=indent)
    return "\n".join([opening, *lines, "]  # fmt: skip\n"])


def package_name(path: Path) -> str:
    """Return the installed name of a file: api/ is tapeless."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts[1:] if parts[0] == "api" else parts
    return ".".join(["tapeless", *[part for part in parts if part != "__init__"]])


def _is_type_checking(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def _imports(node: ast.stmt) -> Iterator[tuple[str, str]]:
    """Give modules and names of an import from this package; a name after `as` that is another is the one meant."""
    if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "tapeless":
        yield from ((str(node.module), alias.asname or alias.name) for alias in node.names)


def _defined(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, ast.AnnAssign):
        yield ast.unparse(node.target)
    elif isinstance(node, ast.Assign):
        yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def write() -> None:
    """Write the lists of all namespaces."""
    for path in namespaces():
        path.write_text(rewritten(path))


if __name__ == "__main__":
    write()
