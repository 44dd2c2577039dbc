"""Comparisons for tests: the names of `jax._src.public_test_util` that libraries use."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tapeless.testing import check_grads
from tapeless.tracer import pytree
from tapeless.tracer.types import aval_of

__all__ = ["check_close", "check_grads"]

# As JAX has them, of absolute and relative differences; other dtypes must be equal.
_TOLERANCES = {
    "bfloat16": 1e-2, "float16": 1e-3, "float32": 1e-6, "float64": 1e-15, "complex64": 1e-6, "complex128": 1e-15,
}  # fmt: skip


def check_close(xs: Any, ys: Any, atol: Any = None, rtol: Any = None, err_msg: str = "") -> None:
    """Check that pytrees of arrays are close, and of the same structure.

    Args:
      atol, rtol: a number, or numbers by the names of dtypes; by default as the dtypes allow.
    Raises: AssertionError if they are not.
    """
    (left, treedef), (right, other) = pytree.flatten(xs), pytree.flatten(ys)
    assert treedef == other, f"{treedef} is not {other}. {err_msg}"
    for x, y in zip(left, right, strict=True):
        absolute, relative = [max(_tolerance(given, str(aval_of(v).dtype)) for v in (x, y)) for given in (atol, rtol)]
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), relative, absolute, err_msg=err_msg)


def _tolerance(given: Any, dtype: str) -> float:
    if given is None or isinstance(given, Mapping):
        return {**_TOLERANCES, **{str(np.dtype(key)): value for key, value in (given or {}).items()}}.get(dtype, 0.0)
    return given
