"""Forward-mode differentiation: carry (primal, tangent) and push tangents by rule.

jvp(f, (x,), (t,)) == (f(x), f'(x) t).   Source: Griewank & Walther 2008, ch. 3.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Final

from tapeless.interpreters import roots
from tapeless.interpreters.roots import RootOrigin
from tapeless.interpreters.zero import Zero, are_nonzero, instantiate, zero_of, zeros_of
from tapeless.tracer import core, source
from tapeless.tracer.core import Primitive, Trace, Tracer
from tapeless.tracer.jaxpr import Jaxpr, eval_jaxpr
from tapeless.tracer.primitives.elementwise import add
from tapeless.tracer.rules import Rules, Table
from tapeless.tracer.staging import StagingTrace, stand_in
from tapeless.tracer.types import ShapedArray, aval_of


def jvp(
    f: Callable[..., Sequence[Any]],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    function: Any = None,
    what: str = "jvp",
) -> tuple[list[Any], list[Any]]:
    """Compute the value and the directional derivative of a flat function; tangents may be `Zero`, in and out."""
    trace = JVPTrace(core.current_trace(), function or f, what)
    args = [JVPTracer(trace, p, t) if type(t) is not Zero else p for p, t in zip(primals, tangents, strict=True)]
    pairs = [trace.split(x) for x in core.under_new(trace, source.call_transformed, "jvp", f, *args)]
    return [p for p, _ in pairs], [t for _, t in pairs]


def jvp_jaxpr(
    jaxpr: Jaxpr, nonzero: tuple[bool, ...], wanted: tuple[bool, ...] | None = None
) -> tuple[Jaxpr, tuple[Any, ...], tuple[bool, ...]]:
    """Stage the jvp of a program: constants, primals ; tangents -> results ; those tangents that may be nonzero.

    Args:
      nonzero: which inputs have a tangent; their tangents follow the primals, as linear inputs.
      wanted: which results are to have one even if it is zero.
    Returns: the program; its constants, which users' rules close over; which results have a tangent.
      Remembered for as long as `jaxpr` lives.
    """
    return _jvp_jaxpr(jaxpr, nonzero, wanted or (False,) * len(jaxpr.outvars))


class JVPTrace(Trace):
    """The trace of forward mode: a primitive applied to a `JVPTracer` runs its jvp rule under the parent trace."""

    __slots__ = ("what",)

    def __init__(self, parent: Trace, function: Any, what: str = "jvp") -> None:
        super().__init__(parent, function)
        self.what: Final = what

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> tuple[Any, ...]:
        primals, tangents, some = [], [], False
        for x in args:
            if type(x) is JVPTracer and x.owner is self:
                primals.append(x.primal)
                tangents.append(x.tangent)
                some = True
            else:
                primals.append(x)
                tangents.append(None)
        if not some:
            return core.under(self.parent, self.parent.process, primitive, args, params)
        outside, place = core.current_trace(), source.override.get()
        try:  # as `core.under`, and in it `source.at`
            core.current.set(self.parent)
            try:
                if place is None and not primitive.carries_programs:  # looked up once, for all equations of the rule
                    source.override.set(source.current())
                zeros = [zero_of(x) if t is None else t for x, t in zip(primals, tangents)]
                known = (
                    self._even_power(primitive, args, params) if type(args[0]) is JVPTracer and args[0].root else None
                )
                if known is None:
                    outs, out_tangents = rules[primitive](primals, zeros, **params)
                else:
                    outs, out_tangents = primitive.bind(*primals, **params), known
            finally:
                source.override.set(place)
        finally:
            core.current.set(outside)
        made = roots.root(primitive, args, params)
        return tuple([y if type(t) is Zero else JVPTracer(self, y, t, made) for y, t in zip(outs, out_tangents)])

    def _even_power(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> list[Any] | None:
        """Find the tangent of an even power of a root from the square of that; None for other operations."""
        same = core.under(self, roots.even_power, primitive, args, params)
        return None if same is None else [self.split(same)[1]]

    def split(self, x: Any) -> tuple[Any, Any]:
        """Return the primal and tangent of any value; `Zero` for an `Aux`, or a value that is not of this trace."""
        if type(x) is Aux:
            primal, _ = self.split(x.value)
            return primal, zero_of(primal)
        if type(x) is JVPTracer and x.owner is self:
            return x.primal, x.tangent
        if isinstance(x, Tracer) and (other := stand_in(x)) is not x:
            return self.split(other)
        core.check_alive((x,))
        return x, zero_of(x)


class Aux:
    """An auxiliary result: this trace returns no tangent of it; outer derivatives still differentiate its value."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value: Final = value


