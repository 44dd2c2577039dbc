"""Products with conditions are 0 where these are false, in any order, though the rest or its derivative is infinite."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import index as ix

pytestmark = pytest.mark.usefixtures("eager_by_steps")

POINT = np.array([0.0, 1.0, np.inf, np.nan, -1.0, 2.0])
CHOSEN = np.array([False, True, False, False, False, True])
PAIRS = np.zeros((6, 6), bool)
PAIRS[[0, 3, 3], [1, 5, 1]] = True
AT = np.where(CHOSEN, POINT, 1.0)  # what the loops read: elements that are not chosen are multiplied by 0


@pytest.fixture(autouse=True)
def in_64_bits():
    with tl.enable_x64():
        yield


CONDITIONS = {
    "boolean array": lambda: (tnp.asarray(CHOSEN), tnp.asarray(PAIRS)),
    "relation": lambda: (
        ix.relation(([1, 5],), (6,)),
        ix.relation(([0, 3, 3], [1, 5, 1]), (6, 6)),
    ),
    "comparison": lambda: (Comparison(), tnp.asarray(PAIRS)),
}


class Comparison:
    """The same elements by comparisons of an index."""

    def __getitem__(self, i):
        return (i == 1) | (i == 5)


def by_elements(element):
    """Body of a vector whose elements are these functions of the vector, conditions and an index."""
    return lambda w, r, r2: ix.build(6, lambda i: element(w, r, r2, i))


def diagonal(w, r, r2):
    return ix.build((6, 6), lambda i, j: (r[i] & (i == j)) * tnp.log(w[j]) * w[i]).sum(0)


def folded(w, r, r2):
    return ix.fold(lambda c, k: c + r[k] * tnp.log(w[k]) * w[k], 0.0, 6)


def scanned(w, r, r2):
    return ix.scan(lambda c, k: (c + 1.0, r[k] * tnp.log(w[k]) * c), 0.0, 6)[1]


def entropy(x):
    return CHOSEN * x * np.log(x)


BODIES = [  # and their elements by NumPy, at AT
    (by_elements(lambda w, r, r2, i: r[i] * (1 / w[i])), lambda x: CHOSEN / x),
    (by_elements(lambda w, r, r2, i: r[i] / w[i] * tnp.log(w[i])), lambda x: CHOSEN * np.log(x) / x),
    (by_elements(lambda w, r, r2, i: r[i] * tnp.sqrt(w[i]) * w[i]), lambda x: CHOSEN * x**1.5),
    (by_elements(lambda w, r, r2, i: -(2 * (w[i] * r[i])) * tnp.log(w[i])), lambda x: -2 * entropy(x)),
    (by_elements(lambda w, r, r2, i: (r[i] * w[i]) * (r[i] * tnp.log(w[i]))), entropy),
    (by_elements(lambda w, r, r2, i: r[i] * w[i] * (i > 0) * tnp.log(w[i])), entropy),
    (by_elements(lambda w, r, r2, i: ix.exists(6, lambda j: r2[j, i]) * tnp.log(w[i]) * w[i]), entropy),
    (
        by_elements(lambda w, r, r2, i: ix.sum(6, lambda j: r2[i, j] * tnp.log(w[j]) * w[j])),
        lambda x: PAIRS @ entropy(x),
    ),
    (diagonal, entropy),
    (folded, lambda x: np.sum(entropy(x))),
    (scanned, lambda x: CHOSEN * np.log(x) * np.arange(6)),
    (
        by_elements(lambda w, r, r2, i: r[i] * ix.fold(lambda c, k: c * tnp.log(w[i] + 1), w[i], 2)),
        lambda x: CHOSEN * x * np.log(x + 1) ** 2,
    ),
]


@pytest.mark.parametrize("conditions", CONDITIONS)
@pytest.mark.parametrize(("body", "elements"), BODIES)
def test_what_is_not_chosen_is_zero(conditions, body, elements):
    """Value, gradient, tangent, batch, checkpoint and second derivative, against central differences.

    Compiled; eagerly for one of the conditions, another one for every body.
    """
    w, f = tnp.asarray(POINT), lambda w: body(w, *CONDITIONS[conditions]())
    total = lambda w: f(w).sum()  # noqa: E731
    first = [tl.grad(total), tl.grad(tl.checkpoint(total)), tl.jacfwd(total), lambda w: batched(tnp.stack([w, w]))[1]]
    batched = tl.vmap(tl.grad(total))
    second = [
        lambda w: tl.jvp(tl.grad(total), (w,), (tnp.ones(6),))[1],
        tl.grad(lambda w: tl.grad(total)(w).sum()),
        tl.grad(lambda w: tl.jvp(total, (w,), (tnp.ones(6),))[1]),
    ]
    values, slopes, curvatures = tl.jit(lambda w: tuple([[g(w) for g in gs] for gs in ([f], first, second)]))(w)
    bodies = [of for of, _ in BODIES]
    if (bodies.index(body) + list(CONDITIONS).index(conditions)) % len(CONDITIONS) == 0:
        values, slopes, curvatures = [*values, f(w)], [*slopes, first[0](w)], [*curvatures, second[1](w)]
    for value in values:
        np.testing.assert_allclose(value, elements(AT), rtol=1e-12)
    step = 1e-6
    moved = [(np.sum(elements(AT + step * e)) - np.sum(elements(AT - step * e))) / (2 * step) for e in np.eye(6)]
    for slope in slopes:
        np.testing.assert_allclose(slope, np.where(CHOSEN, moved, 0), rtol=1e-7, atol=1e-7)
    for curvature in curvatures:
        assert np.all(np.isfinite(curvature))
        np.testing.assert_array_equal(np.asarray(curvature)[~CHOSEN], 0)
        np.testing.assert_allclose(curvature, curvatures[0], rtol=1e-12, atol=1e-12)


WHERE_OUTSIDE_IS_INFINITE = {
    "index": lambda q, i: (i % 4 != 0) * q[i],
    "element": lambda q, i: (q[i] < 10) * q[i],
    "where": lambda q, i: ix.where(i % 4 != 0, q[i], 0.0),
    "sum": lambda q, i: ix.sum(5, lambda j: ((j == i) & (i % 4 != 0)) * q[j]),
    "loop": lambda q, i: ix.fold(lambda c, k: c + (i % 4 != 0) * q[i], 0.0, 1),
}


@pytest.mark.parametrize("name", WHERE_OUTSIDE_IS_INFINITE)
def test_what_is_not_chosen_was_computed_outside(name):
    """The body chooses; what is infinite where it does not is a derivative outside of it."""
    body = WHERE_OUTSIDE_IS_INFINITE[name]

    def f(p):
        q = 1 / p
        return ix.sum(5, lambda i: body(q, i))

    p = tnp.array([0.0, 1.0, 2.0, 4.0, 0.0])
    once, twice = tl.grad(f), tl.grad(lambda p: tl.grad(f)(p).sum())
    for slope, curvature in ((once(p), twice(p)), tl.jit(lambda p: (once(p), twice(p)))(p)):
        np.testing.assert_allclose(slope, [0, -1, -0.25, -0.0625, 0], rtol=1e-12)
        np.testing.assert_allclose(curvature, [0, 2, 0.25, 0.03125, 0], rtol=1e-12)


def test_conditions_multiply_arrays():
    """The condition of an element, times an array that is not finite, times an element."""
    w, rows = tnp.asarray(POINT), tnp.asarray(np.stack([POINT] * 6))
    found = ix.build(6, lambda i: (i == 1) * rows[i] * w[i + 1])
    np.testing.assert_array_equal(found[np.arange(6) != 1], 0)
    np.testing.assert_array_equal(found[1][1:3], np.inf)


def test_products_in_what_bodies_call():
    """Branches, loops, checkpoints and jitted functions, in a body and in a step."""
    logarithm = lambda w, i: w[i] * tnp.log(w[i])  # noqa: E731
    calls = [
        lambda c, w, i: tl.jit(lambda w: c(i) * logarithm(w, i))(w),
        lambda c, w, i: tl.lax.cond(i < 6, lambda w: logarithm(w, i) * c(i), lambda w: w[0], w),
        lambda c, w, i: tl.checkpoint(lambda w: w[i] * (c(i) * tnp.log(w[i])))(w),
        lambda c, w, i: tl.lax.scan(lambda s, _: (s + c(i) * logarithm(w, i), None), 0.0, None, length=1)[0],
        lambda c, w, i: tl.jit(lambda w: tl.lax.cond(i < 6, lambda w: logarithm(w, i) * c(i), lambda w: w[0], w))(w),
    ]
    r, w = tnp.asarray(CHOSEN), tnp.asarray(POINT)

    def values(w):
        bodies = [ix.build(6, lambda i, f=f: f(lambda i: r[i], w, i)) for f in calls]
        steps = [ix.scan(lambda s, k, f=f: (s, f(lambda k: (k == 1) | (k == 5), w, k)), 0.0, 6)[1] for f in calls[:2]]
        return tnp.stack([*bodies, *steps])

    found, slopes = tl.jit(lambda w: (values(w), tl.jacrev(lambda w: values(w).sum(1))(w)))(w)
    np.testing.assert_allclose(found, [entropy(AT)] * 7, rtol=1e-12)
    np.testing.assert_allclose(slopes, [CHOSEN * (np.log(AT) + 1)] * 7, rtol=1e-12)


def test_choices_that_are_no_products_stay():
    """What `where` chooses is multiplied as any number is."""
    w = tnp.asarray(POINT)
    found = ix.build(6, lambda i: ix.where(i == 1, w[i], 0.0) * w[2])
    np.testing.assert_array_equal(found, np.where(np.arange(6) == 1, np.inf, np.nan))


@pytest.mark.parametrize(
    "body",
    [
        lambda x, i: (i > 5) * tnp.sqrt(x[2]),
        lambda x, i: ((i > i + 1) & (i > 0)) * ((x[2] > 0.1) * tnp.sqrt(x[2])),
        lambda x, i: ix.min(3, lambda k: (k > 5) * tnp.sqrt(x[2])),
    ],
)
def test_conditions_that_never_hold(body):
    """Their derivative is 0 although the function's is nan, also where each step runs as it comes."""
    f = lambda x: ix.build(2, lambda i: body(x, i))  # noqa: E731
    x, ct = tnp.array([1.0, 2.0, -3.0]), tnp.ones(2)
    for pulled in (tl.vjp(f, x)[1](ct)[0], tl.jit(lambda x: tl.vjp(f, x)[1](ct)[0])(x)):
        np.testing.assert_array_equal(pulled, 0)
    np.testing.assert_array_equal(tl.jvp(f, (x,), (x,))[1], 0)
    of_batch = tl.vmap(tl.grad(lambda x: f(x).sum()))(tnp.stack([x, x]))
    np.testing.assert_array_equal(of_batch, 0)


