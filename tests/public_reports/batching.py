"""Reports about maps: of derivatives, in other derivatives, of several axes at once."""

import numpy as np

import tapeless as tl
import tapeless.numpy as tnp
from tests.public_reports.report import Refusal, Report, drawn, f64


def residual(a, x, y):
    return ((y - x @ a.T) ** 2).sum()


def slopes_of_cov(x):
    """Tangents of a covariance, under two maps of which one maps nothing that it reads."""

    def push(d, x):
        return tl.jvp(tnp.cov, (x,), (f64(1, -2),))[1] + 0 * d

    return tl.vmap(tl.vmap(push, (0, None)), (None, 0))(np.zeros(2), x)


ROWS = [
    Report(
        "pytorch/functorch#847",
        "mapped slopes of a norm",
        tl.vmap(tl.jacrev(lambda x: tnp.linalg.norm(x, axis=0, keepdims=True))),
        (drawn(4, 3),),
        lambda x: (x / np.linalg.norm(x, axis=1, keepdims=True))[:, None],
    ),
    Report(
        "pytorch/functorch#922",
        "mapped reverse mode with one cotangent for all",
        lambda x, v: tl.vmap(lambda x, v: tl.vjp(lambda x: tnp.exp(x).sum(1), x)[1](v)[0], (0, None))(x, v),
        (drawn(2, 3, 4), drawn(3, seed=1)),
        lambda x, v: np.exp(x) * v[:, None],
    ),
    Report(
        "pytorch/functorch#597",
        "mapped Hessians by a matrix",
        lambda a, x: tl.vmap(tl.hessian(residual))(a, x, x),
        (drawn(3, 2, 2), drawn(3, 5, 2, seed=1)),
        lambda a, x: np.einsum("ij,bkl->bikjl", 2 * np.eye(2), np.einsum("bnk,bnl->bkl", x, x)),
    ),
    Report(
        "pytorch/functorch#842",
        "mapped tangents of a covariance",
        slopes_of_cov,
        (drawn(3, 2),),
        lambda x: np.repeat((x[:, 0] - x[:, 1]) * 3, 2).reshape(3, 2),
    ),
    Refusal(
        "ml-explore/mlx#600",
        "two arrays whose first axes differ",
        lambda x, y: tl.vmap(lambda a, b: a + b)(x, y),
        (np.ones((10, 1)), np.ones((1, 1, 1, 5))),
        ValueError,
        ("vmap", "10", "1"),
    ),
    Report(
        "ml-explore/mlx#1845",
        "mapped parts of a matrix",
        lambda x: tl.vmap(lambda x: tnp.split(x, 3, axis=1), 2, 1)(x),
        (drawn(2, 6, 4),),
        lambda x: [np.moveaxis(p, 2, 1) for p in np.split(x, 3, axis=1)],
    ),
    Report(
        "pytorch/pytorch#138422",
        "mapped rows of slopes of a jitted function",
        lambda x: tl.vmap(lambda v: tl.vjp(tl.jit(lambda x: x**2 * x[0]), x)[1](v)[0])(np.eye(3)),
        (drawn(3),),
        lambda x: np.diag(2 * x * x[0]) + np.outer(x**2, np.eye(3)[0]),
    ),
    Report(
        "pytorch/pytorch#120538",
        "gradients of several models by slices of stacked parameters",
        lambda w, x: tl.vmap(tl.grad(lambda w, x: ((x @ w) ** 2).mean()), (0, None))(w[1:], x),
        (drawn(4, 2), drawn(5, 2, seed=1)),
        lambda w, x: 2 * (w[1:] @ x.T) @ x / 5,
    ),
    Report(
        "pytorch/pytorch#182842",
        "tangents through a map over the last axis",
        lambda x, t: tl.jvp(lambda x: tl.vmap(lambda c: c / tnp.sqrt(c @ c), -1, -1)(x), (x,), (t,))[1],
        (drawn(3, 2), drawn(3, 2, seed=1)),
        lambda x, t: (lambda r: t / r - x * (x * t).sum(0) / r**3)(np.sqrt((x**2).sum(0))),
    ),
]
