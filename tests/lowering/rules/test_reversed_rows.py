"""Reverses of rows that were cut from padded arrays, against NumPy: docs/xla_defects.md, `reversed_rows`.

Each case is a program of its own: several results would share arrays, and not be one kernel.
"""

from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp


def ways(x: Any, np: Any, m: Any, jit: Any, rows: int) -> dict[str, Any]:
    """Products of two reductions over reversed rows, the second of masked ones: `np` is NumPy or ours."""
    n = len(x)
    first, second = (rows - 1) * n - 1, (rows - 2) * n + 1

    def cut(x: Any, low: int) -> Any:
        return np.concatenate([np.zeros(low, x.dtype), x, np.zeros((rows - 1) * n - low, x.dtype)]).reshape(rows, n)

    def product(rows_of: Any, before: Any = lambda y: y, after: Any = lambda y: y, reduce: Any = np.sum) -> Any:
        a = reduce(after(before(rows_of(x, first))[::-1]), 0)
        return a * reduce(np.where(m, after(before(rows_of(x, second))[::-1]), 0), 0)

    flip = jit(lambda y: y[::-1])
    return {
        "pad": lambda: product(lambda x, low: np.pad(x, (low, (rows - 1) * n - low)).reshape(rows, n)),
        "concatenate": lambda: product(cut),
        "maximum": lambda: product(cut, lambda y: y + 1, reduce=np.max),
        "masked before": lambda: product(cut, lambda y: np.where(m, y, 0)),
        "computed before": lambda: product(cut, lambda y: 3 * y),
        "transposed": lambda: product(cut, lambda y: np.transpose(np.transpose(y)[:, ::-1])[::-1]),
        "in functions": lambda: np.sum(flip(cut(x, first)), 0) * np.sum(np.where(m, flip(cut(x, second)), 0), 0),
    }


@pytest.mark.parametrize("rows, n", [(2, 6), (2, 20), (3, 11), (8, 6)])
@pytest.mark.parametrize("name", ways(np.ones(3), np, None, lambda f: f, 2))
def test_against_numpy(name: str, rows: int, n: int):
    x = np.arange(1, n + 1, dtype=np.float32)
    j, i = np.indices((rows, n))
    m = n * j >= i
    found = tl.jit(lambda x: ways(x, tnp, m, tl.jit, rows)[name]())(x)
    np.testing.assert_array_equal(found, ways(x, np, m, lambda f: f, rows)[name]())


def test_other_reverses_are_one_operation():
    for f in (lambda x: x[::-1], lambda x: tnp.pad(x, 1)[::-1], lambda x: tnp.pad(x, 1).reshape(-1, 2)[::-1]):
        assert tl.jit(f).lower(tl.ShapeDtypeStruct((70,), "float32")).as_text().count("reverse") == 1
