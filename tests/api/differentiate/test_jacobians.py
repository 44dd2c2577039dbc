"""jacfwd, jacrev, hessian as users call them, against JAX and against formulas."""

import inspect
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.differentiate import jacobians
from tapeless.tracer.dtypes import float0
from tests.close import long_programs as close
from tests.close import single_precision_and_dtypes
from tests.messages import place, raises

pytestmark = pytest.mark.usefixtures("eager_by_steps")

RNG = np.random.default_rng(0)
X = RNG.normal(size=3)
JACOBIANS = [tl.jacfwd, tl.jacrev]
both = pytest.mark.parametrize("jacobian", JACOBIANS)
under = pytest.mark.parametrize("under", [lambda f: f, tl.jit], ids=["eager", "jit"])


def tensor(x):
    return x[:, None] * x**2 + 1


def jacobian_of_tensor(x):
    """d(x_i x_j²)/dx_k."""
    i = np.eye(3)
    return i[:, None, :] * (x**2)[:, None] + x[:, None, None] * (2 * x[:, None] * i)


@pytest.mark.parametrize("jacobian", [tl.jacfwd, tl.jacrev, tl.hessian])
def test_jacobians_are_weak_where_the_argument_is(jacobian):
    weak, strong = (jacobian(lambda x: x**3)(x) for x in (2.0, tnp.float32(2.0)))
    assert weak.weak_type and not strong.weak_type and weak == strong


# ---- structure and values ------------------------------------------------------------------------------------


@both
@under
@pytest.mark.parametrize("chunk_size", [None, 1, 2, 100])
def test_shape_of_the_result_then_of_the_argument(jacobian, under, chunk_size):
    close(under(jacobian(tensor, chunk_size=chunk_size))(X), jacobian_of_tensor(X))


@both
def test_scalars(jacobian):
    close(jacobian(lambda x: x**2)(np.array(3.0)), 6)
    close(jacobian(lambda x: x**2)(3.0), np.float32(6))
    close(jacobian(lambda x: x**2 * np.ones(2))(np.array(3.0)), [6, 6])
    close(jacobian(lambda x: tnp.sum(x**2))(X), 2 * X)


@both
def test_what_is_constant_or_empty(jacobian):
    close(jacobian(lambda x: np.ones(2))(X), np.zeros((2, 3)))
    close(jacobian(lambda x: x)(np.ones((0, 2))), np.zeros((0, 2, 0, 2)))
    close(jacobian(lambda x: x[:0])(X), np.zeros((0, 3)))
    assert jacobian(lambda x: ())(X) == ()
    assert jacobian(lambda x: 2.0)(()) == ()


TREE = {"u": RNG.normal(size=3).astype(np.float32), "v": RNG.normal(size=(2, 2)).astype(np.float32)}
SCALE = np.array([1, 2], np.float32)


def of_trees(np_: Any) -> Any:
    def f(p, scale):
        return {"a": np_.sin(p["u"])[:, None] * scale, "b": (np_.sum(p["v"]) * scale[0] ** 2, p["u"])}

    return f


@pytest.mark.parametrize("name", ["jacfwd", "jacrev", "hessian"])
@pytest.mark.parametrize("argnums", [0, -1, (0,), (1, 0)], ids=str)
def test_trees_against_jax(name, argnums):
    jax = pytest.importorskip("jax")
    wanted = jax.jit(getattr(jax, name)(of_trees(jax.numpy), argnums))(TREE, SCALE)
    for chunk_size in (None, 2):
        found = tl.jit(getattr(tl, name)(of_trees(tnp), argnums, chunk_size=chunk_size))(TREE, SCALE)
        single_precision_and_dtypes(found, wanted)


@both
def test_keyword_arguments_and_names(jacobian):
    def f(x, *, scale):
        """Scaled."""
        return x * scale

    j = jacobian(f)
    close(j(X, scale=2.0), 2 * np.eye(3))
    assert j.__name__ == "jacobian_of_f" and inspect.unwrap(j) is f and "Scaled." in j.__doc__


