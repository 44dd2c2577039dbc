"""vmap and vectorize as users call them: where axes go, what they nest with, what they say when something is wrong."""

from typing import Any, NamedTuple

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.extend import batching
from tests.close import small_programs as close
from tests.messages import place, raises

pytestmark = pytest.mark.usefixtures("eager_by_steps")

F64 = np.float64
X, Y = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4) / 7
under = pytest.mark.parametrize("under", [lambda f: f, tl.jit], ids=["eager", "jit"])


def loop(f, *xs):
    return np.stack([np.asarray(f(*each)) for each in zip(*xs)])


# ---- where axes go -------------------------------------------------------------------------------------------


@under
@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_in_axes_and_out_axes(under, axis):
    close(under(tl.vmap(lambda x: 2 * x, axis, axis))(X), 2 * X)
    close(under(tl.vmap(lambda x: 2 * x, axis))(X), 2 * np.moveaxis(X, axis, 0))
    close(under(tl.vmap(lambda x: 2 * x, out_axes=axis))(X), 2 * np.moveaxis(X, 0, axis))


@under
def test_in_axes_are_a_prefix_of_the_arguments(under):
    def f(p, x):
        return {"sum": p["w"] + p["b"][0], "x": (x, p["b"][1])}

    p = {"w": X, "b": (X.T, np.array(2.0))}
    out = under(tl.vmap(f, in_axes=({"w": 0, "b": (1, None)}, None), out_axes={"sum": 1, "x": 0}))(p, Y[0])
    close(out["sum"], 2 * X.T)
    close(out["x"][0], np.stack([Y[0]] * 2))
    close(out["x"][1], [2, 2])
    close(under(tl.vmap(f, in_axes=[{"w": 0, "b": (1, None)}, None]))(p, Y[0])["sum"], 2 * X)


@under
def test_a_result_that_is_the_same_for_all(under):
    mapped, same = under(tl.vmap(lambda x, y: (x + y, y), in_axes=(0, None), out_axes=(0, None)))(X, Y[0, :3])
    close(mapped, X + Y[0, :3])
    close(same, Y[0, :3])
    close(under(tl.vmap(lambda x: np.ones(2)))(X), np.ones((2, 2)))


@under
def test_keyword_arguments_are_mapped_over_their_first_axis(under):
    close(under(tl.vmap(lambda x, *, y: x @ y, in_axes=None))(X, y=Y.T), (X @ Y).T)
    close(under(tl.vmap(lambda *, y: 2 * y))(y=Y), 2 * Y)


@under
def test_axis_size(under):
    close(under(tl.vmap(lambda: tnp.ones(2), axis_size=3))(), np.ones((3, 2)))
    close(under(tl.vmap(lambda x: x, in_axes=None, axis_size=3))(X[0]), np.stack([X[0]] * 3))
    close(tl.vmap(lambda x: 2 * x, axis_size=2)(X), 2 * X)
    assert tl.vmap(tnp.sin)(np.ones((0, 3))).shape == (0, 3)


def test_examples_have_their_own_type():
    def f(x, y):
        assert x.shape == (3,) and x.dtype == F64 and x.ndim == 1
        assert y.shape == ()
        return x * y

    close(tl.vmap(f)(X, np.ones(2)), X)


# ---- what it is used with -------------------------------------------------------------------------------------


def f(x, y):
    return tnp.sum(tnp.sin(x) * y, keepdims=True) * x + tnp.cumsum(y)


@under
def test_nested(under, rng: np.random.Generator):
    xs, ys = rng.normal(size=(2, 4, 3)), rng.normal(size=(5, 3))
    out = under(tl.vmap(tl.vmap(tl.vmap(f, (None, 0)), (0, None)), (0, None)))(xs, ys)
    close(out, [[[np.sum(np.sin(x) * y) * x + np.cumsum(y) for y in ys] for x in row] for row in xs])
    crossed = under(tl.vmap(tl.vmap(f, (0, None), 1), (None, 0), 1))(xs[0], ys)
    close(crossed, np.moveaxis(np.asarray(out[0]), (0, 1), (2, 1)))


