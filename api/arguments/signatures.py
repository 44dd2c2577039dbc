"""Signatures of programs: structures and types of arguments and results, by which calls are checked."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from tapeless.arguments.argument_checks import arguments, not_an_array, structure
from tapeless.arguments.names import name_of_leaf
from tapeless.tracer import core, dtypes
from tapeless.tracer.advice import widths
from tapeless.tracer.core import Tracer
from tapeless.tracer.jaxpr import Atom, ClosedJaxpr, Equation, Jaxpr, Literal, Var
from tapeless.tracer.primitives.call import jit_p
from tapeless.tracer.primitives.custom import custom_jvp_p, custom_vjp_p
from tapeless.tracer.primitives.elementwise import convert_element_type_p, copy_p, stop_gradient_p
from tapeless.tracer.primitives.operands import known_elements
from tapeless.tracer.primitives.shape import broadcast_in_dim_p, reshape_p
from tapeless.tracer.references import Ref
from tapeless.tracer.types import ShapedArray, aval_of, is_arraylike


class UserLine(Protocol):
    """A line of a user's program, of this process or of the one that a program was loaded from."""

    def describe(self) -> str:
        """Describe the line in a message: `model.py:12, x = y + n`."""
        ...


class IntegerNarrowing(NamedTuple):
    """An input, by its number, or a literal that must fit a dtype, and the line of the user's program requiring it."""

    what: int | Literal
    dtype: np.dtype[Any]
    source: UserLine | None


class Signature(NamedTuple):
    """Structures and types of the arguments and results of a function. Prints as `loss(float32[3]) -> float32[]`.

    name, function: what the program and the user's function are called; the latter with its line, for messages.
    names: of the arguments that are given by position.
    in_tree: that of `(args, kwargs)`, static arguments left out.
    narrowings: integers among the arguments that must fit a narrower dtype, by number of the leaf.
    """

    name: str
    function: str
    names: tuple[str, ...]
    in_tree: Any
    in_avals: tuple[ShapedArray, ...]
    out_tree: Any
    out_avals: tuple[ShapedArray, ...]
    narrowings: tuple[IntegerNarrowing, ...]

    @classmethod
    def of_program(
        cls,
        jaxpr: ClosedJaxpr,
        in_tree: Any,
        out_tree: Any,
        function: str,
        names: tuple[str, ...],
        found: Sequence[IntegerNarrowing],
    ) -> "Signature":
        """Make the signature of a traced function, in whose whole program narrowings were `found`.

        Inputs and results of the program that belong to references come after those of the function.
        """
        first = len(jaxpr.consts)
        of_arguments = [
            each._replace(what=each.what - first)
            for each in found
            if isinstance(each.what, int) and 0 <= each.what - first < in_tree.num_leaves
        ]
        in_avals, out_avals = jaxpr.in_avals[: in_tree.num_leaves], jaxpr.out_avals[: out_tree.num_leaves]
        name = jaxpr.jaxpr.name
        return cls(name, function, names, in_tree, in_avals, out_tree, out_avals, tuple(of_arguments))

    def __str__(self) -> str:
        given, results = arguments(self.in_tree, self.in_avals), structure(self.out_tree, self.out_avals)
        return f"{self.name}{given} -> {results}"

    def check(self, leaves: Sequence[Any], tree: Any) -> None:
        """Check the arguments of a call. Raises: TypeError if they are of other types; as `check_fit`."""
        if tree != self.in_tree:
            raise TypeError(
                f"{self.function} was compiled for arguments {arguments(self.in_tree, self.in_avals)}, "
                f"but called with {arguments(tree, leaves)}."
            )
        for i, (x, want) in enumerate(zip(leaves, self.in_avals, strict=True)):
            if not (is_arraylike(x) or isinstance(x, Ref)):
                raise TypeError(not_an_array(f"{self._compiled_for(i)}, which", x, ""))
            have = aval_of(x.value if isinstance(x, Ref) else x)
            if _differs(have, want):
                mixed = widths.is_wide(x) and have.dtype.kind == want.dtype.kind and have.dtype != want.dtype
                raise TypeError(
                    f"{self._compiled_for(i)}, but called with {have}.{self._others_that_differ(leaves, i + 1)}"
                    f"{widths.advice([x]) if mixed else ''}"
                )
            if isinstance(x, Tracer):
                raise TypeError(
                    f"{self.function} is compiled, and a compiled program cannot be transformed: "
                    f"argument {self._leaf(i)} is traced, {have}.\n  Call the jitted function instead."
                )
        self.check_fit(leaves)

    def _others_that_differ(self, leaves: Sequence[Any], start: int) -> str:
        """Write a line for each array, from leaf `start` on, whose type differs from the compiled program's."""
        pairs = [(i, aval_of(x), self.in_avals[i]) for i, x in enumerate(leaves) if i >= start and is_arraylike(x)]
        differing = [(i, have, want) for i, have, want in pairs if _differs(have, want)]
        return "".join(f"\n  {self._leaf(i)} was {want}, but is {have}." for i, have, want in differing)

    def check_fit(self, leaves: Sequence[Any]) -> None:
        """Raise OverflowError for a weak integer among the arguments that is used as a dtype it does not fit."""
        for found in self.narrowings:
            assert isinstance(found.what, int)
            check_fits(found, leaves[found.what], functools.partial(self._whose, found.what))

    def named_argument(self, i: int) -> str:
        """Name a leaf of the arguments, for a message; of a negative number, an array that is none of them."""
        if i >= 0:
            return f"argument {self._leaf(i)} of {self.function}"
        return f"an array that {self.function} takes from outside"

    def _compiled_for(self, i: int) -> str:
        return f"{self.function} was compiled for {self.in_avals[i]} as argument {self._leaf(i)}"

    def _whose(self, i: int) -> str:
        return f"jit: argument {self._leaf(i)} of {self.function}"

    def _leaf(self, i: int) -> str:
        """Name a leaf of the arguments: `params['w']`."""
        return name_of_leaf(self.names, self.in_tree, i)


