"""Bodies: the operands and results of the programs of an equation, and the order in which they run.

Each primitive that carries programs has one description, beside it. Of every input of a body it says whether this is a
constant, a carry or the element of a sequence, and of which operand; of every result whether it is a value, a carry or
a stacked element, and of which result of the equation. Analyses and passes go by descriptions, so that a new
primitive needs no entries in their tables. `ForwardAnalysis` and `BackwardAnalysis` go through an equation; an analysis
keeps only its lattice. Descriptions of the same kind: MLIR's RegionBranchOpInterface and LoopLikeOpInterface.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from enum import StrEnum
from functools import lru_cache, reduce
from typing import Any, Final, Generic, NamedTuple, TypeVar

from tapeless.tracer import passes
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Var
from tapeless.tracer.rules import Table

T = TypeVar("T")


class Role(StrEnum):  # strings are hashed fast, and layouts are looked up by roles
    """The part that an input or a result of a body plays."""

    CONST = "constant"  # an input: the operand itself, in every run
    CARRY = "carry"  # an input: what the run before gave, at first the operand; a result: what the next run takes
    EACH = "element"  # an input: element k of the operand's axis 0, in step k; a result: stacked along axis 0
    VALUE = "value"  # a result: the equation's
    TEST = "test"  # a result: whether another run follows; no result of the equation


CONST, CARRY, EACH, VALUE, TEST = Role


class Body(NamedTuple):
    """A program of an equation.

    ins: the role of each input. operands: the position of the operand that each input is, begins as or is an element
    of. outs, results: the same of its results and the equation's; the position of a test is -1. The k-th carry among
    the inputs takes the k-th carry among the results.
    """

    jaxpr: Jaxpr
    ins: tuple[Role, ...]
    operands: tuple[int, ...]
    outs: tuple[Role, ...]
    results: tuple[int, ...]

    def inputs(self, *roles: Role) -> tuple[int, ...]:
        """List the numbers of the inputs of these roles."""
        return _of_roles(self.ins, roles)

    def outputs(self, *roles: Role) -> tuple[int, ...]:
        """List the numbers of the results of these roles."""
        return _of_roles(self.outs, roles)

    def carries(self) -> Iterator[tuple[int, int]]:
        """Pair each carry's initial value, an operand, with its final value, a result."""
        return zip([self.operands[k] for k in self.inputs(CARRY)], [self.results[k] for k in self.outputs(CARRY)])

    def stacked(self) -> list[int]:
        """List the positions of the equation's results that stack what steps give."""
        return [self.results[k] for k in self.outputs(EACH)]

    def number_of(self, role: Role) -> int:
        """Count its inputs of a role."""
        return self.ins.count(role)


@lru_cache(maxsize=4096)
def _of_roles(given: tuple[Role, ...], roles: tuple[Role, ...]) -> tuple[int, ...]:
    return tuple([k for k, role in enumerate(given) if role in roles])


class Bodies(NamedTuple):
    """The programs of an equation.

    each: the bodies; in a step all of them run in this order, or if there is a selector only one. steps: the steps, in
    running order, by the elements that they take; None if their number is not known. selector: the position of the
    operand that chooses one body; no body takes it. fixed: whether a user's rule takes the operands, too, so that they
    stay. assumed: the number of steps for counts of operations if it is not known, at least 1.
    """

    each: tuple[Body, ...]
    steps: range | None = range(1)
    selector: int | None = None
    fixed: bool = False
    assumed: int = 1

    def operands(self, role: Role) -> list[int]:
        """List the positions of the operands that play a role in some body."""
        found = [body.operands[k] for body in self.each for k in _of_roles(body.ins, (role,))]
        return list(dict.fromkeys(found)) if len(self.each) > 1 else found

    @property
    def loops(self) -> bool:
        """True if bodies may run several times or not at all, or take elements, as those of a loop of one step do."""
        if self.steps is None or len(self.steps) != 1:
            return True
        return any(CARRY in body.ins or EACH in body.ins or EACH in body.outs for body in self.each)

    @property
    def loop_body(self) -> Body | None:
        """The body of a loop that has no other one, and a known number of steps; else None."""
        return self.each[0] if self.loops and self.steps is not None and len(self.each) == 1 else None


class Description(NamedTuple):
    """Description of the programs of a primitive.

    describe: its params -> the bodies. with_bodies: its params, new bodies, whose inputs are in the order of the
    operands -> params.
    """

    describe: Callable[..., Bodies]
    with_bodies: Callable[[dict[str, Any], Sequence[Body]], dict[str, Any]]


