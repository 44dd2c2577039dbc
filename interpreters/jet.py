"""Taylor mode: carry the coefficients of a polynomial in one variable t, and push them by the rules of forward mode.

jet(f, (x0,), ((x1, .., xK),)) == (y0, (y1, .., yK)) with f(x0 + x1 t + ..) = y0 + y1 t + .. up to t^K. No primitive
needs a Taylor rule of its own. A linear primitive is applied to the coefficients of each order, a multilinear one to
all coefficients whose orders add up. For any other y = p(x), the jvp rule of p maps x and x' = dx/dt to y' = dy/dt.
That rule is a program of primitives, evaluated in the same power series arithmetic, and the coefficient of order k - 1
of y' is k times the coefficient of order k of y.

Coefficients are computed on demand, and a primitive applied to the same operands returns the same series: the rule of
sin reads cos(x), and that of cos reads sin(x), whose lower orders are known already. A rule may apply other functions
than its own: that of x**y applies x**(y - 1). It is evaluated again for each order, so K orders take of the order of
K^2 or K^3 operations for each operation in the rules.

Source: Griewank & Walther 2008, chapter 13; McIlroy 1999, "Power series, power serious", for series on demand.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any, Final

import numpy as np

from tapeless.interpreters import jvp
from tapeless.interpreters.transformed_bodies import push_terms
from tapeless.interpreters.zero import Zero, are_nonzero, instantiate, zero_of
from tapeless.tracer import core, dtypes
from tapeless.tracer.bodies import describe_bodies
from tapeless.tracer.core import Primitive, Trace, Tracer
from tapeless.tracer.flags import Flags, where_true
from tapeless.tracer.jaxpr import Jaxpr, eval_jaxpr
from tapeless.tracer.primitives.elementwise import convert_element_type, div, div_p, mul, sub
from tapeless.tracer.primitives.operands import constant
from tapeless.tracer.primitives.shape import broadcast_in_dim
from tapeless.tracer.rules import Rules
from tapeless.tracer.staging import StagingTrace
from tapeless.tracer.types import ShapedArray, aval_of

Coefficients = Sequence[Any]  # of t, t^2, ..; some may be `Zero`


def jet(
    f: Callable[..., Sequence[Any]],
    primals: Sequence[Any],
    series: Sequence[Coefficients | None],
    order: int,
    function: Any,
) -> tuple[list[Any], list[list[Any] | None]]:
    """Compute the Taylor coefficients of a flat function along a polynomial.

    Args:
      primals: the coefficients of order 0.
      series: for every argument its coefficients of orders 1 to `order`, which may be `Zero`, or None for a constant.
      function: the user's function, for messages.
    Returns: the coefficients of order 0 of the results, and for each the others, or None if it is constant.
    """
    trace = JetTrace(core.current_trace(), function, order)
    given = [x if terms is None else _given(trace, x, terms) for x, terms in zip(primals, series, strict=True)]
    return _split(trace, core.under_new(trace, f, *given))


def jet_jaxpr(
    jaxpr: Jaxpr, order: int, moving: Sequence[bool], wanted: Sequence[bool] | None = None
) -> tuple[Jaxpr, tuple[Any, ...], tuple[bool, ...]]:
    """Stage a program in Taylor mode: constants, primals, their coefficients -> results, their coefficients.

    Args:
      moving: which inputs have coefficients; those of one input, of orders 1 to `order`, follow one another.
      wanted: which results are to have coefficients even if they are constant.
    Returns: the program; its constants, which users' rules close over; which results have coefficients.
    """
    trace = StagingTrace(core.current_trace(), jaxpr, "jet")
    primals = [trace.input(aval) for aval in jaxpr.in_avals]
    series = [
        [trace.input(aval.tangent()) for _ in range(order)] if some else None
        for aval, some in zip(jaxpr.in_avals, moving, strict=True)
    ]

    def push() -> tuple[tuple[bool, ...], list[Any]]:
        outs, terms = jet(lambda *xs: eval_jaxpr(jaxpr, xs), primals, series, order, jaxpr)
        wanting = wanted or (False,) * len(outs)
        found = [_zeros(y, order) if ts is None and yes else ts for y, ts, yes in zip(outs, terms, wanting)]
        flat = [typed(instantiate(t), aval_of(y).tangent()) for y, ts in zip(outs, found) if ts is not None for t in ts]
        return tuple([ts is not None for ts in found]), [trace.atom(x) for x in [*outs, *flat]]

    out_moving, outvars = core.under_new(trace, push)
    program, consts = trace.finish(outvars, f"jet_{jaxpr.name}")
    return program, consts, out_moving


def _zeros(x: Any, order: int) -> list[Any]:
    return [zero_of(x)] * order


def _given(trace: "JetTrace", x: Any, terms: Coefficients) -> "JetTracer":
    return JetTracer(trace, aval_of(x), known=[x, *terms])


def _split(trace: "JetTrace", outs: Sequence[Any]) -> tuple[list[Any], list[list[Any] | None]]:
    core.check_alive([x for x in outs if not _is_of(trace, x)])
    series = [[x.coefficient(k) for k in range(trace.order + 1)] if _is_of(trace, x) else None for x in outs]
    primals = [x if terms is None else terms[0] for x, terms in zip(outs, series)]
    return primals, [terms and terms[1:] for terms in series]


# ---- the trace -----------------------------------------------------------------------------------------------


class JetTrace(Trace):
    """The trace of Taylor mode: a primitive applied to series returns series.

    Coefficients in the user's program are computed at once, up to `order`; those in jvp rules on demand.
    """

    __slots__ = ("_inside", "_made", "order")
    what = "jet"

    def __init__(self, parent: Trace, function: Any, order: int) -> None:
        super().__init__(parent, function)
        self.order: Final = order
        self._inside = 0  # how many rules are being evaluated
        self._made: dict[Any, tuple[Any, list[Any]]] = {}  # operands and results; keys hold ids of living operands

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> tuple[Any, ...]:
        if not any(_is_of(self, x) for x in args):
            core.check_alive(args)
            return core.under(self.parent, self.parent.process, primitive, args, params)
        outs = core.under(self.parent, self._applied, primitive, args, params)
        if not self._inside:
            outs = [core.under(self.parent, x.computed) if _is_of(self, x) else x for x in outs]
            self._made.clear()
        return tuple(outs)

    def _applied(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> list[Any]:
        """Return the results of a primitive; the same series as before if the operands are, within one jvp rule."""
        key = primitive, tuple([_identity(x) for x in args]), *params.items()
        found = self._made.get(key)
        if found is None:
            found = args, list(self._apply(primitive, args, params))
            self._made[key] = found
        return found[1]

    def _apply(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Sequence[Any]:
        if primitive in rules:
            return rules[primitive](self, args, **params)
        bodies = describe_bodies(primitive, params)
        if bodies is not None and not bodies.fixed:
            avals = primitive.type(tuple(map(aval_of, args)), params)
            return self.series(avals, JointTerms(self, partial(_bodies, primitive, params), args))
        avals = primitive.type(tuple(map(aval_of, args)), params)
        if not any(dtypes.is_inexact(aval.dtype) for aval in avals):  # integers and booleans are constant
            return primitive.apply(*[value_of(self, x) for x in args], **params)
        return self.series(avals, self._terms(primitive, args, params))

    def _terms(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> "Terms":
        moving = [i for i, x in enumerate(args) if _is_of(self, x)]
        linear = jvp.structurally_linear.get(primitive)
        if linear is jvp.All.SEPARATELY and len(moving) > 1:
            return _ProductTerms(self, primitive, args, params)
        if linear is not None and set(moving) <= _positions(linear, len(args)):
            return _LinearTerms(self, primitive, args, params)
        return ByRule(self, primitive, args, params)

    def series(self, avals: Sequence[ShapedArray], terms: "Terms") -> list[Any]:
        """Return a series for each real or complex result of these types; the value, by `terms.term(0)`, of others."""
        return [
            JetTracer(self, aval, terms, i) if dtypes.is_inexact(aval.dtype) else terms.term(0)[i]
            for i, aval in enumerate(avals)
        ]

    @property
    def in_rule(self) -> bool:
        """Tell whether a jvp rule is being evaluated, in which coefficients are computed on demand."""
        return self._inside > 0

    def by_rule(self, f: Callable[..., Any], /, *args: Any, **params: Any) -> Any:
        """Call `f(*args, **params)`, a jvp rule, on series; coefficients in it are computed on demand."""
        self._inside += 1
        try:
            return core.under(self, f, *args, **params)
        finally:
            self._inside -= 1


class JetTracer(Tracer):
    """A Taylor series in t, with coefficients computed on demand: that of order k is `terms.term(k)[place]`.

    known: the coefficients computed so far, from order 0.
    """

    __slots__ = ("_derivative", "_known", "_place", "_terms")
    differentiated = True

    def __init__(
        self, trace: JetTrace, aval: ShapedArray, terms: "Terms | None" = None, place: int = 0, known: Any = ()
    ) -> None:
        self.owner: Trace = trace
        self.aval: ShapedArray = aval
        self._terms = terms
        self._place = place
        self._known = list(known)
        self._derivative: JetTracer | None = None

    def coefficient(self, k: int) -> Any:
        """Return the coefficient of t^k, or `Zero`."""
        known = self._known
        while len(known) <= k:  # in increasing order, which bounds the depth of recursion
            assert self._terms is not None
            found = self._terms.term(len(known))[self._place]
            known.append(typed(found, self.aval if not known else self.aval.tangent()))
        return known[k]

    def defer(self, terms: "Terms", place: int) -> None:
        """Take coefficients from result `place` of `terms`, which computes the same values, if none is known yet.

        That is so if both apply the same primitive by its jvp rule, and at most order 0 is known here.
        """
        mine = self._terms
        if isinstance(mine, ByRule) and mine.primitive is terms.primitive and len(self._known) <= 1:
            self._terms, self._place = terms, place

    def computed(self) -> Any:
        """Compute all coefficients up to the trace's order; return the series, or its primal if it is constant."""
        trace = self.owner
        assert isinstance(trace, JetTrace)
        self.coefficient(trace.order)
        self._terms = None
        return self if any(are_nonzero(self._known[1:])) else self._known[0]

    def derivative(self) -> "JetTracer":
        """Return the series of the derivative by t."""
        if self._derivative is None:
            trace = self.owner
            assert isinstance(trace, JetTrace)
            self._derivative = JetTracer(trace, self.aval.tangent(), _Derivative(self))
        return self._derivative

    def concrete_value(self) -> Any:
        primal = core.under(self.owner.parent, self.coefficient, 0)
        return None if type(primal) is Zero else primal.concrete_value() if isinstance(primal, Tracer) else primal

    def where(self) -> str:
        parts = [x.where() for x in self._known if isinstance(x, Tracer)]
        return next(filter(None, parts), "")


