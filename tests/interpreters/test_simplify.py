"""What simplifying keeps, meaning and effects, and what it promises: no more work, nothing left to do, linear time."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.interpreters import simplify, writer
from tapeless.interpreters.analysis import cost
from tapeless.interpreters.simplifications.slicing import pushdown
from tapeless.interpreters.simplify import simplify_program
from tapeless.tracer.jaxpr import Equation, Jaxpr, Literal, Var
from tapeless.tracer.primitives.contraction import dot_general_p
from tapeless.tracer.primitives.elementwise import add_p, convert_element_type_p, eq_p, mul_p, select_n_p, sub_p
from tapeless.tracer.primitives.shape import broadcast_in_dim_p, iota_p
from tests.close import rewritten as close
from tests.interpreters.structured_programs import arguments, program
from tests.stepping import by_steps

pytestmark = pytest.mark.usefixtures("eager_by_steps")


def operations(jaxpr: Jaxpr) -> int:
    """Work, but for what it costs to dispose of what is not read: that grows as less is read."""
    found = cost.cost(jaxpr)
    return found.work - found.drops


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed: int):
    """The same results by no more work, and nothing more to do after that."""
    args = arguments()
    closed = tl.make_jaxpr(program(seed))(*args)
    new = simplify_program(closed.jaxpr)
    before, after = [by_steps(jaxpr, [*closed.consts, *args]) for jaxpr in (closed.jaxpr, new)]
    close(after[0], before[0])
    assert operations(new) <= operations(closed.jaxpr)
    assert simplify_program(new) is new
    assert simplify._simplify(new) is new


@pytest.mark.parametrize("seed", range(100, 130))
def test_derivatives_of_random_programs(seed: int):
    """Linear jaxprs against forward mode, which is not simplified; forwards, transposed, compiled."""
    f, args, tangents = program(seed), arguments(), arguments(1)
    random = np.random.default_rng(2)
    _, expected = tl.jvp(f, args, tangents)
    ct, push, pull = random.normal(size=np.shape(expected)), tl.linearize(f, *args)[1], tl.vjp(f, *args)[1]
    pushed, pulled = tl.jit(lambda tangents, ct: (push(*tangents), pull(ct)))(tangents, ct)
    close(pushed, expected)
    product = sum(np.sum(np.asarray(ct) * t) for ct, t in zip(pulled, tangents))
    close(product, np.sum(np.asarray(expected) * ct))
    if seed % 5 == 0:
        compiled = tl.jit(lambda *args: tl.vjp(f, *args)[1](ct))(*args)
        for one, other in zip(compiled, pulled):
            close(one, other)


def test_functions_that_are_zero_have_gradients_that_are():
    def f(x: Any) -> Any:
        zeros = tnp.diag(x * 0.0)
        return tnp.tanh(tnp.outer(zeros, zeros)[:, ::-1][:, 2])

    for transform in (tl.jacrev, tl.jacfwd, lambda f: tl.jit(tl.jacrev(f))):
        np.testing.assert_array_equal(transform(f)(np.ones((8, 8))), np.zeros((8, 8, 8)))


def test_nothing_to_do_is_nothing_done():
    jaxpr = tl.make_jaxpr(lambda x, w: tnp.tanh(x @ w) * x)(np.ones((3, 3)), np.ones((3, 3))).jaxpr
    assert simplify_program(jaxpr) is jaxpr


def test_programs_inside_are_simplified_once():
    inner = tl.jit(lambda x: tnp.negative(-x))
    jaxpr = simplify_program(tl.make_jaxpr(lambda x: inner(inner(x)))(1.5).jaxpr)
    first, second = [eqn.params["jaxpr"] for eqn in jaxpr.eqns]
    assert first is second and not first.eqns


def test_effects_stay():
    def f(x: Any) -> Any:
        tl.debug.print("{}", x)
        return tnp.negative(-x)

    jaxpr = simplify_program(tl.make_jaxpr(f)(1.5).jaxpr)
    assert [str(eqn.primitive) for eqn in jaxpr.eqns] == ["debug_callback"]


# ---- time -----------------------------------------------------------------------------------------------------


def repeated(n: int, step: Callable[[Any], Any], end: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        for _ in range(n):
            x = step(x)
        return end(x)

    return f


LONG = {
    "elementwise, one part": (lambda x: tnp.sin(x) * x, lambda x: x[0]),
    "a part of each": (lambda x: tnp.concatenate([tnp.sin(x)[:8], tnp.cos(x)[8:]]), tnp.sum),
    "masks in masks": (lambda x: tnp.where(x > 0.1, tnp.sqrt(x) * x, x), tnp.sum),
    "products": (lambda x: tnp.outer(x, x) @ x, tnp.sum),
    "one less each time": (lambda x: tnp.sin(x)[:-1] if x.shape[0] > 40 else tnp.sin(x), tnp.sum),
    "two reads of one value": (lambda x: tnp.outer(x, x)[0] + tnp.outer(x, x)[:, 1], tnp.sum),
}


@pytest.mark.parametrize("name", LONG)
def test_time_is_linear_in_the_program(name: str, monkeypatch: pytest.MonkeyPatch):
    """Counted in equations written and views followed: of a program four times as long four times as many."""
    step, end = LONG[name]

    def steps(n: int) -> int:
        count = 0

        def counting(f: Any) -> Any:
            def counted(*args: Any) -> Any:
                nonlocal count
                count += 1
                return f(*args)

            return counted

        x = np.linspace(0.1, 1, 64)
        with monkeypatch.context() as patched:
            patched.setattr(writer.Writer, "keep", counting(writer.Writer.keep))
            patched.setattr(pushdown._Narrowing, "_part", counting(pushdown._Narrowing._part))
            tl.linearize(repeated(n, step, end), x)
        return count

    short, long = steps(10), steps(40)
    assert long <= 4.6 * short


# ---- invariants of gradients ----------------------------------------------------------------------------------


def read_by(jaxpr: Jaxpr, v: Var) -> list[Equation]:
    return [eqn for eqn in jaxpr.eqns if v in eqn.invars]


def is_zeros(eqn: Equation) -> bool:
    x = eqn.invars[0] if eqn.primitive is broadcast_in_dim_p else None
    return isinstance(x, Literal) and not np.any(x.value) and eqn.outvars[0].aval.size > 1


def are_one_hot(jaxpr: Jaxpr) -> set[Var]:
    """Values that are a mask of positions, or ones and zeros, or something and zeros, by such a mask."""
    made = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    masks = {
        eqn.outvars[0]
        for eqn in jaxpr.eqns
        if eqn.primitive is eq_p and any(v in made and made[v].primitive is iota_p for v in eqn.invars)
    }
    return {
        eqn.outvars[0]
        for eqn in jaxpr.eqns
        if eqn.primitive in (convert_element_type_p, select_n_p) and eqn.invars[0] in masks
    }


def faults(jaxpr: Jaxpr) -> list[str]:
    """Dense zeros that are only added to something, one-hots that are only contracted."""
    found = []
    for eqn in jaxpr.eqns:
        (v, *_), readers = eqn.outvars, read_by(jaxpr, eqn.outvars[0])
        if is_zeros(eqn) and readers and all(r.primitive in (add_p, sub_p) for r in readers):
            found.append(f"zeros that are only added: {eqn}")
        if v in are_one_hot(jaxpr) and readers and all(r.primitive is dot_general_p for r in readers):
            found.append(f"a one-hot that is only contracted: {eqn}")
    return found


X, A, B = np.linspace(0.5, 1.5, 16), np.ones((16, 16)), np.eye(16)
GRADIENTS = {
    "outer": (lambda x: tnp.dot(tnp.outer(x, x)[:, 0], tnp.outer(x, x)[0]), X),
    "trace": (lambda x: tnp.trace(tnp.outer(x, x)), X),
    "trace of a product": (lambda a: tnp.trace(a @ B), A),
    "diag": (lambda x: tnp.dot(tnp.diag(x) @ x, x), X),
    "row": (lambda a: tnp.sum((a @ B)[3] ** 2), A),
    "two rows": (lambda a: tnp.sum(a[3] * a[5]), A),
    "element": (lambda a: a[3, 4] * a[5, 5], A),
    "eye": (lambda x: tnp.sum(tnp.eye(16) @ x * x), X),
    "one-hot": (lambda x: tnp.sin(tnp.eye(16)[2] @ x), X),
    "concatenation": (lambda x: tnp.sum(tnp.concatenate([x, x * x])[3:20] ** 2), X),
    "where": (lambda x: tnp.sum(tnp.where(x > 1, tnp.log(x), 0)), X),
    "split": (lambda x: tnp.sum(tnp.split(x, 2)[0] ** 2), X),
    "unused": (lambda x: tnp.sum(tnp.stack([x, 2 * x])[0] ** 2), X),
    "network": (lambda a: tnp.sum(tnp.tanh(tnp.tanh(A @ a) @ a + X) ** 2), A),
    "branch": (lambda x: tl.lax.cond(x[0] > 1, lambda x: tnp.sum(x), lambda x: x[3], x), X),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_no_gradient_adds_zeros_or_contracts_a_one_hot(name: str):
    f, x = GRADIENTS[name]
    assert not faults(tl.unzip(f, x).transposed)
    assert not faults(simplify_program(tl.make_jaxpr(tl.grad(f))(x).jaxpr))


def test_the_checker_finds_them():
    def f(x: Any) -> Any:
        return x + tnp.zeros(16), tnp.eye(16) @ x

    found = faults(tl.make_jaxpr(f)(X.astype(np.float32)).jaxpr)
    assert [fault.split(":")[0] for fault in found] == [
        "zeros that are only added",
        "a one-hot that is only contracted",
    ]


def test_multiplications_count():
    """The count that the other tests go by."""
    jaxpr = tl.make_jaxpr(lambda x: tnp.sum(tnp.outer(x, x)[0]))(X).jaxpr
    assert operations(jaxpr) == 256 + 15
    assert operations(simplify_program(jaxpr)) == 1 + 15
    assert [eqn.primitive for eqn in simplify_program(jaxpr).eqns].count(mul_p) == 1
