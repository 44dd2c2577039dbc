"""Eager operations computed by the oracle; afterwards all of them by XLA, many in one program, and compared.

An eager operation is compiled for every combination of types, ten milliseconds each, two thirds of them the price
of a program, not of what is in it. Tests of functions that are made of primitives compute thousands of them, each once.
So the oracle gives the values that such tests compare with NumPy's, and after the last test of a module XLA computes
each of these operations of the same operands: its values are the oracle's, bit for bit where they are rounded once.

Left to XLA at once: what has rules of its own outside `jit`, decompositions, whose signs or nans are their own, large
operands, subnormal operands and results, those on other devices than the current one, operations that are computed of
many different operands from the seventeenth on, and everything while nans or keys are watched.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from tapeless.lowering import devices, dispatch
from tapeless.lowering.array import DeviceArray
from tapeless.lowering.dispatch import EagerEvaluator
from tapeless.lowering.xla_workarounds import compat
from tapeless.tracer import core, dtypes, source
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Jaxpr
from tapeless.tracer.settings.config import config
from tapeless.tracer.types import ShapedArray
from tests.fuzzing import oracle

source.register_exclusion(__file__)  # errors name the line of the test

_LEFT = {"eigh", "eig", "svd", "qr", "schur", "geqrf", "hessenberg", "tridiagonal", "cholesky", "tridiagonal_solve"}
_LARGE = 1 << 14  # elements
_OFTEN = 16  # times, after which compiling an operation by itself costs less
_TOGETHER = 100  # operations of a program

# Movements of elements, and operations that are rounded once: XLA's values are the oracle's bit for bit.
_EXACT = set(
    "add sub mul neg max min sign sqrt floor ceil round rem nextafter real imag complex conj convert_element_type copy "
    "bitcast_convert_type broadcast_in_dim reshape transpose rev slice pad concatenate split iota select_n gather sort "
    "dynamic_slice dynamic_update_slice stop_gradient scatter reduce_max reduce_min".split()
)
_OF_PARTS = {"mul", "sign", "sqrt"}  # several operations if numbers are complex
# Sums and products of many numbers, in an order of XLA's own, and what cancels: the error is of the operands' size.
_LONG = set(
    "reduce_sum reduce_prod cumsum cumprod dot_general conv_general_dilated det adjugate lu pinv cholesky "
    "triangular_solve tridiagonal_solve least_squares scatter_add scatter_mul fft".split()
)


@contextmanager
def by_steps() -> Iterator[None]:
    """Compute eager operations by the oracle within; at the end, all of them by XLA. Raises: AssertionError."""
    before, steps = core._bottom.evaluator, SteppingEvaluator()
    assert before is not None
    core.set_evaluator(steps)
    try:
        yield
    finally:
        core.set_evaluator(before)
    if wrong := steps.wrong():
        raise AssertionError("\n".join(wrong))


class _Operation(NamedTuple):
    """A program of one operation; what it gave for which operands; whether it has one result, outside any tuple."""

    jaxpr: Jaxpr
    consts: list[Any]
    single: bool
    runs: dict[bytes, tuple[list[Any], list[Any]]]


class SteppingEvaluator(EagerEvaluator):
    """Computes by the oracle, and remembers what."""

    def __init__(self) -> None:
        super().__init__()
        self._operations: dict[Any, _Operation | None] = {}

    def _evaluated(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> tuple[Any, ...]:
        outs = None
        if primitive not in dispatch.inline:
            key = (primitive, *params.items())
            outs = self._stepped(key, args, lambda avals: _of_primitive(primitive, avals, params))
        return super()._evaluated(primitive, args, params) if outs is None else outs

    def evaluate_function(self, f: Callable[..., Any], args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        key = (f, config.trace_key(), *params.items())
        outs = self._stepped(key, args, lambda avals: _of_function(f, avals, params))
        return super().evaluate_function(f, args, params) if outs is None else outs

    def _stepped(self, key: Any, args: Sequence[Any], program: Callable[[Any], _Operation]) -> Any:
        """Compute by the oracle; None if XLA has to."""
        avals, bufs, device = dispatch._operands(args)
        if dispatch.are_watched() or config.debug_key_reuse or device != devices.current_device():
            return None
        key = (*key, avals)
        if key not in self._operations:
            made = program(avals)
            self._operations[key] = made if _is_plain(made.jaxpr) else None
        operation = self._operations[key]
        if operation is None:
            return None
        computed = _computed(operation, [*operation.consts, *map(compat.to_numpy, bufs)])
        if computed is None:
            return None
        outs = [_on_device(x, v.aval, device) for x, v in zip(computed, operation.jaxpr.outvars)]
        outs = dispatch.committed_as(args, outs)
        return outs[0] if operation.single else tuple(outs)

    def wrong(self) -> list[str]:
        """Compute all operations by XLA, and say where it gives something else than the oracle."""
        used = [operation for operation in self._operations.values() if operation is not None and operation.runs]
        operations = sorted(used, key=lambda operation: -len(operation.runs))
        chunks = [operations[i : i + _TOGETHER] for i in range(0, len(operations), _TOGETHER)]
        return [what for chunk in chunks for what in _wrong(chunk)]


def _of_primitive(primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any]) -> _Operation:
    return _Operation(dispatch._program(primitive, avals, params), [], False, {})


def _of_function(f: Callable[..., Any], avals: Sequence[ShapedArray], params: dict[str, Any]) -> _Operation:
    jaxpr, consts, single = dispatch.trace_function(f, avals, params)
    return _Operation(jaxpr, [*map(np.asarray, consts)], single, {})


def _is_plain(jaxpr: Jaxpr) -> bool:
    """Whether the oracle computes a program: it knows the primitives, and values are small and of numbers."""
    names = {eqn.primitive.name for eqn in jaxpr.eqns}
    avals = [v.aval for v in (*jaxpr.invars, *(v for eqn in jaxpr.eqns for v in eqn.outvars))]
    return names <= oracle.meanings.keys() - _LEFT and all(
        aval.size <= _LARGE and isinstance(aval.dtype, np.dtype) and aval.dtype != dtypes.float0 for aval in avals
    )


def _computed(operation: _Operation, values: list[Any]) -> list[Any] | None:
    """Compute an operation by the oracle, or remember what it gave; None for XLA's part of the operands."""
    key = b"".join(x.tobytes() for x in values)
    if key not in operation.runs:
        if len(operation.runs) == _OFTEN or any(map(_has_subnormals, values)):
            return None
        outs = oracle.evaluate(operation.jaxpr, values)
        if any(map(_has_subnormals, map(np.asarray, outs))):
            return None
        operation.runs[key] = [x.copy() for x in values], outs
    return operation.runs[key][1]


