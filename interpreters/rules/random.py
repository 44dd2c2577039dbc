"""Rules of random bits and keys: no derivative; keys are batched as their words are."""

from typing import Any

from tapeless.interpreters import jvp, vmap
from tapeless.tracer.primitives.random import random_unwrap_p, random_wrap_p, threefry2x32_p


def _random_wrap_vmap(size: int, args: Any, dims: Any) -> Any:
    """The two words of a key stay together, in the last axis."""
    return random_wrap_p.bind(vmap.to_front(args[0], dims[0])), [0]


jvp.zero(threefry2x32_p)
jvp.zero(random_wrap_p)
jvp.zero(random_unwrap_p)
vmap.elementwise(threefry2x32_p)
vmap.elementwise(random_unwrap_p)
vmap.rules[random_wrap_p] = _random_wrap_vmap
