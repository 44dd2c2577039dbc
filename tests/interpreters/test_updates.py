"""Reading parts of an array many times costs its gradient one dense array, not one for every read."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.interpreters.linearize import linearize
from tapeless.tracer.check import check
from tapeless.tracer.jaxpr import Equation, Jaxpr
from tapeless.tracer.primitives.elementwise import add, mul
from tapeless.tracer.primitives.indexing import (
    GatherDimensionNumbers,
    ScatterDimensionNumbers,
    dynamic_index_in_dim,
    dynamic_slice,
    dynamic_update_slice,
    gather,
    index_take,
    scatter,
)
from tapeless.tracer.primitives.reduction import reduce_sum
from tapeless.tracer.primitives.shape import concatenate, reshape, slice, split
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import ShapedArray

N, M = 60, 3
X, COEFFICIENTS = np.random.default_rng(0).normal(size=(2, N, M))
WHOLE = ShapedArray((N, M), np.dtype(np.float64))
ROWS = GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))

Read = tuple[Callable[[Any], Any], Callable[[Any], Any]]  # what reads a part of x, and what NumPy reads of x


def sliced(k: int) -> Read:
    return lambda x: slice(x, (k, 0), (k + 2, 2)), lambda x: x[k : k + 2, :2]


def strided(k: int) -> Read:
    return lambda x: slice(x, (k, 0), (k + 5, 3), (2, 2)), lambda x: x[k : k + 5 : 2, ::2]


def at(k: int) -> Read:
    return lambda x: dynamic_index_in_dim(x, np.int32(k)), lambda x: x[k : k + 1]


def windowed(k: int) -> Read:
    """Beyond the end, where the window is moved inside."""
    start = min(k + N - 20, N - 4)
    return lambda x: dynamic_slice(x, (k + N - 20, 1), (4, 2)), lambda x: x[start : start + 4, 1:3]


def gathered(k: int) -> Read:
    """With a repeated row, and one outside that reads as zeros."""
    indices = np.array([[k], [k + 1], [k], [N + k]], np.int32)
    return (
        lambda x: gather(x, indices, ROWS, (1, M), fill_value=0),
        lambda x: np.concatenate([x[[k, k + 1, k]], np.zeros((1, M))]),
    )


def taken(k: int) -> Read:
    rows, columns = np.array([k, k + 3, k], np.int32), np.array([0, 2, 0], np.int32)
    return lambda x: index_take(x, (rows, columns), (0, 1)), lambda x: x[rows, columns]


def parted(k: int) -> Read:
    return lambda x: split(x, (k, 2, N - k - 2))[1], lambda x: x[k : k + 2]


READS = {f.__name__: f for f in (sliced, strided, at, windowed, gathered, taken, parted)}


def gradient_program(f: Callable[[Any], Any], aval: ShapedArray) -> Jaxpr:
    """The gradient of a scalar function as a program, without a device."""

    def pulled(x: Any) -> Sequence[Any]:
        _, program = linearize(lambda x: (f(x),), (x,))
        return program.pull_back([np.asarray(1.0)])

    return check(trace_to_jaxpr(pulled, [aval])[0])


def dense_equations(jaxpr: Jaxpr, name: str) -> list[Equation]:
    return [e for e in jaxpr.eqns if e.primitive.name == name and e.outvars[0].aval.shape == (N, M)]


def loss_of(reads: Sequence[Read], weights: Sequence[Any]) -> Callable[[Any], Any]:
    def loss(x: Any) -> Any:
        total: Any = np.asarray(0.0)
        for (read, _), w in zip(reads, weights, strict=True):
            part = read(x)
            total = add(total, reduce_sum(mul(w, part), range(w.ndim)))
        return total

    return loss


def one_hot_gradient(reads: Sequence[Read], weights: Sequence[Any]) -> Any:
    """Every read as a dense matrix: what it reads of each of the unit arrays."""
    basis = np.eye(N * M).reshape(N * M, N, M)
    columns = [[np.sum(w * reference(e)) for e in basis] for (_, reference), w in zip(reads, weights, strict=True)]
    return np.sum(columns, axis=0).reshape(N, M)


def weights_for(reads: Sequence[Read]) -> list[Any]:
    rng = np.random.default_rng(1)
    return [rng.normal(size=reference(X).shape) for _, reference in reads]


@pytest.mark.parametrize("kind", [*READS, "all"])
def test_many_reads_build_one_dense_array(kind: str) -> None:
    makers = list(READS.values()) if kind == "all" else [READS[kind]] * 10
    reads = [make(1 + k) for k, make in enumerate(makers)]
    jaxpr = gradient_program(loss_of(reads, weights_for(reads)), WHOLE)
    built = dense_equations(jaxpr, "broadcast_in_dim") + dense_equations(jaxpr, "pad")
    updates = dense_equations(jaxpr, "dynamic_update_slice") + dense_equations(jaxpr, "scatter_add")
    assert len(built) == 1
    assert dense_equations(jaxpr, "add") == []
    assert len(updates) >= len(reads) - 1


@pytest.mark.parametrize("kind", [*READS, "all"])
def test_gradient_is_that_of_one_hot_products(kind: str) -> None:
    makers = list(READS.values()) if kind == "all" else [READS[kind]] * 4
    reads = [make(1 + 3 * k) for k, make in enumerate(makers)]
    weights = weights_for(reads)
    gradient = tl.grad(loss_of(reads, weights))(X)
    np.testing.assert_allclose(np.asarray(gradient), one_hot_gradient(reads, weights), rtol=1e-12, atol=1e-12)


def test_a_dense_cotangent_takes_the_updates() -> None:
    """What is also used as a whole has a dense cotangent anyway: reads build none."""
    read, _ = at(3)

    def loss(x: Any) -> Any:
        return add(reduce_sum(mul(x, x), (0, 1)), reduce_sum(read(x), (0, 1)))

    jaxpr = gradient_program(loss, WHOLE)
    assert len(dense_equations(jaxpr, "dynamic_update_slice")) == 1
    expected = 2 * X
    expected[3] += 1
    np.testing.assert_allclose(np.asarray(tl.grad(loss)(X)), expected, rtol=1e-12)


def test_split_with_every_part_used_is_a_concatenation() -> None:
    def loss(x: Any) -> Any:
        a, b = split(x, (20, N - 20))
        return add(reduce_sum(mul(a, a), (0, 1)), reduce_sum(b, (0, 1)))

    jaxpr = gradient_program(loss, WHOLE)
    assert len(dense_equations(jaxpr, "concatenate")) == 1
    assert dense_equations(jaxpr, "pad") == dense_equations(jaxpr, "add") == []
    np.testing.assert_allclose(np.asarray(tl.grad(loss)(X)), np.concatenate([2 * X[:20], np.ones((N - 20, M))]))


def columns(start: int, stop: int) -> Read:
    return lambda x: slice(x, (0, start), (N, stop)), lambda x: x[:, start:stop]


def rows(start: int, stop: int) -> Read:
    return lambda x: slice(x, (start, 0), (stop, M)), lambda x: x[start:stop]


@pytest.mark.parametrize(
    ("reads", "joined"),
    [
        ([rows(20, N), rows(0, 5), rows(5, 20)], True),
        ([columns(2, 3), columns(0, 2)], True),
        ([rows(0, 20), rows(20, 40)], False),  # nothing reads the last rows
        ([rows(0, 20), rows(30, N)], False),
        ([rows(0, 31), rows(30, N)], False),
        ([rows(0, 30), rows(0, 30), rows(30, N)], False),
        ([rows(0, N), rows(0, N)], False),
        ([rows(0, 30), columns(0, M)], False),
        ([rows(0, 30), rows(30, N), at(4)], False),
    ],
)
def test_reads_side_by_side_are_concatenated(reads: list[Read], joined: bool) -> None:
    weights = weights_for(reads)
    jaxpr = gradient_program(loss_of(reads, weights), WHOLE)
    assert len(dense_equations(jaxpr, "concatenate")) == joined
    assert joined != any(dense_equations(jaxpr, name) for name in ("pad", "dynamic_update_slice", "add"))
    np.testing.assert_allclose(tl.grad(loss_of(reads, weights))(X), one_hot_gradient(reads, weights), rtol=1e-12)


def test_empty_windows_add_nothing() -> None:
    reads = [columns(0, 0), rows(4, 7), rows(5, 5), rows(N, N)]
    weights = weights_for(reads)
    jaxpr = gradient_program(loss_of(reads, weights), WHOLE)
    assert {e.primitive.name for e in jaxpr.eqns if e.outvars[0].aval.shape == (N, M)} == {"pad"}
    np.testing.assert_array_equal(tl.grad(loss_of(reads, weights))(X), one_hot_gradient(reads, weights))


def added_at(start: Any, size: tuple[int, int], known: bool) -> Callable[[Any, Any], Any]:
    """Add to a window in place as transposition does, at known starts, or at the same starts as operands."""

    def add_part(x: Any, part: Any) -> Any:
        if known:
            return dynamic_update_slice(x, add(part, slice(x, (start, 1), (start + size[0], 1 + size[1]))), (start, 1))
        starts = (tnp.asarray(start), tnp.asarray(1))
        window = dynamic_slice(x, starts, size, allow_negative_indices=False)
        return dynamic_update_slice(x, add(part, window), starts, allow_negative_indices=False)

    return add_part


@pytest.mark.parametrize("known", [True, False])
def test_additions_to_windows_are_transposed_to_reads(known: bool) -> None:
    """By its three equations an addition would clear the window of the cotangent, and add it again (`X` is moved)."""
    add_parts = [added_at(start, (4, 2), known) for start in (0, 2, 2, 30)]

    def loss(x: Any, last: int) -> Any:
        y = mul(x, COEFFICIENTS)
        for k, add_part in enumerate([*add_parts, added_at(last, (4, 2), known)]):
            y = add_part(y, mul(float(k + 1), y[k : k + 4, :2]))
        return reduce_sum(mul(y, COEFFICIENTS), (0, 1))

    last = N - 4 if known else N - 2  # beyond the end, a dynamic window is moved inside
    jaxpr = gradient_program(lambda x: loss(x, last), WHOLE)
    pads = dense_equations(jaxpr, "pad") + dense_equations(jaxpr, "add")
    assert len(dense_equations(jaxpr, "dynamic_update_slice")) == len(add_parts) + 1  # those of the reads y[k : k + 4]
    assert pads == []
    e = np.random.default_rng(3).normal(size=(N, M))
    slope = float(loss(X + e, last)) - float(loss(X, last))  # the loss is linear
    np.testing.assert_allclose(np.sum(np.asarray(tl.grad(loss)(X, last)) * e), slope, rtol=1e-9)


def test_writes_of_parts_have_no_dense_cotangent_but_that_of_the_whole() -> None:
    """Cotangents of a chain of writes: each clears its window in the one running cotangent."""
    window = np.full((1, M), 0.5)

    def loss(x: Any) -> Any:
        for k in range(8):
            x = dynamic_update_slice(x, mul(dynamic_index_in_dim(x, k), window), (k + 1, 0))
        return reduce_sum(mul(x, COEFFICIENTS), (0, 1))

    jaxpr = gradient_program(loss, WHOLE)
    assert dense_equations(jaxpr, "pad") == dense_equations(jaxpr, "add") == []
    assert len(dense_equations(jaxpr, "broadcast_in_dim")) == 1  # the cotangent of the sum
    expected = COEFFICIENTS.copy()
    expected[:9] = 0
    expected[0] = sum(COEFFICIENTS[k] / 2**k for k in range(9))
    np.testing.assert_allclose(np.asarray(tl.grad(loss)(X)), expected, rtol=1e-12)


def test_second_derivatives_go_through_updates() -> None:
    def loss(x: Any) -> Any:
        cube = mul(x, mul(x, x))
        parts = [reshape(dynamic_index_in_dim(cube, k), (M,)) for k in (2, 5, 2)]
        return reduce_sum(concatenate(parts, 0), (0,))

    hessian_diagonal = tl.jvp(tl.grad(loss), (X,), (np.ones_like(X),))[1]
    expected = np.zeros_like(X)
    expected[2], expected[5] = 12 * X[2], 6 * X[5]
    np.testing.assert_allclose(np.asarray(hessian_diagonal), expected, rtol=1e-12)


def test_scattered_updates_that_are_overwritten_have_no_gradient() -> None:
    """Of several writes to one place the gradient goes to the one that is there in the end."""
    indices, numbers = np.array([[0], [1], [0], [7]]), ScatterDimensionNumbers((), (0,), (0,))

    def loss(updates: Any) -> Any:
        written = scatter(np.zeros(3), indices, updates, numbers)
        return reduce_sum(mul(written, np.array([10.0, 20.0, 30.0])), (0,))

    gradient = np.asarray(tl.grad(loss)(np.array([1.0, 2.0, 3.0, 4.0]))).tolist()
    assert sorted([gradient[0], gradient[2]]) == [0.0, 10.0]
    assert [gradient[1], gradient[3]] == [20.0, 0.0]  # the last one is outside
