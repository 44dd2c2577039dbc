"""Functions of distributions from their formulas: parameters, operand promotion, location and scale, supports.

A distribution declares the parameters of its functions once, by `elementwise`, and decorates formulas with that.

As in SciPy the result is nan where a parameter is out of its domain or an operand is nan, and outside of the support
a density is 0. Where the value of a formula is not used, it is evaluated at an inner point instead, so that its
derivatives are not nan there ("double where").
"""

import functools
import inspect
import math
from collections.abc import Callable
from types import FunctionType
from typing import Any, ParamSpec

import numpy as np

from tapeless.scipy.special_functions.gamma_relatives import check_real
from tapeless.tracer import core
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.eager_calls import one_program
from tapeless.tracer.numpy.promotion import as_array, broadcast, mixing_inside, promoted_inexact_dtypes

Operands = ParamSpec("Operands")
Formula = Callable[..., Any]

_COMMON = """

Operands broadcast; the result is nan unless {}.
Raises: TypeError for complex numbers, ValueError if shapes do not broadcast.
"""


def elementwise(valid: str) -> Callable[[Callable[Operands, Array]], Callable[[Formula], Callable[Operands, Array]]]:
    """Make a decorator of formulas from a function without a body, which declares their parameters.

    The decorated function has the declared parameters. It promotes real operands to one floating-point dtype,
    broadcasts them and evaluates its formula on them, all of them by position. Its docstring is the formula's first
    line and what is common to all functions of the declared parameters.

    Args:
      valid: for which parameters the result is not nan, in words.
    """

    def declared(parameters: Callable[Operands, Array]) -> Callable[[Formula], Callable[Operands, Array]]:
        return functools.partial(_function, parameters, _COMMON.format(valid))

    return declared


def _function(parameters: Callable[Operands, Array], common: str, formula: Formula) -> Callable[Operands, Array]:
    """Make a function of the declared parameters from its formula."""
    signature = inspect.signature(parameters)
    names, defaults = [*signature.parameters], [p.default for p in signature.parameters.values()]
    name = f"{formula.__module__.rpartition('.')[2]}.{formula.__name__}"
    compiled, check_call = core.compound(formula), _renamed(parameters, formula.__name__)

    @functools.wraps(formula)
    def function(*operands: Operands.args, **named: Operands.kwargs) -> Array:
        check_call(*operands, **named)
        given = len(operands)
        rest = [named.get(parameter, default) for parameter, default in zip(names[given:], defaults[given:])]
        return _evaluated(name, compiled, *operands, *rest)

    function.__doc__ = (formula.__doc__ or "") + common
    function.__annotations__ = parameters.__annotations__
    vars(function)["__signature__"] = signature
    return one_program(function, declared=parameters)


def formula_of(function: Callable[..., Array]) -> Formula:
    """Return the formula of a function, for other formulas: their operands are promoted and broadcast."""
    return inspect.unwrap(function)


def _renamed(parameters: Any, name: str) -> Callable[..., Any]:
    """Return a function that only raises a TypeError, Python's own, if the function `name` cannot be called so."""
    check = FunctionType(parameters.__code__, {}, name, parameters.__defaults__)
    check.__qualname__ = name
    return check


@mixing_inside
def _evaluated(name: str, formula: Formula, *operands: Any) -> Array:
    xs = promoted_inexact_dtypes(name, *operands)
    check_real(name, xs[0])
    return formula(*map(as_array, broadcast(name, *xs)))


@elementwise(valid="scale > 0")
def at_x(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array: ...


@elementwise(valid="scale > 0")
def at_q(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array: ...


def standardize(x: Any, loc: Any, scale: Any, valid: Any = True) -> Any:
    """Compute (x - loc) / scale; nan where the scale is not positive, or where other parameters are not `valid`."""
    return only(valid & (scale > 0), (x - loc) / tnp.where(scale > 0, scale, 1))


def only(valid: Any, y: Any) -> Any:
    """Return y where `valid` is true, else nan."""
    return tnp.where(valid, y, np.nan)


def on_support(y: Any, inside: Any, value: Any, inner: float, formula: Callable[[Any], Any]) -> Any:
    """Evaluate a formula where `inside` is true; elsewhere return `value`, and nan where y is nan.

    Args:
      inner: a number at which the formula and its derivatives are finite.
    """
    outside = ~inside & (y == y)
    return tnp.where(outside, value, formula(tnp.where(outside, inner, y)))


def between(y: Any, low: float, high: float, outside: tuple[float, float], formula: Callable[[Any], Any]) -> Any:
    """Evaluate a formula on an interval, ends included; below and above it return the two numbers `outside`."""
    values = tnp.where(y < low, *outside)
    return on_support(y, (y >= low) & (y <= high), values, 0.5, formula)


def clip_to_interval(y: Any, low: Any, high: Any) -> Any:
    """Clip y to an interval, on which the derivative is 1, ends included; nan stays."""
    return tnp.where(y < low, low, tnp.where(y > high, high, y))


def quantile(q: Any, formula: Callable[[Any], Any]) -> Any:
    """Evaluate a formula at probabilities q; nan unless q is from 0 to 1."""
    inside = (q >= 0) & (q <= 1)
    return only(inside, formula(tnp.where(inside, q, 0.5)))


def log_probability(p: Any, complement: Any) -> Any:
    """Compute log(p), from the complement 1 - p where that is smaller and so more precise."""
    high = p > 0.5
    return tnp.where(high, tnp.log1p(-tnp.where(high, complement, 0)), tnp.log(tnp.where(high, 1, p)))


def log1p_square(y: Any) -> Any:
    """Compute log(1 + y²), without overflow."""
    far = tnp.abs(y) > 1e9 if y.dtype.itemsize > 4 else tnp.abs(y) > 1e5 if y.dtype.itemsize > 2 else tnp.abs(y) > 200
    near = tnp.where(far, 0, y)
    return tnp.where(far, 2 * tnp.log(tnp.abs(tnp.where(far, y, 1))), tnp.log1p(near * near))


def log1m_exp(t: Any) -> Any:
    """Compute log(1 - exp(-t)) for t >= 0, without cancellation.

    Source: Mächler 2012, "Accurately computing log(1 - exp(-|a|))".
    """
    small = t < math.log(2)
    by_difference = tnp.log(-tnp.expm1(-tnp.where(small, t, 1)))
    return tnp.where(small, by_difference, tnp.log1p(-tnp.exp(-tnp.where(small, 1, t))))


def is_integer(x: Any) -> Any:
    """Tell where numbers are integers."""
    return tnp.floor(x) == x