SECOND = {
    "data": lambda x: ix.sum(4, lambda i: (x[i] > 0) * tnp.log(x[i])),
    "indices": lambda x: ix.build(4, lambda i: ((i > 0) & (i < 3)) * tnp.log(x[i])).sum(),
    "quotient": lambda x: ix.sum((4, 4), lambda i, j: (i < j) / (x[i] - x[j])),
    "relation": lambda x: ix.sum((4, 4), lambda i, j: RELATED[i, j] * ((x[j] > 0) * tnp.log(x[j]))),
    "where": lambda x: ix.sum(4, lambda i: ix.where(x[i] > 0, x[i] ** 1.5, 0.0)),
    "fold": lambda x: ix.fold(lambda c, k: c + (x[k] > 0) * tnp.log(x[k]), 0.0, 4),
    "maximum": lambda x: ix.max(4, lambda i: ix.where(x[i] > 0, tnp.log(x[i]), -9.0)),
}
RELATED = ix.relation(([0, 1, 1, 3], [1, 2, 1, 0]), (4, 4))


@pytest.mark.parametrize("name", SECOND)
def test_reverse_over_reverse(name):
    """Eager as compiled, without nan of what brackets leave out."""
    x, g = tnp.array([0.0, 1.0, 2.0, -1.0]), tl.grad(SECOND[name])
    twice = tl.grad(lambda x: (g(x) ** 2).sum())
    compiled, expected = tl.jit(lambda x: (twice(x), 2 * tl.jvp(g, (x,), (g(x),))[1]))(x)
    for found in (twice(x), compiled):
        assert np.all(np.isfinite(found))
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_reverse_over_reverse_of_jitted_bodies():
    """Second derivatives outside of jit: 1 / x where a condition holds."""
    odd = ix.relation(([1, 3],), (4,))
    conditions = (lambda x, i: x[i] > 0, lambda x, i: i % 2 == 1, lambda x, i: odd[i])
    f = tl.jit(lambda x: sum(ix.sum(4, lambda i, p=p: p(x, i) * (x[i] * tnp.log(x[i]))) for p in conditions))
    found = tl.grad(lambda x: tl.grad(f)(x).sum())(tnp.array([0.0, 2.0, 0.0, 4.0]))
    np.testing.assert_allclose(found, [0, 1.5, 0, 0.75], rtol=1e-6)


