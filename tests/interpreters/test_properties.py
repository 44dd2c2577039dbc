"""Laws that hold for every program, asked of random small ones.

A program is a list of instructions over a pool of values: data, so that hypothesis can shrink it. All values stay
between -2 and 2 or so, which is what lets central differences be compared closely. Every program that is built on the
way is type-checked (tests/conftest.py), transposes and halves included.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tapeless as tl
from tapeless.interpreters import jvp, partial_eval, transpose
from tapeless.interpreters.residuals import rematerialization
from tapeless.tracer.check import check
from tapeless.tracer.jaxpr import Jaxpr, Var
from tapeless.tracer.primitives.contraction import dot_general
from tapeless.tracer.primitives.elementwise import add, cos, gt, mul, neg, select_n, sin, sub, tanh
from tapeless.tracer.primitives.reduction import reduce_sum
from tapeless.tracer.primitives.shape import broadcast_in_dim, concatenate, reshape, slice_in_dim
from tapeless.tracer.primitives.shape import transpose as permute
from tests.close import many_roundings as close
from tests.stepping import by_steps

pytestmark = pytest.mark.usefixtures("eager_by_steps")

SHAPES = ((), (3,), (2, 3))  # of the arguments
few = settings(max_examples=30, deadline=None)


class Instruction(NamedTuple):
    name: str
    i: int
    j: int


@tl.custom_jvp
def custom(x: Any, y: Any) -> Any:
    return mul(sin(x), y)


@custom.defjvp
def custom_jvp(primals: Any, tangents: Any) -> Any:
    (x, y), (t, u) = primals, tangents
    return custom(x, y), add(mul(mul(t, cos(x)), y), mul(sin(x), u))


def total(x: Any) -> Any:
    return reduce_sum(x, range(np.ndim(x)))


def matched(x: Any, y: Any) -> tuple[Any, Any]:
    """Two operands that broadcast: one becomes a scalar if they do not."""
    return (x, y) if np.shape(x) == np.shape(y) or np.ndim(y) == 0 else (x, tanh(total(y)))


def inner_product(x: Any, y: Any) -> Any:
    return tanh(dot_general(x, y, (((np.ndim(x) - 1,), (0,)), ((), ()))) if contractible(x, y) else total(x))


def contractible(x: Any, y: Any) -> bool:
    return np.ndim(x) > 0 and np.ndim(y) > 0 and np.shape(x)[-1] == np.shape(y)[0]


OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "sin": lambda x, _: sin(x),
    "tanh": lambda x, _: tanh(x),
    "neg": lambda x, _: neg(x),
    "add": lambda x, y: tanh(add(*matched(x, y))),
    "sub": lambda x, y: mul(0.5, sub(*matched(x, y))),
    "mul": lambda x, y: mul(*matched(sin(x), y)),
    "custom": lambda x, y: custom(*matched(x, y)),
    "choice": lambda x, y: select_n(gt(x, 0.1), x, mul(*matched(x, cos(y)))),
    "sum": lambda x, _: sin(total(x)),
    "row": lambda x, _: broadcast_in_dim(x, (2, *np.shape(x)), range(1, np.ndim(x) + 1)) if np.ndim(x) < 3 else x,
    "flat": lambda x, _: reshape(x, (int(np.prod(np.shape(x))),)),
    "turn": lambda x, _: permute(x, range(np.ndim(x))[::-1]),
    "twice": lambda x, y: concatenate([x, sin(x)], 0) if np.ndim(x) > 0 and np.shape(x)[0] < 9 else x,
    "padded": lambda x, y: concatenate([x, np.ones(np.shape(x))], 0) if np.ndim(x) > 0 and np.shape(x)[0] < 9 else x,
    "part": lambda x, _: slice_in_dim(x, 0, 1, axis=np.ndim(x) - 1) if np.ndim(x) else x,
    "dot": inner_product,
    "constant": lambda x, _: np.float64(0.7),
    "detach": lambda x, _: tl.stop_gradient(x),
    "call": tl.jit(lambda x, y: mul(*matched(sin(x), cos(y)))),
    "slope": lambda x, _: tl.grad(lambda z: total(mul(sin(z), z)))(x),
    "push": lambda x, y: tl.jvp(lambda z: mul(*matched(sin(z), y)), (x,), (cos(x),))[1],
}


def run(program: Sequence[Instruction], *args: Any) -> list[Any]:
    pool = list(args)
    for name, i, j in program:
        pool.append(OPERATIONS[name](pool[i % len(pool)], pool[j % len(pool)]))
    return pool[-2:]


@st.composite
def programs(draw: st.DrawFn, without: str = "") -> Callable[..., list[Any]]:
    names = st.sampled_from(sorted(OPERATIONS.keys() - {without}))
    instructions = st.builds(Instruction, names, st.integers(0, 12), st.integers(0, 12))
    return named(draw(st.lists(instructions, min_size=1, max_size=8)))


def named(program: Sequence[Instruction]) -> Callable[..., list[Any]]:
    f = partial(run, program)

    class Program:
        """Callable, and shown by hypothesis as what it is."""

        __name__ = "program"

        def __call__(self, *args: Any) -> list[Any]:
            return f(*args)

        def __repr__(self) -> str:
            return repr(program)

    return Program()


def scalar(f: Callable[..., list[Any]]) -> Callable[..., Any]:
    def g(*args: Any) -> Any:
        a, b = map(total, f(*args))
        return add(a, b)

    return g


def drawn(seed: int, shapes: Sequence[tuple[int, ...]] = SHAPES) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [np.asarray(rng.uniform(-1, 1, shape)) for shape in shapes]


def pairing(xs: Sequence[Any], ys: Sequence[Any]) -> float:
    return sum(float(np.sum(np.asarray(x) * np.asarray(y))) for x, y in zip(xs, ys, strict=True))


def traced(f: Callable[..., Any]) -> Any:
    """The program, with the values of the constants that it met."""
    return tl.make_jaxpr(f)(*drawn(0))


def pushed_forward(f: Callable[..., Any]) -> tuple[Jaxpr, list[Any], tuple[bool, ...]]:
    """The jvp of a program in all arguments, with the values of its nonlinear inputs."""
    closed = traced(f)
    n = len(closed.consts)
    program, consts, nonzero = jvp.jvp_jaxpr(closed.jaxpr, (False,) * n + (True,) * len(SHAPES))
    return check(program), [*consts, *closed.consts, *drawn(0)], nonzero


# ---- against each other and against the definition ------------------------------------------------------------


@few
@given(programs())
def test_jit_is_eager(f):
    for jitted, eager in zip(tl.jit(f)(*drawn(0)), f(*drawn(0)), strict=True):
        close(jitted, eager)


@few
@given(programs(without="detach"))
def test_gradient_is_the_central_difference(f):
    f, x, v, h = scalar(f), drawn(0), drawn(1), 1e-5
    ahead, behind = (float(f(*[a + s * h * t for a, t in zip(x, v)])) for s in (1, -1))
    gradient = tl.grad(f, argnums=(0, 1, 2))(*x)
    # h² times third derivatives up to 1e3, and rounding 1e-16 / h; the kink of `choice` is where no sample lies
    np.testing.assert_allclose(pairing(gradient, v), (ahead - behind) / (2 * h), rtol=1e-5, atol=1e-6)


@few
@given(programs())
def test_reverse_is_the_adjoint_of_forward(f):
    x, u = drawn(0), drawn(1)
    values, pushed = tl.jvp(f, x, u)
    v = drawn(2, [np.shape(y) for y in values])
    _, pull_back = tl.vjp(f, *x)
    close(pairing(pushed, v), pairing(u, pull_back(v)))


@few
@given(programs())
def test_linearize_is_jvp(f):
    values, pushed = tl.jvp(f, drawn(0), drawn(1))
    same_values, push_forward = tl.linearize(f, *drawn(0))
    for a, b in zip([*values, *pushed], [*same_values, *push_forward(*drawn(1))], strict=True):
        close(a, b)


@few
@given(programs())
def test_gradient_commutes_with_jit(f):
    plain = tl.grad(scalar(f), argnums=(0, 1, 2))
    for derived in (tl.jit(plain), tl.grad(tl.jit(scalar(f)), argnums=(0, 1, 2))):
        for a, b in zip(derived(*drawn(0)), plain(*drawn(0)), strict=True):
            close(a, b)


@settings(max_examples=15, deadline=None)
@given(programs())
def test_hessian_is_the_same_in_every_order_of_modes(f):
    f, x, v = scalar(f), drawn(0), drawn(1)
    gradient = tl.grad(f, argnums=(0, 1, 2))
    forward_of_reverse = tl.jvp(gradient, x, v)[1]
    reverse_of_forward = tl.grad(lambda *x: tl.jvp(f, x, v)[1], argnums=(0, 1, 2))(*x)
    reverse_of_reverse = tl.vjp(gradient, *x)[1](tuple(v))
    in_jit = tl.jit(lambda *x: tl.jvp(tl.jit(gradient), x, v)[1])(*x)
    for others in (reverse_of_forward, reverse_of_reverse, in_jit):
        for a, b in zip(forward_of_reverse, others, strict=True):
            close(a, b)


# ---- halves and transposes ------------------------------------------------------------------------------------


def halves(f: Callable[..., Any], policy: Any) -> tuple[Any, Any]:
    """What both halves of a program's jvp compute: results and tangents for `drawn(1)`."""
    program, known, _ = pushed_forward(f)
    unzipped = partial_eval.unzip_jaxpr(program, program.linear_in, policy)
    assert not any(v.linear for eqn in check(unzipped.primal).eqns for v in eqn.outvars)
    outs = by_steps(unzipped.primal, known)
    n = len(outs) - unzipped.residuals
    tangents = by_steps(check(unzipped.linear), [*outs[n:], *drawn(1)])
    done, waiting = iter(outs[:n]), iter(tangents)
    return [next(waiting) if linear else next(done) for linear in unzipped.linear_out], unzipped


