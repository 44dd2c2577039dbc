"""Traced arrays that functions close over, made arguments.

A program outlives the trace that it was written in, and a rule of a user runs under other traces than its function.
So a function with a rule of its own, if it holds traced arrays, becomes two programs, of the function and of the rule;
both take these arrays as operands. `closure_convert` does the same to any function, for users.
"""

import functools
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from types import FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any, Final, NamedTuple

import numpy as np

from tapeless.arguments.argument_checks import FUNCTION_AND_ARGUMENTS, check_arguments, check_arrays, check_callable
from tapeless.custom.rule_checks import attempt
from tapeless.differentiate.equivalence import form_of
from tapeless.interpreters.rules.custom import differentiated_closure, linear_zeros
from tapeless.interpreters.vmap import BatchTracer
from tapeless.interpreters.zero import Zero, are_nonzero, with_zeros
from tapeless.tracer import core, dtypes, pytree
from tapeless.tracer.array import Array
from tapeless.tracer.core import Tracer
from tapeless.tracer.errors import ConcretizationTypeError
from tapeless.tracer.flags import merge_lists, where_false, where_true
from tapeless.tracer.jaxpr import Jaxpr, Var, eval_jaxpr
from tapeless.tracer.settings.scopes import call_in_scope
from tapeless.tracer.staging import StagedTracer, trace_to_jaxpr
from tapeless.tracer.types import ShapedArray, aval_of

_LIMIT = 10_000  # objects that are looked at: a model is smaller, a data set in a list is not


def closed_over(*functions: Any) -> list[Tracer]:
    """Find traced arrays in closures, defaults, bound arguments and attributes of functions, also in containers."""
    found: dict[int, Tracer] = {}
    seen: dict[int, Any] = {}
    todo = deque(functions)
    while todo and len(seen) < _LIMIT:
        x = todo.popleft()
        if id(x) in seen:
            continue
        seen[id(x)] = x
        if isinstance(x, Tracer):
            found[id(x)] = x
        else:
            todo.extend(_held_by(x))
    return list(found.values())


def alive_in(*functions: Any) -> list[Tracer]:
    """Find the traced arrays of live traces that functions close over.

    Others are notes of what was seen, or leaks, which their use reports.
    """
    return [x for x in closed_over(*functions) if x.owner.alive]


