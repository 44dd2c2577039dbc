"""Transposition of linear jaxprs, the backward pass of reverse mode: run them backwards.

One cotangent flows from every linear result to the linear inputs. Cotangents accumulate in place in the
functional sense: a rule may return an `Update`, which is applied to the running cotangent, instead of a
dense array of mostly zeros. That is what makes transposition preserve work.
Source: Radul et al. 2023, section 6 and theorem 7.1.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple

from tapeless.interpreters.analysis.linearity import checked_linear
from tapeless.interpreters.simplify import simplify_program
from tapeless.interpreters.zero import Zero, are_nonzero, instantiate
from tapeless.tracer import core, source
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from tapeless.tracer.primitives.checkpoint import optimization_barrier
from tapeless.tracer.primitives.custom import custom_linear_p, holds_unchecked_rules, is_unchecked
from tapeless.tracer.primitives.elementwise import add
from tapeless.tracer.primitives.indexing import dynamic_slice, dynamic_update_slice_p
from tapeless.tracer.primitives.invertible import invertible_p
from tapeless.tracer.primitives.shape import concatenate
from tapeless.tracer.rules import Rules
from tapeless.tracer.source import Source
from tapeless.tracer.staging import StagingTrace
from tapeless.tracer.types import ShapedArray, aval_of
from tapeless.tracer.window_additions import WindowAddition, find_additions


class Linear:
    """A linear operand in a transpose rule: it has a type, but no value."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval: Final = aval

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise _LinearOperand


class _LinearOperand(Exception):
    """Raised when a rule computes with the value of an operand that is linear, and so has none."""


class Update(NamedTuple):
    """A cotangent that is zero outside a part: `dense()` is the whole array, `onto(x)` adds it to x in place.

    window: the cotangent of the part, and where it starts, if that is a window at known indices.
    """

    dense: Callable[[], Any]
    onto: Callable[[Any], Any]
    window: tuple[Any, Sequence[int]] | None = None


def is_linear(x: Any) -> bool:
    """Tell whether the operand of a transpose rule is linear."""
    return type(x) is Linear


def backward(
    jaxpr: Jaxpr, residuals: Sequence[Any], cts: Sequence[Any], totals: Sequence[Any] | None = None
) -> list[Any]:
    """Pull cotangents (values or `Zero`) of the linear results back to cotangents of the linear inputs.

    Args:
      totals: running cotangents that the results include, added in place where possible; one for each linear input,
        or None.
    Raises: NotImplementedError naming the equation's line if it is not linear.
    """
    makers = after_inverses(jaxpr) if invertible_p in jaxpr.primitives else {}
    env, kept = _nonlinear_part(jaxpr, residuals, makers), _of_unchecked_rules(jaxpr)
    additions = find_additions(jaxpr) if dynamic_update_slice_p in jaxpr.primitives else {}
    inputs = [v for v in jaxpr.invars if v.linear]
    running: dict[Var, _Cotangent] = {}
    late = _LateValues(makers, env, running) if makers else None
    for v, total in zip(inputs, totals or ()):
        if total is not None:
            _accumulate(running, v, total)
    for v, ct in zip(jaxpr.outvars, cts, strict=True):
        _accumulate(running, v, ct)
    before = source.current()
    outside = source.override.get()
    try:  # as `source.at`, for each equation
        for eqn in reversed(jaxpr.eqns):
            if eqn.linear:
                source.override.set(source.transpose_source(eqn.source) or before)
                if late:
                    late.compute_for(eqn)
                if eqn in additions:
                    _pull_back_addition(eqn, additions[eqn], env, running)
                else:
                    _pull_back(eqn, env, running, kept)
    finally:
        source.override.set(outside)
    return [running[v].value(v.aval) if v in running else Zero(v.aval) for v in inputs]


