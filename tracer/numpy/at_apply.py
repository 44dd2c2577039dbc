"""`x.at[index].apply(f)` with repeated positions: apply f once for each time that an element is indexed.

As NumPy's `ufunc.at`. A loop applies f to all indexed elements as many times as the most frequent position occurs; each
element keeps its value after its own number of times. Then the elements are written back: equal positions write equal
values. If positions are known, so is the number of steps, and the loop is a scan; else it is a while loop.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapeless.tracer.array import Array
from tapeless.tracer.core import Tracer
from tapeless.tracer.numpy.arithmetic import select
from tapeless.tracer.numpy.index_plan import IndexPlan
from tapeless.tracer.primitives import control_flow
from tapeless.tracer.primitives import elementwise as lax
from tapeless.tracer.primitives.operands import known_elements
from tapeless.tracer.primitives.reduction import reduce_max
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import ShapedArray, aval_of

Function = Callable[[Array], Array]
_COUNTER = ShapedArray((), np.dtype(np.int32))


def times_named(plan: IndexPlan, positions: Sequence[Any]) -> np.ndarray[Any, Any]:
    """Count how often an index names each element, in the shape of the indexed part; positions are known."""
    vectors = np.stack([np.broadcast_to(p, plan.block).ravel() for p in positions])
    _, same, counts = np.unique(vectors, axis=1, return_inverse=True, return_counts=True)
    after = len(plan.layout) - plan.first - len(plan.block)
    times = counts[same.ravel()].astype(np.int32).reshape(plan.block + (1,) * after)
    return np.broadcast_to(times, plan.layout).reshape(plan.shape)


def apply_repeatedly(f: Function, x: Array, times: Any) -> Array:
    """Apply f to each element of x as many times as `times` says, both of one shape; f keeps shape and dtype."""
    known = known_elements(times) if isinstance(x, Tracer) else times  # a program is compiled for its number of steps
    if not isinstance(known, np.ndarray):
        return _applied_while(f, x, times)
    times = known
    most = int(times.max(initial=0))
    if most < 2:
        return f(x) if times.all() else select(times != 0, f(x), x)
    body, consts = trace_to_jaxpr(_step(f), (_COUNTER, aval_of(times), x.aval), what="at[...].apply", function=f)
    carry = (np.zeros((), np.int32), times, x)
    return control_flow.scan(body, consts, carry, (), length=most)[-1]


def _applied_while(f: Function, x: Array, times: Array) -> Array:
    avals = (_COUNTER, times.aval, x.aval)
    body, consts = trace_to_jaxpr(_step(f), avals, what="at[...].apply", function=f)
    condition, _ = trace_to_jaxpr(_is_left, avals, what="at[...].apply", function=f)
    return control_flow.while_loop(condition, body, ((), consts), (np.zeros((), np.int32), times, x))[-1]


def _step(f: Function) -> Callable[..., Any]:
    """Make the loop body: (counter, times, elements) -> the same after f is applied where counter < times."""

    def step(k: Array, times: Array, x: Array) -> tuple[Any, ...]:
        return lax.add(k, 1), times, select(lax.lt(k, times), f(x), x)

    return step


def _is_left(k: Array, times: Array, x: Array) -> tuple[Array]:
    return (lax.lt(k, reduce_max(times, tuple(range(times.ndim)))),)
