"""Sums of products by the least work: what is factored, and what is left alone."""

from functools import partial

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.interpreters import limits
from tapeless.interpreters.simplifications.fusion import fuse, statements
from tapeless.interpreters.simplifications.fusion.statements import statement
from tapeless.interpreters.simplify import after_passes, simplify_program
from tapeless.interpreters.terms.compose import Composer
from tapeless.tracer.primitives.contraction import Precision
from tests.interpreters.simplifications.programs import A, B, X, after, largest, names

eye = partial(tnp.eye, dtype=np.float64)


def zeros(n):
    return tnp.zeros((n, n))


SMALL = {
    "outer, applied": (lambda x: tnp.outer(x, x) @ x, X),
    "outer, applied, summed": (lambda x: tnp.sum(tnp.outer(x, x) @ x), X),
    "outer, summed": (lambda x: tnp.sum(tnp.outer(x, x)), X),
    "sum of outers": (lambda x: tnp.sum(tnp.outer(x, x) + 2 * tnp.outer(x, tnp.sin(x)), 1), X),
    "difference": (lambda x: (tnp.outer(x, x) - tnp.outer(x, tnp.sin(x))) @ x, X),
    "negative": (lambda x: (-tnp.outer(x, x)) @ x, X),
    "diag, applied": (lambda x: tnp.diag(x) @ x, X),
    "diag, applied from the left": (lambda x: x @ tnp.diag(x), X),
    "diag, summed": (lambda x: tnp.sum(tnp.diag(x)), X),
    "diag, rows": (lambda x: tnp.sum(tnp.diag(x), 1), X),
    "eye, applied": (lambda x: tnp.eye(16) @ x, X),
    "eye, summed": (lambda x: tnp.sum(tnp.eye(16)) * x, X),
    "transposed": (lambda x: tnp.outer(x, x).T @ x, X),
    "scaled by rows": (lambda x: tnp.sum(tnp.outer(x, x) * x[:, None], 0), X),
    "off-diagonal": (lambda x: tnp.diag(x[1:], 1) @ x, X),
    "three diagonals": (lambda x: (tnp.diag(x[:-2], 2) - tnp.diag(x) + tnp.diag(x[1:], -1)) @ tnp.sin(x), X),
    "differences": (lambda x: (eye(16, k=1) - 2 * eye(16) + eye(16, k=-1)) @ tnp.sin(x), X),
    "of ones and zeros": (lambda x: tnp.eye(16, k=-3) @ x, X),
    "oblong": (lambda x: tnp.eye(16, 9, 3) @ x[:9] + x @ tnp.eye(16, 16, -20), X),
    "beyond": (lambda x: x * (1 + tnp.sum(tnp.diag(x[:4], 12) @ lax.pad(x[:3], 0.0, [(0, 13, 0)]))), X),
    "one place": (lambda x: tnp.where(tnp.arange(16)[:, None] == 3, x, 0) @ x, X),
    "padded": (lambda x: lax.pad(tnp.outer(x[:3], x), 0.0, [(5, 8, 0), (-1, 1, 0)]) @ x, X),
    "cut": (lambda x: lax.pad(tnp.outer(x, x), 0.0, [(-3, -2, 0), (0, 0, 0)]) @ x, X),
    "mostly zeros": (lambda x: lax.pad(x[:3], 0.0, [(5, 8, 0)]) @ tnp.outer(x, x), X),
    "symplectic": (lambda x: tnp.block([[zeros(8), eye(8)], [-eye(8), zeros(8)]]) @ x, X),
    "blocks on the diagonal": (
        lambda x: tnp.block([[tnp.outer(x[:8], x[8:]), zeros(8)], [zeros(8), tnp.diag(x[8:])]]) @ x,
        X,
    ),
    "joined": (lambda x: tnp.concatenate([tnp.outer(x[:8], x), tnp.eye(8, 16)]) @ x, X),
    "made wider": (lambda x: (tnp.eye(16, k=1) - 2 * tnp.eye(16)) @ tnp.sin(x), X),
    "kron of eye": (lambda x: tnp.kron(tnp.eye(4), tnp.outer(x[:4], x[:4])) @ x, X),
    "kron with eye": (lambda x: x @ tnp.kron(tnp.outer(x[:4], x[:4]), tnp.eye(4)), X),
    "kron of vectors": (lambda x: tnp.outer(tnp.kron(x[:4], x[4:8]), x) @ x, X),
    "blocks": (lambda x: tnp.sum(tnp.outer(x, x).reshape(2, 8, 16) * x[:8, None], 1).reshape(32)[:16], X),
}


