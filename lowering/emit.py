"""Emission: print a jaxpr as the text of a StableHLO module, with the user's source lines.

Each distinct inner program is one function of the module, however often it is called.
"""

import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tapeless.lowering import column_sums, hlo, ordering, padded_windows, physical
from tapeless.lowering.hlo import Function, Value
from tapeless.lowering.xla_workarounds import in_place_loops
from tapeless.lowering.xla_workarounds.dataflow import ARGUMENTS, Dataflow
from tapeless.tracer import core, dtypes, linear_vars, name_stacks, source
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Literal, Var, map_carried, map_subjaxprs, subjaxprs
from tapeless.tracer.late_imports import LateModule
from tapeless.tracer.passes import with_literals
from tapeless.tracer.primitives.call import jit_p
from tapeless.tracer.primitives.checkpoint import checkpoint_p, materialize_p
from tapeless.tracer.primitives.contraction import dot_general_p
from tapeless.tracer.primitives.elementwise import convert_element_type
from tapeless.tracer.primitives.indexing import dynamic_update_slice_p
from tapeless.tracer.primitives.shape import concatenate_p
from tapeless.tracer.rules import Rules
from tapeless.tracer.source import Source
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import ShapedArray, aval_of
from tapeless.tracer.user_primitives import UserPrimitive, check_types

if TYPE_CHECKING:
    from tapeless.lowering import donation
    from tapeless.lowering.xla_workarounds import memories
else:
    donation = LateModule("tapeless.lowering.donation")
    memories = LateModule("tapeless.lowering.xla_workarounds.memories")  # for GPUs

passes: list[Callable[[Jaxpr], Jaxpr]] = []  # that a program runs through before it is written, see api/__init__.py
rules: Final = Rules(
    "emit",
    "rule(f: Function, out types, *operands: Value, **params) -> Values: its StableHLO",
    absent="it cannot be compiled",
)


class Emitted(NamedTuple):
    """The text of a module, and the functions on the host (callbacks) that it calls by number."""

    text: str
    callbacks: Sequence[Any]


def module(jaxpr: Jaxpr, donated: Sequence[int] = (), name: str = "jit", platform: str = "cpu") -> Emitted:
    """Emit a program as a module; its inputs are the arguments of `@main`.

    Args:
      donated: positions of inputs whose memory the results may take.
      platform: on CPU, loops read arrays before they overwrite them; see in_place_loops.py. On other platforms,
        results in other memories than the device's own are moved back; see `memories`.
    Raises: NotImplementedError if a primitive has no emit rule, or if branches are nested too deeply for XLA; TypeError
      if a dtype has no StableHLO name.
    """
    return write_module(prepare_program(jaxpr, name, platform), donated, name, platform)


def prepare_program(jaxpr: Jaxpr, name: str = "jit", platform: str = "cpu") -> Jaxpr:
    """Rewrite a program to the form that `write_module` takes, by all passes. Args, Raises: as in `module`."""
    nested = _height(jaxpr).branches
    if nested > MOST_NESTED_BRANCHES:
        raise NotImplementedError(
            f"{name}: branches (cond, switch) are nested {nested} deep, and XLA's compiler ends the process of "
            f"more than about {MOST_NESTED_BRANCHES}. Choose by a loop (while_loop), or by one switch."
        )
    jaxpr = physical.program(expand_primitives(jaxpr))
    for run in passes:
        jaxpr = run(jaxpr)
    if platform == "cpu":
        if dynamic_update_slice_p in jaxpr.primitives or jaxpr.programs:
            jaxpr = padded_windows.with_padded_windows(jaxpr)
        has_products = dot_general_p in jaxpr.primitives or jaxpr.programs
        return column_sums.with_products(jaxpr) if has_products else jaxpr
    if platform == "gpu":
        jaxpr = with_stored_concatenations(jaxpr)
    return memories.brought_back(jaxpr)