descriptions: Final[Table[Description]] = Table(
    "bodies",
    "Description(params -> its bodies, params and new bodies -> params)",
    absent="its programs are the business of its rules alone, or it carries none",
)


def bodies_of(eqn: Equation) -> Bodies | None:
    """Describe the programs of an equation; None if its primitive does not. Kept with the equation."""
    if not eqn.primitive.carries_programs:
        return None
    try:
        return eqn.described
    except AttributeError:
        eqn.described = describe_bodies(eqn.primitive, eqn.params)
        return eqn.described


def describe_bodies(primitive: Primitive, params: dict[str, Any]) -> Bodies | None:
    """Describe the programs among the params of a primitive; None if it does not."""
    found = descriptions.get(primitive) if primitive.carries_programs else None
    return None if found is None else found.describe(**params)


Groups = Sequence[tuple[Role, int]]  # roles, and how many have each


def in_groups(jaxpr: Jaxpr, inputs: Groups, results: Groups, first: int = 0) -> Body:
    """Describe a body whose inputs and results are in groups of one role each.

    Args:
      first: the position of the operand that its first input is; the others follow.
    """
    return Body(jaxpr, *_layout(tuple(inputs), tuple(results), first))


@lru_cache(maxsize=4096)
def _layout(inputs: Groups, results: Groups, first: int) -> tuple[Any, ...]:
    ins, outs = [sum([(role,) * n for role, n in groups], ()) for groups in (inputs, results)]
    return ins, tuple(range(first, first + len(ins))), outs, tuple(range(len(outs)))


def rebuild_equation(
    eqn: Equation, bodies: Sequence[Body], operands: Sequence[Atom], outvars: Sequence[Var] | None = None
) -> Equation:
    """Return the equation with other bodies, operands and, unless None, results, in the order that its primitive takes.

    A body need not take an operand that it does not read, if another one does.

    Args:
      bodies: as many as before; their `operands` and `results` are positions among the new ones.
    """
    before = bodies_of(eqn)
    found = _arranged(eqn.primitive, eqn.params, bodies, None if before is None else before.selector)
    given = eqn.outvars if outvars is None else outvars
    invars = [operands[at] for at in found.operands]
    return eqn.replace(params=found.params, invars=invars, outvars=[given[at] for at in found.results])


def with_programs(eqn: Equation, bodies: Bodies, programs: Sequence[Jaxpr]) -> dict[str, Any]:
    """Return the params of an equation with these programs in its bodies, which take and give what the old ones do."""
    after = [body._replace(jaxpr=program) for body, program in zip(bodies.each, programs, strict=True)]
    return descriptions[eqn.primitive].with_bodies(eqn.params, after)


def apply_with_bodies(
    primitive: Primitive, params: dict[str, Any], bodies: Sequence[Body], operands: Sequence[Any]
) -> list[Any]:
    """Apply a primitive to values, with other bodies than in `params`; return the results. See `rebuild_equation`."""
    before = describe_bodies(primitive, params)
    found = _arranged(primitive, params, bodies, None if before is None else before.selector)
    outs = primitive.apply(*[operands[at] for at in found.operands], **found.params)
    results = dict(zip(found.results, outs, strict=True))
    return [results[at] for at in range(len(results))]


class _Arranged(NamedTuple):
    """The params of a primitive with other bodies, and the positions of operands and results in the order it takes."""

    params: dict[str, Any]
    operands: list[int]
    results: list[int]


def _arranged(primitive: Primitive, params: dict[str, Any], bodies: Sequence[Body], selector: int | None) -> _Arranged:
    every = bodies
    if len(bodies) > 1:
        common = Bodies(tuple(bodies)).operands(CARRY if selector is None else CONST)
        every = [_taking_all(body, common, bodies) for body in bodies]
    found = _arrangement(tuple([body[1:] for body in every]), selector)
    after = [
        Body(body.jaxpr if order is None else passes.rearrange_program(body.jaxpr, *order), *layout)
        for body, order, layout in zip(every, found.orders, found.layouts)
    ]
    return _Arranged(descriptions[primitive].with_bodies(params, after), found.operands, found.results)


