"""Rows of collectives: over the examples along the first axis of their operands."""

import numpy as np

from tapeless.tracer.primitives import collective as c
from tests.samples.sample import Sample, f32

N = 4
I = ("i", N)  # noqa: E741  # the name and size of the axis
OVER, PAIRS = ("i",), ((0, 3), (2, 1))
MANY = ("float64", "float16", "bfloat16", "complex64", "int32")


def in_groups(function):
    """Of all examples, or of those of each group, by a function of the examples of one."""

    def reference(x, *, groups=None, axis_names, **params):
        out = [None] * N
        for group in groups or (tuple(range(N)),):
            for i, y in zip(group, function(x[list(group)], **params)):
                out[i] = y
        return np.stack(out)

    return reference


def _same(y, n):
    return [y] * n


total = in_groups(lambda x: _same(np.sum(x, 0, dtype=x.dtype), len(x)))
greatest = in_groups(lambda x: _same(np.max(x, 0), len(x)))
least = in_groups(lambda x: _same(np.min(x, 0), len(x)))
gathered = in_groups(lambda x, axis, axis_size: _same(np.concatenate(list(x), axis), len(x)))
scattered = in_groups(lambda x, axis, axis_size: np.split(np.sum(x, 0, dtype=x.dtype), axis_size, axis))


@in_groups
def exchanged(x, *, axis_size, split_axis, concat_axis):
    parts = [np.split(each, axis_size, split_axis) for each in x]
    return [np.concatenate([part[i] for part in parts], concat_axis) for i in range(axis_size)]


def permuted(x, *, perm, **_):
    y = np.zeros_like(x)
    for start, to in perm:
        y[to] = x[start]
    return y


def _rows(primitive, reference, x, linear=(0,), bad=(), **params):
    """All examples together, and two by two."""
    whole = {"axis_names": OVER, **params, "groups": None}
    some = whole | {"groups": ((0, 3), (2, 1))} | ({"axis_size": 2} if "axis_size" in params else {})
    yield Sample(primitive, (x,), reference, whole, linear, None, MANY, bad, axis=I)
    yield Sample(primitive, (x,), reference, some, linear, label="groups", axis=I)


X, FLAGS, EIGHT = f32(N, 2, 3), f32(N, 3) > 0, f32(N, 2, 8)
_REAL = tuple(name for name in MANY if name != "complex64")
_WITHOUT = {"axis_names": OVER, "groups": None}

ROWS = [
    *_rows(c.psum_p, total, X, bad=(((FLAGS,), _WITHOUT, TypeError),)),
    Sample(c.pmax_p, (X,), greatest, _WITHOUT, dtypes=_REAL, axis=I),
    Sample(c.pmax_p, (X,), greatest, {**_WITHOUT, "groups": ((0, 3), (2, 1))}, label="groups", axis=I),
    Sample(c.pmin_p, (X,), least, _WITHOUT, dtypes=_REAL, axis=I),
    Sample(c.pmin_p, (FLAGS,), least, _WITHOUT, label="bool", axis=I),
    *_rows(c.all_gather_p, gathered, X, axis=1, axis_size=N),
    *_rows(
        c.psum_scatter_p,
        scattered,
        EIGHT,
        axis=1,
        axis_size=N,
        bad=(
            ((f32(N, 3),), {**_WITHOUT, "axis": 0, "axis_size": N}, ValueError),
            ((FLAGS,), {**_WITHOUT, "axis": 0, "axis_size": N}, TypeError),
        ),
    ),
    *_rows(
        c.all_to_all_p,
        exchanged,
        EIGHT,
        split_axis=1,
        concat_axis=0,
        axis_size=N,
        bad=(((f32(N, 3),), {**_WITHOUT, "split_axis": 0, "concat_axis": 0, "axis_size": N}, ValueError),),
    ),
    Sample(
        c.all_to_all_p,
        (EIGHT,),
        exchanged,
        {**_WITHOUT, "axis_size": N, "split_axis": 1, "concat_axis": 1},
        (0,),
        label="same",
        axis=I,
    ),
    Sample(
        c.ppermute_p, (X,), permuted, {"axis_names": OVER, "axis_size": N, "perm": PAIRS}, (0,), dtypes=MANY, axis=I
    ),
    Sample(
        c.ppermute_p,
        (X,),
        permuted,
        {"axis_names": OVER, "axis_size": N, "perm": ((0, 1), (1, 2), (2, 3), (3, 0))},
        (0,),
        label="cycle",
        axis=I,
    ),
    Sample(c.axis_index_p, (), lambda **_: np.arange(N, dtype=np.int32), {"axis_names": OVER, "axis_size": N}, axis=I),
]
