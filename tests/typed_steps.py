"""Eager operations that compute types only: results have the type that the operation gives, and each element is 1."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tapeless.lowering import devices, dispatch
from tapeless.lowering.array import DeviceArray
from tapeless.lowering.dispatch import EagerEvaluator
from tapeless.lowering.xla_workarounds import compat
from tapeless.tracer import core
from tapeless.tracer.core import Primitive
from tapeless.tracer.settings.config import config
from tapeless.tracer.types import ShapedArray, aval_of, holds_keys


@contextmanager
def by_types() -> Iterator[None]:
    """Give eager operations' results by their types within, which compiles nothing."""
    before = core._bottom.evaluator
    assert before is not None
    core.set_evaluator(_TypingEvaluator())
    try:
        yield
    finally:
        core.set_evaluator(before)


class _TypingEvaluator(EagerEvaluator):
    def __init__(self) -> None:
        super().__init__()
        self._arrays: dict[ShapedArray, DeviceArray] = {}
        self._types: dict[Any, tuple[tuple[ShapedArray, ...], bool]] = {}

    def _evaluated(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> tuple[Any, ...]:
        if primitive in dispatch.inline:
            return super()._evaluated(primitive, args, params)
        types = primitive.type(tuple(map(aval_of, args)), params)
        if any(map(holds_keys, types)):
            return super()._evaluated(primitive, args, params)
        return tuple(map(self._array, types))

    def evaluate_function(self, f: Callable[..., Any], args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        avals = tuple(map(aval_of, args))
        key = (f, config.trace_key(), avals, *params.items())
        if key not in self._types:
            jaxpr, _, single = dispatch.trace_function(f, avals, params)
            self._types[key] = tuple(v.aval for v in jaxpr.outvars), single
        types, single = self._types[key]
        outs = [*map(self._array, types)]
        return outs[0] if single else tuple(outs)

    def _array(self, aval: ShapedArray) -> DeviceArray:
        if aval not in self._arrays:
            device = devices.current_device()
            ones = np.ones(aval.shape, aval.dtype)
            self._arrays[aval] = DeviceArray(compat.put(ones, aval, device.sharding, device.handle))
        return self._arrays[aval]
