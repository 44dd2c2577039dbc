"""Reports about windows, pools and convolutions, and about what is accumulated along an axis."""

import itertools

import numpy as np
import scipy.signal

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests.public_reports.report import Report, drawn, f64, i32

BIG = np.random.default_rng(0).uniform(-1, 1, (64, 128))
TEN = np.array([0.3, -0.5, 0.1, 0.2, -0.9, 0.0, 0.25, 0.7, 0.9, 0.4])
NHWC = ("NHWC", "HWIO", "NHWC")


def pooled(x, size, stride=1, pad=(0, 0), dilation=1, reduce=np.max):
    """Windows over both axes of x, between `pad` elements of the least number before and behind."""
    x = np.pad(x, pad, constant_values=-np.inf if reduce is np.max else 0)
    rows, columns = (range(0, n - (size - 1) * dilation, stride) for n in x.shape)
    reach = size * dilation
    return np.array([[reduce(x[i : i + reach : dilation, j : j + reach : dilation]) for j in columns] for i in rows])


def pool(x, size, stride=1, pad=(0, 0), dilation=1):
    return lax.reduce_window(
        x, -np.inf, lax.max, (size, size), (stride, stride), (pad, pad), None, (dilation, dilation)
    )


def correlated(x, w, stride=1, pad=(0, 0)):
    """The correlation of x [H, W] with w, with a stride."""
    return scipy.signal.correlate2d(np.pad(x, pad), w, "valid")[::stride, ::stride]


def conv(x, w, stride=1, pad=(0, 0), **options):
    return lax.conv_general_dilated(x[None, None], w[None, None], (stride, stride), [pad, pad], **options)[0, 0]


def spread(x, k):
    """Elements of x with k - 1 zeros between them, along both axes."""
    out = np.zeros([(n - 1) * k + 1 for n in x.shape])
    out[::k, ::k] = x
    return out


def dilated_columns(x):
    wide = np.full((64, 255), -np.inf)
    wide[:, ::2] = x
    return np.maximum(wide[::2], wide[1::2])


def learned(w, x):
    """A loss after one step of descent on another loss."""

    def inner(w):
        return (tnp.tanh(conv(x, w)) ** 2).sum()

    return (conv(x[::-1], w - 0.1 * tl.grad(inner)(w)) ** 2).sum()


def learned_right(w, x):
    y = np.tanh(correlated(x, w))
    slope = correlated(x, 2 * y * (1 - y**2))
    return np.sum(correlated(x[::-1], w - 0.1 * slope) ** 2)


def penalty(w, x):
    """The squared gradient of a loss by the kernel of a convolution with stride 2."""
    return (tl.grad(lambda w: tnp.sin(conv(x, w, 2, (1, 1))).mean())(w) ** 2).sum()


def penalty_right(w, x):
    y = correlated(x, w, 2, (1, 1))
    weights = spread(np.cos(y) / y.size, 2)
    padded = np.pad(x, (1, 1))
    slope = scipy.signal.correlate2d(padded, weights, "valid")
    return np.sum(slope[: w.shape[0], : w.shape[1]] ** 2)


def transposed(x, w):
    """A transposed convolution with another stride for each axis."""
    return lax.conv_transpose(x[None, :, :, None], w[:, :, None, None], (3, 2), "VALID", dimension_numbers=NHWC)[
        0, ..., 0
    ]


def transposed_right(x, w):
    wide = np.zeros((x.shape[0] * 3 - 2, x.shape[1] * 2 - 1))
    wide[::3, ::2] = x
    return scipy.signal.correlate2d(np.pad(wide, ((1, 2), (1, 1))), w, "valid")


def subsets(x, k):
    return [np.prod(c) for c in itertools.combinations(x, k)]


