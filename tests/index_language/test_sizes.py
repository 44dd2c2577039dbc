"""Sizes as symbols: costs and formulas for all sizes, from types alone."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import index as ix
from tapeless.tracer.indices.sizes import with_sizes
from tests.messages import text_of

n, m = ix.size("n"), ix.size("m")
X, G, CT, V = ix.Space("x", (n + m - 1,)), ix.Space("g", (m,)), ix.Space("ct", (n,)), ix.Space("v", (n,))
ONE = ix.Space("ct", ())


def convolved(x, g):
    return ix.build(n, lambda i: ix.sum(m, lambda j: g[j] * x[i + j]))


def type_of(x):
    return tl.ShapeDtypeStruct(x.shape, x.dtype)


def all_but_one(x):
    return ix.sum(n, lambda i: (i != 2) * x[i])


def adjoint(ct):
    return tl.linear_transpose(all_but_one, type_of(V))(ct)[0]


def trace_of_outer(x):
    return ix.sum(n, lambda i: ix.build((n, n), lambda j, k: x[j] * x[k])[i, i])


@pytest.mark.parametrize(
    "f, args, formula",
    [
        (convolved, (X, G), "n*(2*m - 1)"),  # TL1
        (lambda ct, g: tl.linear_transpose(lambda x: convolved(x, g), type_of(X))(ct)[0], (CT, G),
         "2*m*n - m - n + 1"),  # TL2
        (lambda ct, x: tl.linear_transpose(lambda g: convolved(x, g), type_of(G))(ct)[0], (CT, X), "m*(2*n - 1)"),
        (all_but_one, (V,), "n - 2 if n >= 3"),  # TL6
        (adjoint, (ONE,), "0"),
        (lambda ct, y: adjoint(ct) + y, (ONE, V), "n - 1 if n >= 3"),
        (trace_of_outer, (V,), "2*n - 1"),  # TL7
        (tl.grad(trace_of_outer), (V,), "n"),
        (lambda a, b: a @ b, (ix.Space("a", (n, m)), ix.Space("b", (m, n))), "n**2*(2*m - 1)"),
        (lambda x: tnp.sin(x).sum() + 1, (ix.Space("x", (n, m)),), "2*m*n"),
    ],
)  # fmt: skip
def test_costs(f, args, formula):
    """As counted at sizes that nothing is interpolated at."""
    found = ix.cost(f, *args, sizes=(n, m))
    assert str(found) == formula and found.formula == formula.split(" if ")[0]
    for values in ({"n": 4, "m": 3}, {"n": 31, "m": 5}, {"n": 7, "m": 29}):
        with with_sizes(values):
            assert found.at(**values) == ix.cost(f, *args).at()


def test_costs_as_written():
    outer = lambda x: tnp.trace(x[:, None] * x)  # noqa: E731
    assert ix.cost(outer, V, as_written=True).formula == "n**2 + n - 1"
    assert ix.cost(outer, V).formula == "2*n - 1"


@pytest.mark.parametrize("k", [7, 10, 20, 100, 1000])
def test_a_program_that_branches_on_a_size(k):
    f = lambda x: x.sum() if x.shape[0] > k else (x * x).sum()  # noqa: E731
    for derive in (lambda: ix.cost(f, V), lambda: str(ix.grad(f)(V))):
        with pytest.raises(ValueError) as caught:
            derive()
        first, second, last = text_of(caught.value).split("\n")
        assert "is no polynomial of degree 4 or less in n, as n = 6: " in first
        assert "They branch on a size at" in second and "x.shape[0] > k" in second
        assert last == "  Give numbers for the sizes that the program compares with numbers."


@pytest.mark.parametrize("k", range(1, 6))
def test_a_program_that_branches_on_a_small_size(k):
    """It is said from which size on the formula holds."""
    f = lambda x: x.sum() if x.shape[0] > k else (x * x).sum()  # noqa: E731
    found = ix.cost(f, V)
    assert str(found) == f"n - 1 if n >= {k + 1}" and found.at(n=k + 1) == k
    with pytest.raises(ValueError, match=f"not for n = {k}: give a number"):
        found.at(n=k)
    assert str(ix.grad(f)(V)) == (f"1\n  if n >= {k + 1}")


def test_a_program_that_branches_on_the_order_of_sizes():
    f = lambda x, y: x.sum() if x.shape[0] > y.shape[0] else (x * x).sum()  # noqa: E731
    with pytest.raises(ValueError, match="branch on a size"):
        ix.cost(f, V, ix.Space("y", (m,)))
    with pytest.raises(ValueError, match="branch on a size"):
        str(ix.grad(f)(V, ix.Space("y", (m,))))


def test_sizes_compared_with_numbers():
    """Without a branch that Python takes."""
    assert str(ix.grad(lambda x: (x**2).sum() * max(len(x), 20))(V)) == "2*n * v[a]\n  if n >= 20"
    with pytest.raises(ValueError) as caught:
        str(ix.grad(lambda x: (x**2).sum() * min(len(x), 500))(V))
    assert text_of(caught.value) == (
        "the text of the formulas is no polynomial of degree 4 or less in n, as n = 48: 96; n = 768: 1000.\n"
        "  Give numbers for the sizes that the program compares with numbers."
    )


@pytest.mark.parametrize(
    "f, text",
    [
        (lambda x: (x**2).mean(), "2/n * v[a]"),
        (lambda x: (x**2).sum() / (3 * len(x) ** 2), "2/(3*n**2) * v[a]"),
        (lambda x: (x**2).sum() / (len(x) + 1), "2/(n + 1) * v[a]"),
        (lambda x: (x**2).sum() * len(x) / 4, "1/2*n * v[a]"),
        (lambda x: 0.25 * (x**2).sum(), "0.5 * v[a]"),
        (lambda x: x.var(), "y[a] = v[a] - 1/n * Σ[j<n] v[j]\n2/n * y[a] - 2/n**2 * Σ[j<n] y[j]"),
    ],
)
def test_quotients_by_sizes(f, text):
    assert str(ix.grad(f)(V)) == text


def test_formulas_whose_simplest_form_depends_on_the_size():
    """They print as that of large ones: the softmax of six numbers is shorter in another form."""
    found = ix.grad(lambda x: tl.nn.softmax(x)[0])(V)
    assert "y2 = exp(y1)\ny3[a] = Σ[j<n] y2[j]" in str(found)
    definition, result = found.latex().split(" \\\\\n")[2:4]
    assert definition == r"\mathrm{y2} &= \mathrm{exp}(\mathrm{y1})" and result.count("&") == 1


def test_differences_of_sizes():
    x, y = ix.Space("x", (n,)), ix.Space("y", (m,))
    for a, b in ((x, y), (y, x)):
        f = lambda a, b: a[: a.shape[0] - b.shape[0]] * 2 if a.shape > b.shape else tnp.zeros(-1)  # noqa: E731
        assert ix.cost(f, a, b).formula == ("n - m" if a is x else "m - n")


# ---- formulas ------------------------------------------------------------------------------------------------


def test_gradients():
    loss = lambda x, g: ix.sum(n, lambda i: convolved(x, g)[i])  # noqa: E731
    in_g = ix.grad(loss, argnums=1)(X, G)
    assert str(in_g) == in_g.text() == "Σ[j<n] x[a + j]"
    assert in_g.latex() == "\\sum_{j<n} x_{a + j}"
    in_x = ix.grad(loss)(X, G)
    assert in_x.text() == "Σ[j<m] [0 <= a - j < n] * g[j]"
    x, g = tnp.arange(6.0), tnp.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(in_x(x, g), np.convolve(np.ones(4), g), rtol=1e-6)
    assert str(in_g.at(n=4, m=3)) == "Σ[j<4] x[a + j]"


def test_simplified_gradients():
    A, x = ix.Space("A", (n, n), symmetries="symmetric"), ix.Space("x", (n,))
    assert repr(A) == "Space('A', float32[n,n], symmetric)"
    g = ix.grad(lambda A, x: x @ A @ x, argnums=1)(A, x)
    assert str(g) == "Σ[j<n] A[j,a] * x[j] + Σ[j<n] A[a,j] * x[j]"
    assert str(g.simplify()) == "2 * Σ[j<n] A[a,j] * x[j]\n  if A[i,j] = A[j,i]"
    a = np.array([[2.0, 1], [1, 3]], np.float32)
    np.testing.assert_allclose(g.simplify()(a, np.array([1.0, 2.0], np.float32)), [8, 14])
    with pytest.raises(ValueError, match="no permutation of axes"):
        ix.Space("A", (n, m), symmetries="symmetric")


def test_pullbacks_of_formulas():
    """A formula for all sizes can be differentiated again: its sizes come from the arrays that it is given."""
    A, x, v = ix.Space("A", (n, n)), ix.Space("x", (n,)), ix.Space("v", (n,))
    g = ix.grad(lambda A, x: x @ A @ x, argnums=1)(A, x)
    again = ix.pullback(g, argnums=1)(A, x, v)
    assert again.text() == "Σ[j<n] A[a,j] * v[j] + Σ[j<n] A[j,a] * v[j]"
    rng = np.random.default_rng(0)
    a, p, q = [rng.normal(size=s).astype(np.float32) for s in ((4, 4), (4,), (4,))]
    np.testing.assert_allclose(again(a, p, q), (a + a.T) @ q, rtol=1e-5)
    cubic = ix.grad(lambda A, x: (x @ A @ x) ** 2, argnums=1)(A, x)
    hessian_product = tl.jvp(tl.grad(lambda x: (x @ a @ x) ** 2), (p,), (q,))[1]
    np.testing.assert_allclose(ix.pullback(cubic, argnums=1)(A, x, v)(a, p, q), hessian_product, rtol=1e-4)
    twice = ix.Space("B", (2 * n, 2 * n)), ix.Space("y", (2 * n,))
    assert ix.pullback(lambda B, y: g(B, y), argnums=1)(*twice, ix.Space("v", (2 * n,))).text() == (
        "Σ[j<2*n] B[a,j] * v[j] + Σ[j<2*n] B[j,a] * v[j]"
    )


def test_numbers_that_grow_with_sizes():
    mean = lambda x: ix.sum(n, lambda i: n * x[n - 1 - i] * x[i])  # noqa: E731
    assert str(ix.grad(mean)(V).simplify()) == "2*n * v[n - 1 - a]"


def test_tangents_with_a_free_index():
    """TL4, for all sizes."""
    pushed = ix.push(lambda x: convolved(x, tnp.ones(m)), X, along=lambda i: i == ix.free("k"))
    assert str(pushed) == "[0 <= k - a < m]"


def test_sizes_have_no_values_elsewhere():
    with pytest.raises(TypeError) as caught:
        range(n)
    assert text_of(caught.value) == (
        "the size n has no value here: it stands for any. Sizes are for index.Space, whose formulas are derived and "
        "whose costs are counted for all sizes; elsewhere give a number."
    )
    with pytest.raises(TypeError):
        ix.build(n, lambda i: i)
    with pytest.raises(TypeError, match="is not a Python identifier"):
        ix.size("2n")
    assert n * (2 * m - 1) == 2 * n * m - n and n != m


def test_jitted_functions_are_traced_for_each_size():
    """Also those that no argument tells the size."""
    jitted, y = tl.jit(lambda x: x * ix.sum(n, lambda i: x[i])), ix.Space("y", (99_000,))
    found = [ix.cost(f, y, sizes=(n,)).formula for f in (jitted, lambda x: jitted(x))]
    assert found == ["n + 98999"] * 2


# ---- trees, and what formulas for all sizes assume -----------------------------------------------------------------


def test_trees_with_sizes():
    n, m = ix.size("n"), ix.size("m")
    weights = {"a": ix.Space("a", (n, m)), "b": (ix.Space("b", (n,)), ix.Space("c", (m,)))}

    def f(w, x):
        return ix.sum((n, m), lambda i, j: w["a"][i, j] * w["b"][0][i] * w["b"][1][j] * x[i])

    found = ix.grad(f)(weights, ix.Space("x", (n,)))
    assert found.text().split("\n") == [
        "∇a[d,e] = b[d] * c[e] * x[d]",
        "∇b[d] = Σ[j<m] a[d,j] * c[j] * x[d]",
        "∇c[d] = Σ[i<n] a[i,d] * b[i] * x[i]",
    ]
    rng = np.random.default_rng(0)
    for sizes in ((3, 2), (2, 5)):
        a, b, c, x = [rng.normal(size=s).astype(np.float32) for s in (sizes, sizes[:1], sizes[1:], sizes[:1])]
        pulled = found({"a": a, "b": (b, c)}, x)
        np.testing.assert_allclose(pulled["a"], np.outer(b * x, c), rtol=1e-5)
        np.testing.assert_allclose(pulled["b"][0], a @ c * x, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(pulled["b"][1], a.T @ (b * x), rtol=1e-5, atol=1e-6)
    with pytest.raises(TypeError, match=r"this formula is of 2 arguments, not of 1\."):
        found({"a": a, "b": (b, c)})


def test_what_formulas_for_all_sizes_assume():
    """It is printed; and reflections are of the size that an array has."""
    n = ix.size("n")
    A, x, w = ix.Space("A", (n, n), symmetries="symmetric"), ix.Space("x", (n,)), ix.Space("w", (n,), even=True)
    quadratic = ix.grad(lambda A, x: x @ A @ x, argnums=1)(A, x).simplify()
    assert str(quadratic) == "2 * Σ[j<n] A[a,j] * x[j]\n  if A[i,j] = A[j,i]"
    mirrored = ix.grad(lambda x, w: ix.sum(n, lambda i: w[i] * x[i] * x[n - 1 - i]))(x, w).simplify()
    assert str(mirrored) == "2 * x[n - 1 - a] * w[a]\n  if w[i] = w[n - 1 - i]"
    near = ix.grad(lambda x, w: ix.sum(n, lambda i: w[i] * x[i] * x[1 - i]))(x, w).simplify()
    points, weights = np.arange(1.0, 5.0), np.array([5.0, 7.0, 7.0, 5.0])
    np.testing.assert_allclose(near(points, weights), [24, 12, 0, 0])