class JVPTracer(Tracer):
    """A primal with a tangent that is not symbolically zero."""

    __slots__ = ("primal", "root", "tangent")
    differentiated = True

    def __init__(self, trace: JVPTrace, primal: Any, tangent: Any, root: RootOrigin | None = None) -> None:
        self.owner: Trace = trace
        self.root: Final = root
        self.primal: Final = primal
        self.tangent: Final = tangent
        self.aval: ShapedArray = aval_of(primal)

    def concrete_value(self) -> Any:
        primal = self.primal
        return primal.concrete_value() if isinstance(primal, Tracer) else primal

    def _shown(self) -> str:
        return self.primal._shown() if isinstance(self.primal, Tracer) else super()._shown()

    def where(self) -> str:
        parts = [x.where() for x in (self.tangent, self.primal) if isinstance(x, Tracer)]
        return next(filter(None, parts), "")


rules: Final = Rules(
    "jvp",
    "rule(primals, tangents, **params) -> results, their tangents (`Zero` for symbolic zeros)",
    absent="forward and reverse mode raise an error; a primitive without a derivative has a rule (`jvp.zero`)",
)


def partials(primitive: Primitive, *rows: Callable[..., Any] | None) -> None:
    """Register a rule from one row per operand: `lambda t, *operands, **params: tangent`; None: no derivative."""

    def rule(primals: list[Any], tangents: list[Any], /, **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        terms = [row(t, *primals, **params) for row, t in zip(rows, tangents) if row and type(t) is not Zero]
        return out, (total(terms, out[0]),)

    rules[primitive] = rule


def partials_of_result(primitive: Primitive, *rows: Callable[..., Any] | None) -> None:
    """Like `partials`, for derivatives that use the result: `lambda t, result, *operands, **params: tangent`."""

    def rule(primals: list[Any], tangents: list[Any], /, **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        y = out[0]
        terms = [row(t, y, *primals, **params) for row, t in zip(rows, tangents) if row and type(t) is not Zero]
        return out, (total(terms, y),)

    rules[primitive] = rule


def linear(primitive: Primitive) -> None:
    """Register the rule of a primitive that is linear in all operands jointly: apply it to the tangents."""
    linear_in(primitive)


def multilinear(primitive: Primitive) -> None:
    """Register the rule of a multilinear primitive: the product rule."""

    def rule(primals: list[Any], tangents: list[Any], /, **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        terms = [
            primitive.bind(*primals[:k], t, *primals[k + 1 :], **params)[0]
            for k, t in enumerate(tangents)
            if type(t) is not Zero
        ]
        return out, (total(terms, out[0]),)

    rules[primitive] = rule
    structurally_linear[primitive] = All.SEPARATELY


def linear_in(primitive: Primitive, *positions: int) -> None:
    """Register the rule of a primitive that is linear in the operands at `positions` (default: all) jointly.

    The other operands (indices, bounds) have no derivative.
    """

    def rule(primals: list[Any], tangents: list[Any], /, **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        moving = positions or range(len(primals))
        if all(type(tangents[k]) is Zero for k in moving):
            return out, zeros_of(out)
        pushed = [instantiate(tangents[k]) if k in moving else x for k, x in enumerate(primals)]
        return out, primitive.bind(*pushed, **params)

    rules[primitive] = rule
    structurally_linear[primitive] = positions or All.JOINTLY


def zero(primitive: Primitive) -> None:
    """Register the rule of a primitive without derivative: piecewise constant, or integer."""

    def rule(primals: list[Any], tangents: list[Any], /, **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        return out, zeros_of(out)

    rules[primitive] = rule


class All(Enum):
    """Linearity in all operands: jointly (add), or in each while the others are fixed (mul)."""

    JOINTLY = "jointly"
    SEPARATELY = "separately"


structurally_linear: Table[tuple[int, ...] | slice | All] = Table(
    "linearity",
    "positions of the operands that it is linear in, together; or `All`",
    absent="it is linear in no operand, unless it carries programs",
)


def total(terms: Sequence[Any], out: Any) -> Any:
    """Add the tangents of the result `out`; return `Zero` if there are none."""
    if not terms:
        return zero_of(out)
    total = terms[0]
    for term in terms[1:]:
        total = add(total, term)
    return total


@core.memoize_by_program
def _jvp_jaxpr(
    jaxpr: Jaxpr, nonzero: tuple[bool, ...], wanted: tuple[bool, ...]
) -> tuple[Jaxpr, tuple[Any, ...], tuple[bool, ...]]:
    trace = StagingTrace(core.current_trace(), jaxpr, "jvp")
    primals = [trace.input(aval) for aval in jaxpr.in_avals]
    tangents = [
        trace.input(aval.tangent(), linear=True) if some else Zero(aval.tangent())
        for aval, some in zip(jaxpr.in_avals, nonzero, strict=True)
    ]

    def push() -> tuple[list[Any], list[Any]]:
        outs, out_tangents = jvp(lambda *xs: eval_jaxpr(jaxpr, xs), primals, tangents, jaxpr)
        out_tangents = [instantiate(t) if want else t for t, want in zip(out_tangents, wanted, strict=True)]
        kept = [t for t in out_tangents if type(t) is not Zero]
        return out_tangents, [trace.atom(x) for x in [*outs, *kept]]

    out_tangents, outvars = core.under_new(trace, push)
    built, consts = trace.finish(outvars, f"jvp_{jaxpr.name}")
    return built, consts, are_nonzero(out_tangents)
