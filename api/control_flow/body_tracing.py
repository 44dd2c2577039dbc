"""Tracing of the bodies of loops and branches: users' functions to jaxprs, and the fix-point of carry types.

Bare numbers are weak, and so are arrays made of them alone: their types give way. A loop's carry that begins weak takes
the type given by the body; for another dtype, the body is traced again. Weak results are converted where those of other
branches, or the carry, are not weak.
"""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeVar

from tapeless.arguments.argument_checks import check_arrays
from tapeless.control_flow.mismatch_errors import branches_error, carry_error, structure_error
from tapeless.tracer import core, dtypes, leaks, pytree
from tapeless.tracer.jaxpr import Jaxpr, Var, eval_jaxpr
from tapeless.tracer.numpy.promotion import cast
from tapeless.tracer.primitives.elementwise import convert_element_type
from tapeless.tracer.references import Ref
from tapeless.tracer.settings.scopes import call_in_scope
from tapeless.tracer.staging import trace_closed, trace_to_jaxpr
from tapeless.tracer.types import ShapedArray, aval_of, is_arraylike


class TracedBody(NamedTuple):
    """A user's function as a program: constants, arguments, arrays in references -> leaves of the result, arrays."""

    jaxpr: Jaxpr
    consts: tuple[Any, ...]
    result: Any  # as the function returned it, traced; for its structure
    references: tuple[Ref, ...] = ()  # of outside, that it reads or writes

    def giving(self, avals: Sequence[ShapedArray]) -> "TracedBody":
        """Convert the results of the body to `avals`."""
        jaxpr = self.jaxpr
        if jaxpr.out_avals == tuple(avals):
            return self

        def converted(*xs: Any) -> list[Any]:
            return [as_type(y, aval) for y, aval in zip(eval_jaxpr(jaxpr, xs), avals, strict=True)]

        program = trace_closed(converted, jaxpr.in_avals, what="control flow")
        return self._replace(jaxpr=program.replace(name=jaxpr.name))

    def taking(self, avals: Sequence[ShapedArray], first: int) -> "TracedBody":
        """Let the body take arguments of the types `avals`, from number `first` on, and convert them to its dtypes."""
        jaxpr, start = self.jaxpr, len(self.consts) + first
        own, end = jaxpr.in_avals, start + len(avals)
        if own[start:end] == tuple(avals):
            return self
        inside = [aval.update(dtype=mine.dtype) for aval, mine in zip(avals, own[start:end])]

        def converted(*xs: Any) -> list[Any]:
            carry = [as_type(x, aval) for x, aval in zip(xs[start:end], inside)]
            outs = eval_jaxpr(jaxpr, [*xs[:start], *carry, *xs[end:]])
            return [as_type(y, aval) for y, aval in zip(outs, jaxpr.out_avals)]

        program = trace_closed(converted, [*own[:start], *avals, *own[end:]], what="control flow")
        return self._replace(jaxpr=program.replace(name=jaxpr.name))


def trace(
    who: str,
    fun: Callable[..., Any],
    call: Callable[..., Any],
    avals: Sequence[ShapedArray],
    remembered: bool = False,
    taking_references: bool = False,
    of_user: Callable[[Any], Any] | None = None,
) -> TracedBody:
    """Trace `call`, a function of flat arrays that calls the user's `fun` and returns a pytree.

    Args:
      remembered: it is going to be used again elsewhere, so loops inside must not guess (see `explorations`).
      taking_references: references of outside may be used, and are passed on.
      of_user: what `fun` returned in the result of `call`, if that is not all.
    Raises: TypeError if a leaf of the result is not an array; whatever `fun` raises.
    """
    result: Any = None

    def flat(*xs: Any) -> list[Any]:
        nonlocal result
        if not remembered:
            TypeProbe.enter()
        result = call(*xs)
        check_arrays(f"{who}: the result{{}} of {core.describe_function(fun)}", of_user(result) if of_user else result)
        return pytree.leaves(result)

    references: list[Ref] = []
    taken = references if taking_references else None
    jaxpr, consts = leaks.check_leaks(lambda: trace_to_jaxpr(flat, avals, what=who, function=fun, references=taken))
    return TracedBody(jaxpr.replace(name=_name(fun)), consts, result, tuple(references))


def _name(fun: Any) -> str:
    name = getattr(fun, "__name__", "f")
    return "f" if name == "<lambda>" else str(name)


