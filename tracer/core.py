"""Primitives, traces and tracers: the current trace interprets each application of a primitive.

A primitive is a name and a typing rule. `bind` hands it to the current trace: the evaluator at the bottom
computes, a staging trace writes an equation, a differentiating trace applies a rule by primitives of its parent.
A tracer belongs to a trace if `x.owner is self`; a tracer of any other trace is a constant there, which
keeps nested derivatives apart. Source: Radul et al. 2023; the current-trace design is that of JAX's "stackless" core.
"""

import functools
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from importlib import import_module
from typing import Any, Final

import numpy as np

from tapeless.tracer import dtypes, primitives, source
from tapeless.tracer.advice import widths
from tapeless.tracer.advice.called_functions import find_called, name_called
from tapeless.tracer.advice.keyword_advice import advise
from tapeless.tracer.array import Array, Evaluator
from tapeless.tracer.caches import ProgramCache as ProgramCache
from tapeless.tracer.caches import memoize_by_program as memoize_by_program
from tapeless.tracer.caches import program_cache as program_cache
from tapeless.tracer.errors import (
    ConcretizationTypeError,
    InternalError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    UnexpectedTracerError,
    hidden_by_numpy,
)
from tapeless.tracer.settings.scopes import Arguments, Result
from tapeless.tracer.types import ShapedArray, aval_of, holds_keys

TypingRule = Callable[..., tuple[ShapedArray, ...]]

_registry: dict[str, "Primitive"] = {}


def all_primitives() -> tuple["Primitive", ...]:
    """Return all registered primitives, in order of definition; import the families that are not imported yet."""
    for family in primitives.FAMILIES:
        import_module(f"{primitives.__name__}.{family}")
    return tuple(_registry.values())


def primitives_by_name() -> dict[str, "Primitive"]:
    """Return the primitives of the families that are imported, by name."""
    return dict(_registry)


