"""Linear A to the letter: the theorems about cost hold exactly, of straight programs, loops and branches.

W is the work of a program, J its derivative, l the linear half of that: T1 W(Jf) <= c W(f); T2 W(nonlinear half) +
W(l) = W(Jf); T3 W(transpose of l) <= W(l) + |results| - |inputs|; T4 sizes grow in proportion.
Source: Radul et al. 2023, sections 4 to 7.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.interpreters.analysis import linear_a, strict_form
from tapeless.interpreters.analysis.cost import program_size, work
from tapeless.interpreters.analysis.linearity import check_linear
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Literal, Var, map_subjaxprs
from tapeless.tracer.primitives.control_flow import cond_p, scan_p, stacked_type
from tapeless.tracer.primitives.elementwise import add_p, cos_p, exp_p, lt_p, mul_p, neg_p, sin_p, sub_p
from tapeless.tracer.primitives.shape import broadcast_in_dim_p
from tapeless.tracer.types import ShapedArray
from tests.interpreters.analysis.test_cost import NETWORKS, bound, scalars, spec
from tests.samples import SAMPLES
from tests.samples.sample import Sample
from tests.stepping import by_steps

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


@pytest.mark.parametrize("seed", range(4))
def test_theorems_on_random_strict_programs(seed):
    """400 programs: T1 with the constant of these operations, 4; T2 and T3 to the last scalar; T4."""
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


def looping(rng: np.random.Generator) -> Jaxpr:
    """A random program as the body of a scan: its first result is carried, inputs are constants, or elements of xs."""
    while len((body := random_program(rng)).invars) < 2:
        pass
    n, m, length = len(body.invars), len(body.outvars), 5
    n_consts = int(rng.integers(n))
    kinds = [SCALAR] * (n_consts + 1) + [stacked_type(SCALAR, length)] * (n - n_consts - 1)
    inputs, outs = [Var(kind) for kind in kinds], [Var(SCALAR), *[Var(stacked_type(SCALAR, length))] * (m - 1)]
    params = {"jaxpr": body, "n_consts": n_consts, "n_carry": 1, "length": length, "reverse": False, "unroll": 1}
    return Jaxpr(inputs, [Equation(scan_p, inputs, params, outs)], outs)


def branching(rng: np.random.Generator) -> Jaxpr:
    """A choice of two random programs, by a number that is an input too."""
    found: dict[tuple[int, int], Jaxpr] = {}
    while True:
        branch = random_program(rng)
        other = found.setdefault((len(branch.invars), len(branch.outvars)), branch)
        if other is not branch:
            break
    inputs, index = [Var(SCALAR) for _ in branch.invars], Var(ShapedArray((), np.dtype(bool)))
    outs = [Var(SCALAR) for _ in branch.outvars]
    chosen = Equation(lt_p, [inputs[0], Literal(np.float64(0), SCALAR)], {}, [index])
    return Jaxpr(inputs, [chosen, Equation(cond_p, [index, *inputs], {"branches": (other, branch)}, outs)], outs)


@pytest.mark.parametrize("seed", range(3))
def test_theorems_on_random_strict_loops(seed):
    """A loop is its body so many times; and what all steps read, they pass on, the last one for it to be dropped."""
    rng = np.random.default_rng(seed)
    for _ in range(20):
        program = strict_form.strict_form(looping(rng))
        both = linear_a.jvp(program)
        halves = linear_a.unzip(both)
        back = linear_a.transpose(halves.linear)
        assert work(halves.nonlinear) + work(halves.linear) == work(both)
        assert work(back) <= bound(halves.linear)
        assert work(linear_a.transpose(back)) <= work(halves.linear)
        for strict in (both, halves.linear, back):
            check_strictly(strict)


def along(jaxpr: Jaxpr, taken: int) -> Jaxpr:
    """A program in which a branch is taken wherever there is a choice."""
    to, env = strict_form.StrictBuilder(), dict[Any, Any](zip(jaxpr.invars, jaxpr.invars))
    for eqn in jaxpr.eqns:
        branches = eqn.params.get("branches")
        inner = branches[taken] if branches else Jaxpr(eqn.invars, [eqn], eqn.outvars)  # type: ignore[arg-type]
        given = [strict_form.look_up(v, env) for v in (eqn.invars[1:] if branches else eqn.invars)]
        env.update(zip(eqn.outvars, to.inline(inner, given, None)))
    return jaxpr.replace(eqns=to.eqns, outvars=[strict_form.look_up(v, env) for v in jaxpr.outvars])


@pytest.mark.parametrize("seed", range(3))
def test_theorems_on_random_strict_branches(seed):
    """Along each branch T3 as always; T2 but for the residuals of the other, zeros that are dropped."""
    rng = np.random.default_rng(seed)
    for _ in range(20):
        both = linear_a.jvp(strict_form.strict_form(branching(rng)))
        halves = linear_a.unzip(both)
        back = linear_a.transpose(halves.linear)
        (choice,) = [eqn for eqn in halves.linear.eqns if eqn.primitive is cond_p]
        for k, branch in enumerate(choice.params["branches"]):
            others = [
                v for eqn in branch.eqns if eqn.primitive is strict_form.drop and not eqn.linear for v in eqn.invars
            ]
            together = work(along(halves.nonlinear, k)) + work(along(halves.linear, k))
            assert together == work(along(both, k)) + scalars(others)
            assert work(along(back, k)) <= bound(along(halves.linear, k))
        for strict in (both, halves.linear, back):
            check_strictly(strict)


MASKED = {
    "zero": lambda x: tnp.where(x > 0, x, 0.0).sum(),
    "zeros": lambda x: tnp.where(x > 0, tnp.zeros_like(x), x * x).sum(),
    "relu": lambda x: tl.nn.relu(x).sum(),
    "triangle": lambda x: tnp.tanh(tnp.triu(tnp.outer(x, x), 1)).sum(),
    "two triangles": lambda x: (tnp.triu(tnp.outer(x, x), 1) + tnp.tril(tnp.outer(x, x), -1)).sum(),
    "two cases": lambda x: tnp.where(x > 0, x * x, tnp.sin(x)).sum(),
    "positions": lambda x: tnp.where(tnp.arange(4) > 1, x * x, x).sum(),
    "diagonal": lambda x: tnp.tanh(tnp.outer(x, x) * tnp.eye(4)).sum(),
}


@pytest.mark.parametrize("f", MASKED.values(), ids=MASKED)
def test_transposing_masks_is_free(f: Callable[..., Any]):
    """A choice of something or zero is a product with a mask: its zero has no cotangent."""
    halves = tl.unzip(f, tnp.array([0.5, -1.0, 2.0, -0.25]), strict=True)
    assert tl.work(halves.transposed) <= tl.work(halves.linear) + 1 - 4
    check_linear(halves.transposed, strict=True)


def plain(jaxpr: Jaxpr) -> Jaxpr:
    """A strict program as one that can be run: values have one name, however many of them there are."""
    to, env = strict_form.StrictBuilder(), dict[Any, Any](zip(jaxpr.invars, jaxpr.invars))
    for eqn in jaxpr.eqns:
        given = [strict_form.look_up(v, env) for v in eqn.invars]
        if eqn.primitive in (strict_form.dup, strict_form.lit):
            env.update(zip(eqn.outvars, given * 2))
        elif eqn.primitive is strict_form.lzero:
            zeros = {"shape": eqn.outvars[0].aval.shape, "dims": ()}
            scalar = Literal(np.float64(0), SCALAR)
            to.eqns.append(Equation(broadcast_in_dim_p, [scalar], zeros, eqn.outvars))
            env[eqn.outvars[0]] = eqn.outvars[0]
        elif eqn.primitive is not strict_form.drop:
            to.eqns.append(eqn.replace(invars=given, params=map_subjaxprs(plain, eqn.params)))
            env.update(zip(eqn.outvars, eqn.outvars))
    return jaxpr.replace(eqns=to.eqns, outvars=[strict_form.look_up(v, env) for v in jaxpr.outvars])


def in_a_loop_in_a_branch(x: Any, a: Any) -> Any:
    """A loop with a counter, constants and elements, run forwards and backwards, in one of two branches."""

    def step(carry: Any, y: Any) -> Any:
        k, s = carry
        return (k + 1, tnp.sin(s) * a[1] + y), s * y

    def loops(x: Any) -> Any:
        (k, s), ys = lax.scan(step, (0, x[0]), x)
        (_, s), zs = lax.scan(step, (k, s), x, reverse=True)
        return tnp.sum(ys * zs) + s

    return lax.cond(a[0] > 0, loops, lambda x: tnp.sum(x * x) * a[0], x)


@pytest.mark.parametrize("first", [1.0, -1.0])
def test_strict_loops_and_branches_mean_the_derivative(first):
    x, a, t, u = np.array([0.4, -0.3, 0.8]), np.array([first, 0.7]), np.array([1.0, 2.0, -1.0]), np.array([0.5, -0.5])
    strict = tl.unzip(in_a_loop_in_a_branch, x, a, strict=True)
    value, *residuals = by_steps(plain(strict.primal.jaxpr), [*strict.primal.consts, x, a])
    (pushed,) = by_steps(plain(strict.linear), [*residuals, t, u])
    expected, push = tl.jvp(in_a_loop_in_a_branch, (x, a), (t, u))
    np.testing.assert_allclose([value, pushed], [expected, push], rtol=1e-12)
    pulled = by_steps(plain(strict.transposed), [*residuals, np.float64(1)])
    for ct, gradient in zip(pulled, tl.grad(in_a_loop_in_a_branch, (0, 1))(x, a), strict=True):
        np.testing.assert_allclose(ct, gradient, rtol=1e-12, atol=1e-15)


def test_a_loop_that_reads_a_linear_constant_is_not_strict():
    def f(x: Any) -> Any:
        return lax.scan(lambda c, _: (c + x, None), x, None, length=3)[0]

    with pytest.raises(tl.errors.LinearityError, match=r"implicit dup\): .* is read by all steps of scan"):
        check_strictly_once(tl.check_linear(f, 1.0).jaxpr)
    strict = tl.strict_form(f, 1.0, linear=0)
    check_strictly(strict)
    assert [str(eqn.primitive) for eqn in strict.eqns] == ["dup", "scan", "drop"]


def check_strictly_once(jaxpr: Jaxpr) -> None:
    """Strictly, once what is read twice outside of the loop is not."""
    (loop,) = jaxpr.eqns
    fresh = [Var(v.aval, True) for v in loop.invars]
    check_linear(jaxpr.replace(invars=fresh, eqns=[loop.replace(invars=fresh)]), strict=True)


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
        return lax.while_loop(lambda x: x < 9, lambda x: x * x, x)

    place = r"of .*test_linear_a\.py:\d+ \(.*looping\), return lax\.while_loop\(.*"
    message = rf"^the strict form of .* while is not known, {place}: it has one without strict=True only\.$"
    with pytest.raises(NotImplementedError, match=message):
        tl.unzip(looping, spec(), strict=True)


def test_errors_of_the_strict_form_name_the_line():
    def opaque(x: Any) -> Any:
        return x * tl.pure_callback(np.asarray, tl.ShapeDtypeStruct((), "float64"), x)

    with pytest.raises(ValueError, match=r"It was called at .*test_linear_a\.py:\d+ \(.*opaque\), return x \*"):
        tl.unzip(opaque, spec(), strict=True)


# ---- networks -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("f", NETWORKS, ids=lambda f: f.__name__)
def test_theorems_on_strict_networks(f):
    """T2 and T3 to the last scalar; no drops but of what masks leave out, and of constants of loops."""
    function, halves = tl.strict_form(f, *NETWORKS[f]), tl.unzip(f, *NETWORKS[f], strict=True)
    assert tl.work(halves) == work(linear_a.jvp(function))
    assert work(halves.transposed) == bound(halves.linear)
    assert tl.work(halves) <= 4 * work(function)


def test_what_has_no_strict_form():
    """docs/guarantees.md names these."""
    rows = {row.primitive.name: row for row in SAMPLES}
    assert {name for name, row in rows.items() if has_no_strict_form(row)} == {
        "while",
        "linear_while",
        "linear_scan",
        "linear_solve",
        "adjugate",
    }


def has_no_strict_form(row: Sample) -> bool:
    try:
        tl.unzip(partial(row.primitive.bind, **dict(row.params)), *row.args, strict=True)
    except NotImplementedError as error:
        return "the strict form of a derivative of" in str(error)
    except (TypeError, ValueError):  # no derivative, or an axis of vmap
        pass
    return False
