"""Rules of random bits and keys: zero derivative; keys are batched as arrays of their words."""

from typing import Any

from tapeless.interpreters import jvp, vmap
from tapeless.interpreters.index_rows import core, pointwise, rows
from tapeless.tracer.primitives import random as r
from tapeless.tracer.primitives.control_flow import scan
from tapeless.tracer.primitives.random import random_unwrap_p, random_wrap_p, rng_bit_generator_p, threefry2x32_p
from tapeless.tracer.staging import trace_closed
from tapeless.tracer.types import aval_of, physical


def _random_wrap_vmap(size: int, args: Any, dims: Any, **params: Any) -> Any:
    """Batch with the mapped axis first: the words of a key stay the last axis."""
    return random_wrap_p.bind(vmap.to_front(args[0], dims[0]), **params), [0]


def _rng_bit_generator_vmap(size: int, args: Any, dims: Any, **params: Any) -> Any:
    """Batch by a scan over states: XLA's generators take only one."""
    states = vmap.to_front(args[0], dims[0])
    aval = aval_of(states)
    of_one = aval.update(shape=aval.shape[1:])
    program = trace_closed(lambda state: rng_bit_generator_p.bind(state, **params), [of_one], what="vmap")
    return scan(program, (), (), [states], length=size), (0, 0)


jvp.zero(threefry2x32_p)
jvp.zero(rng_bit_generator_p)
jvp.zero(random_wrap_p)
jvp.zero(random_unwrap_p)
vmap.elementwise(threefry2x32_p)
vmap.elementwise(random_unwrap_p)
vmap.rules[rng_bit_generator_p] = _rng_bit_generator_vmap
vmap.rules[random_wrap_p] = _random_wrap_vmap

# ---- index rows ----------------------------------------------------------------------------------------------
# The words of a key are an axis that is read whole.

rows[r.threefry2x32_p] = lambda params, avals: pointwise(params, avals, results=2)
rows[r.rng_bit_generator_p] = lambda params, avals: core([(avals[0].shape, {})], avals[0].shape, params["shape"])
rows[r.random_wrap_p] = lambda params, avals: core(
    [(avals[0].shape, {d: d for d in range(avals[0].ndim - 1)})], avals[0].shape[:-1]
)
rows[r.random_unwrap_p] = lambda params, avals: core(
    [(avals[0].shape, {d: d for d in range(avals[0].ndim)})], physical(avals[0]).shape
)