def _is_of(trace: JetTrace, x: Any) -> bool:
    return type(x) is JetTracer and x.owner is trace


def _identity(x: Any) -> Any:
    """Return a key that is equal for the same operands: type and bits of a number, the id of other values."""
    if isinstance(x, (bool, int, float, complex, np.generic)):
        return type(x), np.asarray(x).tobytes()
    if isinstance(x, np.ndarray) and x.ndim == 0:
        return type(x), x.dtype, x.tobytes()
    return id(x)


def coefficient_of(trace: JetTrace, x: Any, k: int) -> Any:
    """Return the coefficient of t^k of an operand, which may be a constant."""
    if _is_of(trace, x):
        return x.coefficient(k)
    return x if k == 0 else zero_of(x)


def value_of(trace: JetTrace, x: Any) -> Any:
    """Return the coefficient of order 0 of an operand, as an array."""
    return instantiate(coefficient_of(trace, x, 0))


def typed(x: Any, aval: ShapedArray) -> Any:
    """Convert a value to exactly this type, and broadcast a scalar to its shape; `Zero` is returned as it is."""
    if type(x) is Zero or aval_of(x) == aval:
        return x
    have = aval_of(x)
    if (have.dtype, have.weak_type) != (aval.dtype, aval.weak_type):
        x = convert_element_type(x, aval.dtype, aval.weak_type)
    return x if have.shape == aval.shape else broadcast_in_dim(x, aval.shape, ())


