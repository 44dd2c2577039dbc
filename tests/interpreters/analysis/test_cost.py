"""The scalar cost model: by hand, primitive by primitive, and the theorems about it on programs as they run.

W is the work of a program, J its derivative, l the linear half of that: T1 W(Jf) <= c W(f); T2 W(nonlinear half) +
W(l) = W(Jf); T3 W(transpose of l) <= W(l) + |results| - |inputs|; T4 sizes grow in proportion.
Source: Radul et al. 2023, section 7.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.interpreters import jvp, transpose
from tapeless.interpreters.analysis import cost, sparse_cost
from tapeless.interpreters.analysis.cost import Cost, program_size, work
from tapeless.tracer.jaxpr import Jaxpr
from tapeless.tracer.linear_vars import mark_linear
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import aval_of
from tests.interpreters.test_properties import OPERATIONS, Instruction, drawn, run
from tests.samples import SAMPLES
from tests.samples.sample import Sample
from tests.test_primitives import applied, is_inexact, over


def spec(*shape: int) -> Any:
    return tl.ShapeDtypeStruct(shape, "float64")


def scalars(atoms: Sequence[Any]) -> int:
    return sum(v.aval.size for v in atoms)


def bound(linear: Jaxpr) -> int:
    """What T3 allows the transpose to cost."""
    inputs = [v for v in linear.invars if v.linear]
    return work(linear) + scalars(linear.outvars) - scalars(inputs)


# ---- by hand --------------------------------------------------------------------------------------------------

called = tl.jit(tnp.sin)


@pytest.mark.parametrize(
    "f, args, expected",
    [
        (lambda x: x * x + 1, (spec(5),), Cost(nonlinear=10, size=7)),
        (lambda x, y: x @ y, (spec(3, 4), spec(4, 5)), Cost(nonlinear=15 * 4 + 15 * 3, size=4)),
        (tnp.sum, (spec(3, 4),), Cost(nonlinear=11, size=3)),
        (tnp.cumsum, (spec(7),), Cost(nonlinear=6, size=3)),
        (lambda x: tnp.max(x, 1), (spec(3, 4),), Cost(nonlinear=9, size=3)),
        (lambda x: x.T.reshape(12)[2:5], (spec(3, 4),), Cost(moved=27, moved_bytes=216, size=7)),
        (lambda x: lax.scan(lambda c, a: (c * a, c), 1.0, x), (spec(9),), Cost(nonlinear=9, size=10)),
        (lambda x: lax.cond(x > 0, tnp.sin, lambda x: tnp.exp(tnp.sin(x)), x), (spec(),), Cost(nonlinear=3, size=15)),
        (lambda x: called(called(x)), (spec(),), Cost(nonlinear=2, size=8)),
    ],
)
def test_of_functions(f, args, expected):
    assert tl.cost(f, *args).strict == expected


def conv(x: Any, kernel: Any) -> Any:
    return lax.conv_general_dilated(x, kernel, (2,), [(1, 2)], (2,), (3,))


def test_of_a_convolution_with_everything():
    """Counted on the matrix that it is: an entry is a multiplication, entries of a row are added."""
    x, kernel = np.ones((2, 3, 5)), np.ones((4, 3, 2))
    matrix = np.asarray(tl.jacfwd(lambda x: conv(x, kernel))(x))
    entries, results = np.count_nonzero(matrix), matrix.reshape(-1, x.size)
    rows, columns = np.any(results, 1), np.any(results, 0)
    linear = tl.check_linear(conv, x, kernel, linear=0)
    unread = int(np.sum(~columns))
    expected = Cost(adds=entries - int(rows.sum()), multiplies=entries, drops=unread, size=4)
    assert tl.cost(linear).strict == expected


@pytest.mark.parametrize(
    "f, x, expected",
    [
        (lambda x: x + x, spec(4), Cost(adds=4, size=4)),
        (lambda x: x - 2.0 * x, spec(4), Cost(adds=4, multiplies=8, size=7)),
        (lambda x: -x / 3.0, spec(4), Cost(multiplies=8, size=6)),
        (lambda x: x[1:3], spec(4), Cost(drops=2, moved=2, size=3)),
        (lambda x: (x[:2], x[2:]), spec(4), Cost(moved=4, size=6)),
        (lambda x: tnp.where(np.array([True, False]), x, 2.0 * x), spec(2), Cost(adds=2, multiplies=6, size=8)),
        (lambda x: x[np.array([0, 0, 1])], spec(5), Cost(drops=2, moved=3, size=4)),
        (lambda x: tnp.zeros(5).at[np.array([0, 0, 1])].add(x), spec(3), Cost(moved=5, size=7)),
        (lambda x: (), spec(4), Cost(drops=4)),
    ],
)
def test_of_linear_jaxprs(f, x, expected):
    found = tl.cost(tl.check_linear(f, x))
    assert (found.adds, found.multiplies, found.drops) == (expected.adds, expected.multiplies, expected.drops)
    assert found.nonlinear == 0 or "at" in f.__code__.co_names or "array" in f.__code__.co_names  # indices are prepared


def test_of_a_scan_in_its_length():
    def f(x: Any) -> Any:
        return lax.scan(lambda c, a: (tnp.sin(c) * a, c), 1.0, x)

    ten, hundred = (tl.unzip(f, spec(n)) for n in (10, 100))
    for a, b in ((ten.primal, hundred.primal), (ten.linear, hundred.linear), (ten.transposed, hundred.transposed)):
        assert tl.program_size(a) == tl.program_size(b)
        assert tl.work(b) == pytest.approx(10 * tl.work(a), abs=30)


def test_text_of_a_cost():
    found = tl.cost(tl.unzip(lambda x: tnp.sin(x) * x, 1.0)).strict
    assert str(found) == "work 7: nonlinear 3, adds 1, multiplies 3, drops 0; moved 0, size 24"
    assert found.work == 7


def test_programs_are_counted_once_however_often_they_are_called():
    f: Callable[..., Any] = lambda x: tnp.sin(x)  # noqa: E731
    sizes = []
    for _ in range(8):
        f = tl.jit(lambda x, f=f: f(x) * f(x))
        sizes.append(program_size(tl.make_jaxpr(f)(1.0).jaxpr))
    assert len({b - a for a, b in pairwise(sizes)}) == 1
    assert tl.cost(f, 1.0).work == 2 * 2**8 - 1


def test_every_linear_primitive_has_a_cost():
    assert [p.name for p in jvp.structurally_linear if p not in cost.prices or cost.prices[p].linear is None] == []


# ---- T3, primitive by primitive -------------------------------------------------------------------------------

# What costs more backwards than that where zeros count: a padding value collects what a mask leaves to it; where
# updates overlap, which of them won is found out again. In the model that knows of zeros these cost just that.
MASKED = ("pad", "scatter")
# Nowhere: one complex scalar is made of two that are real, and taken apart by two operations; a bin of real numbers
# stands for its conjugate too, and is scaled; a loop of an unknown number of steps computes states again; a linear
# constant of a loop, without a strict form, is not counted as one that each step disposes of.
EXCEPTIONS = ("complex", "fft", "linear_scan", "linear_while")
LINEAR = [row for row in SAMPLES if row.linear_in and all(is_inexact(row.args[k]) for k in row.linear_in)]


def linear_jaxpr(row: Sample) -> tuple[Jaxpr, list[Any]] | None:
    """A primitive as a linear jaxpr, and its constants. None if it is empty: other operands are not read then."""
    jaxpr, consts = trace_to_jaxpr(applied(row, row.args, row.linear_in), [aval_of(row.args[k]) for k in row.linear_in])
    linear = mark_linear(jaxpr, [*[False] * len(consts), *[True] * len(row.linear_in)])
    return (linear, consts) if all(v.aval.size for v in (*linear.invars, *linear.outvars)) else None


def sparse_bound(linear: Jaxpr, consts: Sequence[Any] = ()) -> int:
    """What T3 allows the transpose to cost in the model that knows of zeros, in which disposing is free."""
    ends = scalars(linear.outvars) - scalars([v for v in linear.invars if v.linear])
    return sparse_cost.cost(linear, consts).work + cost.cost(linear).drops + ends


@over([row for row in LINEAR if row.primitive.name not in EXCEPTIONS])
def test_transposes_of_primitives_cost_no_more(row: Sample):
    if (found := linear_jaxpr(row)) is None:
        return
    linear, consts = found
    transposed, _ = transpose.transpose_jaxpr(linear, (True,) * len(linear.outvars))
    if row.primitive.name in MASKED:
        assert sparse_cost.cost(transposed, consts).work <= sparse_bound(linear, consts)
    else:
        assert work(transposed) <= bound(linear)


@pytest.mark.parametrize("name", [*MASKED, *EXCEPTIONS])
def test_exceptions_are_needed(name):
    found = [linear_jaxpr(row) for row in LINEAR if row.primitive.name == name]
    programs = [linear for linear, _ in filter(None, found)]
    assert any(work(transpose.transpose_jaxpr(p, (True,) * len(p.outvars))[0]) > bound(p) for p in programs)


# ---- the programs that are used -------------------------------------------------------------------------------


def perceptron(w1: Any, b1: Any, w2: Any, b2: Any, x: Any) -> Any:
    return tnp.sum(tnp.square(tnp.tanh(x @ w1 + b1) @ w2 + b2))


def convolutional(k1: Any, k2: Any, x: Any) -> Any:
    h = tnp.maximum(lax.conv_general_dilated(x, k1, (1, 1), "SAME"), 0)
    h = lax.reduce_window(h, -np.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return tnp.mean(lax.conv_general_dilated(h, k2, (2, 2), "VALID"))


def recurrent(w: Any, u: Any, h: Any, xs: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = tnp.tanh(w @ h + u @ x)
        return h, tnp.sum(h)

    h, ys = lax.scan(step, h, xs)
    return tnp.sum(h) + tnp.sum(ys)


def attention(wq: Any, wk: Any, wv: Any, x: Any) -> Any:
    scores = (x @ wq) @ (x @ wk).T / 2.0
    weights = tnp.exp(scores - tnp.max(scores, axis=-1, keepdims=True))
    return tnp.sum(weights / tnp.sum(weights, axis=-1, keepdims=True) @ (x @ wv))


NETWORKS = {
    perceptron: (spec(5, 7), spec(7), spec(7, 3), spec(3), spec(2, 5)),
    convolutional: (spec(3, 2, 3, 3), spec(4, 3, 3, 3), spec(2, 2, 10, 10)),
    recurrent: (spec(4, 4), spec(4, 3), spec(4), spec(6, 3)),
    attention: (spec(5, 4), spec(5, 4), spec(5, 4), spec(6, 5)),
}


@pytest.mark.parametrize("f", NETWORKS, ids=lambda f: f.__name__)
def test_theorems_on_networks_with_zeros_known(f):
    halves = tl.unzip(f, *NETWORKS[f])
    assert tl.cost(halves).sparse.work <= sparse_cost.cost(derivative(f, NETWORKS[f])).work
    assert sparse_cost.cost(halves.transposed).work <= sparse_bound(halves.linear)


def derivative(f: Callable[..., Any], args: Sequence[Any]) -> Jaxpr:
    closed = tl.make_jaxpr(f)(*args)
    n = len(closed.consts)
    return jvp.jvp_jaxpr(closed.jaxpr, tuple(i >= n for i in range(len(closed.jaxpr.invars))))[0]


@pytest.mark.parametrize("f", NETWORKS, ids=lambda f: f.__name__)
def test_theorems_on_networks(f):
    args = NETWORKS[f]
    halves = tl.unzip(f, *args)
    function, both = tl.cost(f, *args).work, derivative(f, args)
    assert tl.work(halves) <= work(both)
    assert on_linear_values(halves.linear) <= on_linear_values(both)  # masks are made again, of known values
    assert work(both) - cost.cost(both).drops <= 3.2 * function
    assert work(halves.transposed) <= bound(halves.linear)
    assert work(halves.primal.jaxpr) + work(halves.transposed) <= 3.2 * function


def on_linear_values(both: Jaxpr) -> int:
    """What the linear half of a derivative costs before it is simplified."""
    found = cost.cost(both)
    return found.work - found.nonlinear


@pytest.mark.parametrize("seed", range(5))
def test_theorems_on_random_array_programs(seed):
    rng, names = np.random.default_rng(seed), sorted(OPERATIONS)
    for _ in range(20):
        program = [
            Instruction(names[rng.integers(len(names))], *map(int, rng.integers(13, size=2)))
            for _ in range(rng.integers(1, 9))
        ]
        function = named(program)
        halves, both = tl.unzip(function, *drawn(0)), derivative(function, drawn(0))
        # Calls compute results that nobody wants, of which the linear half is relieved; a mask that is moved into a
        # coefficient is chosen by once more, of nonlinear values, which is free where choices are.
        assert on_linear_values(halves.linear) <= on_linear_values(both)
        assert tl.cost(halves).sparse.work <= sparse_cost.cost(both).work
        assert work(halves.transposed) <= bound(halves.linear)


def named(program: Sequence[Instruction]) -> Callable[..., Any]:
    return lambda *args: run(program, *args)
