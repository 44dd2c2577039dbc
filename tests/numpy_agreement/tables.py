"""All rows, and names that have none with the reason."""

from dataclasses import replace

from tests.numpy_agreement import creation, elementwise, fourier, order, products, reductions, selecting, shapes
from tests.numpy_agreement.cases import Row, sampled

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
WITHOUT = creation.WITHOUT


def chunks(names: list[str], size: int) -> list[list[str]]:
    """The names a few at a time: what is compiled together is compiled sooner."""
    return [names[i : i + size] for i in range(0, len(names), size)]


def thinned(names: list[str], count: int) -> dict[str, Row]:
    """Rows with so many of their calls, spread over them."""
    return {name: replace(ROWS[name], cases=sampled(ROWS[name].cases, count, name)) for name in names}