# ---- coefficients by kinds of primitives ---------------------------------------------------------------------


class Terms:
    """The coefficients of the results of one applied primitive, computed on demand in increasing order."""

    __slots__ = ("_args", "_found", "_params", "_primitive", "_trace")

    def __init__(self, trace: JetTrace, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> None:
        self._trace, self._primitive, self._args, self._params = trace, primitive, args, params
        self._found: list[Sequence[Any]] = []

    @property
    def primitive(self) -> Primitive:
        """The primitive that is applied."""
        return self._primitive

    def term(self, k: int) -> Sequence[Any]:
        """Return the coefficient of t^k of each result; it may be `Zero`."""
        while len(self._found) <= k:
            self._found.append(self._next(len(self._found)))
        return self._found[k]

    def _next(self, k: int) -> Sequence[Any]:
        raise NotImplementedError

    def _bind(self, args: Sequence[Any]) -> tuple[Any, ...]:
        return self._primitive.apply(*args, **self._params)

    def _values(self) -> list[Any]:
        return [value_of(self._trace, x) for x in self._args]


class _LinearTerms(Terms):
    """Coefficients of a map that is linear in its series operands jointly, or has only one: it is applied to theirs."""

    __slots__ = ("_linear", "_purely")

    def __init__(self, trace: JetTrace, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> None:
        super().__init__(trace, primitive, args, params)
        linear = jvp.structurally_linear[primitive]
        alone = {i for i, x in enumerate(args) if _is_of(trace, x)}
        self._linear = alone if linear is jvp.All.SEPARATELY else _positions(linear, len(args))
        self._purely = isinstance(linear, jvp.All)  # else it may be affine: a gather fills constants in

    def _next(self, k: int) -> Sequence[Any]:
        terms = [coefficient_of(self._trace, x, k) if i in self._linear else x for i, x in enumerate(self._args)]
        if not any(are_nonzero(terms[i] for i in self._linear)):
            avals = self._primitive.type(tuple(map(aval_of, self._args)), self._params)
            return [Zero(aval.tangent()) for aval in avals]
        if k == 0 or (self._purely and all(are_nonzero(terms))):
            return self._bind([*map(instantiate, terms)])
        tangents = [t if i in self._linear else zero_of(t) for i, t in enumerate(terms)]
        return jvp.rules[self._primitive](self._values(), tangents, **self._params)[1]


def _positions(linear: Any, n: int) -> set[int]:
    """List the positions, of n operands, that an entry of `jvp.structurally_linear` stands for."""
    if isinstance(linear, jvp.All):
        return set(range(n))
    return set(range(n)[linear] if isinstance(linear, slice) else linear)


class _ProductTerms(Terms):
    """Coefficients of a multilinear map of several series: the Cauchy product."""

    __slots__ = ()

    def _next(self, k: int) -> Sequence[Any]:
        orders = [range(k + 1) if _is_of(self._trace, x) else range(1) for x in self._args]
        total: Any = None
        for each in product(*orders):
            if sum(each) != k:
                continue
            terms = [coefficient_of(self._trace, x, j) for x, j in zip(self._args, each)]
            if all(are_nonzero(terms)):
                (term,) = self._bind(terms)
                total = term if total is None else _sum(total, term)
        if total is None:
            return (Zero(self._primitive.type(tuple(map(aval_of, self._args)), self._params)[0].tangent()),)
        return (total,)


def _sum(x: Any, y: Any) -> Any:
    return jvp.total([x, y], x)


class ByRule(Terms):
    """Coefficients of any other primitive: those of its derivative by t, which its jvp rule computes, divided by k."""

    __slots__ = ("_pushed",)

    def __init__(self, *application: Any) -> None:
        super().__init__(*application)
        self._pushed: Any = None

    def _next(self, k: int) -> Sequence[Any]:
        if k == 0:
            return self._bind(self._values())
        if self._pushed is None:
            tangents = [x.derivative() if _is_of(self._trace, x) else zero_of(x) for x in self._args]
            rule = jvp.rules[self._primitive]
            values, self._pushed = self._trace.by_rule(rule, list(self._args), tangents, **self._params)
            self._recognize(values)
        return [_divided(coefficient_of(self._trace, t, k - 1), k) if type(t) is not Zero else t for t in self._pushed]

    def _recognize(self, values: Sequence[Any]) -> None:
        """Let series that a user's rule computed by calling its own function again share these coefficients."""
        for i, x in enumerate(values):
            if _is_of(self._trace, x) and all(x is not y for y in self._args):
                x.defer(self, i)


def _divided(x: Any, k: int) -> Any:
    return x if type(x) is Zero or k == 1 else div(x, constant(k, aval_of(x)))


class _Derivative(Terms):
    """Coefficients of the derivative of a series by t: k + 1 times its coefficient of order k + 1."""

    __slots__ = ("_series",)

    def __init__(self, series: JetTracer) -> None:
        self._series, self._found = series, []

    def _next(self, k: int) -> Sequence[Any]:
        x = self._series.coefficient(k + 1)
        return (x if type(x) is Zero or k == 0 else mul(x, constant(k + 1, aval_of(x))),)


class _Quotient(Terms):
    """Coefficients of q = a / b, by b0 qk = ak - b1 q(k-1) - .. - bk q0; the jvp rule would divide for each order."""

    __slots__ = ()

    def _next(self, k: int) -> Sequence[Any]:
        a, b = self._args
        left = coefficient_of(self._trace, a, k)
        for j in range(1, k + 1):
            factors = coefficient_of(self._trace, b, j), self._found[k - j][0]
            if all(are_nonzero(factors)):
                left = sub(instantiate(left), mul(*factors))
        return (left if type(left) is Zero else div(left, value_of(self._trace, b)),)


def _bodies(
    primitive: Primitive, params: dict[str, Any], primals: Sequence[Any], series: Sequence[Any], order: int
) -> tuple[list[Any], list[Any]]:
    """Push coefficients through the bodies of a call, a loop or branches."""

    def push(jaxpr: Jaxpr, moving: Flags, wanted: Flags) -> tuple[Jaxpr, Sequence[Any], Flags]:
        return jet_jaxpr(jaxpr, order, moving, wanted)

    return push_terms(primitive, params, primals, series, order, push)


rules: Final = Rules(
    "jet",
    "rule(trace, args, **params) -> results, series among them: of primitives that carry programs, and of division",
    absent="its bodies carry series, if it has any; else its linearity determines its series, or else its jvp rule",
)


def _div(trace: JetTrace, args: tuple[Any, ...]) -> Sequence[Any]:
    avals = div_p.type(tuple(map(aval_of, args)), {})
    return trace.series(avals, _Quotient(trace, div_p, args, {}))


rules[div_p] = _div


class JointTerms(Terms):
    """Coefficients of a primitive that carries programs, computed together up to some order.

    In the user's program this is the order of the trace. In jvp rules, which read one order after another, each order
    runs the programs again.
    """

    __slots__ = ("_order", "_rule")

    def __init__(self, trace: JetTrace, rule: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self._trace, self._args, self._found, self._rule = trace, args, [], rule
        self._order = 0 if trace.in_rule else trace.order

    def term(self, k: int) -> Sequence[Any]:
        if len(self._found) <= k:
            self._found = self._all(max(k, self._order))
        return self._found[k]

    def _all(self, order: int) -> list[Sequence[Any]]:
        series = [[coefficient_of(self._trace, x, k) for k in range(1, order + 1)] for x in self._args]
        moving = [_is_of(self._trace, x) and any(are_nonzero(terms)) for x, terms in zip(self._args, series)]
        given = [terms if some else None for terms, some in zip(series, moving)]
        outs, out_series = self._rule(self._values(), given, order)
        terms = [_zeros(y, order) if ts is None else ts for y, ts in zip(outs, out_series)]
        return [outs, *[[ts[k] for ts in terms] for k in range(order)]]


def flags_of(series: Sequence[Coefficients | None]) -> tuple[bool, ...]:
    """Flag the operands that have Taylor coefficients."""
    return tuple([terms is not None for terms in series])


def flat_terms(series: Sequence[Coefficients | None]) -> list[Any]:
    """List the coefficients of all operands that have some, operand by operand, as arrays."""
    return [instantiate(t) for terms in where_true(flags_of(series), series) for t in terms]


def with_series(flat: Sequence[Any], moving: Sequence[bool], order: int) -> tuple[Any, Any]:
    """Split the results of a `jet_jaxpr` program: primal results, and the coefficients of each (None if constant)."""
    n = len(moving)
    found = iter(flat[n:])
    return list(flat[:n]), [[next(found) for _ in range(order)] if some else None for some in moving]
