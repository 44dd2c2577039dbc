"""The intermediate representation: a program in A-normal form, first order and typed.

Nonlinear and linear variables are told apart in the variable itself: `Var.linear`. A program with linear
inputs computes linear functions of them, with coefficients that are nonlinear:
`{ lambda c:f32[3] ; ẋ:f32[3]. let ẏ = mul c ẋ in ; ẏ }`. Source: Radul et al. 2023, "Linear A".

A `Jaxpr` has no free variables: it reads inputs and literals only. A `ClosedJaxpr` adds values for the first
inputs, the constants that tracing found. An `OpenJaxpr` is a view of a program by JAX's convention, where the constants
are no inputs.
"""

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, final

import numpy as np

from tapeless.tracer import core, printing
from tapeless.tracer.array import Array
from tapeless.tracer.core import Primitive
from tapeless.tracer.source import Source, override
from tapeless.tracer.types import ShapedArray, aval_of, incoming, take_array


@final
class Var:
    """A variable of one program: its type, and whether it is linear."""

    __slots__ = ("__weakref__", "aval", "linear")

    def __init__(self, aval: ShapedArray, linear: bool = False) -> None:
        self.aval: Final = aval
        self.linear: Final = linear

    def __repr__(self) -> str:
        return f"Var({'̇' if self.linear else ''}{self.aval.str_short()})"


@final
class Literal:
    """A scalar constant in the place of a variable.

    `value` is a NumPy scalar, or an array without axes if the type is strong: the width of a Python number is fixed
    here, whatever the setting when the program runs, and a user's array is copied, as it may change. Random keys, which
    NumPy does not have, are an array of ours.
    """

    __slots__ = ("aval", "value")

    linear = False

    def __init__(self, value: Any, aval: ShapedArray | None = None) -> None:
        self.aval: Final = aval_of(value) if aval is None else aval
        self.value: Any = value if isinstance(value, Array) else _kept(value, self.aval)

    @property
    def val(self) -> Any:
        """The value, by JAX's name."""
        return self.value

    def __repr__(self) -> str:
        return f"Literal({self.value!r})"


def _kept(value: Any, aval: ShapedArray) -> Any:
    if isinstance(value, np.generic):
        return value
    return take_array(incoming(value)) if isinstance(value, np.ndarray) else aval.dtype.type(value)


Atom = Var | Literal


class Equation:
    """`outvars = primitive[params] invars`, from a line of the user's program.

    linear: whether some result is linear, or, without results, some operand. described: what `bodies.bodies_of` found.
    """

    __slots__ = ("described", "invars", "linear", "outvars", "params", "primitive", "source")
    described: Any

    def __init__(
        self,
        primitive: Primitive,
        invars: Sequence[Atom],
        params: dict[str, Any],
        outvars: Sequence[Var],
        source: Source | None = None,
    ) -> None:
        self.primitive: Final = primitive
        self.params: Final = params
        self.source: Final = source
        self.invars: Final = tuple(invars)
        self.outvars: Final = tuple(outvars)
        self.linear: bool = False
        for v in self.outvars or self.invars:
            if v.linear:
                self.linear = True

    def replace(
        self,
        *,
        primitive: Primitive | None = None,
        invars: Sequence[Atom] | None = None,
        params: dict[str, Any] | None = None,
        outvars: Sequence[Var] | None = None,
        source: Source | None = None,
    ) -> "Equation":
        """Return the equation with some fields replaced; None keeps one."""
        return Equation(
            self.primitive if primitive is None else primitive,
            self.invars if invars is None else invars,
            self.params if params is None else params,
            self.outvars if outvars is None else outvars,
            self.source if source is None else source,
        )

    @property
    def own_params(self) -> dict[str, Any]:
        """The params whose names mean the same as here: none of a primitive that a library defines."""
        return {} if self.primitive.keeps_programs else self.params

    @property
    def source_info(self) -> Source | None:
        """The line of the user's program that it comes from, by JAX's name."""
        return self.source

    @property
    def effects(self) -> frozenset[str]:
        """The effects, those in programs that it carries among them; empty if it is pure."""
        return effects(self)

    def __repr__(self) -> str:
        return printing.equation_text(self)