def write_module(jaxpr: Jaxpr, donated: Sequence[int] = (), name: str = "jit", platform: str = "cpu") -> Emitted:
    """Write a program from `prepare_program` as a module. Args, Raises: as in `module`."""
    writing = _Module(name, platform)
    taken = donation.match_donated(jaxpr.in_avals, jaxpr.out_avals, donated).taken if donated else _NOTHING
    return Emitted(writing.text(ordering.in_order(jaxpr), taken), writing.callbacks)


# Limit on the depth of nested calls in a module. XLA inlines calls by recursion: a depth of 200 ends the process
# (jaxlib 0.10.2), with or without JAX.
MOST_NESTED_CALLS = 64


# Limit on the depth of nested branches: 250 end the process, too.
MOST_NESTED_BRANCHES = 150


class _Height(NamedTuple):
    """The nesting depth of a program's bodies, itself included, and of its branches."""

    programs: int
    branches: int


@core.memoize_by_program
def _height(jaxpr: Jaxpr) -> _Height:
    """Compute the nesting depths of a program; remembered for as long as it lives."""
    programs = branches = 0
    for eqn in jaxpr.carrying:
        for inner in map(_height, subjaxprs(eqn.params)):
            programs = max(programs, inner.programs)
            branches = max(branches, inner.branches + ("branches" in eqn.own_params))
    return _Height(programs + 1, branches)


_NOTHING: Mapping[int, int | None] = MappingProxyType({})  # donated
# For a function that a loop's body calls: which of its arguments the loop overwrites. None for other functions.
Looping = tuple[bool, ...] | None


class _Module:
    """A module that is being written: the functions so far, and the source locations that they refer to."""

    def __init__(self, name: str, platform: str) -> None:
        self._platform, self._settles = platform, platform == "cpu"
        self._name = _plain(name)
        self._titles: dict[Any, str] = {}
        self._in_turn: set[Jaxpr] = set()  # programs with operations in turn, see hlo.py: written where they are called
        self._inlined: set[Jaxpr] = set()
        self.callbacks: list[Any] = []
        self._taken: set[str] = {"main"}
        self._texts: list[str] = []
        self._places: dict[str, str] = {}
        self._marks: dict[tuple[Source | None, str], str] = {}

    def text(self, jaxpr: Jaxpr, donated: Mapping[int, int | None]) -> str:
        self._inlined.update(_shared(jaxpr))
        main = self._function(jaxpr, "public @main", donated)
        places = [f"{alias} = loc({spot})" for spot, alias in self._places.items()]
        return "\n".join([f"module @{self._name} {{", main, *self._texts, "}", *places])

    def _function(
        self, jaxpr: Jaxpr, title: str, donated: Mapping[int, int | None] = _NOTHING, looping: Looping = None
    ) -> str:
        f = Function(self._call, self._location, self._inlined, self.callbacks, self._settles, self._platform, jaxpr)
        arguments = [Value(f"%arg{i}", v.aval) for i, v in enumerate(jaxpr.invars)]
        if looping is None:
            called = not title.startswith("public")
            f.owned.update([v.name for i, v in enumerate(arguments) if called or i in donated])
        else:
            f.looping = True
            f.overwritten.update([v.name for v, yes in zip(arguments, looping) if yes])
        if not title.startswith("public"):
            f.is_called_with(arguments)
        if self._settles and in_place_loops.overwrites(jaxpr):
            f.dataflow = _dataflow(arguments, called=not title.startswith("public"))
        results = lower(f, jaxpr, arguments)
        if f.last_in_turn:
            self._in_turn.add(jaxpr)
        given = {i: f" {donation.attribute(result)}" for i, result in donated.items()}
        head = ", ".join(f"{v.name}: {hlo.tensor(v.aval)}{given.get(i, '')}" for i, v in enumerate(arguments))
        types = ", ".join(hlo.tensor(v.aval) for v in results)
        end = f'    "func.return"({", ".join(v.name for v in results)}) : ({types}) -> ()'
        return "\n".join([f"  func.func {title}({head}) -> ({types}) {{", *f.lines, end, "  }"])

    def _call(self, f: Function, jaxpr: Jaxpr, operands: Sequence[Value]) -> Sequence[Value]:
        """Emit a call of an inner program's function, written at its first use; where calls nest deeply, inline it."""
        if _height(jaxpr).programs > MOST_NESTED_CALLS:
            return lower(f, jaxpr, operands)
        looping = tuple([v.name in f.overwritten for v in operands]) if f.looping else None
        key = jaxpr, looping
        title = self._titles.get(key)
        if title is None:
            title = self._titles[key] = self._distinct(jaxpr.name)
            text = self._function(jaxpr, f"private @{title}", looping=looping)
            if jaxpr not in self._in_turn:
                self._texts.append(text)
        if jaxpr in self._in_turn:
            return lower(f, jaxpr, operands)
        return f.ops("func.call", operands, jaxpr.out_avals, f"callee = @{title}")

    def _distinct(self, name: str) -> str:
        plain = title = _plain(name)
        n = 0
        while title in self._taken:
            n += 1
            title = f"{plain}_{n}"
        self._taken.add(title)
        return title

    def _location(self, source: Source | None, outer: str) -> str:
        found = self._marks.get((source, outer))
        if found is None:
            found = self._marks[source, outer] = self._mark(source, outer)
        return found

    def _mark(self, source: Source | None, outer: str) -> str:
        """Print the location attribute of an operation; `outer` is the name stack of the loop or branch around."""
        if source is None:
            return ""
        alias = self._alias(f'"{source.file}":{source.line}:0'.replace("\\", "/"))
        scope = name_stacks.format_stack(name_stacks.within(outer, name_stacks.inside(source.stack)))
        if scope:
            scope = scope.replace("\\", "/").replace('"', "'")
            alias = self._alias(f'"{scope}"({alias})')
        return f" loc({alias})"

    def _alias(self, spot: str) -> str:
        """Return the alias of a location; its definition is written after the functions."""
        alias = self._places.get(spot)
        if alias is None:
            alias = self._places[spot] = f"#loc{len(self._places)}"
        return alias