@pytest.mark.parametrize("derive", [tl.jacfwd, tl.jacrev, tl.hessian])
@under
def test_has_aux(derive, under):
    def f(x):
        return tnp.sum(x**3), {"twice": 2 * x, "n": 3}

    found, aux = under(derive(f, has_aux=True))(X)
    close(found, np.diag(6 * X) if derive is tl.hessian else 3 * X**2)
    close(aux["twice"], 2 * X)
    assert int(aux["n"]) == 3


# ---- complex numbers and integers ----------------------------------------------------------------------------

Z = X + 1j * X[::-1]


@both
def test_holomorphic(jacobian):
    close(jacobian(lambda z: z**2 * 1j, holomorphic=True)(Z), np.diag(2j * Z))


def test_holomorphic_hessian():
    close(tl.hessian(lambda z: tnp.sum(z**3), holomorphic=True)(Z), np.diag(6 * Z))


def test_real_arguments_with_complex_results():
    close(tl.jacfwd(lambda x: x * (1 + 2j))(X), (1 + 2j) * np.eye(3))


def test_complex_arguments_with_real_results():
    rows = tl.jacrev(lambda z: tnp.abs(z) ** 2)(Z)
    close(rows, np.stack([np.asarray(tl.grad(lambda z, i=i: tnp.abs(z[i]) ** 2)(Z)) for i in range(3)]))


def test_integers():
    found = tl.jacrev(lambda x, n: (x * n, x[:2]), argnums=(0, 1), allow_int=True)(X, np.arange(3))
    close(found[0][0], np.diag(np.arange(3.0)))
    assert found[0][1].dtype == float0 and found[0][1].shape == (3, 3)
    assert found[1][1].dtype == float0 and found[1][1].shape == (2, 3)
    counted = tl.jacfwd(lambda x: (x, tnp.sum(x > 0)))(X)
    close(counted[0], np.eye(3))
    assert counted[1].dtype == float0 and counted[1].shape == (3,)


# ---- with others ---------------------------------------------------------------------------------------------


def test_hessian_is_symmetric_and_exact():
    def f(x):
        return tnp.log(tnp.sum(tnp.exp(x)))

    p = np.exp(X) / np.sum(np.exp(X))
    for derive in (tl.hessian, *(lambda f, a=a, b=b: a(b(f)) for a in JACOBIANS for b in JACOBIANS)):
        close(derive(f)(X), np.diag(p) - np.outer(p, p))


@both
@under
def test_with_vmap(jacobian, under, rng: np.random.Generator):
    xs = rng.normal(size=(4, 3))
    each = [jacobian_of_tensor(x) for x in xs]
    close(under(tl.vmap(jacobian(tensor)))(xs), each)
    close(under(jacobian(tl.vmap(tensor)))(xs[:2])[0, :, :, 0], each[0])
    close(under(tl.vmap(tl.hessian(lambda x: tnp.sum(x**3))))(xs), [np.diag(6 * x) for x in xs])


@both
def test_with_grad_and_custom_jvp(jacobian):
    @tl.custom_jvp
    def g(x):
        return tnp.sin(x)

    g.defjvps(lambda t, y, x: 10 * tnp.cos(x) * t)
    close(jacobian(g)(X), np.diag(10 * np.cos(X)))
    close(tl.grad(lambda x: tnp.sum(jacobian(tensor)(x)))(X), np.sum(second_of_tensor(), (0, 1, 2)))


def second_of_tensor():
    """d²(x_i x_j²)/dx_k dx_l = 2 x_j (δ_ik δ_jl + δ_il δ_jk) + 2 x_i δ_jk δ_jl."""
    i = np.eye(3)
    first = np.einsum("j,ik,jl->ijkl", 2 * X, i, i)
    return first + first.swapaxes(2, 3) + np.einsum("i,jk,jl->ijkl", 2 * X, i, i)


def test_second_derivatives_of_a_tensor():
    close(tl.hessian(tensor)(X), second_of_tensor())


def test_the_function_is_run_once():
    calls = []

    def f(x):
        calls.append(x)
        return x**2

    for jacobian in JACOBIANS:
        calls.clear()
        jacobian(f, chunk_size=1)(X)
        assert len(calls) == 1


