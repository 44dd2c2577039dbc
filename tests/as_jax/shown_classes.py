"""jaxlib is shown no classes of ours: what it looks for in jax.core it keeps, and JAX finds its own after us."""

from collections.abc import Iterator
from importlib import import_module

import numpy as np

import tapeless as tl
import tapeless.numpy as tnp
from tests.as_jax.facts import Fact


def facts() -> Iterator[Fact]:
    x = np.arange(64, dtype=np.float32)
    with tl.as_jax():
        core = import_module("jax.core")
        yield "from_dlpack inside", np.array_equal(tl.from_dlpack(x), x), True
        yield "bfloat16 inside", float(np.asarray(tnp.ones(2, "bfloat16")).sum()), 2.0
        yield "ShapedArray is ours", core.ShapedArray is tl.core.ShapedArray, True
        yield "ShapedArray by attributes", import_module("jax").core.ShapedArray is tl.core.ShapedArray, True
    jax, jnp = import_module("jax"), import_module("jax.numpy")
    yield "from_dlpack of JAX afterwards", float(jnp.from_dlpack(x).sum()), float(x.sum())
    yield "bfloat16 of JAX afterwards", float((jnp.ones(2, jnp.bfloat16) + 1).sum()), 4.0
    yield "ShapedArray of JAX afterwards", jax.core.ShapedArray is tl.core.ShapedArray, False
