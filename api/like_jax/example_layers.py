"""Layers of neural networks as pairs of functions, as in JAX's examples, for libraries and programs that build on them.

A layer is (init, apply): `init(key, input_shape) -> (output_shape, params)`, where a size of the batch may be -1, and
`apply(params, inputs, **kwargs) -> outputs`. Parameters are those that JAX draws from the same key.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from tapeless.nn import activations, initializers
from tapeless.random import samplers
from tapeless.tracer import numpy as tnp
from tapeless.tracer.keys.prng_keys import split
from tapeless.tracer.primitives import windows
from tapeless.tracer.primitives.contraction import conv_general_dilated, conv_transpose

Shape: TypeAlias = tuple[int, ...]
Layer: TypeAlias = tuple[Callable[..., Any], Callable[..., Any]]


def elementwise(fun: Callable[..., Any], **fun_kwargs: Any) -> Layer:
    """Make the layer that applies a function to its inputs; it has no parameters, and keeps the shape."""
    return _unchanged, lambda params, inputs, **kwargs: fun(inputs, **fun_kwargs)


def _unchanged(rng: Any, input_shape: Any) -> Any:
    return input_shape, ()


# ---- with weights --------------------------------------------------------------------------------------------


def dense(out_dim: int, W_init: Any = None, b_init: Any = None) -> Layer:
    """Make the layer `inputs @ W + b`: [.., n] to [.., out_dim]. W is drawn by Glorot's rule, b with deviation 0.01."""

    def init(rng: Any, input_shape: Shape) -> tuple[Shape, Any]:
        for_weights, for_bias = split(rng)
        weights = (W_init or initializers.glorot_normal())(for_weights, (input_shape[-1], out_dim))
        return (*input_shape[:-1], out_dim), (weights, (b_init or initializers.normal())(for_bias, (out_dim,)))

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        weights, bias = params
        return tnp.dot(inputs, weights) + bias

    return init, apply


def general_conv(
    dimension_numbers: Any,
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Any = None,
    b_init: Any = None,
) -> Layer:
    """Make the layer of a convolution with `out_chan` channels, and of a bias for each.

    Args:
      dimension_numbers: as ("NHWC", "HWIO", "NHWC"), the axes of inputs, kernel and outputs.
    """

    def sizes(shape: Shape) -> Shape:
        pads = windows.explicit_padding("Conv", padding, shape, filter_shape, steps)
        return tuple(windows.count(n, k, s, pad, 1, 1) for n, k, s, pad in zip(shape, filter_shape, steps, pads))

    steps = tuple(strides or (1,) * len(filter_shape))
    convolve = lambda x, w: conv_general_dilated(x, w, steps, padding, dimension_numbers=dimension_numbers)  # noqa: E731
    return _convolution(dimension_numbers, out_chan, filter_shape, sizes, convolve, W_init, b_init)


def general_conv_transpose(
    dimension_numbers: Any,
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: str = "VALID",
    W_init: Any = None,
    b_init: Any = None,
) -> Layer:
    """Make the layer of a transposed convolution, "SAME" or "VALID", whose arguments are those of `general_conv`."""

    def sizes(shape: Shape) -> Shape:
        gaps = [max(k - s, 0) if padding == "VALID" else 0 for k, s in zip(filter_shape, steps)]
        return tuple(n * s + gap for n, s, gap in zip(shape, steps, gaps))

    steps = tuple(strides or (1,) * len(filter_shape))
    convolve = lambda x, w: conv_transpose(x, w, steps, padding, dimension_numbers=dimension_numbers)  # noqa: E731
    return _convolution(dimension_numbers, out_chan, filter_shape, sizes, convolve, W_init, b_init)