def steps_of_sine(n):
    return lambda x: tl.lax.scan(lambda c, _: (c + 0.01 * tnp.sin(c) * c, None), x, None, n)[0]


def test_loops_keep_no_residuals_in_forward_mode():
    """The columns go along with the steps; each step is the only one whose values are there."""
    few, many = (
        tl.jit(tl.jacfwd(steps_of_sine(n))).lower(X).compile().memory_analysis().temp_size_in_bytes for n in (10, 1000)
    )
    assert few == many < 1000
    close(tl.jacfwd(steps_of_sine(10))(X), tl.jacfwd(steps_of_sine(10), chunk_size=2)(X))


def test_values_that_a_rule_maps_without_need():
    f = tl.custom_batching.custom_vmap(lambda x: (x, tnp.sum(x)))
    f.def_vmap(lambda size, mapped, x: ((x, tnp.broadcast_to(tnp.sum(x, -1), (size,))), (True, True)))
    found, aux = tl.jacfwd(lambda x: (tnp.sin(f(x)[0]), (f(x)[1], "static")), has_aux=True)(X)
    close(found, np.diag(np.cos(X)))
    close(aux[0], np.sum(X))
    assert aux[1] == "static"


# ---- errors --------------------------------------------------------------------------------------------------


def whole(x):
    return x + 0 if x.dtype.kind in "fc" else x


def positive(x):
    return (x > 0).astype(int)


def turned(x):
    return 1j * x


WRONG = [
    (
        lambda: tl.jacfwd(whole)(np.arange(3)),
        "jacfwd: argument x of whole is int64[3], and integers have no derivative.\n"
        "  Convert it with astype(float), choose others with argnums=.",
    ),
    (
        lambda: tl.jacrev(whole)(np.arange(3)),
        "jacrev: argument x of whole is int64[3], and integers have no derivative.\n"
        "  Convert it with astype(float), choose others with argnums=, or pass allow_int=True for float0 zeros.",
    ),
    (
        lambda: tl.hessian(whole)(np.arange(3)),
        "hessian: argument x of whole is int64[3], and integers have no derivative.\n"
        "  Convert it with astype(float), choose others with argnums=.",
    ),
    (
        lambda: tl.jacfwd(whole)(Z),
        f"jacfwd: the argument x of {place(whole)} is complex128[3], but must be real.\n"
        "  Pass holomorphic=True if the function is, or use tl.jvp or tl.vjp.",
    ),
    (
        lambda: tl.jacrev(turned)(X),
        f"jacrev: the result of {place(turned)} is complex128[3], but must be real.\n"
        "  Pass holomorphic=True if the function is, or use tl.jvp or tl.vjp.",
    ),
    (
        lambda: tl.jacrev(positive)(X),
        f"jacrev: the result of {place(positive)} is int32[3], and integers have no derivative.",
    ),
    (
        lambda: tl.jacfwd(whole, holomorphic=True)(X),
        "jacfwd: with holomorphic=True inputs must be complex, but argument x of whole is float64[3].",
    ),
    (
        lambda: tl.jacrev(abs, holomorphic=True)(Z),
        "jacrev: with holomorphic=True the result of abs must be complex, but is float64[3].",
    ),
]


@pytest.mark.parametrize("call, text", WRONG)
def test_errors(call, text):
    with raises(TypeError, text):
        call()


EVERY = [tl.jacfwd, tl.jacrev, tl.jacobian, tl.hessian]


@pytest.mark.parametrize("derive", EVERY)
def test_error_argnums_and_chunks(derive):
    name = derive.__name__
    with raises(ValueError, f"{name}: argnums=1 names argument 1, but whole was called with 1 positional argument."):
        derive(whole, 1)(X)
    for wrong in (0, -1, 1.5, True, "2", np.float64(2)):
        with raises(ValueError, f"{name}: chunk_size must be a positive integer or None, not {wrong!r}."):
            derive(whole, chunk_size=wrong)
    both_given = (
        f"{name}: chunk_size and memory_budget are both given, but a budget chooses the chunk size.\n"
        "  Leave one of them out."
    )
    with raises(ValueError, both_given):
        derive(whole, chunk_size=1, memory_budget="1GB")
    negative = f"{name}, memory_budget: expected a number of bytes, not -1, which is negative."
    with raises(ValueError, negative):
        derive(whole, memory_budget=-1)