def _plain(name: str) -> str:
    """Replace the characters of a name that MLIR reads only in quotes, as a digit in front."""
    plain = "".join(c if c.isalnum() else "_" for c in name)
    return f"_{plain}" if plain[:1].isdigit() else plain


def _dataflow(arguments: Sequence[Value], called: bool) -> Dataflow:
    """Make the dataflow of a function, with its arguments: those of a called function may be the same array."""
    flow = Dataflow()
    if called:
        for v in arguments:
            if v.aval.size > 1:
                flow.add([v.name], "argument", [ARGUMENTS], view=True)
    return flow


def lower(f: Function, jaxpr: Jaxpr, arguments: Sequence[Value]) -> list[Value]:
    """Emit a program's equations into `f`, and return its results; also used for the bodies of loops and branches."""
    env, before, outer = dict(zip(jaxpr.invars, arguments)), f.source, f.outer
    f.enter()
    overwritten = _overwritten(f, jaxpr, arguments) if f.looping and f.settles else frozenset()
    if overwritten:
        _write_in_place(f, jaxpr, env, overwritten)
    else:
        for eqn in jaxpr.eqns:
            if eqn.source is not f.source:
                f.at(eqn.source)
            if not f.is_part:
                f.operation = eqn.primitive.name
            operands = [f.constant(v.value, v.aval) if type(v) is Literal else env[v] for v in eqn.invars]
            values = rules[eqn.primitive](f, [v.aval for v in eqn.outvars], *operands, **eqn.params)
            env.update(zip(eqn.outvars, values, strict=True))
    results = _read(f, env, jaxpr.outvars)
    f.outer = outer
    f.at(before)
    return results


def _read(f: Function, env: dict[Var, Value], atoms: Sequence[Atom]) -> list[Value]:
    return [f.constant(v.value, v.aval) if type(v) is Literal else env[v] for v in atoms]


