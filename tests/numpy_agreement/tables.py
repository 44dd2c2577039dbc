"""All rows, and names that have none with the reason."""

from dataclasses import replace

import numpy as np

from tests.numpy_agreement import (
    creation,
    elementwise,
    fourier,
    order,
    products,
    reductions,
    selecting,
    shapes,
    single_calls,
)
from tests.numpy_agreement.cases import Case, Row, sampled

ROWS: dict[str, Row] = {
    **elementwise.ROWS,
    **reductions.ROWS,
    **shapes.ROWS,
    **products.ROWS,
    **fourier.ROWS,
    **order.ROWS,
    **creation.ROWS,
    **selecting.ROWS,
}
for name, case in single_calls.CALLS:
    ROWS[name] = replace(ROWS[name], cases=[*ROWS[name].cases, case])
SINGLE = {
    name: replace(ROWS[name], cases=[case for called, case in single_calls.CALLS if called == name])
    for name in dict(single_calls.CALLS)
}
WITHOUT = creation.WITHOUT


def chunks(names: list[str], size: int) -> list[list[str]]:
    """The names a few at a time: what is compiled together is compiled sooner."""
    return [names[i : i + size] for i in range(0, len(names), size)]


def thinned(names: list[str], count: int) -> dict[str, Row]:
    """Rows with so many of their calls, spread over them."""
    return {name: replace(ROWS[name], cases=sampled(ROWS[name].cases, count, name)) for name in names}


def at_ends(names: list[str]) -> dict[str, Row]:
    """Rows with their calls of what is not finite: XLA's functions have rules of their own there."""
    found = {name: [case for case in ROWS[name].cases if _is_at_ends(case)] for name in names}
    return {name: replace(ROWS[name], cases=cases) for name, cases in found.items() if cases}


def _is_at_ends(case: Case) -> bool:
    return any(isinstance(x, np.ndarray) and np.shares_memory(x, elementwise.ENDS) for x in case.args)
