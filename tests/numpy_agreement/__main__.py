"""Run every call of the tables compiled as users compile, and print each that does not agree.

python -m tests.numpy_agreement [NAMES] [--jax]
"""

import argparse
import importlib
import os
import sys

os.environ.setdefault("TAPELESS_NUMPY_GRID", "1")  # before the tables are made
os.environ.setdefault("TAPELESS_CACHE", "0")

from tests.numpy_agreement import jax_side
from tests.numpy_agreement.comparing import Problem, problems
from tests.numpy_agreement.evaluators import compiled
from tests.numpy_agreement.tables import ROWS, chunks


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.numpy_agreement", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="functions, as sum or linalg.norm; all if there are none")
    parser.add_argument("--jax", action="store_true", help="compare dtypes with JAX's, too, under both default widths")
    options = parser.parse_args()
    names = options.names or sorted(ROWS)
    rows = {name: ROWS[name] for name in names}
    found = [
        p for chunk in chunks(names, 8) for p in _printed(problems({name: rows[name] for name in chunk}, compiled))
    ]
    if options.jax:
        jax = importlib.import_module("jax")
        for bits in (32, 64):
            found += _printed(jax_side.dtype_problems(jax, rows, bits, 1000))
    calls = sum(len(row.cases) for row in rows.values())
    sys.stdout.write(f"{calls} calls of {len(rows)} functions, {len(found)} disagree\n")
    return bool(found)


def _printed(found: list[Problem]) -> list[Problem]:
    for problem in found:
        sys.stdout.write(f"{problem}\n")
        sys.stdout.flush()
    return found


if __name__ == "__main__":
    sys.exit(main())
