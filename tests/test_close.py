"""The comparison that tests share finds what it is for: other values, shapes, dtypes and structures."""

import numpy as np
import pytest

import tapeless.numpy as tnp
from tests import close
from tests.close import Close, single_precision, single_precision_and_dtypes, some_roundings, some_roundings_of_float64

ONES = np.ones(2)
DIFFERENT = {
    "value": (some_roundings, ONES, ONES + 1e-12),
    "nan": (some_roundings, ONES, np.array([1, np.nan])),
    "shape": (some_roundings, ONES, np.float64(1)),
    "tuple": (some_roundings, ONES, (1.0, 1.0)),
    "leaf": (some_roundings, {"a": ONES}, {"a": 2 * ONES}),
    "dtype": (single_precision_and_dtypes, tnp.ones(2), ONES),
    "width": (some_roundings_of_float64, tnp.ones(2), [1, 1]),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_a_difference_is_found(name: str):
    compare, found, wanted = DIFFERENT[name]
    with pytest.raises(AssertionError):
        compare(found, wanted)


def test_another_structure_is_found():
    with pytest.raises(ValueError, match="the tree does not match the structure"):
        some_roundings((ONES, ONES), (ONES,))


def test_what_agrees():
    single_precision((tnp.ones(2), {"a": tnp.zeros(())}), ([1, 1 + 1e-7], {"a": 1e-7}))
    close.close(ONES, ONES)


def test_tolerances_are_ordered_by_name():
    """None is wider than what it says, and float32 has the widest."""
    narrow, wide = close.some_roundings, close.random_nesting
    assert all(c.rtol <= 2e-5 and c.atol <= 1e-5 for c in vars(close).values() if isinstance(c, Close))
    assert narrow.rtol < close.small_programs.rtol < close.many_roundings.rtol < close.random_loops.rtol < wide.rtol