def _write_in_place(f: Function, jaxpr: Jaxpr, env: dict[Var, Value], overwritten: frozenset[Any]) -> None:
    """Emit the equations of a loop's body that overwrites arrays, so that XLA copies none: see in_place_loops.py."""
    unsettled = in_place_loops.find_unsettled(jaxpr, overwritten)
    eqns, waits = in_place_loops.order(jaxpr, overwritten)
    for eqn in eqns:
        f.at(eqn.source)
        f.operation = eqn.primitive.name
        operands = _read(f, env, eqn.invars)
        if eqn in waits:
            operands = in_place_loops.wait(f, eqn, operands, [env[r.outvars[0]] for r in waits[eqn]])
        computed = partial(rules[eqn.primitive], f, [v.aval for v in eqn.outvars], *operands, **eqn.params)
        new = unsettled.get(eqn)
        values = computed() if new is None else in_place_loops.settle(f, eqn, operands, computed, new)
        env.update(zip(eqn.outvars, values, strict=True))
        f.overwritten.update([x.name for v, x in zip(eqn.outvars, values) if v in overwritten])


def _overwritten(f: Function, jaxpr: Jaxpr, arguments: Sequence[Value]) -> frozenset[Any]:
    """Find the variables of a loop's body that are overwritten, here or by its caller; add them to `f.overwritten`."""
    here = in_place_loops.find_written(jaxpr)
    pairs = list(zip(jaxpr.invars, arguments))
    f.overwritten.update([x.name for v, x in pairs if v in here])
    return here.union([v for v, x in pairs if x.name in f.overwritten])


def apply(f: Function, jaxpr: Jaxpr, arguments: Sequence[Value]) -> Sequence[Value]:
    """Emit a program into `f`: its equations at its first use in a module, then calls."""
    if jaxpr in f.inlined:
        return f.call(f, jaxpr, arguments)
    f.inlined.add(jaxpr)
    return lower(f, jaxpr, arguments)


long: Final[set[core.Primitive]] = set()  # without params; many operations: several of the same types are one function


@lru_cache(maxsize=256)
def alone(primitive: core.Primitive, avals: tuple[ShapedArray, ...]) -> Jaxpr:
    """Build the program of one application of a primitive without params to operands of these types."""
    operands, outs = list(map(Var, avals)), list(map(Var, primitive.type(avals, {})))
    return Jaxpr(operands, [Equation(primitive, operands, {}, outs, None)], outs, primitive.name)


def _shared(jaxpr: Jaxpr) -> list[Jaxpr]:
    """List the programs of single `long` primitives that a program, with those in it, applies more than once."""
    counts, seen = Counter[Jaxpr](), {jaxpr}
    todo = [jaxpr]
    while todo:
        program = todo.pop()
        if not long.isdisjoint(program.primitives):
            eqns = [eqn for eqn in program.eqns if eqn.primitive in long]
            counts.update(alone(eqn.primitive, tuple([v.aval for v in eqn.invars])) for eqn in eqns)
        new = {inner for inner in program.programs if inner not in seen}
        seen |= new
        todo += new
    return [program for program, n in counts.items() if n > 1]


def call(f: Function, outs: Any, /, *operands: Value, jaxpr: Jaxpr, **_: Any) -> Sequence[Value]:
    """Emit a call of `jaxpr`: the emit rule of primitives that call a program."""
    return f.call(f, jaxpr, operands)


# ---- stored operands -----------------------------------------------------------------------------------------
# Of matrix products on GPUs: concatenations are stored before they are read.
#
# XLA for GPUs (jaxlib 0.11.2) fuses a concatenation into the matrix product and the sums that read it, and leaves its
# parts to other fusions. If a part is as large as what the loss sums, XLA computes it in the kernel of this sum,
# which runs in a single block of threads (multi-output fusion). Behind a barrier, one kernel computes and stores all
# parts. In the gradient of an LSTM step on an H200 that kernel takes 0.6 us, the other would take 51, by XLA's own
# estimate.