class Primitive:
    """An operation: a name and a typing rule `(*avals, **params) -> avals`, which also checks its operands.

    Params are keyword-only, hashable and normalised. Types are cached, so that a rule runs once for the same operands;
    `remember=False` for primitives whose params are programs or functions. `effect` names its side effect, see
    jaxpr.py; None for a pure primitive. `takes_keys`: is it defined for keys of random numbers, as operations that
    move elements are? All others refuse them. `registered`: is it one of `all_primitives`, which have distinct names?
    Those of users are not. Its family is the module that makes it; by that its rules are imported.
    """

    __slots__ = ("_typed", "carries_programs", "effect", "family", "name", "takes_keys", "typing_rule")
    keeps_programs = False  # whether programs among its params belong to a library, so that no pass rewrites them

    def __init__(
        self,
        name: str,
        typing_rule: TypingRule,
        *,
        remember: bool = True,
        effect: str | None = None,
        takes_keys: bool | None = None,
        registered: bool = True,
    ) -> None:
        if registered and name in _registry:
            raise InternalError(f"primitive {name!r} is defined twice")
        self.name: Final = name
        self.typing_rule: Final = typing_rule
        self.effect: Final = effect
        frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]  # the documented cheap way to a frame
        self.family: str = frame.f_globals.get("__name__", "")
        self.carries_programs: Final = not remember  # may programs be among its params? They may take keys.
        self.takes_keys: Final = not remember if takes_keys is None else takes_keys
        self._typed: dict[Any, tuple[ShapedArray, ...]] | None = {} if remember else None
        if registered:
            _registry[name] = self

    def apply(self, /, *args: Any, **params: Any) -> tuple[Any, ...]:
        """Apply the primitive to values: the current trace processes it. Returns: a tuple, of one result, too."""
        try:
            return current.get().process(self, args, params)
        except (TypeError, ValueError) as error:
            widths.explain(error, args)
            name_called(error, self.name)
            source.name_line(error)
            raise
        except RecursionError as error:
            raise nested_too_deeply(error, current.get()) from None

    bind = apply  # JAX's name; of a library's primitive it gives what the library says, an array or several

    def type(self, avals: tuple[ShapedArray, ...], params: dict[str, Any]) -> tuple[ShapedArray, ...]:
        """Return the types of the results. Raises: what the typing rule raises."""
        typed = self._typed
        if typed is None:
            return self._typed_anew(avals, params)
        key = (avals, *params.items()) if params else avals
        found = typed.get(key)
        if found is None:
            if len(typed) > _TYPED_LIMIT:
                typed.clear()
            found = typed[key] = self._typed_anew(avals, params)
        return found

    def _typed_anew(self, avals: tuple[ShapedArray, ...], params: dict[str, Any]) -> tuple[ShapedArray, ...]:
        if not self.takes_keys:
            refuse_keys(self.name, *avals, **params)
        return self.typing_rule(*avals, **params)

    # ---- by JAX's names, for interpreters of programs

    @property
    def multiple_results(self) -> bool:
        """Does `bind` give several results? It gives a tuple, whether there is one or there are more."""
        return True

    call_primitive = map_primitive = False  # is it one whose program is the param `call_jaxpr`?

    def get_bind_params(self, params: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the functions and the params that `bind` takes for an equation with `params`: none, and these."""
        return [], params

    def impl(self, /, *args: Any, **params: Any) -> tuple[Any, ...]:
        """Compute the results for values that are known, even while something is being traced."""
        return under(_bottom, _bottom.process, self, args, params)

    def abstract_eval(self, /, *avals: ShapedArray, **params: Any) -> tuple[tuple[ShapedArray, ...], frozenset[str]]:
        """Compute the types of the results, and name the effect of the primitive itself, if it has one."""
        return self.type(avals, params), frozenset([self.effect] if self.effect else [])

    def bind_with_trace(self, trace: "Trace", args: Sequence[Any], avals: Any, params: dict[str, Any], /) -> Any:
        """Apply the primitive as `bind` does, under `trace`. `avals`, the types of `args`, are not looked at."""
        return under(trace, self.bind, *args, **params)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"{self.name}_p"

    def __reduce__(self) -> tuple[Any, ...]:
        return primitive_named, (self.name,)


_TYPED_LIMIT = 4096


def refuse_keys(name: str, /, *avals: ShapedArray, **params: Any) -> None:
    """Check that no type, and no dtype among params, is one of keys. Raises: TypeError in the name of `name`."""
    dtype = next((param for param in params.items() if dtypes.is_key(param[1])), None)
    if dtype is None and not any(map(holds_keys, avals)):
        return
    given = [*map(str, avals), *([f"{dtype[0]}={dtype[1]}"] if dtype else [])]
    raise TypeError(
        f"{find_called(name)} is not defined for keys of random numbers: {' and '.join(given)}.\n"
        "  Their words, which are uint32, are random.key_data(keys)."
    )


def primitive_named(name: str) -> Primitive:
    """Return the primitive called `name`. Raises: KeyError naming it."""
    if name not in _registry:
        all_primitives()
    return _registry[name]


# ---- traces --------------------------------------------------------------------------------------------------


class Trace:
    """An interpreter of primitives. `parent` is the trace that processes the primitives applied by this one."""

    __slots__ = ("__weakref__", "alive", "depth", "function", "parent", "refuses_reads")

    what = "a transformation"
    parent: "Trace"

    def __init__(self, parent: "Trace | None", function: Any = None) -> None:
        self.parent = parent  # pyright: ignore[reportAttributeAccessIssue]  # None at the bottom, where it is not read
        self.function: Final = function
        self.alive: bool = True
        self.refuses_reads: bool = False  # is it an error to ask whether elements are known? See eager_calls.py.
        self.depth: int = parent.depth + 1 if parent else 0

    @property
    def main(self) -> "Trace":
        """Return the trace itself, which identifies its tracers: `tracer._trace.main`, as in JAX."""
        return self

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> tuple[Any, ...]:
        """Apply `primitive` to values, of which some may be tracers of this trace."""
        raise NotImplementedError

    def describe(self) -> str:
        """Describe the trace in a message: `loss at model.py:12, traced for jit`."""
        function = describe_function(self.function) if self.function is not None else "a function"
        return f"{function}, traced for {self.what}"


class EvalTrace(Trace):
    """The trace at the bottom, which computes each primitive at once: `process` is the evaluator's."""

    __slots__ = ("evaluator", "process")

    def __init__(self) -> None:
        super().__init__(None)
        self.evaluator: Evaluator | None = None
        self.process: Callable[..., tuple[Any, ...]] = lambda *args: evaluator().evaluate(*args)


_bottom = EvalTrace()
current: ContextVar[Trace] = ContextVar("trace", default=_bottom)  # what primitives are handed to


def set_evaluator(evaluator: Evaluator) -> None:
    """Fill the slot at the bottom: the one upward reference of the system."""
    _bottom.evaluator, _bottom.process = evaluator, evaluator.evaluate


def evaluator() -> Evaluator:
    """Return what computes at the bottom."""
    if _bottom.evaluator is None:
        raise InternalError("nothing is there to compute with: import tapeless, not its parts")
    return _bottom.evaluator


def place_array(x: Array, device: Any) -> Array:
    """Put an array on a device, if one is given; a traced one stays where its program runs.

    Raises: TypeError if `device` is neither a device nor the sharding of an array that is on one.
    """
    return x if device is None or _bottom.evaluator is None else _bottom.evaluator.put_on_device(x, device)


def make_unplaced(x: Any) -> Array:
    """Make an array of ours of a number or a NumPy array, on whichever device it is used."""
    return evaluator().unplaced(x)


current_trace: Final = current.get  # the trace that primitives are handed to now: a plain call, it is that frequent


def bottom_trace() -> Trace:
    """Return the trace at the bottom, which computes."""
    return _bottom


def is_evaluating() -> bool:
    """Tell whether primitives are computed now, rather than traced."""
    return current.get() is _bottom


def outermost_trace() -> Trace | None:
    """Return the trace that is handed what the others apply in the end; None if primitives are computed now."""
    trace = current.get()
    while trace.depth > 1:
        trace = trace.parent
    return None if trace is _bottom else trace


def under(trace: Trace, f: Callable[Arguments, Result], /, *args: Arguments.args, **params: Arguments.kwargs) -> Result:
    """Call `f(*args, **params)` with `trace` as the current trace."""
    outside = current.get()
    try:  # `scoped` inlined, here and below: it saves a frame for each nested transformation
        current.set(trace)
        return f(*args, **params)
    finally:
        current.set(outside)


def under_new(
    trace: Trace, f: Callable[Arguments, Result], /, *args: Arguments.args, **params: Arguments.kwargs
) -> Result:
    """Call a function as `under` does, and end `trace` afterwards: then using one of its tracers is a leak."""
    outside = current.get()
    try:
        current.set(trace)
        return f(*args, **params)
    except (TypeError, ValueError, IndexError) as error:
        source.name_line(error)
        if (hidden := hidden_by_numpy(error)) is not None:
            raise hidden from None
        raise
    finally:
        current.set(outside)
        trace.alive = False
        if (ended := ended_traces.get()) is not None:
            ended.append(weakref.ref(trace))


ended_traces: ContextVar[list[weakref.ref[Trace]] | None] = ContextVar("ended traces", default=None)  # see leaks.py


def compound(f: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Run a function of several primitives as one compiled program when it is computed eagerly.

    Arrays are positional, keyword arguments static and hashable. While a function is traced, it is plain `f`.
    """

    @functools.wraps(f)
    def run(*args: Arguments.args, **params: Arguments.kwargs) -> Result:
        try:
            if current.get() is not _bottom:
                return f(*args, **params)
            return evaluator().evaluate_function(f, args, params)
        except (TypeError, ValueError) as error:
            source.name_line(error)
            raise

    return run


def unless_traced(evaluate: Callable[..., Any], f: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Call `evaluate(args, kwargs)` in the place of `f` when it is computed eagerly; plain `f` while it is traced."""

    @functools.wraps(f)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        try:
            return f(*args, **kwargs) if current.get() is not _bottom else evaluate(args, kwargs)
        except TypeError as error:
            advise(error)  # as `advise_keywords` does
            raise

    return run


def format_array(value: Any) -> str:
    """Print an array in one line: all elements if they are few, else the first and the last ones."""
    if holds_keys(aval_of(value)):
        return repr(value)
    return " ".join(np.array2string(np.asarray(value), threshold=8, edgeitems=2, separator=", ").split())


# ---- tracers -------------------------------------------------------------------------------------------------


def check_truth(aval: ShapedArray) -> None:
    """Raise ValueError if an array of this type has no truth value, because it has not one element."""
    if aval.size > 1:
        raise ValueError(
            f"The truth value of an array with more than one element is ambiguous: {aval}. Use x.any() or x.all().\n"
            "  In the place of 'and' and 'or' write & and | with parentheses: (0 < x) & (x < 2)."
        )
    if not aval.size:
        raise ValueError(f"The truth value of an empty array is ambiguous: {aval}. Use x.size > 0.")


class Tracer(Array):
    """A traced value: an array that has a type, but no elements yet."""

    __slots__ = ("__weakref__", "aval", "owner")

    owner: Trace
    differentiated = False  # whether a derivative is taken with respect to it, which a bare number would lose

    def __init__(self, trace: Trace, aval: ShapedArray) -> None:
        self.owner = trace
        self.aval: ShapedArray = aval

    @property
    def _trace(self) -> Trace:
        """Return the trace that this tracer belongs to, by JAX's name."""
        return self.owner

    @_trace.setter
    def _trace(self, trace: Trace) -> None:
        self.owner = trace

    def concrete_value(self) -> Any:
        """Return the concrete value of this tracer, or None: in forward mode there is one, in staging none."""
        return None

    def where(self) -> str:
        """Describe the place in the user's program where this value was computed, if it is recorded."""
        return ""

    def origin(self) -> str:
        """Describe in a line which arguments of a traced function this value is, or depends on; empty if not known."""
        return ""

    def __bool__(self) -> bool:
        check_truth(self.aval)
        return bool(self._concrete(TracerBoolConversionError, "truth value", _BOOL_HELP))

    def __int__(self) -> int:
        return int(self._concrete(TracerIntegerConversionError, "integer value", _INT_HELP))

    def __index__(self) -> int:
        return self._concrete(TracerIntegerConversionError, "integer value", _INT_HELP).__index__()

    def __float__(self) -> float:
        return float(self.number("float value"))

    def __complex__(self) -> complex:
        return complex(self.number("complex value"))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        check_alive((self,))
        raise TracerArrayConversionError(self._refusal("the NumPy array of a traced array is not known", _ARRAY_HELP))

    def __hash__(self) -> int:
        raise TypeError(
            f"a traced array is not hashable: {self.aval}. Sets and keys of dicts need values that are known."
        )

    def __iter__(self) -> Iterator[Any]:
        if not self.aval.shape:
            raise TypeError(f"iteration over {self.aval}, an array without axes. x[None] has one, of length 1.")
        return (self[i] for i in range(self.aval.shape[0]))

    def __format__(self, spec: str) -> str:
        return format(self._concrete(ConcretizationTypeError, "value", _FORMAT_HELP), spec) if spec else repr(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}<{self.aval.str_short()}{self._shown()}>"

    def _shown(self) -> str:
        """Print for `repr` the concrete value, or the batch that this is an example of, if there is one."""
        value = self.concrete_value()
        return "" if value is None else f" = {format_array(value)}"

    def __copy__(self) -> "Tracer":
        return self

    def __deepcopy__(self, memo: Any) -> "Tracer":
        return self

    def __reduce__(self) -> Any:
        raise TypeError(f"a traced array cannot be pickled: {self.aval}.")

    def number(self, what: str) -> Any:
        """Return the concrete value as a number, which messages call `what`.

        Raises: ConcretizationTypeError if there is none, or if a derivative with respect to it is taken, which would
          silently be 0.
        """
        known = self._concrete(ConcretizationTypeError, what, _FLOAT_HELP)
        if self.differentiated:
            refusal = f"the {what} of an array that is differentiated has no derivative"
            raise ConcretizationTypeError(self._refusal(refusal, _LOST_HELP))
        return known

    def _concrete(self, error: type[Exception], what: str, help: str) -> Any:
        check_alive((self,))
        if (known := self.concrete_value()) is None:
            raise error(self._refusal(f"the {what} of a traced array is not known", help))
        return known

    def _refusal(self, refusal: str, help: str) -> str:
        made = f"\n  It was computed at {self.where()}." if self.where() else ""
        here = source.describe_here()
        asked = f" at {here}" if here else ""
        fill = _FILL_HELP if help is not _BOOL_HELP and source.writes_element() else ""
        known, origin = how_to_be_known(self.owner), self.origin()
        if help is _BOOL_HELP and origin.startswith(_IS_AN_ARGUMENT) and known.startswith("make"):
            help = _FLAG_HELP
        elif help is _BOOL_HELP and is_in_body(self.owner):
            help = _BODY_HELP
        help = help.format(known=known, Known=known.capitalize())
        traced = f"Traced: {self.owner.describe()}.{origin}"
        return f"{refusal}: {self.aval}, asked for{asked}.\n  {traced}{made}\n  {help}{fill}"


def how_to_be_known(trace: Trace) -> str:
    """Advise, in an error message, how to make the elements of a traced value known."""
    around = trace
    while around is not _bottom:
        if around.what in _WITH_STATIC:
            return f"make the argument static ({'static_argnames' if around.what == 'jit' else 'static_argnums'})"
        around = around.parent
    return "close over the value where it is known"


def is_in_body(trace: Trace | None) -> bool:
    """Tell whether a trace is of a body of the index language, or inside of one."""
    return trace is not None and (trace.what in BODIES or is_in_body(trace.parent))


BODIES = frozenset(("build", "index.fold", "index.scan"))  # what traces are called that bodies are written by
_WITH_STATIC = frozenset(["jit", "checkpoint", "make_jaxpr"])  # who takes arguments that are not traced
_BOOL_HELP = "Use tnp.where or lax.cond for a choice, lax.while_loop for a loop, or {known}."
_BODY_HELP = (
    "In a body use index.where or index.cond for a choice; both sides are computed. Write (0 < i) & (i < n) for "
    "0 < i < n or (0 < i) and (i < n), | for or, ~ for not."
)
_FLAG_HELP = "{Known}, or use tnp.where or lax.cond for a choice, lax.while_loop for a loop."
_IS_AN_ARGUMENT = "\n  It is "  # so begins the origin of a value that is no result
_INT_HELP = "Shapes, counts and Python indices must be known when tracing: {known}."
_FLOAT_HELP = "Keep it an array (tnp.* instead of math.*), or compute it outside of the traced function."
_FORMAT_HELP = 'Write tl.debug.print("{{:.3f}}", x), which prints it when the program runs; f"{{x}}" shows the type.'
_LOST_HELP = "Keep it an array (tnp.* instead of math.*), or use float(tl.stop_gradient(x)) where it is a constant."
_ARRAY_HELP = "Use tapeless.numpy (tnp) instead of numpy on traced arrays, or compute outside of the traced function."
_FILL_HELP = (
    "\n  To fill an array, make it with tnp.zeros and write out = out.at[i].set(x); or collect a list and tnp.stack it."
)


def leak_error(tracer: Tracer) -> UnexpectedTracerError:
    """Make the error for a tracer of a trace that is over, or that is not the current one nor around it."""
    if tracer.owner.alive:
        return _closure_error(tracer, "code outside of its transformation")
    made = f"\n  The value was computed at {tracer.where()}." if tracer.where() else ""
    if tracer.owner.what in BODIES:
        return UnexpectedTracerError(
            f"a value escaped its body: {tracer.aval} of {tracer.owner.describe()}.{made}{_used_here()}\n"
            "  It stands for the values at all indices: return it from the body, and use the array of them."
        )
    return UnexpectedTracerError(
        f"a traced array escaped its function: {tracer.aval} of {tracer.owner.describe()}.{made}{_used_here()}\n"
        "  Return it from the function instead of storing it in a global, an attribute or a closure."
    )


def nested_too_deeply(error: RecursionError, trace: Trace) -> RecursionError:
    """Make the error for functions that are traced within one another until Python's stack ends; keep other errors.

    It is made in the first frame that has the stack for it; frames further out keep it.
    """
    if trace.depth < _NESTED or _EXPLAINED in vars(error):
        return error
    outermost = under(trace, outermost_trace) or trace
    told = RecursionError(
        f"functions are traced within one another, {trace.depth} deep: Python's limit of {sys.getrecursionlimit()} "
        f"nested calls is reached.\n  The outermost is {outermost.describe()}; the innermost {trace.describe()}.\n"
        "  Raise the limit with sys.setrecursionlimit (each takes about ten calls), or call one function in a loop."
    )
    vars(told)[_EXPLAINED] = True
    return told


_NESTED, _EXPLAINED = 20, "nested_too_deeply"


def inner_tracer_error(tracer: Tracer, trace: Trace) -> UnexpectedTracerError:
    """Make the error for a tracer of a trace inside `trace`, which reached it by a closure."""
    return _closure_error(tracer, trace.describe())


def _closure_error(tracer: Tracer, reached: str) -> UnexpectedTracerError:
    whose = f"{tracer.aval} of {tracer.owner.describe()}"
    return UnexpectedTracerError(
        f"a traced array reached {reached}, through a closure: {whose}.{_used_here()}\n"
        "  A function with its own derivative must take such a value as an argument; another thread cannot use it."
    )


def _used_here() -> str:
    here = source.describe_here()
    return f"\n  It was used at {here}." if here else ""


def check_alive(args: Sequence[Any]) -> None:
    """Check that no argument is a tracer of a trace that is over. Raises: UnexpectedTracerError for the first."""
    for x in args:
        if isinstance(x, Tracer) and not x.owner.alive:
            raise leak_error(x)


def function_name(f: Any) -> str:
    """Return the name of a function, for a `partial` its function's, for another callable its class's."""
    while isinstance(f, functools.partial):
        f = f.func
    return str(getattr(f, "__name__", None) or getattr(f, "name", None) or type(f).__name__)


def describe_function(f: Any) -> str:
    """Describe a function in a message: `loss at model.py:12`."""
    while isinstance(f, functools.partial):
        f = f.func
    name = function_name(f)
    while hasattr(f, "__wrapped__"):
        f = f.__wrapped__
    code = getattr(f, "__code__", None)
    return f"{name} at {source.Source(code, 0).file_line()}" if code else name
