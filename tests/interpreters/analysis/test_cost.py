"""The scalar cost model: by hand, primitive by primitive, and the theorems about it on programs large and random.

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
from tapeless.interpreters.analysis import cost, linear_a, sparse_cost, strict_form
from tapeless.interpreters.analysis.cost import Cost, program_size, work
from tapeless.interpreters.analysis.linearity import check_linear
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from tapeless.tracer.linear_vars import mark_linear
from tapeless.tracer.primitives.elementwise import add_p, cos_p, exp_p, mul_p, neg_p, sin_p, sub_p
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import ShapedArray, aval_of
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
# Nowhere: one complex scalar is made of two that are real, and taken apart by two operations.
EXCEPTIONS = ("complex",)
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


# ---- strict programs of scalars, at random: exactly ------------------------------------------------------------

SCALAR = ShapedArray((), np.dtype(np.float64))
UNARY, BINARY = (sin_p, cos_p, exp_p, neg_p), (add_p, mul_p, sub_p)
MEANING: dict[str, Callable[..., Any]] = {
    "sin": np.sin, "cos": np.cos, "exp": np.exp, "neg": np.negative, "add": np.add, "mul": np.multiply,
    "sub": np.subtract, "lit": lambda x: x, "lzero": lambda: np.float64(0), "drop": lambda x: (),
}  # fmt: skip


def random_program(rng: np.random.Generator) -> Jaxpr:
    """A few inputs, literals and operations, some of them dead; one or two results."""
    inputs = [Var(SCALAR) for _ in range(rng.integers(1, 4))]
    pool: list[Atom] = [*inputs, Literal(np.float64(0.5), SCALAR), Literal(np.float64(-1.5), SCALAR)]
    eqns = []
    for _ in range(rng.integers(1, 10)):
        primitive = (UNARY + BINARY)[rng.integers(7)]
        operands = [pool[rng.integers(len(pool))] for _ in range(2 if primitive in BINARY else 1)]
        eqns.append(Equation(primitive, operands, {}, [Var(SCALAR)]))
        pool.append(eqns[-1].outvars[0])
    return Jaxpr(inputs, eqns, [pool[-1], *[pool[rng.integers(len(pool))] for _ in range(rng.integers(2))]])


def evaluated(program: Jaxpr, args: Sequence[Any]) -> list[Any]:
    """What a strict program of scalars means."""
    env: dict[Any, Any] = dict(zip(program.invars, args, strict=True))
    for eqn in program.eqns:
        given = [v.value if isinstance(v, Literal) else env[v] for v in eqn.invars]
        name = str(eqn.primitive)
        outs = (given * 2) if name == "dup" else [MEANING[name](*given)] if eqn.outvars else []
        env.update(zip(eqn.outvars, outs, strict=True))
    return [v.value if isinstance(v, Literal) else env[v] for v in program.outvars]


@pytest.mark.parametrize("seed", range(10))
def test_theorems_on_random_strict_programs(seed):
    """1000 programs: T1 with the constant of these operations, 4; T2 and T3 to the last scalar; T4."""
    rng = np.random.default_rng(seed)
    for _ in range(100):
        program = strict_form.strict_form(random_program(rng))
        both = linear_a.jvp(program)
        halves = linear_a.unzip(both)
        there = halves.linear
        back = linear_a.transpose(there)
        again = linear_a.transpose(back)
        assert work(both) <= 4 * work(program)
        assert work(halves.nonlinear) + work(there) == work(both)
        assert work(back) <= bound(there)
        assert work(again) <= work(there)
        if not dropped(there) and not dropped(back):
            assert work(back) == bound(there)
        assert program_size(both) + program_size(back) <= 20 * (program_size(program) + len(program.invars))
        for strict in (both, there, back, again):
            check_strictly(strict)


def dropped(program: Jaxpr) -> bool:
    return any(eqn.primitive is strict_form.drop for eqn in program.eqns)


def check_strictly(program: Jaxpr) -> None:
    """A program may have results that are not linear: they are taken off."""
    unread = [v for v in program.outvars if not v.linear]
    drops = [Equation(strict_form.drop, [v], {}, []) for v in unread]
    linear = program.replace(eqns=[*program.eqns, *drops], outvars=[v for v in program.outvars if v.linear])
    check_linear(linear, strict=True)


@pytest.mark.parametrize("seed", range(3))
def test_strict_programs_mean_the_derivative(seed):
    rng = np.random.default_rng(100 + seed)
    for _ in range(20):
        program = random_program(rng)
        n = len(program.invars)
        x, t = rng.uniform(-1, 1, (2, n))
        halves = linear_a.unzip(linear_a.jvp(program))
        outs = evaluated(halves.nonlinear, x)
        results, residuals = outs[: len(program.outvars)], outs[len(program.outvars) :]
        ahead, behind = (evaluated(program, x + s * 1e-6 * t) for s in (1, -1))
        pushed = evaluated(halves.linear, [*residuals, *t])
        # differences of second order, of numbers that exp may have made large
        np.testing.assert_allclose(results, evaluated(program, x))
        scale = 1 + max(np.abs(results).max(), np.abs(pushed).max())
        if scale < 1e3:
            np.testing.assert_allclose(pushed, np.subtract(ahead, behind) / 2e-6, atol=1e-5 * scale)
        ct = rng.uniform(-1, 1, len(pushed))
        pulled = evaluated(linear_a.transpose(halves.linear), [*residuals, *ct])
        np.testing.assert_allclose(np.dot(pushed, ct), np.dot(pulled, t), rtol=1e-9, atol=1e-12 * scale)


def test_what_has_no_strict_derivative():
    def looping(x: Any) -> Any:
        return lax.scan(lambda c, a: (c * a, a), 1.0, x)[0]

    place = r"of .*test_cost\.py:\d+ \(.*looping\), return lax\.scan\(.*"
    advice = r"what branches or loops has one without strict=True only\.$"
    with pytest.raises(NotImplementedError, match=f"^the strict form of .* scan is not known, {place}: {advice}"):
        tl.unzip(looping, spec(3), strict=True)


def test_errors_of_the_strict_form_name_the_line():
    def opaque(x: Any) -> Any:
        return x * tl.pure_callback(np.asarray, tl.ShapeDtypeStruct((), "float64"), x)

    with pytest.raises(ValueError, match=r"It was called at .*test_cost\.py:\d+ \(.*opaque\), return x \*"):
        tl.unzip(opaque, spec(), strict=True)


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
# A loop adds to the cotangents of what all its steps read from the first step on, when they are zeros.
ACCUMULATED = {recurrent: 4 * 4 + 4 * 3}


def written_out(w: Any, u: Any, h: Any, xs: Any) -> Any:
    """The recurrent network without a loop."""
    total = 0.0
    for x in xs:
        h = tnp.tanh(w @ h + u @ x)
        total = total + tnp.sum(h)
    return tnp.sum(h) + total


# Of branches and loops no strict derivative is known.
STRICT = {f: args for f, args in NETWORKS.items() if f is not recurrent} | {written_out: NETWORKS[recurrent]}


@pytest.mark.parametrize("f", STRICT, ids=lambda f: f.__name__)
def test_theorems_on_strict_networks(f):
    """T2 and T3 to the last scalar; derivatives have no drops but of what masks leave out."""
    function, halves = tl.strict_form(f, *STRICT[f]), tl.unzip(f, *STRICT[f], strict=True)
    assert tl.work(halves) == work(linear_a.jvp(function))
    assert work(halves.transposed) == bound(halves.linear)
    assert tl.work(halves) <= 4 * work(function)


@pytest.mark.parametrize("f", NETWORKS, ids=lambda f: f.__name__)
def test_theorems_on_networks_with_zeros_known(f):
    """The loop is no exception: its first step adds to zeros."""
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
    assert tl.work(halves.linear) <= on_linear_values(both)
    assert work(both) <= 3.2 * function
    assert work(halves.transposed) <= bound(halves.linear) + ACCUMULATED.get(f, 0)
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
        # coefficient is chosen by once more in the primal half, which is free where choices are.
        assert tl.work(halves.linear) <= on_linear_values(both)
        assert tl.cost(halves).sparse.work <= sparse_cost.cost(both).work
        assert work(halves.transposed) <= bound(halves.linear)


def named(program: Sequence[Instruction]) -> Callable[..., Any]:
    return lambda *args: run(program, *args)
