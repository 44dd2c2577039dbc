"""Linear maps as values: operators on them, and passing them in and out of every transformation."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests.close import small_programs as close
from tests.close import small_programs_and_dtypes as same_dtypes
from tests.messages import raises

pytestmark = pytest.mark.usefixtures("eager_by_steps")

X, V = np.array([1.0, 2.0, 3.0]), np.array([1.0, -1.0, 0.5])
Z, W = np.array([1 + 2j, 3 - 1j]), np.array([1j, 2 + 1j])
FLOAT0 = tnp.asarray(1).aval.tangent().dtype
UNDER = [lambda f: f, tl.jit]
each_way = pytest.mark.parametrize("under", UNDER, ids=["eager", "jit"])


def f(x):
    return tnp.sin(x) * x[0]


def holomorphic(z):
    return tnp.exp(z)[:, None] * z


def derivative(g, *primals):
    return tl.linearize(g, *primals)[1]


# ---- operators ------------------------------------------------------------------------------------------------


@each_way
def test_operators_are_those_of_matrices(under):
    J, K = derivative(f, X), derivative(lambda x: tnp.stack([x @ x, x[0]]), X)
    A, B = tl.jacfwd(f)(X), np.stack([2 * X, [1, 0, 0]])
    close(under(lambda J: J.matrix())(J), A)
    for operator, matrix in [
        (lambda J, K: J.T, A.T), (lambda J, K: J.H, A.T), (lambda J, K: K @ J, B @ A), (lambda J, K: J + J.T, A + A.T),
        (lambda J, K: 2 * J, 2 * A), (lambda J, K: J * np.float64(2), 2 * A), (lambda J, K: J / 3, A / 3),
        (lambda J, K: -J, -A), (lambda J, K: J - J @ J, A - A @ A), (lambda J, K: sum([J, J]), 2 * A),
        (lambda J, K: tnp.asarray(0.5) * (K.T @ K), 0.5 * B.T @ B), (lambda J, K: (K @ J).T @ K, (B @ A).T @ B),
        (lambda J, K: J.T.T, A),
    ]:  # fmt: skip
        close(under(lambda J, K, v: operator(J, K) @ v)(J, K, V), matrix @ V)  # noqa: B023  # called at once
        close(operator(J, K).matrix(), matrix)
    close(V @ J, V @ A)
    close(tnp.asarray(V) @ J, V @ A)
    close(J.diagonal(), np.diagonal(A))


def test_operators_of_complex_maps():
    C = derivative(holomorphic, Z)
    M = np.asarray(C.matrix())
    close(np.ravel(C(W)), M @ W)
    close(C.T.matrix(), M.T)
    close(C.H.matrix(), M.conj().T)
    close((C.H @ C).matrix(), M.conj().T @ M)
    close(((1 + 2j) * C).matrix(), (1 + 2j) * M)
    close(C.H.T.matrix(), M.conj())
    close(((1 + 2j) * derivative(f, X)).matrix(), (1 + 2j) * np.asarray(derivative(f, X).matrix()))


def test_the_adjoint_of_a_map_that_takes_parts():
    for g, x in ((tnp.abs, Z), (tnp.conj, Z), (lambda x: x * (1 + 2j), X[:2])):
        J = derivative(g, x)
        t, y = np.asarray(J(np.ones_like(x))), np.asarray(J(x)) * 2
        inner = np.real(np.vdot(y, t)), np.real(np.vdot(J.H(y), np.ones_like(x)))
        close(*inner)


def test_a_map_that_takes_parts_has_no_matrix():
    close(derivative(lambda x: x * (1 + 2j), X[:1]).matrix(), [[1 + 2j]])
    for J in (
        derivative(tnp.abs, Z),
        derivative(lambda x: x * 1j, X).T,
        derivative(tnp.conj, Z) + derivative(tnp.conj, Z),
    ):
        with pytest.raises(TypeError, match=r"matrix: the linear map .* takes the conjugate, or the parts"):
            J.matrix()


def test_several_arguments_and_pytrees():
    def g(n, p, x):
        return {"y": p["a"] * x, "n": n, "s": tnp.sum(x)}

    zero = np.zeros((), FLOAT0)
    J = derivative(g, 2, {"a": 3.0}, X)
    M = J.matrix()
    close(M, np.block([[np.zeros((1, 1)), np.ones((1, 3))], [X[:, None], 3 * np.eye(3)]]))
    ct = {"y": V, "n": zero, "s": 2.0}
    n, p, x = J.T(ct)
    assert n.dtype == zero.dtype
    close(p["a"], M[1:, 0] @ V)
    close(x, np.asarray(M)[:, 1:].T @ [2.0, *V])
    close(J.T.matrix(), M.T)
    same_dtypes(J.T.T(zero, {"a": 1.0}, V), J(zero, {"a": 1.0}, V))
    same_dtypes(J @ (zero, {"a": 1.0}, V), J(zero, {"a": 1.0}, V))
    close((J.T @ J).matrix(), M.T @ M)


def test_nothing_and_zero():
    assert derivative(lambda x: x, np.ones((0,))).matrix().shape == (0, 0)
    assert derivative(lambda x: (), X).matrix().shape == (0, 3)
    assert derivative(lambda: 1.0).matrix().shape == (1, 0)
    J = derivative(lambda x: (x, tnp.floor(x)), X)
    close(J.matrix(), np.vstack([np.eye(3), np.zeros((3, 3))]))
    close((J.T @ J + 2 * (J.T @ J)).matrix(), 3 * np.eye(3))


def test_results_are_promoted_as_numpys_are():
    J = derivative(lambda x: 2 * x, np.float32([1, 2]))
    assert (2.0 * J)(np.float32([1, 2])).dtype == np.float32
    assert (tnp.asarray(np.array(2.0)) * J)(np.float32([1, 2])).dtype == np.float64
    assert (J + derivative(lambda x: x.astype(np.float64), np.float32([1, 2]))).matrix().dtype == np.float64


def test_cost_and_program():
    J = derivative(f, X)
    assert J.cost.work == tl.work(J) == tl.work(J.jaxpr) and "adds" in str(J.cost)
    assert repr(J) == str(J.jaxpr) and [x.shape for x in J.residuals] == [(3,), (), (3,)]
    assert str(tl.tree.structure(J)) == "PyTreeDef(CustomNode(LinearMap[float64[3] -> float64[3]], [*, *, *]))"


@pytest.mark.parametrize(
    "wrong, message",
    [
        (lambda J: J * X, "*: a linear map is scaled by a number, not by an array float64[3]."),
        (
            lambda J: J @ derivative(tnp.sum, X),
            "@: the left map takes float64[3], but the right one gives float64[].",
        ),
        (
            lambda J: J + derivative(tnp.sum, X),
            "+: the maps are of different spaces, float64[3] -> float64[3] and float64[3] -> float64[].",
        ),
        (lambda J: J.T(X[:2]), "linear map: tangent 0 is float64[2], but the primal float64[3] asks for float64[3]."),
        (
            lambda J: J.T({}),
            "linear map: tangents must have the structure of the arguments.\n"
            "  [0] is a leaf in the arguments, a dict with no keys in the tangents.",
        ),
        (lambda J: J + 1, "unsupported operand type(s) for +: 'LinearMap' and 'int'"),
    ],
)
def test_errors(wrong, message):
    with raises(TypeError, message):
        wrong(derivative(f, X))


# ---- pytrees --------------------------------------------------------------------------------------------------


@each_way
def test_into_and_out_of_compiled_functions(under):
    value, pull_back = under(lambda x: tl.vjp(f, x))(X)
    _, push = under(lambda x: tl.linearize(f, x))(X)
    transposed = under(lambda x: tl.linear_transpose(lambda t: t * x, x))(X)
    M = np.asarray(tl.jacfwd(f)(X))
    close(value, f(X))
    close(under(lambda g, v: g(v))(pull_back, V)[0], M.T @ V)
    close(under(lambda g, v: g(v))(push, V), M @ V)
    close(under(lambda g, v: g(v))(transposed, V)[0], X * V)
    assert repr(pull_back) == "<pull_back_of_f: float64[3] -> float64[3]>"


def test_a_converted_function_is_a_pytree():
    w = tnp.ones(3)
    converted, hoisted = tl.closure_convert(lambda x: w * x, X)
    assert len(tl.tree.leaves(converted)) == 1 and not hoisted
    close(tl.jit(lambda g, x: g(x))(converted, X), X)


@each_way
def test_under_vmap(under):
    points = np.stack([X, X + 1])
    _, pull_backs = under(tl.vmap(lambda x: tl.vjp(f, x)))(points)
    (pulled,) = under(tl.vmap(lambda g, v: g(v), in_axes=(0, None)))(pull_backs, V)
    close(pulled, [tl.vjp(f, x)[1](V)[0] for x in points])
    message = "vjp: residual 0 of the linear map is float64[2,3], but its program takes float64[3]."
    with pytest.raises(TypeError, match=message.replace("[", r"\[")):
        pull_backs(V)


@each_way
def test_carried_by_loops(under):
    def run(x):
        def step(carry, _):
            J, v = carry
            return (derivative(tnp.sin, v), J(v)), J.matrix()

        return lax.scan(step, (derivative(tnp.sin, x), x), None, length=3)

    (J, last), matrices = under(run)(X)
    expected, J0 = X, np.diag(np.cos(X))
    for matrix in matrices:
        close(matrix, J0)
        expected, J0 = J0 @ expected, np.diag(np.cos(expected))
    close(last, expected)
    close(J.matrix(), J0)


def test_branches_return_the_same_map_of_other_points():
    def choose(which, x):
        return lax.cond(which, lambda x: derivative(tnp.sin, x), lambda x: derivative(tnp.sin, 2 * x), x)

    for which, factor in ((True, 1), (False, 2)):
        close(tl.jit(choose)(which, X)(V), np.cos(factor * X) * V)


def test_of_other_points_nothing_is_compiled_anew():
    traces = []

    @tl.jit
    def apply(g, v):
        traces.append(g)
        return g(v)

    for x in (X, 2 * X):
        close(apply(derivative(f, x), V), derivative(f, x)(V))
        close(apply(tl.vjp(f, x)[1], V)[0], tl.vjp(f, x)[1](V)[0])
    for x in (1.0, 2.0, np.float32(3)):
        close(apply(derivative(lambda x: x * x, x), 1.0), 2 * x)
    assert len(traces) == 3
    structures = [tl.tree.structure(derivative(g, X)) for g in (f, f, tnp.sin)]
    assert structures[0] == structures[1] != structures[2]
    assert hash(structures[0]) == hash(structures[1])


def test_residuals_that_are_arguments_may_be_taken_out_and_replaced():
    params, x = {"w": tnp.eye(2) * 2, "b": tnp.ones(2)}, tnp.arange(2.0)
    want = ({"w": np.outer([1, 1], [0, 1]), "b": np.ones(2)}, np.full(2, 2.0))
    for under in (lambda f: f, tl.jit):
        pull_back = under(lambda params, x: tl.vjp(lambda p, x: p["w"] @ x + p["b"], params, x)[1])(params, x)
        kept, ct = [*pull_back.args_res], tnp.ones(2)
        assert repr(kept[0]["b"]) == "NotNeeded()" and kept[0]["w"].tolist() == params["w"].tolist()
        assert kept[1].tolist() == x.tolist() and pull_back.opaque_residuals == []
        assert len(tl.tree.leaves(pull_back)) == len(tl.tree.leaves(kept)) == 2
        for apply in (pull_back, lambda ct, pull_back=pull_back: tl.jit(lambda f, ct: f(ct))(pull_back, ct)):
            tl.tree.map(np.testing.assert_array_equal, apply(ct), want)
        pull_back.args_res[1] = tnp.array([3.0, 0.0])
        np.testing.assert_array_equal(pull_back(ct)[0]["w"], [[3, 0], [3, 0]])
        pull_back.args_res[1] = None
        with raises(ValueError, "vjp: args_res has None in the place of an argument that is read: put it back."):
            pull_back(ct)
        pull_back.args_res[0] = None
        with pytest.raises(ValueError, match=r"^vjp: args_res does not match the arguments\."):
            pull_back(ct)
    _, pull_back = tl.vjp(lambda x: tnp.sin(x), x)
    assert repr(pull_back.args_res) == "[NotNeeded()]"
    np.testing.assert_allclose(pull_back.opaque_residuals[0], np.cos(x), rtol=1e-6)
    assert tl.linear_transpose(lambda x: 2 * x, x).opaque_residuals == []


def test_differentiated_in_residuals():
    gradient = tl.grad(lambda J: tnp.sum(J(V) ** 2))(derivative(lambda x: x * x, X))
    (residual,) = gradient.residuals  # the map is v -> 2 x v, of which x is kept
    close(residual, 8 * X * V**2)
    composed = tl.grad(lambda x: tnp.sum(derivative(tnp.sin, x)(V) ** 2))
    close(composed(X), -2 * np.cos(X) * np.sin(X) * V**2)


@each_way
def test_saved_by_a_custom_rule(under):
    @tl.custom_vjp
    def sine(x):
        return tnp.sin(x)

    sine.defvjp(lambda x: tl.vjp(tnp.sin, x), lambda pull_back, ct: pull_back(ct))
    close(under(tl.grad(lambda x: tnp.sum(sine(x))))(X), np.cos(X))
    close(under(tl.vmap(tl.grad(sine)))(X), np.cos(X))
    close(under(lambda x: tl.jvp(sine, (x,), (V,))[1])(X), np.cos(X) * V)


def test_a_map_does_not_change_with_the_array_it_was_made_at():
    x = X.copy()
    (_, J), (_, pull_back) = tl.linearize(lambda x: x * x, x), tl.vjp(lambda x: x * x, x)
    x[:] = 100
    close(J(V), 2 * X * V)
    close(pull_back(V)[0], 2 * X * V)
