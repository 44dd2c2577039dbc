"""Limited-memory BFGS: the inverse Hessian that the last steps tell, as a product with a vector.

Vectors are pytrees of arrays. Source: Nocedal & Wright 2006, "Numerical optimization", algorithm 7.4 (the two loops)
and equation 7.20 (the scale).
"""

from typing import Any, NamedTuple

from tapeless.control_flow.scan import scan
from tapeless.scipy.iterative.vectors import add_scaled, inner_product
from tapeless.tracer import numpy as tnp
from tapeless.tracer import pytree


class LimitedMemory(NamedTuple):
    """Differences of points and of gradients in the last steps, in a ring, and the inverses of their inner products.

    `weights` is 0 where there is no difference yet.
    """

    steps: Any
    turns: Any
    weights: Any


def empty_memory(size: int, like: Any) -> LimitedMemory:
    """Make a memory for a number of steps, of vectors of the shapes and dtypes of another."""
    rings = pytree.tree_map(lambda x: tnp.zeros((size, *x.shape), x.dtype), like)
    return LimitedMemory(rings, rings, tnp.zeros(size, inner_product(like, like).dtype))


def remember(memory: LimitedMemory, place: Any, step: Any, turn: Any) -> LimitedMemory:
    """Write a step and the turn of the gradient in it to a place of the ring."""
    product = inner_product(turn, step)
    weight = tnp.where(product == 0, 0, 1 / tnp.where(product == 0, 1, product))
    new = LimitedMemory(step, turn, weight)
    return pytree.tree_map(lambda ring, x: ring.at[place].set(x.astype(ring.dtype)), memory, new)


def identity_scale(step: Any, turn: Any, otherwise: Any) -> Any:
    """Compute Rayleigh's quotient of the inverse Hessian along a turn of the gradient; for no turn, something else."""
    square = inner_product(turn, turn)
    return tnp.where(square > 0, inner_product(turn, step) / tnp.where(square > 0, square, 1), otherwise)


def inverse_hessian_product(memory: LimitedMemory, v: Any, scale: Any, oldest: Any) -> Any:
    """Multiply a vector by the inverse Hessian: from the newest step to the oldest, and back.

    Args:
      scale: the multiple of the identity that the memory corrects.
      oldest: place of the oldest step in the ring.
    """
    size = memory.weights.shape[0]
    order = (oldest + tnp.arange(size)) % size

    def right(v: Any, k: Any) -> tuple[Any, Any]:
        step, turn, weight = pytree.tree_map(lambda x: x[k], memory)
        share = weight * inner_product(step, v)
        return add_scaled(v, -share, turn), share

    def left(v: Any, k_share: Any) -> tuple[Any, Any]:
        k, share = k_share
        step, turn, weight = pytree.tree_map(lambda x: x[k], memory)
        return add_scaled(v, share - weight * inner_product(turn, v), step), None

    v, shares = scan(right, v, order, reverse=True)
    v = pytree.tree_map(lambda x: (scale * x).astype(x.dtype), v)
    return scan(left, v, (order, shares))[0]