class DebugInfo(NamedTuple):
    """Description of a function: what it is traced for, its name and place, and the names of its arguments.

    What is not known is None: of a program, all but the name of the function that was traced.
    """

    traced_for: str | None
    func_src_info: str
    arg_names: tuple[str, ...] | None = None
    result_paths: tuple[str, ...] | None = None


class Jaxpr:
    """A program: `invars` to `outvars` by `eqns`, in order. Immutable once built; compared by identity.

    `derived` holds cached values that are derived from the program, see `core.ProgramCache`.
    """

    __slots__ = ("__weakref__", "_carrying", "_primitives", "derived", "eqns", "invars", "name", "outvars")

    def __init__(
        self, invars: Sequence[Var], eqns: Sequence[Equation], outvars: Sequence[Atom], name: str = "f"
    ) -> None:
        self.invars: Final = tuple(invars)
        self.eqns: Final = tuple(eqns)
        self.outvars: Final = tuple(outvars)
        self.name: Final = name
        self.derived: dict[Any, dict[Any, Any]] = {}
        self._primitives: frozenset[Primitive] | None = None
        self._carrying: tuple[Equation, ...] | None = None

    @property
    def primitives(self) -> frozenset[Primitive]:
        """Return the primitives applied by its equations, without those inside of programs that they carry."""
        found = self._primitives
        if found is None:
            found = self._primitives = frozenset([eqn.primitive for eqn in self.eqns])
        return found

    @property
    def carrying(self) -> "Sequence[Equation]":
        """Return the equations that carry programs; most programs have none, which `primitives` tells at once."""
        found = self._carrying
        if found is None:
            is_some = True in [primitive.carries_programs for primitive in self.primitives]
            found = tuple([eqn for eqn in self.eqns if eqn.primitive.carries_programs]) if is_some else ()
            self._carrying = found
        return found

    @property
    def programs(self) -> "Sequence[Jaxpr]":
        """Return the programs that its equations carry."""
        return [program for eqn in self.carrying for program in subjaxprs(eqn.params)]

    @property
    def in_avals(self) -> tuple[ShapedArray, ...]:
        """Types of the inputs."""
        return tuple([v.aval for v in self.invars])

    @property
    def out_avals(self) -> tuple[ShapedArray, ...]:
        """Types of the results."""
        return tuple([v.aval for v in self.outvars])

    @property
    def linear_in(self) -> tuple[bool, ...]:
        """Flags of the inputs: whether each is linear."""
        return tuple([v.linear for v in self.invars])

    def replace(
        self,
        *,
        invars: Sequence[Var] | None = None,
        eqns: Sequence[Equation] | None = None,
        outvars: Sequence[Atom] | None = None,
        name: str | None = None,
    ) -> "Jaxpr":
        """Return the program with some fields replaced; None keeps one."""
        return Jaxpr(
            self.invars if invars is None else invars,
            self.eqns if eqns is None else eqns,
            self.outvars if outvars is None else outvars,
            self.name if name is None else name,
        )

    # ---- by JAX's names

    @property
    def jaxpr(self) -> "Jaxpr":
        """The program itself: JAX's equations carry closed programs, whose `jaxpr` is the program."""
        return self

    @property
    def consts(self) -> tuple[Any, ...]:
        """Empty: a program that an equation carries takes its constants as operands."""
        return ()

    @property
    def constvars(self) -> tuple[Var, ...]:
        """Empty: constants are the first inputs, among `invars`; a `ClosedJaxpr` knows which."""
        return ()

    @property
    def effects(self) -> frozenset[str]:
        """The effects of all equations; empty if they are pure."""
        return effects_of(self)

    @property
    def debug_info(self) -> DebugInfo:
        """The name of the function that was traced."""
        return DebugInfo(None, self.name)

    def pretty_print(self, *, source_info: bool = False, use_color: bool = False, **_: Any) -> str:
        """Return the text of the program, as `str` gives it; with `source_info`, the user's line behind each equation.

        Args:
          use_color: mark variables, types and primitives by colors of terminals (ANSI).
          other options of JAX: for its own format, and not used.
        """
        text = self._text(source_info)
        return printing.color_text(text) if use_color else text

    def _text(self, with_source: bool = False) -> str:
        return printing.jaxpr_text(self, with_source=with_source)

    def __str__(self) -> str:
        return self._text()

    __repr__ = __str__


