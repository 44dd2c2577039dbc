"""Write docs/primitives.md, the tables and the primitives in them: `python docs/make_primitives.py`.

tests/test_primitives_page.py checks that the page is what this gives.
"""

import importlib
import inspect
import pkgutil
import re
import sys
from pathlib import Path
from typing import Any

import tapeless.tracer.primitives
from tapeless.interpreters import index_rows, jvp, partial_eval, transpose, vmap
from tapeless.lowering import emit
from tapeless.tracer.core import Primitive, all_primitives
from tapeless.tracer.rules import Table
from tapeless.tracer.types import aval_of

sys.path.insert(0, str(Path(__file__).parents[1]))  # the samples tell how rows combine
from tests.samples import SAMPLES
from tests.samples.sample import ours

PAGE = Path(__file__).parent / "primitives.md"
COLUMNS = [jvp.rules, transpose.rules, vmap.rules, partial_eval.rules, emit.rules]
HEAD = """# Primitives

This page lists every primitive, and the tables that have a rule for it; `python docs/make_primitives.py` writes it
from the tables. A primitive is a name and a typing rule; everything else about it is an entry in a table.
[adding_a_primitive.md](adding_a_primitive.md) adds a primitive.

- [The tables](#the-tables) explains an entry of each table, and what a primitive without an entry lacks.
- A section for each family shows by ✓ which tables have an entry for a primitive. *Linear* lists the operands in
  which it is linear; *each* means separately or jointly in all. *Index row* says how the elements that are read for
  an element of the result are combined: as a sum of *terms*, by an elementwise function (*pointwise*), by a *monoid*,
  or by a function of whole axes (*core*).
- [Without an index row](#without-an-index-row) lists the primitives without an index row, with the reasons.
"""
LEGEND = """## The tables

| table | where | entry | without an entry | entries |
| --- | --- | --- | --- | --- |"""


def page() -> str:
    """Write the whole page."""
    found = tables()
    rows = [legend_row(path, table) for path, table in found.items()]
    shown = {id(table) for table in (*COLUMNS, jvp.structurally_linear, index_rows.rows, index_rows.reasons)}
    others = [table for table in found.values() if id(table) not in shown]
    return "\n".join([HEAD, LEGEND, *rows, "", *(section(family, others) for family in families()), reasons()])


def tables() -> dict[str, Table[Any]]:
    """List every table, by the module and the name it is made under, layer by layer."""
    found = dict[str, Table[Any]]()
    for layer in ("tracer", "interpreters", "lowering"):
        package = importlib.import_module(f"tapeless.{layer}")
        for module in sorted(m.name for m in pkgutil.walk_packages(package.__path__, package.__name__ + ".")):
            loaded = importlib.import_module(module)
            made = re.findall(r"^(\w+)\b[^=\n]*= (?:Table|Rules)\(", inspect.getsource(loaded), re.MULTILINE)
            found |= {f"{module.removeprefix('tapeless.')}.{name}": vars(loaded)[name] for name in made}
    return found


def legend_row(path: str, table: Table[Any]) -> str:
    """Write one table's row."""
    known = set(all_primitives())
    cells = [table.name, f"`{path}`", table.entry, table.absent, str(sum(p in known for p in table))]
    escaped = [re.sub(r"([|*])", r"\\\1", cell) for cell in cells]
    return f"| {' | '.join(escaped)} |"


def families() -> list[str]:
    """List the modules of tracer/primitives that define primitives."""
    found = [m.name for m in pkgutil.iter_modules(tapeless.tracer.primitives.__path__)]
    return [name for name in found if primitives_of(name)]


def primitives_of(family: str) -> list[Primitive]:
    """List the primitives defined in one module, in order."""
    module = importlib.import_module(f"tapeless.tracer.primitives.{family}")
    return [value for name, value in vars(module).items() if isinstance(value, Primitive) and name.endswith("_p")]


def section(family: str, others: list[Table[Any]]) -> str:
    """Write one family's table."""
    heads = ["primitive", *[table.name for table in COLUMNS], "linear", "index row", "other tables"]
    rows = [
        f"## {family}\n",
        f"| {' | '.join(heads)} |",
        f"| {' | '.join(['---'] * len(heads))} |",
        *(row(p, others) for p in primitives_of(family)),
    ]
    return "\n".join(rows) + "\n"


def row(primitive: Primitive, others: list[Table[Any]]) -> str:
    """Write one primitive's row."""
    marks = ["✓" if primitive in table else "" for table in COLUMNS]
    rest = ", ".join(table.name for table in others if primitive in table)
    return f"| `{primitive}` | {' | '.join(marks)} | {linearity(primitive)} | {combinations(primitive)} | {rest} |"


def linearity(primitive: Primitive) -> str:
    """List the operands that a primitive is linear in."""
    if primitive not in jvp.structurally_linear:
        return ""
    positions = jvp.structurally_linear[primitive]
    if isinstance(positions, slice):
        return f"all from {positions.start}"
    return "each" if isinstance(positions, jvp.All) else ", ".join(map(str, positions))


def combinations(primitive: Primitive) -> str:
    """Say how the elements that are read are combined, in the samples."""
    if primitive not in index_rows.rows:
        return ""
    used = [sample for sample in SAMPLES if sample.primitive is primitive]
    found = [index_rows.rows[primitive](s.params, [aval_of(ours(x)) for x in s.args]) for s in used]
    kinds = {row.combination.value + (f" {row.operation}" if row.operation else "") for row in found}
    return " or ".join(sorted(kinds, reverse=True))


def reasons() -> str:
    """Say why some primitives have no index row."""
    groups: dict[str, list[str]] = {}
    for primitive, reason in sorted(index_rows.reasons.items(), key=lambda item: str(item[0])):
        groups.setdefault(reason, []).append(f"`{primitive}`")
    listed = [f"- {', '.join(names)}: {reason}." for reason, names in sorted(groups.items())]
    return "\n".join(["## Without an index row\n", *listed]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
