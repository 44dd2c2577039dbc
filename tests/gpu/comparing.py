"""Running one function on two devices, and comparing what comes out."""

from collections.abc import Callable
from typing import Any

import numpy as np

import tapeless as tl
from tapeless.tracer import dtypes

# Matrix units of a GPU multiply float32 as TF32, with 10 bits of mantissa, unless precision is asked for.
TF32 = 4e-3
ROUNDING = {
    "float16": 2e-3,
    "bfloat16": 2e-2,
    "float32": 2e-5,
    "complex64": 2e-5,
    "float64": 1e-11,
    "complex128": 1e-11,
}
NARROWEST = 0.25  # of the 8-bit types and below: one step


def on(device: Any, f: Callable[..., Any], *args: Any) -> Any:
    """The leaves of `f(*args)`, compiled for `device`, as NumPy arrays. Every result must be on that device."""
    placed = [tl.device_put(x, device) for x in args]
    with tl.default_device(device):
        leaves = tl.tree.leaves(tl.jit(f)(*placed))
    assert all(x.device is device for x in leaves)
    return [np.asarray(x) for x in leaves]


def assert_agree(found: list[Any], wanted: list[Any], rtol: float = 0.0) -> None:
    """Equal integers; inexact values equal to the rounding of their dtype, relative to the largest, or to `rtol`."""
    assert [(x.shape, x.dtype) for x in found] == [(y.shape, y.dtype) for y in wanted]
    for x, y in zip(found, wanted, strict=True):
        if not dtypes.is_inexact(x.dtype):
            np.testing.assert_array_equal(x, y)
            continue
        tolerance = max(rtol, ROUNDING.get(x.dtype.name, NARROWEST))
        x, y = (z.astype(np.complex128 if np.iscomplexobj(z) else np.float64) for z in (x, y))
        scale = np.max(np.abs(y[np.isfinite(y)]), initial=0)
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance * scale)


def assert_same_on(device: Any, cpu: Any, f: Callable[..., Any], *args: Any, rtol: float = 0.0) -> None:
    """`f` gives on `device` what it gives on the CPU."""
    assert_agree(on(device, f, *args), on(cpu, f, *args), rtol)