def _taking_all(body: Body, common: Sequence[int], bodies: Sequence[Body]) -> Body:
    """Describe a body that takes all `common` operands, as unused inputs if only others of `bodies` take them."""
    missing = [at for at in common if at not in body.operands]
    if not missing:
        return body
    types = {at: (x.jaxpr.in_avals[k], x.ins[k]) for x in bodies for k, at in enumerate(x.operands)}
    ins = [*range(len(body.ins)), *[types[at][0] for at in missing]]
    jaxpr = passes.rearrange_program(body.jaxpr, ins, range(len(body.outs)))
    roles = (*body.ins, *[types[at][1] for at in missing])
    return body._replace(jaxpr=jaxpr, ins=roles, operands=(*body.operands, *missing))


Layout = tuple[tuple[Role, ...], tuple[int, ...], tuple[Role, ...], tuple[int, ...]]  # a `Body` without its program


class _Arrangement(NamedTuple):
    """The order of an equation's operands and results, by position, for bodies of some layouts.

    layouts: of the bodies after it. orders: of the inputs and results of each body; None if they stay.
    """

    operands: list[int]
    results: list[int]
    layouts: list[Layout]
    orders: list[tuple[list[int], list[int]] | None]


@lru_cache(maxsize=4096)
def _arrangement(layouts: tuple[Layout, ...], selector: int | None) -> _Arrangement:
    """Order operands: selector, constants of bodies in turn, carries, sequences; results: values, carries, stacks."""
    giving = [layout for layout in layouts if TEST not in layout[2]]  # whose carries are in the order of results
    by_role = (layouts, CONST), (giving, CARRY), (layouts, EACH)
    taken = [ins[1][k] for some, role in by_role for ins in some for k in _of_roles(ins[0], (role,))]
    given = [outs[3][k] for role in (VALUE, CARRY, EACH) for outs in layouts for k in _of_roles(outs[2], (role,))]
    operands = list(dict.fromkeys(taken if selector is None else [selector, *taken]))
    results = list(dict.fromkeys(given))
    place, place_out = [{old: new for new, old in enumerate(some)} for some in (operands, results)]
    after, orders = list[Layout](), list[tuple[list[int], list[int]] | None]()
    for roles, at, out_roles, out_at in layouts:
        ins = sorted(range(len(at)), key=lambda k, at=at: place[at[k]])
        outs = sorted(range(len(out_at)), key=lambda k, out_at=out_at: place_out.get(out_at[k], -1))
        after.append((
            tuple([roles[k] for k in ins]),
            tuple([place[at[k]] for k in ins]),
            tuple([out_roles[k] for k in outs]),
            tuple([place_out.get(out_at[k], -1) for k in outs]),
        ))  # fmt: skip
        orders.append(None if ins == [*range(len(ins))] and outs == [*range(len(outs))] else (ins, outs))
    return _Arrangement(operands, results, after, orders)


def without(body: Body, operands: Collection[int], results: Collection[int] = ()) -> Body:
    """Describe a body without its inputs of the operands, and its results for the results, at these positions."""
    ins = [k for k, at in enumerate(body.operands) if at not in operands]
    outs = [k for k, at in enumerate(body.results) if at not in results]
    if len(ins) == len(body.ins) and len(outs) == len(body.outs):
        return body
    return Body(
        passes.rearrange_program(body.jaxpr, ins, outs),
        tuple([body.ins[k] for k in ins]),
        tuple([body.operands[k] for k in ins]),
        tuple([body.outs[k] for k in outs]),
        tuple([body.results[k] for k in outs]),
    )


def taking_first(body: Body, jaxpr: Jaxpr, new: Sequence[tuple[int, Role]]) -> Body:
    """Describe the body after `jaxpr` took its place, which takes new operands, at these positions, first."""
    roles, positions = tuple([role for _, role in new]), tuple([at for at, _ in new])
    return body._replace(jaxpr=jaxpr, ins=(*roles, *body.ins), operands=(*positions, *body.operands))


# ---- drivers -------------------------------------------------------------------------------------------------