# ---- chunks and budgets --------------------------------------------------------------------------------------

WEIGHTS = RNG.normal(size=(6, 64, 64)).astype(np.float32) / 8


def layers(x):
    for w in WEIGHTS:
        x = tnp.tanh(w @ x)
    return x


def steps(x):
    return tl.lax.scan(lambda c, _: (tnp.tanh(WEIGHTS[0] @ c), None), x, None, 6)[0]


def energy(x):
    return tnp.sum(layers(x) ** 2)


def mixed(x):
    """Weigh products and sums, with no element of the Jacobian zero."""
    return tnp.sin(WEIGHTS[0, :5, :3] @ x) * tnp.sum(x**2)


def temporaries(f):
    x = tl.ShapeDtypeStruct((64,), "float32")
    return tl.jit(f).lower(x).compile().memory_analysis().temp_size_in_bytes


CHUNKED = [(tl.jacfwd, layers), (tl.jacrev, layers), (tl.hessian, energy), (tl.jacrev, steps)]


@pytest.mark.parametrize("derive, f", CHUNKED, ids=lambda f: f.__name__)
def test_chunks_bound_what_the_compiled_program_needs(derive, f):
    """Each tangent takes the same bytes, beyond the residuals; a few of 64 take far less than all."""
    few, some, many = (temporaries(derive(f, chunk_size=k)) for k in (4, 16, 28))
    # XLA pads buffers to 64 bytes, and keeps counters of loops beside them.
    assert abs((many - some) / (some - few) - 1) < 0.05
    assert few < 0.25 * temporaries(derive(f))


@pytest.mark.parametrize("derive, f", CHUNKED, ids=lambda f: f.__name__)
def test_the_compiled_program_keeps_the_budget(derive, f):
    whole = temporaries(derive(f))
    for part in (0.5, 0.25):
        budget = int(part * whole)
        # As the prediction leaves out counters of loops, and a chunk may be one element short of the budget.
        assert 0.8 < temporaries(derive(f, memory_budget=budget)) / budget < 1.05
    assert temporaries(derive(f, memory_budget="1GB")) == whole
    assert temporaries(derive(f, memory_budget=0)) == temporaries(derive(f, chunk_size=1))


def test_a_budget_that_cannot_be_kept_names_the_least():
    found = (
        r"memory_budget: 2000 bytes are too few: the derivative needs at least (\d+) with chunk_size=1, of which 1536 "
    )
    with pytest.raises(
        ValueError, match=r"jacfwd, " + found + r"are residuals, the largest float32\[64\] from "
    ) as error:
        tl.jacfwd(layers, memory_budget=2000)(WEIGHTS[0, 0])
    least = int(str(error.value).split(" with chunk_size")[0].split()[-1])
    np.testing.assert_array_equal(
        tl.jit(tl.jacfwd(layers, memory_budget=least))(WEIGHTS[0, 0]),
        tl.jit(tl.jacfwd(layers, chunk_size=1))(WEIGHTS[0, 0]),
    )
    with pytest.raises(ValueError, match=f"at least {least} "):
        tl.jit(tl.jacfwd(layers, memory_budget=least - 1))(WEIGHTS[0, 0])


