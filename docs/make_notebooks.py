"""Run the notebooks in docs/notebooks/, and write what their cells print back into them: python docs/make_notebooks.py

Cells run in order in one namespace, as in Jupyter; the value of a last expression is displayed. Texts are kept as
outputs, and tests compare them; a cell tagged "varies" keeps none. What displays as HTML is live on the site only.
"""

import ast
import contextlib
import io
import json
import linecache
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tapeless import config

FOLDER = Path(__file__).parent / "notebooks"


class Ran(NamedTuple):
    """A cell after it ran: what it printed, and the value that it displays."""

    cell: dict[str, Any]
    printed: str
    value: Any


def notebooks() -> list[Path]:
    """List the notebooks of the documentation."""
    return sorted(FOLDER.glob("*.ipynb"))


def read(path: Path) -> dict[str, Any]:
    """Read a notebook as JSON."""
    return json.loads(path.read_text(encoding="utf-8"))


def run(notebook: dict[str, Any]) -> Iterator[Ran]:
    """Run the cells, one after another; what a cell raises is raised. The default width they set ends with them."""
    before = config.default_bits
    try:
        yield from _run_cells(notebook["cells"])
    finally:
        config.update("default_bits", before)


def _run_cells(cells: list[dict[str, Any]]) -> Iterator[Ran]:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(cells):
        if cell["cell_type"] == "code":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                value = _run_cell(f"<cell {number + 1}>", "".join(cell["source"]), namespace)
            yield Ran(cell, printed.getvalue(), value)
        else:
            yield Ran(cell, "", None)


def _run_cell(name: str, code: str, namespace: dict[str, Any]) -> Any:
    """Run code, and return the value of its last statement if that is an expression."""
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)  # messages quote lines
    tree = ast.parse(code, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), namespace)
    return eval(compile(ast.Expression(last.value), name, "eval"), namespace) if last else None


def outputs(ran: Ran) -> list[dict[str, Any]]:
    """List the outputs of a cell that a notebook keeps, in the format of Jupyter: texts."""
    if ran.cell["cell_type"] != "code" or "varies" in ran.cell["metadata"].get("tags", []):
        return []
    found: list[dict[str, Any]] = []
    if ran.printed:
        found.append({"name": "stdout", "output_type": "stream", "text": ran.printed.splitlines(keepends=True)})
    if ran.value is not None:
        data = {"text/plain": repr(ran.value).splitlines(keepends=True)}
        found.append({"data": data, "execution_count": None, "metadata": {}, "output_type": "execute_result"})
    return found


def fresh(path: Path) -> str:
    """Return the text of a notebook with the outputs that its cells have now."""
    notebook = read(path)
    for ran in run(notebook):
        if ran.cell["cell_type"] == "code":
            ran.cell["outputs"] = outputs(ran)
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for each in notebooks():
        each.write_text(fresh(each), encoding="utf-8")