ROWS = [
    Report(
        "jax-ml/jax#3973",
        "a dilated window that is longer than the array",
        lambda x: tuple(
            lax.reduce_window(x, 0.0, lax.add, (3,), (1,), padding, window_dilation=(3,))
            for padding in ("SAME", "VALID")
        ),
        (f64(2),),
        lambda x: (x, x[:0]),
    ),
    Report(
        "openxla/xla#48714",
        "elements apart from each other under windows of one column, of a large array",
        lambda x: lax.reduce_window(x, -np.inf, lax.max, (2, 1), (2, 1), ((0, 0), (0, 0)), base_dilation=(1, 2)),
        (BIG,),
        dilated_columns,
        slopes=None,
        mapped=False,
    ),
    Report(
        "jax-ml/jax#7860",
        "sums of windows with padding on one side, in reverse mode",
        lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 1), (2, 1), ((0, 0), (1, 0))),
        (drawn(1, 1),),
        lambda x: np.array([[0.0, x[0, 0]]]),
    ),
    Report(
        "FluxML/NNlib.jl#133",
        "a pool with stride and padding",
        lambda x: pool(x, 2, 2, (1, 1)),
        (np.arange(1.0, 10).reshape(3, 3).T,),
        lambda x: pooled(x, 2, 2, (1, 1)),
    ),
    Report(
        "FluxML/NNlib.jl#205",
        "a pool whose windows overlap",
        lambda x: pool(x, 2),
        (drawn(5, 4),),
        lambda x: pooled(x, 2),
    ),
    Report(
        "FluxML/Flux.jl#1197",
        "one element that is the largest of several windows",
        lambda x: pool(x, 3, 2, (1, 1)),
        (np.arange(1.0, 25).reshape(4, 6) + 80 * np.eye(1, 24, 7).reshape(4, 6),),
        lambda x: pooled(x, 3, 2, (1, 1)),
    ),
    Report(
        "elixir-nx/nx#1679",
        "a pool of elements apart from each other",
        lambda x: pool(x, 2, 1, (1, 1), 2),
        (drawn(4, 4, seed=2),),
        lambda x: pooled(x, 2, 1, (1, 1), 2),
    ),
    Report(
        "deeplearning4j/nd4j#2518",
        "means of elements apart from each other",
        lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 2), (2, 1), "VALID", window_dilation=(2, 2)) / 4,
        (drawn(5, 5),),
        lambda x: pooled(x, 2, 1, dilation=2, reduce=np.mean)[::2],
    ),
    Report(
        "tensorflow/tensorflow#31271",
        "maxima of four neighbours along one axis, as many as before",
        lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 4), (1, 1), "SAME"),
        (drawn(1, 6),),
        lambda x: np.array([[x[0, max(0, i - 1) : i + 3].max() for i in range(6)]]),
    ),
    Report(
        "pytorch/functorch#1019",
        "tangents of the gradient of a pool with an incomplete last window",
        lambda x, t: tl.jvp(tl.grad(lambda x: (pool(x, 3, 2, (0, 1)) ** 3).sum()), (x,), (t,))[1],
        (drawn(4, 6), drawn(4, 6, seed=1)),
        lambda x, t: 6 * x * t * winners(x),
        slopes=None,
    ),
    Report(
        "jax-ml/jax#567",
        "a convolution whose kernel is spread",
        lambda x, w: conv(x, w, 2, (1, 2), rhs_dilation=(2, 2)),
        (drawn(6, 7), drawn(2, 3, seed=1)),
        lambda x, w: correlated(x, spread(w, 2), 2, (1, 2)),
    ),
    Report(
        "jax-ml/jax#563",
        "second derivatives of two convolutions, the second with a stride",
        lambda x, v, w: tnp.tanh(conv(conv(x, v, 1, (1, 1)), w, 2, (1, 0))).sum(),
        (drawn(6, 5), drawn(3, 3, seed=1), drawn(2, 2, seed=2)),
        lambda x, v, w: np.tanh(correlated(correlated(x, v, 1, (1, 1)), w, 2, (1, 0))).sum(),
        hessian=True,
    ),
    Report(
        "jax-ml/jax#380",
        "a loss after a step of descent",
        learned,
        (drawn(3, 2), drawn(5, 4, seed=1)),
        learned_right,
        rtol=1e-7,
    ),
    Report(
        "jax-ml/jax#11517",
        "a convolution with less than nothing left",
        lambda x, w: conv(x, w, 1, (1, -5)),
        (drawn(2, 3), drawn(2, 2)),
        lambda x, w: np.zeros((0, 0)),
    ),
    Report(
        "jax-ml/jax#11544",
        "a convolution that cuts on one side and pads on the other",
        lambda x, w: conv(x, w, 1, (2, -1)),
        (drawn(4, 5), drawn(2, 2, seed=1)),
        lambda x, w: correlated(np.pad(x, ((2, 0), (2, 0)))[:-1, :-1], w),
    ),
    Report(
        "pytorch/xla#2333",
        "a penalty on the gradient of a kernel",
        penalty,
        (drawn(3, 3), drawn(6, 6, seed=1)),
        penalty_right,
    ),
    Report(
        "PaddlePaddle/Paddle#20997",
        "a transposed convolution with two strides",
        transposed,
        (drawn(3, 2), drawn(2, 2, seed=1)),
        transposed_right,
    ),
    Report(
        "tillahoffmann/jax-mps#158",
        "convolutions by a kernel for each example",
        tl.vmap(conv),
        (drawn(3, 4, 4), drawn(3, 2, 2, seed=1)),
        lambda x, w: np.stack([correlated(a, b) for a, b in zip(x, w)]),
        hessian=True,
    ),
    Report(
        "jax-ml/jax#3289",
        "gradients of a kernel for each example",
        lambda w, x: tl.vmap(tl.grad(lambda w, x: (conv(x, w, 1, (1, 1)) ** 2).sum()), (None, 0))(w, x),
        (drawn(2, 2), drawn(2, 3, 3, seed=1)),
        lambda w, x: np.stack([correlated(np.pad(a, 1), 2 * correlated(a, w, 1, (1, 1))) for a in x]),
    ),
    Report(
        "PKUFlyingPig/CMU10-714#6",
        "a stride that leaves a rest",
        lambda x, w: conv(x, w, 3, (2, 2)),
        (drawn(8, 9), drawn(5, 5, seed=1)),
        lambda x, w: correlated(x, w, 3, (2, 2)),
    ),
    Report(
        "jax-ml/jax#1212",
        "all slopes of running products",
        tl.jacrev(tnp.cumprod),
        (drawn(4),),
        lambda x: np.array(
            [[np.prod(np.delete(x[: i + 1], j)) if j <= i else 0.0 for j in range(4)] for i in range(4)]
        ),
    ),
    Report(
        "Jittor/jittor#330",
        "running sums of some thousands",
        lambda x: tnp.cumsum(x, 1),
        (np.random.default_rng(0).integers(-9, 9, (2, 5003)).astype(np.int32),),
        lambda x: np.cumsum(x, 1, dtype=np.int32),
        slopes=None,
        mapped=False,
    ),
    Report(
        "jax-ml/jax#37991",
        "running sums as booleans",
        lambda x: tnp.cumsum(x, dtype=bool),
        (i32(-1, 1, 0, 2),),
        lambda x: np.cumsum(x, dtype=bool),
        slopes=None,
    ),
    Report(
        "pytorch/pytorch#26637",
        "running maxima",
        lambda x: lax.cummax(x),
        (TEN,),
        np.maximum.accumulate,
    ),
    Report(
        "tensorflow/tensorflow#120282",
        "running products without the last factor, some of them 0",
        lambda x: tnp.cumprod(tnp.concatenate([tnp.ones(1, x.dtype), x[:-1]])),
        (f64(2, 0, 3, 0, 5),),
        lambda x: np.cumprod(np.concatenate([[1], x[:-1]])),
        hessian=True,
    ),
    Report(
        "pytorch/pytorch#196701",
        "the second derivative of running products at a factor of 0",
        lambda t: (tnp.cumprod(tnp.stack([t, t + 2, t - 1, 3 * t - 4]))).sum(),
        (f64(1)[0],),
        lambda t: np.cumprod(np.stack([t, t + 2, t - 1, 3 * t - 4])).sum(),
        hessian=np.array(20.0),  # the sum is 9 t - 8 t**2 + 3 t**4
    ),
]


def winners(x):
    """How many windows each element is the largest of."""
    count = np.zeros_like(x)
    for i, j in itertools.product(range(0, 3, 2), range(0, 5, 2)):
        part = x[i : i + 3, j : j + 3]
        a, b = np.unravel_index(part.argmax(), part.shape)
        count[i + a, j + b] += 1
    return count
