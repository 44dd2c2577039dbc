"""Reports about loops, branches and scans."""

import numpy as np

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.experimental.ode import odeint
from tests.public_reports.report import Report, drawn, f64, i32


def powered(x):
    """x**4 by a scan whose step is a branch."""

    def step(carry, _):
        def go(carry):
            y, n = carry
            return y * x, n + 1

        return lax.cond(carry[1] < 4, go, lambda carry: carry, carry), None

    return lax.scan(step, (tnp.ones_like(x), 0), None, length=6)[0][0]


def half_used(x):
    """A loop that carries more than is read."""

    def step(carry, _):
        return {k: v + tnp.sin(carry["a"]) for k, v in carry.items()}, None

    return tl.jit(lambda x: lax.scan(step, {"a": x, "b": tnp.zeros_like(x)}, None, length=3)[0]["a"] * x)(x)


def half_used_right(x):
    a = x
    for _ in range(3):
        a = a + np.sin(a)
    return a * x


def turned(y, t):
    """Steps along a field that rotates, with derivatives inside of the step."""

    def field(p, v):
        spin = tl.jacfwd(lambda p: tnp.stack([tnp.cos(p[0]) * p[1], tnp.sin(p[0]) * p[2], p[0] * p[1]]))(p)
        return spin @ v

    def step(carry, dt):
        p, v = carry
        return (p + dt * v, v + dt * field(p, v)), p[1]

    return lax.scan(step, (y, y[::-1]), t)[1]


def turned_right(y, t):
    p, v, out = y, y[::-1], []
    for dt in t:
        spin = np.array(
            [
                [-np.sin(p[0]) * p[1], np.cos(p[0]), 0],
                [np.cos(p[0]) * p[2], 0, np.sin(p[0])],
                [p[1], p[0], 0],
            ]
        )
        out.append(p[1])
        p, v = p + dt * v, v + dt * spin @ v
    return np.array(out)


def counted(a, b):
    """Two loops, the inner one's bound another argument's."""

    def outer(carry):
        i, total = carry

        def inner(carry):
            j, total = carry
            return j + 1, total + i * j

        return i + 1, lax.while_loop(lambda c: c[0] < b, inner, (0 * b, total))[1]

    return lax.while_loop(lambda c: c[0] < a, outer, (0 * a, 0 * a))[1]


def never(x, n):
    """A loop that some examples do not enter."""
    return lax.while_loop(lambda c: c[1] > 0, lambda c: (1 / (c[0] - 2) + c[0], c[1] - 1), (x, n))[0]


def never_right(x, n):
    for _ in range(n):
        x = 1 / (x - 2) + x
    return x


def guarded(x):
    """A direction, 0 at 0, by branches that are mapped."""
    return tl.vmap(lambda x: lax.cond(x @ x > 0, lambda x: x / tnp.sqrt(x @ x), tnp.zeros_like, x))(x)


def guarded_right(x):
    length = np.sqrt(np.sum(x**2, 1, keepdims=True))
    return np.where(length > 0, x / np.where(length > 0, length, 1), 0)


def nested_choice(p, x):
    """A branch that the outer of two maps decides."""
    return tl.vmap(lambda p: tl.vmap(lambda x: lax.cond(p, tnp.sin, lambda x: x**2, x))(x))(p)


def table_of(ids, weights, x):
    """A table that two parts of a batch add to, one after another."""

    def step(table, part):
        i, v = part
        return table.at[i].add(v * tnp.tanh(table[0])), None

    return lax.scan(step, x, (ids, weights))[0]


def table_right(ids, weights, x):
    x = np.array(x)
    for i, v in zip(ids, weights):
        np.add.at(x, i, v * np.tanh(x[0]))
    return x


def affine(a, b):
    """The composition of two maps x -> f x + g."""
    return a[0] * b[0], b[0] * a[1] + b[1]


