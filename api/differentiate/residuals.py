"""Residuals of reverse mode: saved_residuals, and its printed form."""

import contextlib
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from tapeless.arguments.argument_checks import FUNCTION_AND_ARGUMENTS, check_callable
from tapeless.arguments.names import leaf_names, shown_attributes
from tapeless.arguments.untraced import hide, reveal
from tapeless.compile.jit import program_of
from tapeless.compile.stages import ShapeDtypeStruct
from tapeless.interpreters.jvp import jvp_jaxpr
from tapeless.interpreters.partial_eval import UnzippedJaxpr, unzip_jaxpr
from tapeless.interpreters.residuals.rematerialization import Policy, ProgramPolicy
from tapeless.interpreters.simplifications.repeatable_equations import may_be_repeated
from tapeless.tracer import core, dtypes, name_stacks, pytree
from tapeless.tracer.errors import ConcretizationTypeError
from tapeless.tracer.jaxpr import Atom, ClosedJaxpr, Equation, Jaxpr, Var, list_inner_jaxprs, subjaxprs
from tapeless.tracer.primitives.call import jit_p
from tapeless.tracer.primitives.checkpoint import move_p
from tapeless.tracer.source import Source
from tapeless.tracer.types import ShapedArray, aval_of, is_arraylike


@dataclass(frozen=True)
class Residual:
    """One residual: an array that the forward pass saves.

    argument: the argument it is, `x` or `params['w']`, or "a constant" for what the function closes over; else None.
    primitive, name, source: the operation that made it, its name if it has one, and the user's line.
    policy: the policy that saved it; None outside of checkpoints, and for arguments.
    memory: the memory that it was moved to, if it was.
    transformations: those that made it, outermost first: `vmap`, `jvp`, `transpose`, what carries the program that it
      is made in (`scan`, `checkpoint`), rules of the user's (`custom_vjp`); not the derivative that saves it.
    """

    aval: ShapedArray
    argument: str | None = None
    primitive: str | None = None
    name: str | None = None
    source: Source | None = None
    policy: Policy | None = None
    memory: str | None = None
    transformations: tuple[str, ...] = ()

    @property
    def maker(self) -> str | None:
        """The primitive; or what the user called, where that says more, as of choices in functions of ours."""
        called = self.source.called if self.source and self.primitive in _SAYS_LITTLE else ""
        return called or self.primitive

    @property
    def nbytes(self) -> int:
        """Bytes of the residual."""
        return self.aval.nbytes

    def __str__(self) -> str:
        moved = f", moved to {self.memory}" if self.memory else ""
        if self.argument is not None:
            return f"{self.aval} {self.argument}{moved}"
        made = f"{self.name!r}" if self.name else f"from {self.maker}"
        place = f" at {self.source.describe()}" if self.source else ""
        policy = f"{'' if moved else ', saved'} by {_title(self.policy)}" if self.policy else ""
        return f"{self.aval} {made}{moved}{policy}{place}"


# Operations that most functions consist of: of dropout and activations a choice, a comparison, a conversion.
_SAYS_LITTLE: Final = frozenset("select_n lt le gt ge eq ne convert_element_type broadcast_in_dim reshape".split())


class Residuals(list[Residual]):
    """The residuals, and the number of operations that the backward pass computes again."""

    def __init__(self, residuals: Sequence[Residual], recomputed: int) -> None:
        super().__init__(residuals)
        self.recomputed: Final = recomputed

    @property
    def nbytes(self) -> int:
        """Bytes of all residuals together."""
        return sum(x.nbytes for x in self)

    def __str__(self) -> str:
        return "\n".join([*map(str, self), self._total()])

    def in_groups(self) -> str:
        """Write one line for all residuals of one type that one line of the program made, with how many they are."""
        groups: dict[str, list[Residual]] = {}
        for x in self:
            groups.setdefault(str(x if x.primitive is None else replace(x, primitive="it")), []).append(x)
        return "\n".join([*map(_of_a_group, groups.values()), self._total()])

    def _total(self) -> str:
        n, again = len(self), self.recomputed
        kept = f"{n} array{'s' * (n != 1)} of {self.nbytes} bytes"
        moved = [x for x in self if x.memory]
        where = ", ".join(dict.fromkeys(x.memory for x in moved if x.memory))
        away = f", {sum(x.nbytes for x in moved)} of them in {where}" if moved else ""
        return f"{kept}{away}; {again} operation{'s' * (again != 1)} computed again"


def _of_a_group(group: Sequence[Residual]) -> str:
    first, n = group[0], len(group)
    makers = ", ".join(dict.fromkeys(x.maker for x in group if x.maker)) or None
    return f"{n} × {replace(first, primitive=makers)}" if n > 1 else str(first)


