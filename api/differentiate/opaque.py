"""Functions that are not known yet: they differentiate, and formulas print them by name, until they are instantiated.

Search terms: uninterpreted function, abstract function, calculus of variations. Source: Li & Damle 2024.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapeless.batch.vmap import vmap
from tapeless.differentiate.autodiff import grad
from tapeless.differentiate.jacobians import jacrev
from tapeless.tracer import dtypes
from tapeless.tracer.numpy import asarray, broadcast_to
from tapeless.tracer.primitives.elementwise import convert_element_type
from tapeless.tracer.primitives.opaque import core_shape, opaque
from tapeless.tracer.types import aval_of


class Opaque:
    """An unknown function of real arrays, for deriving formulas that contain it.

    Its derivatives are such functions again, `relu'` of a number, `∇R` of an array, `∂₁L` of several arguments. It is
    applied to every example where arguments have more axes, in front, than the function takes. Second derivatives are
    taken to be symmetric: the function is one that has continuous ones.

    Args:
      name: as formulas call it.
      args: how many numbers it is a function of; or the rank of each argument, `(1,)` for a vector.
      shape: of its result.
    Raises: TypeError if the name is not a Python identifier; ValueError if there is no argument, or a rank is negative.

    >>> from tapeless import index as ix
    >>> R, x, r = Opaque("R", args=(1,)), ix.Space("x", (3,)), ix.Space("r", (3,))
    >>> print(ix.grad(lambda a, x, r: R(x + a * r))(ix.Space("a", ()), x, r))
    y[b] = x[b] + r[b] * a
    Σ[j] r[j] * ∇R(y)[j]
    """

    __slots__ = ("name", "ranks", "shape")

    def __init__(self, name: str, args: int | Sequence[int] = 1, shape: Sequence[int] = ()) -> None:
        if not name.isidentifier():
            raise TypeError(f"Opaque: the name {name!r} is not a Python identifier.")
        ranks = (0,) * args if isinstance(args, int) else tuple(args)
        if not ranks or min(ranks) < 0:
            raise ValueError(f"Opaque: {name} has args={args!r}; give a rank for each argument, or how many numbers.")
        self.name: str = name
        self.ranks: tuple[int, ...] = ranks
        self.shape: tuple[int, ...] = tuple(shape)

    def __call__(self, *args: Any) -> Any:
        """Apply the function: [*batch, *shape], where arguments are [*batch, *argument].

        Raises: TypeError for another number of arguments, too few axes, or complex numbers; ValueError if axes in front
          do not fit.
        """
        if len(args) != len(self.ranks):
            raise TypeError(f"{self.name} is a function of {len(self.ranks)} arguments, not of {len(args)}.")
        xs = [asarray(x) for x in args]
        dtype, _ = dtypes.result_type(*xs)
        dtype = dtype if dtypes.is_inexact(dtype) else dtypes.canonical(float)
        for k, (x, rank) in enumerate(zip(xs, self.ranks)):
            if aval_of(x).ndim < rank:
                raise TypeError(f"{self.name}: argument {k} is {aval_of(x)}, of which the function takes {rank} axes.")
        batch = np.broadcast_shapes(*[x.shape[: x.ndim - rank] for x, rank in zip(xs, self.ranks)])
        given = [broadcast_to(x, (*batch, *core_shape(x, rank))) for x, rank in zip(xs, self.ranks)]
        given = [x if x.dtype == dtype else convert_element_type(x, dtype) for x in given]
        return opaque(self.name, self.ranks, self.shape, *given)

    def __repr__(self) -> str:
        return f"Opaque({self.name!r}, args={self.ranks}, shape={self.shape})"


def apply_opaque(function: Callable[..., Any], xs: Sequence[Any], params: Any) -> Any:
    """Apply a function, or the derivative that params of `opaque_p` say, to every example of a batch.

    Raises: TypeError if the function has another shape of results than the opaque one.
    """
    name, ranks, shape = params["function"], params["ranks"], params["shape"]

    def checked(*args: Any) -> Any:
        y = asarray(function(*args))
        if y.shape != shape:
            raise TypeError(f"instantiate: {name} gives {shape}, the function for it {aval_of(y)}.")
        return y

    f: Callable[..., Any] = checked
    for n, k in enumerate(params["orders"]):
        f = grad(f, k) if not shape and not sum(ranks[j] for j in params["orders"][:n]) else jacrev(f, k)
    for _ in range(aval_of(xs[0]).ndim - ranks[0]):
        f = vmap(f)
    return f(*xs)