@few
@given(programs())
def test_halves_compose_to_the_whole(f):
    program, known, _ = pushed_forward(f)
    results, _ = halves(f, rematerialization.save_all)
    for a, b in zip(results, by_steps(program, [*known, *drawn(1)]), strict=True):
        close(a, b)


@few
@given(programs())
def test_saving_nothing_gives_the_same_linear_map(f):
    saving_all, whole = halves(f, rematerialization.save_all)
    saving_none, recomputing = halves(f, rematerialization.save_none)
    for a, b in zip(saving_all, saving_none, strict=True):
        close(a, b)
    inputs = len(recomputing.primal.invars)
    assert recomputing.residuals <= inputs
    assert len(whole.linear.eqns) <= len(recomputing.linear.eqns)


@few
@given(programs())
def test_transposing_twice_gives_the_same_linear_map(f):
    program, known, _ = pushed_forward(f)
    unzipped = partial_eval.unzip_jaxpr(program, program.linear_in)
    outs = by_steps(unzipped.primal, known)
    residuals = outs[len(outs) - unzipped.residuals :]

    def linear(*ts: Any) -> Any:
        return by_steps(unzipped.linear, [*residuals, *ts])

    forwards = [y for y, v in zip(linear(*drawn(1)), unzipped.linear.outvars) if v.linear]
    if not forwards:
        return
    again, nonzero = transposed_twice(unzipped.linear, residuals)
    for y, z, some in zip(forwards, again, nonzero, strict=True):
        close(y, z if some else 0 * y)


