"""Reports about indices, updates in place, gathers and scatters."""

from dataclasses import replace

import numpy as np

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax, ops
from tests.public_reports.report import Refusal, Report, drawn, f64, i32


def changed(x, where, value, how="set"):
    """NumPy's update of a copy."""
    x = np.array(x)
    if how == "set":
        x[where] = value
    else:
        getattr(np, how).at(x, where, value)
    return x


def clipped(i, n):
    """A start as `dynamic_slice` takes it: from the end if negative, then moved into the array."""
    return np.clip(np.where(i < 0, i + n, i), 0, n)


def sliced_twice(x, i, j):
    start = np.clip(i, 0, 6)
    return x[start : start + 4][np.clip(j, 0, 3)]


def dropped_segments(x, ids):
    inside = (ids >= 0) & (ids < 3)
    return np.bincount(ids[inside], x[inside], 3)


def products(x, ids):
    return np.array([np.prod(x[ids == k]) for k in range(3)])


def nearest_below(table, x):
    """The number of elements below x, by bisection in a loop."""

    def halve(_, interval):
        low, high = interval
        middle = (low + high) // 2
        below = (low < high) & (table[middle] < x)
        return tnp.where(below, middle + 1, low), tnp.where(below, high, middle)

    return lax.fori_loop(0, 4, halve, (0 * x.astype("int32"), 0 * x.astype("int32") + 8))[0]


def unsorted(x):
    order = tnp.argsort(x)
    return x[order][tnp.argsort(order)]


IDS, SORTED = i32(0, 2, 2, -1, 3, 0), np.arange(8.0)
DIMENSIONS = lax.ScatterDimensionNumbers((), (0,), (0,))

