"""Reports about rules of users: what they close over, what is not differentiated, under maps and loops."""

from functools import partial

import numpy as np

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests.public_reports.report import Refusal, Report, drawn, f64


@partial(tl.custom_jvp, nondiff_argnums=(0, 2))
def scaled(shape, x, seed):
    """x times a number of the seed, which its rule closes over."""
    return tnp.broadcast_to(x, shape) * (seed + 1)


@scaled.defjvp
def _(shape, seed, primals, tangents):
    return scaled(shape, *primals, seed), tnp.broadcast_to(tangents[0], shape) * (seed + 1)


@partial(tl.custom_vjp, nondiff_argnums=(0,))
def stretched(s, x):
    return s * tnp.sin(x)


stretched.defvjp(lambda s, x: (s * tnp.sin(x), x), lambda s, x, ct: (s * tnp.cos(x) * ct,))


@partial(tl.custom_vjp, nondiff_argnums=(1,))
def raised(x, n):
    return x**n


def _raised_back(n, x, ct):
    return (n * x ** (n - 1) * ct,)


raised.defvjp(lambda x, n: (x**n, x), _raised_back)


@tl.custom_jvp
def shifted(x):
    """A rule with an array of its own."""
    return tnp.sin(x + f64(0.1, 0.2))


shifted.defjvp(lambda primals, tangents: (shifted(*primals), tnp.cos(primals[0] + f64(0.1, 0.2)) * tangents[0]))


@tl.custom_jvp
def numbered(x):
    """A number and an integer, which has no tangent."""
    return x**2, 7


@numbered.defjvp
def _(primals, tangents):
    (x,), (t,) = primals, tangents
    return numbered(x), (2 * x * t, np.zeros((), tl.float0))


def masked(x, mask):
    """A rule that closes over a mask which a loop carries."""

    @tl.custom_jvp
    def f(x):
        return x * mask

    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * mask))
    return f(x)


@tl.custom_vjp
def clipped_slope(x):
    return x**3


clipped_slope.defvjp(lambda x: (x**3, x), lambda x, ct: (tnp.clip(3 * x**2, -1, 1) * ct,))


def perturbed(x):
    """Means over noise that is mapped inside of a rule."""
    noise = f64(-0.5, 0.1, 0.4)

    @tl.custom_jvp
    def f(x):
        return tl.vmap(lambda z: tnp.sin(x + z))(noise).mean(0)

    def rule(primals, tangents):
        (x,), (t,) = primals, tangents
        return f(x), tl.vmap(lambda z: tnp.cos(x + z) * t)(noise).mean(0)

    f.defjvp(rule)
    return f(x)


def mean_of(f):
    return lambda x: np.mean([f(x + z) for z in (-0.5, 0.1, 0.4)], 0)


def closed_over(x):
    """A derivative by what a rule closes over, which the rule does not know."""

    @tl.custom_jvp
    def f(y):
        return x * y

    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
    return f(2.0)


ROWS = [
    Report(
        "jax-ml/jax#3964",
        "a rule that is mapped over what it closes over",
        lambda x, s: tl.vmap(lambda s: scaled((2,), x, s))(s),
        (f64(1.5)[0], f64(0, 1, 2)),
        lambda x, s: np.repeat(x * (s + 1), 2).reshape(3, 2),
        slopes=None,
    ),
    Report(
        "jax-ml/jax#3808",
        "a mapped argument that is not differentiated",
        lambda s, x: tl.vmap(lambda s: tl.grad(lambda x: stretched(s, x))(x))(s),
        (f64(1, 2), f64(0.3)[0]),
        lambda s, x: s * np.cos(x),
        slopes=None,
    ),
    Report(
        "jax-ml/jax#2912",
        "a traced argument that is not differentiated",
        lambda s, x: tl.grad(tl.jit(lambda s, x: stretched(s, x)), 1)(s, x),
        (f64(2)[0], f64(0.3)[0]),
        lambda s, x: s * np.cos(x),
        slopes=None,
    ),
    Report(
        "jax-ml/jax#4617",
        "where the backward rule takes what is not differentiated",
        lambda x: raised(x, 3),
        (drawn(3),),
        lambda x: x**3,
    ),
    Report(
        "jax-ml/jax#4665",
        "a mapped scan of a rule with an array of its own",
        lambda x: tl.vmap(lambda x: lax.scan(lambda c, _: (shifted(c), None), x, None, length=3)[0])(x),
        (drawn(2, 2),),
        lambda x: np.sin(np.sin(np.sin(x + f64(0.1, 0.2)) + f64(0.1, 0.2)) + f64(0.1, 0.2)),
        hessian=True,
    ),
    Report(
        "jax-ml/jax#25724",
        "a rule with a result that is an integer",
        tl.vmap(numbered),
        (drawn(3),),
        lambda x: (x**2, np.full(3, 7, np.int32)),
    ),
    Report(
        "jax-ml/jax#20889",
        "a rule that closes over what a scan carries",
        lambda x, m: lax.scan(lambda c, _: ((masked(*c), c[1]), None), (x, m), None, length=2)[0][0],
        (drawn(3), np.array([True, False, True])),
        lambda x, m: x * m,
    ),
    Report(
        "jax-ml/jax#29342",
        "reverse mode of a rule with a map inside",
        perturbed,
        (drawn(2),),
        mean_of(np.sin),
        hessian=True,
    ),
    Report(
        "pytorch/pytorch#68060",
        "a backward rule that is not the derivative, mapped",
        tl.vmap(tl.grad(clipped_slope)),
        (f64(0.1, 0.5, 2, -3),),
        lambda x: np.clip(3 * x**2, -1, 1),
    ),
    Refusal(
        "jax-ml/jax#4008",
        "a derivative by what a rule closes over",
        tl.grad(closed_over),
        (f64(1.5)[0],),
        tl.errors.UnexpectedTracerError,
        ("closure", "float64[] of closed_over", "own derivative"),
    ),
    Report(
        "y1xiaoc/fwdlap#5",
        "second tangents of a mapped rule",
        lambda x, t: tl.jvp(lambda x: tl.jvp(tl.vmap(shifted), (x,), (t,))[1], (x,), (t,))[1],
        (drawn(3, 2), drawn(3, 2, seed=1)),
        lambda x, t: -np.sin(x + f64(0.1, 0.2)) * t**2,
    ),
    Report(
        "ott-jax/ott#461",
        "reverse mode over reverse mode of a backward rule",
        lambda x: tl.jacrev(tl.jacrev(lambda x: stretched(2.0, x)))(x)[0, 0, 0],
        (drawn(2),),
        lambda x: -2 * np.sin(x[0]),
    ),
    Report(
        "jax-ml/jax#9567",
        "what a loop does not carry is differentiated",
        lambda x: lax.scan(lambda y, _: (y * shifted(x)[0], None), 1.0, None, length=2)[0],
        (drawn(2),),
        lambda x: np.sin(x[0] + 0.1) ** 2,
    ),
]
