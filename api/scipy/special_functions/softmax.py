"""SciPy's `softmax` and its logarithm, over all elements unless an axis is named; those of `nn` take the last axis."""

from tapeless.nn import activations
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.numpy.reductions import Axis


def softmax(x: ArrayLike, axis: Axis = None) -> Array:
    """Compute exp(x) over its sum along axes, over all if there is none named."""
    return activations.softmax(x, axis)


def log_softmax(x: ArrayLike, axis: Axis = None) -> Array:
    """Compute the logarithm of `softmax`, which keeps its digits where that is small."""
    return activations.log_softmax(x, axis)
