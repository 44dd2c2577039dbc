"""jit: trace a function once for every type of its arguments, compile it, and call the program after that.

A call goes through three steps, the cheapest first. Arguments of a kind seen before, of one structure, classes and
types, are read by code that was written for it; others are flattened and looked up by structure and type; a new
combination is traced and compiled. The stages are there to be used one by one: `jit(f).trace(x).lower().compile()`.
"""

import functools
import inspect
import weakref
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

import numpy as np

from tapeless.arguments.argument_checks import CLOSE_OVER, check_arrays, check_callable, not_an_array
from tapeless.arguments.names import bind_instance, describe_inputs, names_by_position, naming
from tapeless.arguments.static import Arguments
from tapeless.compile import references
from tapeless.compile.jit_cache import (
    Programs,
    TraceKey,
    add_call,
    clear_programs,
    explain_retrace,
    note_traced,
    programs_of,
    remember,
)
from tapeless.compile.placement import one_device
from tapeless.compile.stages import CompiledCall, KnownCall, Lowered, ShapeDtypeStruct, Traced
from tapeless.interpreters.zero import Zero, instantiate
from tapeless.lowering import devices, dispatch
from tapeless.lowering.argument_errors import ArgumentError
from tapeless.lowering.array import DeviceArray
from tapeless.lowering.call_code import argument_leaf, result_leaf
from tapeless.lowering.memory_errors import Exhausted
from tapeless.tracer import (
    core,
    dtypes,
    leaks,
    pytree,
)
from tapeless.tracer.core import Tracer
from tapeless.tracer.jaxpr import ClosedJaxpr, eval_jaxpr
from tapeless.tracer.late_imports import LateModule
from tapeless.tracer.primitives import call
from tapeless.tracer.primitives.checkpoint import checkpoint
from tapeless.tracer.pytree.codegen import MISSED, CallCode
from tapeless.tracer.references import Ref, values_of
from tapeless.tracer.rule_arguments import as_arguments
from tapeless.tracer.settings import logs
from tapeless.tracer.settings.config import config
from tapeless.tracer.staging import StagingTrace
from tapeless.tracer.types import ShapedArray, aval_of, incoming_number, is_arraylike

if TYPE_CHECKING:
    from tapeless.compile import fitting_budgets
    from tapeless.interpreters.residuals import budget as budgets
    from tapeless.tracer.keys import key_reuse
else:
    fitting_budgets = LateModule("tapeless.compile.fitting_budgets")
    budgets = LateModule("tapeless.interpreters.residuals.budget")
    key_reuse = LateModule("tapeless.tracer.keys.key_reuse")

P = ParamSpec("P")
R = TypeVar("R")
Rest = ParamSpec("Rest")