class ForwardAnalysis(Generic[T]):
    """A forward analysis: abstract values of results from those of operands. Subclasses say what the values are.

    joins: whether steps that are not followed one by one are joined; they are left out if not.
    """

    joins = True

    def run(self, eqn: Equation, body: Body, given: Sequence[T]) -> Sequence[T]:
        """Return the values of a body's results from those of its inputs."""
        raise NotImplementedError

    def join(self, eqn: Equation, x: T, y: T) -> T:
        """Join two values of one variable."""
        raise NotImplementedError

    def key(self, x: T) -> Any:
        """Return what is compared to tell whether a carry has stopped growing."""
        return x

    def element(self, x: T, k: int | None) -> T:
        """Return the value of element k of a sequence; of any element if k is None."""
        return x

    def stacked(self, v: Var, elements: Sequence[T]) -> T:
        """Return the value of a stacked result: of the elements by position, or of one that stands for all."""
        return elements[0]

    def carried(self, x: T) -> T:
        """Return the value that a step takes as carry when the step before gave `x`."""
        return x

    def widened(self, x: T, rounds: int) -> T:
        """Return a value of a carry that has grown in so many rounds, so that it stops growing."""
        return x

    def selected(self, x: T) -> int | None:
        """Return the number that an index has; None if it is not known."""
        return None

    def peeled(self, eqn: Equation, steps: range | None) -> int | None:
        """Return how many steps to follow one by one, before one that stands for all others; None for none at all."""
        return None

    def count(self, eqn: Equation, body: Body, given: Sequence[T], times: int) -> None:
        """Note that a body runs so many times with these inputs."""

    def test(self, eqn: Equation, body: Body, value: T) -> None:
        """Note the value by which a loop goes on."""

    def alternatives(self, eqn: Equation, runs: Sequence[Callable[[], Sequence[T]]]) -> Sequence[Sequence[T]]:
        """Call functions that each run one of several alternative bodies; return their values."""
        return [run() for run in runs]

    def through(self, eqn: Equation, bodies: Bodies, given: Sequence[T]) -> list[T]:
        """Return the values of an equation's results from those of its operands."""
        if bodies.loops:
            return _LoopAnalysis(self, eqn, bodies, given).results()
        some = bodies.each
        chosen = None if bodies.selector is None else self.selected(given[bodies.selector])
        if chosen is not None:
            some = (some[min(max(chosen, 0), len(some) - 1)],)
        runs = [lambda body=body: self._counted(eqn, body, [given[at] for at in body.operands]) for body in some]
        found = [runs[0]()] if len(runs) == 1 else self.alternatives(eqn, runs)
        return [reduce(lambda x, y: self.join(eqn, x, y), values) for values in zip(*found, strict=True)]

    def _counted(self, eqn: Equation, body: Body, given: Sequence[T], times: int = 1) -> Sequence[T]:
        self.count(eqn, body, given, times)
        return self.run(eqn, body, given)


class _LoopAnalysis(Generic[T]):
    """The course of a forward analysis through one loop."""

    def __init__(self, analysis: ForwardAnalysis[T], eqn: Equation, bodies: Bodies, given: Sequence[T]) -> None:
        self._analysis, self._eqn, self._bodies, self._given = analysis, eqn, bodies, given

    def results(self) -> list[T]:
        """Follow the first steps one by one, and iterate one that stands for the others to a fixed point."""
        carry, rows, alone = self._first_steps()
        steps = self._bodies.steps
        if alone is None or (self._analysis.joins and steps is not None and alone < len(steps)):
            carry, rest = self._fixed_point(
                carry, self._bodies.assumed if steps is None else 1 if alone is None else len(steps) - alone
            )
            rows = [rest] if alone is None or steps is None else [rows.get(k, rest) for k in range(len(steps))]
        else:
            self._last_test(carry)
            rows = [rows[k] for k in sorted(rows)]
        return self._of_equation(carry, rows)

    def _first_steps(self) -> tuple[dict[int, T], Any, int | None]:
        steps = self._bodies.steps
        alone = self._analysis.peeled(self._eqn, steps)
        carry = {at: self._analysis.carried(self._given[at]) for at in self._bodies.operands(CARRY)}
        rows: dict[int, list[T]] = {}
        for k in range(alone or 0) if steps is None else steps[: alone or 0]:
            carry, rows[k] = self._step(carry, k, 1)
        return carry, rows, alone

    def _fixed_point(self, carry: dict[int, T], times: int) -> tuple[dict[int, T], list[T]]:
        analysis, rounds = self._analysis, 0
        while True:
            after, rest = self._step(carry, None, 0)
            grown = {at: analysis.join(self._eqn, x, after[at]) for at, x in carry.items()}
            if all(analysis.key(x) == analysis.key(grown[at]) for at, x in carry.items()):
                self._step(carry, None, times)
                return carry, rest
            rounds += 1
            carry = {at: analysis.widened(x, rounds) for at, x in grown.items()}

    def _step(self, carry: dict[int, T], k: int | None, times: int) -> tuple[dict[int, T], list[T]]:
        """Run the bodies once; return the carry after it and the elements of stacked results. Count it as `times`."""
        after, row = carry, list[T]()
        for body in self._bodies.each:
            given = [self._input(carry, role, at, k) for role, at in zip(body.ins, body.operands)]
            if times:
                self._analysis.count(self._eqn, body, given, times)
            outs = self._analysis.run(self._eqn, body, given)
            if TEST in body.outs:
                self._analysis.test(self._eqn, body, outs[body.outs.index(TEST)])
                continue
            places = [body.operands[i] for i in body.inputs(CARRY)]
            after = dict(zip(places, [self._analysis.carried(outs[i]) for i in body.outputs(CARRY)], strict=True))
            row = [outs[i] for i in body.outputs(EACH)]
        return after, row

    def _last_test(self, carry: dict[int, T]) -> None:
        for body in self._bodies.each:
            if TEST in body.outs:
                given = [self._input(carry, role, at, None) for role, at in zip(body.ins, body.operands)]
                self._analysis.run(self._eqn, body, given)

    def _input(self, carry: dict[int, T], role: Role, at: int, k: int | None) -> T:
        if role is CARRY:
            return carry[at]
        return self._analysis.element(self._given[at], k) if role is EACH else self._given[at]

    def _of_equation(self, carry: dict[int, T], rows: Sequence[Sequence[T]]) -> list[T]:
        body = next(body for body in self._bodies.each if TEST not in body.outs)
        found = {body.results[i]: carry[body.operands[k]] for i, k in zip(body.outputs(CARRY), body.inputs(CARRY))}
        for j, i in enumerate(body.outputs(EACH)):
            at = body.results[i]
            found[at] = self._analysis.stacked(self._eqn.outvars[at], [row[j] for row in rows])
        return [found[at] for at in range(len(found))]