def transpose_jaxpr(
    jaxpr: Jaxpr,
    nonzero: tuple[bool, ...],
    added: tuple[bool, ...] | None = None,
    wanted: tuple[bool, ...] | None = None,
) -> tuple[Jaxpr, tuple[bool, ...]]:
    """Transpose a linear jaxpr: residuals ; cotangents of results, totals -> cotangents of linear inputs.

    Args:
      nonzero: which results have a cotangent.
      added: which linear inputs have a total, an input of the program added to their cotangent.
      wanted: which linear inputs are to have a cotangent even if it is zero.
    Returns: the program, and which linear inputs have a cotangent. Remembered for as long as `jaxpr` lives.
    """
    none = (False,) * sum(jaxpr.linear_in)
    return _transpose_jaxpr(jaxpr, nonzero, added or none, wanted or none)


def flag_reached(jaxpr: Jaxpr, nonzero: Sequence[bool]) -> tuple[bool, ...]:
    """Flag the inputs that may get a cotangent if the results `nonzero` have one."""
    needed = {v for v, some in zip(jaxpr.outvars, nonzero, strict=True) if some}
    for eqn in reversed(jaxpr.eqns):
        if eqn.linear and not needed.isdisjoint(eqn.outvars):
            needed.update([v for v in eqn.invars if v.linear])
    return tuple(v.linear and v in needed for v in jaxpr.invars)


def read_in_parts(jaxpr: Jaxpr) -> tuple[bool, ...]:
    """Flag the linear inputs that an equation may read a part of: adding to their cotangents in place saves work."""
    in_place = (Accumulating, ReadingPart)
    read = {v for eqn in jaxpr.eqns if isinstance(rules.get(eqn.primitive), in_place) for v in eqn.invars}
    return tuple(v.linear and v in read for v in jaxpr.invars)


class Accumulating:
    """A transpose rule `rule(cts, totals, *args, **params)` that adds to running cotangents in place, as of loops.

    If the rule takes an operand's running cotangent (`Totals.take`), the cotangent that it returns must include it.
    """

    __slots__ = ("_rule",)

    def __init__(self, rule: Callable[..., Any]) -> None:
        self._rule = rule

    def __call__(self, cts: Sequence[Any], totals: "Totals", /, *args: Any, **params: Any) -> Sequence[Any]:
        return self._rule(cts, totals, *args, **params)


class ReadingPart:
    """A transpose rule of a primitive that reads a part of an operand: the operand's cotangent is an `Update`."""

    __slots__ = ("_rule",)

    def __init__(self, rule: Callable[..., Any]) -> None:
        self._rule = rule

    def __call__(self, cts: Sequence[Any], /, *args: Any, **params: Any) -> Sequence[Any]:
        return self._rule(cts, *args, **params)


rules: Final = Rules(
    "transpose",
    "rule(cts, *args, **params) -> cotangents of the linear operands, None for the others; an `Accumulating` rule "
    "takes running cotangents, a `ReadingPart` rule gives an `Update`",
    absent="it is not linear, and reverse mode through a linear use of it is an error that says so",
)


def unary(primitive: Primitive, row: Callable[..., Any]) -> None:
    """Register the rule of a primitive of one operand: `lambda ct, x, **params: cotangent`, x being `Linear`."""
    rules[primitive] = lambda cts, x, /, **params: (row(cts[0], x, **params),)


def multilinear(primitive: Primitive, *rows: Callable[..., Any]) -> None:
    """Register a rule from one row per operand, `lambda ct, *operands, **params: cotangent`; one operand is linear."""

    def rule(cts: Sequence[Any], /, *args: Any, **params: Any) -> tuple[Any, ...]:
        linear = [type(x) is Linear for x in args]
        if sum(linear) > 1:
            raise not_linear(primitive, "it multiplies two values that are both linear (bilinear)")
        return tuple([row(cts[0], *args, **params) if some else None for row, some in zip(rows, linear)])

    rules[primitive] = rule