@overload
def jit(
    fun: Callable[P, R],
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    keep_unused: bool = True,
    device: Any = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: Mapping[str, Any] | None = None,
    memory_budget: int | float | str | None = None,
) -> "Jitted[P, R]": ...
@overload
def jit(
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    keep_unused: bool = True,
    device: Any = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: Mapping[str, Any] | None = None,
    memory_budget: int | float | str | None = None,
) -> "Callable[[Callable[P, R]], Jitted[P, R]]": ...
def jit(
    fun: Callable[..., Any] | None = None,
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    keep_unused: bool = True,
    device: Any = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: Mapping[str, Any] | None = None,
    memory_budget: int | float | str | None = None,
) -> Any:
    """Compile a function of pytrees of arrays.

    A function jitted again, with the same options, finds the programs that it has: they are kept with the function.

    Args:
      fun: a pure function. Arrays it closes over are arguments of the program, read when it is traced; whatever else it
        reads, such as a global variable, is what it was then.
      static_argnums, static_argnames: arguments that are not arrays: hashable, compiled in. One of the two is enough,
        however they are given in calls; if both are there, those at the positions and those given by the names.
      donate_argnums, donate_argnames: arguments whose memory the results may take, named as these; they are deleted. A
        warning names those whose memory no result can take; they stay.
      keep_unused: accepted for compatibility; unused arguments are always kept.
      device: where to compute; by default where the arguments are. It may also be named by `backend`, as the first
        device of this platform, or by the leaves of `in_shardings` and `out_shardings` that are not None.
      inline: under another transformation, write the equations of `fun` instead of a call.
      compiler_options: XLA flags of this function, by name.
      memory_budget: the limit on the live bytes of each gradient that `fun` takes and that has none of its own, and of
        the gradient of `fun`: bytes, a text such as "2GB", or a part from 0.0 to 1.0, as `grad` takes it.
    Returns: a function with the same arguments and results, and `.trace`, `.lower`, `.clear_cache`.
    Raises: TypeError if `fun` is no function or `device` no device; NotImplementedError if several are named;
      ValueError for a static argument that is not hashable or is donated too, a number out of range or a name
      unknown to `fun`; RuntimeError if there is no such `backend`; when called, TypeError if
      an argument, or a result, is no array, whatever tracing `fun` raises, and OverflowError for a Python integer, or
      another weak one, that meets an array of an integer dtype it does not fit. (What the program computes of such
      numbers is not checked; arithmetic wraps.)

    >>> jit(lambda x: 2 * x)(1.5)
    Array(3., dtype=float32, weak_type=True)
    """
    device = one_device("jit", device, backend, in_shardings, out_shardings)
    budget = None if memory_budget is None else budgets.Budget.of(memory_budget, "jit, memory_budget")

    def jitted(fun: Callable[..., Any]) -> Jitted[..., Any]:
        check_callable("jit", fun)
        static = _arguments(fun, static_argnums, static_argnames, "static")
        donated = _arguments(fun, donate_argnums, donate_argnames, "donate")
        static.check_apart(donated, fun)
        return Jitted(fun, static, donated, device, inline, compiler_options, budget=budget)

    return jitted if fun is None else jitted(fun)


def _arguments(fun: Any, numbers: Any, names: Any, what: str) -> Arguments:
    return Arguments.of(fun, numbers, names, what, completed=numbers is None or names is None)


