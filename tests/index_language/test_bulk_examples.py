"""The examples of bulk arrays, in index form: values, derivatives, and which operations run."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import index as ix
from tests.index_language.programs import bulk, operations
from tests.messages import text_of

pytestmark = pytest.mark.usefixtures("eager_by_steps")

MOVES = {"gather", "scatter", "scatter_add", "dynamic_slice", "dynamic_update_slice"}


@pytest.fixture(autouse=True)
def in_64_bits():
    with tl.enable_x64():
        yield


def test_scatter():
    """DA1"""
    found = ix.scatter(6, tnp.arange(1.0, 10), lambda i: i // 2)
    np.testing.assert_array_equal(found, [3, 7, 11, 15, 9, 0])


def foo(x, y, z):
    w = x * tnp.sin(y)
    return tnp.arctan2(z, w) + z * w


def test_scalar_function():
    """DA2: as a function, and as the body of each element."""
    each = lambda x, y, z: ix.build(2, lambda i: foo(x[i], y[i], z[i]))  # noqa: E731
    for f, args, ct in ((foo, (1.1, 2.2, 3.3), 1.0), (each, [tnp.full(2, x) for x in (1.1, 2.2, 3.3)], tnp.ones(2))):
        value, vjp = tl.vjp(f, *args)
        np.testing.assert_allclose(value, np.broadcast_to(4.242393641025528, np.shape(ct)), rtol=1e-15)
        expected = (2.4396285219055063, -1.953374825727421, 0.9654825811012627)
        np.testing.assert_allclose(vjp(ct), [np.broadcast_to(x, np.shape(ct)) for x in expected], rtol=1e-15)
        ran = operations(lambda *args, f=f, ct=ct: tl.vjp(f, *args)[1](ct), *args)
        # of atan2: the quotient of its operands, which alone may be squared without overflow, and one reciprocal
        assert (ran.count("sin"), ran.count("cos"), ran.count("div")) == (1, 1, 2), ran


def test_periodic_read():
    """DA3"""
    v = tnp.arange(28.0)
    f = lambda v: ix.sum(50, lambda i: v[i % 28])  # noqa: E731
    np.testing.assert_array_equal(tl.grad(f)(v), [2] * 22 + [1] * 6)
    assert operations(f, v).count("gather") <= 1
    assert operations(tl.grad(f), v).count("scatter_add") <= 1


def test_reverse():
    """DA4"""
    x = tnp.arange(1.0, 8)
    f = lambda x: ix.sum(7, lambda i: x[i] * x[6 - i])  # noqa: E731
    np.testing.assert_array_equal(tl.grad(f)(x), 2 * x[::-1])
    for g in (f, tl.grad(f)):
        assert not MOVES & set(operations(g, x))
    assert "rev" in operations(f, x)


def test_matrix_product():
    """DA5"""
    a, b = np.random.default_rng(0).normal(size=(2, 4, 4))
    a, b = tnp.asarray(a), tnp.asarray(b)
    f = lambda a, b: ix.build((4, 4), lambda i, j: ix.sum(4, lambda k: a[i, k] * b[k, j]))  # noqa: E731
    np.testing.assert_allclose(f(a, b), a @ b, rtol=1e-12)
    assert operations(f, a, b) == ["dot_general"]
    for k in (0, 1):
        ran = operations(lambda a, b, ct, k=k: tl.vjp(f, a, b)[1](ct)[k], a, b, a)
        assert ran.count("dot_general") == 1 and set(ran) <= {"dot_general", "transpose"}, ran


def test_choice_by_an_index_is_a_concatenation():
    """DA6"""
    x = tnp.arange(10.0)
    f = lambda x: ix.build(20, lambda i: ix.cond(i < 10, x[i], x[i - 10]))  # noqa: E731
    np.testing.assert_array_equal(f(x), np.concatenate([x, x]))
    np.testing.assert_array_equal(tl.grad(lambda x: f(x).sum())(x), [2] * 10)
    for g in (f, tl.grad(lambda x: f(x).sum())):
        assert not MOVES & set(operations(g, x)), operations(g, x)


def test_literal_arrays_in_bodies():
    """DA7"""
    f = lambda r: ix.build(3, lambda i: ix.build(4, lambda j: tnp.stack([j * 1.0, 7.0, r, -0.2])[i])).sum()  # noqa: E731
    assert tl.grad(f)(3.0) == 4


def test_literal_arrays_of_rows():
    """DA8"""
    r = 7.0
    f = lambda r: ix.build(7, lambda i: tnp.stack([r] * 5 + [i * 1.0] + [r] * 13))  # noqa: E731
    assert f(r).shape == (7, 19)
    assert tl.grad(lambda r: f(r).sum())(r) == 126
    assert tl.grad(lambda r: ix.sum(10, lambda i: r * i))(r) == 45


def test_gather_of_gather():
    """DA9"""
    t = tnp.arange(14.0).reshape(7, 2)
    f = lambda t: ix.gather(2, ix.gather(4, t, lambda k: k), lambda i: (2 * i, i)).sum()  # noqa: E731
    expected = np.zeros((7, 2))
    expected[0, 0] = expected[2, 1] = 1
    np.testing.assert_array_equal(tl.grad(f)(t), expected)


def test_nested_constant_builds():
    """DA10"""
    v = tnp.arange(5.0)
    f = lambda v: ix.build(2, lambda i: ix.build(3, lambda j: ix.build(4, lambda k: v[k])[j])[i]).sum()  # noqa: E731
    np.testing.assert_array_equal(tl.grad(f)(v), [1, 1, 0, 0, 0])
    for g in (f, tl.grad(f)):
        assert not MOVES & set(operations(g, v))


def steps(v, n, c):
    y = v[0] / v[1]
    for _ in range(n):
        y = 0.499999985 * (y + y - c)
    return y - c


def test_many_steps_with_plain_variables():
    """DA11"""
    v = tnp.array([2.0, 3.0])
    expected = (0.3333133339329949, -0.22220888928866325)
    np.testing.assert_allclose(tl.grad(lambda v: steps(v, 2000, 1.0))(v), expected, rtol=1e-12)
    folded = lambda v: ix.fold(lambda y, k: 0.499999985 * (y + y - 0.0), v[0] / v[1], 7000)  # noqa: E731
    np.testing.assert_allclose(tl.grad(folded)(v), (0.3332633406816766, -0.22217556045445108), rtol=1e-12)
    copies = tl.grad(lambda v: ix.sum(1000, lambda i: steps(v, 200, 1.0)))(v)
    np.testing.assert_allclose(copies, 1000 * tl.grad(lambda v: steps(v, 200, 1.0))(v), rtol=1e-12)
    sizes = [len(bulk(tl.grad(lambda v, n=n: steps(v, n, 1.0)), v).eqns) for n in (50, 100, 200)]
    assert sizes[2] - sizes[1] <= 2 * (sizes[1] - sizes[0]) + 4


def test_choice_by_data():
    """DA12"""
    f = lambda x: ix.cond(x > 0, lambda: 2 * x, lambda: 5 * x)  # noqa: E731
    assert (tl.grad(f)(42.0), tl.grad(f)(-42.0)) == (2, 5)
    found = str(bulk(tl.grad(f), tl.ShapeDtypeStruct((), "float32")))
    assert found == "{ lambda a:f32[]. let\n    b:bool[] = gt a 0.0\n    c:f32[] = select_n b 5.0 2.0\n  in c }"


T = tnp.array([1.1, -2.2, 0, 4.4, 5.5, 6.6, 7.7, 8.8, -9.9, -10, 11, 12], dtype="float64")


def test_relu():
    """DA13"""
    f = lambda s, t: ix.sum(12, lambda i: ix.cond(s * t[i] > 0, s * t[i], 0.0))  # noqa: E731
    scale, t = tl.grad(f, (0, 1))(7.0, T)
    np.testing.assert_array_equal(t, np.where(np.asarray(T) > 0, 7, 0))
    np.testing.assert_allclose(scale, 57.1, rtol=1e-14)


def bar(x, y):
    w = foo(x, y, x) * tnp.sin(y)
    return tnp.arctan2(x, w) + y * w


def foo_build(v):
    r, m = ix.sum(v.shape[0], lambda k: v[k]), ix.min(v.shape[0], lambda k: v[k])
    return ix.build(3, lambda i: r * foo(3.0, 5 * r, r * m**2) + bar(r, v[i + 1]))


def test_functions_in_a_body():
    """DA14"""
    np.testing.assert_allclose(tl.grad(bar, (0, 1))(1.1, 2.2), (3.1435239435581166, -1.1053869545195814), rtol=1e-14)
    v, ones = tnp.array([1.1, 2.2, 3.3, 4.0]), 42 * tnp.ones(4)
    expected = (-189890.46351219364, -233886.08744601303, -222532.22669716467, -206108.68889329425)
    np.testing.assert_allclose(tl.vjp(foo_build, v)[1](42 * tnp.ones(3))[0], expected, rtol=1e-12)
    expected = (-296584.8166864211, -290062.472288043, -265770.1775742018)
    np.testing.assert_allclose(tl.jvp(foo_build, (v,), (ones,))[1], expected, rtol=1e-12)


def test_folds():
    """DA15: equal to the unrolled program, in first and second order."""
    v, w = tnp.array([1.1, 2.2, 3.3]), tnp.array([0.5, 0.25, 2.0])

    def folded(v, w):
        return ix.build(3, lambda i: ix.fold(lambda c, k: tnp.sin(c) * v[k] + w[i] * v[i - k], w[i], 3)).sum()

    def unrolled(v, w):
        total = 0.0
        for i in range(3):
            c = w[i]
            for k in range(3):
                c = tnp.sin(c) * v[k] + w[i] * (v[i - k] if i >= k else 0.0)
            total = total + c
        return total

    np.testing.assert_allclose(folded(v, w), unrolled(v, w), rtol=1e-13)
    for f, g in ((tl.grad(folded, (0, 1)), tl.grad(unrolled, (0, 1))), (tl.hessian(folded), tl.hessian(unrolled))):
        for a, b in zip(tl.tree.leaves(f(v, w)), tl.tree.leaves(g(v, w)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
    last, each = ix.scan(lambda c, k: (c * v[k], c + w[k]), 1.0, 3)
    np.testing.assert_allclose(last, np.prod(v), rtol=1e-14)
    np.testing.assert_allclose(each, [1.5, 1.35, 4.42], rtol=1e-14)


def test_gradient_programs_of_bodies(tmp_path):
    """DA16: traced once, evaluated 100 times, printed, parsed, and loaded from a file."""
    traced = []

    def loss(v):
        traced.append(v)
        return 42 * foo_build(v).sum()

    v = np.array([1.1, 2.2, 3.3, 4])
    p = tl.gradient_program(loss, v)
    for _ in range(100):
        found = p(v)
    assert len(traced) == 1
    expected = (-189890.46351219364, -233886.08744601303, -222532.22669716467, -206108.68889329425)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    text = str(p.gradient)
    assert str(tl.parse_jaxpr(text, consts=p.gradient.consts)) == text
    p.save(tmp_path / "g.tl")
    np.testing.assert_array_equal(tl.load(tmp_path / "g.tl")(v), found)


X = tnp.arange(3.0)


@pytest.mark.parametrize(
    "body, message",
    [
        (lambda i: X[X[i] < X],
         "x[mask]: the shape depends on values, the elements of a traced mask, bool[3].\n"
         "  Use tnp.where(mask, x, other) instead of x[mask], or tnp.nonzero(mask, size=...) for positions."),
        (lambda i: tnp.compress(X[i] < X, X),
         "compress: the shape depends on values, the elements of a traced array, bool[3].\n"
         "  Give `size`, the length of the result, and `fill_value`, which fills it up."),
        (lambda i: tnp.nonzero(X[i] < X)[0],
         "nonzero: the shape depends on values, the elements of a traced array, bool[3].\n"
         "  Give `size`, the length of the result, and `fill_value`, which fills it up."),
        (lambda i: X[i : i + 2],
         "the size of a slice of float32[3] along axis 0 depends on an index: shapes are known when tracing. "
         "Read elements: build(m, lambda k: A[i + k])."),
        (lambda i: ix.sum(i, lambda j: X[j]),
         "index.sum: the shape depends on Index(from 0 to 2), and shapes are known when tracing. "
         "Go over the whole range, with a condition: sum(n, lambda j: (j < i) * x[j])."),
    ],
)  # fmt: skip
def test_shapes_do_not_depend_on_values(body, message):
    """DA17: a filter among them; each names the line of the body."""
    with pytest.raises((TypeError, IndexError)) as caught:
        ix.build(3, body)
    assert text_of(caught.value) == message
    assert f"test_bulk_examples.py:{body.__code__.co_firstlineno} (<lambda>)" in str(caught.value)


def test_transposes_are_adjoint():
    """DA18"""
    rng = np.random.default_rng(0)
    v = tnp.asarray(rng.normal(size=7))

    def f(v):
        c = ix.build(5, lambda i: ix.sum(3, lambda j: v[j] * tnp.sin(v[i + j - 1])))
        return ix.build((3, 3), lambda i, j: (i <= j) * c[i] * c[2 * j] + v[(i + j) // 2])

    _, push = tl.linearize(f, v)
    _, pull = tl.vjp(f, v)
    ds, dt = tnp.asarray(rng.normal(size=7)), tnp.asarray(rng.normal(size=(3, 3)))
    np.testing.assert_allclose((dt * push(ds)).sum(), (pull(dt)[0] * ds).sum(), rtol=1e-12)
