"""Donation: which results of a program take the memory of donated inputs.

A result of an input's shape and dtype gets that input's memory, first come, first served, and so says the module
(`tf.aliasing_output`). An input without such a result may still give its memory to a result of as many bytes, which
XLA chooses (`jax.buffer_donor`). All others are left alone: no result could take their memory, and they stay alive.
XLA by itself pairs by bytes only, and would give the memory of a float32 number to an int32 before a float32 result.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tapeless.tracer.types import ShapedArray, physical


class Donation(NamedTuple):
    """Donated inputs by position: the result that takes the memory, or None if XLA chooses it; and those unused."""

    taken: dict[int, int | None]
    unused: list[int]


def match_donated(
    in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray], donated: Sequence[int]
) -> Donation:
    """Match donated inputs with results by their types, and those left over by their sizes in bytes."""
    types = {i: physical(in_avals[i]).strong() for i in donated}
    results = dict(enumerate(physical(aval).strong() for aval in out_avals))
    taken: dict[int, int | None] = {}
    for k, aval in list(results.items()):
        i = next((i for i, mine in types.items() if mine == aval), None)
        if i is not None:
            del types[i], results[k]
            taken[i] = k
    sizes = [aval.nbytes for aval in results.values()]
    for i, aval in list(types.items()):
        if aval.nbytes in sizes:
            del types[i]
            sizes.remove(aval.nbytes)
            taken[i] = None
    return Donation(taken, list(types))


def has_equal_size(aval: ShapedArray, others: Sequence[ShapedArray]) -> bool:
    """Tell whether another type has as many bytes."""
    return physical(aval).nbytes in [physical(other).nbytes for other in others]


def attribute(result: int | None) -> str:
    """Write the attribute of an input of `@main` whose memory a result takes."""
    return "{jax.buffer_donor = true}" if result is None else f"{{tf.aliasing_output = {result} : i32}}"
