"""Formulas: what is no sum of products, names, forms of output, and errors."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import index as ix
from tapeless import lax
from tests.symbolic.checks import check, gradient, random, run_source


@pytest.fixture(autouse=True)
def in_64_bits():
    with tl.enable_x64():
        yield


@pytest.fixture
def rng():
    return np.random.default_rng(1)


FUNCTIONS = {
    "exp": lambda A, x: tnp.exp(A @ x).sum(),
    "quotient": lambda A, x: (x @ A @ x) / (x @ x),
    "power": lambda A, x: ((A @ x) ** 3).sum() + (1 / x).sum(),
    "maximum": lambda A, x: tnp.max(A @ x) + tnp.maximum(x, 0).sum(),
    "norm": lambda A, x: tnp.sqrt((x * x).sum()) * A.sum(),
    "triangle": lambda A, x: x @ tnp.tril(A) @ x,
    "window": lambda A, x: (x[1:] * x[:-1]).sum() + A[0, 1] * x[::-1] @ x,
    "twice": lambda A, x: square(square(x)).sum() + square(A).sum() + square(x + 1).sum(),
    "loop": lambda A, x: ix.fold(lambda c, k: c * x[k], 1.0, 3) + A.sum(),
    "any": lambda A, x: (
        (tnp.any(A > 0, axis=0).astype(x.dtype) * x * x).sum() + tnp.all(A > -9).astype(x.dtype) * A.sum()
    ),
    "network": lambda A, x: tl.nn.relu(A @ tl.nn.relu(A @ x)).sum(),
    "softmax": lambda A, x: (tl.nn.softmax(A @ x) * x).sum(),
    "select": lambda A, x: tnp.where(A > 0, A, 2 * A).sum() * x[0],
    "concatenated": lambda A, x: (tnp.concatenate([x, A[0]]) ** 2).sum(),
    "indices": lambda A, x: ix.sum((3, 3), lambda i, j: tnp.exp(-0.2 * tnp.abs(i - j)) * A[i, j] * x[j] ** 2 / (i + 1)),
    "quotients of indices": lambda A, x: ix.sum(3, lambda i: tnp.sin(((2 * i + 1) // 2) * x[i]) * A[i, 2 - i]),
    "ranges": lambda A, x: (tnp.arange(3.0)[:, None] * tnp.sin(A * tnp.arange(3))).sum() + x @ x,
    "signs and quotients": lambda A, x: (tnp.sign(x) * x**2).sum() + ((A // 0.5) * A + A % 0.3 * A).sum(),
    "rounded": lambda A, x: (tnp.round(2 * A) * A).sum() + (lax.round(3 * x) * x).sum(),
    "positions": lambda A, x: x[tnp.argmax(x)] ** 2 + A[tnp.argmin(x), tnp.argmax(A[0])] ** 2 * A.sum(),
    "cases": lambda A, x: lax.select_n(tnp.int32(A > 0) + tnp.int32(A > 1), A, A**2, 2 * A).sum() * x[0],
    "logsumexp": lambda A, x: tl.nn.logsumexp(A @ x),
}
SOURCELESS = {"loop"}


@tl.jit
def square(x):
    return x * x


@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() - SOURCELESS))
@pytest.mark.parametrize("argnums", [0, 1])
def test_real_functions(rng, name, argnums):
    args = random(rng, (3, 3), False), random(rng, (3,), False)
    check(FUNCTIONS[name], argnums, args, (ix.Space("A", (3, 3)), ix.Space("x", (3,))))


@pytest.mark.parametrize("f", [
    lambda x: tnp.sum(tnp.maximum(x, 0.5) ** 2), lambda x: tnp.sum(tnp.where(x > 0, x**3, tnp.sin(x))),
    lambda x: tnp.sum(tnp.maximum(x, tnp.sin(tnp.arange(3.0) * x)) ** 2),
])  # fmt: skip
def test_formulas_of_32_bits_take_64(rng, f):
    """The width of what they compute is that of the arrays, beside numbers and ranges, too."""
    x = random(rng, (3,), False)
    with tl.enable_x64(False):
        found = ix.grad(f)(ix.Space("x", (3,)))(x)
    np.testing.assert_allclose(found, tl.grad(f)(x), rtol=1e-12)


def test_what_is_converted_has_its_new_kind():
    """A root of negative numbers, and sums of booleans, are of their kind when they are computed."""
    x = np.array([-2.0, 3.0, 1.5])
    for f in (
        lambda x: tnp.sum(tnp.sqrt(x.astype(complex)).imag * x),
        lambda x: tnp.sum(tnp.sin((tnp.int32(x > 0) + tnp.int32(x > 2)) * x)),
    ):
        check(f, 0, (x,), (ix.Space("x", (3,)),))


@pytest.mark.parametrize("name", sorted(SOURCELESS))
def test_functions_without_source(rng, name):
    A, x = random(rng, (3, 3), False), random(rng, (3,), False)
    found = ix.grad(FUNCTIONS[name], 1)(A, x)
    np.testing.assert_allclose(found(A, x), tl.grad(FUNCTIONS[name], 1)(A, x), rtol=1e-12)
    with pytest.raises(NotImplementedError, match="has no source for NumPy"):
        found.numpy()


COMPLEX = {
    "quotient": lambda z, w: (z @ w) / (z @ z),
    "parts": lambda z, w: (z.real * w.imag).sum() + z.imag @ z.imag,
    "moduli": lambda z, w: (tnp.abs(z) ** 2 * tnp.abs(w) ** 2).sum(),
    "exp": lambda z, w: tnp.exp(z * tnp.conj(w)).sum(),
    "power": lambda z, w: (z**3 * w).sum(),
    "to real": lambda z, w: ((z * w).real ** 2).sum(),
}


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_functions(rng, name):
    args = random(rng, (3,)), random(rng, (3,))
    check(COMPLEX[name], 0, args, (ix.Space("z", (3,), complex), ix.Space("w", (3,), complex)))


def test_names_of_constants():
    matrix = tnp.asarray([[1.0, 2.0], [3.0, 4.0]])
    x = ix.Space("x", (2,))
    assert ix.grad(lambda x: x @ matrix @ x)(x).text() == "Σ[j] matrix[j,a] * x[j] + Σ[j] matrix[a,j] * x[j]"
    assert ix.grad(lambda x: x @ (matrix + 1) @ x)(x).text().startswith("y[a,b]")


def test_products_of_matrices():
    A, x, B = ix.Space("A", (2, 2), complex), ix.Space("x", (2,), complex), ix.Space("B", (2, 3), complex)
    assert ix.grad(lambda A, x: x.conj() @ A @ x, 1)(A, x).matrix() == "A.conj().T @ x + A @ x"
    assert ix.grad(lambda B, A: tnp.trace(B.conj().T @ A @ A @ B))(B, A).expand().simplify().matrix() in (
        "A.conj().T @ A.conj().T @ B + A @ A @ B",
        "A @ A @ B + A.conj().T @ A.conj().T @ B",
    )
    with pytest.raises(NotImplementedError, match="is no chain"):
        ix.grad(lambda x: (x * x * x).sum())(x).matrix()


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda x: ix.grad(lambda x: x), TypeError, "index.grad: the result of <lambda> is float64[3], not a scalar"),
        (
            lambda x: ix.grad(lambda x, y: x @ y, (0, -2)),
            ValueError,
            "index.grad: argnums=(0, -2) has an argument",
        ),
    ],
)
def test_errors(call, kind, message):
    x = ix.Space("x", (3,))
    with pytest.raises(kind) as caught:
        derive = call(x)
        derive(x) if "scalar" in message else derive(x, ix.Space("y", (3,)))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("along", "kind", "message"),
    [
        (lambda i: i == 3, IndexError, "index.push: 3 is outside of an axis of 3."),
        (lambda i: i == -1, IndexError, "index.push: -1 is outside of an axis of 3."),
        (lambda i: i == 0.5, TypeError, "index.push: along compares an index with 0.5, neither"),
        (lambda i: (i == 0) & (i == 1), ValueError, "index.push: along compares an index twice."),
        (lambda i: i < ix.free("k"), TypeError, "index.push: along applies `<` to an index, but says where a tangent"),
        (lambda i: i + 1 == ix.free("k"), TypeError, "index.push: along applies `+` to an index"),
        (lambda i: ix.free("k") > i, TypeError, "index.push: along applies `<` to an index"),
        (lambda i: True, TypeError, "index.push: along gives True, no comparison of indices"),
        (lambda i: i == ix.free("x"), ValueError, "index.push: x is the name of an array, too."),
    ],
)
def test_errors_of_tangents(along, kind, message):
    with pytest.raises(kind) as caught:
        ix.push(lambda x: x * x, ix.Space("x", (3,)), along=along)
    assert message in str(caught.value)


def test_errors_of_calls():
    x = ix.Space("x", (3,))
    found = ix.grad(lambda x: x @ x)(x)
    with pytest.raises(TypeError, match="this formula is of \\(x\\), not of 2 arguments"):
        found(np.ones(3), np.ones(3))
    with pytest.raises(TypeError, match="x is float64\\[2\\], but the formula was derived for float64\\[3\\]"):
        found(np.ones(2))
    with pytest.raises(TypeError, match="x is complex"):
        found(np.ones(3) * 1j)
    free = ix.push(lambda x: x * x, x, along=lambda i: i == ix.free("k"))
    with pytest.raises(IndexError, match="the free index k=3 is outside of its axis of 3"):
        free(np.ones(3), k=3)
    with pytest.raises(IndexError, match="the free index k=-1 is outside of its axis of 3"):
        free(np.ones(3), k=np.int64(-1))
    with pytest.raises(TypeError, match="the free index k is float64\\[\\]: expected an integer"):
        free(np.ones(3), k=0.5)
    with pytest.raises(TypeError, match="give it a value, k=0"):
        free(np.ones(3))


def test_a_traced_free_index_outside_of_its_axis():
    """There is no such element to move: nothing of the result depends on it."""
    moved = ix.push(lambda x: x * x, ix.Space("x", (3,)), along=lambda i: i == ix.free("k"))
    x, at = np.array([1.0, 2.0, 3.0]), np.array([-1, 0, 2, 3, 2**32 + 1])
    expected = [[0, 0, 0], [2, 0, 0], [0, 0, 6], [0, 0, 0], [0, 0, 0]]
    np.testing.assert_array_equal(tl.vmap(lambda k: moved(x, k=k))(at), expected)
    np.testing.assert_array_equal(tl.jit(lambda k: moved(x, k=k))(np.int64(7)), 0)
    np.testing.assert_array_equal(moved.compile()(x, k=3), 0)
    np.testing.assert_array_equal(ix.build(4, lambda i: moved(x, k=i - 1)), [*expected[:2], [0, 4, 0], [0, 0, 6]])
    gradient = tl.grad(lambda x, k: moved(x, k=k).sum())
    np.testing.assert_array_equal(tl.jit(gradient)(x, 3), 0)
    np.testing.assert_array_equal(tl.jit(gradient)(x, 1), [0, 2, 0])


def network(params, x):
    for layer in params["layers"]:
        x = tnp.tanh(layer["w"] @ x + layer["b"])
    return (x * params["scale"]).sum()


def test_trees_as_arguments(rng):
    params = {
        "layers": [{"w": random(rng, (n, m), False), "b": random(rng, (n,), False)} for m, n in ((3, 4), (4, 2))],
        "scale": random(rng, (), False),
    }
    x = random(rng, (3,), False)
    value, gradient = tl.value_and_grad(network)(params, x)
    for found in (ix.grad(network, value=True)(params, x), ix.grad(network, value=True, lets=True)(params, x)):
        assert [o.name for o in found.inputs][:3] == ["params_layers_0_b", "params_layers_0_w", "params_layers_1_b"]
        assert "∇params_scale = " in found.text()
        both = found(params, x)
        assert tl.tree.structure(both) == tl.tree.structure((value, gradient))
        for a, b in zip(tl.tree.leaves(both), tl.tree.leaves((value, gradient))):
            np.testing.assert_allclose(a, b, rtol=1e-12)
        compiled = found.compile(x=x)(params)
        np.testing.assert_allclose(compiled[1]["scale"], gradient["scale"], rtol=1e-12)
    with pytest.raises(ValueError, match="formula"):
        found({"scale": 1.0}, x)


def test_tangents_at_numbers():
    """In any order, and of any type of integers."""
    x = ix.Space("x", (3,))
    for along in (lambda i: i == np.int64(1), lambda i: np.int64(1) == i, lambda i: i == 1):
        np.testing.assert_array_equal(ix.push(lambda x: x * x, x, along=along)(np.ones(3)), [0, 2, 0])
    one = ix.push(lambda x: x * x, x, along=lambda i: ix.free("k") == i)
    np.testing.assert_array_equal(one(np.ones(3), k=2), [0, 0, 2])


def test_names_in_trees():
    tree = {"mass": ix.Space("m", (3,)), "at": (ix.Space("q", (3,)), tl.ShapeDtypeStruct((3,), float))}
    found = ix.grad(lambda s: (s["mass"] * s["at"][0] * s["at"][1]).sum())(tree)
    assert found.text().split("\n") == [
        "∇q[a] = s_at_1[a] * m[a]",
        "∇s_at_1[a] = q[a] * m[a]",
        "∇m[a] = q[a] * s_at_1[a]",
    ]


def test_pullbacks_of_trees(rng):
    def f(x):
        return {"square": x * x, "sum": x.sum()}

    k = {"square": random(rng, (3,), False), "sum": 2.0}
    x = random(rng, (3,), False)
    found = ix.pullback(f)(x, k)
    np.testing.assert_allclose(found(x, k), tl.vjp(f, x)[1](tl.tree.map(tnp.asarray, k))[0], rtol=1e-12)
    assert found.text() == "k_sum + 2 * x[a] * k_square[a]"


@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() - SOURCELESS))
def test_lets_and_values(rng, name):
    f, args = FUNCTIONS[name], (random(rng, (3, 3), False), random(rng, (3,), False))
    found = ix.grad(f, (0, 1), value=True, lets=True)(ix.Space("A", (3, 3)), ix.Space("x", (3,)))
    forms = [found, found.simplify(), found.expand(), found.expand().simplify()]
    expected, *values = tl.jit(lambda *xs: [tl.value_and_grad(f, (0, 1))(*xs), *[form(*xs) for form in forms]])(*args)
    for form, value in zip(forms, values, strict=True):
        for computed in (value, run_source(form, *args)):
            for a, b in zip(tl.tree.leaves(computed), tl.tree.leaves(expected), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", COMPLEX)
def test_lets_of_complex_functions(rng, name):
    f, args = COMPLEX[name], (random(rng, (3,)), random(rng, (3,)))
    spaces = ix.Space("z", (3,), complex), ix.Space("w", (3,), complex)
    found = ix.grad(f, 0, value=True, lets=True)(*spaces)
    for form in (found, found.simplify(), found.expand().simplify()):
        value, slope = form(*args)
        np.testing.assert_allclose(value, f(*map(tnp.asarray, args)), rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(slope, gradient(f, 0, args), rtol=1e-10, atol=1e-10)


def test_names_of_indices_survive():
    """Sums have the names that bodies give to the indices of an axis; results have letters that are none of these."""
    A, x = ix.Space("A", (3, 3)), ix.Space("x", (3,))

    def f(A, x):
        return ix.sum((3, 3, 3), lambda row, a, q: A[row, a] * A[a, q] * x[q] * x[row])

    assert ix.grad(f, 1)(A, x).simplify().text() == (
        "Σ[a,q] A[b,a] * A[a,q] * x[q] + Σ[row,a] A[row,b] * A[a,row] * x[a]"
    )
    twice = ix.grad(lambda A, x: ix.sum((3, 3), lambda i, i2: A[i, 0] * A[i2, 0] * x[i] * x[i2]), 1)(A, x)
    assert twice.simplify().text() == "2 * Σ[i] A[a,0] * A[i,0] * x[i]"
    source = ix.grad(lambda x: ix.sum((3, 3), lambda np, range: (np >= range) * x[np] * x[range]))(x).numpy()
    assert "lambda a, j:" in source  # names of source are not the user's


def test_constants_fold():
    x = ix.Space("x", (3,))
    assert ix.grad(lambda x: (2.0 * x * 3).sum() * tnp.sqrt(4.0))(x).text() == "12"
    assert ix.grad(lambda x: (x * x).sum() * tnp.sqrt(1 + tnp.exp(tnp.log(3.0)) / 3 * 3))(x).text() == "4 * x[a]"
    assert ix.grad(lambda x: (tnp.eye(3) * 2 @ x * tnp.ones(3)).sum())(x).text() == "2"
    assert ix.grad(lambda x: (x * x).sum() * tnp.log(0.0))(x).text() == "y = log(0.0)\n2 * x[a] * y"  # no number
    assert ix.grad(lambda x: (x * tnp.exp(tnp.inf)).sum())(x).text() == "y = exp(inf)\ny"
    two = tnp.asarray(2.0)
    assert ix.grad(lambda x: (two * x * x).sum())(x).text() == "2 * x[a] * two"  # arrays have names
    z = ix.Space("z", (2,), complex)
    found = ix.grad(lambda z: (z * tnp.exp(1j * tnp.pi)).sum().real)(z)
    np.testing.assert_allclose(found(np.ones(2) + 0j), [-1, -1], atol=1e-12)


def test_complex_factors_of_real_arguments():
    """The gradient is that of the real part, so the imaginary parts of numbers are no part of it."""
    x, z = ix.Space("x", (3,)), ix.Space("z", (3,), complex)
    assert ix.grad(lambda x: (1 + 2j) * (x * x).sum())(x).text() == "2 * x[a]"
    assert ix.grad(lambda x: 2j * (x * x).sum())(x).text() == "0"
    found = check(lambda x, z: (2 + 1j) * ((x * x) @ z), 0, (np.arange(3.0), np.arange(3) - 1j), (x, z))
    assert found.text() == "Re((4+2j) * x[a] * z[a])"


def test_formulas_with_loops_are_of_their_dtype():
    product = ix.grad(lambda x: lax.scan(lambda c, e: (c * e, None), 1.0, x)[0])(ix.Space("x", (4,), np.float32))
    with pytest.raises(TypeError) as caught:
        product(np.ones(4))
    assert str(caught.value).split("\n  At ")[0] == (
        "x is float64[4], but the formula was derived for float32[4], and computes with that only.\n"
        "  Convert it with astype, or derive the formula for index.Space('x', (4,), 'float64')."
    )
    np.testing.assert_allclose(product(np.arange(1, 5)), [24, 12, 8, 6])


def test_integers_are_converted_to_the_dtype_of_formulas():
    found = ix.grad(lambda x: tnp.sum(tl.nn.sigmoid(x)))(ix.Space("x", (2,)))
    np.testing.assert_allclose(found(np.array([0, 0])), [0.25, 0.25])
