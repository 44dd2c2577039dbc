"""Write docs/primitives.md, the table of primitives and their rules: `python docs/make_primitives.py`.

tests/test_primitives_page.py checks that the page is what this gives.
"""

import importlib
import pkgutil
from pathlib import Path

import tapeless.interpreters.rules  # fills the tables
import tapeless.lowering.rules  # fills the tables
import tapeless.tracer.primitives
from tapeless.interpreters import jvp, partial_eval, transpose, vmap
from tapeless.lowering import emit
from tapeless.tracer.core import Primitive

PAGE = Path(__file__).parent / "primitives.md"
TABLES = {
    "jvp": jvp.rules,
    "transpose": {**transpose.rules, **transpose.accumulating},
    "vmap": vmap.rules,
    "partial_eval": partial_eval.rules,
    "emit": emit.rules,
}
HEAD = """# Primitives

Written by `python docs/make_primitives.py` from the tables themselves. A primitive is a name and a typing rule; a
mark says that a table has a rule for it. Linear: the operands it is structurally linear in, `each` for separately
or jointly in all. Only primitives that carry programs need a rule for partial evaluation.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(section(family) for family in families())])


def families() -> list[str]:
    """Modules of tracer/primitives that define primitives."""
    found = [m.name for m in pkgutil.iter_modules(tapeless.tracer.primitives.__path__)]
    return [name for name in found if primitives_of(name)]


def primitives_of(family: str) -> list[Primitive]:
    """Primitives defined in one module, in order."""
    module = importlib.import_module(f"tapeless.tracer.primitives.{family}")
    return [value for name, value in vars(module).items() if isinstance(value, Primitive) and name.endswith("_p")]


def section(family: str) -> str:
    """One family's table."""
    rows = [
        f"## {family}\n",
        f"| primitive | {' | '.join(TABLES)} | linear |",
        f"| --- | {' | '.join(['---'] * len(TABLES))} | --- |",
        *(row(p) for p in primitives_of(family)),
    ]
    return "\n".join(rows) + "\n"


def row(primitive: Primitive) -> str:
    """One primitive's row."""
    marks = ["✓" if primitive in table else "" for table in TABLES.values()]
    return f"| `{primitive}` | {' | '.join(marks)} | {linearity(primitive)} |"


def linearity(primitive: Primitive) -> str:
    """What it is linear in."""
    if primitive not in jvp.structurally_linear:
        return ""
    positions = jvp.structurally_linear[primitive]
    if isinstance(positions, slice):
        return f"all from {positions.start}"
    return "each" if positions is None else ", ".join(map(str, positions))


if __name__ == "__main__":
    PAGE.write_text(page())