def backwards(f, g):
    """Compositions from the end, in NumPy."""
    out = [(f[-1], g[-1])]
    for a, b in zip(f[-2::-1], g[-2::-1]):
        out.append((out[-1][0] * a, a * out[-1][1] + b))
    return tuple(np.array(x[::-1]) for x in zip(*out))


def multiplied_backwards(m):
    out = [m[-1]]
    for a in m[-2::-1]:
        out.append(out[-1] @ a)
    return np.stack(out[::-1])


def reduced(x):
    """Integers divided one by the next, in a loop."""
    return lax.fori_loop(1, 3, lambda i, y: y // x[i], x[0])


def decay(y, t, k):
    return -k * y


PAIR, TIMES = f64(0.5, 1.5), f64(0, 0.5, 1)

ROWS = [
    Report(
        "jax-ml/jax#5900",
        "a scan of branches that end early",
        powered,
        (f64(3)[0],),
        lambda x: x**4,
        hessian=np.array(108.0),
    ),
    Report("jax-ml/jax#1082", "a scan in jit of which one half is read", half_used, (f64(0.3)[0],), half_used_right),
    Report(
        "jax-ml/jax#7531",
        "a scan of steps with derivatives inside",
        turned,
        (f64(0.3, -0.2, 0.7), f64(0.1, 0.2, 0.1)),
        turned_right,
    ),
    Report(
        "jax-ml/jax#753",
        "slopes of a scan by what it reads",
        tl.jacrev(lambda ns: lax.scan(lambda x, n: (x + 2 * n, x + 2 * n), 0.5, ns)[1]),
        (drawn(4),),
        lambda ns: 2 * np.tri(4),
    ),
    Report(
        "jax-ml/jax#748",
        "third derivatives of a scan",
        tl.grad(tl.grad(lambda x: lax.scan(lambda c, a: (tnp.sin(c * a + x), None), x, PAIR)[0])),
        (f64(0.4)[0],),
        lambda x: second(lambda y: np.sin(np.sin(0.5 * y + y) * 1.5 + y), x),
        rtol=1e-6,  # of second differences of a value to 60 digits
        slopes=None,
    ),
    Report(
        "jax-ml/jax#1361",
        "a gradient of a jitted scan that keeps the last but one",
        lambda x: tl.jit(
            lambda x: lax.scan(lambda c, i: ((c[0] + 1, x * c[1], c[1]), None), (0, x, 0 * x), np.arange(4))[0][2]
        )(x),
        (f64(1.3)[0],),
        lambda x: x**4,
    ),
    Report(
        "jax-ml/jax#11586",
        "noise found again by a recurrence",
        lambda y: lax.scan(lambda e, y: (y - 0.5 * e, y - 0.5 * e), 0.0, y)[1],
        (drawn(5),),
        lambda y: np.linalg.solve(np.eye(5) + 0.5 * np.eye(5, k=-1), y),
    ),
    Report(
        "jax-ml/jax#9604",
        "negative integers divided in a loop",
        reduced,
        (i32(2, 2, -3),),
        i32(-1)[0],
        None,
        others=(i32(2, 2, -3),),
    ),
    Report(
        "jax-ml/jax#2960",
        "a loop that ends at two places, under two maps",
        lambda x, n: tl.vmap(
            lambda x: tl.vmap(
                lambda n: lax.while_loop(lambda c: c[1] < n, lambda c: (c[0] * 1.5, c[1] + 1), (x, 0))[0]
            )(n)
        )(x),
        (drawn(3), i32(0, 2, 1, 3, 5)),
        lambda x, n: x[:, None] * 1.5**n,
        slopes=None,
    ),
    Report(
        "jax-ml/jax#3204",
        "mapped loops inside of mapped loops",
        tl.vmap(counted),
        (i32(0, 1, 3, 4), i32(2, 3, 0, 4)),
        lambda a, b: a * (a - 1) // 2 * (b * (b - 1) // 2),
        slopes=None,
    ),
    Report(
        "patrick-kidger/equinox#870",
        "a loop whose condition is false at first",
        never,
        (f64(3)[0], i32(2)[0]),
        never_right,
        slopes=None,
        others=(f64(2)[0], i32(0)[0]),
    ),
    Report(
        "google/flax#4709",
        "a counted loop in a mapped branch",
        lambda x, k: lax.cond(k < 2, lambda x: lax.fori_loop(0, 3, lambda i, y: tnp.sin(y) + i, x), lambda x: 0 * x, x),
        (drawn(3), i32(1)[0]),
        lambda x, k: np.sin(np.sin(np.sin(x)) + 1) + 2 if k < 2 else 0 * x,
        others=(drawn(3), i32(2)[0]),
    ),
    Report(
        "jax-ml/jax#2264",
        "mapped gradients of a branch",
        tl.vmap(tl.grad(lambda x: lax.cond(x > 0, lambda x: x**2, lambda x: x**3, x))),
        (f64(-0.5, 0.3, -2),),
        lambda x: np.where(x > 0, 2 * x, 3 * x**2),
    ),
    Report(
        "jax-ml/jax#9159",
        "a direction at 0 by mapped branches",
        guarded,
        (f64([3, 4], [0, 0]),),
        guarded_right,
        slopes=(f64([16 / 125 - 12 / 125, 9 / 125 - 12 / 125], [0, 0]),),
    ),
    Report(
        "jax-ml/jax#5658",
        "a logarithm behind a mapped branch",
        tl.vmap(lambda x: lax.cond(x > 0, tnp.log, lambda x: x, x)),
        (f64(2, 0, -1),),
        lambda x: np.where(x > 0, np.log(np.where(x > 0, x, 1)), x),
        slopes=(f64(0.5, 1, 1),),
    ),
    Report(
        "pytorch/pytorch#195323",
        "a branch that the outer map decides",
        nested_choice,
        (np.array([True, False, True]), drawn(3)),
        lambda p, x: np.where(p[:, None], np.sin(x), x**2),
    ),
    Report(
        "openxla/xla#49143",
        "a table that a scan adds to",
        table_of,
        (i32([0, 2, 2], [1, 0, 0]), drawn(2, 3), drawn(4, seed=1)),
        table_right,
    ),
    Report(
        "jax-ml/jax#29313",
        "products from the end of matrices that do not commute",
        lambda m: lax.associative_scan(tnp.matmul, m, reverse=True),
        (drawn(3, 2, 2),),
        multiplied_backwards,
    ),
    Report(
        "triton-lang/triton#4362",
        "a recurrence from the end, by pairs",
        lambda f, g: lax.associative_scan(affine, (f, g), reverse=True),
        (drawn(5), drawn(5, seed=1)),
        backwards,
    ),
    Report(
        "jax-ml/jax#1584",
        "a gradient of the solution of an equation by its start and its rate",
        tl.jacrev(lambda y, k: odeint(decay, y, TIMES, k, rtol=1e-10, atol=1e-10), (0, 1)),
        (f64(1.5)[0], f64(0.7)[0]),
        lambda y, k: (np.exp(-k * TIMES), -TIMES * y * np.exp(-k * TIMES)),
        slopes=None,
        mapped=False,
        rtol=1e-6,  # the solver's
        steps=False,
    ),
    Report(
        "jax-ml/jax#22045",
        "a carry of an integer beside a number",
        lambda x: lax.scan(lambda c, t: (c, c[1] + t), tl.device_put((0, x)), np.arange(3.0))[1].sum(),
        (f64(0.5)[0],),
        lambda x: 3 * x + 3,
    ),
]


def second(f, x, h=1e-4):
    """The second derivative by fourth-order differences."""
    return (-f(x + 2 * h) + 16 * f(x + h) - 30 * f(x) + 16 * f(x - h) - f(x - 2 * h)) / (12 * h * h)