def _convolution(
    dimension_numbers: Any,
    out_chan: int,
    filter_shape: Sequence[int],
    sizes: Callable[[Shape], Shape],
    convolve: Callable[[Any, Any], Any],
    W_init: Any,
    b_init: Any,
) -> Layer:
    of_inputs, of_kernel, of_outputs = dimension_numbers

    def init(rng: Any, input_shape: Shape) -> tuple[Shape, Any]:
        given = dict(zip(of_inputs, input_shape, strict=True))
        spatial = [c for c in of_kernel if c not in "OI"]
        found = dict(zip(spatial, sizes(tuple(given[c] for c in spatial)))) | {"N": given["N"], "C": out_chan}
        kernel = dict(zip(spatial, filter_shape, strict=True)) | {"O": out_chan, "I": given["C"]}
        draw = W_init or initializers.glorot_normal(of_kernel.index("I"), of_kernel.index("O"))
        for_weights, for_bias = split(rng)
        weights = draw(for_weights, tuple(kernel[c] for c in of_kernel))
        bias = (b_init or initializers.normal(1e-6))(for_bias, tuple(out_chan if c == "C" else 1 for c in of_outputs))
        return tuple(found[c] for c in of_outputs), (weights, bias)

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        weights, bias = params
        return convolve(inputs, weights) + bias

    return init, apply


