"""Linearization: jvp, then unzip. The linear jaxpr is built once and applied often, forwards or transposed.

linearize(f, x) == (f(x), the program of t -> f'(x) t).   Source: Radul et al. 2023.
Primal values are computed at once, for Python may look at them; so residuals are values, and repetitive or masked ones
are written into the linear jaxpr as the equations that made them.
"""

import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tapeless.interpreters import transpose
from tapeless.interpreters.analysis.linearity import checked_linear
from tapeless.interpreters.inline import InliningInTurn
from tapeless.interpreters.jvp import JVPTrace, JVPTracer
from tapeless.interpreters.partial_eval import UnzipTrace
from tapeless.interpreters.residuals import inversion
from tapeless.interpreters.residuals.rematerialization import repeat_equation
from tapeless.interpreters.simplify import simplify_program
from tapeless.interpreters.zero import Zero, are_nonzero
from tapeless.tracer import core, dtypes, passes, source
from tapeless.tracer.array import Array, Unplaced
from tapeless.tracer.check import check_if_configured
from tapeless.tracer.core import Primitive, Trace, Tracer
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Literal, Var, effects, eval_jaxpr
from tapeless.tracer.late_imports import LateModule
from tapeless.tracer.primitives.bits import and_p, not_p, or_p
from tapeless.tracer.primitives.elementwise import eq_p, select_n_p
from tapeless.tracer.primitives.invertible import invertible_p
from tapeless.tracer.primitives.random import GENERATORS
from tapeless.tracer.primitives.reduction import reduce_or_p
from tapeless.tracer.primitives.shape import broadcast_in_dim_p, iota_p, reshape_p, rev_p, transpose_p
from tapeless.tracer.source import Source
from tapeless.tracer.types import ShapedArray, aval_of


class LinearizedJaxpr:
    """A linear map between flat lists of tangents: a linear jaxpr with the values of its residuals.

    jaxpr: residuals ; tangents -> those result tangents that are not symbolically zero (`nonzero`).
    """

    def __init__(self, jaxpr: Jaxpr, residuals: Sequence[Any], nonzero: Sequence[bool], outs: Sequence[ShapedArray]):
        self.jaxpr: Final = jaxpr
        self.residuals: Final = list(residuals)
        self.nonzero: Final = tuple(nonzero)
        self.out_avals: Final = tuple(outs)

    @property
    def in_avals(self) -> tuple[ShapedArray, ...]:
        """Types of the tangents, one for each differentiable input."""
        return tuple([v.aval for v in self.jaxpr.invars if v.linear])

    def at(self, residuals: Sequence[Any]) -> "LinearizedJaxpr":
        """Replace the values of the residuals."""
        return LinearizedJaxpr(self.jaxpr, residuals, self.nonzero, self.out_avals)

    def apply(self, tangents: Sequence[Any]) -> list[Any]:
        """Push tangents forwards; one per differentiable input. Results may be `Zero`."""
        pushed = iter(eval_jaxpr(self.jaxpr, [*self.residuals, *tangents]))
        return [next(pushed) if some else Zero(aval) for some, aval in zip(self.nonzero, self.out_avals)]

    def pull_back(self, cts: Sequence[Any]) -> list[Any]:
        """Pull cotangents back; one per result. Results may be `Zero`."""
        given = [ct for ct, some in zip(cts, self.nonzero, strict=True) if some]
        return transpose.backward(self.jaxpr, self.residuals, given)


def linearize(
    f: Callable[..., Sequence[Any]], primals: Sequence[Any], function: Any = None, what: str = "linearize"
) -> tuple[list[Any], LinearizedJaxpr]:
    """Compute a flat function at `primals`, and its linear jaxpr there; integers among them have no tangent input.

    `function` and `what` are for error messages: what the user wrote, and what it is transformed for.
    """
    unzip = LinearizeTrace(core.current_trace(), function or f, primals)
    trace = JVPTrace(unzip, function or f, what)
    args = [_dual(trace, unzip, x) for x in primals]

    def pushed() -> tuple[list[Any], Jaxpr, list[Any]]:
        outs = [trace.split(x) for x in source.call_transformed("jvp", f, *args)]
        return outs, *unzip.closed([t for _, t in outs if type(t) is not Zero])

    outs, jaxpr, residuals = core.under_new(unzip, core.under_new, trace, pushed)
    nonzero = are_nonzero(t for _, t in outs)
    values = [p for p, _ in outs]
    return values, LinearizedJaxpr(jaxpr, residuals, nonzero, [aval_of(p).tangent() for p in values])


