"""Layers of JAX's examples: the names of `jax.example_libraries.stax`."""

from functools import partial
from typing import Final

from tapeless.custom.example_layers import (
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
from tapeless.tracer import numpy as tnp
from tapeless.tracer.activations import (
    elu,
    gelu,
    leaky_relu,
    log_softmax,
    relu,
    selu,
    sigmoid,
    softmax,
    softplus,
    standardize,
)
from tapeless.tracer.initializers import glorot_normal, normal, ones, zeros

logsoftmax: Final = log_softmax
glorot: Final = glorot_normal
randn: Final = normal
Dense, Dropout, BatchNorm = dense, dropout, batch_norm
GeneralConv, GeneralConvTranspose = general_conv, general_conv_transpose
Conv = partial(general_conv, ("NHWC", "HWIO", "NHWC"))
Conv1DTranspose = partial(general_conv_transpose, ("NHC", "HIO", "NHC"))
ConvTranspose = partial(general_conv_transpose, ("NHWC", "HWIO", "NHWC"))
MaxPool, SumPool, AvgPool = max_pool, sum_pool, avg_pool
Flatten, Identity, FanOut, FanInSum, FanInConcat = flatten, identity, fan_out, fan_in_sum, fan_in_concat
Tanh, Relu, Exp = elementwise(tnp.tanh), elementwise(relu), elementwise(tnp.exp)
LogSoftmax, Softmax = elementwise(log_softmax, axis=-1), elementwise(softmax, axis=-1)
Softplus, Sigmoid, Elu = elementwise(softplus), elementwise(sigmoid), elementwise(elu)
LeakyRelu, Selu, Gelu = elementwise(leaky_relu), elementwise(selu), elementwise(gelu)

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
