"""Checks of results for nan and infinities: `config.debug_nans`, `config.debug_infs`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tapeless.lowering.array import DeviceArray
from tapeless.tracer import dtypes, source
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Jaxpr, Var
from tapeless.tracer.settings.config import config
from tapeless.tracer.types import aval_of


def are_watched() -> bool:
    """Tell whether results that are not finite are errors."""
    return config.debug_nans or config.debug_infs


def found_in(outs: Sequence[DeviceArray]) -> str:
    """Return "nan" or "inf" if a result has such an element and the settings make that an error; else ""."""
    watched = [(name, test) for name, test, watch in _TESTS if getattr(config, watch)]
    return next((name for name, test in watched if any(_has(x, test) for x in outs)), "")


def check(primitive: Primitive, outs: Sequence[DeviceArray], operands: Sequence[Any]) -> None:
    """Raises: FloatingPointError, if a result of a primitive is bad, naming it, the line that it came from, and the
    cause: an operand that is bad already, or two whose combination is."""
    found = found_in(outs)
    if found:
        here, why = source.describe_here(), _explained(found, primitive.name, operands)
        raise FloatingPointError(f"{found} in the result of '{primitive}'{f', at {here}' if here else ''}.{why}")


def check_program(
    jaxpr: Jaxpr, outs: Sequence[DeviceArray], args: Sequence[Any], n_constants: int = 0, name: str = ""
) -> None:
    """Check the results `outs` of a program; if one is not finite, run its equations one by one.

    Args:
      n_constants: how many of `args` come first that are constants of the program.
      name: what the program is called in messages, if not by its own name.
    Raises: FloatingPointError naming the first equation with a result that is not finite, or the program if it gives
      such a constant. An argument that is handed back is no result of anything.
    """
    if not found_in(outs):
        return
    with config.scope(debug_key_reuse=False):  # keys were followed when the program was run
        _run_by_equations(jaxpr, args)
    consts = set(jaxpr.invars[:n_constants])
    for i, (v, x) in enumerate(zip(jaxpr.outvars, outs)):
        found = "" if isinstance(v, Var) and v not in consts else found_in([x])
        if found:
            here, which = source.describe_here(), "the result" if len(outs) == 1 else f"result {i}"
            at = f", at {here}" if here else ""
            raise FloatingPointError(
                f"{found} in {which} of {name or jaxpr.name or 'f'}{at}.\n  It is a constant there."
            )


def _run_by_equations(jaxpr: Jaxpr, args: Sequence[Any]) -> None:
    env: dict[Any, Any] = dict(zip(jaxpr.invars, args, strict=True))
    for eqn in jaxpr.eqns:
        operands = [env[v] if isinstance(v, Var) else v.value for v in eqn.invars]
        results = source.at(eqn.source, eqn.primitive.apply, *operands, **eqn.params)
        env.update(zip(eqn.outvars, results))


def _has(x: Any, test: Callable[[Any], Any]) -> bool:
    return dtypes.is_inexact(aval_of(x).dtype) and bool(test(_wide(x)).any())


def _wide(x: Any) -> Any:
    """The elements of an inexact array, as NumPy tests them."""
    return np.asarray(x).astype(_WIDE[aval_of(x).dtype.kind])


def _explained(found: str, name: str, operands: Sequence[Any]) -> str:
    """Say which operands hold what is bad already, or else which of their values make it."""
    test = next(test for bad, test, _ in _TESTS if bad == found)
    bad = [f"its {which} operand, {aval_of(x).strong()}," for which, x in zip(_ORDINALS, operands) if _has(x, test)]
    if bad:
        whose = "Its operand" if len(operands) == 1 else " and ".join(bad).replace("its", "Its", 1)
        return f"\n  {whose} already hold{'s' * (len(bad) == 1)} {found}."
    if (found, name) not in _CAUSES or not all(dtypes.is_inexact(aval_of(x).dtype) for x in operands):
        return ""
    return next((f"\n  {text}" for cause, text in _CAUSES[found, name] if np.any(cause(*map(_wide, operands)))), "")


def _zero_and_infinity(x: Any, y: Any) -> Any:
    return ((x == 0) & np.isinf(y)) | (np.isinf(x) & (y == 0))


def _infinities(x: Any, y: Any) -> Any:
    return np.isinf(x) & np.isinf(y)


_ORDINALS = ("first", "second", "third", "fourth")
_CAUSES: Mapping[tuple[str, str], Sequence[tuple[Callable[..., Any], str]]] = {
    ("nan", "mul"): ((_zero_and_infinity, "It is 0 times infinity."),),
    ("nan", "add"): ((_infinities, "It is a difference of infinities."),),
    ("nan", "sub"): ((_infinities, "It is a difference of infinities."),),
    ("nan", "div"): (
        (lambda x, y: (x == 0) & (y == 0), "It is 0 divided by 0."),
        (_infinities, "It is infinity divided by infinity."),
    ),
    ("inf", "div"): ((lambda x, y: (x != 0) & (y == 0), "It is a division by 0."),),
    ("inf", "log"): ((lambda x: x == 0, "It is the logarithm of 0."),),
}
_TESTS = (("nan", np.isnan, "debug_nans"), ("inf", np.isinf, "debug_infs"))
_WIDE: Mapping[str, Any] = {"f": np.float64, "V": np.float64, "c": np.complex128}