def _held_by(x: Any) -> Iterable[Any]:
    if isinstance(x, (type, ModuleType, Array, np.ndarray)):
        return ()
    if isinstance(x, FunctionType):
        cells = [cell.cell_contents for cell in x.__closure__ or () if _is_full(cell)]
        return (*cells, *(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values(), *vars(x).values())
    if isinstance(x, functools.partial):
        return (x.func, *x.args, *x.keywords.values())
    if isinstance(x, MethodType):
        return (x.__func__, x.__self__)
    if isinstance(x, dict):
        return x.values()
    return x if isinstance(x, (list, tuple, set, frozenset, deque)) else getattr(x, "__dict__", {}).values()


def _is_full(cell: Any) -> bool:
    """Tell whether a cell has a value; it is empty until its variable is assigned, as during a definition."""
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


# ---- functions with rules ------------------------------------------------------------------------------------


class Converted:
    """A flat call of a function with a rule (custom_calls.FlatCall), as programs; `tracers` are its first operands."""

    def __init__(self, call: Any, avals: Sequence[ShapedArray], tracers: Sequence[Tracer]) -> None:
        self._call = call
        self._avals = tuple(avals)
        self.tracers: Final = list(tracers)
        self.__name__: Final = call.__name__
        self._function: tuple[Jaxpr, tuple[Any, ...]] | None = None
        self._rule: tuple[Jaxpr, tuple[Any, ...]] | None = None
        self._failed: Exception | None = None  # of the rule: raised if it is needed
        self._some: Sequence[bool] = ()  # which results have a tangent

    @property
    def out_tree(self) -> Any:
        """Structure of the result."""
        return self._call.out_tree

    def function(self, *operands: Any) -> tuple[Any, ...]:
        """Return the function itself."""
        return _apply(self._function, operands)

    def traced(self, avals: tuple[ShapedArray, ...]) -> tuple[Jaxpr, tuple[Any, ...]]:
        """Return the function as a program, and its constants, none of which is traced."""
        assert self._function is not None
        return self._function

    def rule(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        """Apply the rule. Raises: TypeError if one of the tracers is differentiated."""
        n = len(self.tracers)
        for x, t in zip(primals[:n], tangents[:n]):
            if type(t) is not Zero:
                raise differentiated_closure(self._call.primitive, self.__name__, x)
        if self._failed is not None:
            raise self._failed
        full = linear_zeros(tangents)
        given = [t for t, aval in zip(full[n:], self._avals, strict=True) if dtypes.is_inexact(aval.dtype)]
        outs = _apply(self._rule, [*primals, *given])
        return with_zeros(outs, self._some)

    def is_of(self, call: Any, avals: Sequence[ShapedArray]) -> bool:
        """Tell whether another call of the same function is like this one."""
        theirs, ours = call.nondiff.static, self._call.nondiff.static
        same = len(theirs) == len(ours) and all(x is y for x, y in zip(theirs, ours))
        return same and call.tree == self._call.tree and tuple(avals) == self._avals

    def trace(self) -> Sequence[Any]:
        """Write the two programs. Returns: the constants they met.

        Raises: whatever tracing the function raises; what the rule raises waits until it is needed, unless that is for
          looking at values.
        """
        call, avals = self._call, self._avals
        what, inexact = call.primitive.name, [dtypes.is_inexact(aval.dtype) for aval in avals]

        def rule(*xs: Any) -> list[Any]:
            values, pushed = call.rule(*with_zeros(xs, inexact))
            self._some = are_nonzero(pushed)
            return [*values, *where_true(self._some, pushed)]

        of_tangents = [aval.tangent() for aval in where_true(inexact, avals)]
        function = trace_to_jaxpr(call.function, avals, what=what, function=call)
        self._function = self._over(*function)  # which the rule may call
        try:
            pushing = trace_to_jaxpr(rule, [*avals, *of_tangents], what=what, function=call)
        except ConcretizationTypeError:
            raise
        except Exception as error:
            self._failed = error
            return function[1]
        self._rule = self._over(*pushing)
        return (*function[1], *pushing[1])

    def _over(self, program: Jaxpr, consts: Sequence[Any]) -> tuple[Jaxpr, tuple[Any, ...]]:
        """Reorder the inputs of a program: untraced constants, tracers, own inputs; also return these constants."""
        where = {id(x): v for v, x in zip(program.invars, consts)}
        untraced = [x for x in consts if not isinstance(x, Tracer)]
        first = [*[where[id(x)] for x in untraced], *[where.get(id(x)) or Var(x.aval) for x in self.tracers]]
        return program.replace(invars=[*first, *program.invars[len(consts) :]]), tuple(untraced)


def _apply(program: Any, operands: Sequence[Any]) -> tuple[Any, ...]:
    jaxpr, consts = program
    return eval_jaxpr(jaxpr, [*consts, *operands])


# Functions that are being converted, by id: how their rules are to call them.
_converting: ContextVar[Mapping[int, "_Conversion"]] = ContextVar("converting", default=MappingProxyType({}))


class _Conversion:
    """The state of converting a call: `converted` once its tracers are known, `nested` if its rule calls it."""

    def __init__(self, converted: Converted | None) -> None:
        self.converted, self.nested = converted, False


def convert_closure(call: Any, operands: Sequence[Any]) -> Converted | None:
    """Make programs of a flat call if it holds traced arrays that would not be there when needed; else None.

    Tracers of forward mode are left: a function with a rule must take as an argument what is differentiated.
    """
    conversion = _converting.get().get(id(call.custom))
    avals = [aval_of(x) for x in operands]
    if conversion is not None:
        conversion.nested = True
        known = conversion.converted
        return known if known is not None and known.is_of(call, avals) else None
    held = alive_in(call.custom.fun, *call.custom.rules(), *call.nondiff.static)
    if not any(isinstance(x, (StagedTracer, BatchTracer)) for x in held):
        return None
    return attempt(lambda: _convert(call, avals))


def _convert(call: Any, avals: Sequence[ShapedArray]) -> Converted:
    """Trace once to find the tracers closed over, and again with them as inputs, in nested calls of it, too."""
    conversion = _Conversion(None)
    met = _converting_to(call, conversion, Converted(call, avals, ()).trace)
    tracers = list({id(x): x for x in met if isinstance(x, Tracer)}.values())
    made = Converted(call, avals, tracers)
    _converting_to(call, _Conversion(made if conversion.nested else None), made.trace)
    return made


def _converting_to(call: Any, conversion: _Conversion, trace: Callable[[], Any]) -> Any:
    return call_in_scope(_converting, {**_converting.get(), id(call.custom): conversion}, trace)


# ---- any function --------------------------------------------------------------------------------------------


def closure_convert(fun: Callable[..., Any], *example_args: Any) -> tuple[Callable[..., Any], list[Any]]:
    """Convert traced arrays that a function closes over to additional arguments.

    Args:
      fun: a pure function of pytrees of arrays.
      example_args: arguments of the types that it is converted for.
    Returns: a function of the same arguments followed by the values hoisted, and the list of these: the traced arrays,
      found by tracing, that may be differentiated.
    Raises: TypeError if `fun` is no function, an argument or a result no array; of the function returned, if it is
      given another structure than that of `example_args`.

    >>> converted, hoisted = closure_convert(lambda x: 2.0 * x, 1.0)
    >>> converted(3.0, *hoisted), hoisted
    (Array(6., dtype=float32, weak_type=True), [])
    """
    check_callable("closure_convert", fun, expected=FUNCTION_AND_ARGUMENTS)
    name = core.describe_function(fun)
    check_arguments("closure_convert", fun, name, example_args)
    leaves, tree = pytree.flatten(tuple(example_args))
    out_tree: Any = None

    def flat(*xs: Any) -> list[Any]:
        nonlocal out_tree
        result = fun(*pytree.unflatten(tree, xs))
        check_arrays(f"closure_convert: the result{{}} of {name}", result)
        outs, out_tree = pytree.flatten(result)
        return outs

    program, consts = trace_to_jaxpr(flat, [aval_of(x) for x in leaves], what="closure_convert", function=fun)
    is_hoisted = tuple([isinstance(x, Tracer) and dtypes.is_inexact(x.aval.dtype) for x in consts])
    form = ConvertedForm(program, is_hoisted, tree, out_tree, name)
    return ConvertedFunction(form, where_false(is_hoisted, consts)), where_true(is_hoisted, consts)


class ConvertedForm(NamedTuple):
    """The static part of a converted function, without its arrays; equal for equivalent programs."""

    jaxpr: Jaxpr
    is_hoisted: tuple[bool, ...]
    in_tree: Any
    out_tree: Any
    name: str

    def _key(self) -> Any:
        return form_of(self.jaxpr), self.is_hoisted, self.in_tree, self.out_tree

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConvertedForm) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key()[:2])


class ConvertedFunction:
    """Function of the arguments that it was converted for, followed by the hoisted values of its closure.

    It is a pytree; its leaves are the arrays of its closure that were not hoisted.
    """

    def __init__(self, form: ConvertedForm, held: Sequence[Any]) -> None:
        self._form, self._held = form, list(held)

    def __call__(self, *args: Any) -> Any:
        form = self._form
        n = sum(form.is_hoisted)
        given, values = args[: len(args) - n], args[len(args) - n :]
        xs, tree = pytree.flatten(tuple(given))
        if tree != form.in_tree:
            told = pytree.compare(form.in_tree, tree, ("those it was converted for", "those given"))
            raise TypeError(f"closure_convert: {form.name} is given arguments of another structure.{told}")
        consts = merge_lists(form.is_hoisted, values, self._held)
        return pytree.unflatten(form.out_tree, eval_jaxpr(form.jaxpr, [*consts, *xs]))

    def __repr__(self) -> str:
        return f"<{self._form.name}, converted>"


pytree.register_pytree_node(ConvertedFunction, lambda f: (f._held, f._form), ConvertedFunction)
