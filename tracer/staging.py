"""Tracing a Python function into a program.

Everything the function does to arrays is written down, whether it depends on the arguments or not. Values
it meets that are not its own, arrays it closes over and tracers of other traces, become constants: inputs
that come before the arguments.
"""

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import numpy as np

from tapeless.tracer import core, passes, source
from tapeless.tracer.array import Array, Unplaced
from tapeless.tracer.check import check_if_configured
from tapeless.tracer.core import Primitive, Trace, Tracer
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from tapeless.tracer.linear_vars import mark_linear
from tapeless.tracer.rules import Rules
from tapeless.tracer.settings.scopes import Arguments, Result, call_in_scope
from tapeless.tracer.types import ShapedArray, aval_of, by_protocol, incoming, take_array

DescribeInputs: TypeAlias = Callable[[Sequence[int]], str]  # `n, argument 1 of f`, or nothing, of numbers of inputs


def trace_to_jaxpr(
    f: Callable[..., Sequence[Any]],
    in_avals: Sequence[ShapedArray],
    *,
    what: str = "jit",
    function: Any = None,
    references: list[Any] | None = None,
    arguments: DescribeInputs | None = None,
) -> tuple[Jaxpr, tuple[Any, ...]]:
    """Write down what `f` does to arrays of these types; flat arguments, flat results.

    Args:
      references: a list, to be filled with those of outside that `f` reads or writes. The last inputs of the program
        are what is in them before, its last results what is in them after. If None there must be no such references.
      arguments: describes the arguments of the user's function that inputs belong to, for messages.
    Returns: the program, whose first inputs are the constants it met, and the values of those.
    Raises: whatever `f` raises; UnexpectedTracerError if it uses a tracer that is over.
    """
    trace = StagingTrace(core.current_trace(), function or f, what, arguments)
    args = [trace.input(aval) for aval in in_avals]
    try:
        outs = core.under_new(trace, source.in_program, _results, f, args)
    except RecursionError as error:
        raise core.nested_too_deeply(error, trace) from None
    after = [] if references is None else trace.taken_references(references)
    return trace.finish([trace.atom(x) for x in [*outs, *after]], str(getattr(function or f, "__name__", "f")))


def trace_closed(
    f: Callable[..., Sequence[Any]], in_avals: Sequence[ShapedArray], *, what: str = "jit", function: Any = None
) -> Jaxpr:
    """Write down what `f` does to arrays of these types, with the arrays that it meets as literals.

    For functions of our own that evaluate programs: literals of those programs are all that they meet.
    """
    return passes.with_literals(*trace_to_jaxpr(f, in_avals, what=what, function=function))


def _results(f: Callable[..., Sequence[Any]], args: Sequence[Any]) -> list[Any]:
    """Call a function; compute the arrays of results that are computed when they are asked for, such as indices."""
    return [by_protocol(x) for x in f(*args)]


# ---- values that stand for traced arrays of outside ----------------------------------------------------------

# A vmap rule of a user is called when a program is batched, where the traces that its closure belongs to may be over,
# or around the program. The call of its function takes these arrays as operands, which stand for them in the rule.
_stand_ins: ContextVar[Mapping[int, Any]] = ContextVar("stand-ins", default=MappingProxyType({}))


def stand_in(x: Any) -> Any:
    """Return the value that stands for a traced array of outside here; the array itself if none does."""
    return _stand_ins.get().get(id(x), x)


def standing_for(
    tracers: Sequence[Any],
    values: Sequence[Any],
    f: Callable[Arguments, Result],
    /,
    *args: Arguments.args,
    **params: Arguments.kwargs,
) -> Result:
    """Call `f(*args)`, where `values` stand for traced arrays of outside."""
    return call_in_scope(
        _stand_ins, {**_stand_ins.get(), **dict(zip(map(id, tracers), values, strict=True))}, f, *args, **params
    )


# ---- writing -------------------------------------------------------------------------------------------------