def _differs(have: ShapedArray, want: ShapedArray) -> bool:
    return have.shape != want.shape or have.dtype != want.dtype


# ---- integers that are narrowed ------------------------------------------------------------------------------
# Check weak integers that a program converts to a narrower dtype, when the program is called and they are known.
#
# A number takes the dtype of an integer array that it is combined with, if it fits. In a program its value is not
# known; promotion writes its conversion as one between weak types, which nothing else does, so that a program shows
# what has to fit: `{ lambda n:~i32[] .. let m:~i8[] = convert_element_type[dtype=i8, weak_type=True] n ..`. Knowingly
# left out: numbers that the program computes from others, and bodies of loops and branches; there they are converted
# as they are.


@core.memoize_by_program
def narrowings(jaxpr: Jaxpr) -> tuple[IntegerNarrowing, ...]:
    """Find the inputs and literals of a program that must fit another integer dtype than their own."""
    return tuple(_found(jaxpr))


def check_fits(found: IntegerNarrowing, value: Any, who: Callable[[], str]) -> None:
    """Check that a known `value`, which `who` names, fits. Raises: OverflowError. Waits for arrays on a device."""
    known = known_elements(value)
    low, high = dtypes.limits(found.dtype)
    for extreme in (known.min(), known.max()) if known is not None and known.size else ():
        if not low <= int(extreme) <= high:
            met = f"\n  It meets {found.dtype} at {found.source.describe()}." if found.source else ""
            raise OverflowError(
                f"{who()} is {extreme}, but must fit {found.dtype}, which holds {low} to {high}.{met}\n"
                "  Use an array of a wider dtype, or convert the number with astype, which wraps."
            )


_HANDING_ON = (copy_p, stop_gradient_p, broadcast_in_dim_p, reshape_p)
_CALLS = (jit_p, custom_jvp_p, custom_vjp_p)


def _found(jaxpr: Jaxpr) -> list[IntegerNarrowing]:
    eqns = () if jaxpr.primitives.isdisjoint((convert_element_type_p, *_CALLS)) else jaxpr.eqns
    wanted = [each for eqn in eqns for each in _wanted(eqn)]
    if not wanted:
        return []
    made = {v: eqn for eqn in jaxpr.eqns if eqn.primitive in _HANDING_ON for v in eqn.outvars}
    number = {v: i for i, v in enumerate(jaxpr.invars)}
    found: list[IntegerNarrowing] = []
    for atom, dtype, source in wanted:
        origin = _origin(atom, made)
        what = number.get(origin) if isinstance(origin, Var) else origin
        if what is not None:
            found.append(IntegerNarrowing(what, dtype, source))
    return found


def _wanted(eqn: Equation) -> Sequence[tuple[Atom, np.dtype[Any], UserLine | None]]:
    """List the operands that an equation converts to a narrower dtype."""
    if eqn.primitive is convert_element_type_p:
        (x,), dtype = eqn.invars, eqn.params["dtype"]
        narrows = x.aval.weak_type and eqn.params["weak_type"] and not dtypes.holds(dtype, x.aval.dtype)
        return [(x, dtype, eqn.source)] if narrows else ()
    if eqn.primitive in _CALLS:
        inner = narrowings(eqn.params["jaxpr"])
        return [(eqn.invars[n.what], n.dtype, n.source) for n in inner if isinstance(n.what, int)]
    return ()


def _origin(atom: Atom, made: dict[Var, Equation]) -> Atom:
    """Trace `atom` back to the input or literal that it is a copy of, through copies and broadcasts."""
    while isinstance(atom, Var) and atom in made:
        atom = made[atom].invars[0]
    return atom