def describe_result(result: Any) -> str:
    """Describe the result of a function in a message: its outermost container, or the type of a single array."""
    tree = pytree.structure(result)
    if tree is not pytree.LEAF:
        return pytree.describe_node(tree)
    return f"one array, {aval_of(result)}" if is_arraylike(result) else f"{result!r} of type {type(result).__name__}"


def as_type(x: Any, aval: ShapedArray) -> Any:
    """Convert x, whose type gives way to `aval`, to that type. Raises: OverflowError if an integer does not fit."""
    if aval_of(x) is aval:
        return x
    y = cast(x, aval.dtype, aval.weak_type)
    return y if aval_of(y) is aval else convert_element_type(y, aval.dtype, aval.weak_type)


# ---- carries -------------------------------------------------------------------------------------------------


def unify_carry_types(
    who: str,
    fun: Callable[..., Any],
    init: Any,
    traced: Callable[[list[ShapedArray]], TracedBody],
    carry_of: Callable[[Any], Any],
    first: int = 0,
    others: Sequence[Any] = (),
) -> tuple[TracedBody, list[Any]]:
    """Trace the body of a loop to the fix-point of its carry types; return it and the initial carry, flat, of them.

    Inside a type probe the type is a guess, of one trace: see `TypeProbe`.

    Args:
      fun: the user's function, whose fault it is.
      traced: the body for types of the carry.
      carry_of: the carry in the result of the body.
      first: position of the carry's first leaf among those of the result.
      others: what the body takes besides, for messages.
    Raises: TypeError if the body changes the structure of the carry, or the type of a leaf: every one is named.
    """

    def checked(avals: list[ShapedArray]) -> TracedBody:
        body = traced(avals)
        after = carry_of(body.result)
        if pytree.structure(after) != pytree.structure(init):
            raise structure_error(who, fun, init, after)
        return body

    leaves, around = pytree.leaves(init), TypeProbe.here()
    begins = [aval_of(x) for x in leaves]
    body, avals = _guessed(checked, begins, first, around) if around else _found(checked, begins, first)
    outs, end = body.jaxpr.out_avals, first + len(avals)
    fits = [gives_way(after, aval) for after, aval in zip(outs[first:end], avals)]
    if not all(fits):
        raise carry_error(who, fun, init, avals, outs[first:end], fits, [*body.consts, *others])
    return body.giving([*outs[:first], *avals, *outs[end:]]), [as_type(x, aval) for x, aval in zip(leaves, avals)]


def _guessed(
    traced: Callable[[list[ShapedArray]], TracedBody], avals: list[ShapedArray], first: int, around: "TypeProbe"
) -> tuple[TracedBody, list[ShapedArray]]:
    """Trace the body once, and guess the types of its carry: those given by this trace."""
    body = traced(avals)
    wider = _wider(body, avals, first)
    around.guessed |= _dtypes(wider) != _dtypes(avals)
    return body.taking(wider, first), wider


def _found(
    traced: Callable[[list[ShapedArray]], TracedBody], avals: list[ShapedArray], first: int
) -> tuple[TracedBody, list[ShapedArray]]:
    """Trace the body until the dtypes of its carry no longer change; return the final body and the types.

    A carry that begins weak and goes on strong is weak inside the body, as in JAX.
    """
    how = _probe_or_commit(avals)
    while True:
        body, guessed = how(lambda: traced(avals))  # noqa: B023  # it is called at once
        wider = _wider(body, avals, first)
        known = _dtypes(wider) == _dtypes(avals)
        if known and not guessed:
            return body.taking(wider, first), wider
        if not known:
            avals = [before if before.dtype == after.dtype else after for before, after in zip(avals, wider)]
        how = commit if known else _probe_or_commit(avals)


def _dtypes(avals: Sequence[ShapedArray]) -> list[Any]:
    return [aval.dtype for aval in avals]


def _probe_or_commit(avals: Sequence[ShapedArray]) -> Any:
    """Choose between a type probe and final tracing of a body: a carry without weak types does not change its types."""
    return probe if any(aval.weak_type for aval in avals) else commit


def _wider(body: TracedBody, avals: Sequence[ShapedArray], first: int) -> list[ShapedArray]:
    """Find the types that a carry must begin with, to go on as the body gives it."""
    given = body.jaxpr.out_avals[first : first + len(avals)]
    return [_met(before, after) for before, after in zip(avals, given)]


