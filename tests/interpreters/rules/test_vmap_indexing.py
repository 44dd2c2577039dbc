"""vmap of what moves, reads and writes parts: against a loop over the examples, alone, nested, and of derivatives."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tapeless as tl
from tapeless.tracer.jaxpr import Jaxpr
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives import indexing as i
from tapeless.tracer.primitives import shape as s
from tapeless.tracer.primitives.reduction import reduce_sum
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import ShapedArray, aval_of
from tests.stepping import in_steps

pytestmark = pytest.mark.usefixtures("eager_by_steps")

N, SHAPE = 3, (5, 4)
ROWS = i.GatherDimensionNumbers((1,), (0,), (0,))
BLOCKS = i.GatherDimensionNumbers((0, 2), (), (1, 0))
BATCHED = i.GatherDimensionNumbers((1,), (), (1,), (0,), (0,))
MODES = [i.GatherScatterMode.CLIP, i.GatherScatterMode.FILL_OR_DROP]


def floats(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape)


def integers(*shape: int, below: int = 6) -> Any:
    """Positions, some of which are outside."""
    return np.random.default_rng(1).integers(-1, below, shape).astype(np.int32)


def looped(f: Callable[..., Any], args: Sequence[Any], axes: Sequence[int | None], size: int = N) -> Any:
    """f of one example after the other."""
    examples = [[x if d is None else np.take(x, k, d) for x, d in zip(args, axes)] for k in range(size)]
    return np.stack([np.asarray(f(*xs)) for xs in examples])


def check(f: Callable[..., Any], examples: Sequence[Any], size: int = N) -> None:
    """vmap of f is a loop, for all choices of what is mapped, over the first axis or another one."""
    alone = in_steps(f, *examples)
    for mapped in itertools.product((False, True), repeat=len(examples)):
        for last in (False, True) if any(mapped) else ():
            axes = [(np.ndim(x) if last else 0) if yes else None for x, yes in zip(examples, mapped)]
            args = [x if d is None else several(x, d, size) for x, d in zip(examples, axes)]
            found = tl.vmap(f, tuple(axes))(*args)
            np.testing.assert_allclose(np.asarray(found), looped(alone, args, axes, size), rtol=1e-12, atol=1e-12)


def several(x: Any, axis: int, size: int) -> Any:
    """`size` examples like x, along a new axis."""
    if x.dtype == bool:
        return np.stack([x ^ (k % 2 == 1) for k in range(size)], axis)
    return np.stack([(x + k) % 6 if x.dtype.kind == "i" else x * (1 + k) for k in range(size)], axis).astype(x.dtype)


def gathers(numbers: Any, sizes: Any, mode: Any) -> Callable[..., Any]:
    return lambda x, at: i.gather(x, at, numbers, sizes, mode=mode, fill_value=7.0)


def scatters(write: Callable[..., Any], numbers: Any, mode: Any) -> Callable[..., Any]:
    return lambda x, at, updates: write(x, at, updates, i.ScatterDimensionNumbers(*numbers), mode=mode)


LAYOUTS = {
    "rows": (ROWS, (1, 4), floats(*SHAPE), integers(3, 1), floats(3, 4, seed=2)),
    "blocks": (BLOCKS, (2, 3), floats(*SHAPE), integers(3, 2), floats(2, 3, 3, seed=2)),
    "batched": (BATCHED, (1, 2), floats(*SHAPE), integers(5, 1), floats(5, 2, seed=2)),
}
WRITES = [i.scatter_add, i.scatter_mul, i.scatter_min, i.scatter_max]
DISTINCT = np.array([[4], [0], [7]], np.int32)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_gather(layout: str, mode: Any):
    numbers, sizes, x, at, _ = LAYOUTS[layout]
    check(gathers(numbers, sizes, mode), (x, at))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("write", WRITES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_scatter(layout: str, write: Any, mode: Any):
    numbers, _, x, at, updates = LAYOUTS[layout]
    check(scatters(write, numbers, mode), (x, at, updates))


def test_scatter_of_distinct_rows():
    f = scatters(i.scatter, ROWS, MODES[1])
    x, updates = floats(*SHAPE), floats(3, 4, seed=2)
    check(lambda x, updates: f(x, DISTINCT, updates), (x, updates))
    at = np.stack([DISTINCT, DISTINCT[::-1] - 3, DISTINCT // 2])
    found = tl.vmap(f, (None, 0, None))(x, at, updates)
    np.testing.assert_array_equal(np.asarray(found), looped(f, (x, at, updates), (None, 0, None)))


@pytest.mark.parametrize("sizes", [(2, 3), (1, 4), (5, 1), SHAPE], ids=str)
def test_one_window(sizes: tuple[int, int]):
    at = np.asarray(-2, np.int32), np.asarray(3, np.int32)
    check(lambda x, a, b: i.dynamic_slice(x, (a, b), sizes), (floats(*SHAPE), *at))
    check(lambda x, y, a, b: i.dynamic_update_slice(x, y, (a, b)), (floats(*SHAPE), floats(*sizes, seed=3), *at))


def test_one_window_by_a_constant_and_an_index():
    check(lambda x, k: i.dynamic_slice(x, (k, 1), (2, 2)), (floats(*SHAPE), np.asarray(2, np.int32)))
    check(lambda x, k: i.dynamic_index_in_dim(x, k, 1), (floats(*SHAPE), np.asarray(2, np.int32)))
    check(lambda x, k: i.dynamic_slice(x, k, (1, 2)), (floats(*SHAPE), integers(2)))


@pytest.mark.parametrize("types", [*itertools.product(("int8", "uint32", "int64"), repeat=2)], ids=str)
def test_one_window_at_indices_of_several_types(types: tuple[str, str]):
    at = np.arange(N).astype(types[0]), np.arange(N).astype(types[1])
    f = lambda a, b: i.dynamic_slice(floats(*SHAPE), (a, b), (2, 2))  # noqa: E731
    np.testing.assert_array_equal(np.asarray(tl.vmap(f)(*at)), looped(f, at, (0, 0)))


def test_a_window_that_spans_an_axis_is_not_looked_up_there():
    def f(x: Any, k: Any) -> Any:
        return i.dynamic_slice(x, (k, k), (1, 4))

    (gather,) = equations(program(tl.vmap(f), floats(N, *SHAPE), np.arange(N)), "gather")
    assert gather.invars[1].aval.shape == (N, 1)


# ---- work ----------------------------------------------------------------------------------------------------


def program(f: Callable[..., Any], *args: Any) -> Jaxpr:
    jaxpr, _ = trace_to_jaxpr(lambda *xs: [f(*xs)], [aval_of(x) for x in args])
    return jaxpr


def equations(jaxpr: Jaxpr, name: str) -> list[Any]:
    return [eqn for eqn in jaxpr.eqns if eqn.primitive.name == name]


def largest(jaxpr: Jaxpr) -> int:
    return max(v.aval.size for eqn in jaxpr.eqns for v in eqn.outvars)


def test_reading_one_table_for_many_examples_does_not_copy_it():
    table, at = floats(1000, 4), np.arange(N, dtype=np.int32)
    read = tl.vmap(lambda x, k: i.dynamic_index_in_dim(x, k, keepdims=False), (None, 0))
    assert largest(program(read, table, at)) < table.size

    def loss(x: Any) -> Any:
        return reduce_sum(e.square(read(x, at)), (0, 1))

    gradient = program(tl.grad(loss), table)
    assert largest(gradient) == table.size
    (write,) = equations(gradient, "scatter_add")
    assert write.outvars[0].aval == ShapedArray(table.shape, np.dtype(np.float64))
    expected = np.zeros_like(table)
    expected[:N] = 2 * table[:N]
    np.testing.assert_allclose(np.asarray(tl.grad(loss)(table)), expected)


def test_promises_of_one_example_are_not_those_of_several_in_one_operand():
    """Both examples read the same rows."""
    x, at = floats(*SHAPE), np.stack([DISTINCT, DISTINCT])

    def loss(x: Any) -> Any:
        read = tl.vmap(lambda k: i.gather(x, k, ROWS, (1, 4), unique_indices=True, fill_value=0))
        return reduce_sum(read(at), range(3))

    assert [eqn.params["unique_indices"] for eqn in equations(program(loss, x), "gather")] == [False]
    assert np.asarray(tl.grad(loss)(x)).sum(1).tolist() == [8, 0, 0, 0, 8]


# ---- compositions --------------------------------------------------------------------------------------------


def window_sum(x: Any, k: Any) -> Any:
    return reduce_sum(e.sin(i.dynamic_slice(x, (k, 1), (2, 2))), (0, 1))


def rows_sum(x: Any, at: Any) -> Any:
    return reduce_sum(e.sin(i.gather(x, at, ROWS, (1, 4), fill_value=0)), (0, 1))


def written_sum(x: Any, at: Any) -> Any:
    updates = e.sin(s.slice(x, (0, 0), (3, 4)))
    written = i.scatter(x, at, updates, i.ScatterDimensionNumbers(*ROWS))
    return reduce_sum(e.mul(written, floats(*SHAPE, seed=5)), (0, 1))


def updated_sum(x: Any, k: Any) -> Any:
    updated = i.dynamic_update_slice(x, e.sin(s.slice(x, (0, 0), (2, 2))), (k, 1))
    return reduce_sum(e.mul(updated, floats(*SHAPE, seed=5)), (0, 1))


LOSSES: list[tuple[Any, Any]] = [
    (window_sum, np.asarray(2, np.int32)),
    (updated_sum, np.asarray(2, np.int32)),
    (rows_sum, integers(3, 1)),
    (written_sum, DISTINCT),
]
of_each_loss = pytest.mark.parametrize(("f", "at"), LOSSES, ids=lambda x: getattr(x, "__name__", ""))


@of_each_loss
def test_vmap_of_grad(f: Any, at: Any):
    check(tl.grad(f), (floats(*SHAPE), at))


@of_each_loss
def test_grad_of_vmap(f: Any, at: Any):
    x, many = floats(*SHAPE), several(at, 0, N)

    def total(x: Any) -> Any:
        return reduce_sum(tl.vmap(f, (None, 0))(x, many), (0,))

    expected = sum(np.asarray(tl.grad(f)(x, k)) for k in many)
    np.testing.assert_allclose(np.asarray(tl.grad(total)(x)), expected, rtol=1e-12, atol=1e-12)

    def total_of_own(xs: Any) -> Any:
        return reduce_sum(tl.vmap(f)(xs, many), (0,))

    xs = several(x, 0, N)
    np.testing.assert_allclose(np.asarray(tl.grad(total_of_own)(xs)), looped(tl.grad(f), (xs, many), (0, 0)))


@of_each_loss
@pytest.mark.parametrize(
    "axes", [((0, None), (None, 0)), ((None, 0), (0, None)), ((0, 0), (0, 0)), ((0, 0), (None, 0))]
)
def test_vmap_of_vmap(f: Any, at: Any, axes: Any):
    outer, inner = axes
    x, many = floats(*SHAPE), at
    for a, b in (inner, outer):
        x, many = x if a is None else several(x, 0, N), many if b is None else several(many, 0, N)
    found = tl.vmap(tl.vmap(f, inner), outer)(x, many)
    expected = looped(lambda *xs: looped(f, xs, inner), (x, many), outer)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12)


# ---- what moves, and what chooses ----------------------------------------------------------------------------


@pytest.mark.parametrize("config", [((1, 2, 0), (0, 0, 1)), ((-1, 1, 2), (2, -2, 0))], ids=str)
def test_pad_with_a_value_of_each_example(config: Any):
    check(lambda x, value: s.pad(x, value, config), (floats(*SHAPE), np.asarray(9.0)))
    check(lambda x, value: s.pad(x, value, config), (floats(*SHAPE) > 0, np.asarray(True)))

    def total(x: Any, value: Any) -> Any:
        padded = s.pad(x, value, config)
        return reduce_sum(e.mul(padded, floats(*aval_of(padded).shape, seed=4)), (0, 1))

    for argnum in (0, 1):
        check(tl.grad(total, argnum), (floats(*SHAPE), np.asarray(9.0)))


def test_moves():
    x = floats(2, 3, 4)
    check(lambda x: s.transpose(x, (2, 0, 1)), (x,))
    check(lambda x: s.reshape(x, (4, 6)), (x,))
    check(lambda x: s.rev(x, (0, 2)), (x,))
    check(lambda x: s.slice(x, (0, 1, 0), (2, 3, 4), (1, 1, 2)), (x,))
    check(lambda x: s.split(x, (1, 3), 2)[1], (x,))
    check(lambda x: s.broadcast_in_dim(x, (5, 2, 3, 4), (1, 2, 3)), (x,))
    check(lambda x: s.broadcast_in_dim(x, (4, 3), (1,)), (floats(1),))
    check(lambda x, y: s.concatenate([x, y, x], 1), (x, floats(2, 5, 4)))
    check(lambda x: e.add(x, s.broadcasted_iota(np.float64, (2, 3, 4), 1)), (x,))


@pytest.mark.parametrize("which_shape", [(), (4,)], ids=str)
@pytest.mark.parametrize("x_shape", [(), (4,)], ids=str)
@pytest.mark.parametrize("y_shape", [(), (4,)], ids=str)
def test_scalars_among_operands(which_shape: Any, x_shape: Any, y_shape: Any):
    x, y, z = floats(*x_shape), floats(*y_shape, seed=1), floats(*x_shape, seed=2)
    check(e.select_n, (floats(*which_shape) > 0, x, y))
    check(e.add, (x, y))
    if y_shape or not x_shape:
        check(e.clamp, (x, y, z))