def transposed_twice(linear: Jaxpr, residuals: Sequence[Any]) -> tuple[list[Any], list[bool]]:
    """Values of the transpose of the transpose at `drawn(1)`, and which results have one."""
    n = len([v for v in linear.outvars if v.linear])
    once, inputs = transpose.transpose_jaxpr(linear, tuple(v.linear for v in linear.outvars))
    twice, some = transpose.transpose_jaxpr(check(once), (True,) * len(once.outvars))
    ts = [t for t, used in zip(drawn(1), inputs) if used]
    values = iter(by_steps(check(twice), [*residuals, *ts]))
    return [next(values) if used else None for used in some], list(some) if n else []


@few
@given(programs())
def test_programs_print(f):
    program, _, _ = pushed_forward(f)
    for text in (str(traced(f)), str(program), str(partial_eval.unzip_jaxpr(program, program.linear_in).linear)):
        assert text.count("{ lambda") == text.count("}")


# ---- the checker checks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("message", ["is read before it is bound", "is bound twice", "gives .* not"])
def test_checker_finds_what_is_wrong(message):
    jaxpr = tl.make_jaxpr(lambda x: mul(sin(x), x))(1.0).jaxpr
    first, second = jaxpr.eqns
    other_shape = second.replace(outvars=[Var(second.outvars[0].aval.update(shape=(3,)))])
    wrong = {
        "is read before it is bound": [second, first],
        "is bound twice": [first, first, second],
        "gives .* not": [first, other_shape],
    }
    with pytest.raises(tl.errors.InternalError, match=message):
        check(jaxpr.replace(eqns=wrong[message]))


def test_checker_asks_for_honesty_about_linearity():
    """A linear result of a nonlinear operand, and the other way round."""
    program, _ = jvp.jvp_jaxpr(tl.make_jaxpr(sin)(1.0).jaxpr, (True,))[:2]
    *_, last = program.eqns
    assert last.linear
    hidden = last.replace(outvars=[Var(last.outvars[0].aval)])
    with pytest.raises(tl.errors.InternalError, match="is not honest about which of its results are linear"):
        check(program.replace(eqns=[*program.eqns[:-1], hidden], outvars=program.outvars[:1]))
