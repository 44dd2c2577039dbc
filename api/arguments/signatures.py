"""Signatures of programs: structures and types of arguments and results, by which calls are checked."""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

from tapeless.arguments import weak_int_overflow
from tapeless.arguments.checks import arguments, not_an_array, structure
from tapeless.arguments.names import name_of_leaf
from tapeless.arguments.weak_int_overflow import IntegerNarrowing
from tapeless.tracer.advice import widths
from tapeless.tracer.core import Tracer
from tapeless.tracer.jaxpr import ClosedJaxpr
from tapeless.tracer.references import Ref
from tapeless.tracer.types import ShapedArray, aval_of, is_arraylike


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
        """Write a line for each array from a leaf on whose type is not that which the program was compiled for."""
        pairs = [(i, aval_of(x), self.in_avals[i]) for i, x in enumerate(leaves) if i >= start and is_arraylike(x)]
        differing = [(i, have, want) for i, have, want in pairs if _differs(have, want)]
        return "".join(f"\n  {self._leaf(i)} was {want}, but is {have}." for i, have, want in differing)

    def check_fit(self, leaves: Sequence[Any]) -> None:
        """Raise OverflowError for a weak integer among the arguments that is used as a dtype it does not fit."""
        for found in self.narrowings:
            assert isinstance(found.what, int)
            weak_int_overflow.check_fits(found, leaves[found.what], functools.partial(self._whose, found.what))

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
