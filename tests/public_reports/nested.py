"""Reports about derivatives of derivatives: perturbation confusion, zeros as factors, orders, moments."""

import numpy as np

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests.public_reports.report import Report, drawn, f64

D = tl.grad


def forward(f):
    """The derivative of a function of a number, in forward mode."""
    return lambda x: tl.jvp(f, (x,), (tnp.ones_like(x),))[1]


def lagrangian(q, v):
    return 0.5 * (v @ v) * (1 + q[0] ** 2) - 9.8 * q[1]


def normalized(x):
    return (x - x.mean()) / tnp.sqrt(x.var() + 1e-3)


def normalized_right(x):
    return (x - x.mean()) / np.sqrt(x.var() + 1e-3)


def entropy(x, y):
    return -(y * tnp.log(x) + (1 - y) * tnp.log1p(-x)).sum()


ORDERED = f64(3, 1, 2, 5)

ROWS = [
    Report(
        "JuliaDiff/ForwardDiff.jl#83",
        "a derivative that closes over the variable of another",
        forward(lambda x: x * forward(lambda y: x + y)(f64(1)[0])),
        (f64(1)[0],),
        lambda x: 0 * x + 1,
    ),
    Report(
        "JuliaDiff/ReverseDiff.jl#45",
        "the same in reverse mode",
        D(lambda x: x * D(lambda y: x * y)(1.0)),
        (f64(4)[0],),
        lambda x: 2 * x,
    ),
    Report(
        "JuliaDiff/ForwardDiff.jl#443",
        "forward mode in reverse mode in forward mode",
        forward(lambda x: D(lambda y: forward(lambda z: x * y * z**2)(f64(3)[0]))(x)),
        (f64(1)[0],),
        lambda x: 0 * x + 6,
    ),
    Report(
        "JuliaDiff/ForwardDiff.jl#59",
        "a function that contains its derivative",
        D(lambda x: D(lambda x: x**3 / 2)(x[0]) * x[1]),
        (f64(1, 2),),
        lambda x: f64(3 * x[0] * x[1], 1.5 * x[0] ** 2),
    ),
    Report(
        "JuliaDiff/ForwardDiff.jl#238",
        "momenta differentiated by positions",
        lambda q, v: tl.jacfwd(lambda q: tl.grad(lagrangian, 1)(q, v))(q),
        (f64(1, 2), f64(3, 4)),
        lambda q, v: np.outer(v, f64(2 * q[0], 0)),
    ),
    Report(
        "pytorch/pytorch#106789",
        "second derivatives of a product with two zeros",
        tnp.prod,
        (f64(2, 3, 0, 0),),
        np.prod,
        hessian=True,
    ),
    Report("pytorch/pytorch#82644", "a product of one factor, 0", tnp.prod, (f64(0),), np.prod),
    Report(
        "pytorch/pytorch#995",
        "a product with its sign turned",
        lambda x: -tnp.prod(x),
        (f64(2, 3),),
        lambda x: -np.prod(x),
    ),
    Report(
        "FluxML/Flux.jl#524",
        "products of columns with zeros",
        lambda x: tnp.prod(x, 0),
        (f64([1, 0, 0], [2, 3, 0], [4, 5, 6]),),
        lambda x: np.prod(x, 0),
        hessian=True,
    ),
    Report(
        "ml-explore/mlx#4114",
        "second derivatives of what is sorted",
        lambda x: (tnp.sort(x) ** f64(1, 2, 3, 2)).sum() + (lax.top_k(x, 2)[0] ** 3).sum() + (lax.cummax(x) ** 2).sum(),
        (ORDERED,),
        lambda x: (
            np.sum(np.sort(x) ** f64(1, 2, 3, 2)) + np.sum(np.sort(x)[2:] ** 3) + np.sum(np.maximum.accumulate(x) ** 2)
        ),
        hessian=True,
    ),
    Report(
        "pytorch/pytorch#186256",
        "third derivatives of what is normalized",
        lambda x: tl.jvp(lambda x: (normalized(x) ** 3 * f64(1, 2, 3, 4)).sum(), (x,), (f64(1, 0, 0, 2),))[1],
        (ORDERED,),
        lambda x: change(lambda x: np.sum(normalized_right(x) ** 3 * f64(1, 2, 3, 4)), x, f64(1, 0, 0, 2)),
        hessian=True,
        rtol=1e-6,  # of differences of differences
    ),
    Report(
        "pytorch/pytorch#59477",
        "second derivatives of a cross entropy by both arguments",
        entropy,
        (f64(0.2, 0.7, 0.5), f64(0.3, 0.9, 0)),
        lambda x, y: -np.sum(y * np.log(x) + (1 - y) * np.log1p(-x)),
        hessian=True,
    ),
    Report(
        "pytorch/pytorch#1712",
        "second derivatives of a median and a largest element",
        lambda x: tnp.median(x) ** 2 * tnp.max(x),
        (f64(3, 1, 2),),
        lambda x: np.median(x) ** 2 * np.max(x),
        hessian=True,
    ),
    Report(
        "FluxML/Zygote.jl#937",
        "a gradient in a gradient that does not depend on it",
        lambda x: tl.vjp(
            lambda z: tl.vjp(lambda x: 1 - (x**2).sum() - ((x - 0.5) ** 2).sum(), x)[1](1.0)[0] + 0 * z, x
        )[0],
        (f64(1),),
        lambda x: 1 - 4 * x,
    ),
    Report(
        "zgbkdlm/tme#7",
        "second derivatives along directions that depend on the point",
        lambda x: tl.jvp(lambda y: tl.jvp(lambda z: tnp.sin(z[0]) * z[1] ** 2, (y,), (x**2,))[1], (x,), (x,))[1],
        (f64(0.4, 1.2),),
        lambda x: (
            x
            @ f64([-np.sin(x[0]) * x[1] ** 2, 2 * np.cos(x[0]) * x[1]], [2 * np.cos(x[0]) * x[1], 2 * np.sin(x[0])])
            @ x**2
        ),
    ),
    Report(
        "HIPS/autograd#394",
        "coordinates to an angle and back",
        lambda x, y: (lambda p, r: (r * tnp.cos(p)) ** 2 + (r * tnp.sin(2 * p)) ** 2)(
            tnp.arctan2(y, x), tnp.sqrt(x**2 + y**2)
        ),
        (f64(1, -0.5), f64(0.3, 2)),
        lambda x, y: x**2 + (2 * x * y) ** 2 / (x**2 + y**2),
    ),
    Report(
        "HIPS/autograd#473",
        "contractions over axes in another order",
        lambda a, b: tnp.tensordot(a, b, ([2, 0], [0, 1])),
        (drawn(2, 3, 4), drawn(4, 2, 5, seed=1)),
        lambda a, b: np.tensordot(a, b, ([2, 0], [0, 1])),
        hessian=True,
    ),
    Report(
        "HIPS/autograd#31",
        "a contraction by numbered axes",
        lambda a, b: tnp.einsum(a, [0, 1], b, [1, 2, 0], [2]),
        (drawn(2, 3), drawn(3, 4, 2, seed=1)),
        lambda a, b: np.einsum("ij,jki->k", a, b),
    ),
    Report(
        "jax-ml/jax#2189",
        "a contraction that broadcasts",
        lambda a, b: tnp.einsum("...ij,...j", a, b),
        (drawn(2, 1, 3, 3), drawn(2, 4, 3, seed=1)),
        lambda a, b: np.einsum("...ij,...j", a, b),
    ),
    Report(
        "jax-ml/jax#740",
        "an outer product as a contraction of nothing",
        lambda a, b: tnp.tensordot(a, b, 0),
        (drawn(2, 3), drawn(2, seed=1)),
        lambda a, b: np.tensordot(a, b, 0),
    ),
    Report(
        "ml-explore/mlx#4125",
        "matrix products whose first batch axis is 1",
        lambda a, b: tnp.einsum("...ij,...jk->...ik", a, b),
        (drawn(1, 3, 2), drawn(2, 2, 3, seed=1)),
        lambda a, b: a @ b,
    ),
]


def change(f, x, t, h=1e-3):
    """The derivative along t, by differences of fourth order."""
    return (8 * (f(x + h * t) - f(x - h * t)) - f(x + 2 * h * t) + f(x - 2 * h * t)) / (12 * h)