@pytest.mark.parametrize("name", SMALL)
def test_nothing_square_is_computed(name):
    f, x = SMALL[name]
    assert largest(after(f, x)) <= 16
    assert largest(tl.unzip(f, x).linear) <= 16
    assert largest(tl.unzip(f, x).transposed) <= 16


def test_batches():
    """Under vmap there is one index more."""
    xs = np.stack([X, 2 * X, 3 * X])
    for name, (f, _) in SMALL.items():
        assert largest(after(tl.vmap(f), xs)) <= 48, name


@pytest.mark.parametrize(
    "f, expected",
    [
        (lambda a, b: tnp.trace(a @ b), ["dot_general"]),
        (lambda a, b: tnp.sum(a @ b), ["reduce_sum", "reduce_sum", "dot_general"]),
        (lambda a, b: a @ b @ X, ["dot_general", "dot_general"]),
        (lambda a, b: tnp.sum(tnp.eye(16) * a), ["reshape", "slice", "reduce_sum"]),
    ],
)
def test_matrices(f, expected):
    jaxpr = after(f, A, B)
    assert sorted(names(jaxpr)) == sorted(expected)
    assert all(
        v.aval.size <= 16 or str(eqn.primitive) in ("transpose", "reshape") for eqn in jaxpr.eqns for v in eqn.outvars
    )


def test_products_larger_than_factors_are_contracted():
    """As much work, and nothing with three axes."""
    for f in (
        lambda a, b: tnp.sum(a[:, :, None] * b[None], 1),
        lambda a, b: tnp.sum(a.T[:, None] * b[:, :, None], 0),
    ):
        assert set(names(after(f, A, B))) <= {"dot_general", "transpose"}
    narrow = lambda a, b: tnp.sum(a[:, :, None] * b[None], 1)  # noqa: E731
    assert "dot_general" not in names(after(narrow, A.astype("float16"), B.astype("float16")))


@pytest.mark.parametrize(
    "f",
    [
        lambda a, b: a @ b,
        lambda a, b: (a * b) @ X,
        lambda a, b: (tnp.sin(a) @ b) * tnp.sum(b),
        lambda a, b: tnp.sum(a * b, 1),
        lambda a, b: tnp.sum(a * tnp.broadcast_to(X, (16, 16)), 1),
        lambda a, b: (a @ b + X) @ b,
        lambda a, b: a @ (b.T + 1),
    ],
)
def test_what_is_left_alone(f):
    """Products that gain nothing, and sums whose addends do not lack an index each."""
    jaxpr = tl.make_jaxpr(f)(A, B).jaxpr
    assert names(after(f, A, B)) == names(jaxpr)


def test_bands():
    """A product for each diagonal: nothing is summed but what they make."""
    f, x = SMALL["three diagonals"]
    assert [name for name in names(after(f, x)) if name in ("mul", "add", "sub", "dot_general")].count("mul") == 3
    exact = after(lambda x: (tnp.diag(x) - tnp.diag(x[::-1])) @ x, X)  # which may cancel
    assert largest(exact) == 256