class LinearizeTrace(UnzipTrace):
    """Unzip while values are computed: the linear jaxpr is closed over values, its residuals."""

    __slots__ = ("_given", "_inlining", "_invertible", "_random", "_residuals", "_structure")

    def __init__(self, parent: Trace, function: Any, given: Sequence[Any]) -> None:
        super().__init__(parent, function)
        self._given = given
        self._inlining = InliningInTurn()
        self._residuals: dict[int, tuple[Var, Any]] = {}
        self._structure = ResidualProvenance()
        self._random: RandomValues | None = None
        self._invertible: list[Equation] = []

    def process_primal(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> tuple[Any, ...]:
        outs = self.parent.process(primitive, args, params)
        if len(outs) == 1:
            self._structure.remember(primitive, args, params, outs[0])
        if self._random is not None or primitive in GENERATORS:
            self._random = self._random or random_bits.RandomValues()
            self._random.note(primitive, params, args, outs)
        if primitive is invertible_p:
            results = [self.primal_atom(y) for y in outs]
            results = [y if isinstance(y, Var) else Var(y.aval) for y in results]
            self._invertible.append(
                Equation(primitive, list(map(self.primal_atom, args)), params, results, source.current())
            )
        return outs

    def note_programs(self, eqn: Equation) -> None:
        random_bits.note_operands(eqn)

    def inlined(self, params: dict[str, Any]) -> dict[str, Any]:
        return self._inlining.params(params)

    def primal_atom(self, x: Any) -> Atom:
        if isinstance(x, Unplaced) and not x.aval.shape:
            x = x.host
        if not isinstance(x, Array) and getattr(x, "ndim", 0) == 0:
            return Literal(x)
        if isinstance(x, Tracer) and not x.owner.alive:
            raise core.leak_error(x)
        found = self._residuals.get(id(x))
        if found is None:
            found = self._residuals[id(x)] = (Var(aval_of(x)), x)
            if self._random is not None and x in self._random:
                random_bits.note_input(found[0])
            made = self._structure.of(x)
            if made is not None:
                atoms = [self.atom(y) for y in made.args]
                self._eqns.append(Equation(made.primitive, atoms, made.params, [found[0]], made.source))
        return found[0]

    def closed(self, outs: Sequence[Any]) -> tuple[Jaxpr, list[Any]]:
        """Close the linear jaxpr over its residuals, its first inputs, and simplify it; return it and their values."""
        written = self.finish(outs)
        values = dict(self._residuals.values())
        jaxpr = with_inputs(self._with_inverses(written) if self._invertible else written, values, self._inputs)
        jaxpr = core.under(
            self.parent, lambda: hoist_primal_equations(simplify_program(check_if_configured(jaxpr)), values)
        )
        closed = with_inputs(jaxpr, values, self._inputs)
        residuals = [values[v] for v in closed.invars if not v.linear]
        return checked_linear(check_if_configured(closed), residuals), residuals

    def _with_inverses(self, jaxpr: Jaxpr) -> Jaxpr:
        """Compute the inputs of invertible functions, which the linear jaxpr reads, from their results."""
        given: list[Atom] = [found[0] for x in self._given if (found := self._residuals.get(id(x))) is not None]
        given += [v for eqn in jaxpr.eqns if not eqn.linear for v in (*eqn.invars, *eqn.outvars)]  # of provenances
        again = inversion.plan_inverses(self._invertible, passes.used_variables(jaxpr), given)
        if not again:
            return jaxpr
        return jaxpr.replace(eqns=passes.order_equations([*map(repeat_equation, again), *jaxpr.eqns]))


def with_inputs(jaxpr: Jaxpr, values: dict[Var, Any], inputs: Sequence[Var]) -> Jaxpr:
    """Give a program inputs for those of the primal `values` that it reads and does not compute, before `inputs`."""
    computed = {v for eqn in jaxpr.eqns for v in eqn.outvars}
    used = passes.used_variables(jaxpr)
    return jaxpr.replace(invars=[*[v for v in values if v in used and v not in computed], *inputs])


def _dual(trace: JVPTrace, unzip: UnzipTrace, x: Any) -> Any:
    aval = aval_of(x).tangent()
    return x if aval.dtype == dtypes.float0 else JVPTracer(trace, x, unzip.input(aval))


# ---- how residuals were made ---------------------------------------------------------------------------------
# A value that was broadcast, or computed from such values by cheap elementwise operations, is no residual. Its
# equations are written into the linear jaxpr instead, so that equations that read a part of it, or sum over it, can
# be simplified. Those of its equations that are left after simplification, except broadcasts, are not computed again,
# as their values are known. The same goes for coefficients selected by masks: masks are sunk into coefficients, and
# an array does not tell where it is masked. But selects by masks that linear equations read stay in the linear jaxpr,
# as do equations that compute masks from these. So the jaxpr, when it is linearized or simplified again, shows which
# masks it applies already; and the mask is a residual, instead of the values that it was applied to. This is for
# `linearize` of Python functions alone, where primal values are computed eagerly. The residuals of a jaxpr are chosen
# after it is simplified (residuals/cut.py).


if TYPE_CHECKING:
    from tapeless.interpreters import limits, random_bits
    from tapeless.interpreters.random_bits import RandomValues
    from tapeless.interpreters.simplifications import repeatable_equations
else:  # late, as it imports the index rows
    limits = LateModule("tapeless.interpreters.limits")
    random_bits = LateModule("tapeless.interpreters.random_bits")
    repeatable_equations = LateModule("tapeless.interpreters.simplifications.repeatable_equations")

_REPEATING = frozenset((broadcast_in_dim_p, iota_p))
_OF_MASKS = frozenset((and_p, or_p, not_p, reduce_or_p, reshape_p, transpose_p, rev_p))


class Producer(NamedTuple):
    """The operation that made a value."""

    primitive: Primitive
    args: Sequence[Any]
    params: dict[str, Any]
    source: Source | None


class _Noted(weakref.ref[Any]):
    """A weak reference to a value, with the operation that made it, the depth of its provenance, and its table key."""

    __slots__ = ("depth", "key", "made")

    made: Producer
    depth: int
    key: int


class ResidualProvenance:
    """The table of repetitive or masked primal values of one trace: value -> operation, for as long as values live."""

    __slots__ = ("__weakref__", "_forget", "_made")

    def __init__(self) -> None:
        self._made: dict[int, _Noted] = {}
        self._forget = _forgetting(weakref.ref(self))  # weak: a cycle would keep values alive until garbage collection

    def remember(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any], out: Any) -> None:
        """Record the operation that made a value, if the value is repetitive, masked or a mask of masks."""
        if not isinstance(out, Array) or not self._has_structure(primitive, args, params, out):
            return
        depth = 1 + max([self._made[id(x)].depth for x in args if self.of(x) is not None], default=0)
        most = limits.PROVENANCE
        if depth <= most or primitive in _REPEATING:
            noted = self._made[id(out)] = _Noted(out, self._forget)
            noted.made, noted.depth = Producer(primitive, args, params, source.current()), min(depth, most)
            noted.key = id(out)

    def of(self, x: Any) -> Producer | None:
        """Return the operation that made a value; None if it is not recorded."""
        found = self._made.get(id(x))
        return found.made if found is not None and found() is x else None

    def forget(self, value: _Noted) -> None:
        """Forget a value that has died."""
        self._made.pop(value.key, None)

    def _has_structure(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any], out: Array) -> bool:
        """Tell whether to record a value: it is repetitive, a masked coefficient, or a mask computed from masks."""
        if primitive in _REPEATING:
            return out.aval.size > sum([aval_of(x).size for x in args if aval_of(x).shape])
        if primitive is select_n_p and any(not aval_of(x).shape for x in args[1:]):
            return True  # a coefficient that is a number outside of a mask
        if primitive in _OF_MASKS and all(dtypes.is_bool(aval_of(x).dtype) for x in args):
            return True  # a mask that is made of masks
        if primitive is eq_p and any(not aval_of(x).shape for x in args):
            return True  # the mask of one case of a `select_n`
        known = [self.of(x) is not None for x in args if aval_of(x).shape]
        if not known or not all(known):
            return False
        return repeatable_equations.is_cheap_on_elements(primitive, params, [aval_of(x) for x in args])