class WritingTrace(Trace):
    """A trace that writes a program down; its tracers are `WrittenTracer`s."""

    __slots__ = ("_eqns", "_inputs")

    def __init__(self, parent: Trace, function: Any) -> None:
        super().__init__(parent, function)
        self._inputs: list[Var] = []
        self._eqns: list[Equation] = []

    def equation_of(self, var: Var) -> Equation | None:
        """The equation that computes a variable; None for an input, a constant or a residual."""
        return next((eqn for eqn in self._eqns if var in eqn.outvars), None)

    def inputs_of(self, var: Var) -> list[int]:
        """Number the inputs that a variable depends on."""
        needed = self._needed_for(var)
        return [i for i, v in enumerate(self._inputs) if v in needed]

    def _needed_for(self, var: Var) -> set[Var]:
        """Find the variables that a variable depends on, itself among them."""
        needed = {var}
        for eqn in reversed(self._eqns):
            if not needed.isdisjoint(eqn.outvars):
                needed.update(v for v in eqn.invars if type(v) is Var)
        return needed


class WrittenTracer(Tracer):
    """A variable of a program being written."""

    __slots__ = ("variable",)

    def __init__(self, trace: WritingTrace, variable: Var) -> None:
        self.owner: Trace = trace
        self.variable: Final = variable
        self.aval: ShapedArray = variable.aval

    def where(self) -> str:
        trace = self.owner
        assert isinstance(trace, WritingTrace)
        made = trace.equation_of(self.variable)
        return made.source.describe() if made and made.source else ""


class Cell:
    """The place of an array that is written in place; see references.py."""

    __slots__ = ()

    owner: Trace  # values of it and of traces around it may be written
    value: Any


class ProgramCell(Cell):
    """The cell of a reference of outside in a program that is being traced: an input is in it at first."""

    __slots__ = ("owner", "reference", "value")

    def __init__(self, owner: "StagingTrace", reference: Any, value: Any) -> None:
        self.owner: Trace = owner
        self.reference: Final = reference
        self.value: Any = value


_READ_BEFORE = "Read it before, and write it after, or make it in the function."
_INSTEAD_OF_REFERENCES = {
    "custom_vjp": (
        "The backward rule of a call in a loop, a branch, a checkpoint or a jitted function is a program of its own, "
        "which runs in the backward pass.\n  Get the cotangent as a gradient: let the loop take zeros that are added "
        "where the rule stood, and differentiate by them."
    )
}