def test_nested_over_one_that_the_inner_does_not_see():
    """A value mapped outside only stays so inside."""
    out = tl.vmap(lambda x: tl.vmap(lambda y: x * y)(Y[:, 0]))(X[:, 1])
    close(out, X[:, 1][:, None] * Y[:, 0])


@under
@pytest.mark.parametrize(
    "matmul", [lambda x, y: x @ y, lambda x, y: tnp.einsum("ij,jk->ki", x, y), lambda x, y: tnp.tensordot(x, y, 1)]
)
def test_nested_contractions(under, matmul, rng: np.random.Generator):
    xs, ys = rng.normal(size=(2, 3, 4)), rng.normal(size=(5, 4, 2))
    out = under(tl.vmap(tl.vmap(matmul, (0, None)), (None, 0)))(xs, ys)
    close(out, [[np.asarray(matmul(x, y)) for x in xs] for y in ys])
    both = under(tl.vmap(tl.vmap(matmul), (0, None)))(np.stack([xs, 2 * xs]), ys[:2])
    close(both, [[np.asarray(matmul(x, y)) for x, y in zip(each, ys)] for each in (xs, 2 * xs)])


def test_a_contraction_with_one_mapped_operand_stays_one_contraction():
    """The other is not repeated: the mapped axis is free, and nothing moves."""
    text = str(tl.make_jaxpr(tl.vmap(lambda x: tl.lax.dot(x, Y)))(np.ones((5, 2, 3))))
    assert "dot_general" in text and "broadcast_in_dim" not in text and "transpose" not in text
    text = str(tl.make_jaxpr(tl.vmap(lambda x: tnp.sum(x, 0), 1))(np.ones((5, 2, 3))))
    assert "reduce_sum" in text and "transpose" not in text


@under
def test_with_grad(under, rng: np.random.Generator):
    def loss(x, y):
        return tnp.sum(f(x, y))

    ys = rng.normal(size=X.shape)
    each = loop(tl.grad(loss), X, ys)
    close(under(tl.vmap(tl.grad(loss)))(X, ys), each)
    close(under(tl.grad(lambda x: tnp.sum(tl.vmap(loss)(x, ys))))(X), each)
    close(under(tl.vmap(tl.grad(loss), (None, 0)))(X[0], ys), loop(lambda y: tl.grad(loss)(X[0], y), ys))
    twice = loop(tl.grad(lambda x, y: tnp.sum(tl.grad(loss)(x, y) ** 2)), X, ys)
    close(under(tl.vmap(tl.grad(lambda x, y: tnp.sum(tl.grad(loss)(x, y) ** 2))))(X, ys), twice)
    close(under(tl.grad(lambda x: tnp.sum(tl.vmap(tl.grad(loss))(x, ys) ** 2)))(X), twice)


@under
def test_of_a_convolution_by_its_kernel(under, rng: np.random.Generator):
    """Per-example gradients of a kernel: convolutions in groups."""

    def loss(kernel, image):
        return tnp.sum(tl.lax.conv(image[None], kernel, (1, 1), "SAME") ** 2)

    kernel, images = rng.normal(size=(3, 2, 2, 2)), rng.normal(size=(4, 2, 5, 5))
    each = np.stack([np.asarray(tl.grad(loss)(kernel, image)) for image in images])
    close(under(tl.vmap(tl.grad(loss), (None, 0)))(kernel, images), each, 1e-10)


@under
def test_with_jvp_vjp_linearize(under, rng: np.random.Generator):
    ts = rng.normal(size=X.shape)
    pushed = loop(lambda x, t: tl.jvp(lambda z: f(z, z), (x,), (t,))[1], X, ts)
    close(under(tl.vmap(lambda x, t: tl.jvp(lambda z: f(z, z), (x,), (t,))[1]))(X, ts), pushed)
    close(under(tl.vmap(lambda x, t: tl.linearize(lambda z: f(z, z), x)[1](t)))(X, ts), pushed)
    _, push = tl.linearize(tl.vmap(lambda z: f(z, z)), X)
    close(under(push)(ts), pushed)
    pulled = loop(lambda x, t: tl.vjp(lambda z: f(z, z), x)[1](t)[0], X, ts)
    close(under(tl.vmap(lambda x, t: tl.vjp(lambda z: f(z, z), x)[1](t)[0]))(X, ts), pulled)
    _, pull = tl.vjp(lambda z: f(z, z), X[0])
    close(under(tl.vmap(pull))(ts)[0], loop(lambda t: pull(t)[0], ts))