def joint(primitive: Primitive, *rows: Callable[..., Any]) -> None:
    """Register the rule of a primitive that is linear in operands together (add), from one row per operand.

    In a linear program an operand that is not linear must be zero; `linearity.check_linear` checks that for users.
    """

    def rule(cts: Sequence[Any], /, *args: Any, **params: Any) -> tuple[Any, ...]:
        return tuple([row(cts[0], *args, **params) if is_linear(x) else None for row, x in zip(rows, args)])

    rules[primitive] = rule


def no_transpose(ct: Any, /, *args: Any, **params: Any) -> Any:
    """Raise an error: the row of an operand that the primitive is not linear in."""
    raise not_linear("this operand", "nothing is linear in it")


class _Cotangent:
    """A running cotangent: a dense array, or none yet, and pending `Update`s with their source lines."""

    __slots__ = ("_updates", "dense")

    def __init__(self) -> None:
        self.dense: Any = None
        self._updates: list[tuple[Update, Source | None]] = []

    def add(self, ct: Any) -> None:
        if type(ct) is Update:
            self._updates.append((ct, source.current()))
        else:
            self.dense = ct if self.dense is None else add(self.dense, ct)

    def value(self, aval: ShapedArray) -> Any:
        """Return the sum of what was added, of type `aval`; `Zero` if nothing was."""
        total, updates = self.dense, self._updates
        if total is None and len(updates) > 1 and all(update.window for update, _ in updates):
            total = source.at(updates[0][1], joined, [update.window for update, _ in updates], aval.shape)
            updates = updates if total is None else []
        for update, place in updates:
            total = source.at(place, update.dense) if total is None else source.at(place, update.onto, total)
        self.dense, self._updates = total, []
        return Zero(aval) if total is None else total


def joined(windows: Sequence[Any], shape: tuple[int, ...]) -> Any:
    """Concatenate arrays, (array, starts) each, that stand side by side in an array of `shape`; None if they do not.

    They are written once, where in-place additions would read and write each of them.
    """
    order = sorted(windows, key=lambda window: tuple(window[1]))
    sizes = [aval_of(ct).shape for ct, _ in order]
    axes = [d for d, n in enumerate(shape) if any(size[d] != n for size in sizes)]
    if len(axes) != 1:
        return None
    (d,) = axes
    ends = accumulate([size[d] for size in sizes])
    if [0, *ends] != [*[starts[d] for _, starts in order], shape[d]]:
        return None
    return concatenate([ct for ct, _ in order], d)


def _nonlinear_part(jaxpr: Jaxpr, residuals: Sequence[Any], late: Mapping[Atom, Equation]) -> dict[Var, Any]:
    """Evaluate the nonlinear equations of a linear jaxpr but late ones; return the values of nonlinear variables."""
    env = dict(zip([v for v in jaxpr.invars if not v.linear], residuals, strict=True))
    for eqn in jaxpr.eqns:
        if not eqn.linear and eqn.outvars[0] not in late:
            outs = source.at(eqn.source, eqn.primitive.apply, *_read(eqn, env), **eqn.params)
            env.update(zip(eqn.outvars, outs, strict=True))
    return env


def _read(eqn: Equation, env: dict[Var, Any]) -> list[Any]:
    return [v.value if type(v) is Literal else Linear(v.aval) if v.linear else env[v] for v in eqn.invars]


@core.memoize_by_program
def after_inverses(jaxpr: Jaxpr) -> Mapping[Atom, Equation]:
    """Map the results of invertible nonlinear equations, and what is computed from them, to their equations.

    They are computed when the cotangents arrive that are to be pulled back with them, as all at once take the memory
    that inverses spare.
    """
    late: dict[Atom, Equation] = {}
    for eqn in jaxpr.eqns:
        if not eqn.linear and (eqn.primitive is invertible_p or not late.keys().isdisjoint(eqn.invars)):
            late.update(dict.fromkeys(eqn.outvars, eqn))
    return late


