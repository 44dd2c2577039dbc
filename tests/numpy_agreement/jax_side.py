"""Dtypes of results against those of `jax.numpy`, both found by tracing alone."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import tapeless as tl
import tapeless.numpy as tnp
from tests.numpy_agreement.cases import Case, Row, changed, dtypes_in, sampled
from tests.numpy_agreement.comparing import Problem, function_of, leaves


def dtype_problems(jax: Any, rows: dict[str, Row], bits: int, count: int) -> list[Problem]:
    """Where dtypes differ from JAX's at a default width, in so many calls of each row."""
    found = []
    with jax.enable_x64(bits == 64), tl.enable_x64(bits == 64):
        for name, row in rows.items():
            cases = [case for case in row.cases if row.ours is None and (bits == 64 or _fits_32_bits(case))]
            found += [p for case in sampled(cases, count, f"{name}{bits}") for p in _differences(jax, name, row, case)]
    return found


def _fits_32_bits(case: Case) -> bool:
    """Whether JAX would take the operands as they are."""
    return all(d.itemsize < 8 or d == np.complex64 for d in dtypes_in(case))


def _differences(jax: Any, name: str, row: Row, case: Case) -> Iterator[Problem]:
    try:
        theirs = _avals(jax.eval_shape, jax.Array, function_of(jax.numpy, name), case)
    except Exception:
        return  # what JAX does not do is no guide
    try:
        ours = _avals(tl.eval_shape, tl.Array, function_of(tnp, name), case)
    except (TypeError, ValueError, NotImplementedError, IndexError, OverflowError):
        return  # compared with NumPy
    if ours != theirs and not any(applies(case) for applies in row.jax.values()):
        yield Problem(name, case, f"{' '.join(ours)}, JAX {' '.join(theirs)}")


def _avals(eval_shape: Any, array: type, f: Any, case: Case) -> list[str]:
    operands: list[Any] = []
    changed(case, lambda x: operands.append(x) or x)

    def call(xs: list[Any]) -> list[Any]:
        given = iter(xs)
        args, kwargs = changed(case, lambda _: next(given))
        return [x for x in leaves(f(*args, **kwargs)) if isinstance(x, array)]

    return [str(x.dtype) for x in eval_shape(call, operands)]