def saved_residuals(fun: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Residuals:
    """List the residuals that reverse mode of `fun` saves in the forward pass for the backward pass.

    Args:
      args, kwargs: arguments of `fun`, or their types (`tl.ShapeDtypeStruct`); all that are inexact count as
        differentiated.
    Returns: a list of `Residual`, with `.nbytes` and `.recomputed`, which prints.
    Raises: TypeError if `fun` cannot be called; whatever tracing `fun` raises.

    >>> import tapeless.numpy as tnp
    >>> saved_residuals(lambda x: tnp.sin(x) * 2, tnp.ones(3)).nbytes
    12
    """
    check_callable("saved_residuals", fun, expected=FUNCTION_AND_ARGUMENTS)
    closed, names = _program_of_arrays("saved_residuals", fun, args, kwargs)
    program, consts, _ = jvp_jaxpr(closed.jaxpr, flag_differentiated(closed))
    halves = unzip_jaxpr(program, program.linear_in)
    return residuals_of(halves, len(consts) + len(closed.consts), names)


def differentiable_program(
    who: str, fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[ClosedJaxpr, list[str]]:
    """Trace a function that is to be differentiated. Returns: the program, and names for its inputs but constants.

    Raises: TypeError if it can be differentiated in no argument; whatever tracing it raises.
    """
    closed, names = program_of(who, fun, args, kwargs), argument_names(fun, args, kwargs)
    _check_differentiable(who, fun, closed, names)
    return closed, names


def differentiable_program_of_arrays(
    who: str, fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[ClosedJaxpr, list[str]]:
    """Trace a function that is to be differentiated, as gradients do: with arguments of any kind, arrays among them.

    Python's integers, and what is no array, are what they are. So are numbers, and arrays that have no derivative, as
    masks, if the function needs their values.
    Returns, Raises: as `differentiable_program`.
    """
    closed, names = _program_of_arrays(who, fun, args, kwargs)
    _check_differentiable(who, fun, closed, names)
    return closed, names


def _program_of_arrays(who: str, fun: Any, args: Any, kwargs: Any) -> tuple[ClosedJaxpr, list[str]]:
    check_callable(who, fun, expected=FUNCTION_AND_ARGUMENTS)
    leaves = pytree.leaves((args, kwargs))
    if not any(map(_is_inexact, leaves)):
        return _traced_but(lambda x: not (is_arraylike(x) or _is_type(x)), who, fun, args, kwargs)
    try:
        return _traced_but(lambda x: not (_is_array(x) or _is_inexact(x)), who, fun, args, kwargs)
    except ConcretizationTypeError:
        if any(_is_array(x) and _is_inexact(x) for x in leaves):
            with contextlib.suppress(ConcretizationTypeError):  # the first error tells more
                known = lambda x: not (_is_type(x) or (_is_array(x) and _is_inexact(x)))  # noqa: E731
                return _traced_but(known, who, fun, args, kwargs)
        raise


def _traced_but(
    is_hidden: Callable[[Any], bool], who: str, fun: Any, args: Any, kwargs: Any
) -> tuple[ClosedJaxpr, list[str]]:
    """Trace a function with some leaves of its arguments as they are, and name the others."""
    args, kwargs = hide((args, kwargs), is_hidden)

    @functools.wraps(fun, shown_attributes(fun))
    def run(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = reveal((args, kwargs))
        return fun(*args, **kwargs)

    return program_of(who, run, args, kwargs), argument_names(fun, args, kwargs)


def _is_type(x: Any) -> bool:
    return isinstance(x, ShapeDtypeStruct)


def _is_array(x: Any) -> bool:
    number = isinstance(x, (bool, int, float, complex)) and not isinstance(x, np.generic)
    return _is_type(x) or (is_arraylike(x) and not number)


def _is_inexact(x: Any) -> bool:
    return (_is_type(x) and dtypes.is_inexact(x.dtype)) or (is_arraylike(x) and dtypes.is_inexact(aval_of(x).dtype))


def flag_differentiated(closed: ClosedJaxpr) -> tuple[bool, ...]:
    """Flag the inputs of a program that count as differentiated: all that are inexact, but not its constants."""
    n = len(closed.consts)
    return tuple(i >= n and dtypes.is_inexact(v.aval.dtype) for i, v in enumerate(closed.jaxpr.invars))


def _check_differentiable(who: str, fun: Any, closed: ClosedJaxpr, names: Sequence[str]) -> None:
    """Raise TypeError if `fun` can be differentiated in no argument; `names` are the names of all."""
    if any(flag_differentiated(closed)):
        return
    name = getattr(fun, "__name__", type(fun).__name__)
    if not names:
        raise TypeError(f"{who}: {name} was called with no arrays to be differentiated in.")
    given = zip(names, closed.in_avals[len(closed.consts) :], strict=True)
    leaves = " and ".join(f"{argument.removeprefix('the ')} of {name} is {aval}" for argument, aval in given)
    one = "it" if len(names) == 1 else "one"
    raise TypeError(f"{who}: {leaves}, and integers have no derivative.\n  Convert {one} with astype(float).")


def residuals_of(
    halves: UnzippedJaxpr, consts: int, names: Sequence[str], policy: Policy | None = None, again: Jaxpr | None = None
) -> Residuals:
    """Describe the residuals, which the primal half of a program gives to the linear one.

    Args:
      consts, names: how many constants are its first inputs, and names for the others.
      policy: the one that decided on it outside of checkpoints.
      again: the part of the second half that is computed again; None if it is what is not linear.
    """
    known = dict(zip(halves.primal.invars, [*["a constant"] * consts, *names], strict=True))
    kept = dict.fromkeys(v for v in halves.primal.outvars[len(halves.primal.outvars) - halves.residuals :])
    again = halves.linear if again is None else again
    return Residuals([_residual(halves.primal, v, known, policy) for v in kept], _computed_again(again))


def print_saved_residuals(fun: Callable[..., Any], /, *args: Any, **kwargs: Any) -> None:
    """Print the residuals that `saved_residuals` finds; those of one type that one line of `fun` makes are one line."""
    print(saved_residuals(fun, *args, **kwargs).in_groups())  # noqa: T201  # what it is for


@dataclass(frozen=True)
class Origin:
    """The origin of a variable: an input of the program, or an equation in it or in a program that it calls.

    around: the equations that carry the programs that it is in, outermost first.
    """

    atom: Atom
    eqn: Equation | None = None
    policy: Policy | None = None
    memory: str | None = None
    around: tuple[Equation, ...] = ()


def _residual(known: Jaxpr, v: Any, names: dict[Any, str], policy: Policy | None) -> Residual:
    origin = origin_of(known, v, policy)
    eqn = origin.eqn
    if eqn is None:
        return Residual(v.aval, argument=names.get(origin.atom, "a constant"), memory=origin.memory)
    chosen = origin.policy is not None and _may_save(origin.policy, eqn)
    policy = origin.policy if chosen else None  # else it is a result of the checkpoint, which somebody else needs
    name, made = eqn.own_params.get("name"), transformations_of(eqn, origin.around)
    return Residual(v.aval, None, str(eqn.primitive), name, eqn.source, policy, origin.memory, made)


def transformations_of(eqn: Equation, around: Sequence[Equation] = ()) -> tuple[str, ...]:
    """List the transformations and rules that an equation comes from, and what carries the programs `around` it."""
    found: list[str] = []
    for each in (*around, eqn):
        found += name_stacks.transformations(each.source.stack) if each.source else ()
        found += (
            [str(each.primitive)]
            if each.primitive is not jit_p and (each is not eqn or any(list_inner_jaxprs(eqn)))
            else ()
        )
    return tuple(found)


def _may_save(policy: Policy, eqn: Equation) -> bool:
    if isinstance(policy, ProgramPolicy):
        return True
    return bool(policy(eqn.primitive, *[x.aval for x in eqn.invars], **eqn.params))


def origin_of(jaxpr: Jaxpr, v: Atom, policy: Policy | None = None) -> Origin:
    """Trace a variable to its origin, through the programs that compute it."""
    eqn = _equations_by_result(jaxpr).get(v)
    if eqn is None:
        return Origin(v)
    if eqn.primitive is move_p:
        found = origin_of(jaxpr, eqn.invars[0], policy)
        return replace(found, memory=None if found.memory else eqn.params["dst"])  # moved twice, it is back
    inner = eqn.own_params.get("jaxpr")
    if inner is None:
        return Origin(v, eqn, policy)
    inside = origin_of(inner, inner.outvars[eqn.outvars.index(v)], eqn.params.get("policy", policy))
    if inside.eqn is not None:
        return replace(inside, around=(eqn, *inside.around))
    is_call = len(inner.invars) == len(eqn.invars) and v.aval == inside.atom.aval
    if is_call and isinstance(inside.atom, Var):
        return origin_of(jaxpr, eqn.invars[inner.invars.index(inside.atom)], policy)
    return Origin(v, eqn, policy)


@core.memoize_by_program
def _equations_by_result(jaxpr: Jaxpr) -> dict[Atom, Equation]:
    """Map every computed variable to its equation. Remembered for as long as `jaxpr` lives."""
    return {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}


def _computed_again(linear: Jaxpr) -> int:
    """Count the nonlinear equations of a linear jaxpr, in its subjaxprs too, but for moving, comparing and counting."""
    total = 0
    for eqn in linear.eqns:
        inner = list(subjaxprs(eqn.params))
        counts = not eqn.linear and eqn.primitive is not move_p and not may_be_repeated(eqn)
        total += sum(map(_computed_again, inner)) if inner else counts
    return total


def argument_names(fun: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """Name every leaf of the arguments: `the argument x['w']`."""
    return [f"the argument {name}" for name in leaf_names(fun, args, kwargs)]


def _title(policy: Policy) -> str:
    return getattr(policy, "__name__", None) or repr(policy)
