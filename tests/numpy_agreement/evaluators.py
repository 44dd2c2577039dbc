"""Ways to run a function of a list of arrays: by the oracle, compiled, or one operation at a time."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import tapeless as tl
from tests.fuzzing import oracle

Run = Callable[[list[np.ndarray]], Any]


def interpreted(f: Callable[..., Any]) -> Run:
    """Traced, and its program evaluated by the oracle: nothing is compiled, so that every call can be made."""

    def run(operands: list[np.ndarray]) -> list[np.ndarray]:
        closed = tl.make_jaxpr(f)(operands)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = oracle.evaluate(closed.jaxpr, [*closed.consts, *operands])
        return [np.asarray(x).astype(aval.dtype) for x, aval in zip(found, closed.jaxpr.out_avals, strict=True)]

    return run


def compiled(f: Callable[..., Any]) -> Run:
    """As one program."""
    return tl.jit(f)


def eager(f: Callable[..., Any]) -> Run:
    """One operation at a time, of arrays on the device."""
    return lambda operands: f([tl.numpy.asarray(x) for x in operands])
