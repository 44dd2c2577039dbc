"""Running programs on concrete values: primitive by primitive, or whole programs.

`executable` remembers what whole programs were compiled to, by device, donated inputs and options; `EagerEvaluator`
what primitives and small functions were, by types. A program that is new but writes the same module as one of the last
ones, without callbacks, is not compiled again.
"""

import functools
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tapeless.lowering import array, devices, emit
from tapeless.lowering.argument_errors import ArgumentError
from tapeless.lowering.array import DeviceArray, to_device
from tapeless.lowering.compile import Executable, compile_module
from tapeless.lowering.devices import Device
from tapeless.lowering.host_values import array_reader, is_read
from tapeless.lowering.key_array import KeyArray, run_followed, wrap_buffer
from tapeless.tracer import core, dtypes, source
from tapeless.tracer.array import Array, Unplaced
from tapeless.tracer.caches import Recent
from tapeless.tracer.core import Primitive, Tracer
from tapeless.tracer.jaxpr import Equation, Jaxpr, Var
from tapeless.tracer.primitives.operands import constant
from tapeless.tracer.rules import Rules
from tapeless.tracer.settings.config import config
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import Exact, ShapedArray, aval_of, exact, narrow_array, take_array

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
        found.program = weakref.ref(jaxpr)
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

    Raises: FloatingPointError with `config.debug_nans`, see `check_finite_program`.
    """
    device = device_of(args)
    bufs = [buffer_on(x, device) for x in args]
    try:
        outs = executable(jaxpr, device).call(bufs)
    except ArgumentError as error:
        raise error.by_name("argument {}".format) from None
    if are_watched():
        check_finite_program(jaxpr, outs, args, name=name)
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

    array_type = DeviceArray

    def __init__(self) -> None:
        self._primitives: Recent[Any, Executable] = Recent(_EAGER_LIMIT)
        self._functions: Recent[Any, _CompiledFunction] = Recent(_EAGER_LIMIT)
        self._numbers: Recent[Any, DeviceArray] = Recent(_EAGER_LIMIT)

    def evaluate(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> tuple[Any, ...]:
        """Compute one primitive; its program is compiled for every combination of types and params once."""
        if config.is_plain():
            return self._evaluated(primitive, args, params)
        if config.no_execution:
            raise execution_error(str(primitive))
        if primitive.takes_keys and config.debug_key_reuse and _are_followed(args, params):
            program = _program(primitive, [*map(aval_of, args)], params)
            return tuple(run_followed(program, args, lambda: self._checked(primitive, args, params)))
        return self._checked(primitive, args, params)

    def _checked(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> tuple[Any, ...]:
        outs = self._evaluated(primitive, args, params)
        if are_watched() and primitive not in inline:
            check_finite(primitive, outs, args)
        return outs

    def _evaluated(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> tuple[Any, ...]:
        rule = inline.get(primitive)
        if rule is not None:
            return rule(*args, **params)
        avals, bufs, device = _operands(args)
        key = (primitive, device, avals, *params.items()) if params else (primitive, device, avals)
        found = self._primitives.get(key) or self._primitives.recall(key)
        if found is None:
            found = self._primitives.enter(key, executable(_program(primitive, avals, params), device))
        try:
            outs = found.call(bufs)
        except ArgumentError as error:
            raise error.by_name(lambda i: f"operand {i} of '{primitive}'") from None
        return tuple(outs) if device is devices.only() else committed_as(args, outs)

    def evaluate_function(self, f: Callable[..., Any], args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Compute a function of arrays, made of several primitives, as one program."""
        avals, bufs, device = _operands(args)
        key = (
            (f, device, config.trace_key(), avals, *params.items())
            if params
            else (f, device, config.trace_key(), avals)
        )
        found = self._functions.get(key) or self._functions.recall(key)
        if found is None:
            if config.no_execution:  # a setting that is a part of the key
                raise execution_error(core.describe_function(f))
            found = self._functions.enter(key, _compile_function(f, avals, params, device))
        try:
            if found.watched is not None:
                outs = self._watched(found, args, bufs)
            else:
                outs = found.run([*found.consts, *bufs] if found.consts else bufs)
        except ArgumentError as error:
            raise error.after(len(found.consts)).by_name(lambda i: f"operand {i} of '{f.__name__}'") from None
        if device is not devices.only():
            outs = committed_as(args, outs)
        return outs[0] if found.single else tuple(outs)

    def _watched(self, f: "_CompiledFunction", args: tuple[Any, ...], bufs: list[Any]) -> Sequence[Any]:
        """Run a function whose keys, or results, are watched."""
        assert f.watched is not None
        given = [*map(wrap_buffer, f.consts, f.watched.in_avals), *args]
        outs = run_followed(f.watched, given, lambda: f.run([*f.consts, *bufs]))
        if are_watched():
            check_finite_program(f.watched, outs, given, len(f.consts))
        return outs

    def number(self, x: int | float, aval: ShapedArray) -> Array:
        """Make an array of a number, which is kept. Raises: OverflowError for an integer that does not fit."""
        key = (x or repr(x), aval, device := devices.only())
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers.recall(key)
        if found is None:
            number = constant(x, aval)
            made = UnplacedArray(number, aval) if device is None else array.put(number, aval, device)
            found = self._numbers.enter(key, made)
        return found

    def unplaced(self, x: Any) -> Array:
        """Make an array of a number or a NumPy array, on whichever device it is used."""
        return unplaced(x)

    def put_on_device(self, x: Array, device: Any) -> Array:
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
    watched = jaxpr if are_watched() or config.debug_key_reuse else None
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
    avals, bufs = [], []
    for x in args:
        if isinstance(x, DeviceArray):
            avals.append(x.aval)
        elif type(x) is Exact and (there := x.placed) is not None and there[0] is device:
            x = there[1]
            avals.append(x.aval)
        else:
            avals.append(aval := _concrete(x))  # not the type of what is taken: float0 travels as booleans
            if is_read(x, aval):
                bufs.append(array_reader(aval, device)(x))
                continue
            x = _taken(x, aval, device)
        bufs.append(x.buf)
    return tuple(avals), bufs, device