EACH: list[Report | Refusal] = [
    Report(
        "jax-ml/jax#7461",
        "an update that reads its target shifted",
        lambda x: x.at[1:].set(1 + x[:-1]),
        (drawn(9),),
        lambda x: np.concatenate([x[:1], 1 + x[:-1]]),
    ),
    Report(
        "jax-ml/jax#10129",
        "a row becomes its own roll",
        lambda x: x.at[0].set(tnp.roll(x[0], 5)),
        (drawn(2, 12),),
        lambda x: np.stack([np.roll(x[0], 5), x[1]]),
    ),
    Report(
        "jax-ml/jax#1521",
        "take_along_axis from an axis of length 1",
        lambda x, i: tnp.take_along_axis(x[None] * np.arange(3.0), i, -1),
        (drawn(3), np.arange(3)[:, None].repeat(2, 0)),
        lambda x, i: (x * np.arange(3.0))[i],
    ),
    Report(
        "jax-ml/jax#34228",
        "one element at mapped places beyond the end",
        lambda x, i: lax.dynamic_index_in_dim(x, i, 0, keepdims=False),
        (drawn(4), i32(4)[0]),
        lambda x, i: x[np.clip(i, 0, 3)],
        others=(drawn(4, seed=1), i32(9)[0]),
    ),
    Report(
        "jax-ml/jax#11580",
        "a negative start out of range under a gradient",
        lambda x, i: lax.dynamic_slice(x, (i,), (3,)),
        (drawn(5), i32(-7)[0]),
        lambda x, i: x[max(0, min(2, i + 5 if i < 0 else i)) :][:3],
        others=(drawn(5), i32(-4)[0]),
    ),
    Report(
        "jax-ml/jax#3621",
        "a slice that starts behind the end",
        lambda x, i: lax.dynamic_slice(x, (i, i), (2, 1)),
        (drawn(4, 3), i32(5)[0]),
        lambda x, i: x[min(i, 2) :][:2, min(i, 2) :][:, :1],
        others=(drawn(4, 3), i32(1)[0]),
    ),
    Report(
        "jax-ml/jax#40849",
        "a slice of a slice, the first beyond the end",
        lambda x, i, j: lax.dynamic_slice(lax.dynamic_slice(x, (i,), (4,)), (j,), (1,))[0],
        (drawn(10), i32(9)[0], i32(0)[0]),
        sliced_twice,
        others=(drawn(10), i32(3)[0], i32(5)[0]),
    ),
    Report(
        "jax-ml/jax#8634",
        "sums of segments beyond the last",
        lambda x, i: ops.segment_sum(x, i, 3),
        (drawn(6), i32(0, 3, 4, 2, 9, 0)),
        dropped_segments,
    ),
    Report(
        "jax-ml/jax#7538",
        "sums of segments of negative number",
        lambda x, i: ops.segment_sum(x, i, 3),
        (drawn(6), IDS),
        dropped_segments,
    ),
    Report(
        "jax-ml/jax#9296",
        "products of segments, and their logarithm",
        lambda x, i: tnp.log(ops.segment_prod(tnp.exp(x), i, 3)),
        (drawn(5), i32(0, 1, 1, 2, 0)),
        lambda x, i: np.log(products(np.exp(x), i)),
    ),
    Report(
        "jax-ml/jax#40626",
        "maxima at clipped places",
        lambda t: t.at[i32(-9, 8)].max(tnp.stack([t[1] + 4, t[0] - 1]), mode="clip"),
        (f64(0.5, 1.0, 3.0),),
        lambda t: np.stack([max(t[0], t[1] + 4), t[1], max(t[2], t[0] - 1)]),
    ),
    Report(
        "tillahoffmann/jax-mps#240",
        "mapped updates, some of them dropped",
        lambda x, i, v: x.at[i].set(v, mode="drop"),
        (drawn(6, 2), i32(1, 3, 6), drawn(3, 2, seed=1)),
        lambda x, i, v: changed(x, i[i < 6], v[i < 6]),
        others=(drawn(6, 2), i32(8, 2, 5), drawn(3, 2, seed=2)),
    ),
    Report(
        "jax-ml/jax#16836",
        "an index of eight bits above 127",
        lambda x, i: (x[i], lax.dynamic_slice(x, (i,), (1,))),
        (np.arange(200.0), np.uint8(128)),
        lambda x, i: (x[128], x[128:129]),
        slopes=None,
    ),
    Report(
        "ml-explore/mlx#4321",
        "additions mapped over the last axis",
        lambda x, i: tl.vmap(lambda a: a.at[i].add(1 + a[0]), 2, 2)(x),
        (drawn(2, 3, 4), i32(1, 1)),
        lambda x, i: changed(x, i, 1 + x[0], "add"),
        mapped=False,
    ),
    Report(
        "jax-ml/jax#34096",
        "a permutation undone by its order, of 64-bit integers",
        unsorted,
        (np.array([3, 1, 2, 0, 5, 4, 9, 8, 7, 6]),),
        lambda x: x,
        slopes=None,
    ),
    Refusal(
        "pytorch/functorch#59",
        "columns by a mapped mask",
        lambda x, m: tl.vmap(lambda m: x[:, m].sum(-1))(m),
        (tnp.asarray(drawn(3, 7)), np.ones((2, 7), bool)),
        IndexError,
        ("mask", "where"),
    ),
    Report(
        "pytorch/functorch#381",
        "a column changed inside of a mapped gradient",
        lambda w, x: tl.vmap(tl.grad(lambda w, x: (((x @ w).at[0].add(3)) ** 2).sum()), (None, 0))(w, x),
        (drawn(2, 3), drawn(4, 2, seed=1)),
        lambda w, x: 2 * x[:, :, None] * (x @ w + [3, 0, 0])[:, None],
    ),
    Report(
        "pytorch/functorch#105",
        "every second row and column under a mapped gradient",
        lambda x: tl.vmap(tl.grad(lambda x: tnp.sin(x[::2, ::2]).sum() + (x[1:, 1:] ** 2).sum()))(x),
        (drawn(2, 3, 4),),
        lambda x: np.cos(x) * np.outer([1, 0, 1], [1, 0, 1, 0]) + 2 * x * np.outer([0, 1, 1], [0, 1, 1, 1]),
    ),
    Report(
        "jax-ml/jax#428",
        "a scatter by its dimension numbers",
        lambda x, i, v: lax.scatter_add(x, i, v, DIMENSIONS),
        (drawn(6), i32([3], [1], [3]), drawn(3, seed=1)),
        lambda x, i, v: changed(x, i[:, 0], v, "add"),
    ),
    Report(
        "jax-ml/jax#37382",
        "the first place where a difference is positive",
        lambda a: tnp.nonzero(a[:, 1] - a[:, 0] > 0, size=1, fill_value=-7)[0].astype("int32"),
        (i32([1, 2], [0, 0]),),
        lambda a: np.array([*np.flatnonzero(a[:, 1] > a[:, 0]), -7][:1], np.int32),
        others=(i32([2, 1], [0, 0]),),
        slopes=None,
    ),
    Report(
        "jax-ml/jax#17003",
        "bisection in a loop that reads a table",
        nearest_below,
        (SORTED, f64(2.5, 0.0, 7.0, 9.0)),
        lambda table, x: np.searchsorted(table, x).astype(np.int32),
        others=(SORTED, f64(-1.0, 3.0, 6.9, 7.1)),
        slopes=None,
    ),
    Report(
        "jax-ml/jax#25880",
        "reads that are clipped into the array",
        lambda x, i: x.at[i].get(mode="clip") * f64(1, 2, 3),
        (drawn(4), i32(9, -9, 2)),
        lambda x, i: x[np.clip(np.where(i < 0, i + 4, i), 0, 3)] * f64(1, 2, 3),
    ),
    Report(
        "EnzymeAD/Enzyme-JAX#1428",
        "what was written is read at the same places",
        lambda x, v: x.at[i32(4, 0, 2)].set(v, unique_indices=True)[i32(4, 0, 2)],
        (drawn(5), drawn(3, seed=1)),
        lambda x, v: v + 0 * x[:3],
    ),
    Report(
        "jax-ml/jax#1901",
        "a gradient through an update",
        lambda x: (x.at[1].set(x[0] * x[2]) ** 2).sum(),
        (drawn(4),),
        lambda x: np.sum(changed(x, 1, x[0] * x[2]) ** 2),
        hessian=True,
    ),
    Report(
        "jax-ml/jax#5401",
        "a history that is filled by products in a loop",
        lambda m: lax.fori_loop(1, 4, lambda i, h: h.at[..., i].set(tnp.tensordot(m, h[..., i - 1], 1)), powers(m)),
        (drawn(3, 3),),
        lambda m: np.stack([np.linalg.matrix_power(m, k) for k in (1, 2, 3, 4)], -1),
    ),
    Report(
        "EnzymeAD/Enzyme.jl#362",
        "a buffer that a loop reads and writes",
        lambda p: (
            lax.fori_loop(1, 6, lambda t, x: x.at[t].set(p[0] * x[t - 1] + p[1] * x[t // 2]), p[2] * SIX) ** 2
        ).sum(),
        (f64(0.5, -0.7, 1.3),),
        lambda p: np.sum(np.square(recurred(p))),
        hessian=True,
    ),
]
ROWS = [replace(row, alone=True) if isinstance(row, Report) else row for row in EACH]

SIX = np.array([1.0, 0, 0, 0, 0, 0])


def powers(m):
    return tnp.zeros((*m.shape, 4), m.dtype).at[..., 0].set(m)


def recurred(p):
    x = p[2] * SIX
    for t in range(1, 6):
        x[t] = p[0] * x[t - 1] + p[1] * x[t // 2]
    return x
