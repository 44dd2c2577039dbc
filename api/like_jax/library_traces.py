"""Traces of a library's own: `jax.core.Trace`, whose subclasses interpret primitives by JAX's conventions.

A subclass defines `process_primitive(primitive, tracers, params)`, and makes its tracers, of a subclass of
`core.Tracer`. While it is the current trace, it is handed what is applied, to its tracers or to other values:
primitives that are JAX's with JAX's parameters, see own_primitives.py, and others as equations have them. What it
applies meanwhile goes to the trace around it. Knowingly different: a taken trace stays current, where JAX has one that
computes, or none.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from tapeless.custom.jvp import custom_jvp
from tapeless.interpreters.jvp import jvp
from tapeless.like_jax.own_primitives import OWN_BY_OPERATION
from tapeless.like_jax.wrapped_functions import WrappedFun, wrap_init
from tapeless.tracer import core
from tapeless.tracer.primitives.call import jit_p
from tapeless.tracer.primitives.custom import call_custom, custom_jvp_p, custom_vjp_p

Params = dict[str, Any]
Values = tuple[Any, ...]


class TraceTag:
    """A mark by which a library knows its tracers; all are equal, so that they do not tell calls in caches apart."""

    def __hash__(self) -> int:
        return hash(TraceTag)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TraceTag)


class TakenTrace:
    """A with block that is given the current trace; this trace is current again after the block.

    A block that is never left, as of a dropped generator, restores nothing.
    """

    __slots__ = ("_taken",)

    def __enter__(self) -> core.Trace:
        self._taken = core.current_trace()
        return self._taken

    def __exit__(self, *error: object) -> None:
        core.current.set(self._taken)


class SetTrace:
    """A with block in which `trace` is handed what is applied; the trace before is current again after it."""

    __slots__ = ("_outside", "_trace")

    def __init__(self, trace: core.Trace, check_leaks: bool = False) -> None:
        self._trace = trace

    def __enter__(self) -> None:
        self._outside = core.current_trace()
        core.current.set(self._trace)

    def __exit__(self, *error: object) -> None:
        core.current.set(self._outside)


take_current_trace = TakenTrace
set_current_trace = SetTrace


class LibraryTrace(core.Trace):
    """A trace of a library's own, inside of the trace that is current when it is made."""

    what = "a transformation of a library"

    def __init__(self) -> None:
        super().__init__(core.current_trace())

    def process(self, primitive: core.Primitive, args: Values, params: Params) -> Values:
        apply = _CALLS_WITH_RULES.get(primitive, _apply)
        return core.under(self.parent, apply, self, primitive, args, params)

    def process_primitive(self, primitive: Any, tracers: Sequence[Any], params: Params, /) -> Any:
        """Apply a primitive; subclasses define it. Returns: a value, or a sequence if it has `multiple_results`."""
        raise NotImplementedError(f"{type(self).__name__} must define process_primitive.")

    def process_custom_jvp_call(
        self, primitive: Any, fun: WrappedFun, jvp: WrappedFun, tracers: Sequence[Any], /, *, symbolic_zeros: bool
    ) -> Any:
        """Call a custom_jvp function; subclasses define it.

        Args:
          fun: the function, from flat values to flat values.
          jvp: from primals and tangents to values and tangents, flat, one list each.
        """
        raise NotImplementedError(f"{type(self).__name__} must define process_custom_jvp_call.")

    def process_custom_vjp_call(
        self,
        primitive: Any,
        fun: WrappedFun,
        fwd: WrappedFun,
        bwd: WrappedFun,
        tracers: Sequence[Any],
        /,
        *,
        out_trees: Any,
        symbolic_zeros: bool,
    ) -> Any:
        """Call a custom_vjp function; subclasses define it. `fwd` and `bwd` raise NotImplementedError if called."""
        raise NotImplementedError(f"{type(self).__name__} must define process_custom_vjp_call.")

    def full_raise(self, x: Any) -> Any:
        """Return a value as it is, as in JAX."""
        return x


def _apply(trace: LibraryTrace, primitive: core.Primitive, args: Values, params: Params) -> Values:
    known = OWN_BY_OPERATION.get(primitive)
    if known is not None:
        return _results(known, trace.process_primitive(known, args, known.theirs(params)))
    if primitive is jit_p:
        params = {**params, "name": params["jaxpr"].name, "inline": False}
    return _results(primitive, trace.process_primitive(primitive, args, params))


def _results(primitive: Any, found: Any) -> Values:
    return tuple(found) if primitive.multiple_results else (found,)


def _call_custom_jvp(
    trace: LibraryTrace, primitive: core.Primitive, args: tuple[Any, ...], params: Params
) -> tuple[Any, ...]:
    def pushed(*xs: Any) -> list[Any]:
        n = len(xs) // 2
        outs, tangents = jvp(lambda *xs: primitive.apply(*xs, **params), xs[:n], xs[n:])
        return [*outs, *tangents]

    fun = wrap_init(_without_rule(params))
    return tuple(trace.process_custom_jvp_call(_CustomJvpCall(), fun, wrap_init(pushed), args, symbolic_zeros=False))


def _call_custom_vjp(
    trace: LibraryTrace, primitive: core.Primitive, args: tuple[Any, ...], params: Params
) -> tuple[Any, ...]:
    def refuse(*xs: Any) -> Any:
        raise NotImplementedError("process_custom_vjp_call: fwd and bwd are not there, only the function.")

    fun, rule = wrap_init(_without_rule(params)), wrap_init(refuse)
    return tuple(trace.process_custom_vjp_call(primitive, fun, rule, rule, args, out_trees=None, symbolic_zeros=False))


def _without_rule(params: Params) -> Callable[..., list[Any]]:
    return lambda *xs: list(call_custom(*xs, **params))


_Call = Callable[[LibraryTrace, core.Primitive, Values, Params], Values]
_CALLS_WITH_RULES: Final[dict[core.Primitive, _Call]] = {
    custom_jvp_p: _call_custom_jvp,
    custom_vjp_p: _call_custom_vjp,
}


class _CustomJvpCall:
    """The primitive that `process_custom_jvp_call` is given: it calls a function with another rule."""

    name = "custom_jvp_call"
    multiple_results = True

    def bind_with_trace(self, trace: core.Trace, args: Sequence[Any], avals: Any, params: Params, /) -> list[Any]:
        """Call `subfuns`, two wrapped functions as `process_custom_jvp_call` gets them, under a trace."""
        fun, rule = params["subfuns"]
        called = custom_jvp(lambda *xs: fun.call_wrapped(*xs))

        @called.defjvp
        def _(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
            found = list(rule.call_wrapped(*primals, *tangents))
            return found[: len(found) // 2], found[len(found) // 2 :]

        return core.under(trace, called, *args)
