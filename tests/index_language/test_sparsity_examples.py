"""The examples of the language with brackets, in index form: values, derivatives, programs, work."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import index as ix
from tests.index_language.programs import bulk, cost, operations, work

pytestmark = pytest.mark.usefixtures("eager_by_steps")

X, G = tnp.arange(1.0, 7.0), tnp.array([1.0, 2.0, 3.0])
F, M = tnp.array([[1.0, 2, 4], [7, 3, 0]]), tnp.array([[1.0, 1, 0], [1, 1, 1]])


def convolved(x, g):
    n, m = x.shape[0] - g.shape[0] + 1, g.shape[0]
    return ix.build(n, lambda i: ix.sum(m, lambda j: g[j] * x[i + j]))


def all_but_one(x):
    return ix.sum(5, lambda i: (i != 2) * x[i])


def trace_of_outer(x):
    return ix.sum(6, lambda i: ix.build((6, 6), lambda j, k: x[j] * x[k])[i, i])


def trace_as_written(x):
    outer = ix.build((6, 6), lambda j, k: x[j] * x[k])
    return ix.sum(6, lambda i: outer[i, i])


def row_times_column(x):
    n = x.shape[0]
    outer = ix.build((n, n), lambda i, j: x[i] * x[j])
    return ix.sum(n, lambda i: outer[i, 0] * outer[0, i])


def laplacian(F):
    h, w = F.shape
    dx = ix.build((h, w), lambda j, i: (i + 1 < w) * M[j, i + 1] * (F[j, i + 1] - F[j, i]))
    dy = ix.build((h, w), lambda j, i: (j + 1 < h) * M[j + 1, i] * (F[j + 1, i] - F[j, i]))
    return ix.sum((h, w), lambda j, i: M[j, i] * (dx[j, i] ** 2 + dy[j, i] ** 2))


def blurred(a):
    h, w = a.shape
    rows = ix.build((h, w), lambda j, i: 0.25 * (a[j, i - 1] + 2 * a[j, i] + a[j, i + 1]))
    return ix.build((h, w), lambda j, i: 0.25 * ((j >= 1) * rows[j - 1, i] + 2 * rows[j, i] + rows[j + 1, i]))


def entropy(x):
    return ix.sum(3, lambda i: (x[i] > 0) * tnp.log(x[i]))


EXAMPLES = {
    convolved: (X, G),
    all_but_one: (tnp.arange(5.0),),
    trace_of_outer: (X,),
    row_times_column: (tnp.array([1.0, 2.0, 3.0]),),
    laplacian: (F,),
    blurred: (F,),
    entropy: (tnp.array([0.0, 1.0, 2.0]),),
}


def test_stencil():
    """TL1"""
    np.testing.assert_array_equal(convolved(X, G), [14, 20, 26, 32])
    x, g = tl.vjp(convolved, X, G)[1](tnp.ones(4))
    np.testing.assert_array_equal(x, [1, 3, 6, 6, 5, 3])
    np.testing.assert_array_equal(g, [10, 14, 18])


def test_operations_of_a_stencil():
    """TL2: for n results, of m taps, and the adjoints in x and in g."""
    n, m = 4, 3
    assert cost(convolved, X, G) == n * (2 * m - 1)
    in_x = lambda ct, g: tl.linear_transpose(lambda x: convolved(x, g), X)(ct)[0]  # noqa: E731
    in_g = lambda ct, x: tl.linear_transpose(lambda g: convolved(x, g), G)(ct)[0]  # noqa: E731
    assert cost(in_x, tnp.ones(n), G) == 2 * n * m - (n + m - 1)
    assert cost(in_g, tnp.ones(n), X) == m * (2 * n - 1)


def test_gradient_of_a_stencil_is_two_stencils():
    """TL3"""
    loss = lambda x, g: (convolved(x, g) ** 2).sum()  # noqa: E731
    value, (x, g) = tl.value_and_grad(loss, (0, 1))(X, G)
    assert value == 2296
    np.testing.assert_array_equal(x, [28, 96, 216, 288, 284, 192])
    np.testing.assert_array_equal(g, [520, 704, 888])
    ran = operations(tl.grad(loss, (0, 1)), X, G)
    assert not {"scatter", "scatter_add", "gather"} & set(ran), ran
    assert str(bulk(tl.grad(loss, (0, 1)), X, G)) == TWO_STENCILS


TWO_STENCILS = """\
{ lambda a:f32[6] b:f32[3]. let
    c:f32[4] = ein[c[i] += Σ j. a[i + j] b[j]] a b
    d:f32[4] = mul 2.0 c
    e:f32[6] = ein[e[i + j] += b[i] d[j]] b d
    f:f32[3] = ein[f[i] += Σ j. a[i + j] d[j]] a d
  in e, f }"""  # a convolution, then a correlation


def test_batch_of_fits_is_batched_contractions():
    """TL5"""

    def losses(xs, g, ys):
        def one(b):
            fitted = ix.build(4, lambda i: ix.sum(3, lambda j: g[j] * xs[b, i + j]))
            return ix.sum(4, lambda i: (fitted[i] - ys[b, i]) ** 2)

        return ix.build(5, one)

    xs, ys = np.random.default_rng(0).normal(size=(2, 5, 6)).astype(np.float32)
    expected = [((np.convolve(x, G[::-1], "valid") - y) ** 2).sum() for x, y in zip(xs, ys[:, :4], strict=True)]
    np.testing.assert_allclose(losses(tnp.asarray(xs), G, tnp.asarray(ys)), expected, rtol=1e-5)
    for f in (losses, tl.grad(lambda *a: losses(*a).sum(), 1)):
        ran = operations(f, tnp.asarray(xs), G, tnp.asarray(ys))
        moves = {"broadcast_in_dim", "reshape", "pad", "slice"}
        assert set(ran) - moves <= {"dot_general", "mul", "sub", "integer_pow", "reduce_sum"}, ran


def test_all_but_one():
    """TL6: the sum of all but one, for one, and its gradient."""
    x = tnp.arange(5.0)
    f = all_but_one
    assert f(x) == 8
    np.testing.assert_array_equal(tl.grad(f)(x), [1, 1, 0, 1, 1])
    adjoint = lambda ct: tl.linear_transpose(f, x)(ct)[0]  # noqa: E731
    assert (cost(f, x), cost(adjoint, 1.0)) == (5 - 2, 0)
    assert cost(lambda ct, y: adjoint(ct) + y, 1.0, x) <= 5


def test_trace_of_an_outer_product():
    """TL7: as many products as elements, and as many for the gradient; as it is written, n² + n - 1, n = 6."""
    f, written = trace_of_outer, tl.cost(trace_as_written, X).work
    assert written == 6**2 + 6 - 1
    assert tl.cost(tl.value_and_grad(trace_as_written), X).work <= 6**2 + 4 * 6 - 1
    assert f(X) == float((X * X).sum())
    np.testing.assert_array_equal(tl.grad(f)(X), 2 * X)
    assert (cost(f, X), cost(tl.grad(f), X)) == (2 * 6 - 1, 6)


def test_row_times_column_of_an_outer_product():
    """TL8: everything is linear in n."""
    f = row_times_column
    x = tnp.array([1.0, 2.0, 3.0])
    assert f(x) == 14
    np.testing.assert_array_equal(tl.grad(f)(x), [30, 4, 6])
    for g in (f, tl.grad(f)):
        assert all(v.aval.size <= 3 for eqn in bulk(g, x).eqns for v in eqn.outvars), bulk(g, x)


N = 24
A, B = tnp.asarray(np.random.default_rng(1).normal(size=(2, N, N)).astype(np.float32))


def product(a, b):
    return ix.build((N, N), lambda i, j: ix.sum(N, lambda k: a[i, k] * b[k, j]))


@pytest.mark.parametrize(
    "f, expected",
    [
        (lambda a, b: ix.sum(N, lambda i: product(a, b)[i, i]), np.trace(A @ B)),
        (lambda a, b: ix.build(N, lambda i: product(a, b)[i, 0]).sum(), (A @ B)[:, 0].sum()),
        (lambda a, b: ix.build(N, lambda i: product(a, b)[i, i]).sum(), np.trace(A @ B)),
        (lambda a, b: ix.build((N, N), lambda i, j: (i == j) * a[i, 0]) @ b[0], A[:, 0] * B[0]),
    ],
    ids=["trace", "column", "diagonal", "diagonal matrix"],
)
def test_no_cubic_product(f, expected):
    """TL9"""
    np.testing.assert_allclose(f(A, B), expected, rtol=1e-4, atol=1e-4)
    for g in (f, tl.grad(lambda a, b: f(a, b).sum(), (0, 1))):
        assert work(g, A, B) <= 8 * N * N


def test_gradient_of_the_trace_of_a_product():
    f = lambda a, b: ix.sum(N, lambda i: product(a, b)[i, i])  # noqa: E731
    a, b = tl.grad(f, (0, 1))(A, B)
    np.testing.assert_array_equal(a, B.T)
    np.testing.assert_array_equal(b, A.T)


def test_hessian_of_a_quadratic_form():
    """TL10"""
    a = tnp.array([[1.0, 2], [3, 4]])
    f = lambda x: ix.sum((2, 2), lambda i, j: x[i] * a[i, j] * x[j])  # noqa: E731
    np.testing.assert_array_equal(tl.hessian(f)(tnp.ones(2)), [[2, 5], [5, 8]])


def test_square_of_a_product():
    """TL11"""

    def f(a):
        x = tnp.array([1.0, 2.0])
        y = ix.build(2, lambda i: ix.sum(2, lambda j: a[i, j] * x[j]))
        return ix.sum(2, lambda i: y[i] * y[i])

    value, tangent = tl.jvp(f, (tnp.array([[1.0, 2], [3, 4]]),), (tnp.eye(2),))
    assert (float(value), float(tangent)) == (146, 54)


def test_masked_laplacian():
    """TL12"""
    value, gradient = tl.value_and_grad(laplacian)(F)
    assert value == 63
    np.testing.assert_array_equal(gradient, [[-14, 0, 0], [20, 0, -6]])


def test_blur():
    """TL13"""
    np.testing.assert_array_equal(blurred(F), [[1.5625, 1.9375, 1.4375], [2.375, 2.1875, 1.0]])
    np.testing.assert_array_equal(tl.grad(lambda a: blurred(a).sum())(F), [[0.5625, 0.75, 0.5625]] * 2)


def test_relation():
    """TL14: a boolean array is a relation."""
    R = np.zeros((3, 3), bool)
    R[[0, 2, 2], [1, 0, 2]] = True
    R = tnp.asarray(R)
    a, v = tnp.arange(1.0, 10).reshape(3, 3), tnp.array([1.0, -1, 2])
    f = lambda a, v: ix.build(3, lambda i: ix.sum(3, lambda j: R[i, j] * a[i, j] * v[j]))  # noqa: E731
    np.testing.assert_array_equal(f(a, v), [-2, 0, 25])
    da, dv = tl.vjp(f, a, v)[1](tnp.ones(3))
    np.testing.assert_array_equal(da, [[0, -1, 0], [0, 0, 0], [1, 0, 2]])
    np.testing.assert_array_equal(dv, [7, 2, 9])
    some = ix.build(3, lambda i: ix.exists(3, lambda j: R[i, j]) * v[i])
    np.testing.assert_array_equal(some, [1, 0, 2])


def test_gradients_where_a_condition_fails():
    """TL15: no nan, whether the condition is on data or on indices."""
    x = tnp.array([0.0, 1.0, 2.0])
    f = entropy
    g = lambda x: ix.sum(3, lambda i: (i >= 1) * tnp.log(x[i]))  # noqa: E731
    for h in (f, g, tl.jit(f), tl.jit(g)):
        np.testing.assert_array_equal(tl.grad(h)(x), [0, 1, 0.5])