class _LateValues:
    """The values of a linear jaxpr that are computed when they are read, one inverse after the other."""

    __slots__ = ("_env", "_makers", "_pulled", "_running")

    def __init__(self, makers: Mapping[Atom, Equation], env: dict[Var, Any], running: dict[Var, "_Cotangent"]) -> None:
        self._makers, self._env, self._running = makers, env, running
        self._pulled: Sequence[Any] = ()  # the operands of the equation that read such values last

    def compute_for(self, eqn: Equation) -> None:
        """Compute those that a linear equation reads, if its results have cotangents."""
        todo: list[Any] = [v for v in eqn.invars if v in self._makers]
        if not todo or self._running.keys().isdisjoint(eqn.outvars):
            return
        while todo:
            made = self._makers[todo[-1]]
            missing = [v for v in made.invars if v in self._makers and v not in self._env]
            if todo[-1] in self._env:
                todo.pop()
            elif missing:
                todo += missing
            else:
                self._compute(made, [*eqn.outvars, *self._pulled])
        self._pulled = eqn.invars

    def _compute(self, made: Equation, after: Sequence[Any]) -> None:
        """Compute the results of an equation; an inverse after the cotangents of variables, behind a barrier."""
        operands = _read(made, self._env)
        if made.primitive is invertible_p:
            n = made.params["n_args"]
            found = [
                x for v in dict.fromkeys(after) if (x := self._running.get(v)) and type(x.value(v.aval)) is not Zero
            ]
            behind = list(optimization_barrier(*operands[n:], *[x.dense for x in found]))
            operands[n:] = behind[: len(operands) - n]
            for x, ct in zip(found, behind[len(operands) - n :], strict=True):
                x.dense = ct  # read, as else a compiler drops it from the barrier
        outs = source.at(made.source, made.primitive.apply, *operands, **made.params)
        self._env.update(zip(made.outvars, outs, strict=True))


@core.memoize_by_program
def _of_unchecked_rules(jaxpr: Jaxpr) -> Collection[Atom]:
    """Collect the variables depending on results of rules that need not be linear.

    Their cotangents are never left out, even if they are known to be 0: such a rule may make another value of 0.
    """
    found: set[Atom] = set()
    for eqn in jaxpr.eqns if holds_unchecked_rules(jaxpr) else ():
        if eqn.linear and (is_unchecked(eqn) or not found.isdisjoint(eqn.invars)):
            found.update(eqn.outvars)
    return found


def _pull_back(eqn: Equation, env: dict[Var, Any], running: dict[Var, _Cotangent], kept: Collection[Atom]) -> None:
    found = [running.pop(v, None) for v in eqn.outvars]
    if not any(found):
        return
    cts = [Zero(v.aval) if ct is None else _arrived(eqn, ct.value(v.aval)) for v, ct in zip(eqn.outvars, found)]
    pulled = _pulled(eqn, cts, env, running)
    for v, ct in zip(eqn.invars, pulled, strict=True):
        if v.linear:
            if ct is None:
                raise not_linear(eqn.primitive, "a linear value is among the operands that it is not linear in", eqn)
            if v in kept:
                running.setdefault(v, _Cotangent())  # type: ignore[arg-type]  # literals are not linear
            _accumulate(running, v, ct)


def _pull_back_addition(
    eqn: Equation, found: WindowAddition, env: dict[Var, Any], running: dict[Var, _Cotangent]
) -> None:
    """Pull back an addition to a window: the cotangent is that of the array, and its window that of the part.

    By its equations, one after the other, the window would be cleared and then added again.
    """
    (out,) = eqn.outvars
    ct = running.pop(out, None)
    if ct is not None:
        total = instantiate(ct.value(out.aval))
        starts = [v.value if type(v) is Literal else env[v] for v in found.starts]
        _accumulate(running, found.whole, total)
        _accumulate(
            running, found.part, dynamic_slice(total, starts, found.part.aval.shape, allow_negative_indices=False)
        )