@pytest.mark.parametrize(
    "f", [lambda a, b: (a @ b) * eye(16), lambda a, b: tnp.where(tnp.eye(16, dtype=bool), a @ b, 0)]
)
def test_a_masked_product(f):
    """The diagonal of a product is no product; what is off the diagonal is 0, not -0."""
    jaxpr = simplify_program(tl.make_jaxpr(f)(A, B).jaxpr)
    (dot,) = [eqn for eqn in jaxpr.eqns if str(eqn.primitive) == "dot_general"]
    assert dot.outvars[0].aval.shape == (16,)
    np.testing.assert_allclose(tl.jit(f)(A, B), np.diag(np.diag(A @ B)), rtol=1e-12)


def test_values_that_are_read_twice():
    """It is decided for both readers: the product of two matrices is computed for neither, or for both."""
    both = after(lambda a, b: [(p @ X, X @ p) for p in [a @ b]], A, B)
    assert largest(both) == 16
    one = after(lambda a, b: [(p @ X, tnp.sin(p)) for p in [a @ b]], A, B)
    assert names(one).count("dot_general") == 2 and largest(one) == 256


def test_a_product_and_its_gradients():
    """A contraction is seen as one by all three: where it is read, it is not repeated along the axis it sums over."""

    def f(a, b):
        return tnp.sum(tnp.sum(a[:, None] * b.T[None], 2) ** 2)

    for g in (f, tl.grad(f, (0, 1)), tl.value_and_grad(f, (0, 1))):
        assert largest(after(g, A / 16, B)) == 256


def test_zeros_stay_where_they_are_written():
    """0 times infinity is nan; that a product is 0 is seen by who reads it."""
    f = tl.jit(lambda x: tnp.zeros((3, 3)) @ x + tnp.sum(tnp.outer(x, 0.0 * x), 1))
    assert np.isnan(f(np.array([1, np.inf, 2]))).all()


def test_what_was_rounded_is_not_made_wider():
    """A third of float32 is no third of float64; 2 in float16 is 2."""
    third = tl.jit(lambda x: (tnp.eye(3) / 3 + tnp.eye(3, k=1)) @ x)(np.ones(3))
    np.testing.assert_array_equal(third, np.float64([1, 1, 0]) + np.float64(np.float32(1) / 3))
    halves = after(lambda x: tnp.diag(x.astype(np.float32)).astype(float) @ x, X)
    assert largest(halves) == 16


def test_kron_of_matrices():
    """A product with each factor, not with their product."""
    jaxpr = after(lambda a, b: tnp.kron(a[:4, :4], b[:4, :4]) @ X, A, B)
    assert names(jaxpr).count("dot_general") == 2 and largest(jaxpr) <= 16


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32"])
def test_indices_that_wrap_around_are_not_followed(dtype):
    """Index 15 plus 250 is index 9 to a uint8."""
    shift = np.asarray(250 % 128, dtype)

    def f(x):
        rows, columns = (lax.broadcasted_iota(dtype, (16, 16), d) for d in (0, 1))
        return tnp.where(lax.eq(lax.add(rows, lax.add(shift, shift)), columns), x, 0.0) @ x

    after(f, X)


def test_precision():
    """A sum of products becomes a contraction only in full precision; a contraction keeps its own."""
    summed = after(lambda x, a: tnp.sum(tnp.outer(x, x) * a), X, A)
    (first, *_) = [eqn for eqn in summed.eqns if str(eqn.primitive) == "dot_general"]
    assert first.params["precision"] == (Precision.HIGHEST, Precision.HIGHEST)
    kept = after(lambda x: tnp.matmul(tnp.outer(x, x), x, precision="high"), X)
    (dot,) = [eqn for eqn in kept.eqns if str(eqn.primitive) == "dot_general"]
    assert dot.params["precision"] == (Precision.HIGH, Precision.HIGH)


def test_integers_and_narrow_floats():
    for dtype in (np.int32, np.float16, np.complex64):
        x = np.arange(4).astype(dtype)
        jaxpr = tl.make_jaxpr(lambda x: tnp.sum(tnp.outer(x, x) @ x))(x).jaxpr
        assert jaxpr.out_avals[0].dtype == dtype
        assert tl.jit(lambda x: tnp.sum(tnp.outer(x, x) @ x))(x) == 6 * 14


