"""Vector quantization under the names of `scipy.cluster.vq`."""

from typing import Any

from tapeless.tracer import core
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace
from tapeless.tracer.numpy.norms import vector_norm
from tapeless.tracer.numpy.promotion import array_operand, promoted_inexact_dtypes

__all__ = ["vq"]


def vq(obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """Find the nearest point of a code book for each of several points.

    Args:
      obs: [m, d], or [m] of one dimension.
      code_book: [k, d], or [k]; k is at least 1.
      check_finite: elements are not checked in any case.
    Returns: (places in the code book, int32[m]; distances [m], floating point).
    Raises: ValueError if shapes do not fit, both named.
    """
    x, codes = (array_operand("vq", v) for v in promoted_inexact_dtypes("vq", obs, code_book))
    given = f"{x.aval} and {codes.aval}"
    if x.ndim != codes.ndim or x.ndim not in (1, 2) or x.shape[1:] != codes.shape[1:] or not codes.shape[0]:
        raise ValueError(f"vq: points [m, d] and a code book [k, d], or [m] and [k], not {given}.")
    return _nearest(*(v[:, None] if v.ndim == 1 else v for v in (x, codes)))


@core.compound
def _nearest(x: Any, codes: Any) -> Any:
    distances = vector_norm(x[:, None] - codes, axis=-1)
    code = tnp.argmin(distances, axis=-1)
    return code, tnp.take_along_axis(distances, code[:, None], -1)[:, 0]


_complete_namespace(globals())