class StagingTrace(WritingTrace):
    """Applying a primitive writes an equation."""

    __slots__ = ("_cells", "_consts", "arguments", "what")

    def __init__(self, parent: Trace, function: Any, what: str, arguments: DescribeInputs | None = None) -> None:
        super().__init__(parent, function)
        self.what: Final = what
        self.arguments: Final = arguments
        self._consts: dict[int, tuple[Var, Any, Any]] = {}  # the value, kept for its identity, and what it is taken as
        self._cells: dict[int, ProgramCell] = {}

    def input(self, aval: ShapedArray, linear: bool = False) -> "StagedTracer":
        """A new input."""
        var = Var(aval, linear)
        self._inputs.append(var)
        return StagedTracer(self, var)

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> tuple[Any, ...]:
        rule = rules.get(primitive)
        return self.write(primitive, args, params) if rule is None else rule(self, args, **params)

    def write(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> tuple[Any, ...]:
        """Write an equation."""
        atoms = [x.variable if type(x) is StagedTracer and x.owner is self else self.atom(x) for x in args]
        avals = primitive.type(tuple([a.aval for a in atoms]), params)
        outvars = tuple(map(Var, avals))
        self._eqns.append(Equation(primitive, atoms, params, outvars, source.current()))
        return tuple([StagedTracer(self, v) for v in outvars])

    def atom(self, x: Any) -> Atom:
        """The variable or literal that stands for `x` here."""
        if isinstance(x, Tracer):
            if x.owner is self:
                return x.variable  # type: ignore[attr-defined]  # all tracers of this trace have one
            other = stand_in(x)
            if other is not x:
                return self.atom(other)
            core.check_alive((x,))
            if x.owner.depth > self.depth:
                raise core.inner_tracer_error(x, self)
        elif isinstance(x, Unplaced):
            x = x.host
        elif hasattr(type(x), "__jax_array__"):  # such as an index of a body, which may be a sum of ours
            return self.atom(core.under(self, by_protocol, x))
        if not isinstance(x, Array) and np.ndim(x) == 0:
            return Literal(x)
        return self._constant(x)

    def constants_of(self, var: Var) -> list[Any]:
        """List the constants that a variable depends on."""
        needed = self._needed_for(var)
        return [x for v, x, _ in self._consts.values() if v in needed]

    def _constant(self, x: Any) -> Var:
        found = self._consts.get(id(x))
        if found is None:
            found = self._consts[id(x)] = (Var(aval_of(x)), x, incoming(x))
        return found[0]

    def cell_of(self, reference: Any, aval: ShapedArray) -> ProgramCell:
        """The cell of a reference of outside, whose array is of type `aval`."""
        found = self._cells.get(id(reference))
        if found is None:
            found = self._cells[id(reference)] = ProgramCell(self, reference, self.input(aval))
        return found

    def taken_references(self, references: list[Any]) -> list[Any]:
        """Append the references of outside that were used to a list; return what is in them now."""
        cells, self._cells = self._cells.values(), {}
        references += [cell.reference for cell in cells]
        return [cell.value for cell in cells]

    def finish(self, outvars: list[Atom], name: str) -> tuple[Jaxpr, tuple[Any, ...]]:
        """Close the program: eliminate dead code, and put its constants first.

        Raises: NotImplementedError if it used references that nobody took.
        """
        for cell in self._cells.values():
            raise NotImplementedError(
                f"a reference from outside is used where it cannot be: {cell.reference.aval} in {self.describe()}.\n"
                f"  {_INSTEAD_OF_REFERENCES.get(self.what, _READ_BEFORE)}"
            )
        consts = [(v, taken) for v, _, taken in self._consts.values()]
        eqns, used = passes.live(self._eqns, outvars)
        kept = [(v, x) for v, x in consts if v in used]
        closed = Jaxpr([v for v, _ in kept] + self._inputs, eqns, outvars, name)
        marked = mark_linear(closed) if any(v.linear for v in self._inputs) else closed
        return check_if_configured(marked), tuple(_own(x) for _, x in kept)

    def finish_with_literals(self, outvars: list[Atom], name: str) -> Jaxpr:
        """Close the program, with its constants as literals: tables of indices, and arrays that users' rules hold.

        Raises: UnexpectedTracerError if such a value is traced.
        """
        built, consts = self.finish(outvars, name)
        for x in consts:
            if isinstance(x, Tracer):
                raise core.inner_tracer_error(x, self)
        return passes.with_literals(built, consts)


def _own(x: Any) -> Any:
    return take_array(x) if isinstance(x, np.ndarray) else x


rules: Final = Rules(
    "staging",
    "rule(trace, args, **params) -> results: the parameters hold Python functions, which it traces",
    absent="the equation is written with the parameters as they are",
)


class StagedTracer(WrittenTracer):
    """A variable of a program being traced."""

    __slots__ = ()

    def concrete_value(self) -> Any:
        if self.owner.refuses_reads:
            raise TypeError("what is computed depends on elements")
        return None

    def origin(self) -> str:
        trace = self.owner
        assert isinstance(trace, StagingTrace)
        found = trace.arguments(trace.inputs_of(self.variable)) if trace.arguments is not None else ""
        verb = "depends on" if trace.equation_of(self.variable) else "is"
        return f"\n  It {verb} {found}." if found else ""
