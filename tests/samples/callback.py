"""Rows of calls of the host."""

from typing import Any

import numpy as np

from tapeless.tracer.primitives import callback as c
from tapeless.tracer.types import ShapedArray
from tests.samples.sample import Sample, f32


def _product(avals: Any, x: Any, y: Any) -> Any:
    return [(x * y).astype(aval.dtype) for aval in avals]


def _ignored(avals: Any, *arrays: Any) -> Any:
    return []


_ARGS = f32(3), f32(3, seed=1)
_RESULTS = {"callback": _product, "result_avals": (ShapedArray((3,), np.dtype("float32")),)}


def _reference(x: Any, y: Any, **_: Any) -> Any:
    return x * y


ROWS = [
    *(
        Sample(
            c.pure_callback_p, _ARGS, _reference, {**_RESULTS, "vmap_method": method}, differentiable=(), label=method
        )
        for method in ("sequential", "broadcast_all", "expand_dims")
    ),
    Sample(c.io_callback_p, _ARGS, _reference, {**_RESULTS, "ordered": False}, differentiable=()),
    Sample(
        c.debug_callback_p,
        _ARGS,
        lambda x, y, **_: (),
        {"callback": _ignored, "ordered": False},
        differentiable=(),
    ),
]
