"""Random orthogonal matrices, with the name and the bits of `jax.random.orthogonal`."""

from tapeless.random.arguments import KeyLike, Shape, count_of, request
from tapeless.random.samplers import normal
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array
from tapeless.tracer.dtypes import DTypeLike
from tapeless.tracer.numpy.decompositions import qr


def orthogonal(key: KeyLike, n: int, shape: Shape = (), dtype: DTypeLike | None = None, m: int | None = None) -> Array:
    """Draw matrices with orthonormal columns, or rows if those are fewer, uniformly (Haar measure).

    Args:
      key: one PRNG key.
      n: the number of rows.
      shape: batch dimensions.
      dtype: floating point or complex; the default float if None.
      m: the number of columns; n if None.
    Returns: [*shape, n, m].
    Raises: TypeError for another dtype, or if `key` is not one key or a size no integer; ValueError for a negative
      size.
    Source: Mezzadri 2007, "How to generate random matrices from the classical compact groups".
    """
    _, sizes, dtype = request("orthogonal", key, shape, dtype, "fc")
    rows = count_of("orthogonal", n)
    columns = rows if m is None else count_of("orthogonal", m)
    q, r = qr(normal(key, (*sizes, max(rows, columns), min(rows, columns)), dtype))
    found = q * tnp.expand_dims(tnp.sign(tnp.diagonal(r, axis1=-2, axis2=-1)), -2)
    return tnp.swapaxes(found, -1, -2) if rows < columns else found