def _arrived(eqn: Equation, ct: Any) -> Any:
    """Instantiate a cotangent that is known to be 0, and is not left out; a user's rule is told that it is known."""
    return ct if eqn.primitive is custom_linear_p else instantiate(ct)


class Totals:
    """The running cotangents of an equation's operands, for its rule to take."""

    __slots__ = ("_operands", "_running")

    def __init__(self, operands: Sequence[Atom], running: dict[Var, _Cotangent]) -> None:
        self._operands, self._running = operands, running

    def take(self, i: int) -> Any:
        """Remove and return the running cotangent of operand i, or None; the rule must return it with its own added."""
        v = self._operands[i]
        found = self._running.pop(v, None) if v.linear else None  # type: ignore[arg-type]  # literals are not linear
        return None if found is None else found.value(v.aval)

    def of_operands(self, positions: Sequence[int]) -> "Totals":
        """Return those of another equation, whose operands are the ones at `positions`."""
        return Totals([self._operands[i] for i in positions], self._running)


def _pulled(eqn: Equation, cts: list[Any], env: dict[Var, Any], running: dict[Var, _Cotangent]) -> Sequence[Any]:
    rule = rules.get(eqn.primitive)
    if rule is None:
        raise not_linear(eqn.primitive, "it is not linear", eqn)
    if isinstance(rule, Accumulating):
        return rule(cts, Totals(eqn.invars, running), *_read(eqn, env), **eqn.params)
    try:
        return rule(cts, *_read(eqn, env), **eqn.params)
    except _LinearOperand:
        return (None,) * len(eqn.invars)


def _accumulate(running: dict[Var, _Cotangent], v: Any, ct: Any) -> None:
    if type(ct) is Zero or not v.linear:
        return
    found = running.get(v)
    if found is None:
        found = running[v] = _Cotangent()
    found.add(ct)


FORWARD_WORKS: Final = "; forward mode (tl.jvp, tl.jacfwd) works"  # for messages, where forward mode needs no transpose


def not_linear(primitive: Primitive | str, why: str, eqn: Equation | None = None) -> NotImplementedError:
    """Return the error that a primitive cannot be transposed, with the source line of `eqn` or of the current one."""
    place = (eqn.source if eqn else None) or source.current()
    reached = f" It was reached from {place.describe()}." if place else ""
    return NotImplementedError(f"no transpose rule for '{primitive}': {why}.{reached}")


@core.memoize_by_program
def _transpose_jaxpr(
    jaxpr: Jaxpr, nonzero: tuple[bool, ...], added: tuple[bool, ...], wanted: tuple[bool, ...]
) -> tuple[Jaxpr, tuple[bool, ...]]:
    trace = StagingTrace(core.current_trace(), jaxpr, "transpose")
    residuals = [trace.input(v.aval) for v in jaxpr.invars if not v.linear]
    cts = [
        trace.input(v.aval, linear=True) if some else Zero(v.aval)
        for v, some in zip(jaxpr.outvars, nonzero, strict=True)
    ]
    inputs = [v for v in jaxpr.invars if v.linear]
    totals = [trace.input(v.aval, linear=True) if yes else None for v, yes in zip(inputs, added, strict=True)]

    def pull() -> tuple[list[Any], list[Any]]:
        pulled = backward(jaxpr, residuals, cts, totals)
        pulled = [instantiate(ct) if want else ct for ct, want in zip(pulled, wanted, strict=True)]
        return pulled, [trace.atom(instantiate(ct)) for ct in pulled if type(ct) is not Zero]

    pulled, outvars = core.under_new(trace, pull)
    built = trace.finish_with_literals(outvars, f"transpose_{jaxpr.name.removeprefix('linear_')}")
    return checked_linear(simplify_program(built)), are_nonzero(pulled)