@pytest.mark.parametrize("n", [4, 40])
@pytest.mark.parametrize("name", ["x log x", "1 / x", "sqrt", "sin log"])
def test_reverse_over_reverse_of_ranges(name, n):
    """A condition that is a range of indices is a read of this range in the halves of a jitted body's derivative."""
    p, second = {
        "x log x": (lambda v: v * tnp.log(v), lambda v: 1 / v),
        "1 / x": (lambda v: 1 / v, lambda v: 2 / v**3),
        "sqrt": (tnp.sqrt, lambda v: -0.25 * v**-1.5),
        "sin log": (lambda v: tnp.sin(tnp.log(v)), lambda v: -(np.sin(np.log(v)) + np.cos(np.log(v))) / v**2),
    }[name]
    f = tl.jit(lambda x: ix.sum(n, lambda i: (i >= n // 2) * p(x[i])))
    last = np.linspace(2.0, 4.0, n // 2)
    found = tl.grad(lambda x: tl.grad(f)(x).sum())(tnp.concatenate([tnp.zeros(n // 2), last]))
    np.testing.assert_allclose(found, [*np.zeros(n // 2), *second(last)], rtol=1e-5)


R = np.array([[0, 1, 0, 1], [0, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]], bool)
ODD, NEVER = np.add.outer(np.arange(4), np.arange(4)) % 2 == 1, np.zeros((4, 4), bool)
EVEN_ROWS = (np.arange(4) % 2 == 0)[:, None]
S = ix.sparse(np.nonzero(R), tnp.ones(R.sum()), R.shape)
AROUND = {  # conditions around others, and where both hold
    "product": (lambda r, f: ix.build(4, lambda i: ix.sum(4, lambda j: r[i, 1] * (r[i, 2] * f(j)))), NEVER),
    "sum": (lambda r, f: ix.build(4, lambda i: r[i, 1] * ix.sum(4, lambda j: r[i, 2] * f(j))), NEVER),
    "one element": (lambda r, f: ix.build(4, lambda i: r[i, 1] * (r[i, 2] * f(0))), NEVER),
    "pairs": (lambda r, f: ix.build(4, lambda i: r[i, 1] * ix.sum(4, lambda j: r[i, j] * f(j))), R & R[:, 1:2]),
    "where": (lambda r, f: ix.sum((4, 4), lambda i, j: r[i, 1] * ix.where(r[i, j], f(j), 0.0)), R & R[:, 1:2]),
    "indices inside": (
        lambda r, f: ix.build(4, lambda i: r[i, 1] * ix.sum(4, lambda j: ((i + j) % 2 == 1) * f(j))),
        ODD & R[:, 1:2],
    ),
    "indices outside": (
        lambda r, f: ix.build(4, lambda i: (i % 2 == 0) * ix.sum(4, lambda j: r[i, j] * f(j))),
        R & EVEN_ROWS,
    ),
    "added": (
        lambda r, f: ix.build(4, lambda i: r[i, 1] * (f(1) + ix.sum(4, lambda j: r[i, j] * f(j)))),
        1 * (R & R[:, 1:2]) + R[:, 1:2] * (np.arange(4) == 1),
    ),
    "where outside": (
        lambda r, f: ix.sum((4, 4), lambda i, j: ix.where(i % 2 == 0, r[i, j] * f(j), 0.0)),
        R & EVEN_ROWS,
    ),
    "at numbers": (
        lambda r, f: ix.build(4, lambda i: r[1, 3] * ix.sum(4, lambda j: ix.where(r[i, j], f(j), 0.0))),
        NEVER,
    ),
    "either": (
        lambda r, f: ix.sum((4, 4), lambda i, j: ix.where(f(j) > 0, (r[i, j] | r[j, i]) * f(j), 0.0)),
        (R | R.T) & (np.arange(4) == 3),
    ),
    "sparse": (
        lambda r, f: ix.sum(
            (4, 4),
            lambda i, j: ix.exists(4, lambda k: r[k, i] & (k > 2)) * ix.where((i + j) % 2 == 1, S[i, j] * f(j), 0.0),
        ),
        R & R[3][:, None] & ODD,
    ),
}


@pytest.mark.parametrize("r", [tnp.asarray(R), ix.relation(np.nonzero(R), R.shape)], ids=["array", "relation"])
@pytest.mark.parametrize("name", AROUND)
def test_conditions_around_conditions(name, r):
    """What is infinite where each condition holds somewhere, but never both, has no effect on derivatives."""
    body, hold = AROUND[name]
    x, counts = np.array([0.0, 1.0, 0.0, 2.0]), hold.sum(0)
    f = lambda x: body(r, lambda j: x[j] * tnp.log(x[j])).sum()  # noqa: E731
    g, at = tl.grad(f), np.where(counts, x, 1.0)
    np.testing.assert_allclose(f(tnp.asarray(x)), np.sum(counts * at * np.log(at)), rtol=1e-12)
    once, twice = tl.jit(lambda x: (g(x), tl.grad(lambda x: g(x).sum())(x)))(x)
    np.testing.assert_allclose(once, counts * (np.log(at) + 1), rtol=1e-12)
    np.testing.assert_allclose(twice, counts / at, rtol=1e-12)
