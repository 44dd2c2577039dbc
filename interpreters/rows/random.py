"""Index rows of random bits and keys: the words of a key are an axis that is read whole."""

from tapeless.interpreters.index_rows import core, pointwise, rows
from tapeless.tracer.primitives import random as r
from tapeless.tracer.types import physical

rows[r.threefry2x32_p] = lambda params, avals: pointwise(params, avals, results=2)
rows[r.rng_bit_generator_p] = lambda params, avals: core([(avals[0].shape, {})], avals[0].shape, params["shape"])
rows[r.random_wrap_p] = lambda params, avals: core(
    [(avals[0].shape, {d: d for d in range(avals[0].ndim - 1)})], avals[0].shape[:-1]
)
rows[r.random_unwrap_p] = lambda params, avals: core(
    [(avals[0].shape, {d: d for d in range(avals[0].ndim)})], physical(avals[0]).shape
)
