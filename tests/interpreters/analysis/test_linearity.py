"""What is linear, what is not, and what is said about it: LO8, LO9, programs inside equations, tables, strict form."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.interpreters import jvp, transpose
from tapeless.interpreters.analysis import linearity
from tapeless.interpreters.analysis.linearity import check_linear, checked_linear
from tapeless.interpreters.analysis.strict_form import drop, dup, lit, lzero, strict_form
from tapeless.tracer import core
from tapeless.tracer.bodies import descriptions
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Equation, Jaxpr, Literal, Var, subjaxprs
from tapeless.tracer.linear_vars import mark_linear
from tapeless.tracer.primitives.elementwise import add, add_p, mul, mul_p, sin_p
from tapeless.tracer.types import ShapedArray
from tests.messages import dotted, place, raises
from tests.samples import SAMPLES

X, MASK, A = np.ones(3), np.array([True, False, True]), np.array([1.0, 2.0, 3.0])
INDICES = np.array([2, 0, 0])


@tl.custom_jvp
def doubled(x):
    return 2 * x


@doubled.defjvp
def doubled_jvp(primals, tangents):
    return 2 * primals[0], 2 * tangents[0]


# ---- LO8: accepted --------------------------------------------------------------------------------------------

ACCEPTED = {
    "x": lambda x: x,
    "2x": lambda x: 2 * x,
    "x+x": lambda x: x + x,
    "a*x": lambda x: A * x,
    "0": lambda x: 0,
    "zeros": lambda x: tnp.zeros(3),
    "zeros of numpy": lambda x: np.zeros(3),
    "cumsum": tnp.cumsum,
    "where(mask, x, 2x)": lambda x: tnp.where(MASK, x, 2 * x),
    "where(mask, x, 0)": lambda x: tnp.where(MASK, x, 0),
    "linear scan": lambda x: lax.scan(lambda c, a: (2 * c + a, c - a), 0.0, x),
    "scan with a count": lambda x: lax.scan(lambda c, a: ((c[0] + 1, c[1] + a), c[0] * a), (0.0, 0.0), x)[1],
    "cond": lambda x: lax.cond(True, lambda x: x, lambda x: 2 * x, x),
    "cond that may be zero": lambda x: lax.cond(True, lambda x: x, lambda x: np.zeros(3), x),
    "while": lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, 2 * c[1]), (0, x))[1],
    "jit": lambda x: tl.jit(lambda x, y: 2 * x + y)(x, x),
    "jit with zeros": lambda x: tl.jit(lambda x, y: x + y)(x, tnp.zeros(3)),
    "checkpoint": lambda x: tl.checkpoint(lambda x: A * x)(x),
    "custom_jvp": doubled,
    "x/a": lambda x: x / A,
    "mean": tnp.mean,
    "matmul": lambda x: np.ones((2, 3)) @ x,
    "concatenate with zeros of numpy": lambda x: tnp.concatenate([x, np.zeros(2)]),
    "gather": lambda x: x[INDICES],
    "scatter into zeros": lambda x: tnp.zeros(5).at[INDICES].add(x),
    "set to zero": lambda x: x.at[1].set(0.0),
    "astype": lambda x: x.astype("complex128"),
    "conj": lambda x: tnp.conj(x * 1j),
    "0 x": lambda x: 0 * x,
    "dead code": lambda x: (tnp.sin(x), x)[1],
    "looked at": lambda x: (tl.debug.print("{}", x), x)[1],
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(name):
    f = ACCEPTED[name]
    tl.linear_transpose(f, X)
    program = tl.check_linear(f, X)
    assert all(v.linear for v in program.jaxpr.invars[len(program.consts) :])


# ---- LO8: rejected --------------------------------------------------------------------------------------------

BILINEAR, PRIMITIVE, AFFINE, CONSTANT = "bilinear", "nonlinear primitive", "affine", "constant"
PREDICATE, INDEX = "predicate depends on linear input", "index depends on linear input"
RESULT = "nonlinear result depends on linear input"

REJECTED = {
    "x*x": (lambda x: x * x, BILINEAR, "mul"),
    "sin x": (tnp.sin, PRIMITIVE, "sin"),
    "x+1": (lambda x: x + 1, AFFINE, "add"),
    "(x+1)-1": (lambda x: (x + 1) - 1, AFFINE, "add"),
    "1": (lambda x: 1.0, CONSTANT, None),
    "ones": (lambda x: tnp.ones(3), CONSTANT, "broadcast_in_dim"),
    "x*x/x": (lambda x: x * x / x, BILINEAR, "mul"),
    "exp(log x)": (lambda x: tnp.exp(tnp.log(x)), PRIMITIVE, "log"),
    "where(x>0, x, 2x)": (lambda x: tnp.where(x > 0, x, 2 * x), PREDICATE, "select_n"),
    "where(x>0, 1, 2)": (lambda x: tnp.where(x > 0, 1.0, 2.0), PREDICATE, "select_n"),
    "where(mask, x, 1)": (lambda x: tnp.where(MASK, x, 1.0), AFFINE, "select_n"),
    "(x>0) x": (lambda x: (x > 0) * x, PRIMITIVE, "gt"),
    "x>0": (lambda x: x > 0, RESULT, "gt"),
    "argmax": (tnp.argmax, RESULT, "argmax"),
    "x[argmax x]": (lambda x: x[tnp.argmax(x)], INDEX, "dynamic_slice"),
    "x[indices of x]": (lambda x: x[tnp.argsort(x)], INDEX, "gather"),
    "1/x": (lambda x: 1 / x, PRIMITIVE, "div"),
    "x/x": (lambda x: x / x, PRIMITIVE, "div"),
    "dot(x, x)": (lambda x: x @ x, BILINEAR, "dot_general"),
    "stop_gradient": (tl.stop_gradient, PRIMITIVE, "stop_gradient"),
    "max(x, 0)": (lambda x: tnp.maximum(x, 0), PRIMITIVE, "max"),
    "scan from 1": (lambda x: lax.scan(lambda c, a: (c + a, a), 1.0, x), AFFINE, "add"),
    "scan of products": (lambda x: lax.scan(lambda c, a: (c * a + a, a), 0.0, x), BILINEAR, "mul"),
    "scan that forgets 1": (lambda x: lax.scan(lambda c, a: (a, c), 1.0, x), AFFINE, "scan"),
    "cond of x": (lambda x: lax.cond(x[0] > 0, lambda x: x, lambda x: 2 * x, x), PREDICATE, "cond"),
    "cond, one branch affine": (lambda x: lax.cond(True, lambda x: x, lambda x: x + 1, x), AFFINE, "add"),
    "cond, one branch constant": (lambda x: lax.cond(True, lambda x: x, lambda x: np.ones(3), x), AFFINE, "cond"),
    "while until x": (lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: 2 * c, x), PREDICATE, "while"),
    "jit": (lambda x: tl.jit(lambda x, y: x * y)(x, x), BILINEAR, "mul"),
    "checkpoint": (lambda x: tl.checkpoint(lambda x: x + 1)(x), AFFINE, "add"),
    "custom_jvp": (lambda x: doubled(x) * doubled(x), BILINEAR, "mul"),
    "0 x x": (lambda x: 0 * x * x, BILINEAR, "mul"),
}


@pytest.mark.parametrize("name", REJECTED)
def test_rejected(name):
    f, reason, operation = REJECTED[name]
    for check in (tl.linear_transpose, tl.check_linear):
        with pytest.raises(tl.errors.LinearityError) as caught:
            check(f, X)
        assert caught.value.reason == reason
        found = caught.value.equation
        assert (found and str(found.primitive)) == operation
        assert found is None or found.source is None or "test_linearity.py" in str(found.source)


def test_errors_are_of_both_kinds():
    for kind in (TypeError, NotImplementedError):
        with pytest.raises(kind):
            tl.linear_transpose(tnp.sin, 1.0)


# ---- words ----------------------------------------------------------------------------------------------------


def looked_up(x):
    i = tnp.argmax(x)
    return x[i]


def test_an_index_names_both_places():
    message = (
        "looked_up is not linear (index depends on linear input): dynamic_slice goes by what argmax makes of a linear "
        f"value.\n  ḟ:f64[1] = dynamic_slice[slice_sizes=(1,)] ȧ ė\n  It was reached from "
        f"{place(looked_up, 'x[i]')}.\n  argmax was reached from {place(looked_up, 'argmax')}."
    )
    with raises(tl.errors.LinearityError, dotted(message)):
        tl.check_linear(looked_up, X)


def branching(x):
    return lax.cond(x[0] > 0, tnp.sin, tnp.cos, x)


def test_programs_inside_are_called_by_name():
    with pytest.raises(tl.errors.LinearityError) as caught:
        tl.check_linear(branching, X)
    lines = str(caught.value).splitlines()
    assert lines[0] == (
        "branching is not linear (predicate depends on linear input): cond goes by what gt makes of a linear value."
    )
    assert lines[1] == dotted("  ė:f64[3] = cond[branches=(@cos, @sin)] ḋ ȧ")


def pair(x):
    return x, A * A


def test_a_result_among_several():
    message = "pair is not linear (constant): its result 1, float64[3], does not depend on its arguments."
    with raises(tl.errors.LinearityError, message):
        tl.check_linear(pair, X)


def ratio(x):
    return A / x


def test_the_operand_is_numbered():
    message = (
        "ratio is not linear (nonlinear primitive): div is applied to a linear value as operand 2.\n"
        f"  ċ:f64[3] = div a ḃ\n  It was reached from {place(ratio, 'A / x')}."
    )
    with raises(tl.errors.LinearityError, dotted(message)):
        tl.check_linear(ratio, X)


# ---- LO9: strictness ------------------------------------------------------------------------------------------

SCALAR = ShapedArray((), np.dtype(np.float64))


def var(linear: bool = False) -> Var:
    return Var(SCALAR, linear)


def equation(primitive: Primitive, operands: list[Any], results: list[Var]) -> Equation:
    return Equation(primitive, operands, {}, results)


def sum_of_one() -> Jaxpr:
    x, y = var(True), var(True)
    return Jaxpr([x], [equation(add_p, [x, x], [y])], [y])


def unused_argument() -> Jaxpr:
    x, y = var(True), var(True)
    return Jaxpr([x, y], [], [x])


def nonlinear_of_linear() -> Jaxpr:
    x, y = var(True), var()
    return Jaxpr([x], [equation(sin_p, [x], [y])], [x, y])


def unused_nonlinear() -> Jaxpr:
    a, x, y = var(), var(True), var()
    return Jaxpr([a, x], [equation(sin_p, [a], [y])], [x])


def nonlinear_result() -> Jaxpr:
    x, y = var(True), var()
    return Jaxpr([x], [equation(mul_p, [Literal(np.float64(2.0)), x], [y])], [y])


LO9 = {
    sum_of_one: ("implicit dup", "f is not strict (implicit dup): ȧ:f64[] is read 2 times, without a dup."),
    unused_argument: ("implicit drop", "f is not strict (implicit drop): ḃ:f64[] is never read."),
    nonlinear_of_linear: (
        "nonlinear primitive",
        "f is not linear (nonlinear primitive): sin is applied to a linear value.",
    ),
    unused_nonlinear: (
        "implicit nonlinear drop",
        "f is not strict (implicit nonlinear drop): c:f64[] is never read.",
    ),
    nonlinear_result: (
        "nonlinear result depends on linear input",
        "f is not linear (nonlinear result depends on linear input): mul makes a nonlinear value of a linear one.",
    ),
}


@pytest.mark.parametrize("program", LO9, ids=lambda f: f.__name__)
def test_strict_programs_by_hand(program):
    reason, text = LO9[program]
    with pytest.raises(tl.errors.LinearityError) as caught:
        check_linear(program(), strict=True)
    assert caught.value.reason == reason
    assert str(caught.value).splitlines()[0] == dotted(text)


def test_what_strictness_asks_for():
    x, y, z, out, unused, rest = (var(True) for _ in range(6))
    program = Jaxpr(
        [x, unused],
        [
            equation(dup, [x], [y, z]),
            equation(drop, [unused], []),
            equation(add_p, [y, z], [out]),
            equation(lzero, [], [rest]),
        ],
        [out, rest],
    )
    check_linear(program, strict=True)
    assert strict_form(program) is not program
    assert str(strict_form(program)) == str(program)


def test_strictness_inside_of_calls():
    with pytest.raises(tl.errors.LinearityError, match=r"implicit dup.*, in twice"):
        tl.check_linear(lambda x: tl.jit(twice)(x), X, strict=True)


def twice(x):
    return x + x


# ---- strict form ----------------------------------------------------------------------------------------------


def choose(mask: Any, x: Any) -> Any:
    y = 2.0 * x
    return tnp.where(mask, x + y, 0), tnp.zeros(2)


def test_strict_form_prints():
    assert str(tl.strict_form(choose, MASK, X, linear=1)) == dotted(
        """{ lambda a:bool[3] ; ḃ:f64[3]. let
    ċ:f64[3] ḋ:f64[3] = dup ḃ
    e:f64[] = lit 2.0
    ḟ:f64[3] = mul e ċ
    ġ:f64[3] = add ḋ ḟ
    ḣ:f64[3] = select_n a 0.0 ġ
    i̇:f32[2] = lzero
  in ; ḣ, i̇ }"""
    )


@pytest.mark.parametrize("name", [name for name in ACCEPTED if name != "looked at"])
def test_strict_form_is_strict(name):
    strict = tl.strict_form(ACCEPTED[name], X, linear=0)
    check_linear(strict, strict=True)
    assert str(strict_form(strict)) == str(strict)
    assert {lit, lzero, dup, drop}.isdisjoint(core.all_primitives())


# ---- tables ---------------------------------------------------------------------------------------------------


def test_linear_primitives_are_those_that_are_transposed():
    carrying = {row.primitive for row in SAMPLES if list(subjaxprs(dict(row.params)))} | set(linearity.rules)
    transposed = set(transpose.rules)
    assert [p.name for p in transposed - carrying if p not in jvp.structurally_linear] == []


def test_every_primitive_that_carries_programs_is_checked_inside():
    """By a rule, or by the description of its bodies."""
    carrying = {row.primitive for row in SAMPLES if list(subjaxprs(dict(row.params)))}
    assert [p.name for p in carrying if p not in linearity.rules and p not in descriptions] == []


def test_programs_of_transforms_are_checked_while_tests_run():
    jaxpr = mark_linear(tl.make_jaxpr(lambda x: add(x, np.float64(1.0)))(X).jaxpr, (True,))
    with pytest.raises(tl.errors.LinearityError, match="affine"):
        checked_linear(jaxpr)


def test_a_rule_that_is_not_linear_is_found():
    wrong = Primitive("wrong", lambda x: (x,))
    try:
        jvp.rules[wrong] = lambda primals, tangents: ((primals[0],), (mul(tangents[0], tangents[0]),))
        with pytest.raises(tl.errors.LinearityError, match="bilinear"):
            tl.linearize(lambda x: wrong.bind(x)[0], tnp.ones(3))
    finally:
        forget(wrong)


def forget(primitive: Primitive) -> None:
    del jvp.rules[primitive], core._registry[primitive.name]


def test_time_is_linear_in_calls(monkeypatch):
    """Programs that are called are checked once for what they are given, however often that is."""
    f: Callable[..., Any] = lambda x: 2 * x  # noqa: E731
    for _ in range(8):
        f = tl.jit(lambda x, f=f: f(x) + f(x))
    program, seen = tl.make_jaxpr(f)(1.0).jaxpr, []
    environment = linearity.Check.environment
    monkeypatch.setattr(linearity.Check, "environment", lambda p, facts: seen.append(p) or environment(p, facts))
    check_linear(mark_linear(program, (True,)))
    assert len(seen) <= 10
