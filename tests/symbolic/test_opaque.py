"""Functions that are not known: their derivatives print, and are those of the functions that they are given later."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import index as ix
from tests.symbolic.checks import random, run_source


@pytest.fixture(autouse=True)
def in_64_bits():
    with tl.enable_x64():
        yield


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def spaces(**shapes):
    return [ix.Space(name, shape) for name, shape in shapes.items()]


R = tl.Opaque("R", args=(1,))
STEP = """\
y[a] = r[a] + p[a] * β
y1[a] = x[a] + y[a] * α
y2 = ∇R(y1)
∇α = Σ[j] y[j] * y2[j]
∇β = Σ[j] p[j] * y2[j] * α"""


def residual_after_a_step(α, β, x, r, p):
    return R(x + α * (r + β * p))


def test_steps_of_conjugate_gradients(rng):
    """VD5: exact forms, the numbers of a quadratic form, and that both vanish at the step of conjugate gradients."""
    given = spaces(α=(), β=(), x=(3,), r=(3,), p=(3,))
    found = ix.grad(residual_after_a_step, (0, 1))(*given)
    assert found.text() == found.simplify().text() == STEP
    assert r"\nabla R(\mathrm{y1})" in found.latex()
    A, b = random(rng, (3, 3), False), random(rng, (3,), False)
    A = A @ A.T + np.eye(3)
    matrix, vector = tnp.asarray(A), tnp.asarray(b)
    quadratic = found.instantiate(R=lambda x: 0.5 * x @ matrix @ x - vector @ x)
    α, β, x, r, p = 0.3, 0.7, *[random(rng, (3,), False) for _ in "xrp"]
    d = β * p + r
    expected = d @ A @ (α * d + x) - d @ b, α * (p @ A @ (α * d + x) - b @ p)
    for form in (quadratic, quadratic.simplify(), quadratic.expand(), quadratic.expand().simplify()):
        np.testing.assert_allclose(form(α, β, x, r, p), expected, rtol=1e-12)
        np.testing.assert_allclose(run_source(form, α, β, x, r, p, matrix=A, vector=b), expected, rtol=1e-12)
    np.testing.assert_allclose(run_source(found, α, β, x, r, p, d_R=lambda x: A @ x - b), expected, rtol=1e-12)

    r = A @ x - b
    p = p - r * (r @ p) / (r @ r)
    β = -(r @ A @ p) / (p @ A @ p)
    q = r + β * p
    np.testing.assert_allclose(quadratic(-(r @ r) / (q @ A @ q), β, x, r, p), 0, atol=1e-12)


relu = tl.Opaque("relu")
NETWORK = """\
y[a] = Σ[j] t1[a,j] * x[j]
y1 = relu(y)
y2[a] = Σ[j] t2[a,j] * y1[j]
l1[a] = w[a] * relu'(y2)[a]
l2[a] = Σ[j] t2[j,a] * l1[j]
l3[a] = relu'(y)[a] * l2[a]
value[a] = relu(y2)[a]
∇t1[a,b] = x[b] * l3[a]
∇t2[a,b] = y1[b] * l1[a]"""


def perceptron(t1, t2, x):
    return relu(t2 @ relu(t1 @ x))


def test_perceptron(rng):
    """VD11: the let form of reverse mode, in which nothing is computed twice."""
    shapes = {"t1": (4, 3), "t2": (2, 4), "x": (3,), "w": (2,)}
    found = ix.pullback(perceptron, (0, 1), value=True, lets=True)(*spaces(**shapes))
    assert found.text() == found.simplify().text() == NETWORK
    source = found.numpy()
    assert source.count(" relu(") == 2 and source.count("d_relu(") == 2 and source.count("np.einsum(") == 7
    *args, w = [random(rng, shape, False) for shape in shapes.values()]
    value, pull = tl.vjp(lambda *args: tnp.tanh(args[1] @ tnp.tanh(args[0] @ args[2])), *args)
    instantiated = found.instantiate(relu=tnp.tanh)
    for y, (g1, g2) in (
        instantiated(*args, w),
        run_source(found, *args, w, relu=np.tanh, d_relu=lambda y: 1 - np.tanh(y) ** 2),
    ):
        np.testing.assert_allclose(y, value, rtol=1e-12)
        for k, g in enumerate((g1, g2)):
            np.testing.assert_allclose(g, pull(w)[k], rtol=1e-12)


FUNCTIONS = {
    (0,): lambda x: tnp.sin(x) * x,
    (0, 0): lambda x, y: tnp.sin(x * x * y) + y**3,
    (1,): lambda x: tnp.exp(x @ x) + x[0] ** 2 * x[1],
    (2, 1): lambda x, y: tnp.sin(y @ x @ y) + x[0, 1] * y[2] ** 2,
    (1, 0, 1): lambda x, y, z: tnp.sin(x @ z * y) + x[2] * z[0] ** 3,
}
COMPOSITIONS = {
    "value": lambda f: f,
    "gradient": lambda f: tl.grad(f, 0),
    "last gradient": lambda f: lambda *xs: tl.grad(f, len(xs) - 1)(*xs),
    "forward over reverse": lambda f: lambda *xs: tl.jvp(tl.grad(f, 0), xs, xs)[1],
    "reverse over reverse": lambda f: lambda *xs: tl.grad(lambda *ys: tl.grad(f, len(xs) - 1)(*ys).sum(), 0)(*xs),
    "third": lambda f: lambda *xs: tl.jvp(lambda *ys: tl.jvp(tl.grad(f, 0), ys, xs)[1], xs, xs)[1],
    "Hessian": lambda f: tl.hessian(f),
    "batch": lambda f: lambda *xs: tl.vmap(tl.grad(f, 0))(*[tnp.stack([x, 2 * x, x * x]) for x in xs]),
    "batch of some": lambda f: lambda x, *xs: tl.vmap(f, (0, *[None] * len(xs)))(tnp.stack([x, 2 * x]), *xs),
    "elements": lambda f: lambda *xs: ix.build(3, lambda i: (i > 0) * f(*[x * (i + 1) / 3 for x in xs])),
}


@pytest.mark.parametrize("ranks", FUNCTIONS)
@pytest.mark.parametrize("name", COMPOSITIONS)
def test_derivatives_are_those_of_the_function(rng, ranks, name):
    """A transformation of an opaque function, instantiated, is the transformation of the function."""
    transform, f = COMPOSITIONS[name], FUNCTIONS[ranks]
    args = [0.5 * random(rng, (3,) * rank, False) for rank in ranks]
    types = [ix.Space(f"x{k}", x.shape) for k, x in enumerate(args)]

    def summed(function):
        return lambda *xs: tnp.sin(tnp.asarray(transform(function)(*xs))).sum()

    instantiated = ix.grad(summed(tl.Opaque("F", args=ranks)), 0)(*types).instantiate(F=f)
    found, expected = tl.jit(lambda *xs: (instantiated(*xs), tl.grad(summed(f))(*xs)))(*args)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


def test_results_that_are_arrays(rng):
    F, x = tl.Opaque("F", args=(1,), shape=(2,)), ix.Space("x", (3,))
    matrix = tnp.asarray(random(rng, (2, 3), False))
    found = ix.pullback(F)(x, ix.Space("k", (2,)))
    assert found.text() == "Σ[j] ∇F(x)[j,a] * k[j]"
    at, k = random(rng, (3,), False), random(rng, (2,), False)
    expected = tl.vjp(lambda x: tnp.sin(matrix @ x), at)[1](k)[0]
    np.testing.assert_allclose(found.instantiate(F=lambda x: tnp.sin(matrix @ x))(at, k), expected, rtol=1e-12)


def test_several_arguments():
    L, r, t = tl.Opaque("L", args=(1, 0)), ix.Space("r", (3,)), ix.Space("t", ())
    found = ix.grad(lambda r, t: L(r * t, t * t), 1)(r, t)
    assert found.text() == "y[a] = r[a] * t\ny1 = t**2\n2 * t * ∂₂L(y, y1) + Σ[j] r[j] * ∂₁L(y, y1)[j]"
    assert r"\partial_{1} L(y, \mathrm{y1})_{j}" in found.latex()
    assert found.numpy().startswith("import numpy as np\n\n\ndef gradient(r, t, *, d1_L, d2_L):")


def test_a_derivative_along_a_free_index():
    found = ix.push(tl.grad(R), ix.Space("x", (3,)), along=lambda i: i == ix.free("k"))
    assert found.text() == "∇∇R(x)[a,k]"
    matrix = tnp.asarray([[2.0, 1.0, 0.0], [1.0, 3.0, 0.0], [0.0, 0.0, 1.0]])
    form = found.instantiate(R=lambda x: 0.5 * x @ matrix @ x)
    np.testing.assert_allclose(form(np.ones(3), k=1), matrix[1])


def test_what_has_no_values():
    for call in (relu, tl.jit(relu), tl.jit(lambda x: tl.jvp(relu, (x,), (x,))[1])):
        with pytest.raises(TypeError) as caught:
            call(np.ones(2))
        first, second, *_ = str(caught.value).split("\n")
        assert first.startswith(("relu is opaque: it has no values.", "relu' is opaque: it has no values."))
        assert second == "  Derive a formula by index.grad, index.pullback or index.push, and .instantiate(relu=f)."


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: tl.Opaque("2"), TypeError, "Opaque: the name '2' is not a Python identifier."),
        (lambda: tl.Opaque("f", args=0), ValueError, "Opaque: f has args=0; give a rank for each argument"),
        (lambda: relu(1.0, 2.0), TypeError, "relu is a function of 1 arguments, not of 2."),
        (lambda: R(1.0), TypeError, "R: argument 0 is float64[], of which the function takes 1 axes."),
        (lambda: relu(1j), TypeError, "relu: arguments are real numbers of one dtype, not complex128[]."),
        (
            lambda: ix.grad(R)(ix.Space("x", (2,))).instantiate(S=abs),
            TypeError,
            "instantiate: no function is called S; there are R.",
        ),
        (
            lambda: ix.grad(R)(ix.Space("x", (2,))).instantiate(R=lambda x: x),
            TypeError,
            "instantiate: R gives (), the function for it float64[2].",
        ),
    ],
)
def test_errors(call, kind, message):
    with pytest.raises(kind) as caught:
        call()
    assert message in str(caught.value)
