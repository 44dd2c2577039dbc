"""Errors as values (`checkify`): a program also returns its first error, carried through calls, branches and loops.

The error state is a code, 0 without an error and else the number of the place in the program where the first error
occurred, with the values in its message: an index with its axis and size, and the values of every user check. A program
is interpreted equation by equation; bodies take the state as their first operands and return it as their first results.
Of functions with custom derivatives the function is checked, and the rule kept. Left out: bodies of linear solves and
reductions.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tapeless.interpreters.analysis.cost import prices
from tapeless.interpreters.rules.custom import differentiated_closure
from tapeless.interpreters.user_checks import UserCheck
from tapeless.interpreters.zero import Zero, zeros_of
from tapeless.tracer import dtypes, passes, source
from tapeless.tracer import numpy as tnp
from tapeless.tracer.bodies import CARRY, CONST, VALUE, Bodies, Body, apply_with_bodies, bodies_of, taking_first
from tapeless.tracer.core import Primitive
from tapeless.tracer.flags import split_list
from tapeless.tracer.jaxpr import Equation, Jaxpr, Literal, Var, subjaxprs
from tapeless.tracer.primitives import call, callback, custom
from tapeless.tracer.primitives import control_flow as c
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives import indexing as i
from tapeless.tracer.primitives.shape import broadcast_in_dim_p, concatenate_p, reshape_p
from tapeless.tracer.rules import Rules
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import ShapedArray, aval_of, holds_keys

Values = Sequence[Any]
_KEEPING_INDICES: Final = (reshape_p, broadcast_in_dim_p, e.convert_element_type_p)
State = list[Any]  # code: int32[]; index, axis, size: int64[3]; the values of the checks


@dataclass(frozen=True, eq=False)
class ErrorPlace:
    """A place in the program where an error can occur: its kind, its message, and the slice of the state it reads."""

    kind: str  # "user", "nan", "div" or "index"
    message: Callable[[Values], str]  # of state[values]
    values: slice


class ErrorValues:
    """The interpreter that carries an error state through a program. Error code k + 1 stands for `places[k]`.

    kinds: of the errors to detect, as in `ErrorPlace`.
    """

    def __init__(self, jaxpr: Jaxpr, kinds: frozenset[str]) -> None:
        self.kinds: Final = kinds
        self.places: Final = list[ErrorPlace]()
        self._codes: dict[Any, int] = {}
        self._slots: dict[int, slice] = {}
        self._values: list[ShapedArray] = []
        self._made: dict[Var, Equation] = {}
        for eqn in _checks(jaxpr, set()) if "user" in kinds else ():
            types = [aval_of(x) for x in eqn.params["callback"].first(tnp, [_zeros(v.aval) for v in eqn.invars])[1:]]
            at = 2 + len(self._values)
            self._slots[id(eqn)] = slice(at, at + len(types))
            self._values += [aval.strong() for aval in types]

    def begin(self) -> State:
        """Return the state without an error: code 0, and zeros for all values."""
        return [tnp.zeros((), np.int32), tnp.zeros(3, np.int64), *map(_zeros, self._values)]

    def run(self, jaxpr: Jaxpr, state: State, args: Values) -> tuple[State, list[Any]]:
        """Evaluate a program on `args`, detecting errors; return the state after it, and its results."""
        env: dict[Var, Any] = dict(zip(jaxpr.invars, args, strict=True))
        self._made.update({v: eqn for eqn in jaxpr.eqns for v in eqn.outvars})

        def read(v: Any) -> Any:
            return env[v] if type(v) is Var else v.value

        for eqn in jaxpr.eqns:
            given = [read(v) for v in eqn.invars]
            state, outs = source.at(eqn.source, self._apply, eqn, state, given)
            env.update(zip(eqn.outvars, outs, strict=True))
        return state, [read(v) for v in jaxpr.outvars]

    def program(self, jaxpr: Jaxpr) -> Jaxpr:
        """Stage a program with error detection: `state, arguments -> state, results`."""
        n = 2 + len(self._values)
        avals = [aval_of(x) for x in self.begin()]

        def flat(*xs: Any) -> list[Any]:
            state, outs = self.run(jaxpr, list(xs[:n]), xs[n:])
            return [*state, *outs]

        return _written(flat, [*avals, *jaxpr.in_avals], jaxpr)

    def called(self, state: State, outs: Values) -> tuple[State, list[Any]]:
        """Split the results of a staged `program` into the state after it and the results of the original."""
        return list(outs[: len(state)]), list(outs[len(state) :])

    def _apply(self, eqn: Equation, state: State, args: Values) -> tuple[State, Values]:
        if eqn.primitive is callback.debug_callback_p and isinstance(eqn.params["callback"], UserCheck):
            return self._checked(eqn, state, args), ()
        if eqn.primitive.carries_programs and self._concern(subjaxprs(eqn.params)):
            rule, bodies = rules.get(eqn.primitive), bodies_of(eqn)
            if rule is not None:
                return rule(self, state, args, **eqn.params)
            if bodies is not None and not bodies.fixed:
                return _with_state(self, eqn, bodies, state, args)
        before = self._before(eqn, state, args)
        outs = eqn.primitive.apply(*args, **eqn.params)
        return self._after(eqn, before, outs), outs

    def _concern(self, programs: Iterable[Jaxpr]) -> bool:
        """Tell whether there is an error to detect in programs."""
        return bool(self.kinds - {"user"}) or any(id(eqn) in self._slots for p in programs for eqn in _checks(p, set()))

    def _checked(self, eqn: Equation, state: State, args: Values) -> State:
        check = eqn.params["callback"]
        if "user" not in self.kinds:
            return state
        condition, *values = check.first(tnp, args)
        return self._failing(
            eqn, "user", tnp.logical_not(condition), state, check.message, self._slots[id(eqn)], values
        )

    def _before(self, eqn: Equation, state: State, args: Values) -> State:
        if eqn.primitive in (e.div_p, e.rem_p) and "div" in self.kinds:
            zero = tnp.any(tnp.equal(args[1], 0))
            state = self._failing(eqn, "div", zero, state, lambda _: "division by zero")
        if eqn.primitive in index_rows and "index" in self.kinds:
            starts, most, axes = index_rows[eqn.primitive](*args, **eqn.params)
            if starts.size:
                state = self._indexed(eqn, state, tnp.asarray(starts).astype(np.int64), most, axes, aval_of(args[0]))
        return state

    def _indexed(
        self, eqn: Equation, state: State, starts: Any, most: Sequence[int], axes: Sequence[int], of: ShapedArray
    ) -> State:
        """Record an error if an index, along the last axis of `starts`, is less than 0 or greater than `most`.

        axes: the axis of the array `of` that each index is for. An index that was normalized by adding the axis size
        is reported as the user gave it.
        """
        outside = tnp.ravel((starts < 0) | (starts > tnp.asarray(np.array(most, np.int64))))
        place = tnp.argmax(outside)
        which = place % len(axes)
        axis = tnp.asarray(np.array(axes, np.int64))[which]
        size = tnp.asarray(np.array(of.shape, np.int64))[axis]
        index = tnp.ravel(starts)[place]
        from_end = tnp.asarray(np.array(self._from_end(eqn, [of.shape[a] for a in axes])))[which]
        values = [tnp.stack([tnp.where((index < 0) & from_end, index - size, index), axis, size])]

        def message(found: Values) -> str:
            index, axis, size = map(int, found[0])
            return (
                f"out-of-bounds indexing for array of shape {of.shape}: index {index} is out of bounds for axis {axis} "
                f"with size {size}. "
            )

        return self._failing(eqn, "index", tnp.any(outside), state, message, slice(1, 2), values)

    def _from_end(self, eqn: Equation, sizes: Sequence[int]) -> list[bool]:
        """Flag the indices of an equation, for axes of `sizes`, to which the size is added where they are negative."""
        n = len(sizes)
        given = eqn.invars[-n:] if eqn.primitive in (i.dynamic_slice_p, i.dynamic_update_slice_p) else eqn.invars[1:2]
        joined = self._maker(given[0])
        if joined is not None and joined.primitive is concatenate_p and len(given) == 1:
            given = joined.invars
        return list(map(self._is_from_end, given, sizes)) if len(given) == n else [False] * n

    def _is_from_end(self, x: Any, size: int) -> bool:
        """Tell whether x is `where(i < 0, i + size, i)`."""
        eqn = self._maker(x)
        while eqn is not None and eqn.primitive in _KEEPING_INDICES:
            eqn = self._maker(eqn.invars[0])
        if eqn is None or eqn.primitive is not e.select_n_p:
            return False
        negative, index, moved = eqn.invars
        return _applies(self._maker(negative), e.lt_p, index, 0) and _applies(self._maker(moved), e.add_p, index, size)

    def _maker(self, x: Any) -> Equation | None:
        return self._made.get(x) if type(x) is Var else None

    def _after(self, eqn: Equation, state: State, outs: Values) -> State:
        price = prices.get(eqn.primitive)
        if "nan" not in self.kinds or (price is not None and price.moves):
            return state
        numbers = [y for y in outs if not holds_keys(aval_of(y)) and dtypes.is_inexact(aval_of(y).dtype)]
        for y in numbers:
            text = f"nan generated by primitive: {eqn.primitive}."
            state = self._failing(eqn, "nan", tnp.any(tnp.isnan(y)), state, lambda _, text=text: text)
        return state

    def _failing(
        self,
        eqn: Equation,
        kind: str,
        failed: Any,
        state: State,
        message: Callable[[Values], str],
        at: slice = slice(0, 0),
        values: Values = (),
    ) -> State:
        """Record an error in the state if `failed` (a scalar) holds and no error came before; `values` go to `at`."""
        key = id(eqn), kind
        if key not in self._codes:
            self.places.append(ErrorPlace(kind, _with_source(message, eqn), at))
            self._codes[key] = len(self.places)
        first = failed & (state[0] == 0)
        after = list(state)
        after[0] = tnp.where(first, np.int32(self._codes[key]), state[0]).astype(np.int32)
        after[at] = [
            tnp.where(first, e.stop_gradient(tnp.asarray(x)), y).astype(y.dtype) for x, y in zip(values, state[at])
        ]
        return after


def _applies(eqn: Equation | None, primitive: Primitive, x: Any, number: int) -> bool:
    """Tell whether an equation applies `primitive` to x and `number`."""
    if eqn is None or eqn.primitive is not primitive or eqn.invars[0] is not x:
        return False
    return type(eqn.invars[1]) is Literal and eqn.invars[1].value == number


def _with_source(message: Callable[[Values], str], eqn: Equation) -> Callable[[Values], str]:
    where = f"\n  It happened at {eqn.source.describe()}." if eqn.source else ""
    return lambda values: message(values) + where


def _zeros(aval: ShapedArray) -> Any:
    return tnp.zeros(aval.shape, aval.dtype)


def _checks(jaxpr: Jaxpr, seen: set[int]) -> list[Equation]:
    """List the equations of user checks in a program and its bodies; those in `seen` are left out, new ones added."""
    found = []
    for eqn in jaxpr.eqns:
        if eqn.primitive is callback.debug_callback_p and isinstance(eqn.params["callback"], UserCheck):
            found += [] if id(eqn) in seen else [eqn]
            seen.add(id(eqn))
        for inner in subjaxprs(eqn.params):
            found += _checks(inner, seen)
    return found


# ---- equations with bodies -----------------------------------------------------------------------------------

rules: Final = Rules(
    "error values",
    "rule(interpreter, state, args, **params) -> state, results: the programs inside take and give the state",
    absent="its bodies take and give the state, unless a rule takes their operands, too; then only errors in its "
    "results are detected",
)


def _with_state(values: ErrorValues, eqn: Equation, bodies: Bodies, state: State, args: Values) -> Any:
    """Apply the primitive of an equation to bodies that take and give the state first; a loop carries it."""
    (operand, result), n = (CARRY, CARRY) if bodies.loops else (CONST, VALUE), len(state)
    first, after = [(len(args) + k, operand) for k in range(n)], list[Body]()
    for body in bodies.each:
        taking = taking_first(body, values.program(body.jaxpr), first)
        results = (*range(n), *[n + at for at in body.results])
        after.append(taking._replace(outs=(*[result] * n, *body.outs), results=results))
    return values.called(state, apply_with_bodies(eqn.primitive, eqn.params, after, [*args, *state]))


def _while(
    values: ErrorValues,
    state: State,
    args: Values,
    *,
    condition: Jaxpr,
    body: Jaxpr,
    n_condition: int,
    n_body: int,
    saving: c.Saving = c.BY_DEFAULT,
) -> Any:
    """Detect errors in a `while` loop; in its condition, before the loop and after every step."""
    of_test, consts, carry = split_list(args, n_condition, n_body)
    n = len(state)
    types = [aval_of(x) for x in state]

    def step(*xs: Any) -> list[Any]:
        tests, others, before, given = split_list(xs, n_condition, n_body, n)
        after, outs = values.run(body, list(before), [*others, *given])
        return [*values.run(condition, after, [*tests, *outs])[0], *outs]

    def test(*xs: Any) -> list[Any]:
        tests, before, given = split_list(xs, n_condition, n)
        return values.run(condition, list(before), [*tests, *given])[1]

    carried, of_condition = [*types, *body.in_avals[n_body:]], condition.in_avals[:n_condition]
    program = _written(step, [*of_condition, *body.in_avals[:n_body], *carried], body)
    state, _ = values.run(condition, state, [*of_test, *carry])
    both = of_test, [*of_test, *consts]
    looped = c.while_loop(_written(test, [*of_condition, *carried], condition), program, both, [*state, *carry], saving)
    return values.called(state, looped)


def _written(f: Callable[..., Any], avals: Sequence[ShapedArray], function: Any) -> Jaxpr:
    program, consts = trace_to_jaxpr(f, avals, what="checkify", function=function)
    return passes.with_literals(program, consts)


class _Checked:
    """A custom_jvp or custom_vjp function with error detection: constants, arguments, state -> state, results.

    Its derivative is the user's rule; the tangents of the state are zero.
    """

    def __init__(self, kind: Primitive, values: ErrorValues, whole: Any, jaxpr: Jaxpr, n_consts: int, n: int) -> None:
        self._kind, self._custom, self._n_consts, self._n = kind, whole, n_consts, n
        program = values.program(jaxpr)
        ins = [*range(n, len(program.invars)), *range(n)]
        self.program = passes.rearrange_program(program, ins, range(len(program.outvars)))
        self.__name__ = whole.__name__

    def function(self, *args: Any) -> Any:
        """Apply the function with error detection."""
        return call.jit(self.program, *args)

    def rule(self, primals: Values, tangents: Values) -> tuple[list[Any], list[Any]]:
        """Return values and tangents by the user's rule, after the state that the function computes and zeros for it.

        Raises: TypeError if a constant has a tangent.
        """
        n, k = self._n_consts, len(primals) - self._n
        for x, t in zip(primals[:n], tangents[:n]):
            if type(t) is not Zero:
                raise differentiated_closure(self._kind, self.__name__, x)
        outs, pushed = self._custom.rule(primals[n:k], tangents[n:k])
        state = self.function(*primals)[: self._n]
        return [*state, *outs], [*zeros_of(state), *pushed]


def _custom(
    primitive: Primitive, values: ErrorValues, state: State, args: Values, *, custom: Any, jaxpr: Jaxpr, n_consts: int
) -> Any:
    checked = _Checked(primitive, values, custom, jaxpr, n_consts, len(state))
    outs = primitive.bind(*args, *state, custom=checked, jaxpr=checked.program, n_consts=0)
    return values.called(state, outs)


rules[c.while_p] = _while
rules[custom.custom_jvp_p] = lambda *args, **params: _custom(custom.custom_jvp_p, *args, **params)
rules[custom.custom_vjp_p] = lambda *args, **params: _custom(custom.custom_vjp_p, *args, **params)

# ---- indices -------------------------------------------------------------------------------------------------

index_rows: Final = Rules(
    "index bounds",
    "row(*args, **params) -> indices [.., k], the greatest allowed of each of the k, the axes that they are of",
    absent="it does not read or write at computed positions",
)


def _of_slice(x: Any, *starts: Any, slice_sizes: Sequence[int]) -> Any:
    shape = aval_of(x).shape
    together = tnp.stack([tnp.asarray(s).astype(np.int64) for s in starts]) if starts else tnp.zeros(0, np.int64)
    return together, [n - k for n, k in zip(shape, slice_sizes)], range(len(shape))


def _of_update(x: Any, update: Any, *starts: Any) -> Any:
    return _of_slice(x, *starts, slice_sizes=aval_of(update).shape)


def _of_gather(x: Any, starts: Any, *, dimension_numbers: Any, slice_sizes: Sequence[int], **_: Any) -> Any:
    axes, shape = dimension_numbers.start_index_map, aval_of(x).shape
    return starts, [shape[a] - slice_sizes[a] for a in axes], axes


def _of_scatter(x: Any, starts: Any, updates: Any, *, dimension_numbers: Any, **_: Any) -> Any:
    d, shape = dimension_numbers, aval_of(x).shape
    windows = iter([aval_of(updates).shape[a] for a in d.update_window_dims])
    single = {*d.inserted_window_dims, *d.operand_batching_dims}
    sizes = [1 if a in single else next(windows) for a in range(len(shape))]
    axes = d.scatter_dims_to_operand_dims
    return starts, [shape[a] - sizes[a] for a in axes], axes


index_rows[i.dynamic_slice_p] = _of_slice
index_rows[i.dynamic_update_slice_p] = _of_update
index_rows[i.gather_p] = _of_gather
for _scatter in (i.scatter_p, i.scatter_add_p, i.scatter_mul_p, i.scatter_min_p, i.scatter_max_p):
    index_rows[_scatter] = _of_scatter
