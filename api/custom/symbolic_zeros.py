"""Symbolic zeros in users' rules (`symbolic_zeros=True`): tangents that are zero while tracing."""

from dataclasses import dataclass
from typing import Any, Final, final

from tapeless.interpreters.jvp import structurally_linear
from tapeless.interpreters.zero import Zero, instantiate, zero_of
from tapeless.tracer import core, pytree
from tapeless.tracer.jaxpr import Literal
from tapeless.tracer.primitives.operands import known_elements
from tapeless.tracer.staging import StagedTracer
from tapeless.tracer.types import ShapedArray, aval_of


@final
class SymbolicZero:
    """A tangent or cotangent that is zero whatever the values are: its type is all there is.

    `.aval`, `.shape`, `.dtype`, `.ndim` and `.size` are those of the array of zeros that it stands for. Rules may
    return it too.
    """

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval: Final = aval

    @staticmethod
    def from_primal_value(val: Any) -> "SymbolicZero":
        """Make the zero tangent of a value."""
        return SymbolicZero(aval_of(val).tangent())

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        return self.aval.ndim

    @property
    def size(self) -> int:
        return self.aval.size

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError(f"{self!r} is no array: a rule with symbolic_zeros=True must look for it before it computes.")

    def __repr__(self) -> str:
        return f"SymbolicZero({self.aval.str_short()})"


@dataclass(frozen=True, slots=True)
class CustomVJPPrimal:
    """A leaf of the arguments of a forward rule with `symbolic_zeros`: its value, and whether it is differentiated."""

    value: Any
    perturbed: bool


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """Return the values in a tree of `CustomVJPPrimal`. Raises: TypeError naming a leaf that is none."""
    return pytree.tree_map(_value, tree)


def _value(leaf: Any) -> Any:
    if type(leaf) is not CustomVJPPrimal:
        raise TypeError(f"custom_vjp_primal_tree_values: {leaf!r} of type {type(leaf).__name__} is no CustomVJPPrimal.")
    return leaf.value


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """Zero tangents for a tree of arrays: arrays, or `SymbolicZero` if asked for."""
    return pytree.tree_map(SymbolicZero.from_primal_value if symbolic_zeros else _zeros, val)


def _zeros(x: Any) -> Any:
    return instantiate(zero_of(x))


def symbolic(t: Any) -> Any:
    """Convert a tangent or cotangent to the form given to rules that ask for symbolic zeros."""
    return SymbolicZero(t.aval) if type(t) is Zero else t


def is_known_zero(t: Any) -> bool:
    """Tell whether a tangent is statically zero: a known array, or zeros that are written into a program."""
    if type(t) is StagedTracer:
        trace: Any = t.owner
        eqn = trace.equation_of(t.variable)
        return eqn is not None and eqn.primitive in structurally_linear and all(map(_is_zero_literal, eqn.invars))
    known = known_elements(t) if not core.is_evaluating() else None
    return known is not None and not known.any()


def _is_zero_literal(v: Any) -> bool:
    return type(v) is Literal and not v.value.any()