@core.memoize_by_program
def with_stored_concatenations(jaxpr: Jaxpr) -> Jaxpr:
    """Put a barrier behind each concatenation that a matrix product reads; return the same object if there is none."""
    read = {v for eqn in jaxpr.eqns if eqn.primitive is dot_general_p for v in eqn.invars}
    eqns: list[Equation] = []
    for eqn in jaxpr.eqns:
        params = map_carried(with_stored_concatenations, eqn)
        if eqn.primitive is concatenate_p and eqn.outvars[0] in read:
            (out,) = eqn.outvars
            joined = Var(out.aval, out.linear)
            eqns += [eqn.replace(outvars=[joined]), Equation(materialize_p, [joined], {}, [out], eqn.source)]
        else:
            eqns.append(eqn if params is eqn.params else eqn.replace(params=params))
    return jaxpr if all(old is new for old, new in zip(jaxpr.eqns, eqns)) else jaxpr.replace(eqns=eqns)


# ---- primitives of users -------------------------------------------------------------------------------------
# Primitives that libraries define are calls of programs, traced from their rules, Python functions.
#
# This is the first step of lowering, so that these programs are simplified, and in-place loops see their reads and
# writes.


@core.memoize_by_program
def expand_primitives(jaxpr: Jaxpr) -> Jaxpr:
    """Replace users' primitives in a program by calls of programs; return the same object if it has none.

    Remembered for as long as `jaxpr` lives.
    Raises: NotImplementedError if a primitive has no lowering rule; TypeError if the rule gives other types than the
      primitive has; UnexpectedTracerError if it closes over a traced value.
    """
    if not jaxpr.carrying:
        return jaxpr
    eqns = [_expanded_equation(eqn) for eqn in jaxpr.eqns]
    return jaxpr if all(map(operator.is_, eqns, jaxpr.eqns)) else jaxpr.replace(eqns=eqns)


def is_uncompilable(jaxpr: Jaxpr) -> bool:
    """Does a program, or a checkpoint in it, apply a primitive that has an `impl` rule and no lowering rule?"""
    return any(map(_is_uncompilable_equation, jaxpr.carrying))


def _is_uncompilable_equation(eqn: Equation) -> bool:
    if isinstance(eqn.primitive, UserPrimitive):
        return "impl" in eqn.primitive.rules and "lowering" not in eqn.primitive.rules
    return eqn.primitive is checkpoint_p and is_uncompilable(eqn.params["jaxpr"])


def _expanded_equation(eqn: Equation) -> Equation:
    primitive = eqn.primitive
    if not primitive.carries_programs:
        return eqn
    if isinstance(primitive, UserPrimitive):
        return eqn.replace(primitive=jit_p, params={"jaxpr": _program(primitive, eqn)})
    params = map_subjaxprs(expand_primitives, eqn.params)
    return eqn if params is eqn.params else eqn.replace(params=params)


def _program(primitive: UserPrimitive, eqn: Equation) -> Jaxpr:
    """Trace a primitive's lowering rule at the types of an equation; inputs are linear where the operands are."""
    function = primitive.rule("lowering")
    wanted = [v.aval for v in eqn.outvars]

    def flat(*args: Any) -> list[Any]:
        outs = function(wanted, *args, **eqn.params)
        check_types(primitive, "lowering", "as results of types", [aval_of(y) for y in outs], wanted)
        return [_as_weak(y, aval) for y, aval in zip(outs, wanted)]

    program, consts = trace_to_jaxpr(flat, [v.aval for v in eqn.invars], what="lowering", function=primitive)
    for x in consts:
        if isinstance(x, core.Tracer):
            raise core.leak_error(x)
    closed = expand_primitives(with_literals(program, consts)).replace(name=primitive.name)
    return linear_vars.mark_linear_cached(closed, tuple([v.linear for v in eqn.invars]))


def _as_weak(x: Any, aval: ShapedArray) -> Any:
    """Give x the weak type of `aval`."""
    weak = aval_of(x).weak_type
    return x if weak == aval.weak_type else convert_element_type(x, aval.dtype, aval.weak_type)