def _forgetting(provenance: weakref.ref[ResidualProvenance]) -> Callable[[_Noted], None]:
    """Return the callback for weak references to values, which removes them from the table."""

    def forget(value: _Noted) -> None:
        structure = provenance()
        if structure is not None:
            structure.forget(value)

    return forget


def hoist_primal_equations(jaxpr: Jaxpr, values: dict[Var, Any]) -> Jaxpr:
    """Compute the primal equations of a linear jaxpr now, and remove them, except broadcasts and `_made_of_masks`.

    values: of the primal inputs, and of variables computed before. Newly computed ones, under the current trace, are
    added; they are residuals of the returned jaxpr, free variables until `with_inputs` adds inputs for them.
    """
    late = transpose.after_inverses(jaxpr) if invertible_p in jaxpr.primitives else ()
    known = [eqn for eqn in jaxpr.eqns if _is_known(eqn) and eqn.outvars[0] not in late]
    done = {eqn for eqn in known if eqn.primitive not in _REPEATING} - _made_of_masks(jaxpr, known)
    if not done:
        return jaxpr
    made = {v: eqn for eqn in known for v in eqn.outvars}
    rest = jaxpr.replace(eqns=[eqn for eqn in jaxpr.eqns if eqn not in done])
    used = passes.used_variables(passes.dead_code(rest))
    for v, eqn in made.items():  # in order: programs must not depend on where variables lie in memory
        if v in used and eqn in done:
            _compute(v, made, values)
    return passes.dead_code(rest)


