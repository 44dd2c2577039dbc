"""Of what is read in parts, only the parts are computed: by primitive, and where it is left alone."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.interpreters.simplify import simplified
from tests.interpreters.simplifications.programs import A, B, X, after, largest, names

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
    assert names(after(lambda a: tnp.diagonal(a @ B), A)) == ["transpose", "dot_general"]
    assert largest(after(lambda a: (a @ B)[:, 0], A)) == 16


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
    assert largest(simplified(jaxpr)) == 10**11


@pytest.mark.parametrize("dtype, start", [("bfloat16", 301), ("float16", 2049)])
def test_indices_that_are_rounded(dtype, start):
    """They are what they were: a start that is rounded, plus a rounded index, would be another number."""
    every = tl.jit(lambda: lax.iota(dtype, 4096))()
    part = tl.jit(lambda: lax.slice(lax.iota(dtype, 4096), [start], [4001], [3]))()
    np.testing.assert_array_equal(part, np.asarray(every)[start:4001:3])
