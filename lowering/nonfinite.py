"""Checks of results for nan and infinities: `config.debug_nans`, `config.debug_infs`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tapeless.lowering.array import DeviceArray
from tapeless.tracer import dtypes, source
from tapeless.tracer.config import config
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Jaxpr, Var


def are_watched() -> bool:
    """Tell whether results that are not finite are errors."""
    return config.debug_nans or config.debug_infs


def found_in(outs: Sequence[DeviceArray]) -> str:
    """Return "nan" or "inf" if a result has such an element and the settings make that an error; else ""."""
    watched = [(name, test) for name, test, watch in _TESTS if getattr(config, watch)]
    return next((name for name, test in watched if any(_has(x, test) for x in outs)), "")


def check(primitive: Primitive, outs: Sequence[DeviceArray]) -> None:
    """Check the results of a primitive. Raises: FloatingPointError naming it and its line, if one is not finite."""
    found = found_in(outs)
    if found:
        here = source.describe_here()
        raise FloatingPointError(f"{found} in the result of '{primitive}'{f', at {here}' if here else ''}.")


def check_program(jaxpr: Jaxpr, outs: Sequence[DeviceArray], args: Sequence[Any]) -> None:
    """Check the results `outs` of a program; if one is not finite, run its equations one by one.

    Raises: FloatingPointError naming the first equation with a result that is not finite.
    """
    if not found_in(outs):
        return
    with config.scope(debug_key_reuse=False):  # keys were followed when the program was run
        _run_by_equations(jaxpr, args)


def _run_by_equations(jaxpr: Jaxpr, args: Sequence[Any]) -> None:
    env: dict[Any, Any] = dict(zip(jaxpr.invars, args, strict=True))
    for eqn in jaxpr.eqns:
        operands = [env[v] if isinstance(v, Var) else v.value for v in eqn.invars]
        results = source.at(eqn.source, eqn.primitive.bind, *operands, **eqn.params)
        env.update(zip(eqn.outvars, results))


def _has(x: DeviceArray, test: Callable[[Any], Any]) -> bool:
    return dtypes.is_inexact(x.aval.dtype) and bool(test(np.asarray(x).astype(_WIDE[x.aval.dtype.kind])).any())


_TESTS = (("nan", np.isnan, "debug_nans"), ("inf", np.isinf, "debug_infs"))
_WIDE: Mapping[str, Any] = {"f": np.float64, "V": np.float64, "c": np.complex128}