def _made_of_masks(jaxpr: Jaxpr, known: Sequence[Equation]) -> set[Equation]:
    """Find the equations that compute masks from masks read by linear equations, and selects by any of these."""
    linear = [eqn for eqn in jaxpr.eqns if eqn.linear]
    masks = {v for eqn in linear for v in eqn.invars if dtypes.is_bool(v.aval.dtype)}
    masks.update(eqn.invars[0] for eqn in linear if eqn.primitive is select_n_p)
    found: set[Equation] = set()
    for eqn in known:
        if eqn.primitive is select_n_p and eqn.invars[0] in masks:
            found.add(eqn)
        elif not masks.isdisjoint(eqn.invars) and all(map(_counts, eqn.outvars)):
            found.add(eqn)
            masks.update(eqn.outvars)
    return found


def _counts(v: Var) -> bool:
    """Tell whether a value is boolean or integer: a mask, or a count or index computed from masks."""
    return dtypes.is_bool(v.aval.dtype) or dtypes.is_integer(v.aval.dtype)


def _is_known(eqn: Equation) -> bool:
    return not any(v.linear for v in (*eqn.invars, *eqn.outvars)) and not effects(eqn)


def _compute(v: Var, made: dict[Var, Equation], values: dict[Var, Any]) -> None:
    """Compute the value of a variable, and of the variables that it depends on."""
    todo = [v]
    while todo:
        eqn = made.get(todo[-1])
        if todo[-1] in values or eqn is None:
            todo.pop()
            continue
        missing = [x for x in eqn.invars if isinstance(x, Var) and x not in values]
        if missing:
            todo += missing
            continue
        read = [x.value if isinstance(x, Literal) else values[x] for x in eqn.invars]
        outs = source.at(eqn.source, eqn.primitive.apply, *read, **eqn.params)
        values.update(zip(eqn.outvars, outs, strict=True))
