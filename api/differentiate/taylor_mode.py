"""Taylor mode: derivatives of any order along a curve, at polynomial cost. The function of `jax.experimental.jet`."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapeless.arguments.argument_checks import check_arguments, check_callable
from tapeless.arguments.names import leaf_names
from tapeless.differentiate.autodiff import FlatFunction
from tapeless.differentiate.tangents import own_array, tangents_of
from tapeless.interpreters import jet as taylor
from tapeless.interpreters import jet_programs
from tapeless.interpreters.zero import Zero, instantiate, zero_of
from tapeless.tracer import pytree
from tapeless.tracer.core import describe_function
from tapeless.tracer.primitives.elementwise import div, mul
from tapeless.tracer.primitives.operands import constant
from tapeless.tracer.types import aval_of

zero_series: Final = object()  # a name of JAX's module: no result is it, derivatives that vanish are arrays of zeros
_RULES = jet_programs  # importing it filled the table


def jet(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    series: Sequence[Sequence[Any]],
    factorial_scaled: bool = True,
) -> tuple[Any, Any]:
    """Compute a function along a curve: value and derivatives by the curve's parameter, up to any order.

    With x(t) a curve whose value and derivatives at 0 are `primals` and `series`, these are those of fun(x(t)). Cost
    grows with the square of the order for what is elementary, where nested `jvp` takes its exponential.

    Args:
      fun: a function of pytrees of arrays to a pytree of arrays.
      primals: its arguments.
      series: for each of them the derivatives of order 1, 2, .. of its curve, as many for all: pytrees like it; float0
        for integers.
      factorial_scaled: series are derivatives; if false, they are Taylor coefficients, derivatives over factorials.
    Returns: fun(*primals), and a pytree like it with a list of the derivatives in the place of each array.
    Raises: ValueError if there are not as many series as arguments, or they differ in length; TypeError if a term
      differs from its argument in structure, shape or dtype; both are named.
    Source: Griewank & Walther 2008, "Evaluating derivatives", chapter 13.

    >>> import tapeless.numpy as tnp
    >>> jet(tnp.exp, (0.0,), ((1.0, 0.0, 0.0),))[1]  # of exp(t)
    [Array(1., dtype=float32, weak_type=True), Array(1., dtype=float32, weak_type=True), \
Array(1., dtype=float32, weak_type=True)]
    """
    check_callable("jet", fun)
    order = _order(primals, series)
    check_arguments("jet", fun, describe_function(fun), tuple(primals))
    flat, tree = pytree.flatten(tuple(primals))
    flat = [own_array(x) for x in flat]
    name = lambda i: leaf_names(fun, tuple(primals), {})[i]  # noqa: E731
    terms = zip(
        *[_term(name, k, tree, flat, [each[k - 1] for each in series], factorial_scaled) for k in range(1, order + 1)]
    )
    given = [list(each) for each in terms] if order else [[] for _ in flat]
    moving = [each if any(type(t) is not Zero for t in each) else None for each in given]
    f = FlatFunction("jet", fun, tree, False)
    values, found = taylor.jet(f, flat, moving, order, fun)
    lists = [_derivatives(y, ts or [zero_of(y)] * order, factorial_scaled) for y, ts in zip(values, found)]
    return f.unflatten(values), pytree.unflatten(f.out_tree, lists)


def _order(primals: Sequence[Any], series: Sequence[Sequence[Any]]) -> int:
    if not all(isinstance(x, (tuple, list)) for x in (primals, series, *series)):
        raise TypeError("jet: primals and series must be tuples or lists, and each of series, too.")
    if len(primals) != len(series):
        raise ValueError(f"jet: there are {len(primals)} primals, but {len(series)} series.")
    lengths = [len(terms) for terms in series]
    if len(set(lengths)) > 1:
        raise ValueError(f"jet: series differ in length: they have {', '.join(map(str, lengths))} terms.")
    return lengths[0] if lengths else 0


def _term(
    name: Callable[[int], str], k: int, tree: Any, primals: Sequence[Any], terms: Sequence[Any], factorial_scaled: bool
) -> list[Any]:
    """Return the coefficients of t^k of all arguments."""
    given, structure = pytree.flatten(tuple(terms))
    if structure != tree:
        told = pytree.compare(tree, structure, ("primals", "the terms"))
        raise TypeError(f"jet: primals and the terms of order {k} differ in structure.{told}")
    found = tangents_of(list(map(aval_of, primals)), given, lambda i: f"jet: term {k} of {name(i)}")
    found = [zero_of(x) if _is_zero(t) else own_array(t) for x, t in zip(primals, found)]
    return [_scaled(t, div, k) for t in found] if factorial_scaled else found


def _is_zero(t: Any) -> bool:
    return type(t) is Zero or (isinstance(t, (bool, int, float, complex, np.ndarray, np.generic)) and not np.any(t))


def _derivatives(y: Any, terms: Sequence[Any], factorial_scaled: bool) -> list[Any]:
    scaled = [_scaled(t, mul, k) for k, t in enumerate(terms, 1)] if factorial_scaled else terms
    return [own_array(instantiate(t)) for t in scaled]


def _scaled(t: Any, by: Callable[[Any, Any], Any], k: int) -> Any:
    return t if type(t) is Zero or k == 1 else by(t, constant(float(math.factorial(k)), aval_of(t)))
