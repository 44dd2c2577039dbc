"""docs/notebooks/*.ipynb run from the first cell to the last, and keep what their cells print."""

from pathlib import Path
from typing import Any

import pytest

from tapeless.tracer.settings.config import config
from tests.pages import maker

notebooks = maker("notebooks")
each_notebook = pytest.mark.parametrize("path", notebooks.notebooks(), ids=lambda path: path.name)


@each_notebook
def test_cells_run_and_show_what_the_notebook_keeps(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    notebook, live = notebooks.read(path), list[str]()
    for ran in notebooks.run(notebook):
        assert notebooks.outputs(ran) == ran.cell.get("outputs", []), "run python docs/make_notebooks.py"
        if hasattr(ran.value, "_repr_html_"):
            live.append(ran.value._repr_html_())
    shown = [kind for html in live for kind in ("explanation", "profile") if f'class="tapeless-{kind}"' in html]
    assert {"explanation", "profile"} <= set(shown)


@each_notebook
def test_format(path: Path):
    """What Jupyter's schema of version 4.5 asks of a notebook such as these."""
    notebook: dict[str, Any] = notebooks.read(path)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert set(notebook) == {"cells", "metadata", "nbformat", "nbformat_minor"}
    code = {"cell_type", "execution_count", "id", "metadata", "outputs", "source"}
    for cell in notebook["cells"]:
        assert set(cell) == (code if cell["cell_type"] == "code" else {"cell_type", "id", "metadata", "source"})
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)


def test_the_last_expression_is_the_value():
    cells = [{"cell_type": "code", "source": ["x = 2\n", "print(x)\n", "x + 1"], "metadata": {}}]
    (ran,) = notebooks.run({"cells": cells})
    assert (ran.printed, ran.value) == ("2\n", 3)
    assert [each["output_type"] for each in notebooks.outputs(ran)] == ["stream", "execute_result"]


def test_the_default_width_ends_with_a_notebook():
    source = ["import tapeless as tl\n", "tl.config.update('default_bits', 64)\n", "tl.numpy.zeros(1).dtype.name"]
    (ran,) = notebooks.run({"cells": [{"cell_type": "code", "source": source, "metadata": {}}]})
    assert (ran.value, config.default_bits) == ("float64", 32)


def test_errors_end_a_notebook():
    cells = [{"cell_type": "code", "source": ["1 / 0"], "metadata": {}}]
    with pytest.raises(ZeroDivisionError):
        list(notebooks.run({"cells": cells}))