def program_of(who: str, fun: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> ClosedJaxpr:
    """Trace a function for these arguments, or their types; messages name `who`.

    Raises: TypeError if an argument, or a result, is no array; whatever tracing `fun` raises.
    """
    return tracing_of(who, fun).trace(*args, **kwargs).jaxpr


def tracing_of(who: str, fun: Callable[..., Any], static_argnums: int | Sequence[int] = ()) -> "Jitted[..., Any]":
    """Make a function to be traced, as `jit` does it, but not to be called. `who` traces it, in messages.

    Raises: TypeError if it is no function, ValueError for a static argument that it does not have.
    """
    check_callable(who, fun)
    static = Arguments.of(fun, static_argnums, None, "static", who)
    return Jitted(fun, static, Arguments((), ()), None, False, None, who)


def trace_apart(who: str, fun: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Traced, list[Any], Any]:
    """Trace a function, jitted or not, whatever was traced of it before: see `Jitted.trace_apart`."""
    return (fun if isinstance(fun, Jitted) else tracing_of(who, fun)).trace_apart(who, args, kwargs)


def clear_caches() -> None:
    """Delete the cached programs of jitted functions and of eager operations.

    What is traced next reads global variables anew. The cache on disk stays.

    >>> factor = 2.0
    >>> def scaled(x): return factor * x
    >>> jit(scaled)(1.0), globals().update(factor=3.0), jit(scaled)(1.0)
    (Array(2., dtype=float32, weak_type=True), None, Array(2., dtype=float32, weak_type=True))
    >>> clear_caches()
    >>> jit(scaled)(1.0)
    Array(3., dtype=float32, weak_type=True)
    """
    clear_programs()
    dispatch.clear_executables()


class Jitted(Generic[P, R]):
    """A function compiled for every type of its arguments it has met."""

    def __init__(
        self,
        fun: Any,
        static: Arguments,
        donated: Arguments,
        device: Any,
        inline: bool,
        options: Any,
        who: str = "jit",
        budget: "budgets.Budget | budgets.SurveyPolicy | None" = None,
    ) -> None:
        functools.update_wrapper(self, fun, updated=("__dict__",) if isinstance(fun, FunctionType) else ())
        self._who, self._budget = who, budget
        self._fun, self._static, self._donated = fun, static, donated
        self._device, self._inline, self._options = device, inline, dict(options or {})
        self._programs = self._shared_programs() if who == "jit" else _no_programs()

    @property
    def __signature__(self) -> inspect.Signature:
        """The signature of the function, which `inspect.signature` asks for. Raises: ValueError if it has none."""
        return inspect.signature(self._fun)

    def _shared_programs(self) -> Programs:
        """Find the programs of this function and these options, which all its `jit`s share."""
        options = tuple(sorted((name, type(value), value) for name, value in self._options.items()))
        key = (self._static.key, self._donated.key, self._device, self._inline, options, self._budget)
        try:
            hash(key)
        except TypeError:  # the value of an option: XLA may take it, or say what is wrong
            return _no_programs()
        return programs_of(self._fun, key, _no_programs)

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            if _current() is _BOTTOM:
                now = _settings()
                for settings, call in self._programs.calls:
                    if settings is now:
                        result = call(args, kwargs)
                        if result is not MISSED:
                            return result
            return self._call(args, kwargs)
        except ArgumentError as error:
            raise self._by_name(error, args, kwargs) from None

    @overload
    def __get__(self, instance: None, owner: Any = None) -> "Jitted[P, R]": ...
    @overload
    def __get__(
        self: "Jitted[Concatenate[Any, Rest], R]", instance: object, owner: Any = None
    ) -> Callable[Rest, R]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else bind_instance(self, instance)

    def trace(self, /, *args: Any, **kwargs: Any) -> Traced:
        """Trace the program for arguments of these types; `tl.ShapeDtypeStruct` will do for arrays."""
        return self._traced(*self._split(args, kwargs))

    def lower(self, /, *args: Any, **kwargs: Any) -> Lowered:
        """Lower to the StableHLO module for arguments of these types."""
        lowered = self.trace(*args, **kwargs).lower()
        lowered.function = self
        return lowered

    def eval_shape(self, /, *args: Any, **kwargs: Any) -> Any:
        """Compute shapes and dtypes of the results for arguments of these types."""
        return self.trace(*args, **kwargs).out_info

    def trace_apart(self, who: str, args: Any, kwargs: Any) -> tuple[Traced, list[Any], Any]:
        """Trace the function in the name of `who`, whatever was traced of it before; nothing is donated.

        Returns: the program, the leaves of the arguments that are not static, the device to compute on.
        Raises: TypeError if there are no values to compute with; whatever tracing raises.
        """
        no_donation = Arguments((), ())
        own = Jitted[P, R](
            self._fun, self._static, no_donation, self._device, self._inline, self._options, who, self._budget
        )
        statics, leaves, tree = own._split(args, kwargs)
        if not core.is_evaluating() or any(isinstance(x, Tracer) or _is_abstract(x) for x in leaves):
            what = core.describe_function(self._fun)
            raise TypeError(f"{who}: {what} is to be run: give values, outside of jit and grad.")
        return own._traced(statics, leaves, tree), leaves, self._device or dispatch.device_of(values_of(leaves))

    def clear_cache(self) -> None:
        """Forget all programs."""
        self._programs.clear()

    def _cache_size(self) -> int:
        """Count the compiled programs, by JAX's name."""
        return len(self._programs.compiled)

    def __repr__(self) -> str:
        return f"<jit of {core.describe_function(self._fun)}>"

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if config.disable_jit:
            return self._called(args, kwargs)
        evaluating = core.is_evaluating()
        if evaluating and config.no_execution:
            raise dispatch.execution_error(f"jit of {core.describe_function(self._fun)}")
        statics, leaves, tree = self._split(args, kwargs)
        _check_concrete(leaves, self._fun)
        if not evaluating and _are_lent(leaves):
            return self._run(args, kwargs)
        if not evaluating or any(isinstance(x, Tracer) for x in leaves):
            return self._bind(statics, leaves, tree)
        program = self._program(statics, leaves, tree)
        if program.signature.narrowings:
            program.signature.check_fit(values_of(leaves))
        elif program.references is None and _is_unwatched():
            self._remember(program, args, kwargs, statics, tree)
        return program.call(leaves)

    def _called(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the function itself, on arrays of ours as if it were traced."""
        statics: Any = ()
        if self._static:
            args, kwargs, statics = self._static.take_out(args, kwargs, self._fun)
        leaves, tree = pytree.flatten((args, kwargs))
        args, kwargs = pytree.unflatten(tree, as_arguments(leaves))
        given, named = self._static.put_back(args, kwargs, statics)
        return self._run(given, named)

    def _run(self, args: Any, kwargs: Any) -> Any:
        """Run the function itself, gradients in it within the memory budget."""
        if self._budget is None:
            return self._fun(*args, **kwargs)
        with config.scope(memory_budget=self._budget):
            return self._fun(*args, **kwargs)

    def _by_name(self, error: ArgumentError, args: Any, kwargs: Any) -> Exception:
        """Rewrite an error about arguments of the program to name what they are in the arguments of the function."""
        statics: Any = ()
        if self._static:
            args, kwargs, statics = self._static.take_out(args, kwargs, self._fun)
        describe = self._describes(statics, pytree.structure((args, kwargs)))
        outside = f"an array that {core.describe_function(self._fun)} takes from outside"
        return error.by_name(lambda i: f"{describe([i])}," if i >= 0 and describe([i]) else outside)

    def _remember(self, program: CompiledCall, args: Any, kwargs: Any, statics: Any, tree: Any) -> None:
        """Remember how to call a program with arguments such as these, if such ones were given before."""
        if self._static:
            args, kwargs, _ = self._static.take_out(args, kwargs, self._fun)
        leaves = pytree.leaves((args, kwargs))
        kinds = tuple(map(type, leaves))
        if kinds not in program.kinds:
            if len(program.kinds) < _KINDS_LIMIT:
                program.kinds.add(kinds)
            return
        if kinds not in program.known_calls:
            program.known_calls[kinds] = self._known_call(program, leaves, statics, tree.snapshot())
        known = program.known_calls[kinds]
        if known is not None:
            add_call(self._programs, known)

    def _known_call(self, program: CompiledCall, leaves: Any, statics: Any, tree: Any) -> KnownCall | None:
        n, device, signature = len(program.consts), program.executable.device, program.signature
        given = [
            argument_leaf(x, aval, device, n + i in program.donated, _type_of)
            for i, (x, aval) in enumerate(zip(leaves, signature.in_avals, strict=True))
        ]
        made = [result_leaf(aval) for aval in program.executable.out_avals]
        static = statics.codes() if statics else {}
        call = pytree.caller_of(CallCode(tree, signature.out_tree, static, given, program.consts, program.run, made))
        return None if call is None else KnownCall(_settings(), call)

    def _bind(self, statics: Any, leaves: list[Any], tree: Any) -> Any:
        traced = self._traced(statics, leaves, tree)
        closed, refs = traced.jaxpr, traced.references
        inputs = leaves if refs is None else refs.inputs(leaves)
        traced.type.check_fit(inputs)
        if self._inline:
            outs = eval_jaxpr(closed.jaxpr, [*closed.consts, *inputs])
        elif self._budget is None:
            outs = call.jit(closed.jaxpr, *closed.consts, *inputs)
        else:
            outs = checkpoint(closed.jaxpr, *closed.consts, *inputs, policy=self._budget, prevent_cse=True)
        results = outs if refs is None else refs.results(leaves, outs)
        return pytree.unflatten(traced.out_tree.snapshot(), results)

    def _program(self, statics: Any, leaves: list[Any], tree: Any) -> CompiledCall:
        device = self._device or dispatch.device_of(values_of(leaves))
        key = self._key(statics, leaves, tree, device)
        found = self._programs.compiled.get(key)
        if found is None:
            traced = self._traced(statics, leaves, tree)
            key = self._key(statics, leaves, tree.snapshot(), device)
            found = remember(self._programs.compiled, key, CompiledCall.compiled(traced, device))
        return found

    def _traced(self, statics: Any, leaves: list[Any], tree: Any) -> Traced:
        key = self._key(statics, leaves, tree, None)
        found = self._programs.traces.get(key)
        if found is None:
            self._announce(key)
            found = logs.time_work(
                lambda: ("traced", core.describe_function(self._fun), self._who),
                lambda: leaks.check_leaks(lambda: self._trace(statics, leaves, tree)),
                lambda traced: f": {traced.signature()}",
            )
            if config.debug_key_reuse:
                key_reuse.check(found.jaxpr.jaxpr)
            own = any(isinstance(c, Tracer) for c in found.jaxpr.consts)
            if not own and (found.references is None or found.references.are_global):
                remember(self._programs.traces, self._key(statics, leaves, tree.snapshot(), None), found)
        return found

    def _announce(self, key: TraceKey) -> None:
        """Log why there is no trace for a key. Raises: RuntimeError if there must be one, by `config.no_tracing`."""
        if config.no_tracing and self._who == "jit":
            function = core.describe_function(self._fun)
            raise RuntimeError(f"jit: {function} would be traced, which config.no_tracing forbids.")
        has_twin = self._who == "jit" and note_traced(self._fun)
        if config.explain_cache_misses:
            logs.warn(explain_retrace(self._who, self._fun, key, self._programs.traces, has_twin))

    def _key(self, statics: Any, leaves: list[Any], tree: Any, device: Any) -> TraceKey:
        avals = tuple([x.aval if isinstance(x, DeviceArray) else _type_of(x) for x in leaves])
        return TraceKey(avals, tree, statics, device, _settings())

    def _trace(self, statics: Any, leaves: list[Any], tree: Any) -> Traced:
        avals = [_type_of(x.value if isinstance(x, Ref) else x) for x in leaves]
        out: list[Any] = []

        def flat(*xs: Any) -> list[Any]:
            args, kwargs = pytree.unflatten(tree, xs)
            args, kwargs = self._static.put_back(args, kwargs, statics)
            result = self._run(args, kwargs)
            if self._who == "eval_shape":
                result = pytree.tree_map(_standing_for, result)
            outs, out_tree = pytree.flatten(result)
            check_arrays(f"{self._who}: the result{{}} of {core.describe_function(self._fun)}", result)
            out.append(out_tree)
            return [incoming_number(x) for x in outs]

        removed = self._static.positions(statics)
        names = names_by_position(self._fun, len(tree.children[0].children), removed)
        closed, refs = references.trace_with_references(
            flat,
            leaves,
            avals,
            tree,
            names,
            what=self._who,
            function=self._fun,
            arguments=self._describes(statics, tree),
        )
        name = str(getattr(self._fun, "__name__", "f"))
        closed = ClosedJaxpr(closed.jaxpr.replace(name="f" if name == "<lambda>" else name), closed.consts)
        donated = self._donated.leaves(tree, removed)
        function = core.describe_function(self._fun)
        if refs is not None and not set(donated).isdisjoint(refs.given):
            raise ValueError(f"jit: a donated argument of {function} is a reference, which cannot be donated.")
        found = Traced(closed, tree.snapshot(), out[0].snapshot(), donated, self._options, function, names, refs)
        if self._who == "jit" and refs is None:
            found.budget = functools.partial(_fitting_budget, weakref.ref(self), statics, avals, found.in_tree)
        return found

    def fitting_budget(self, statics: Any, avals: Sequence[ShapedArray], tree: Any, memory: Exhausted) -> str:
        """Say which budget of the gradients in the function would fit: it is traced once more, to see what they need.

        Raises: whatever tracing raises.
        """
        survey = budgets.SurveyPolicy()
        own = Jitted[P, R](self._fun, self._static, Arguments((), ()), self._device, False, None, "memory", survey)
        own._trace(statics, [ShapeDtypeStruct.of(aval) for aval in avals], tree)
        budget = self._budget if isinstance(self._budget, budgets.Budget) else None
        return fitting_budgets.describe_fitting(survey, budget, memory, core.function_name(self._fun))

    def _describes(self, statics: Any, tree: Any) -> Callable[[Sequence[int]], str]:
        """Make the function that describes arguments by the numbers of their leaves."""
        return functools.partial(describe_inputs, self._fun, tree, self._static.positions(statics))

    def _split(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, list[Any], Any]:
        """Split arguments: static ones; leaves and structure of the others."""
        statics = ()
        if self._static:
            args, kwargs, statics = self._static.take_out(args, kwargs, self._fun)
        given = args, kwargs
        tree = self._programs.tree
        leaves = tree.match(given)  # the structure of the call before: the best guess there is
        if leaves is None:
            leaves, tree = pytree.flatten(given)
            self._programs.tree = tree.snapshot()
        if config.numpy_bits == 32:
            leaves = [*map(incoming_number, leaves)]
        for i, x in enumerate(leaves):
            if not isinstance(x, (DeviceArray, Ref)) and not is_arraylike(x) and not _is_abstract(x):
                name = naming(self._fun, self._static.positions(statics))
                raise TypeError(_not_an_array(x, i, given, name, self._fun, self._who))
        return statics, leaves, tree


def _fitting_budget(
    jitted: "weakref.ref[Jitted[..., Any]]", statics: Any, avals: Sequence[ShapedArray], tree: Any, memory: Exhausted
) -> str:
    """Say which budget of the gradients in a function would fit, if it is still there."""
    function = jitted()
    return function.fitting_budget(statics, avals, tree, memory) if function else ""


def _no_programs() -> Programs:
    return Programs(pytree.LEAF)


_current, _BOTTOM = core.current_trace, core.bottom_trace()
_settings = config.trace_key
_KINDS_LIMIT = 8  # combinations of classes, as of Python's floats and arrays, for which code is written


def _check_concrete(leaves: Sequence[Any], fun: Any) -> None:
    for x in leaves:
        if _is_abstract(x):
            raise TypeError(
                f"jit: {core.describe_function(fun)} was called with {x}; only .trace and .lower take types."
            )


def _are_lent(leaves: Sequence[Any]) -> bool:
    """Tell whether there are references among arguments while a derivative is taken, or examples are mapped.

    A backward rule inside may write them later, when a program would be over: the function is run instead.
    """
    return any(isinstance(x, Ref) for x in leaves) and not isinstance(core.current_trace(), StagingTrace)


def _is_unwatched() -> bool:
    """Tell whether arguments of the right types may be handed to the executable without further checks."""
    return not (dispatch.are_watched() or config.debug_key_reuse) and devices.only_one()


# ---- types of arguments --------------------------------------------------------------------------------------


def _is_abstract(x: Any) -> bool:
    return isinstance(x, ShapeDtypeStruct)


def _standing_for(x: Any) -> Any:
    """Make zeros of the described type, in a program that does not run."""
    return instantiate(Zero(_type_of(x))) if _is_abstract(x) else x


def _type_of(x: Any) -> Any:
    if isinstance(x, Ref):
        return x.aval
    if _is_abstract(x):
        return ShapedArray(x.shape, x.dtype, x.weak_type)
    return aval_of(x).strong() if isinstance(x, np.integer) and _is_wide(x) else aval_of(x)


def _is_wide(x: Any) -> bool:
    """Tell whether a NumPy integer needs its width, so that it must not give way to a narrower array."""
    info = dtypes.iinfo(dtypes.default_dtype("i"))
    return not int(info.min) <= int(x) <= int(info.max)


def _not_an_array(x: Any, i: int, given: Any, name: Callable[[pytree.KeyPath], str], fun: Any, who: str) -> str:
    path = pytree.leaves_with_path(given)[i][0]
    advice = _IN_A_TREE if who == "jit" and len(path) > 2 else _ADVICE.get(who, CLOSE_OVER)
    return not_an_array(f"{who}: argument {name(path)} of {core.describe_function(fun)}", x, advice)


_ADVICE = {
    "jit": "\n  Make it static (static_argnums or static_argnames).",
    "make_jaxpr": "\n  Make it static (static_argnums).",
}
_IN_A_TREE = (
    "\n  Make it a static argument of its own (static_argnames), or a static field (tl.tree_util.register_dataclass)."
)
