"""Layers of JAX's examples: the names of `jax.example_libraries.stax`."""

from functools import partial
from typing import Final

from tapeless.like_jax.example_layers import (
    avg_pool,
    batch_norm,
    dense,
    dropout,
    elementwise,
    fan_in_concat,
    fan_in_sum,
    fan_out,
    flatten,
    general_conv,
    general_conv_transpose,
    identity,
    max_pool,
    parallel,
    serial,
    shape_dependent,
    sum_pool,
)
from tapeless.nn import (
    elu,
    gelu,
    initializers,
    leaky_relu,
    log_softmax,
    relu,
    selu,
    sigmoid,
    softmax,
    softplus,
    standardize,
)
from tapeless.tracer import numpy as tnp

logsoftmax: Final = log_softmax
glorot_normal: Final = initializers.glorot_normal
glorot: Final = glorot_normal
normal: Final = initializers.normal
randn: Final = normal
ones: Final = initializers.ones
zeros: Final = initializers.zeros
Dense: Final = dense
Dropout: Final = dropout
BatchNorm: Final = batch_norm
GeneralConv: Final = general_conv
GeneralConvTranspose: Final = general_conv_transpose
Conv: Final = partial(general_conv, ("NHWC", "HWIO", "NHWC"))
Conv1DTranspose: Final = partial(general_conv_transpose, ("NHC", "HIO", "NHC"))
ConvTranspose: Final = partial(general_conv_transpose, ("NHWC", "HWIO", "NHWC"))
MaxPool: Final = max_pool
SumPool: Final = sum_pool
AvgPool: Final = avg_pool
Flatten: Final = flatten
Identity: Final = identity
FanOut: Final = fan_out
FanInSum: Final = fan_in_sum
FanInConcat: Final = fan_in_concat
Tanh: Final = elementwise(tnp.tanh)
Relu: Final = elementwise(relu)
Exp: Final = elementwise(tnp.exp)
LogSoftmax: Final = elementwise(log_softmax, axis=-1)
Softmax: Final = elementwise(softmax, axis=-1)
Softplus: Final = elementwise(softplus)
Sigmoid: Final = elementwise(sigmoid)
Elu: Final = elementwise(elu)
LeakyRelu: Final = elementwise(leaky_relu)
Selu: Final = elementwise(selu)
Gelu: Final = elementwise(gelu)

__all__ = [
    "AvgPool",
    "BatchNorm",
    "Conv",
    "Conv1DTranspose",
    "ConvTranspose",
    "Dense",
    "Dropout",
    "Elu",
    "Exp",
    "FanInConcat",
    "FanInSum",
    "FanOut",
    "Flatten",
    "Gelu",
    "GeneralConv",
    "GeneralConvTranspose",
    "Identity",
    "LeakyRelu",
    "LogSoftmax",
    "MaxPool",
    "Relu",
    "Selu",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "SumPool",
    "Tanh",
    "elementwise",
    "elu",
    "gelu",
    "glorot",
    "glorot_normal",
    "leaky_relu",
    "log_softmax",
    "logsoftmax",
    "normal",
    "ones",
    "parallel",
    "randn",
    "relu",
    "selu",
    "serial",
    "shape_dependent",
    "sigmoid",
    "softmax",
    "softplus",
    "standardize",
    "zeros",
]