class OpenJaxpr(Jaxpr):
    """A view of `program` by JAX's convention: its constants are `constvars`, and not among `invars`.

    For programs that take programs apart, as libraries for JAX do. We transform `program` only, never the view.
    """

    __slots__ = ("program",)

    def __init__(self, program: Jaxpr, n_constants: int) -> None:
        super().__init__(program.invars[n_constants:], program.eqns, program.outvars, program.name)
        self.program: Final = program

    @property
    def constvars(self) -> tuple[Var, ...]:
        """The inputs of `program` that the constants are the values of."""
        return self.program.invars[: len(self.program.invars) - len(self.invars)]

    def replace(self, *, invars: Sequence[Var] | None = None, **fields: Any) -> "OpenJaxpr":
        """Return the program with some fields replaced; the constants stay."""
        inputs = (*self.constvars, *(self.invars if invars is None else invars))
        return OpenJaxpr(self.program.replace(invars=inputs, **fields), len(self.constvars))

    def _text(self, with_source: bool = False) -> str:
        return printing.jaxpr_text(self.program, n_constants=len(self.constvars), with_source=with_source)


def unwrap_program(jaxpr: Jaxpr) -> Jaxpr:
    """Return the program whose inputs are its constants and then its arguments: `jaxpr`, or what it is a view of."""
    return jaxpr.program if isinstance(jaxpr, OpenJaxpr) else jaxpr


class ClosedJaxpr:
    """A program with values for its constants: its first inputs, or the `constvars` of an `OpenJaxpr`.

    `tl.core.eval_jaxpr(closed.jaxpr, closed.consts, *args)` computes it, flat to flat, and so does the function
    `extend.core.jaxpr_as_fun(closed)`.
    """

    __slots__ = ("consts", "jaxpr")

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any] = ()) -> None:
        self.jaxpr: Final = jaxpr
        self.consts: Final = tuple(consts)

    @property
    def eqns(self) -> tuple[Equation, ...]:
        """The equations."""
        return self.jaxpr.eqns

    @property
    def in_avals(self) -> tuple[ShapedArray, ...]:
        """Types of the inputs that are not constants."""
        return tuple(v.aval for v in self.invars)

    @property
    def out_avals(self) -> tuple[ShapedArray, ...]:
        """Types of the results."""
        return self.jaxpr.out_avals

    def replace(self, *, jaxpr: Jaxpr | None = None, consts: Sequence[Any] | None = None) -> "ClosedJaxpr":
        """Return it with another program, or other constants."""
        return ClosedJaxpr(jaxpr or self.jaxpr, self.consts if consts is None else consts)

    # ---- by JAX's names

    @property
    def literals(self) -> tuple[Any, ...]:
        """The constants."""
        return self.consts

    @property
    def constvars(self) -> tuple[Var, ...]:
        """The inputs that the constants are the values of."""
        return unwrap_program(self.jaxpr).invars[: len(self.consts)]

    @property
    def invars(self) -> tuple[Var, ...]:
        """The inputs that are not constants."""
        return unwrap_program(self.jaxpr).invars[len(self.consts) :]

    @property
    def outvars(self) -> tuple[Atom, ...]:
        """The results."""
        return self.jaxpr.outvars

    @property
    def effects(self) -> frozenset[str]:
        """The effects of all equations; empty if they are pure."""
        return self.jaxpr.effects

    @property
    def debug_info(self) -> DebugInfo:
        """The name of the function that was traced."""
        return self.jaxpr.debug_info

    def pretty_print(self, *, source_info: bool = False, use_color: bool = False, **_: Any) -> str:
        """Return the text of the program, as `Jaxpr.pretty_print` does."""
        text = printing.jaxpr_text(unwrap_program(self.jaxpr), n_constants=len(self.consts), with_source=source_info)
        return printing.color_text(text) if use_color else text

    def __str__(self) -> str:
        return self.pretty_print()

    __repr__ = __str__