def _taken(x: Any, aval: ShapedArray, device: Device) -> DeviceArray:
    """Put a value that is no array of ours on a device; a number of a program's stays there for as long as it lives."""
    if type(x) is not Exact or x.ndim:
        return to_device(x, aval, device)
    x.placed = device, (number := array.put(x, aval, device))
    return number


def device_of(args: Sequence[Any]) -> Any:
    """The device on which values are computed with: that of the arrays committed to one, else the default."""
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


# ---- arrays that are not placed yet --------------------------------------------------------------------------
# `UnplacedArray`: a number or a NumPy array as an array of ours, which goes to a device when it is computed with.
#
# Users' functions are called with these where a transformation has no more than a number: the seed of a gradient, a
# residual, an operand that somebody wrote. So operators and promotion are ours there, and on whichever device the
# other operands are. The elements are a copy that nobody can write to, and the buffer belongs to this array alone.


class UnplacedArray(DeviceArray, Unplaced):
    """An array whose elements are NumPy's. It has a buffer, on the current device, from when one is asked for."""

    __slots__ = ("_buf", "host")

    def __init__(self, host: Any, aval: ShapedArray) -> None:
        self._buf: Any = None
        self.aval: ShapedArray = aval
        self.host: Final = host

    @property
    def buf(self) -> Any:  # type: ignore[override]  # an attribute of other arrays
        """The buffer, made when it is first asked for."""
        if self._buf is None:
            self._buf = array.put(self.host, self.aval, devices.current_device()).buf
        return self._buf

    @buf.setter
    def buf(self, buf: Any) -> None:
        self._buf = buf

    def is_deleted(self) -> bool:
        """Tell whether it was given up: by `delete`, or by donating it to a program."""
        return self._buf is not None and self._buf.is_deleted()

    def placed(self, aval: ShapedArray, device: Device) -> DeviceArray:
        """Return an array on `device` with type `aval`."""
        return array.to_device(self._host(), aval, device)

    def _host(self) -> np.ndarray[Any, Any]:
        if self.is_deleted():
            self.live()
        return np.asarray(self.host)


def unplaced(x: Any) -> UnplacedArray:
    """Make an array of a number or a NumPy array, of the type that these have.

    Raises: OverflowError for an integer of Python's that does not fit it, or an element if `config.numpy_bits` is 32.
    """
    aval = aval_of(x)
    array.check_number_fits(x, aval)
    if not isinstance(x, np.ndarray):
        number = exact(x, aval.dtype)
        return UnplacedArray(number[()] if aval.weak_type else number, aval)
    return UnplacedArray(
        narrow_array(x, aval.dtype) if dtypes.is_narrower(aval.dtype, x.dtype) else take_array(x), aval
    )


# ---- values that are not finite ------------------------------------------------------------------------------
# Checks of results for nan and infinities: `config.debug_nans`, `config.debug_infs`.


def are_watched() -> bool:
    """Tell whether results that are not finite are errors."""
    return config.debug_nans or config.debug_infs


def nonfinite_in(outs: Sequence[DeviceArray]) -> str:
    """Return "nan" or "inf" if a result has such an element and the settings make that an error; else ""."""
    watched = [(name, test) for name, test, watch in _TESTS if getattr(config, watch)]
    return next((name for name, test in watched if any(_has(x, test) for x in outs)), "")


