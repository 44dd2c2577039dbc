"""Reports about compiled programs that differ from the same operations one by one."""

from dataclasses import replace

import numpy as np
import scipy.special

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax, nn
from tests.public_reports.report import Report, drawn, f64, i32

ROWS_OF_THREE = np.stack([np.arange(16_385.0), np.zeros(16_385), np.zeros(16_385)], 1)
SMALL = np.float32


def wells(loc, scale):
    """A sum of two energies, with a norm and a soft minimum."""
    x = loc + scale * f64(-1.5, 0)
    return 0.5 * ((tnp.linalg.norm(x) - 2) / 0.4) ** 2 - nn.logsumexp(-0.5 * ((x[:1] + f64(-2, 2)) / 0.6) ** 2)


def wells_right(loc, scale):
    x = loc + scale * f64(-1.5, 0)
    return 0.5 * ((np.linalg.norm(x) - 2) / 0.4) ** 2 - scipy.special.logsumexp(
        -0.5 * ((x[:1] + f64(-2, 2)) / 0.6) ** 2
    )


def idle(x, w):
    """A mean with a term that is 0."""
    ys = tnp.ones((2000, 3), x.dtype)
    return tl.vmap(lambda y: (y - x) @ w + (y - x) @ tnp.zeros((3, 3), x.dtype) @ (y - x))(ys).mean()


def sine_and_half(x, y):
    """Two gradients of one forward pass, the second half of the first."""
    loss, pull = tl.vjp(lambda x: tnp.sin(x.T.copy()) @ y, x)
    return pull(tnp.ones_like(loss))[0] + pull(tnp.full_like(loss, 0.5))[0]


def rest(x, y):
    """What is lost when two numbers are added, by two sums and differences."""
    total = x + y
    part = total - x
    return (x - (total - part)) + (y - part)


def rest_right(x, y):
    total = (x.astype(np.float64) + y.astype(np.float64)).astype(x.dtype)
    return (x.astype(np.float64) + y.astype(np.float64) - total.astype(np.float64)).astype(x.dtype)


def remat_twice(w, x):
    fwd = tl.remat(lambda a, b: nn.relu(a @ b).sum())
    return tl.grad(fwd, 1)(w, x).sum() + fwd(w, x)


