"""Partial evaluation for users: split a function into what depends on known arguments alone, and the rest."""

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from tapeless.arguments import signatures
from tapeless.arguments.argument_checks import (
    FUNCTION_AND_ARGUMENTS,
    arguments,
    check_callable,
    describe_value,
    not_an_array,
)
from tapeless.arguments.names import argument_name, name_of_leaf, positional_names
from tapeless.arguments.static import Arguments
from tapeless.compile.jit import tracing_of
from tapeless.compile.stages import Traced
from tapeless.differentiate.residuals import Residuals, argument_names, residuals_of
from tapeless.differentiate.tangents import own_array
from tapeless.differentiate.unzip import Halves, check_policy
from tapeless.interpreters.binding_time import known_in_unknown, partial_eval_jaxpr
from tapeless.interpreters.residuals.rematerialization import Policy, save_all
from tapeless.tracer import core, pytree
from tapeless.tracer.jaxpr import ClosedJaxpr, eval_jaxpr
from tapeless.tracer.primitives.elementwise import convert_element_type
from tapeless.tracer.types import aval_of, is_arraylike


class Half:
    """One half of a partially evaluated function: a program that is called with pytrees. Prints the program.

    jaxpr: the program, flat to flat, and the arrays that it closes over.
    """

    def __init__(self, title: str, jaxpr: ClosedJaxpr, names: Sequence[str], in_tree: Any, out_tree: Any) -> None:
        self.jaxpr: Final = jaxpr
        self._title, self._names, self._in_tree, self._out_tree = title, names, in_tree, out_tree
        self._narrowings = signatures.narrowings(jaxpr.jaxpr)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        leaves, tree = pytree.flatten((args, kwargs))
        if tree != self._in_tree:
            raise TypeError(
                f"partial_eval: {self._title} takes {arguments(self._in_tree, self.jaxpr.in_avals)}, "
                f"but was called with {arguments(tree, leaves)}."
            )
        given = [self._checked(i, x) for i, x in enumerate(leaves)]
        first = len(self.jaxpr.consts)
        for found in self._narrowings:
            if isinstance(found.what, int) and found.what >= first:
                i = found.what - first
                signatures.check_fits(found, given[i], lambda i=i: f"partial_eval: {self._leaf(i)} of {self._title}")
        outs = eval_jaxpr(self.jaxpr.jaxpr, [*self.jaxpr.consts, *given])
        return pytree.unflatten(self._out_tree, [*map(own_array, outs)])

    def _checked(self, i: int, x: Any) -> Any:
        """Return leaf i of the arguments as an array of the program's type. Raises: TypeError if it is of another."""
        want = self.jaxpr.in_avals[i]
        if not is_arraylike(x):
            raise TypeError(not_an_array(f"partial_eval: {self._leaf(i)} of {self._title}", x, ""))
        have = aval_of(x)
        if have.shape != want.shape or have.dtype != want.dtype:
            raise TypeError(f"partial_eval: {self._leaf(i)} of {self._title} is {want}, but was given as {have}.")
        return x if have == want else convert_element_type(x, want.dtype, want.weak_type)

    def _leaf(self, i: int) -> str:
        return f"argument {name_of_leaf(self._names, self._in_tree, i)}"

    def __str__(self) -> str:
        return str(self.jaxpr)

    __repr__ = __str__


class PartialEvaluation(Halves):
    """A function in two halves, one of which is computed when only some arguments are known. Prints its programs.

    known: the known arguments -> a tuple of residuals.
    unknown: this tuple, and the unknown arguments -> the results of the function.
    residuals: the arrays that the first leaves for the second, with types, source lines, `.nbytes` and `.recomputed`.
    """

    def __init__(self, known: Half, unknown: Half, residuals: Residuals) -> None:
        self.known: Final = known
        self.unknown: Final = unknown
        self.residuals: Residuals = residuals

    @property
    def programs(self) -> list[ClosedJaxpr]:
        """The programs of both halves."""
        return [self.known.jaxpr, self.unknown.jaxpr]

    def __str__(self) -> str:
        return f"known\n{self.known}\n\nunknown\n{self.unknown}\n\nresiduals\n{self.residuals}"

    __repr__ = __str__


