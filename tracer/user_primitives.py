"""Primitives that libraries define while they run: a name, and rules that are Python functions by JAX's conventions.

Every layer takes the rule it needs from the primitive, see api/custom/primitives.py and
lowering/emit.py. JAX's conventions: a primitive without `multiple_results` returns a bare array, and so do
its rules; ours return tuples.
"""

from collections.abc import Callable, Sequence
from typing import Any

from tapeless.tracer.core import Primitive
from tapeless.tracer.types import ShapedArray

Rule = Callable[..., Any]
# Kinds of rules, and how messages say to define one.
DEFINED_BY = {
    "impl": "primitive.def_impl",
    "abstract_eval": "primitive.def_abstract_eval",
    "jvp": "ad.primitive_jvps[primitive] = rule",
    "transpose": "ad.primitive_transposes[primitive] = rule",
    "batching": "batching.primitive_batchers[primitive] = rule",
    "linear": "ad.def_linear_in(primitive, *positions of operands)",
    "lowering": "mlir.register_lowering(primitive, mlir.lower_fun(function))",
}


class UserPrimitive(Primitive):
    """A primitive that a library defines. `rules` holds its rules, by kind."""

    __slots__ = ("linear_sets", "rules", "several")
    keeps_programs = True  # a library compares them by identity, with others that it keeps itself

    def __init__(self, name: str) -> None:
        super().__init__(name, self._types, remember=False, takes_keys=False, registered=False)
        self.several: bool = False  # do its rules give several results, by JAX's convention?
        self.rules: dict[str, Rule] = {}
        self.linear_sets: tuple[tuple[int, ...], ...] | None = None  # None: it does not say; an empty set: all operands

    def linear_in(self, n: int) -> tuple[tuple[int, ...], ...] | None:
        """Return the sets of operands, of n, in each of which it is linear jointly; None if it does not say.

        The transpose rule of a primitive of one operand says it.
        """
        if self.linear_sets is None:
            return ((0,),) if n == 1 and "transpose" in self.rules else None
        return tuple([s or tuple(range(n)) for s in self.linear_sets])

    def rule(self, kind: str) -> Rule:
        """Return the rule of a kind. Raises: NotImplementedError saying how to define it, if there is none."""
        found = self.rules.get(kind)
        if found is None:
            raise NotImplementedError(f"{self.name}: no {kind} rule. Define it by {DEFINED_BY[kind]}.")
        return found

    def flat(self, kind: str, given: Any) -> tuple[Any, ...]:
        """Turn the result of a rule into a tuple with one entry for each result.

        Raises: TypeError if the primitive has multiple results and the rule did not give a sequence.
        """
        if not self.several:
            return (given,)
        if not isinstance(given, (tuple, list)):
            raise TypeError(f"{self.name}: it has multiple results, and its {kind} rule gave {given!r}, no sequence.")
        return tuple(given)

    # ---- by JAX's names and conventions, for interpreters of programs: a bare array unless it has several results

    @property
    def multiple_results(self) -> bool:
        """Do `bind` and the rules give several results?"""
        return self.several

    def bind(self, /, *args: Any, **params: Any) -> Any:
        """Apply the primitive to values. Returns: an array, or a list of them if it has `multiple_results`."""
        return self.unflat(self.apply(*args, **params))

    def impl(self, /, *args: Any, **params: Any) -> Any:
        """Compute the results for values that are known, even while something is being traced, as `bind` gives them."""
        return self.unflat(super().impl(*args, **params))

    def abstract_eval(self, /, *avals: ShapedArray, **params: Any) -> tuple[Any, frozenset[str]]:
        """Compute the type of the result, or a list of types if it has `multiple_results`, and name its effect."""
        types, effects = super().abstract_eval(*avals, **params)
        return self.unflat(types), effects

    def unflat(self, results: Sequence[Any]) -> Any:
        """Turn results into what a rule of the primitive gives: one of them, or a list."""
        return list(results) if self.several else results[0]

    def _types(self, /, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        found = self.flat("abstract_eval", self.rule("abstract_eval")(*avals, **params))
        for aval in found:
            if not isinstance(aval, ShapedArray):
                raise TypeError(f"{self.name}: its abstract_eval rule gave {aval!r}, no ShapedArray.")
        return found

    def __reduce__(self) -> Any:
        raise TypeError(f"{self.name}: a primitive that a library defines cannot be pickled.")


def check_types(
    primitive: UserPrimitive, kind: str, what: str, have: Sequence[ShapedArray], want: Sequence[ShapedArray]
) -> None:
    """Check that a rule gave the wanted shapes and dtypes, weak types aside. Raises: TypeError naming both."""
    if [(a.shape, a.dtype) for a in have] != [(a.shape, a.dtype) for a in want]:
        given, wanted = (", ".join(map(str, avals)) or "nothing" for avals in (have, want))
        raise TypeError(f"{primitive.name}: its {kind} rule gave {given} {what} {wanted}.")
