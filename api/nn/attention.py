"""Scaled dot-product attention, as in `jax.nn`.

The result for each query is the mean of the values, weighted by a softmax of its products with the keys. Several
queries may share a key and value (grouped-query attention). Source: Vaswani et al. 2017, "Attention is all you need";
Ainslie et al. 2023 (grouped queries). Left out: cuDNN's fused kernels; the whole matrix of weights is computed.

Axes: B batches, T queries, S keys and values, N heads of queries, K heads of keys, G = N // K queries to a key, H
features of a head.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from tapeless.nn.activations import logsumexp, softmax
from tapeless.tracer import dtypes
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.eager_calls import one_program
from tapeless.tracer.numpy.promotion import array_operand, mixing_inside
from tapeless.tracer.primitives.elementwise import stop_gradient
from tapeless.tracer.primitives.operands import exact_bool
from tapeless.tracer.types import aval_of

_NAME = "dot_product_attention"


class _Masks(NamedTuple):
    """The masks that exclude keys from queries; each may be None."""

    mask: Array | None
    causal: bool
    queries: Array | None
    keys: Array | None
    window: tuple[int, int] | None


@one_program
@mixing_inside
def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> Any:
    """Compute attention: softmax(scale * query @ key^T + bias) @ value for each head, in float32 at least.

    The heads come after the times: PyTorch's [B, N, T, H] is `transpose(0, 2, 1, 3)` of these axes.

    Args:
      query: [B, T, N, H] or [T, N, H].
      key, value: [B, S, K, H] or [S, K, H], of the dtype of `query`; K divides N, and N // K queries share a key.
      bias: numbers that broadcast with [B, N, T, S]; added before the softmax.
      mask: booleans that broadcast with [B, N, T, S]: the keys that each query attends to.
      scale: 1 / sqrt(H) if None.
      is_causal: a query attends to keys up to its own position only.
      query_seq_lengths, key_value_seq_lengths: int32 [B], the number of valid queries, or keys, in each batch; the
        results of other queries are 0, and other keys are masked.
      local_window_size: how many keys to the left and to the right of its own position a query attends to.
      implementation: None or "xla"; "cudnn" is not supported.
      return_residual: also return the logsumexp of the logits, [B, T, N] or [T, N], without derivatives.
    Returns: the shape and dtype of `query`; with `return_residual` a pair.
    Raises: ValueError naming both operands, if shapes or dtypes do not fit, the mask is not boolean, or lengths are
      not int32 [B]; TypeError for a boolean bias; NotImplementedError for "cudnn".
    """
    _check_implementation(implementation)
    q, k, v = (_four_axes(name, x) for name, x in (("query", query), ("key", key), ("value", value)))
    masks = _Masks(
        None if mask is None else _four_axes("mask", mask),
        exact_bool(is_causal, f"{_NAME}: is_causal"),
        None if query_seq_lengths is None else tnp.asarray(query_seq_lengths),
        None if key_value_seq_lengths is None else tnp.asarray(key_value_seq_lengths),
        (local_window_size, local_window_size) if isinstance(local_window_size, int) else local_window_size,
    )
    _check(q, k, v, masks)
    factor = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    logits = _logits(q, k, factor, None if bias is None else _four_axes("bias", _numbers(bias)))
    shape = aval_of(query).shape
    out, residual = _attended(_masked(logits, masks), v, masks.queries)
    out = tnp.reshape(out, shape)
    with_residual = exact_bool(return_residual, f"{_NAME}: return_residual")
    return (out, stop_gradient(tnp.reshape(residual, shape[:-1]))) if with_residual else out


def _logits(q: Array, k: Array, scale: Any, bias: Array | None) -> Array:
    """Compute the scaled products of queries and keys, plus bias: [B, N, T, S], in float32 at least."""
    b, t, n, h = q.shape
    dtype = dtypes.result_type(q.dtype, np.dtype(np.float32))[0]
    grouped = tnp.reshape(q, (b, t, k.shape[2], n // k.shape[2], h))
    products = tnp.einsum("btkgh,bskh->bkgts", grouped, k, preferred_element_type=dtype)
    logits = tnp.reshape(products, (b, n, t, k.shape[1])) * tnp.array(scale, dtype)
    return logits if bias is None else (logits + bias).astype(dtype)


def _attended(logits: Array, v: Array, n_queries: Array | None) -> tuple[Array, Array]:
    """Return the weighted means of the values [B, T, N, H], and the logsumexp of the logits [B, T, N]."""
    b, n, t, s = logits.shape
    weights = tnp.reshape(softmax(logits, -1).astype(v.dtype), (b, v.shape[2], n // v.shape[2], t, s))
    out = tnp.reshape(tnp.einsum("bkgts,bskh->btkgh", weights, v), (b, t, n, v.shape[3]))
    if n_queries is not None:
        out = out * (tnp.arange(t) < n_queries[:, None])[:, :, None, None].astype(out.dtype)
    return out, tnp.transpose(logsumexp(logits, -1).astype(v.dtype), (0, 2, 1))


def _masked(logits: Array, masks: _Masks) -> Array:
    """Replace the logits of masked keys by a large negative number."""
    t, s = logits.shape[2:]
    at, to = tnp.arange(t)[:, None], tnp.arange(s)[None]
    seen: list[Any] = [] if masks.mask is None else [masks.mask]
    if masks.causal:
        seen.append(to <= at)
    if masks.window is not None:
        left, right = masks.window
        seen.append((at <= to + left) & (at >= to - right))
    if masks.queries is not None:
        seen.append((at < masks.queries[:, None, None])[:, None])
    if masks.keys is not None:
        seen.append((to < masks.keys[:, None, None])[:, None])
    for mask in seen:
        logits = tnp.where(mask, logits, _large_negative(logits.dtype))
    return logits


def _large_negative(dtype: Any) -> Array:
    """Return a number that float32 holds and the softmax maps to 0."""
    return tnp.array(-0.7 * min(float(dtypes.finfo(dtype).max), float(np.finfo(np.float32).max)), dtype)


def _four_axes(name: str, x: ArrayLike) -> Array:
    """Add axes of size 1 before those of x, up to four. Raises: ValueError if it has more."""
    x = array_operand(_NAME, x)
    if x.ndim > 4:
        raise ValueError(f"{_NAME}: {name} has four axes at most, not those of {x.aval}.")
    return tnp.reshape(x, (1,) * (4 - x.ndim) + x.shape)


def _numbers(bias: ArrayLike) -> ArrayLike:
    """Return the bias. Raises: TypeError if it is boolean."""
    aval = aval_of(array_operand(_NAME, bias))
    if aval.dtype == np.dtype(bool):
        raise TypeError(f"{_NAME}: bias must be numbers, which are added, not {aval}. Pass booleans as mask=.")
    return bias


def _check_implementation(implementation: str | None) -> None:
    if implementation == "cudnn":
        raise NotImplementedError(f"{_NAME}: the kernels of cuDNN are not there; leave implementation=None.")
    if implementation not in (None, "xla"):
        raise ValueError(f"{_NAME}: implementation must be None or 'xla', not {implementation!r}.")


def _check(q: Array, k: Array, v: Array, masks: _Masks) -> None:
    """Check that shapes and dtypes fit. Raises: ValueError naming both operands."""
    if k.aval.strong() != v.aval.strong():
        raise ValueError(f"{_NAME}: key is {k.aval}, but value is {v.aval}.")
    if (q.shape[0], q.shape[3], q.dtype) != (k.shape[0], k.shape[3], k.dtype) or q.shape[2] % k.shape[2]:
        raise ValueError(
            f"{_NAME}: query is {q.aval}, but key is {k.aval}: batches, features and dtypes must be the same, and the "
            f"{q.shape[2]} heads of queries a multiple of those of keys, {k.shape[2]}."
        )
    if masks.mask is not None and masks.mask.dtype != np.dtype(bool):
        raise ValueError(f"{_NAME}: mask must be boolean, not {masks.mask.aval}. Pass numbers to be added as bias.")
    for name, lengths in (("query_seq_lengths", masks.queries), ("key_value_seq_lengths", masks.keys)):
        if lengths is not None and (lengths.shape, lengths.dtype) != (q.shape[:1], np.dtype(np.int32)):
            raise ValueError(f"{_NAME}: {name} must be int32[{q.shape[0]}], not {lengths.aval}.")