def partial_eval(
    fun: Callable[..., Any],
    /,
    *args: Any,
    known: int | str | Sequence[int | str],
    policy: Policy | None = None,
    **kwargs: Any,
) -> PartialEvaluation:
    """Split a function by its known arguments: what depends on these alone is computed once, the rest for each call.

    `parts.unknown(parts.known(w), x)` is `f(w, x)` for `parts = partial_eval(f, w, x, known=0)`. Both halves are
    functions of pytrees under `jit`, `vmap` and `grad`, for arrays of the types that they were made for. Arrays that
    `fun` closes over are known.

    Args:
      args, kwargs: arguments of `fun`, or their types (`tl.ShapeDtypeStruct`); values are not used.
      known: which arguments are known, by position or by name; their pytrees are known as a whole. Each half takes
        its arguments as `fun` does: by position or by name, in the same order.
      policy: which known values are residuals, one of `tl.checkpoint_policies` or a function
        `policy(primitive, *operand_types, **params) -> bool`; the unknown half computes the others again. A `budget`
        limits the bytes of the residuals. None: all, those of the fewest bytes if moves and comparisons are free.
    Returns: a `PartialEvaluation`: functions `.known` and `.unknown`, and the `.residuals`; prints.
    Raises: TypeError if `fun` or `policy` cannot be called, `known` is neither position nor name, or `fun` writes
      references; ValueError if `known` names none of the arguments, all of them, or one that is not there, or if a
      budget cannot be kept; whatever tracing `fun` raises.
    Source: Jones, Gomard & Sestoft 1993.

    >>> import tapeless.numpy as tnp
    >>> parts = partial_eval(lambda w, x: tnp.exp(w) * x, 0.0, 1.0, known="w")
    >>> parts.unknown
    { lambda a:~f32[] b:~f32[]. let
        c:~f32[] = mul a b
      in c }
    >>> parts.unknown(parts.known(0.0), 3.0)
    Array(3., dtype=float32, weak_type=True)
    """
    check_callable("partial_eval", fun, expected=FUNCTION_AND_ARGUMENTS)
    check_policy("partial_eval", policy)
    chosen = _chosen(fun, known, args, kwargs)
    traced = tracing_of("partial_eval", fun).trace(*args, **kwargs)
    if traced.references is not None:
        raise TypeError(
            f"partial_eval: {core.describe_function(fun)} reads or writes references, which are not known in either "
            "half.\n  Let it take arrays and return them."
        )
    return _split(fun, args, kwargs, chosen, traced, policy)


def _split(
    fun: Any, args: Sequence[Any], kwargs: dict[str, Any], chosen: Arguments, traced: Traced, policy: Policy | None
) -> PartialEvaluation:
    consts, tree = traced.jaxpr.consts, traced.in_tree
    of_known = chosen.leaves(tree, ())
    unknown = [i not in of_known for i in range(tree.num_leaves)]
    halves = partial_eval_jaxpr(traced.jaxpr.jaxpr, (*[False] * len(consts), *unknown), policy or save_all)
    saved, described = (0,) * halves.residuals, core.describe_function(fun)
    (given, named), (others, others_named) = _divided(args, kwargs, chosen)
    (places, _), (other_places, _) = _divided([*range(len(args))], {}, chosen)
    first = Half(
        f"the known half of {described}",
        ClosedJaxpr(halves.primal, consts),
        _names_at(fun, places),
        pytree.structure((given, named)),
        pytree.structure(saved),
    )
    second = Half(
        f"the unknown half of {described}",
        ClosedJaxpr(halves.linear),
        ["residuals", *_names_at(fun, other_places)],
        pytree.structure(((saved, *others), others_named)),
        traced.out_tree,
    )
    names = argument_names(fun, tuple(args), kwargs)
    again = known_in_unknown(halves)
    residuals = residuals_of(halves, len(consts), [names[i] for i in of_known], policy, again)
    return PartialEvaluation(first, second, residuals)


def _names_at(fun: Any, positions: Sequence[int]) -> list[str]:
    return [argument_name(fun, i) for i in positions]


Given = tuple[tuple[Any, ...], dict[str, Any]]


def _divided(args: Sequence[Any], kwargs: dict[str, Any], chosen: Arguments) -> tuple[Given, Given]:
    """Divide arguments into the chosen ones and the others."""
    of_args = [[x for i, x in enumerate(args) if (i in chosen.numbers) is yes] for yes in (True, False)]
    of_kwargs = [{k: x for k, x in kwargs.items() if (k in chosen.names) is yes} for yes in (True, False)]
    first, second = zip(map(tuple, of_args), of_kwargs)
    return first, second


def _chosen(fun: Any, known: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Arguments:
    """Find the arguments that are known.

    Raises: TypeError if `known` is neither position nor name; ValueError if it names none, all, or one that is not
      given.
    """
    items = tuple(known) if isinstance(known, Iterable) and not isinstance(known, str) else (known,)
    places = [_place(fun, item, known, args, kwargs) for item in items]
    numbers = tuple(sorted({i for i in places if isinstance(i, int)}))
    names = tuple(sorted({k for k in places if isinstance(k, str)}))
    function = core.describe_function(fun)
    if not places:
        raise ValueError(
            f"partial_eval: known={known!r} names no argument of {function}, so that nothing is known.\n"
            "  Name those that are, by position or by name."
        )
    if len(numbers) + len(names) == len(args) + len(kwargs):
        raise ValueError(
            f"partial_eval: known={known!r} names all arguments of {function}, so that nothing is unknown.\n"
            "  Call the function, or leave out those that change."
        )
    return Arguments(numbers, names, "partial_eval")


def _place(fun: Any, item: Any, known: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> int | str:
    """Return the position of an argument that is named by position or name; the name if it is given by name."""
    if isinstance(item, str):
        by_position = positional_names(fun)[: len(args)]
        if item in kwargs:
            return item
        if item in by_position:
            return by_position.index(item)
        given = ", ".join([*by_position, *kwargs]) or "no arguments by name"
        raise ValueError(
            f"partial_eval: known={known!r} names {item!r}, but {core.describe_function(fun)} was given {given}."
        )
    if isinstance(item, bool) or not hasattr(item, "__index__"):
        raise TypeError(
            f"partial_eval: known must be the position or the name of an argument, or several of them, "
            f"not {describe_value(known)}."
        )
    i, n = operator.index(item), len(args)
    if not -n <= i < n:
        raise ValueError(
            f"partial_eval: known={known!r} names argument {i}, but {core.describe_function(fun)} was given "
            f"{n} argument{'s' * (n != 1)} by position."
        )
    return i % n
