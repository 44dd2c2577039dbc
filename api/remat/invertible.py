"""invertible: reverse mode that computes a function's input again from its result, by the inverse."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, NamedTuple, ParamSpec, TypeVar

from tapeless.arguments.argument_checks import check_arrays, check_call, check_callable
from tapeless.arguments.names import argument_name, describe_inputs, shown_attributes
from tapeless.tracer import passes, pytree
from tapeless.tracer.advice.keyword_advice import advise_keywords
from tapeless.tracer.caches import Recent
from tapeless.tracer.core import describe_function
from tapeless.tracer.jaxpr import Equation, Jaxpr, effects, list_inner_jaxprs
from tapeless.tracer.primitives import invertible as primitives
from tapeless.tracer.primitives.elementwise import convert_element_type
from tapeless.tracer.settings.config import config
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import ShapedArray, aval_of, is_arraylike

P = ParamSpec("P")
R = TypeVar("R")


@advise_keywords
def invertible(
    fun: Callable[P, R], inverse: Callable[..., Any], *, has_aux: bool = False
) -> "InvertibleFunction[P, R]":
    """Wrap `fun` so that reverse mode saves its result instead of its input, and goes back by `inverse`.

    In a chain of such functions, where each takes the result of the one before, only the last result is saved, and in a
    `scan` or `fori_loop` whose body gives the carry to one, only the last carry: memory does not grow with depth. Each
    gradient computes the function, its inverse, the function again, and its derivative.

    Args:
      fun: `fun(x, *args) -> y`, a pure function of pytrees of arrays, or `(y, aux)`. It is traced once for arguments
        of the same types, as by `jit`, unless it closes over arrays. Derivatives are those of `fun`, in `x` and `args`.
      inverse: `inverse(y, *args) -> x`. First derivatives do not depend on its derivative; those of gradients do.
      has_aux: whether `fun` returns a pair, of which the inverse takes the first part alone, as flows return the
        logarithm of a determinant beside `y`.
    Returns: a function with the same arguments and results, and with an attribute `inverse`. Arrays and traced values
      that `fun` closes over count as `args`.
    Raises: TypeError if `fun` or `inverse` is no function; of the result, TypeError naming an argument or result that
      is no array, or every leaf of `x` that the inverse gives back with another shape or dtype, or if it gives another
      structure, or if there are no pairs with `has_aux`; ValueError if one of the functions has an effect. Whether the
      inverse gives back the values is not checked here, but by `tl.testing.check_inverse`.
    Source: Gomez et al. 2017, "The reversible residual network"; Maclaurin et al. 2015, section 2.

    >>> import tapeless as tl
    >>> import tapeless.numpy as tnp
    >>> shift = tl.invertible(lambda x, w: x + tnp.sin(w), lambda y, w: y - tnp.sin(w))
    >>> tl.grad(lambda w: shift(shift(1.0, w), w))(0.0)
    Array(2., dtype=float32, weak_type=True)
    """
    check_callable("invertible", fun)
    check_callable("invertible", inverse, "inverse")
    return InvertibleFunction(fun, inverse, has_aux)


class InvertibleFunction(Generic[P, R]):
    """A function with its inverse, see `invertible`."""

    def __init__(self, fun: Callable[P, R], inverse: Callable[..., Any], has_aux: bool) -> None:
        functools.update_wrapper(self, fun, shown_attributes(fun), updated=())
        self.fun: Final = fun
        self.inverse: Final = inverse
        self.has_aux: Final = has_aux
        self._programs: Recent[Any, _InvertiblePrograms] = Recent(_PROGRAMS_LIMIT)

    def __repr__(self) -> str:
        return f"<invertible {describe_function(self.fun)}>"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        leaves, tree = pytree.flatten((args, kwargs))
        if not all(map(is_arraylike, leaves)):
            check_call("invertible", self.fun, describe_function(self.fun), args, kwargs, _ADVICE)
        if not args:
            raise TypeError(
                f"invertible: {describe_function(self.fun)} was called without an argument by position, but the first "
                "one is what the inverse gives back."
            )
        key = tuple(map(aval_of, leaves)), tree.snapshot(), config.trace_key()
        found = self._programs.get(key) or self._programs.recall(key)
        if found is None:
            found = _traced(self, tree, list(map(aval_of, leaves)))
            if not found.consts:  # what it closes over may be another one next time
                self._programs.enter(key, found)
        n_xs = len(found.jaxpr.invars) - found.n_args
        operands = [*found.consts, *leaves[n_xs:], *leaves[:n_xs]]
        return pytree.unflatten(
            found.out_tree, primitives.invertible(found.jaxpr, found.inverse, found.n_args, *operands)
        )


_ADVICE = "\n  Close over it, as functools.partial does."
_PROGRAMS_LIMIT = 256  # of one function


class _InvertiblePrograms(NamedTuple):
    """A function and its inverse as programs: constants, args, x -> leaves of the result; constants, args, y -> x."""

    jaxpr: Jaxpr
    inverse: Jaxpr
    consts: Sequence[Any]
    n_args: int
    out_tree: Any


def _traced(function: InvertibleFunction[..., Any], tree: Any, avals: list[ShapedArray]) -> _InvertiblePrograms:
    """Trace a function, and its inverse at the types of the result.

    Args:
      tree: the structure of (args, kwargs), whose leaves are of types `avals`; x is the first of args.
    """
    x = pytree.unflatten(tree, avals)[0][0]
    x_avals, x_tree = pytree.flatten(x)
    n, rest = len(x_avals), avals[len(x_avals) :]
    out: Any = None

    def forwards(*leaves: Any) -> list[Any]:
        nonlocal out
        given, named = pytree.unflatten(tree, [*leaves[len(rest) :], *leaves[: len(rest)]])
        out = function.fun(*given, **named)
        check_arrays(f"invertible: the result{{}} of {describe_function(function.fun)}", out)
        return pytree.leaves(out)

    def inputs(of_program: Sequence[int]) -> str:
        moved = [(i + n) if i < len(rest) else i - len(rest) for i in of_program if i < n + len(rest)]
        return describe_inputs(function.fun, tree, (), moved)

    how: dict[str, Any] = {"what": "invertible", "function": function.fun, "arguments": inputs}
    jaxpr, consts = trace_to_jaxpr(forwards, [*rest, *x_avals], **how)
    y = _split_aux(function, out)[0]
    y_avals, y_tree = jaxpr.out_avals[: len(pytree.leaves(y))], pytree.structure(y)

    def back(*leaves: Any) -> list[Any]:
        given, named = pytree.unflatten(tree, [*x_avals, *leaves[: len(rest)]])
        again = function.inverse(pytree.unflatten(y_tree, leaves[len(rest) :]), *given[1:], **named)
        check_arrays(f"invertible: the result{{}} of {describe_function(function.inverse)}", again)
        _check_gives_back(function, x, x_tree, again)
        return [_as_weak(z, aval) for z, aval in zip(pytree.leaves(again), x_avals)]

    inverse, of_inverse = trace_to_jaxpr(back, [*rest, *y_avals], what="invertible", function=function.inverse)
    for program, fun in (jaxpr, function.fun), (inverse, function.inverse):
        _check_pure(program, fun)
    first, second = jaxpr.in_avals[: len(consts)], inverse.in_avals[: len(of_inverse)]
    takes = [*range(len(first)), *second, *range(len(first), len(jaxpr.invars))]
    takes_back = [*first, *range(len(inverse.invars))]
    return _InvertiblePrograms(
        passes.rearrange_program(jaxpr, takes, range(len(jaxpr.outvars))),
        passes.rearrange_program(inverse, takes_back, range(len(inverse.outvars))),
        [*consts, *of_inverse],
        len(consts) + len(of_inverse) + len(rest),
        pytree.structure(out),
    )


def _split_aux(function: InvertibleFunction[..., Any], out: Any) -> tuple[Any, Any]:
    if not function.has_aux:
        return out, ()
    if not isinstance(out, tuple) or len(out) != 2:
        raise TypeError(
            f"invertible: {describe_function(function.fun)} must return a pair (y, aux), as has_aux=True, but returned "
            f"{'one array' if pytree.structure(out) is pytree.LEAF else pytree.describe_node(pytree.structure(out))}."
        )
    return out


def _check_gives_back(function: InvertibleFunction[..., Any], x: Any, tree: Any, again: Any) -> None:
    """Check that an inverse gives back the structure and types of x. Raises: TypeError with every difference."""
    taken, given, lines = argument_name(function.fun, 0), f"what {describe_function(function.inverse)} gives back", ""
    after = pytree.structure(again)
    if after != tree:
        lines = pytree.compare(tree, after, (taken, "what comes back"))
    else:
        for (path, before), z in zip(pytree.leaves_with_path(x), pytree.leaves(again)):
            if before.strong() != aval_of(z).strong():
                lines += f"\n  {taken}{pytree.keystr(path)} goes in as {before}, comes back as {aval_of(z)}."
    if lines:
        raise TypeError(
            f"invertible: {given} is not the {taken} that {describe_function(function.fun)} takes.{lines}\n"
            f"  Return from the inverse all of {taken}, of the same shapes and dtypes."
        )


def _as_weak(z: Any, aval: ShapedArray) -> Any:
    return z if aval_of(z) == aval else convert_element_type(z, aval.dtype, aval.weak_type)


def _check_pure(program: Jaxpr, fun: Any) -> None:
    """Check that a program has no effect. Raises: ValueError naming its operation and line."""
    if not program.effects:
        return
    found = _effect(program)
    at = f" at {found.source.describe()}" if found.source else ""
    raise ValueError(
        f"invertible: {describe_function(fun)} has an effect, {found.primitive}{at}, which would happen again in the "
        "backward pass.\n  Do it outside of the function."
    )


def _effect(program: Jaxpr) -> Equation:
    """Find the first equation that has an effect of its own."""
    eqn = next(eqn for eqn in program.eqns if effects(eqn))
    inner = next((body for body in list_inner_jaxprs(eqn) if body.effects), None)
    return eqn if inner is None else _effect(inner)
