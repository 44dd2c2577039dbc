"""Collectives over named axes: what they compute, in groups and over several names, and what they compose with."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests.close import single_precision_and_dtypes as close
from tests.messages import place, raises

pytestmark = pytest.mark.usefixtures("eager_by_steps")

N = 4
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 4, 3)).astype(np.float32)
under = pytest.mark.parametrize("under", [lambda f: f, tl.jit], ids=["eager", "jit"])
CYCLE = [(i, (i + 1) % N) for i in range(N)]
GROUPS = [[0, 3], [2, 1]]


def mapped(f, **named):
    return tl.vmap(f, axis_name="i", **named)


# ---- against JAX ---------------------------------------------------------------------------------------------

# Of one example [4, 3]; `lax` and `np_` are ours or JAX's.
PROGRAMS = {
    "psum": lambda lax, np_: lambda x: lax.psum(np_.sin(x), "i") * x,
    "psum of a pytree": lambda lax, np_: lambda x: lax.psum({"a": x, "b": (x[0], x > 0)}, "i"),
    "psum and own axes": lambda lax, np_: lambda x: lax.psum(x, ("i", 1)) * x[:, 0],
    "pmean": lambda lax, np_: lambda x: (x - lax.pmean(x, "i")) ** 2,
    "all_gather": lambda lax, np_: lambda x: lax.all_gather(x, "i") * x,
    "all_gather tiled": lambda lax, np_: lambda x: lax.all_gather(x, "i", axis=1, tiled=True) ** 2,
    "all_gather last": lambda lax, np_: lambda x: np_.sin(lax.all_gather(x, "i", axis=-1)),
    "psum_scatter": lambda lax, np_: lambda x: lax.psum_scatter(x * x, "i"),
    "psum_scatter tiled": lambda lax, np_: lambda x: lax.psum_scatter(x * x, "i", scatter_dimension=0, tiled=True),
    "all_to_all": lambda lax, np_: lambda x: lax.all_to_all(x * x, "i", 0, 1),
    "all_to_all back": lambda lax, np_: lambda x: lax.all_to_all(x.T, "i", 1, 0) ** 2,
    "all_to_all same": lambda lax, np_: lambda x: lax.all_to_all(x, "i", 0, 0) ** 2,
    "all_to_all tiled": lambda lax, np_: lambda x: lax.all_to_all(x, "i", 0, 1, tiled=True) ** 2,
    "pswapaxes": lambda lax, np_: lambda x: lax.pswapaxes(x, "i", 0) * x,
    "ppermute": lambda lax, np_: lambda x: lax.ppermute(x, "i", CYCLE) * x,
    "pshuffle": lambda lax, np_: lambda x: lax.pshuffle(x, "i", [2, 0, 1, 3]) * x,
    "axis_index": lambda lax, np_: lambda x: x * lax.axis_index("i") + lax.axis_size("i"),
    "softmax": lambda lax, np_: lambda x: np_.exp(x) / lax.psum(np_.exp(x), "i"),
    "batch norm": lambda lax, np_: (
        lambda x: (x - lax.pmean(x, "i")) / np_.sqrt(lax.pmean(x**2, "i") - lax.pmean(x, "i") ** 2 + 1e-3)
    ),
}
EXTREMES = {
    "pmax": lambda lax, np_: lambda x: lax.pmax(x, "i") + x,
    "pmin": lambda lax, np_: lambda x: lax.pmin(x, ("i", 0)) * x,
}


@pytest.mark.parametrize("name", [*PROGRAMS, *EXTREMES])
def test_values_are_those_of_jax(name):
    jax = pytest.importorskip("jax")
    program = (PROGRAMS | EXTREMES)[name]
    for in_axes, out_axes, x in [(0, 0, X), (2, 1, np.moveaxis(X, 0, 2))]:
        wanted = jax.jit(jax.vmap(program(jax.lax, jax.numpy), in_axes, out_axes, axis_name="i"))(x)
        close(mapped(program(lax, tnp), in_axes=in_axes, out_axes=out_axes)(x), wanted)
        close(tl.jit(mapped(program(lax, tnp), in_axes=in_axes, out_axes=out_axes))(x), wanted)
        close(mapped(tl.jit(program(lax, tnp)), in_axes=in_axes, out_axes=out_axes)(x), wanted)


# JAX fails, or transposes to the wrong shape: see test_transposes_inside for these.
NOT_IN_JAX = {"psum of a pytree", "all_to_all", "all_to_all back"}


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in NOT_IN_JAX])
def test_derivatives_are_those_of_jax(name):
    """Outside of vmap, where all examples are one function, and inside, where each has a copy of what they share."""
    jax = pytest.importorskip("jax")

    def outside(vmap, grad, f, np_):
        return grad(lambda x: np_.sum(np_.sin(vmap(f, axis_name="i")(x))))

    def inside(vmap, grad, f, np_):
        return vmap(grad(lambda x: np_.sum(np_.sin(f(x)))), axis_name="i")

    def pushed(vmap, jvp, f, np_):
        return lambda x: vmap(lambda x: jvp(f, (x,), (np_.cos(x),)), axis_name="i")(x)

    for where in (outside, inside):
        wanted = jax.jit(where(jax.vmap, jax.grad, PROGRAMS[name](jax.lax, jax.numpy), jax.numpy))(X)
        found = where(tl.vmap, tl.grad, PROGRAMS[name](lax, tnp), tnp)
        close(found(X), wanted, 1e-4)
        close(tl.jit(found)(X), wanted, 1e-4)
    close(where(tl.vmap, tl.grad, tl.jit(PROGRAMS[name](lax, tnp)), tnp)(X), wanted, 1e-4)
    wanted = jax.jit(pushed(jax.vmap, jax.jvp, PROGRAMS[name](jax.lax, jax.numpy), jax.numpy))(X)
    close(pushed(tl.vmap, tl.jvp, PROGRAMS[name](lax, tnp), tnp)(X), wanted, 1e-4)


@pytest.mark.parametrize("name", PROGRAMS)
def test_operands_that_are_the_same_for_all(name):
    """As if they were repeated."""
    wanted = mapped(PROGRAMS[name](lax, tnp))(np.stack([X[0]] * N))
    found = mapped(PROGRAMS[name](lax, tnp), in_axes=None, axis_size=N)
    close(found(X[0]), wanted)
    close(tl.jit(found)(X[0]), wanted)


LINEAR = {
    "psum": lambda x: lax.psum(x, "i"),
    "psum of groups": lambda x: lax.psum(x, "i", axis_index_groups=GROUPS),
    "all_gather": lambda x: lax.all_gather(x, "i", axis=-1),
    "all_gather of groups": lambda x: lax.all_gather(x, "i", axis=1, axis_index_groups=GROUPS),
    "psum_scatter": lambda x: lax.psum_scatter(x.T, "i", scatter_dimension=1),
    "psum_scatter of groups": lambda x: lax.psum_scatter(x, "i", axis_index_groups=GROUPS, tiled=True),
    "all_to_all": lambda x: lax.all_to_all(x, "i", 0, 1),
    "all_to_all back": lambda x: lax.all_to_all(x.T, "i", 1, 0),
    "all_to_all of groups": lambda x: lax.all_to_all(x, "i", 0, 1, tiled=True, axis_index_groups=GROUPS),
    "ppermute": lambda x: lax.ppermute(x, "i", [(0, 1), (1, 2), (3, 3)]),
}


@under
@pytest.mark.parametrize("name", LINEAR)
def test_transposes_inside(under, name, rng: np.random.Generator):
    """Each example pulls back its own cotangent; together that is the transpose of what all of them compute."""
    f, u = LINEAR[name], rng.normal(size=X.shape)
    image = np.asarray(under(mapped(f))(u))
    v = rng.normal(size=image.shape)
    pulled = under(mapped(lambda x, ct: tl.vjp(f, x)[1](ct)[0]))(u, v)
    np.testing.assert_allclose(np.sum(image * v), np.sum(u * np.asarray(pulled)), rtol=1e-12)
    close(under(mapped(lambda x, ct: tl.linear_transpose(tl.jit(f), x)(ct)[0]))(u, v), pulled)
    close(under(tl.vjp(mapped(f), u)[1])(v)[0], pulled)


def test_derivatives_of_extremes():
    """JAX has none: half of the tangent to each of two examples that share the maximum."""
    x = np.array([[1.0, 5.0], [3.0, 5.0], [2.0, -1.0]])
    close(tl.grad(lambda x: tnp.sum(mapped(lambda x: lax.pmax(x, "i") ** 2, out_axes=None)(x)))(x),
          np.array([[0, 5.0], [6.0, 5.0], [0, 0]]))  # fmt: skip
    close(
        mapped(lambda x: tl.jvp(lambda x: lax.pmin(x, "i"), (x,), (10 * x,))[1], out_axes=None)(x),
        np.array([10.0, -10.0]),
    )
    inside = mapped(tl.grad(lambda x: tnp.sum(lax.pmax(x, "i"))))(x)
    close(inside, 3 * np.array([[0, 0.5], [1.0, 0.5], [0, 0]]))


# ---- several names, groups -----------------------------------------------------------------------------------

Y = RNG.normal(size=(2, 3, 6, 12))


def over_two(f):
    return tl.vmap(tl.vmap(f, axis_name="j"), axis_name="i")


def over_one(f):
    """Both axes as one, of size 6."""
    return lambda y: tl.tree.map(
        lambda z: z.reshape(2, 3, *z.shape[1:]), tl.vmap(f, axis_name="k")(y.reshape(6, *y.shape[2:]))
    )


SEVERAL = {
    "psum": lambda name: lambda y: lax.psum(y, name),
    "pmean": lambda name: lambda y: lax.pmean(y, name),
    "pmax": lambda name: lambda y: lax.pmax(y, name),
    "all_gather": lambda name: lambda y: lax.all_gather(y, name, axis=1),
    "all_gather tiled": lambda name: lambda y: lax.all_gather(y, name, axis=1, tiled=True),
    "psum_scatter": lambda name: lambda y: lax.psum_scatter(y, name),
    "psum_scatter tiled": lambda name: lambda y: lax.psum_scatter(y, name, scatter_dimension=1, tiled=True),
    "all_to_all": lambda name: lambda y: lax.all_to_all(y, name, 0, 1),
    "all_to_all same": lambda name: lambda y: lax.all_to_all(y, name, 0, 0),
    "all_to_all tiled": lambda name: lambda y: lax.all_to_all(y, name, 1, 0, tiled=True),
    "all_to_all tiled same": lambda name: lambda y: lax.all_to_all(y, name, 1, 1, tiled=True),
    "ppermute": lambda name: lambda y: lax.ppermute(y, name, [(0, 4), (4, 5), (1, 0)]),
    "pshuffle": lambda name: lambda y: lax.pshuffle(y, name, [5, 0, 1, 3, 4, 2]),
    "axis_index": lambda name: lambda y: lax.axis_index(name) + lax.axis_size(name),
}


@under
@pytest.mark.parametrize("name", SEVERAL)
def test_several_names_are_as_one_axis(under, name):
    close(under(over_two(SEVERAL[name](("i", "j"))))(Y), over_one(SEVERAL[name]("k"))(Y))


@pytest.mark.parametrize("name", [name for name in SEVERAL if name not in ("axis_index", "pmax")])
def test_several_names_differentiated(name):
    def gradient(across, name_of):
        return tl.grad(lambda y: tnp.sum(tnp.sin(across(SEVERAL[name](name_of))(y))))(Y)

    close(gradient(over_two, ("i", "j")), gradient(over_one, "k"))


def of_groups(f):
    """f of the examples of each group, which it gets and gives as lists."""

    def whole(x):
        out = [None] * N
        for group in GROUPS:
            for i, y in zip(group, f([x[i] for i in group])):
                out[i] = y
        return np.stack(out)

    return whole


IN_GROUPS = {
    "psum": (lambda x: lax.psum(x, "i", axis_index_groups=GROUPS), of_groups(lambda xs: [sum(xs)] * 2)),
    "psum of a number": (
        lambda x: x * lax.psum(1, "i", axis_index_groups=GROUPS),
        of_groups(lambda xs: [2 * x for x in xs]),
    ),
    "pmean": (lambda x: lax.pmean(x, "i", axis_index_groups=GROUPS), of_groups(lambda xs: [sum(xs) / 2] * 2)),
    "pmax": (lambda x: lax.pmax(x, "i", axis_index_groups=GROUPS), of_groups(lambda xs: [np.maximum(*xs)] * 2)),
    "pmin": (lambda x: lax.pmin(x, "i", axis_index_groups=GROUPS), of_groups(lambda xs: [np.minimum(*xs)] * 2)),
    "all_gather": (
        lambda x: lax.all_gather(x, "i", axis_index_groups=GROUPS, axis=1),
        of_groups(lambda xs: [np.stack(xs, 1)] * 2),
    ),
    "psum_scatter": (
        lambda x: lax.psum_scatter(x, "i", axis_index_groups=GROUPS, tiled=True),
        of_groups(lambda xs: np.split(sum(xs), 2)),
    ),
    "all_to_all": (
        lambda x: lax.all_to_all(x[:2], "i", 0, 1, axis_index_groups=GROUPS),
        of_groups(lambda xs: [np.stack([x[i] for x in xs], 1) for i in range(2)]),
    ),
    "pswapaxes": (
        lambda x: lax.pswapaxes(x[:2], "i", 0, axis_index_groups=GROUPS),
        of_groups(lambda xs: [np.stack([x[i] for x in xs]) for i in range(2)]),
    ),
}


@under
@pytest.mark.parametrize("name", IN_GROUPS)
def test_groups(under, name):
    f, reference = IN_GROUPS[name]
    close(under(mapped(f))(X), reference(X))
    close(mapped(tl.jit(f))(X), reference(X))
    same = np.stack([X[0]] * N)
    close(under(mapped(f, in_axes=None, axis_size=N))(X[0]), reference(same))


@under
def test_groups_differentiated(under):
    g = under(tl.grad(lambda x: tnp.sum(mapped(lambda x: lax.psum(x, "i", axis_index_groups=GROUPS) ** 2)(x))))
    close(g(X), of_groups(lambda xs: [4 * sum(xs)] * 2)(X))


# ---- names ---------------------------------------------------------------------------------------------------


def test_numbers_stay_numbers():
    seen = []

    def f(x):
        seen.append((lax.psum(1, "i"), lax.psum(2.5, "i"), lax.axis_size("i"), lax.pmean(3, "i"), lax.psum(True, "i")))
        return x

    mapped(f)(X)
    assert seen == [(4, 10.0, 4, 3.0, 4)] and [type(x) for x in seen[0]] == [int, float, int, float, int]


def test_what_is_shared_has_no_mapped_axis():
    assert mapped(lambda x: lax.psum(x, "i"), out_axes=None)(X).shape == X.shape[1:]
    assert mapped(tl.jit(lambda x: lax.psum(x, "i")), out_axes=None)(X).shape == X.shape[1:]
    assert mapped(lambda x: lax.all_gather(x, "i"), out_axes=None)(X).shape == X.shape


@under
def test_an_inner_axis_hides_one_of_the_same_name(under, rng: np.random.Generator):
    xs = rng.normal(size=(2, 3))
    inner = under(mapped(mapped(lambda x: (lax.psum(x, "i"), lax.axis_size("i") * x))))(xs)
    close(inner, (np.repeat(xs.sum(1)[:, None], 3, 1), 3 * xs))
    both = under(mapped(lambda x: lax.psum(x, "i") + mapped(lambda y: lax.psum(y, "i"))(x)))(xs)
    close(both, xs.sum(0) + xs.sum(1)[:, None])
    called = under(mapped(lambda x: mapped(tl.jit(lambda y: lax.psum(y, "i")))(x)))(xs)
    close(called, np.repeat(xs.sum(1)[:, None], 3, 1))


@under
def test_other_axes_are_along_for_the_ride(under, rng: np.random.Generator):
    xs = rng.normal(size=(2, 3, 5))
    for axis in (0, 1):
        f = tl.vmap(tl.vmap(lambda x: lax.psum(x, "i") - x, axis_name="j"), axis, axis, axis_name="i")
        close(under(f)(xs), xs.sum(axis, keepdims=True) - xs)
    outer = tl.vmap(mapped(lambda x: lax.all_gather(x, "i", axis=1)))
    close(under(outer)(xs), np.repeat(np.swapaxes(xs, 1, 2)[:, None], 3, 1))
    crossed = mapped(tl.vmap(lambda x: lax.all_to_all(x, "i", 0, 0, tiled=True), 1, 1))
    square = rng.normal(size=(4, 4, 3))
    close(under(crossed)(square), np.swapaxes(square, 0, 1))


def test_a_program_belongs_to_the_axes_it_was_traced_under():
    @tl.jit
    def f(x):
        return lax.psum(x, "i") * lax.psum(1, "i")

    for n in (4, 3, 4):
        close(mapped(f)(X[:n]), np.stack([n * X[:n].sum(0)] * n))
    with pytest.raises(NameError, match="unbound axis name: 'i'"):
        f(X)
    g = tl.jit(lambda x: lax.axis_size("i") * x if isinstance(x, tl.Array) else x)
    close(tl.vmap(tl.vmap(g, axis_name="i"), axis_name="j")(X), 4 * X)
    close(tl.vmap(tl.vmap(g, axis_name="j"), axis_name="i")(X), 4 * X)


def test_names_are_hashable_things():
    name = object()
    close(tl.vmap(lambda x: lax.psum(x, name), axis_name=name)(X[:, 0]), np.stack([X[:, 0].sum(0)] * N))
    close(tl.vmap(lambda x: lax.psum(x, ()), axis_name="i")(X), X)
    close(tl.vmap(lambda x: 2 * x, axis_name="i", spmd_axis_name=("data", "model"))(X), 2 * X)


# ---- inside of programs --------------------------------------------------------------------------------------


@under
def test_in_scan(under):
    def f(x):
        def step(total, row):
            shared = lax.psum(row, "i") + lax.axis_index("i")
            return total + shared, shared * row

        return lax.scan(step, tnp.zeros(3), x)

    def reference(x):
        shared = x.sum(0)[None] + np.arange(N, dtype=np.float32)[:, None, None]
        return shared.sum(1), shared * x

    close(under(mapped(f))(X), reference(X))

    def loss(x):
        total, ys = f(x)
        return tnp.sum(total**2) + tnp.sum(tnp.sin(ys))

    def plain(x):
        """The same without named axes."""
        shared = tnp.sum(x, 0)[None] + tnp.arange(4.0)[:, None, None]
        return tnp.sum(tnp.sum(shared, 1) ** 2) + tnp.sum(tnp.sin(shared * x))

    close(under(tl.grad(lambda x: tnp.sum(mapped(loss)(x))))(X), tl.grad(plain)(X), 1e-4)
    shared_by_all = under(mapped(tl.grad(loss)))(X)
    close(shared_by_all, tl.grad(plain)(X), 1e-4)


@under
def test_in_cond_and_while(under):
    def f(x):
        most = lax.pmax(x, "i")
        y = lax.cond(x > 0, lambda x: lax.psum(x, "i"), lambda x: -lax.psum(x, "i"), x)
        z = lax.while_loop(lambda c: lax.pmax(c, "i") < 10 * most, lambda c: c + lax.pmean(tnp.abs(c), "i"), x)
        return y, z

    x = np.array([1.0, -2.0, 4.0])
    z = x
    while z.max() < 10 * x.max():
        z = z + np.abs(z).mean()
    close(under(mapped(f))(x), (np.where(x > 0, 3.0, -3.0), z))
    looped = mapped(f, control_flow="loop")  # one after the other they could not meet
    close(under(looped)(x), (np.where(x > 0, 3.0, -3.0), z))


@under
def test_in_functions_with_rules_of_their_own(under):
    """Identity forwards, a sum backwards, and the other way round: what shares weights among examples is made of."""

    @tl.custom_jvp
    def scaled(x):
        return x

    @scaled.defjvp
    def scaled_jvp(primals, tangents):
        return primals[0], lax.psum(tangents[0], "i")

    close(under(mapped(scaled))(X), X)
    close(under(mapped(tl.grad(lambda x: tnp.sum(scaled(x) ** 2))))(X), 2 * np.stack([X.sum(0)] * N))
    g = under(tl.grad(lambda x: tnp.sum(mapped(lambda x: scaled(x) ** 2)(x))))
    close(g(X), 2 * np.stack([X.sum(0)] * N))
    same = tl.grad(lambda w: tnp.sum(mapped(lambda x: scaled(w) * x)(X)))
    close(under(same)(X[0]), N * X.sum(0))
    close(under(tl.grad(lambda w: tnp.sum(mapped(tl.jit(lambda x: scaled(w) * x))(X))))(X[0]), N * X.sum(0))


@under
def test_in_a_backward_rule(under):
    @tl.custom_vjp
    def shared(x):
        return x

    shared.defvjp(lambda x: (x, None), lambda _, ct: (lax.psum(ct, "i"),))
    total = np.stack([X.sum(0)] * N)
    close(under(mapped(tl.grad(lambda x: tnp.sum(shared(x) ** 2))))(X), 2 * total)
    close(under(tl.grad(lambda x: tnp.sum(mapped(lambda x: shared(x) ** 2)(x))))(X), 2 * total)
    close(under(tl.grad(lambda w: tnp.sum(mapped(lambda x: shared(w) * x)(X))))(X[0]), N * X.sum(0))


@under
def test_in_checkpoint(under):
    f = tl.checkpoint(lambda x: tnp.sin(lax.psum(tnp.sin(x), "i")) * x)
    wanted = tl.grad(lambda x: tnp.sum(tnp.sin(tnp.sum(tnp.sin(x), 0)) * x))(X)
    close(under(tl.grad(lambda x: tnp.sum(mapped(f)(x))))(X), wanted)
    close(under(mapped(tl.grad(lambda x: tnp.sum(f(x)))))(X), wanted)


@under
def test_jacobians(under, rng: np.random.Generator):
    x = rng.normal(size=(3, 2))

    def f(x):
        return tnp.sin(x) * lax.psum(x**2, "i")

    whole = np.asarray(tl.jacfwd(lambda x: tnp.sin(x) * tnp.sum(x**2, 0))(x))
    own = np.stack([np.asarray(whole)[i, :, i] for i in range(3)])
    copies = np.stack([np.cos(x[i])[:, None] * np.eye(2) * (x**2).sum(0) for i in range(3)])
    every = copies + np.stack([2 * np.sin(x[i])[:, None] * np.eye(2) * x[i] for i in range(3)])
    close(own, every)  # the derivative by an example's own values
    for jac in (tl.jacfwd, lambda f: tl.jacfwd(f, chunk_size=1), lambda f: tl.jacfwd(f, chunk_size=2)):
        close(under(jac(mapped(f)))(x), whole)
    for jac in (tl.jacrev, lambda f: tl.jacrev(f, chunk_size=1), lambda f: tl.jacrev(f, chunk_size=4)):
        close(under(jac(mapped(f)))(x), whole)
    together = copies + np.stack([2 * np.sin(x[i])[:, None] * np.eye(2) * x.sum(0) for i in range(3)])
    for chunk in (None, 1):
        close(under(mapped(tl.jacfwd(f, chunk_size=chunk)))(x), together)  # all examples move in one direction
    loss = mapped(lambda x: tnp.sum(f(x)))
    close(
        under(tl.hessian(lambda x: tnp.sum(loss(x))))(x),
        tl.hessian(lambda x: tnp.sum(tnp.sin(x) * tnp.sum(x**2, 0)))(x),
    )


def test_hessian_inside_is_that_of_jax():
    jax = pytest.importorskip("jax")

    def f(lax, np_):
        return lambda x: np_.sum(np_.sin(x) * lax.psum(x**2, "i"))

    x = X[:, 0]
    wanted = jax.jit(jax.vmap(jax.hessian(f(jax.lax, jax.numpy)), axis_name="i"))(x)
    close(mapped(tl.hessian(f(lax, tnp)))(x), wanted, 1e-4)
    wanted = jax.jit(jax.vmap(jax.jacrev(jax.grad(f(jax.lax, jax.numpy))), axis_name="i"))(x)
    close(mapped(tl.jacrev(tl.grad(f(lax, tnp))))(x), wanted, 1e-4)


# ---- errors --------------------------------------------------------------------------------------------------


def test_error_unbound():
    def f(x):
        return lax.psum(x, "k")

    used = place(f, "lax.psum")
    end = f"\n  It was used at {used}.\n  Bind it around the call: tl.vmap(f, axis_name='k')."
    with raises(NameError, "psum: found an unbound axis name: 'k'. None is bound." + end):
        f(X)
    with raises(NameError, "psum: found an unbound axis name: 'k'. None is bound." + end):
        tl.jit(f)(X)
    bound = "psum: found an unbound axis name: 'k'. Bound are 'i' of size 4, 'j' of size 3."
    with raises(NameError, bound + end):
        mapped(tl.vmap(f, 1, axis_name="j"))(X)
    for call in (lambda: lax.axis_index("k"), lambda: lax.axis_size("k"), lambda: lax.pmean(X, ("i", "k"))):
        with pytest.raises(NameError, match="found an unbound axis name"):
            call()


def test_error_not_resolved():
    """A program that was traced under an axis is compiled where there is none."""
    traced = []

    def total(y):
        return lax.psum(2 * y, "i")

    def f(x):
        traced.append(tl.jit(total).trace(tl.ShapeDtypeStruct((3,), np.float32)))
        return x

    mapped(f)(X)
    said = (
        "psum: the axis 'i' is not bound where the program runs.\n"
        f"  It was reached from {place(total, 'lax.psum')}.\n"
        "  Compile it inside of the vmap that has this axis_name, or map the whole program."
    )
    with raises(NameError, said):
        traced[0].lower().as_text()


WRONG = [
    (lambda x: lax.psum("a", "i"), TypeError, "psum: 'a' of type str is not an array."),
    (lambda x: lax.psum(x, ("i", "i")), ValueError, "psum: ('i', 'i') names an axis twice."),
    (
        lambda x: lax.pmean(x, 0),
        TypeError,
        "pmean: takes names of axes, not 0; use tnp.mean for axes of the array itself.",
    ),
    (lambda x: lax.all_gather(x, 0), TypeError, "all_gather: takes names of axes, not 0."),
    (
        lambda x: lax.all_gather(x, "i", to="reduced"),
        NotImplementedError,
        "all_gather: to='reduced' is not supported, only to='varying'.",
    ),
    (lambda x: lax.all_gather(x, "i", axis=3), tl.errors.AxisError, "axis 3 is out of range for an array of 3 axes."),
    (
        lambda x: lax.psum_scatter(x, "i", scatter_dimension=1),
        ValueError,
        "psum_scatter: axis 1 of float32[4,3] has length 3, but there are 4 examples of 'i'.\n"
        "  Make them equal, or use tiled=True for parts of another length than 1.",
    ),
    (
        lambda x: lax.all_to_all(x, "i", 1, 0, tiled=True),
        ValueError,
        "all_to_all: axis 1 of float32[4,3] is not divisible by 4, the number of examples of 'i'.",
    ),
    (
        lambda x: lax.ppermute(x, "i", [(0, 1), (2, 1)]),
        ValueError,
        "ppermute: perm must have each sender and each receiver once, all of 0 to 3, not [(0, 1), (2, 1)].",
    ),
    (
        lambda x: lax.ppermute(x, "i", [(0, 4)]),
        ValueError,
        "ppermute: perm must have each sender and each receiver once, all of 0 to 3, not [(0, 4)].",
    ),
    (
        lambda x: lax.pshuffle(x, "i", [0, 1, 1, 3]),
        ValueError,
        "pshuffle: perm must be a permutation of 0 to 3, not [0, 1, 1, 3].",
    ),
    (
        lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1], [2]]),
        ValueError,
        "psum: axis_index_groups must have each position of the axis 'i' of size 4 once, in groups of one length, not "
        "[[0, 1], [2]].",
    ),
    (
        lambda x: lax.psum(x, ("i", 0), axis_index_groups=GROUPS),
        ValueError,
        "psum: axis_index_groups are positions along one named axis, not along ('i', 0).",
    ),
]


@pytest.mark.parametrize("call, kind, text", WRONG)
def test_errors(call, kind, text):
    with raises(kind, text):
        mapped(call)(X)


def test_error_groups_of_several_axes():
    with raises(ValueError, "pmax: axis_index_groups are positions along one named axis, not along ('i', 'j')."):
        over_two(lambda y: lax.pmax(y, ("i", "j"), axis_index_groups=[[0], [1]]))(Y)


@pytest.mark.parametrize("name", [0, ("i", "j"), ["i"], {}], ids=str)
def test_error_no_name(name):
    with raises(TypeError, f"vmap: axis_name must be a string or another name, not {name!r}."):
        tl.vmap(lambda x: x, axis_name=name)
    if not isinstance(name, tuple):
        with raises(TypeError, f"vmap: spmd_axis_name must be a string or another name, not {name!r}."):
            tl.vmap(lambda x: x, spmd_axis_name=name)


def test_programs_of_axes_that_no_vmap_names():
    def f(x):
        return lax.all_gather(lax.psum(x, ("i", "j")) * lax.axis_size("i"), "j"), lax.axis_index("i")

    given = np.ones(2, np.float32)
    program = tl.make_jaxpr(f, axis_env=[("i", 4), ("j", 3)])(given)
    assert [str(aval) for aval in program.out_avals] == ["float32[3,2]", "int32[]"]
    again = tl.make_jaxpr(f, axis_env=[("i", 5), ("j", 2)])(given)
    assert [str(aval) for aval in again.out_avals] == ["float32[2,2]", "int32[]"]
    with pytest.raises(NameError, match="psum: found an unbound axis name: 'i'"):
        tl.make_jaxpr(f)(given)
    for axis in ("i", ("i",), ("i", 4.0)):
        with raises(TypeError, f"make_jaxpr: axis_env asks for pairs of a name and a size, as ('i', 4), not {axis!r}."):
            tl.make_jaxpr(f, axis_env=[axis])
