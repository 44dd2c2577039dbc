"""Barriers for the compiler."""

from typing import Any

from tapeless.arguments.argument_checks import array
from tapeless.tracer import pytree
from tapeless.tracer.primitives import checkpoint as primitives


def optimization_barrier(operand: Any) -> Any:
    """Return arrays as values new to the compiler: none is had before all are, none is merged with its origin.

    Raises: TypeError if a leaf is not an array.
    """
    leaves, tree = pytree.flatten(operand)
    arrays = [array(leaf, "optimization_barrier") for leaf in leaves]
    return pytree.unflatten(tree, primitives.optimization_barrier(*arrays))
