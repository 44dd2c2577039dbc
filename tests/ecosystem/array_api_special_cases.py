"""Count special cases of the array API standard that fail: `python -m tests.ecosystem.array_api_special_cases`.

The standard is that of 2024.12. As in `array-api-tests`, a row is one case of the function, and of its operator and its
operator in place if there are such. For each case that fails, it prints the first point where the result differs, with
tapeless.numpy and with jax.numpy. The rows in `FORGONE` count in the place of those in the tables.
"""

import operator
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import tapeless as tl
import tapeless.numpy as tnp
from tests.api.numpy import special_cases as standard
from tests.api.numpy.test_special_cases import PAIRS, RTOL, VALUES, complex_grid, disagreements, parts_of

OPERATORS = {
    "abs": "abs", "add": "add", "divide": "truediv", "equal": "eq", "floor_divide": "floordiv", "multiply": "mul",
    "negative": "neg", "not_equal": "ne", "pow": "pow", "remainder": "mod", "subtract": "sub",
}  # fmt: skip


def forms(xp: Any, name: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """A function, its operator and its operator in place."""
    yield name, getattr(xp, name)
    short = OPERATORS.get(name)
    for word in (f"__{short}__", f"__i{short}__"):
        if short and hasattr(operator, word):
            yield word, getattr(operator, word)


def rows(name: str, text: str, forgone: str) -> Iterator[tuple[str, str]]:
    """The rows of a table, each with a name; those that it forgoes in the place of those with their operands."""
    replaced = {" ".join(operands): parts for operands, parts in (standard.rows(forgone) if forgone else [])}
    own = {" ".join(operands): parts for operands, parts in standard.rows(text)}
    for operands, parts in {**own, **replaced}.items():
        yield f"{name}({operands}) -> {', '.join(parts)}", f"{operands}: {', '.join(parts)}"


def cases(xp: Any) -> Iterator[tuple[str, str | None]]:
    """Each case, and how the namespace differs from it, if it does."""
    real, grid = np.array(VALUES), complex_grid("complex128")
    tables = (
        (standard.ONE, [(x,) for x in VALUES], (real,), ""),
        (standard.TWO, PAIRS, tuple(np.array(PAIRS).T), ""),
        (standard.COMPLEX, PAIRS, (grid,), "complex "),
    )
    for table, points, args, kind in tables:
        for name, text in table.items():
            is_there = name in standard.FORGONE and bool(kind) == (name == "sqrt")
            for form, f in forms(xp, name):
                found = parts_of(f(*(xp.asarray(x) for x in args)))
                for case, row in rows(kind + form, text, standard.FORGONE[name] if is_there else ""):
                    yield case, next(disagreements(points, found, row, RTOL["complex128" if kind else "float64"]), None)


def main() -> None:
    """Run all cases with both namespaces, and print those that fail."""
    warnings.simplefilter("ignore")
    jax.config.update("jax_enable_x64", True)
    with tl.enable_x64(), np.errstate(all="ignore"):
        ours, theirs = dict(cases(tnp)), dict(cases(jnp))
    for case in ours:
        if ours[case] or theirs[case]:
            sys.stdout.write(f"{case}\n    tapeless: {ours[case] or 'holds'}\n    jax: {theirs[case] or 'holds'}\n")
    wrong, only = (sum(map(bool, found.values())) for found in (ours, theirs))
    alone = sum(bool(ours[case]) and not theirs[case] for case in ours)
    sys.stdout.write(f"of {len(ours)} cases fail: {wrong} of tapeless, {only} of jax; {alone} of tapeless alone\n")


if __name__ == "__main__":
    main()