def test_of_jit():
    traced = []

    @tl.jit
    def g(x, y):
        traced.append(x)
        return f(x, y)

    expected = loop(f, X, X + 1)
    for _ in range(2):
        close(tl.vmap(g)(X, X + 1), expected)
        close(tl.jit(tl.vmap(g))(X, X + 1), expected)
        close(tl.vmap(g, (0, None))(X, X[0]), loop(lambda x: f(x, X[0]), X))
    assert len(traced) == 1


@under
def test_with_custom_jvp(under):
    @tl.custom_jvp
    def g(x, y):
        return tnp.sin(x) * y

    @g.defjvp
    def g_jvp(primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        return g(x, y), 10 * tnp.cos(x) * y * dx + tnp.sin(x) * dy

    close(under(tl.vmap(g))(X, X), np.sin(X) * X)
    close(under(tl.vmap(tl.grad(g), (0, None)))(X[0], 2.0), 20 * np.cos(X[0]))
    close(under(tl.grad(lambda x: tnp.sum(tl.vmap(g, (0, None))(x, Y[1, :3]))))(X), 10 * np.cos(X) * Y[1, :3])
    close(under(tl.vmap(tl.vmap(tl.grad(g))))(X, X), 10 * np.cos(X) * X)


@under
def test_random_keys(under):
    keys = tl.random.split(tl.random.key(0), 3)
    out = under(tl.vmap(lambda k: tl.random.normal(k, (2,))))(keys)
    close(out, [np.asarray(tl.random.normal(keys[i], (2,))) for i in range(3)], 1e-6)  # drawn in float32


# ---- against JAX ---------------------------------------------------------------------------------------------

PROGRAMS = {
    "softmax": lambda np_: lambda x, y: np_.exp(x - np_.max(x)) / np_.sum(np_.exp(x - np_.max(x))) * y[0],
    "order": lambda np_: lambda x, y: (np_.sort(x)[::-1], np_.argsort(y), np_.argmax(x), np_.cumsum(x * y)),
    "indices": lambda np_: lambda x, y: (np_.take(x, np_.argsort(y)), np_.where(x > 0, 1, y)[1:], np_.flip(x)),
    "where": lambda np_: lambda x, y: np_.where(x > y, x, -y).reshape(1, -1) * np_.ones((2, 1), np.float32),
    "matrices": lambda np_: lambda x, y: np_.outer(x, y) @ np_.stack([x, y]).T,
    "pieces": lambda np_: lambda x, y: (np_.concatenate([x, y[:2]]), np_.pad(x, 1), np_.roll(y, 1)),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("in_axes", [0, (0, None), (None, 1), (1, 0)], ids=str)
def test_against_jax(name, in_axes, rng: np.random.Generator):
    jax = pytest.importorskip("jax")
    x, y = rng.normal(size=(2, 3, 3)).astype(np.float32)
    x, y = (z[0] if axes is None else z for z, axes in zip((x, y), in_axes if in_axes else (0, 0)))
    wanted = jax.jit(jax.vmap(PROGRAMS[name](jax.numpy), in_axes))(x, y)
    found = tl.jit(tl.vmap(PROGRAMS[name](tnp), in_axes))(x, y)
    for a, b in zip(tl.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert a.dtype == b.dtype
        close(a, np.asarray(b), 1e-5)


# ---- errors --------------------------------------------------------------------------------------------------


def identity(x, w=None):
    return x


def test_error_sizes():
    text = (
        "vmap: mapped axes differ in size. x has 2 (float64[2,3], axis 0), "
        "w['w'] has 4 (float64[3,4], axis 1).\n  Give one of them in_axes=None, or make the sizes equal."
    )
    with raises(ValueError, text):
        tl.vmap(identity, in_axes=(0, 1))(X, {"w": Y})
    text = (
        "vmap: mapped axes differ in size. axis_size is 5, x has 2 (float64[2,3], axis 0).\n"
        "  Give one of them in_axes=None, or make the sizes equal."
    )
    with raises(ValueError, text):
        tl.vmap(identity, axis_size=5)(X)


def test_error_sizes_of_keyword_arguments_and_nested_ones():
    text = (
        "vmap: mapped axes differ in size. x['a'][0] has 2 (float64[2,3], axis 0), "
        "x['a'][1] has 4 (float64[3,4], axis 1), w['b'] has 3 (float64[3,4], axis 0).\n"
        "  Give one of them in_axes=None, or make the sizes equal."
    )
    with raises(ValueError, text):
        tl.vmap(identity, in_axes=({"a": (0, 1), "c": None},))({"a": (X, Y), "c": X}, w={"b": Y})


def test_error_of_a_number_beside_arrays():
    def f(x, scale, *, w=1.0):
        return x

    said = "vmap: in_axes names axis 0 of {}, which is float32[].\n  "
    for in_axes in (0, (0, 0), [0, 0]):
        with raises(ValueError, said.format("scale") + "For the same value in all examples, write in_axes=(0, None)."):
            tl.vmap(f, in_axes)(X, 1.0)
    with raises(
        ValueError,
        said.format("x['b']")
        + "For the same value in all examples, give None for it in in_axes, in a tree like the argument's.",
    ):
        tl.vmap(f)({"a": X, "b": 1.0}, X)
    with raises(
        ValueError,
        said.format("w")
        + "Arguments by name are mapped along axis 0. Give it by position, and None for it in in_axes.",
    ):
        tl.vmap(f)(X, X, w=1.0)


def test_error_nothing_is_mapped():
    text = "vmap: no argument is mapped (in_axes is None everywhere) and axis_size is not given."
    with raises(ValueError, text):
        tl.vmap(identity, in_axes=None)(X)


def test_error_axes():
    with raises(ValueError, "vmap: in_axes names axis 2 of x, which is float64[2,3].\n  Its last axis is 1."):
        tl.vmap(identity, in_axes=2)(X)
    with raises(ValueError, "vmap: in_axes names axis 0 of x, which is float32[].\n  There is no axis to map."):
        tl.vmap(identity)(1.0)
    with raises(TypeError, "vmap: in_axes must be ints or None, not 0.5."):
        tl.vmap(identity, in_axes=0.5)(X)
    text = f"vmap: in_axes has 2 entries, (0, 1), but {place(identity)} was called with 1 positional argument."
    with raises(ValueError, text):
        tl.vmap(identity, in_axes=(0, 1))(X)
    with raises(ValueError, f"{text}\n  Arguments by name are mapped along axis 0: give y by position."):
        tl.vmap(identity, in_axes=(0, 1))(X, y=X)
    with pytest.raises(ValueError, match=r"\[0\] is a dict with 'a' in in_axes, a dict with 'b' in the full tree\."):
        tl.vmap(identity, in_axes=({"a": 0},))({"b": X})


def pair_of(x):
    return x, {"a": x}


def test_error_out_axes():
    text = f"vmap: out_axes is None for a result of {place(identity)} that differs between examples: float64[2,3]."
    with raises(ValueError, text):
        tl.vmap(identity, out_axes=None)(X)
    text = (
        f"vmap: out_axes=3 names no axis of the result of {place(identity)}, which is float64[3] for one example.\n"
        "  The mapped axis can be -2 to 1."
    )
    with raises(ValueError, text):
        tl.vmap(identity, out_axes=3)(X)
    other = f"result[1]['a'] of {place(pair_of)}"
    with raises(ValueError, text.replace("=3", "=-3").replace("result of " + place(identity), other)):
        tl.vmap(pair_of, out_axes=(0, {"a": -3}))(X)
    with raises(TypeError, "vmap: out_axes must be ints or None, not 'x'."):
        tl.vmap(identity, out_axes="x")(X)


def test_error_in_axes_of_another_structure():
    with raises(
        TypeError,
        "vmap: in_axes must be an int, None, or a tuple or list with an entry for each positional argument, "
        "not {'a': 0}.",
    ):
        tl.vmap(identity, in_axes={"a": 0})({"a": X})
    message = """vmap: the full tree does not match in_axes.
  [0] is a dict with 'a' in in_axes, a leaf of type ndarray in the full tree.
  They must have the same nodes; only where in_axes has a leaf may the full tree have anything."""
    with raises(ValueError, message):
        tl.vmap(identity, in_axes=({"a": 0},))(np.asarray(X))


def test_error_not_an_array():
    for given, path in (("text", "x"), ({"w": "text"}, "x['w']")):
        text = f"vmap: argument {path} of {place(identity)} is 'text' of type str, which is not an array."
        with raises(TypeError, f"{text}\n  Give it in_axes=None."):
            tl.vmap(identity)(given)
    with raises(TypeError, "vmap: expected a function, not 3."):
        tl.vmap(3)


def test_error_bool_and_leak():
    with pytest.raises(tl.errors.TracerBoolConversionError):
        tl.vmap(lambda x: x if x > 0 else -x)(X[0])
    leaked = []
    tl.vmap(lambda x: leaked.append(x) or x)(X)
    with pytest.raises(tl.errors.UnexpectedTracerError):
        leaked[0] + 1


# ---- vectorize -----------------------------------------------------------------------------------------------


@under
def test_vectorize_broadcasts(under, rng: np.random.Generator):
    g = under(tnp.vectorize(lambda x, y: x * y + 1))
    for shapes in [((3,), (2, 3)), ((2, 1), (1, 3)), ((), (4,)), ((1, 3), (5, 1, 1)), ((0, 3), (3,)), ((1, 1), (1,))]:
        x, y = (rng.normal(size=shape) for shape in shapes)
        close(g(x, y), x * y + 1)


@under
@pytest.mark.parametrize(
    "shapes", [((2, 3), (3,)), ((5, 2, 3), (4, 1, 3)), ((1, 2, 3), (1, 3)), ((4, 1, 2, 3), (5, 3))]
)
def test_vectorize_signature(under, shapes, rng: np.random.Generator):
    x, y = (rng.normal(size=shape) for shape in shapes)

    def g(x, y):
        assert x.shape == (2, 3) and y.shape == (3,)
        return x @ y, tnp.sum(y)

    both = under(tnp.vectorize(g, signature="(n, m), (m) -> (n), ()"))(x, y)
    expected = np.vectorize(lambda x, y: (x @ y, np.sum(y)), signature="(n,m),(m)->(n),()")(x, y)
    for a, b in zip(both, expected, strict=True):
        close(a, b)


def test_vectorize_passes_on_what_is_excluded():
    def g(x, table, none, *, scale):
        assert table == {"a": 2.0} and none is None and scale.shape == (2,)
        return x * table["a"] * scale[1]

    close(tnp.vectorize(g, excluded={1})(X, {"a": 2.0}, None, scale=np.ones(2)), 2 * X)
    close(tnp.vectorize(lambda x, y: x + y.shape[0], excluded=(1,), signature="()->()")(X, Y), X + 3)


def test_vectorize_grad():
    close(tnp.vectorize(tl.grad(lambda x, y: x**2 * y))(X, X[0]), 2 * X * X[0])
    close(tl.grad(lambda x: tnp.sum(tnp.vectorize(tnp.dot, signature="(n),(n)->()")(x, X[0])))(X), [X[0]] * 2)


SIGNATURE = "(n,m),(m)->(n)"
WRONG = [
    (
        lambda: tnp.vectorize(tnp.dot, signature="(n,m->(n)"),
        ValueError,
        "vectorize: '(n,m->(n)' is not a signature such as \"(n,m),(m)->(n)\".",
    ),
    (
        lambda: tnp.vectorize(tnp.dot, excluded={-1}),
        ValueError,
        "vectorize: excluded counts arguments from the front, so -1 is none.",
    ),
    (
        lambda: tnp.vectorize(tnp.dot, excluded={1.5}),
        TypeError,
        "vectorize: excluded names arguments by position or name, not 1.5.",
    ),
    (
        lambda: tnp.vectorize(tnp.dot, signature=SIGNATURE)(X),
        TypeError,
        "vectorize: the signature '(n,m),(m)->(n)' has 2 arguments, but 1 were given.",
    ),
    (
        lambda: tnp.vectorize(tnp.dot, signature=SIGNATURE)(X, X[0, :2]),
        ValueError,
        "vectorize: axis 'm' of the signature '(n,m),(m)->(n)' has length 3, but 2 in the argument float64[2].",
    ),
    (
        lambda: tnp.vectorize(tnp.dot, signature=SIGNATURE)(X[0], X[0]),
        ValueError,
        "vectorize: float64[3] has too few axes for ('n', 'm') in the signature '(n,m),(m)->(n)'.",
    ),
    (
        lambda: tnp.vectorize(tnp.dot, signature="(3),(3)->()")(X[0, :2], X[0]),
        ValueError,
        "vectorize: axis '3' of the signature '(3),(3)->()' has length 3, but 2 in the argument float64[2].",
    ),
    (
        lambda: tnp.vectorize(tnp.dot, signature=SIGNATURE)(X, None),
        ValueError,
        "vectorize: argument 1 is None, but in the signature '(n,m),(m)->(n)' it has axes ('m',).",
    ),
    (
        lambda: tnp.vectorize(tnp.dot, signature="(n,m),(m)->()")(X, X[0]),
        ValueError,
        "vectorize: the result float64[2] does not have the axes () of '(n,m),(m)->()'.",
    ),
    (
        lambda: tnp.vectorize(lambda x: (1, 2), signature="(n)->(n)")(X[0]),
        TypeError,
        "vectorize: the signature '(n)->(n)' has 1 results, but the function returned (1, 2).",
    ),
    (
        lambda: tnp.vectorize(tnp.add)(X, Y),
        ValueError,
        "vectorize: leading axes [(2, 3), (3, 4)] of float64[2,3] and float64[3,4] cannot be broadcast together.",
    ),
]


@pytest.mark.parametrize("call, kind, text", WRONG)
def test_vectorize_errors(call, kind, text):
    with raises(kind, text):
        call()


class _Named:
    """A callable object with attributes of functions that are no text, as modules of neural networks may have."""

    __name__ = __annotations__ = 3

    def __call__(self, x):
        return x * x


@pytest.mark.parametrize("transform", [tl.vmap, tl.jit, tl.checkpoint, tl.named_call, tl.jacfwd, tl.value_and_grad])
def test_callable_objects_whose_name_is_no_text(transform):
    x = 2.0 if transform in (tl.jacfwd, tl.value_and_grad) else np.array([2.0])
    assert np.asarray(transform(_Named())(x)).ravel()[0] == 4


def test_classes_with_functions_of_their_own_for_mapping_are_refused():
    class Ragged(NamedTuple):
        x: Any

    batching.register_vmappable(Ragged, int, int, None, None)
    try:
        assert batching.is_vmappable(Ragged(1.0)) and not batching.is_vmappable((1.0,))
        functions = (
            "a Ragged, which is registered with functions of its own for mapping it, and these are not used here."
        )
        with raises(NotImplementedError, f"vmap: an argument holds {functions}\n  Map over its arrays."):
            tl.vmap(lambda r: r.x)(Ragged(tnp.ones(2)))
        with raises(NotImplementedError, f"vmap: the result holds {functions}\n  Map over its arrays."):
            tl.vmap(Ragged)(tnp.ones(2))
    finally:
        batching.unregister_vmappable(Ragged)
    assert tl.vmap(lambda r: r.x + 1)(Ragged(tnp.ones(2))).tolist() == [2, 2]


def test_trees_are_made_with_the_mapped_axis_where_it_is_wanted():
    """A class may check the shapes of its arrays, and results of `vectorize` may be pytrees that say their shape."""

    class Rows:
        def __init__(self, x):
            if getattr(x, "shape", (3,))[-1:] != (3,):
                raise ValueError(x.shape)
            self.x, self.shape = x, getattr(x, "shape", None)

    tl.tree_util.register_pytree_node(Rows, lambda r: ((r.x,), None), lambda _, xs: Rows(*xs))
    columns = np.arange(6.0).reshape(3, 2)
    close(tl.vmap(Rows, 1)(columns).x, columns.T)
    close(tnp.vectorize(Rows, signature="(n)->(n)")(columns.T).x, columns.T)
    with raises(ValueError, f"vectorize: the result {Rows} does not have the axes ('n', 'm') of '(n)->(n,m)'."):
        tnp.vectorize(Rows, signature="(n)->(n,m)")(columns.T)