EACH = [
    Report("jax-ml/jax#939", "a norm beside a soft minimum", wells, (f64(0, 0), f64(1, 1)), wells_right),
    Report(
        "jax-ml/jax#39103",
        "squares of many small products, summed",
        lambda x: tl.vmap(lambda p: ((np.eye(3) @ p) ** 2).sum())(x)[-9:],
        (ROWS_OF_THREE,),
        lambda x: np.sum(x**2, 1)[-9:],
        slopes=None,
        mapped=False,
    ),
    Report(
        "openxla/xla#13054",
        "a term that is 0 beside the gradient of a mean",
        idle,
        (f64(0.5, 1, 2), f64(1, 2, 3)),
        lambda x, w: (1 - x) @ w,
    ),
    Report(
        "jax-ml/jax#29537",
        "an exponential of what is nan",
        lambda x: (tnp.exp(x * np.nan), tnp.exp(x.astype("float32") * np.float32(np.nan))),
        (f64(0.123, 2),),
        (f64(np.nan, np.nan), f64(np.nan, np.nan)),
        slopes=None,
    ),
    Report(
        "openxla/xla#46594",
        "an angle of two zeros that are computed",
        lambda x, y: tnp.arctan2(((x > y) ^ (x > y)).astype(x.dtype), (x != x).astype(x.dtype)),
        (drawn(4), drawn(4, seed=1)),
        np.zeros(4),
        slopes=None,
    ),
    Report(
        "tensorflow/tensorflow#57744",
        "a logarithm of a power that is not a number",
        lambda x: (tnp.log(x**x), tnp.log2(x**x)),
        (f64(-1.5, 2),),
        lambda x: (np.log(x**x), np.log2(x**x)),
        slopes=None,
    ),
    Report(
        "jax-ml/jax#7229",
        "a number of 64 bits added to an odd image of 32",
        lambda x, d: x + tnp.asarray(d, x.dtype),
        (np.random.default_rng(0).uniform(0, 1, (31, 11, 3)).astype(SMALL), f64(-0.3)[0]),
        lambda x, d: x + SMALL(d),
        slopes=None,
    ),
    Report(
        "pytorch/pytorch#13669",
        "one number that is broadcast, and the same one that is not",
        lambda z: tnp.exp(z) + (tnp.exp(z) - tnp.zeros(7, z.dtype)).sum(),
        (f64(1)[0],),
        lambda z: 8 * np.exp(z),
        hessian=True,
    ),
    Report(
        "pytorch/pytorch#22833",
        "a sum of what is broadcast and what is not",
        lambda z: (tnp.ones(2, z.dtype) * z**2 - z).sum(),
        (f64(1)[0],),
        lambda z: 2 * z**2 - 2 * z,
    ),
    Report(
        "tinygrad/tinygrad#16571",
        "two gradients of one forward pass",
        sine_and_half,
        (drawn(2, 3), drawn(2, seed=1)),
        lambda x, y: 1.5 * np.cos(x) * y[:, None],
    ),
    Report(
        "tinygrad/tinygrad#14278",
        "an argument that is a result as well",
        lambda x, y: (x, x.at[0].add(y[0]), x),
        (drawn(3), drawn(3, seed=1)),
        lambda x, y: (x, x + y[0] * np.eye(1, 3)[0], x),
    ),
    Report(
        "jax-ml/jax#777",
        "a sigmoid by its formula far below 0",
        lambda x: 1 / (1 + tnp.exp(-x)),
        (np.array([-80, -50, -20, 0, 3], SMALL),),
        lambda x: scipy.special.expit(x),
        rtol=1e-6,
    ),
    Report(
        "tracel-ai/burn#5373",
        "softplus of large numbers",
        lambda x: nn.softplus(5 * x) / 5,
        (np.array([-100, -1, 20, 50, 100], SMALL),),
        lambda x: np.logaddexp(0, 5 * x) / 5,
        rtol=1e-6,
    ),
    Report(
        "jax-ml/jax#2107",
        "softplus at 0",
        nn.softplus,
        (f64(0, 1e-9, -3),),
        lambda x: np.logaddexp(0, x),
        hessian=np.diag(f64(0.25, 0.25, np.exp(-3) / (1 + np.exp(-3)) ** 2)),
    ),
    Report(
        "jax-ml/jax#1626",
        "logarithms of sums of infinities",
        lambda x, y: (tnp.logaddexp(x, y), nn.logsumexp(tnp.stack([x, y]), 0)),
        (f64(np.inf, -np.inf, np.inf, 1, np.nan), f64(np.inf, -np.inf, -np.inf, -np.inf, 1)),
        lambda x, y: (np.logaddexp(x, y), np.logaddexp(x, y)),
        slopes=None,
    ),
    Report(
        "jax-ml/jax#23007",
        "what a sum of 16 bits loses",
        rest,
        (
            np.array([4, 5, 6, 1], SMALL).astype("bfloat16"),
            np.array([0.001, 0.002, 0.5, 0.003], SMALL).astype("bfloat16"),
        ),
        rest_right,
        slopes=None,
        mapped=False,
    ),
    Report(
        "jax-ml/jax#39336",
        "a factor before a product and a bias",
        lambda a, m, b, xs: tl.vmap(lambda x: a * (m @ x + b))(xs),
        (f64(0.1)[0], drawn(4, 3), 100 * drawn(4, seed=1), drawn(5, 3, seed=2)),
        lambda a, m, b, xs: a * (xs @ m.T + b),
    ),
    Report(
        "jax-ml/jax#5507",
        "a gradient of a gradient of a checkpoint",
        remat_twice,
        (drawn(2, 3), drawn(3, 2, seed=1)),
        lambda w, x: np.sum(w.T @ (w @ x > 0)) + np.sum(np.maximum(w @ x, 0)),
    ),
    Report(
        "jax-ml/jax#9836",
        "a checkpoint in a scan whose carry has no dtype of its own",
        lambda x: lax.scan(tl.checkpoint(lambda c, a: (c * a, c)), 1.0, x)[0],
        (drawn(3),),
        np.prod,
        hessian=True,
    ),
    Report(
        "diku-dk/futhark#1194",
        "integers that cancel",
        lambda x, y: (x - (x + y), (x + y) - x),
        (i32(1, 2**31 - 1, 5), i32(7, 9, -(2**31))),
        lambda x, y: (x - (x + y), (x + y) - x),
        None,
    ),
    Report(
        "jax-ml/jax#13042",
        "powers whose common factor is drawn out, or not",
        lambda k, r: tnp.exp(-(f64(1, 2) ** k - f64(0, 1) ** k) * ((-tnp.log(r)) ** (1 / k)) ** k).sum(),
        (f64(0.5)[0], f64(0.9)[0]),
        lambda k, r: np.sum(np.exp(np.log(r) * (f64(1, 2) ** k - f64(0, 1) ** k))),
    ),
]
ROWS = [replace(row, alone=True) for row in EACH]
