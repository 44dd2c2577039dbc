"""Activation functions and losses' exponentials: the names of `jax.nn`. See `tapeless.tracer.activations`."""

from tapeless.tracer.activations import (
    gelu,
    log_sigmoid,
    log_softmax,
    logsumexp,
    one_hot,
    relu,
    sigmoid,
    silu,
    softmax,
    softplus,
    sparse_plus,
    swish,
    tanh,
)

__all__ = [
    "gelu",
    "log_sigmoid",
    "log_softmax",
    "logsumexp",
    "one_hot",
    "relu",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "sparse_plus",
    "swish",
    "tanh",
]