def test_nothing_is_reshaped():
    """Of arrays without elements no groups of axes have one size."""
    x, a = np.zeros(0), np.ones((3, 3))
    assert tl.jit(lambda x: tnp.sum(tnp.outer(x, tnp.ones(3)).ravel()))(x) == 0
    assert tl.grad(lambda x: tnp.sum(tnp.outer(x, tnp.ones(3)).ravel()))(x).shape == (0,)
    assert tl.jit(lambda a: tnp.kron(tnp.eye(0), a) @ tnp.ones(0))(a).shape == (0,)
    assert tl.jit(lambda a: tnp.sum(tnp.tile(a[:0], (2, 3)).reshape(-1)))(a) == 0


def test_counts_wrap_around_as_sums_do():
    """300 is no int8, and neither is -1 a uint8."""
    for dtype in (np.int8, np.uint8):
        x = np.arange(3).astype(dtype)

        def f(x):
            spread = lax.broadcast_in_dim(x, (3, 300), (0,))
            return lax.reduce_sum(lax.neg(lax.mul(spread, spread)), (1,))

        assert largest(after(f, x)) == 3
        np.testing.assert_array_equal(tl.jit(f)(x), (-300 * np.arange(3) ** 2).astype(dtype))


def test_partial_sums_do_not_overflow():
    """The sum of the b is no float16."""
    a, b = np.array([0, 1e-3], np.float16), np.full(2000, 100, np.float16)
    np.testing.assert_allclose(tl.jit(lambda a, b: tnp.sum(tnp.outer(a, b), 1))(a, b), [0, 200], rtol=5e-3)  # eps: 1e-3


def test_exact_differences_are_not_torn_apart():
    """Rounded to float32, 1000 (10⁶ + 1/4) - 1000 10⁶ would be off by some 10; of rounded products nothing is lost."""
    a, b = np.array([1e6, 1e6 + 0.25], np.float32), np.full(1000, 1e6, np.float32)
    f = tl.jit(lambda a, b: tnp.sum(a[:, None] - b[None, :], 1))
    np.testing.assert_array_equal(f(a, b), [0, 250])
    assert largest(after(lambda x: tnp.sum(tnp.outer(x, x) - tnp.outer(x, tnp.sin(x)), 1), X)) == 16


def test_what_rounding_lost_is_not_left_out():
    """(x + y) - x is what is left of y: nothing, if it is much less than x. Of integers it is y."""

    def f(x, y, z):
        repeated = tnp.broadcast_to(x, (16, 16))
        return (((repeated + tnp.outer(y, z)) - repeated) - tnp.outer(y, z)) @ z

    big, small = np.full(16, 1e17), np.full(16, 1.0)
    np.testing.assert_array_equal(tl.jit(f)(big, small, small), -16.0)
    assert largest(after(f, *[np.arange(16)] * 3)) == 16


@pytest.mark.parametrize(("dtype", "n"), [("bfloat16", 300), (np.float16, 2100), (np.int8, 300)])
def test_positions_that_a_dtype_does_not_tell_apart(dtype, n):
    """Neighbours are rounded to one number, or numbers wrap around: equality is no diagonal then."""

    def f(x):
        places = lax.iota(dtype, n)
        return tnp.where(places[:, None] == places, x, 0.0).sum(1)

    x = np.linspace(1, 2, n)
    np.testing.assert_allclose(tl.jit(f)(x), f(tnp.asarray(x)), rtol=1e-6)
    np.testing.assert_array_equal(tl.jit(lambda: lax.iota(dtype, n)[n - 4 :])(), lax.iota(dtype, n)[n - 4 :])