def check_finite(primitive: Primitive, outs: Sequence[DeviceArray], operands: Sequence[Any]) -> None:
    """Raises: FloatingPointError, if a result of a primitive is bad, naming it, the line that it came from, and the
    cause: an operand already bad, or two whose combination is."""
    found = nonfinite_in(outs)
    if found:
        here, why = source.describe_here(), _explained(found, primitive.name, operands)
        raise FloatingPointError(f"{found} in the result of '{primitive}'{f', at {here}' if here else ''}.{why}")


def check_finite_program(
    jaxpr: Jaxpr, outs: Sequence[DeviceArray], args: Sequence[Any], n_constants: int = 0, name: str = ""
) -> None:
    """Check the results `outs` of a program; if one is not finite, run its equations one by one.

    Args:
      n_constants: how many of `args` come first that are constants of the program.
      name: what the program is called in messages, if not by its own name.
    Raises: FloatingPointError naming the first equation with a result that is not finite, or the program if it gives
      such a constant. An argument that is handed back is no result of anything.
    """
    if not nonfinite_in(outs):
        return
    with config.scope(debug_key_reuse=False):  # keys were followed when the program was run
        _run_by_equations(jaxpr, args)
    consts = set(jaxpr.invars[:n_constants])
    for i, (v, x) in enumerate(zip(jaxpr.outvars, outs)):
        found = "" if isinstance(v, Var) and v not in consts else nonfinite_in([x])
        if found:
            here, which = source.describe_here(), "the result" if len(outs) == 1 else f"result {i}"
            at = f", at {here}" if here else ""
            raise FloatingPointError(
                f"{found} in {which} of {name or jaxpr.name or 'f'}{at}.\n  It is a constant there."
            )


def _run_by_equations(jaxpr: Jaxpr, args: Sequence[Any]) -> None:
    env: dict[Any, Any] = dict(zip(jaxpr.invars, args, strict=True))
    for eqn in jaxpr.eqns:
        operands = [env[v] if isinstance(v, Var) else v.value for v in eqn.invars]
        results = source.at(eqn.source, eqn.primitive.apply, *operands, **eqn.params)
        env.update(zip(eqn.outvars, results))


def _has(x: Any, test: Callable[[Any], Any]) -> bool:
    return dtypes.is_inexact(aval_of(x).dtype) and bool(test(_wide(x)).any())


def _wide(x: Any) -> Any:
    """The elements of an inexact array, as NumPy tests them."""
    return np.asarray(x).astype(_WIDE[aval_of(x).dtype.kind])


def _explained(found: str, name: str, operands: Sequence[Any]) -> str:
    """Name the operands that hold bad values already, or else the cause among their values."""
    test = next(test for bad, test, _ in _TESTS if bad == found)
    bad = [f"its {which} operand, {aval_of(x).strong()}," for which, x in zip(_ORDINALS, operands) if _has(x, test)]
    if bad:
        whose = "Its operand" if len(operands) == 1 else " and ".join(bad).replace("its", "Its", 1)
        return f"\n  {whose} already hold{'s' * (len(bad) == 1)} {found}."
    if (found, name) not in _CAUSES or not all(dtypes.is_inexact(aval_of(x).dtype) for x in operands):
        return ""
    return next((f"\n  {text}" for cause, text in _CAUSES[found, name] if np.any(cause(*map(_wide, operands)))), "")


def _zero_and_infinity(x: Any, y: Any) -> Any:
    return ((x == 0) & np.isinf(y)) | (np.isinf(x) & (y == 0))


def _infinities(x: Any, y: Any) -> Any:
    return np.isinf(x) & np.isinf(y)


_ORDINALS = ("first", "second", "third", "fourth")
_CAUSES: Mapping[tuple[str, str], Sequence[tuple[Callable[..., Any], str]]] = {
    ("nan", "mul"): ((_zero_and_infinity, "It is 0 times infinity."),),
    ("nan", "add"): ((_infinities, "It is a difference of infinities."),),
    ("nan", "sub"): ((_infinities, "It is a difference of infinities."),),
    ("nan", "div"): (
        (lambda x, y: (x == 0) & (y == 0), "It is 0 divided by 0."),
        (_infinities, "It is infinity divided by infinity."),
    ),
    ("inf", "div"): ((lambda x, y: (x != 0) & (y == 0), "It is a division by 0."),),
    ("inf", "log"): ((lambda x: x == 0, "It is the logarithm of 0."),),
}
_TESTS = (("nan", np.isnan, "debug_nans"), ("inf", np.isinf, "debug_infs"))
_WIDE: Mapping[str, Any] = {"f": np.float64, "V": np.float64, "c": np.complex128}
