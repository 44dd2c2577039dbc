"""Parts of the results of every primitive with an index row are what eager evaluation gives; and which are computed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.ad_checkpoint import checkpoint_name
from tapeless.interpreters import index_rows, limits
from tapeless.interpreters.simplifications.slicing import pushdown
from tapeless.interpreters.simplify import simplify_program
from tapeless.tracer.check import check
from tapeless.tracer.core import Primitive
from tapeless.tracer.primitives.contraction import dot_general_p
from tests.interpreters.simplifications.programs import A, B, X, after, largest
from tests.samples import SAMPLES
from tests.samples.sample import Sample, numpys, ours
from tests.stepping import by_steps

D = 9 * np.eye(4)
Read = Callable[[Any], Any]


def reads(shape: tuple[int, ...]) -> list[Read]:
    """Parts of an array along all of its axes, and along several at once."""
    n, k = shape[0], min(shape[:2])
    along = [
        lambda y: (y[0], y[..., -1]),
        lambda y: lax.rev(y, (y.ndim - 1,))[..., ::2],
        lambda y: lax.dynamic_slice_in_dim(y, tnp.argmax(X[:3]), max(n // 2, 1), 0),
        lambda y: tnp.concatenate([y, y])[n - 1 : n + 1],
    ]
    across = [
        lambda y: y[:k, :k].reshape((k * k, *shape[2:]))[:: k + 1],
        lambda y: y.reshape((1, n, 1, *shape[1:]))[0, n // 2 :, 0, :1],
    ]
    return along + across if len(shape) > 1 else along


def samples() -> list[Sample]:
    """For every primitive the sample whose result has the most axes."""
    found: dict[Primitive, tuple[int, Sample]] = {}
    for sample in SAMPLES:
        if sample.primitive in index_rows.rows and sample.axis is None:
            rank = max(np.ndim(x) for x in sample.args) if sample.args else 2
            found[sample.primitive] = max(found.get(sample.primitive, (-1, sample)), (rank, sample), key=lambda p: p[0])
    return [sample for _, sample in found.values()]


@pytest.mark.parametrize(
    "number, sample", list(enumerate(samples())), ids=lambda x: str(x) if isinstance(x, Sample) else ""
)
def test_parts_of_every_primitive(number: int, sample: Sample, monkeypatch: pytest.MonkeyPatch):
    """One kind of parts for each; the next primitive has another."""
    monkeypatch.setattr(limits, "SAVED", 0)
    args = [ours(x) for x in sample.args]
    (y, *_) = tl.eval_shape(lambda *args: sample.primitive.bind(*args, **sample.params), *args)
    every = reads(y.shape) if y.shape else []
    for read in every[number % len(every) :][:1] if every else ():
        closed = tl.make_jaxpr(lambda *args, read=read: read(sample.primitive.bind(*args, **sample.params)[0]))(*args)
        given = [*closed.consts, *args]
        pairs = zip(*[by_steps(jaxpr, given) for jaxpr in (simplify_program(closed.jaxpr), closed.jaxpr)], strict=True)
        for found, expected in pairs:
            assert found.dtype == expected.dtype
            one, other = numpys(found), numpys(expected)
            if one.dtype.kind in "fc":
                np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)  # of float32, in another order
            else:
                np.testing.assert_array_equal(one, other)


# ---- what is computed ----------------------------------------------------------------------------------------

# Of what treats an axis index by index only the indices that are read are computed: the function, the part that is
# read of its result, and the elements of the largest value that is left.
BATCHES: dict[str, tuple[Read, Read, int]] = {
    "sort": (lambda a: tnp.sort(tnp.sin(a), 1), lambda y: y[3], 16),
    "cumulative sum": (lambda a: tnp.cumsum(tnp.sin(a), 0), lambda y: y[:, ::8], 32),
    "largest position": (lambda a: tnp.argmax(tnp.sin(a), 0), lambda y: y[3:5], 32),
    "transform": (lambda a: tnp.fft.fft(tnp.sin(a)), lambda y: y[2], 16),
    "triangular solve": (lambda a: lax.linalg.triangular_solve(tnp.sin(a), a, left_side=True), lambda y: y[:, 1], 256),
    "factorization": (lambda a: lax.linalg.cholesky(tnp.exp(D * a[:, :4, None])), lambda y: y[1], 64),
    "gather": (lambda a: tnp.sin(a)[tnp.argsort(X)][:, None], lambda y: y[3, 0], 256),
    "a window": (lambda a: tnp.sort(tnp.sin(a), 1), lambda y: lax.dynamic_slice_in_dim(y, tnp.argmax(X), 2), 32),
    "bits": (lambda a: (a > 1) & ~(tnp.sin(a) > 0.5), lambda y: y[:, 2], 16),
    "digits": (lambda a: tnp.sin(a).reshape(4, 4, 16), lambda y: y[1, 1:3, ::2], 16),
    "joined diagonals": (lambda a: tnp.concatenate([tnp.sin(a[:8]), tnp.cos(a[8:])]), tnp.diagonal, 64),
    "interior padding": (lambda a: lax.pad(tnp.sin(a), 1.0, [(1, 0, 2), (0, 0, 0)]), lambda y: y[:8], 128),
    "written in a row": (lambda a: tnp.sin(a).at[2:6, 3].set(X[:4]), lambda y: y[3], 16),
}


@pytest.mark.parametrize("name", BATCHES)
def test_batches(name: str):
    f, read, most = BATCHES[name]
    assert largest(after(lambda a: read(f(a)), A)) <= most


@pytest.mark.parametrize(
    "f",
    [
        lambda a: tnp.sort(tnp.sin(a), 0)[3],
        lambda a: tnp.cumprod(tnp.sin(a), 1)[:, 3],
        lambda a: tnp.diagonal(tnp.sort(tnp.sin(a), 0)),
        lambda a: lax.optimization_barrier((tnp.sin(a),))[0][3],
        lambda a: checkpoint_name(tnp.sin(a), "named")[3],
    ],
    ids=["sorted along it", "summed along it", "diagonal", "barrier", "name"],
)
def test_axes_that_are_read_whole(f: Read):
    assert largest(after(f, A)) == 256


# Functions of a matrix, of one without columns and of one without rows; of which parts are read.
EDGES: dict[str, Callable[..., Any]] = {
    "product of nothing": lambda a, z, e: (tnp.sin(z) @ tnp.sin(z).T)[2],
    "sum of nothing": lambda a, z, e: tnp.sum(tnp.cos(z), 1)[2:4],
    "truth of nothing": lambda a, z, e: tnp.any(z > 0, 1)[2],
    "nothing joined": lambda a, z, e: tnp.concatenate([tnp.sin(a), tnp.sin(e), a * 2])[5:7],
    "nothing after one": lambda a, z, e: tnp.concatenate([tnp.sin(a[:1]), e])[:, 1],
    "nothing before one": lambda a, z, e: tnp.concatenate([e, tnp.sin(a[:1])])[:, 1],
    "nothing padded": lambda a, z, e: lax.pad(e, 1.5, [(3, 3, 0), (0, 0, 0)])[2],
    "nothing padded to one": lambda a, z, e: lax.pad(e, 1.5, [(1, 0, 0), (0, 0, 0)])[:, 1],
    "all cut off": lambda a, z, e: lax.pad(tnp.sin(a), 1.5, [(-6, 1, 0), (0, 2, 1)])[:, 2],
    "one of many": lambda a, z, e: lax.pad(tnp.sin(a), 1.5, [(-3, -2, 0), (0, 2, 1)])[:, 2],
    "nothing written": lambda a, z, e: lax.dynamic_update_slice(tnp.sin(a), e, (1, 0))[2],
    "nothing written to one": lambda a, z, e: lax.dynamic_update_slice(tnp.sin(a[:1]), e, (1, 0))[:, 1],
    "written at the end": lambda a, z, e: lax.dynamic_update_slice(tnp.sin(a), a[:2], (9, tnp.argmin(X)))[4:, 1],
    "nothing added": lambda a, z, e: tnp.sin(a).at[np.zeros(0, int)].add(e)[:, 1],
    "added twice": lambda a, z, e: tnp.sin(a).at[np.array([1, 1, 9])].add(np.ones((3, 2)), mode="drop")[:, 1],
    "filled": lambda a, z, e: tnp.sin(a).at[np.array([1, 7, 3])].get(mode="fill", fill_value=2.0)[:, 1],
    "nothing read": lambda a, z, e: tnp.sin(a)[2:2],
    "nothing sorted": lambda a, z, e: tnp.sort(z, 1)[2],
    "ones": lambda a, z, e: tnp.sum(tnp.sin(a[:1])[None] * np.ones((3, 1, 2)), (0, 1))[1],
    "a number at the end": lambda a, z, e: tnp.linspace(0.31, 0.87, 36) * a[1, 1],
    "turned integers": lambda a, z, e: (lax.iota(np.uint8, 6)[::-1] * 100)[1::2],
    "wrapping": lambda a, z, e: (lax.rev(lax.broadcasted_iota(np.int8, (3, 300), 1), (1,)) + a.astype(np.int8)[:3, :1])[
        1
    ],
}


@pytest.mark.parametrize("name", EDGES)
def test_edges(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "SAVED", 0)
    after(EDGES[name], np.arange(12.0).reshape(6, 2), np.zeros((6, 0)), np.zeros((0, 2)))


@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: lax.dynamic_update_slice(x, tnp.sin(y[:1]), (1, 0))[3],
        lambda x, y: lax.dynamic_update_slice(tnp.sin(y), x[:1], (1, 0))[1],
        lambda x, y: lax.concatenate([x, tnp.sin(y)], 0)[2:3],
        lambda x, y: lax.pad(x, np.float32(2.0), [(1, 1, 0), (0, 0, 0)])[2],
    ],
    ids=["beside an update", "update", "joined", "padded"],
)
def test_parts_of_weak_types(f: Callable[..., Any]):
    """A result that is weak only if all operands are; its part is of one of them."""
    y = np.ones((4, 6), np.float32)
    jaxpr = tl.make_jaxpr(lambda y: tnp.exp(f(tnp.sin(lax.broadcast(2.0, (4, 6)) * 3.0), y)))(y).jaxpr
    new = check(simplify_program(jaxpr))
    assert [v.aval for v in new.outvars] == [v.aval for v in jaxpr.outvars]


def test_a_program_without_parts_has_nothing_composed(monkeypatch: pytest.MonkeyPatch):
    def f(x: Any) -> Any:
        return tnp.sum(tnp.tanh(tnp.tanh(x @ B).T.reshape(4, 64) * 2.0) ** 2) + tnp.sum(x[:8]) + tnp.sum(x[8:])

    def composed(*args: Any) -> Any:
        raise AssertionError("a view is composed with a row")

    monkeypatch.setattr(pushdown, "restrict", composed)
    simplify_program(tl.make_jaxpr(lambda x: f(tnp.sin(x)))(A).jaxpr)
    tl.grad(f)(A)
    with pytest.raises(AssertionError, match="composed"):
        simplify_program(tl.make_jaxpr(lambda x: tnp.sin(x)[0])(A).jaxpr)


def test_time_of_parts_is_not_that_of_arrays():
    x = tl.ShapeDtypeStruct((10**6, 10**6), "float32")
    jaxpr = tl.make_jaxpr(lambda x: tnp.cumsum(tnp.concatenate([x, x]), 1)[10**6 + 3])(x).jaxpr
    assert largest(simplify_program(jaxpr)) == 10**6


@pytest.mark.parametrize(
    "dtype, accumulated",
    [
        ("bfloat16", "float32"),
        ("float16", None),
        ("int8", "int32"),
        ("float32", "float64"),
        ("float8_e4m3fn", "float32"),
    ],
)
def test_parts_of_contractions_accumulate_as_the_whole(dtype: str, accumulated: str | None):
    """In the same dtype and precision, of operands that are not converted before."""

    def f(x: Any, y: Any) -> Any:
        z = lax.dot_general(x, y, (((1,), (0,)), ((), ())), "highest", accumulated)
        return tnp.diagonal(z), z[1], z[::3, :1]

    x, y = A.astype(dtype), B.astype(dtype)
    new = simplify_program(tl.make_jaxpr(f)(x, y).jaxpr)
    dots = [eqn for eqn in new.eqns if eqn.primitive is dot_general_p]
    assert len(dots) == 3
    for eqn in dots:
        assert eqn.outvars[0].aval.dtype == np.dtype(accumulated or dtype)
        assert {v.aval.dtype for v in eqn.invars} == {np.dtype(dtype)}
        assert eqn.params["precision"] == (lax.Precision.HIGHEST,) * 2