@pytest.mark.parametrize("steps", [4, 64])
def test_looks_at_what_is_contracted_alone(steps, monkeypatch):
    """Elementwise operations before and after a contraction are not composed, however many there are."""
    looked_at = []
    monkeypatch.setattr(fuse, "statement", lambda eqn, *given: looked_at.append(eqn) or statement(eqn, *given))

    def f(x):
        for _ in range(steps):
            x = x * tnp.sin(x) - 2 * x
        x = tnp.outer(x, x) @ x
        for _ in range(steps):
            x = x * tnp.sin(x) - 2 * x
        return x

    jaxpr = tl.make_jaxpr(f)(X).jaxpr
    found = fuse.fuse_contractions(jaxpr)
    assert len(jaxpr.eqns) > 8 * steps and largest(found) <= 16
    assert len(set(looked_at)) <= 8


def test_follows_what_only_moves():
    """The derivative has two contractions, x . dx and dx . x, that are seen to be one when slices are looked at."""

    def f(x):
        products = tnp.outer(x, x)
        return tnp.dot(products[:, 0], products[0, :])

    parts = tl.unzip(f, X)
    assert names(parts.linear).count("dot_general") == 1


@pytest.mark.parametrize("read", [lambda d, w: tnp.sum(d * w, 1), lambda d, w: (d * d) @ w[0]])
def test_a_difference_of_repeated_values_stays(read):
    """Subtracting is as much work however what is subtracted is read, so there is nothing to gain by seeing through."""

    def f(x, w):
        d = tnp.sin(x)[:, None] - tnp.cos(x)
        return read(d, w), d

    jaxpr = tl.make_jaxpr(f)(X, A).jaxpr
    assert fuse.fuse_contractions(jaxpr) is jaxpr


def test_looks_no_further_than_a_statement_has_terms(monkeypatch):
    """Of a sum of many products that is contracted, those are looked at that could be terms of the contraction."""
    looked_at = []
    monkeypatch.setattr(fuse, "statement", lambda eqn, *given: looked_at.append(eqn) or statement(eqn, *given))

    def f(x, n):
        total = tnp.outer(x, x)
        for k in range(n):
            total = total + tnp.outer(x, tnp.sin(k * x))
        return total @ x

    counts = []
    for n in (20, 40):
        looked_at.clear()
        fuse.fuse_contractions(tl.make_jaxpr(lambda x, n=n: f(x, n))(X).jaxpr)
        counts.append(len(set(looked_at)))
    assert counts[0] == counts[1] < 10 * limits.TERMS


def chained(n):
    def f(x):
        for _ in range(n):
            x = tnp.outer(x, tnp.sin(x)) @ x
        return x

    return f


def joined(n):
    return lambda x: tnp.outer(tnp.stack([tnp.sum(tnp.outer(x, x)[k % 3]) for k in range(n)]), x) @ x


@pytest.mark.parametrize(("f", "n", "most"), [(chained, 4, 8), (joined, 64, 24)])
def test_equal_structures_are_composed_once(f, n, most, monkeypatch):
    """A program twice as long composes no more; parts of a join of many are refused by counts."""
    composed, inlined = [], Composer.inlined
    monkeypatch.setattr(Composer, "inlined", lambda *given: composed.append(given) or inlined(*given))
    counts = []
    for length in (n, 2 * n):
        statements.composition.cache_clear()
        composed.clear()
        simplify_program(tl.make_jaxpr(f(length))(X).jaxpr)
        counts.append(len(composed))
    assert 0 < counts[1] <= counts[0] <= most


def test_a_fusion_that_writes_what_was_there_changes_nothing():
    """The statement of triangles within triangles is cheaper than they are, but is written as the same triangles."""
    square = tl.ShapeDtypeStruct((4, 4), "float32")
    for f in (lambda x: tnp.linalg.eigh(x)[1], lambda x: (x - tnp.tril(tnp.tril(x, -1)) / 2) @ x):
        linear = tl.make_jaxpr(lambda x, f=f: tl.jvp(f, (tnp.triu(x),), (tnp.triu(x),)))(square).jaxpr
        names = [done.name for done in after_passes(linear)]
        assert names.count("fusion.fuse") <= 1