@pytest.mark.parametrize("chosen", [{"chunk_size": np.int64(2)}, {"memory_budget": 0}, {"memory_budget": 0.8}], ids=str)
def test_chunks_compose(chosen):
    x = np.array([0.3, -0.4, 0.5])
    right = tl.jit(tl.jacrev(mixed))(x)
    second = tl.jit(tl.jacfwd(tl.jacrev(mixed)))(x)
    for derive in (tl.jacfwd, tl.jacrev, tl.jacobian):
        chunked = derive(mixed, **chosen)
        close(tl.jit(tl.vmap(chunked))(np.stack([x, 2 * x]))[0], right)
        close(tl.jit(tl.jacfwd(chunked))(x), second)
        close(tl.jit(tl.grad(lambda x, g=chunked: tnp.sum(g(x) ** 2)))(x), 2 * np.einsum("ij,ijk", right, second))
        tree, aux = derive(lambda p, s: ({"y": p["a"] * p["b"] * s}, "aux"), (1, 0), has_aux=True, **chosen)(
            {"a": np.array(2.0), "b": x}, np.array(3.0)
        )
        assert aux == "aux"
        close(tree["y"][0], 2 * x)
        close(tree["y"][1]["b"], 6 * np.eye(3))
        close(derive(lambda z: z**2 * 1j, holomorphic=True, **chosen)(Z), np.diag(2j * Z))


@both
def test_the_matrix_of_a_linear_function_is_the_one_that_it_holds(jacobian):
    """No products are left: the program returns A, its transpose, or elements of it."""
    a = RNG.normal(size=(4, 3))
    for f, right in [
        (lambda x: a @ x, a),
        (lambda x: 1 + x @ a.T, a),
        (lambda x: (a @ x)[1:3], a[1:3]),
        (lambda x: {"y": tnp.broadcast_to((a @ x)[:, None], (4, 2))}["y"], np.repeat(a[:, None], 2, 1)),
    ]:
        program = tl.jit(jacobian(f)).lower(X)
        assert "dot_general" not in program.as_text() and "multiply" not in program.as_text()
        np.testing.assert_array_equal(program.compile()(X), right)


# ---- the choice of a mode ------------------------------------------------------------------------------------


MODES = [
    (lambda x: tnp.sum(tnp.sin(x)), X, False),
    (lambda x: tnp.outer(tnp.sin(x), x), X, True),
    (tnp.sin, X, True),
    (lambda x: tl.lax.scan(lambda c, _: (tnp.sin(c) * x, None), x, None, 3)[0][:1], X, False),
    (lambda x: tl.lax.while_loop(lambda c: c[0] < 9, lambda c: c * c + 1, x), X, True),
    (lambda x: x[:1] * (1 + 2j), X, True),
]


@pytest.mark.parametrize("f, x, forward", MODES)
def test_the_mode_of_fewer_operations_is_chosen(f, x, forward, monkeypatch):
    asked = []
    chosen = jacobians._is_forward
    monkeypatch.setattr(jacobians, "_is_forward", lambda *args: asked.append(chosen(*args)) or asked[-1])
    found = tl.jacobian(f)(x)
    assert asked == [forward]
    close(found, (tl.jacfwd if forward else tl.jacrev)(f)(x))


def test_only_reverse_mode_is_allowed():
    def squares(z):
        return tnp.abs(tnp.outer(z, z)) ** 2

    close(tl.jacobian(squares)(Z), tl.jacrev(squares)(Z))
    assert tl.jacobian(lambda n: 2.0 * n, allow_int=True)(np.arange(3)).dtype == float0
    message = f"jacobian: the result of {place(positive)} is int32[3], and integers have no derivative."
    with raises(TypeError, message):  # reverse mode refuses them
        tl.jacobian(positive, allow_int=True)(X)


@pytest.mark.parametrize("options", [{}, {"chunk_size": 2}, {"memory_budget": 0}])
def test_integer_results_have_zeros_of_no_dtype_as_in_forward_mode(options):
    for f in (positive, lambda x: (tnp.sin(x), tnp.argsort(x), x > 0), lambda x: {"n": tnp.arange(2), "y": x.sum()}):
        found, right = tl.jacobian(f, **options)(X), tl.jacfwd(f, **options)(X)
        assert tl.tree.structure(found) == tl.tree.structure(right)
        for x, y in zip(tl.tree.leaves(found), tl.tree.leaves(right), strict=True):
            assert (x.dtype, x.shape) == (y.dtype, y.shape)
            if x.dtype != float0:
                np.testing.assert_array_equal(x, y)