def subjaxprs(params: dict[str, Any]) -> Iterator[Jaxpr]:
    """Yield the programs among an equation's params."""
    for value in params.values():
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, Jaxpr):
                yield item


def list_inner_jaxprs(eqn: "Equation") -> Iterable[Jaxpr]:
    """Return the programs that an equation carries; most carry none, which its primitive tells at once."""
    return subjaxprs(eqn.params) if eqn.primitive.carries_programs else ()


def map_subjaxprs(f: Callable[[Jaxpr], Jaxpr], params: dict[str, Any]) -> dict[str, Any]:
    """Apply `f` to the programs among an equation's params; return the same object if nothing changes."""
    new = {name: _mapped(f, value) for name, value in params.items()}
    return params if all(map(operator.is_, new.values(), params.values())) else new


def map_carried(f: Callable[[Jaxpr], Jaxpr], eqn: "Equation") -> dict[str, Any]:
    """Return an equation's params, with `f` applied to the programs in them unless a library keeps these."""
    primitive = eqn.primitive
    return map_subjaxprs(f, eqn.params) if primitive.carries_programs and not primitive.keeps_programs else eqn.params


def _mapped(f: Callable[[Jaxpr], Jaxpr], value: Any) -> Any:
    if isinstance(value, Jaxpr):
        return f(value)
    if not isinstance(value, tuple):
        return value
    items = tuple([f(item) if isinstance(item, Jaxpr) else item for item in value])
    return value if all(map(operator.is_, items, value)) else items


def eval_jaxpr(jaxpr: Jaxpr, args: Sequence[Any]) -> tuple[Any, ...]:
    """Apply a program to values under the current trace; equations keep their source lines.

    Raises: whatever applying its primitives raises; values must be as many as inputs.
    """
    env: dict[Var, Any] = dict(zip(jaxpr.invars, args, strict=True))
    outside = override.get()
    try:  # `source.at` inlined, for each equation
        for eqn in jaxpr.eqns:
            override.set(eqn.source or outside)
            read = [env[v] if type(v) is Var else v.value for v in eqn.invars]
            env.update(zip(eqn.outvars, eqn.primitive.apply(*read, **eqn.params), strict=True))
    finally:
        override.set(outside)
    return tuple(env[v] if type(v) is Var else v.value for v in jaxpr.outvars)


# ---- effects -------------------------------------------------------------------------------------------------
# They must not be dropped, merged, or reordered among each other.
#
# `Primitive.effect` is the side effect of a primitive: "io", which counts as part of the result, or "debug", which
# only observes. An equation that carries programs has their effects. Effects run in no particular order, except for
# those of equations with the param `ordered` set, which run in the order of the program.


ORDERED = "ordered"  # among the effects if some of them have an order
Effects = frozenset[str]
_NONE: Effects = frozenset()


def effects(eqn: Equation) -> Effects:
    """Collect the effects of an equation, in programs that it carries too; empty if it is pure."""
    primitive = eqn.primitive
    if primitive.effect is None and not primitive.carries_programs:
        return _NONE
    own = _NONE if primitive.effect is None else _own(primitive.effect, eqn)
    return own.union(*[effects_of(inner) for inner in subjaxprs(eqn.params)])


@core.memoize_by_program
def effects_of(jaxpr: Jaxpr) -> Effects:
    """Collect the effects of all equations of a program; cached for as long as it lives."""
    own = any(primitive.effect is not None for primitive in jaxpr.primitives)
    return _NONE.union(*map(effects, jaxpr.eqns if own else jaxpr.carrying))


def _own(effect: str, eqn: Equation) -> Effects:
    return frozenset((effect, ORDERED) if eqn.own_params.get(ORDERED) else (effect,))
