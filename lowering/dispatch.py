"""Running programs on concrete values: primitive by primitive, or whole programs.

`executable` remembers what whole programs were compiled to, by device, donated inputs and options; `EagerEvaluator`
what primitives and small functions were, by types. A program that is new but writes the same module as one of the last
ones, without callbacks, is not compiled again.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple

from tapeless.lowering import array, devices, emit, nonfinite
from tapeless.lowering.argument_errors import ArgumentError
from tapeless.lowering.array import DeviceArray, to_device
from tapeless.lowering.compile import Executable, compile_module
from tapeless.lowering.key_array import KeyArray, run_followed, wrapped
from tapeless.lowering.unplaced_array import UnplacedArray, unplaced
from tapeless.tracer import core
from tapeless.tracer.array import Array
from tapeless.tracer.caches import Recent
from tapeless.tracer.core import Primitive, Tracer
from tapeless.tracer.jaxpr import Equation, Jaxpr, Var
from tapeless.tracer.rules import Rules
from tapeless.tracer.settings.config import config
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import ShapedArray, aval_of

inline: Final = Rules(
    "eager",
    "rule(*args, **params) -> results, computed without compiling the primitive by itself",
    absent="applied outside jit, it is compiled alone",
)


def executable(
    jaxpr: Jaxpr, device: Any, donated: tuple[int, ...] = (), options: Mapping[str, Any] | None = None
) -> Executable:
    """The compiled program, remembered for as long as `jaxpr` lives."""
    cache = _executables.setdefault(jaxpr, {})
    given = tuple(sorted(options.items())) if options else ()
    key = (device, donated, given)
    found = cache.get(key)
    if found is None:
        module = emit.module(jaxpr, donated, jaxpr.name, device.platform)
        # What calls the host is of this program only: its text says nothing of the functions that it calls.
        compiled = _compiled if not module.callbacks else functools.partial(_compiled_for_host, module.callbacks)
        found = cache[key] = compiled(module.text, jaxpr.out_avals, device, given)
    return found


def compiled_anew(
    jaxpr: Jaxpr, device: Any, donated: tuple[int, ...] = (), options: Mapping[str, Any] | None = None
) -> Executable:
    """Compile a program without the cache on disk, so that jaxlib can serialise it."""
    module = emit.module(jaxpr, donated, jaxpr.name, device.platform)
    return compile_module(
        module.text,
        out_avals=jaxpr.out_avals,
        device=device,
        options=options,
        callbacks=module.callbacks,
        use_cache=False,
    )


@functools.lru_cache(maxsize=256)
def _compiled(text: str, out_avals: tuple[ShapedArray, ...], device: Any, options: tuple[Any, ...]) -> Executable:
    """The compiled module: programs traced again and again, such as the bodies of eager loops, compile once."""
    return compile_module(text, out_avals=out_avals, device=device, options=dict(options))


def _compiled_for_host(callbacks: Sequence[Any], text: str, out_avals: Any, device: Any, options: Any) -> Executable:
    return compile_module(
        text, out_avals=out_avals, device=device, options=dict(options), callbacks=callbacks, use_cache=False
    )


def run(jaxpr: Jaxpr, args: Sequence[Any], name: str = "") -> tuple[DeviceArray, ...]:
    """Compute a program, which messages may call by another name than its own, on concrete values.

    Raises: FloatingPointError with `config.debug_nans`, see nonfinite.py.
    """
    device = device_of(args)
    bufs = [buffer_on(x, device) for x in args]
    try:
        outs = executable(jaxpr, device).call(bufs)
    except ArgumentError as error:
        raise error.by_name("argument {}".format) from None
    if nonfinite.are_watched():
        nonfinite.check_program(jaxpr, outs, args, name=name)
    return committed_as(args, outs)


def apply(primitive: Primitive, args: Sequence[Any], params: dict[str, Any], owner: Jaxpr) -> tuple[DeviceArray, ...]:
    """Compute a primitive that applies programs, compiled once for as long as `owner`, one of them, lives."""
    avals, bufs, device = _operands(args)
    cache = _eager_control_flow.setdefault(owner, {})
    key = (primitive, device, avals, *[item for item in params.items() if item[1] is not owner])
    found = cache.get(key)
    if found is None:
        found = cache[key] = executable(_program(primitive, avals, params), device)
    try:
        return committed_as(args, found.call(bufs))
    except ArgumentError as error:
        raise error.by_name(lambda i: f"operand {i} of '{primitive}'") from None


_EAGER_LIMIT = 1024  # operations, of which each holds machine code


class EagerEvaluator:
    """Fills the slot at the bottom of `tracer.core`."""

    def __init__(self) -> None:
        self._primitives: Recent[Any, Executable] = Recent(_EAGER_LIMIT)
        self._functions: Recent[Any, _CompiledFunction] = Recent(_EAGER_LIMIT)

    def evaluate(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> tuple[Any, ...]:
        """Compute one primitive; its program is compiled for every combination of types and params once."""
        if config.no_execution:
            raise execution_error(str(primitive))
        if primitive.takes_keys and config.debug_key_reuse and _are_followed(args, params):
            program = _program(primitive, [*map(aval_of, args)], params)
            return tuple(run_followed(program, args, lambda: self._evaluated(primitive, args, params)))
        return self._evaluated(primitive, args, params)

    def _evaluated(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> tuple[Any, ...]:
        rule = inline.get(primitive)
        if rule is not None:
            return rule(*args, **params)
        avals, bufs, device = _operands(args)
        key = (primitive, device, avals, *params.items())
        found = self._primitives.get(key) or self._primitives.recall(key)
        if found is None:
            found = self._primitives.enter(key, executable(_program(primitive, avals, params), device))
        try:
            outs = found.call(bufs)
        except ArgumentError as error:
            raise error.by_name(lambda i: f"operand {i} of '{primitive}'") from None
        if nonfinite.are_watched():
            nonfinite.check(primitive, outs, args)
        return committed_as(args, outs)

    def evaluate_function(self, f: Callable[..., Any], args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Compute a function of arrays, made of several primitives, as one program."""
        if config.no_execution:
            raise execution_error(core.describe_function(f))
        avals, bufs, device = _operands(args)
        key = (f, device, config.trace_key(), avals, *params.items())
        found = self._functions.get(key) or self._functions.recall(key)
        if found is None:
            found = self._functions.enter(key, _compile_function(f, avals, params, device))
        try:
            outs = self._watched(found, args, bufs) if found.watched else found.run([*found.consts, *bufs])
        except ArgumentError as error:
            raise error.after(len(found.consts)).by_name(lambda i: f"operand {i} of '{f.__name__}'") from None
        outs = committed_as(args, outs)
        return outs[0] if found.single else outs

    def _watched(self, f: "_CompiledFunction", args: tuple[Any, ...], bufs: list[Any]) -> Sequence[Any]:
        """Run a function whose keys, or results, are watched."""
        assert f.watched is not None
        given = [*map(wrapped, f.consts, f.watched.in_avals), *args]
        outs = run_followed(f.watched, given, lambda: f.run([*f.consts, *bufs]))
        if nonfinite.are_watched():
            nonfinite.check_program(f.watched, outs, given, len(f.consts))
        return outs

    def unplaced(self, x: Any) -> Array:
        """Make an array of a number or a NumPy array, on whichever device it is used."""
        return unplaced(x)

    def place(self, x: Array, device: Any) -> Array:
        """Put an array on a device, by copy unless it is there; a traced one stays."""
        found = devices.of_placement("device", device)
        return x if isinstance(x, Tracer) else array.device_put(x, found)