class Demanded(NamedTuple):
    """The demands of each operand, a carry's in any step, and of the inputs of each body."""

    operands: list[Any]
    inputs: list[Sequence[Any]]


class BackwardAnalysis(Generic[T]):
    """A backward analysis: what is demanded of operands from what is of results. Subclasses say what a demand is.

    nothing: the demand of a value that nobody reads.
    """

    nothing: T

    def run(self, eqn: Equation, body: Body, demanded: Sequence[T]) -> Sequence[T]:
        """Return the demands of a body's inputs from those of its results."""
        raise NotImplementedError

    def join(self, x: T, y: T) -> T:
        """Join the demands of two readers."""
        raise NotImplementedError

    def test(self) -> T:
        """Return the demand of the value by which a loop goes on."""
        raise NotImplementedError

    def element(self, x: T) -> T:
        """Return the demand of each element, from that of a stacked result."""
        return x

    def stacked(self, x: T) -> T:
        """Return the demand of a sequence, from that of each element."""
        return x

    def through(self, eqn: Equation, bodies: Bodies, demanded: Sequence[T]) -> Demanded:
        """Return the demands of operands and of the bodies' inputs; carries are iterated to a fixed point."""
        carry = {at: demanded[out] for body in bodies.each for at, out in body.carries()}
        while True:
            inputs = [self.run(eqn, body, self._of_results(body, demanded, carry)) for body in bodies.each]
            grown = dict(carry)
            for body, found in zip(bodies.each, inputs):
                for k in body.inputs(CARRY):
                    grown[body.operands[k]] = self.join(grown[body.operands[k]], found[k])
            if grown == carry:
                return Demanded(self._of_operands(eqn, bodies, inputs, carry), inputs)
            carry = grown

    def _of_results(self, body: Body, demanded: Sequence[T], carry: dict[int, T]) -> list[T]:
        of_carry = iter([carry[body.operands[k]] for k in body.inputs(CARRY)])
        found = list[T]()
        for role, at in zip(body.outs, body.results):
            if role is CARRY:
                found.append(next(of_carry))
            elif role is TEST:
                found.append(self.test())
            else:
                found.append(self.element(demanded[at]) if role is EACH else demanded[at])
        return found

    def _of_operands(
        self, eqn: Equation, bodies: Bodies, inputs: Sequence[Sequence[T]], carry: dict[int, T]
    ) -> list[T]:
        found: list[T] = [self.nothing] * len(eqn.invars)
        for body, of_inputs in zip(bodies.each, inputs):
            for role, at, x in zip(body.ins, body.operands, of_inputs):
                found[at] = self.join(found[at], self.stacked(x) if role is EACH else x)
        return [carry.get(at, x) for at, x in enumerate(found)]
