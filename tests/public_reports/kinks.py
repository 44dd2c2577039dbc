"""Reports about derivatives at 0, at ties, beside nan, and behind choices."""

import numpy as np

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests.public_reports.report import Report, f64

NAN, INF = np.nan, np.inf
APART = f64([1, 2, 3], [0.2, 4, 6])


def kernel(a, b):
    return tnp.exp(-(tnp.linalg.norm(a - b) ** 2) / 4)


def pairs(x):
    """A sum over pairs, the diagonal chosen away after its infinite terms were computed."""
    d = tnp.sqrt(((x[:, None] - x[None]) ** 2).sum(-1))
    apart = ~np.eye(len(x), dtype=bool)
    return tnp.where(apart, 1 / tnp.where(apart, d, 1), 0).sum()


def pairs_right(x):
    return 2 / np.sqrt(np.sum((x[0] - x[1]) ** 2))


def of_present(x):
    """The mean of squares of what is not nan."""
    return tnp.nanmean(x**2)


ROWS = [
    Report(
        "jax-ml/jax#4177",
        "a squared norm at 0",
        lambda x: tnp.linalg.norm(x) ** 2,
        (f64(0, 0),),
        lambda x: np.sum(x**2),
        hessian=2 * np.eye(2),
    ),
    Report(
        "jax-ml/jax#21723",
        "a squared norm of a number at 0",
        lambda x: tnp.linalg.norm(x[None]) ** 2,
        (f64(0)[0],),
        lambda x: x**2,
    ),
    Report(
        "jax-ml/jax#6484",
        "a squared distance of a point from itself",
        lambda x, y: tnp.linalg.norm(x - y) ** 2,
        (f64(1, 2), f64(1, 2)),
        lambda x, y: np.sum((x - y) ** 2),
        hessian=None,
    ),
    Report(
        "HIPS/autograd#586",
        "a squared norm of a matrix at 0",
        lambda x: tnp.linalg.norm(x, "fro") ** 2,
        (np.zeros((2, 2)),),
        lambda x: np.sum(x**2),
    ),
    Report("pytorch/pytorch#2421", "a norm at 0", tnp.linalg.norm, (f64(0),), f64(0)[0], (f64(0),)),
    Report(
        "jax-ml/jax#26248",
        "a norm of a multiple of 0",
        lambda a, x: tnp.linalg.norm(a * x),
        (f64(1.3)[0], f64(0, 0)),
        f64(0)[0],
        (f64(0)[0], f64(0, 0)),
    ),
    Report(
        "pytorch/functorch#1097",
        "mixed derivatives of a kernel where both points are one",
        lambda a: tl.jacfwd(tl.grad(kernel), 1)(a, a),
        (f64(0.3, -1),),
        lambda a: np.eye(2) / 2,
        None,
    ),
    Report(
        "jax-ml/jax#3407",
        "inverse distances of pairs, the diagonal chosen away",
        pairs,
        (APART,),
        pairs_right,
        hessian=True,
    ),
    Report(
        "jax-ml/jax#347",
        "a root behind a choice",
        lambda x: tnp.where(tnp.sqrt((x**2).sum(1)) > 0.5, tnp.sqrt((x**2).sum(1)), 1),
        (f64([3, 4], [0, 0]),),
        f64(5, 1),
        (f64([0.6, 0.8], [0, 0]),),
    ),
    Report(
        "jax-ml/jax#5798",
        "a root that is not chosen, at 0",
        lambda x: tnp.where(x < 1, x, tnp.sqrt(x)),
        (f64(0, 1e-9, 4),),
        lambda x: np.where(x < 1, x, np.sqrt(x)),
        (f64(1, 1, 0.25),),
    ),
    Report(
        "jax-ml/jax#2630",
        "an infinite product that is not chosen",
        lambda x: tnp.where(x > 0, 0.0, x * INF),
        (f64(1),),
        f64(0),
        (f64(0),),
    ),
    Report(
        "jax-ml/jax#1052",
        "an angle at the origin that is not chosen",
        lambda x: tnp.where(x > 0.5, tnp.arctan2(x, x), 0),
        (f64(0, 1),),
        f64(0, np.pi / 4),
        (f64(0, 0),),
    ),
    Report(
        "tensorflow/tensorflow#118674",
        "roots and inverses that are not chosen",
        lambda x: tnp.where(x > 0, tnp.sqrt(x), 0) + tnp.where(x > 0, 1 / x, 1),
        (f64(0, -1, 4),),
        f64(1, 1, 2.25),
        (f64(0, 0, 0.25 - 1 / 16),),
    ),
    Report(
        "jax-ml/jax#20601",
        "a factor of nan that is not chosen",
        lambda b: lax.select(np.array(False), b * NAN, 1.0 + 0 * b),
        (f64(2.3)[0],),
        f64(1)[0],
        (f64(0)[0],),
    ),
    Report(
        "sail-sg/jax_xc#29",
        "a mapped logarithm behind a choice",
        tl.vmap(lambda x: tnp.where(x > 0, tnp.log(x), 0)),
        (f64(1, 0),),
        f64(0, 0),
        (f64(1, 0),),
    ),
    Report(
        "jax-ml/jax#9040",
        "a mean of squares beside nan",
        of_present,
        (f64(NAN, 1, 2, 3),),
        lambda x: np.nanmean(x**2),
        (f64(0, 2, 4, 6) / 3,),
    ),
    Report(
        "jax-ml/jax#8128",
        "deviations beside nan",
        lambda x: (tnp.nanstd(x), tnp.nanvar(x)),
        (f64(NAN, 1, 2, 4),),
        lambda x: (np.nanstd(x), np.nanvar(x)),
        (f64(0, *(f64(1, 2, 4) - 7 / 3)) * (1 / (3 * np.std([1, 2, 4])) + 2 / 3),),
    ),
    Report("jax-ml/jax#11716", "the deviation of equal numbers", tnp.std, (f64(1, 1),), f64(0)[0], (f64(0, 0),)),
    Report(
        "jax-ml/jax#7440",
        "powers of 0",
        lambda x, y: x**y,
        (f64(0, 0, 2), f64(2, 1, 0)),
        lambda x, y: np.where(x == 0, 0, x**y),
        (f64(0, 1, 0), f64(0, 0, np.log(2))),
    ),
    Report(
        "jax-ml/jax#13600",
        "a largest element that occurs twice, and its first place",
        lambda x: (tnp.max(x), x[tnp.argmax(x)]),
        (f64(1, 3, 3),),
        lambda x: (np.max(x), np.max(x)),
        (f64(0, 1.5, 0.5),),
    ),
    Report(
        "apache/mxnet#18563",
        "columns of equal numbers",
        lambda x: tnp.max(x, 0),
        (np.ones((4, 3)),),
        np.ones(3),
        (np.full((4, 3), 0.25),),
    ),
    Report(
        "HIPS/autograd#212",
        "the larger of two equal numbers",
        tnp.maximum,
        (f64(1, 2), f64(1, 3)),
        np.maximum,
        (f64(0.5, 0), f64(0.5, 1)),
    ),
    Report(
        "jax-ml/jax#654",
        "distances with the diagonal chosen away twice, in forward mode",
        lambda x: tl.jvp(pairs, (x,), (x,))[1],
        (APART,),
        lambda x: -pairs_right(x),
    ),
]