def _are_followed(args: Sequence[Any], params: dict[str, Any]) -> bool:
    """Tell whether there are keys among operands to be followed; a custom function follows them as it computes."""
    return any(isinstance(x, KeyArray) for x in args) and params.get("jaxpr", args) is not None


def execution_error(what: str) -> RuntimeError:
    """The error for running something where `config.no_execution` is set."""
    return RuntimeError(f"{what} would be run, which config.no_execution forbids.")


class _CompiledFunction(NamedTuple):
    """A compiled function of arrays; is its result one array; the program, if its keys or results are watched."""

    run: Callable[[list[Any]], list[DeviceArray]]
    consts: list[Any]
    single: bool
    watched: Jaxpr | None


def _program(primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any]) -> Jaxpr:
    """A primitive as a program."""
    invars = [Var(aval) for aval in avals]
    outvars = [Var(aval) for aval in primitive.type(tuple(avals), params)]
    return Jaxpr(invars, [Equation(primitive, invars, params, outvars)], outvars, primitive.name)


def _compile_function(f: Callable[..., Any], avals: Any, params: dict[str, Any], device: Any) -> _CompiledFunction:
    jaxpr, consts, single = trace_function(f, avals, params)
    run = executable(jaxpr, device).call
    watched = jaxpr if nonfinite.are_watched() or config.debug_key_reuse else None
    return _CompiledFunction(run, [buffer_on(c, device) for c in consts], single, watched)