# ---- composition ---------------------------------------------------------------------------------------------
# Emit rules by decomposition: primitives without a StableHLO operation, as functions made of other primitives.
#
# `compose_rule(f)` is the emit rule of a primitive that `f` computes; `in_float32` and `in_float64` make a rule for
# narrower formats from one for these; `while_loop` is a loop whose condition and body are functions of arrays.


Rule = Callable[..., Sequence[Value]]
ArrayFunction = Callable[..., Any]


def compose_rule(function: ArrayFunction) -> Rule:
    """Return the rule that emits the primitives of `function(*arrays, **params) -> array or tuple`."""

    def rule(f: Function, outs: Any, /, *operands: Value, **params: Any) -> Sequence[Value]:
        return write_out(f, lambda *xs: function(*xs, **params), operands)

    return rule


def write_out(f: Function, function: ArrayFunction, operands: Sequence[Value]) -> list[Value]:
    """Emit `function(*operands)` into `f`, and return its results. It may close over numbers, not over arrays.

    It is a part of the operation being emitted, whose name and line are those in errors.
    """

    def flat(*xs: Any) -> tuple[Any, ...]:
        out = function(*xs)
        return tuple(out) if isinstance(out, (tuple, list)) else (out,)

    avals = [x.aval for x in operands]
    jaxpr, consts = source.at(f.source, trace_to_jaxpr, flat, avals, what="lowering", function=function)
    assert not consts, "a composition closes over no arrays"
    with f.composing():
        return lower(f, jaxpr, operands)


def while_loop(f: Function, condition: ArrayFunction, body: ArrayFunction, state: Sequence[Value]) -> list[Value]:
    """Emit a loop that applies `body` to the state while `condition`, a scalar boolean, holds; return its results."""
    avals = [x.aval for x in state]
    test = f.block(avals, lambda *xs: write_out(f, condition, xs))
    step = f.block(avals, lambda *xs: write_out(f, body, xs))
    return f.ops("while", state, avals, region=f"{test}, {step}")


def in_float32(rule: Rule) -> Rule:
    """Make a rule that computes in float32 for narrower formats, and rounds results once.

    XLA would round every partial sum: of 4096 ones to 256 in bfloat16, as 257 is no such number; and every step of a
    function: in float16 the logistic function of -12 would be 0, because exp(12) is infinite.
    """
    return _widened(rule, np.dtype(np.float32))


def in_float64(rule: Rule) -> Rule:
    """Make a rule that computes in float64 for narrower formats."""
    return _widened(rule, np.dtype(np.float64))


def _widened(rule: Rule, wide: np.dtype[Any]) -> Rule:
    def widened(f: Function, outs: Any, /, *operands: Value, **params: Any) -> Sequence[Value]:
        dtype = outs[0].dtype
        if not dtypes.is_float(dtype) or dtypes.bits_of(dtype) >= dtypes.bits_of(wide):
            return rule(f, outs, *operands, **params)
        widest = [f.convert(x, wide) if x.aval.dtype == dtype else x for x in operands]
        values = rule(f, [x.update(dtype=wide) for x in outs], *widest, **params)
        return [f.convert(x, dtype) for x in values]

    return widened


def in_unsigned(rule: Rule) -> Rule:
    """Make a rule that multiplies signed integers as unsigned ones of the same bits.

    XLA takes the square of a signed integer for non-negative, though squares wrap; see docs/xla_defects.md. It merges
    equal values, and makes products of sums of one term, so that whatever multiplies may become a square.
    """

    def unsigned(f: Function, outs: Any, /, *operands: Value, **params: Any) -> Sequence[Value]:
        dtype = outs[0].dtype
        alike = all(x.aval.dtype == dtype for x in operands)
        if not alike or not dtypes.is_integer(dtype) or not dtypes.is_signed(dtype):
            return rule(f, outs, *operands, **params)
        modular = np.dtype(f"uint{dtypes.bits_of(dtype)}")
        converted = {x.name: f.convert(x, modular) for x in dict.fromkeys(operands)}
        values = rule(f, [outs[0].update(dtype=modular)], *[converted[x.name] for x in operands], **params)
        return [f.convert(x, dtype) for x in values]

    return unsigned