def _met(before: ShapedArray, after: ShapedArray) -> ShapedArray:
    """Find the type that a carry must begin with to go on as `after`, if it is weak; a strong type stays."""
    if not before.weak_type or before.shape != after.shape:
        return before
    dtype, weak = dtypes.result_type(before, after)
    return before.update(dtype=dtype, weak_type=weak and after.weak_type and dtype == before.dtype)


def gives_way(aval: ShapedArray, to: ShapedArray) -> bool:
    """Tell whether a value may be taken as one of another type: they differ in weakness or, if it is weak, in width."""
    if aval.shape != to.shape:
        return False
    return aval.dtype == to.dtype or (aval.weak_type and _kind(aval) == _kind(to))


def _kind(aval: ShapedArray) -> str:
    kind = dtypes.kind(aval.dtype)
    return "i" if kind == "u" else kind


# ---- branches ------------------------------------------------------------------------------------------------


def join_branches(
    who: str, names: Sequence[str], functions: Sequence[Any], bodies: Sequence[TracedBody]
) -> tuple[list[Jaxpr], list[Any]]:
    """Join programs of branches that take and give the same: all take the constants of all of them first.

    Raises: TypeError if results differ in structure or type: every leaf is named, with what each branch gives.
    """
    first = pytree.structure(bodies[0].result)
    same_structure = all(pytree.structure(body.result) == first for body in bodies)
    columns = list(zip(*[body.jaxpr.out_avals for body in bodies], strict=True)) if same_structure else []
    avals = [_strongest(column) for column in columns]
    if not same_structure or not all(gives_way(a, to) for column, to in zip(columns, avals) for a in column):
        consts = [x for body in bodies for x in body.consts]
        raise branches_error(who, names, functions, [body.result for body in bodies], consts)
    consts = {id(x): x for body in bodies for x in body.consts}
    return [_taking(body.giving(avals), consts) for body in bodies], list(consts.values())


def _strongest(avals: Sequence[ShapedArray]) -> ShapedArray:
    """Return the first type that is not weak, or else the widest."""
    for aval in avals:
        if not aval.weak_type:
            return aval
    return max(avals, key=lambda aval: dtypes.bits_of(aval.dtype))


def _taking(body: TracedBody, consts: dict[int, Any]) -> Jaxpr:
    """Make the program of `body` take all of `consts` (by identity) in place of its own."""
    invars = body.jaxpr.invars
    own = dict(zip(map(id, body.consts), invars))
    before = [own.get(key) or Var(aval_of(x)) for key, x in consts.items()]
    return body.jaxpr.replace(invars=[*before, *invars[len(body.consts) :]])


# ---- carries that begin weakly typed -------------------------------------------------------------------------
# Type probes: trace a loop body only to find the types of a carry that begins weakly typed.
#
# A loop whose carry begins weak is traced to see what type it takes, and then for good. Were each loop inside traced
# twice in both, d nested loops would be traced 2^d times. So while a loop is probed, those inside guess instead: they
# are traced once, and take for granted that with the type they found the rest stays as it is. What is written then is
# thrown away if anything was guessed; the loop is traced again for good, where those inside explore in turn: a trace
# or two for each level. Only what is traced directly counts: functions that are remembered (jit, checkpoint) are
# never given guesses.


T = TypeVar("T")


class TypeProbe:
    """A loop that is traced for types.

    guessed: whether a loop inside took something for granted.
    """

    def __init__(self) -> None:
        self.guessed = False
        self._traces: list[core.Trace] = [core.current_trace()]  # what is written into these is not for good

    @staticmethod
    def here() -> "TypeProbe | None":
        """Return the type probe that the current trace belongs to, or None."""
        found = _current.get()
        return found if found and core.current_trace() in found._traces[1:] else None

    @staticmethod
    def enter() -> None:
        """Start tracing a body; a body traced inside a type probe belongs to that probe."""
        found, trace = _current.get(), core.current_trace()
        if found and trace.parent in found._traces:
            found._traces.append(trace)


def probe(f: Callable[[], T]) -> tuple[T, bool]:
    """Call `f`, which traces a body, in a type probe; return its result, and whether it is good for types only."""
    found = TypeProbe()
    return call_in_scope(_current, found, f), found.guessed


def commit(f: Callable[[], T]) -> tuple[T, bool]:
    """Call `f` outside any type probe: its result is final."""
    return f(), False


_current: ContextVar[TypeProbe | None] = ContextVar("type probe", default=None)