def trace_function(f: Callable[..., Any], avals: Any, params: dict[str, Any]) -> tuple[Jaxpr, Sequence[Any], bool]:
    """Trace a function of arrays; return the program, its constants, and whether its result is one array."""
    single = False

    def flat(*xs: Any) -> Any:
        nonlocal single
        outs = f(*xs, **params)
        single = not isinstance(outs, (tuple, list))
        return (outs,) if single else outs

    return *trace_to_jaxpr(flat, avals, function=f), single


def _operands(args: Sequence[Any]) -> tuple[tuple[ShapedArray, ...], list[Any], Any]:
    """Types and buffers of values, and the device to compute on; at once if all are arrays of ours."""
    device = devices.only()
    if device is None:
        device = device_of(args)
        args = [on_device(x, device) if is_placed(x) else x.host if type(x) is UnplacedArray else x for x in args]
    try:
        return tuple(map(_aval, args)), list(map(_buf, args)), device
    except AttributeError:
        pass  # what is raised below does not follow this error
    avals = tuple([x.aval if isinstance(x, DeviceArray) else _concrete(x) for x in args])
    return avals, [x.buf if is_placed(x) else to_device(x, aval, device).buf for x, aval in zip(args, avals)], device


def device_of(args: Sequence[Any]) -> Any:
    """The device on which values are computed with: that of the arrays that are committed to one, else the default."""
    only = devices.only()
    if only is not None:
        return only
    found = {x.device for x in args if is_placed(x) and x.committed}
    if len(found) > 1:
        raise ValueError(
            f"arrays are on different devices: {', '.join(sorted(map(str, found)))}. "
            "Move them with tl.device_put(x, device)."
        )
    return found.pop() if found else devices.current_device()


def committed_as(args: Sequence[Any], outs: Sequence[DeviceArray]) -> tuple[DeviceArray, ...]:
    """Commit results to their device if an operand is committed to it; where there is one device it does not matter."""
    if devices.only() is None and any(is_placed(x) and x.committed for x in args):
        return tuple([x.commit() for x in outs])
    return tuple(outs)


def on_device(x: Any, device: Any) -> DeviceArray:
    """A value as an array on `device`; an array of ours that is there is returned."""
    return x if is_on(x, device) else to_device(x, _concrete(x), device)


def is_on(x: Any, device: Any) -> bool:
    """Tell whether a value is on `device` already."""
    return is_placed(x) and (devices.only() is device or x.device is device)


def buffer_on(x: Any, device: Any) -> Any:
    """The buffer of a value on `device`."""
    return on_device(x, device).buf


def is_placed(x: Any) -> bool:
    """Tell whether a value is on a device already."""
    return isinstance(x, DeviceArray) and not isinstance(x, UnplacedArray)


_aval, _buf = attrgetter("aval"), attrgetter("buf")


def _concrete(x: Any) -> ShapedArray:
    """Type of a value to compute with. Raises: UnexpectedTracerError for a tracer."""
    if isinstance(x, Tracer):
        raise core.leak_error(x)
    return aval_of(x)


_executables = core.program_cache()
_eager_control_flow = core.program_cache()


def clear_executables() -> None:
    """Forget every compiled program. Those on disk stay."""
    core.set_evaluator(EagerEvaluator())
    _compiled.cache_clear()
    _executables.clear()
    _eager_control_flow.clear()