def batch_norm(
    axis: int | Sequence[int] = (0, 1, 2),
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    beta_init: Any = initializers.zeros,
    gamma_init: Any = initializers.ones,
) -> Layer:
    """Make the layer that gives inputs the mean 0 and the variance 1 over `axis`, then scales and shifts them."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)

    def init(rng: Any, input_shape: Shape) -> tuple[Shape, Any]:
        shape = tuple(n for i, n in enumerate(input_shape) if i not in axes)
        for_beta, for_gamma = split(rng)
        beta = beta_init(for_beta, shape) if center else ()
        return input_shape, (beta, gamma_init(for_gamma, shape) if scale else ())

    def apply(params: Any, x: Any, **kwargs: Any) -> Any:
        beta, gamma = params
        z = activations.standardize(x, axes, epsilon=epsilon)
        z = z * tnp.expand_dims(tnp.asarray(gamma, x.dtype), axes) if scale else z
        return z + tnp.expand_dims(tnp.asarray(beta, x.dtype), axes) if center else z

    return init, apply


# ---- without weights -----------------------------------------------------------------------------------------


def max_pool(
    window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: Any = "VALID", spec: str | None = None
) -> Layer:
    """Make the layer of the greatest elements of windows. `spec` names the axes, as "NHWC", the default."""
    return _pooling(windows.reduce_window_max, False, window_shape, strides, padding, spec)


def sum_pool(
    window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: Any = "VALID", spec: str | None = None
) -> Layer:
    """Make the layer of the sums of windows, as `max_pool`."""
    return _pooling(windows.reduce_window_sum, False, window_shape, strides, padding, spec)


def avg_pool(
    window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: Any = "VALID", spec: str | None = None
) -> Layer:
    """Make the layer of the means of windows, without what is padding in them, as `max_pool`."""
    return _pooling(windows.reduce_window_sum, True, window_shape, strides, padding, spec)


def _pooling(
    reduce: Callable[..., Any], mean: bool, window_shape: Any, strides: Any, padding: Any, spec: str | None
) -> Layer:
    axes = spec or "N" + "." * len(window_shape) + "C"
    spatial = [i for i, c in enumerate(axes) if c not in "NC"]

    def everywhere(values: Sequence[int]) -> Shape:
        of_axis = dict(zip(spatial, values, strict=True))
        return tuple(of_axis.get(i, 1) for i in range(len(axes)))

    window, steps = everywhere(window_shape), everywhere(strides or (1,) * len(window_shape))

    def pads(shape: Shape) -> Any:
        known = tuple(n if i in spatial else 1 for i, n in enumerate(shape))
        return windows.explicit_padding("Pool", padding, known, window, steps)

    def init(rng: Any, input_shape: Shape) -> tuple[Shape, Any]:
        counts = zip(input_shape, window, steps, pads(input_shape))
        sizes = [windows.count(n, k, s, pad, 1, 1) for n, k, s, pad in counts]
        return tuple(sizes[i] if i in spatial else n for i, n in enumerate(input_shape)), ()

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        around = pads(inputs.shape)
        out = reduce(inputs, window, steps, around)
        return out / reduce(tnp.ones(inputs.shape, inputs.dtype), window, steps, around) if mean else out

    return init, apply


def dropout(rate: float, mode: str = "train") -> Layer:
    """Make the layer that keeps elements with probability `rate`, divided by it, and makes others 0.

    Args:
      mode: "train", or another word for the layer that changes nothing.
    Raises: ValueError when applied without a key, `rng=`.
    """

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        rng = kwargs.get("rng")
        if rng is None:
            raise ValueError("Dropout: apply takes a key, apply(params, inputs, rng=key), and none was given.")
        if mode != "train":
            return inputs
        return tnp.where(samplers.bernoulli(rng, rate, inputs.shape), inputs / rate, 0)

    return _unchanged, apply


def _flat(rng: Any, input_shape: Shape) -> tuple[Shape, Any]:
    return (input_shape[0], math.prod(input_shape[1:])), ()


flatten: Layer = (_flat, lambda params, inputs, **kwargs: tnp.reshape(inputs, (inputs.shape[0], -1)))
identity: Layer = (_unchanged, lambda params, inputs, **kwargs: inputs)
fan_in_sum: Layer = (lambda rng, shapes: (shapes[0], ()), lambda params, inputs, **kwargs: sum(inputs))


def fan_out(num: int) -> Layer:
    """Make the layer that gives its inputs `num` times, for `parallel`."""
    return lambda rng, shape: ([shape] * num, ()), lambda params, inputs, **kwargs: [inputs] * num


def fan_in_concat(axis: int = -1) -> Layer:
    """Make the layer that joins several inputs along `axis`."""

    def init(rng: Any, shapes: Sequence[Shape]) -> tuple[Shape, Any]:
        joined = list(shapes[0])
        joined[axis] = sum(shape[axis] for shape in shapes)
        return tuple(joined), ()

    return init, lambda params, inputs, **kwargs: tnp.concatenate(inputs, axis)


# ---- of other layers -----------------------------------------------------------------------------------------


def serial(*layers: Layer) -> Layer:
    """Compose layers: each takes what the one before gives. The parameters are a list of theirs."""

    def init(rng: Any, input_shape: Any) -> tuple[Any, list[Any]]:
        params: list[Any] = []
        for init_layer, _ in layers:
            rng, own = split(rng)
            input_shape, found = init_layer(own, input_shape)
            params.append(found)
        return input_shape, params

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        for (_, apply_layer), own, rng in zip(layers, params, _keys(kwargs, len(layers))):
            inputs = apply_layer(own, inputs, **(kwargs | {"rng": rng}))
        return inputs

    return init, apply


def parallel(*layers: Layer) -> Layer:
    """Put layers side by side: each takes one of the inputs, and the outputs are a list."""

    def init(rng: Any, input_shape: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        keys = _keys({"rng": rng}, len(layers))
        made = [layer[0](key, shape) for layer, key, shape in zip(layers, keys, input_shape)]
        return tuple(shape for shape, _ in made), tuple(params for _, params in made)

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        each = zip(layers, params, inputs, _keys(kwargs, len(layers)))
        return [layer[1](own, x, **(kwargs | {"rng": rng})) for layer, own, x, rng in each]

    return init, apply


def shape_dependent(make_layer: Callable[[Any], Layer]) -> Layer:
    """Make the layer that `make_layer(input_shape)` is, once the shape is known."""
    return (
        lambda rng, input_shape: make_layer(input_shape)[0](rng, input_shape),
        lambda params, inputs, **kwargs: make_layer(inputs.shape)[1](params, inputs, **kwargs),
    )


def _keys(kwargs: dict[str, Any], n: int) -> Any:
    rng = kwargs.get("rng")
    return (None,) * n if rng is None else split(rng, n)
