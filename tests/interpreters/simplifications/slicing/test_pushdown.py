"""Of what is read in parts, only the parts are computed: by primitive, and where it is left alone."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import index, lax
from tapeless.interpreters.simplify import simplify_program
from tests.interpreters.simplifications.programs import A, B, X, after, largest, names

pytestmark = pytest.mark.usefixtures("eager_by_steps")

# The function of a matrix that is read of, and the elements of the largest value that may be left of it.
PARTS = {
    "elementwise": (lambda a: tnp.sin(a) * a, 16),
    "scalar operand": (lambda a: tnp.exp(a) * tnp.sum(X), 16),
    "select": (lambda a: tnp.where(a > 1, a, -a), 16),
    "clamp": (lambda a: lax.clamp(0.1, a, 1.0), 16),
    "transpose": (lambda a: tnp.sin(a).T, 16),
    "reshape": (lambda a: tnp.sin(a).reshape(4, 4, 16).reshape(16, 16), 16),
    "broadcast": (lambda a: tnp.exp(tnp.broadcast_to(tnp.sin(a[:1]), (16, 16))), 16),
    "outer product": (lambda a: tnp.outer(tnp.sin(X), X), 16),
    "iota": (lambda a: lax.broadcasted_iota(np.float64, (16, 16), 1) * 2.0, 16),
    "concatenation": (lambda a: tnp.concatenate([tnp.sin(a), tnp.cos(a)])[9:25], 16),
    "padding": (lambda a: lax.pad(tnp.sin(a), 0.0, [(2, -2, 0), (-1, 1, 0)]), 16),
    "reversal": (lambda a: tnp.sin(a)[::-1, ::-1], 16),
    "product of matrices": (lambda a: tnp.sin(a @ B), 16),
    "reduction": (lambda a: tnp.sum(tnp.sin(a)[:, :, None] * X, 2), 256),
    "largest": (lambda a: tnp.max(tnp.sin(a)[:, :, None] * X, 2), 256),
}
COMPUTING = ("sin", "cos", "exp", "mul", "dot_general", "clamp")
READ = {
    "row": lambda a: a[3],
    "column": lambda a: a[:, 3],
    "diagonal": tnp.diagonal,
    "strided": lambda a: a[1::8, 2],
    "dynamic row": lambda a: lax.dynamic_index_in_dim(a, tnp.argmax(X) - 3, 0, False),
    "two": lambda a: a[1] * a[:, 2],
}


@pytest.mark.parametrize("read", READ)
@pytest.mark.parametrize("made", PARTS)
def test_parts(made, read):
    f, n = PARTS[made]
    jaxpr = after(lambda a: READ[read](f(a)), A)
    # What is not followed by its rule: windows at unknown places, and diagonals across what is joined or padded.
    opaque = made in ("concatenation", "padding") and read in ("dynamic row", "diagonal")
    opaque |= made == "reversal" and read == "dynamic row"
    computing = [eqn for eqn in jaxpr.eqns if str(eqn.primitive) in COMPUTING]
    assert opaque or all(v.aval.size <= n for eqn in computing for v in eqn.outvars)


def test_a_diagonal_of_a_product_is_a_batch():
    assert names(after(lambda a: tnp.diagonal(a @ B), A)) == ["dot_general"]
    assert largest(after(lambda a: (a @ B)[:, 0], A)) == 16


BOXES = {  # what reads 16 elements of a logarithm, and how many of them are computed at once
    "one slice": (lambda y: y[1:], 15),
    "two slices that overlap": (lambda y: y[2:] * y[1:-1], 15),
    "two slices apart": (lambda y: (y[2:5], y[9:12]), 3),
    "a slice and an element": (lambda y: (y[2:], y[3]), 14),
    "all together": (lambda y: y[1:] * y[:-1], 16),
    "every other one": (lambda y: y[3:14:2], 6),
    "whole rows": (lambda y: tnp.sum(y.reshape(4, 4)[1:]), 12),
    "parts of rows": (lambda y: tnp.sum(y.reshape(4, 4)[1:, :3]), 16),
    "behind moves": (lambda y: tnp.pad(tnp.stack([y, y])[:, ::-1], 1).T[1:-4], 13),
    "behind a maximum": (lambda y: tnp.max(y.reshape(8, 2), 1)[:-1], 14),
    "at an unknown place": (lambda y: lax.dynamic_slice(y, (tnp.argmax(y),), (12,)), 16),
    "a product of matrices": (lambda y: (y.reshape(4, 4) @ B[:4])[:3], 16),
}


@pytest.mark.parametrize("name", BOXES)
def test_the_box_of_what_is_read_is_computed(name):
    read, size = BOXES[name]
    jaxpr = after(lambda x: read(tnp.log(x)), X)
    assert {eqn.outvars[0].aval.size for eqn in jaxpr.eqns if str(eqn.primitive) == "log"} == {size}


def test_unread_elements_have_no_derivative():
    """Not even infinity times 0: of the first and the second derivative, of a function and of its jitted form."""
    x, a, b = tnp.array([0.0, 0.0, 2.0, 4.0]), np.log(2.0), np.log(4.0)
    read = (
        lambda x: (lambda y: tnp.sum(y[2:] * y[3]))(tnp.log(x)),
        [b / 2, a / 4 + b / 2],
        [-b / 4 + 1 / 8, 1 / 8 + 1 / 8 - (a + 2 * b) / 16],
    )
    chosen = (lambda x: tnp.where(tnp.arange(4) > 1, x * tnp.log(x), 0).sum(), [a + 1, b + 1], [0.5, 0.25])
    for f, first, second in (read, chosen):
        for g in (f, tl.jit(f)):
            for slope in (tl.grad(g), tl.jit(tl.grad(g))):
                np.testing.assert_allclose(slope(x), [0, 0, *first], rtol=1e-5)
            found = tl.grad(lambda x, g=g: tl.grad(g)(x).sum())(x)
            np.testing.assert_allclose(found, [0, 0, *second], rtol=1e-5)


def test_a_sum_of_a_box_is_read_whole_and_in_part():
    """A sum that reads a box of its operand, by one function as a whole, by another one in part."""

    def f(x):
        y = tnp.exp(x)
        z = index.build(16, lambda i: index.sum(3, lambda k: y[k] * x[i]))
        return tnp.cos(z), tnp.sin(z)[:2]

    x = tnp.asarray(X)
    for found, expected in zip(tl.jit(f)(x), f(x), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_array_literals_are_read_whole():
    """As keys are that a body closes over: a part of a slice of a literal is not the literal."""
    row = tl.random.split(tl.random.key(0), 3)
    found = tl.vmap(tl.jit(lambda x: x + tl.random.normal(row[1], (2,))[0] * tl.random.normal(row[2], (9,))[1]))(X)
    expected = X + float(tl.random.normal(row[1], (2,))[0]) * float(tl.random.normal(row[2], (9,))[1])
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_random_boxes():
    """Of random elementwise and moving operations, as all of them."""
    chance = np.random.default_rng(0)
    moves = [
        lambda y: tnp.sin(y) * y,
        lambda y: y[::-1] - X[: y.shape[0], None],
        lambda y: tnp.where(y > 0.3, y, y[0]),
        lambda y: tnp.concatenate([y, tnp.cos(y)])[3 : 3 + y.shape[0]],
        lambda y: tnp.pad(y, ((1, 2), (0, 1)), constant_values=0.5)[:-3, 1:],
        lambda y: tnp.exp(y.T).T,
        lambda y: y + tnp.max(y, 1, keepdims=True),
        lambda y: tnp.tanh(y.reshape(-1)).reshape(y.shape),
    ]
    for _ in range(40):
        chosen = [moves[k] for k in chance.integers(len(moves), size=4)]
        corners = np.add(np.sort(chance.integers(0, 7, (3, 2, 2)), axis=-1), (0, 1))

        def f(a, chosen=chosen, corners=corners):
            for move in chosen:
                a = move(a)
            return tuple([a[i:j, k:m] for (i, j), (k, m) in corners])

        after(f, A[:7, :7])


def test_off_diagonals():
    for k in (-3, 2):
        jaxpr = after(lambda x, k=k: tnp.diagonal(tnp.outer(x, x), k), X)
        assert largest(jaxpr) <= 16 and names(jaxpr).count("mul") == 1


@pytest.mark.parametrize(
    "f",
    [
        lambda a: (tnp.sin(a), tnp.sin(a)[0]),
        lambda a: tnp.sin(a)[1:],
        lambda a: [tnp.sin(a[0])[k] for k in range(5)],
    ],
    ids=["all of it is wanted too", "most of it is", "many parts"],
)
def test_what_is_left_alone(f):
    jaxpr = tl.make_jaxpr(lambda a: f(tnp.cos(a)))(A).jaxpr
    assert names(after(lambda a: f(tnp.cos(a)), A)).count("sin") == names(jaxpr).count("sin")


def test_a_window_stays_inside():
    """Where the start is beyond the end, the window is moved: so is that of the operands."""
    for start in (-5, 7, 100):
        after(lambda x, i: lax.dynamic_slice(tnp.sin(x) * x, (i,), (4,)), X, np.int32(start))


def test_reads_of_reads():
    assert largest(after(lambda a: tnp.sin(a)[2:14][3:5].T[4], A)) <= 32
    assert names(after(lambda x: tnp.outer(x, x)[:, 0][2:5] + 1, X)).count("mul") == 1


WRITTEN = {
    "of what is written": (lambda a: a.at[2:6, 3].set(tnp.sin(X[:4]))[2:6, 3], ["sin"]),
    "beside it": (lambda a: tnp.sin(a).at[2:6, 3].set(X[:4])[3], ["sin", "dynamic_update_slice"]),
    "in another row": (lambda a: tnp.sin(a).at[2:6, 3].set(X[:4])[6], ["sin"]),
    "on a diagonal that misses it": (lambda a: tnp.diagonal(tnp.sin(a).at[1, 2].set(5.0)), ["sin"]),
    "at clamped places": (lambda a: lax.dynamic_update_slice(tnp.sin(a), A[:2, :2], (99, 99))[13], ["sin"]),
    "one after another": (lambda a: a.at[0, 0].set(X[0]).at[1, 1].set(X[1]).at[2, 2].set(tnp.sin(X[2]))[1, 1], []),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_reads_of_what_is_written(name):
    """At known places, they are of what is written or of what was there; at others, or across, they are left."""
    f, kept = WRITTEN[name]
    jaxpr = after(f, A)
    moves = ("slice", "reshape", "broadcast_in_dim", "transpose", "convert_element_type")
    assert [name for name in names(jaxpr) if name not in moves] == kept
    assert (
        all(eqn.outvars[0].aval.size <= 16 for eqn in jaxpr.eqns if str(eqn.primitive) == "sin") or name == "beside it"
    )


def test_time_is_not_that_of_the_arrays():
    """A write of half of 10¹² elements, and a read of the other half."""
    x, u = tl.ShapeDtypeStruct((10**12,), "float32"), tl.ShapeDtypeStruct((10**11,), "float32")
    jaxpr = tl.make_jaxpr(lambda x, u: (2 * x).at[: 10**11].set(u)[10**11 : 2 * 10**11])(x, u).jaxpr
    assert largest(simplify_program(jaxpr)) == 10**11


@pytest.mark.parametrize("dtype, start", [("bfloat16", 301), ("float16", 2049)])
def test_indices_that_are_rounded(dtype, start):
    """They are what they were: a start that is rounded, plus a rounded index, would be another number."""
    every = tl.jit(lambda: lax.iota(dtype, 4096))()
    part = tl.jit(lambda: lax.slice(lax.iota(dtype, 4096), [start], [4001], [3]))()
    np.testing.assert_array_equal(part, np.asarray(every)[start:4001:3])


# ---- programs that are given parts ---------------------------------------------------------------------------


def branched(*reads):
    """A choice of reads of a matrix; the first element of a vector chooses."""
    return lambda x, a: lax.switch((x[0] > 1).astype(int) * (len(reads) - 1), reads, a)


@pytest.mark.parametrize("x", [X, X + 1], ids=["first", "last"])
@pytest.mark.parametrize("made", ["elementwise", "select", "transpose", "reshape", "iota", "reversal", "reduction"])
def test_branches_are_given_what_they_read(made, x):
    f, n = PARTS[made]
    for reads in (("row", "column"), ("two", "two"), ("diagonal", "strided")):
        one, other = [READ[read] for read in reads]
        pad = reads[1] == "strided"
        choice = branched(one, (lambda a, other=other: tnp.resize(other(a), 16)) if pad else other)
        jaxpr = after(lambda x, a, choice=choice: choice(x, f(a)), x, A)
        computing = [eqn for eqn in jaxpr.eqns if str(eqn.primitive) in COMPUTING]
        assert all(v.aval.size <= n for eqn in computing for v in eqn.outvars)


def given(f, *args):
    """Sizes of the operands of the conditional, or the checkpoint, that is left."""
    (eqn,) = [eqn for eqn in after(f, *args).eqns if str(eqn.primitive) in ("cond", "checkpoint")]
    return sorted(v.aval.size for v in eqn.invars if v.aval.shape)


@pytest.mark.parametrize("x", [X, X + 1], ids=["first", "last"])
def test_a_part_that_two_branches_read_is_one_operand(x):
    row, column, both = READ["row"], READ["column"], READ["two"]
    assert given(lambda x, a: branched(row, column)(x, tnp.sin(a)), x, A) == [16, 16]
    assert given(lambda x, a: branched(both, both)(x, tnp.sin(a)), x, A) == [16, 16]
    assert given(lambda x, a: branched(row, lambda a: tnp.ones(16, a.dtype))(x, tnp.sin(a)), x, A) == [16]
    assert given(lambda x, a: branched(row, row, column)(x, tnp.sin(a).T), x, A) == [16, 16]


@pytest.mark.parametrize(
    "f",
    [
        lambda x, a: branched(READ["row"], READ["column"])(x, a),
        lambda x, a: branched(READ["row"], READ["column"])(x, a.T.reshape(16, 16)),
        lambda x, a: (lambda b: branched(READ["row"], READ["column"])(x, b) + tnp.sum(b))(tnp.sin(a)),
        lambda x, a: branched(READ["row"], lambda a: tnp.sum(a, 0))(x, tnp.sin(a)),
        lambda x, a: branched(READ["row"], READ["dynamic row"])(x, tnp.sin(a)),
        lambda x, a: branched(lambda a: a[1:10], lambda a: a[2:11])(x, tnp.sin(a)),
        lambda x, a: branched(*[lambda a, k=k: a[k] for k in range(6)])(x, tnp.sin(a)),
        lambda x, a: branched(READ["row"], READ["column"])(x, lax.sort(a)),
    ],
    ids=["input", "view of one", "read elsewhere", "read whole", "unknown place", "most", "many", "sorted"],
)
def test_branches_that_are_given_all(f):
    """What is not computed, or is wanted whole, or of which no parts can be computed."""
    for x in (X, X + 1):
        assert not given(f, x, A) or max(given(f, x, A)) >= 144


def test_a_checkpoint_is_given_what_it_reads():
    read = tl.checkpoint(lambda a: tnp.sin(a[3]) * a[:, 3])
    assert given(lambda a: read(tnp.cos(a)), A) == [16, 16]
    assert given(lambda a: read(a), A) == [256]


@pytest.mark.parametrize("x", [X, X + 1], ids=["first", "last"])
def test_branches_in_branches(x):
    """The inner ones are given parts of what the outer ones are given, which are given these parts."""
    row, column = READ["row"], READ["column"]

    def inner(second, a):
        return lax.cond(second > 1.5, row, tl.checkpoint(column), a)

    def sizes(f):
        return given(lambda x, a: f(x, x[1], a), x, A)

    assert sizes(lambda x, y, a: branched(lambda a: inner(y, a), row)(x, tnp.sin(a))) == [16, 16]
    assert sizes(lambda x, y, a: branched(lambda a: inner(y, a.T), row)(x, tnp.sin(a))) == [16, 16]
    assert sizes(lambda x, y, a: branched(lambda a: inner(y, a), row)(x, a)) == [256]
    assert sizes(lambda x, y, a: branched(lambda a: inner(y, a) + a[:, 0], row)(x, tnp.sin(a))) == [256]


def test_derivatives_of_branches_that_read_parts():
    """Of the order of what they read, in both modes, where each branch is taken; sqrt has no derivative beside it."""
    b = A.copy()
    b[5] = 0

    def f(x, a):
        return tnp.sum(branched(READ["row"], READ["column"])(x, tnp.sqrt(a) * tnp.exp(-a)) ** 2)

    for x in (X, X + 1):
        for a in (A + 0.1, b + 0.1):
            gradient = tl.jit(tl.grad(f, 1))(x, a)
            t = np.cos(a)
            np.testing.assert_allclose(np.vdot(gradient, t), tl.jvp(lambda a: f(x, a), (a,), (t,))[1], rtol=1e-12)  # noqa: B023
            mapped = tl.jit(tl.vmap(tl.grad(f, 1)))(np.stack([x, X]), np.stack([a, A + 0.1]))[0]
            np.testing.assert_allclose(mapped, gradient, rtol=1e-12)
    assert tl.work(tl.unzip(lambda a: f(X, a), A).transposed) <= 24 * 16


def test_narrow_and_wrapping_numbers_in_branches():
    a = np.arange(256, dtype=np.int8).reshape(16, 16)
    half = A.astype(np.float16) * 30

    def f(x, a):
        return branched(READ["row"], READ["column"])(x, a * a + a)

    for x in (X, X + 1):
        for argument in (a, half, np.float32(A), A.astype(bool)):
            found = tl.jit(f)(x, argument)
            with tl.disable_jit():
                expected = f(x, argument)
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("spec", ["aab,cab->a", "abb,acd,ecf->a"])
def test_one_variable_at_two_axes_of_a_view(spec):
    """A Jacobian by columns is zero where a diagonal of padded axes is not read."""
    x = np.random.default_rng(4).normal(size=(3, 3, 3))
    steps = x + 1e-30j * np.eye(x.size).reshape(-1, *x.shape)
    expected = np.stack([np.einsum(spec, *[step] * (spec.count(",") + 1)).imag / 1e-30 for step in steps], -1)
    found = tl.jit(tl.jacfwd(lambda x: tnp.einsum(spec, *[x] * (spec.count(",") + 1))))(x)
    np.testing.assert_allclose(found, expected.reshape(found.shape), atol=1e-13)  # rounding
