"""Activation functions, attention and initializers: the names of `jax.nn`. See `tapeless.nn.activations`."""

import typing as _typing

from tapeless.nn import initializers
from tapeless.nn.activations import (
    celu,
    elu,
    gelu,
    glu,
    hard_sigmoid,
    hard_silu,
    hard_swish,
    hard_tanh,
    identity,
    leaky_relu,
    log1mexp,
    log_sigmoid,
    log_softmax,
    logmeanexp,
    logsumexp,
    mish,
    one_hot,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    soft_sign,
    softmax,
    softplus,
    sparse_plus,
    sparse_sigmoid,
    squareplus,
    standardize,
    swish,
    tanh,
)
from tapeless.nn.attention import dot_product_attention
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

# ---- written by docs/make_names.py from the imports above
__all__ = [
    "celu", "dot_product_attention", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh",
    "identity", "initializers", "leaky_relu", "log1mexp", "log_sigmoid", "log_softmax", "logmeanexp", "logsumexp",
    "mish", "one_hot", "relu", "relu6", "selu", "sigmoid", "silu", "soft_sign", "softmax", "softplus", "sparse_plus",
    "sparse_sigmoid", "squareplus", "standardize", "swish", "tanh",
]  # fmt: skip
# ---- end of what is written

if not _typing.TYPE_CHECKING:  # type checkers know better what is there
    _SCALED = ["get_scaled_dot_general_config", "scaled_dot_general", "scaled_matmul"]
    __all__.extend(_SCALED)
    _complete_namespace(globals(), {"lax.scaled_products": " ".join(_SCALED)})