def _has_subnormals(x: np.ndarray[Any, Any]) -> bool:
    """Whether elements are so small that some of XLA's threads, which run larger programs, take them for 0."""
    if not dtypes.is_float(x.dtype):
        return False
    with np.errstate(invalid="ignore"):
        return bool(np.any((x != 0) & (abs(x) < dtypes.finfo(x.dtype).smallest_normal)))


def _on_device(x: Any, aval: ShapedArray, device: Any) -> DeviceArray:
    return DeviceArray(compat.put(np.asarray(x, aval.dtype), aval, device.sharding, device.handle))


def _wrong(operations: Sequence[_Operation]) -> Iterator[str]:
    """Compute operations in one program, as often as the first one was, and compare."""
    run = dispatch.executable(_joined(operations), device := devices.current_device())
    avals = [v.aval for operation in operations for v in operation.jaxpr.invars]
    runs = [[*operation.runs.values()] for operation in operations]
    for k in range(len(runs[0])):
        values = [x for one in runs for x in one[min(k, len(one) - 1)][0]]
        found = iter(run.call([_on_device(x, aval, device).buf for x, aval in zip(values, avals, strict=True)]))
        for operation, one in zip(operations, runs, strict=True):
            got = [next(found) for _ in operation.jaxpr.outvars]
            if k < len(one):
                yield from _differences(operation.jaxpr, *one[k], got)


def _differences(jaxpr: Jaxpr, args: Sequence[Any], outs: Sequence[Any], found: Sequence[Any]) -> Iterator[str]:
    for expected, got in zip(outs, map(np.asarray, found), strict=True):
        if not _agree(jaxpr, args, got, expected):
            yield f"{jaxpr}\n  of {args} is {got} by XLA, {expected} by the oracle."


def _joined(operations: Sequence[_Operation]) -> Jaxpr:
    """One program of operations that have nothing to do with each other."""
    programs = [operation.jaxpr for operation in operations]
    invars, eqns, outvars = ([x for p in programs for x in getattr(p, name)] for name in ("invars", "eqns", "outvars"))
    return Jaxpr(invars, eqns, outvars, "operations")


def _agree(jaxpr: Jaxpr, args: Sequence[Any], got: Any, expected: Any) -> bool:
    """Whether XLA's values are the oracle's, up to a few units in the last place of the greatest element."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return False
    inexact, names = dtypes.is_inexact(got.dtype), {eqn.primitive.name for eqn in jaxpr.eqns}
    if not inexact or names <= (_EXACT - _OF_PARTS if dtypes.is_complex(got.dtype) else _EXACT):
        return np.array_equal(got, expected, equal_nan=inexact)
    scale, ulps = (max(map(_greatest, [*args, expected])), 64) if names & _LONG else (_greatest(expected), 4)
    wide = np.complex128 if dtypes.is_complex(got.dtype) else np.float64
    near = ulps * float(dtypes.finfo(got.dtype).eps)
    return np.allclose(got.astype(wide), expected.astype(wide), rtol=near, atol=near * scale, equal_nan=True)


def _greatest(x: Any) -> float:
    """The greatest magnitude of elements that are finite."""
    wide = np.abs(x.astype(np.complex128)) if dtypes.is_inexact(x.dtype) else np.abs(x.astype(np.float64))
    return float(np.max(wide[np.isfinite(wide)], initial=0))
