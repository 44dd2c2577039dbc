"""unzip, check_linear, strict_form, cost as users call them; LO1 to the last scalar."""

from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import checkpoint_policies as policies
from tapeless import lax
from tapeless.interpreters.analysis.linear_a import jvp, transpose, unzip
from tapeless.interpreters.analysis.strict_form import strict_form
from tapeless.tracer.jaxpr import Equation, Jaxpr, Literal, Var, eval_jaxpr, subjaxprs
from tapeless.tracer.primitives.elementwise import add_p, mul_p
from tapeless.tracer.types import ShapedArray
from tests.messages import dotted, place, raises

ONE = np.float64(1.0)


def f64(*items: float) -> Any:
    return np.array(items, np.float64)


# ---- LO1, LO2: the work table ---------------------------------------------------------------------------------


def squares(x):
    s, c = tnp.sin(x), tnp.cos(x)
    return s * s + c * c


def eighth(x):
    for _ in range(3):
        x = x * x
    return x


def polynomial(x, y):
    z = (x + 1) * (2 * x + y * y)
    return z * z


def dead() -> Jaxpr:
    """x*x, dropped, then x+1: no function of Python, whose dead code is not even traced."""
    scalar = ShapedArray((), np.dtype(np.float64))
    x, unused, y = Var(scalar), Var(scalar), Var(scalar)
    one = Literal(ONE, scalar)
    return Jaxpr([x], [Equation(mul_p, [x, x], {}, [unused]), Equation(add_p, [x, one], {}, [y])], [y])


# W f, W Jf, nonlinear half, linear half, its transpose, residuals; where, and the gradient there
LO1 = {
    "x*x": (lambda x: x * x, (1, 4, 1, 3, 3, 1), (3,), (6,)),
    "x+x": (lambda x: x + x, (1, 2, 1, 1, 1, 0), (3,), (2,)),
    "sin x": (tnp.sin, (1, 3, 2, 1, 1, 1), (0.7,), (np.cos(0.7),)),
    "sin²x+cos²x": (squares, (5, 17, 8, 9, 9, 4), (0.7,), (0,)),
    "x+1": (lambda x: x + 1, (1, 2, 1, 1, 1, 0), (3,), (1,)),
    "Π(Mv)": (lambda x, y: (2 * x + 7 * y) * (1 * x + 8 * y), (7, 24, 7, 17, 16, 8), (2, 3), (77, 382)),
    "((x+1)(2x+y²))²": (polynomial, (6, 20, 6, 14, 13, 6), (1, 3), (660, 528)),
    "x⁸": (eighth, (3, 12, 3, 9, 9, 3), (1.1,), (8 * 1.1**7,)),
}


@pytest.mark.parametrize("name", LO1)
def test_lo1_work(name):
    f, expected, at, gradient = LO1[name]
    args = tuple(map(np.float64, at))
    strict = tl.unzip(f, *args, strict=True)
    function = tl.strict_form(f, *args)
    both = jvp(function)
    programs = (function, both, strict.primal, strict.linear, strict.transposed)
    assert (*map(tl.work, programs), len(strict.residuals)) == expected
    assert tl.work(strict) == tl.work(both)
    np.testing.assert_allclose(tl.grad(f, tuple(range(len(at))))(*args), gradient, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("name", LO1)
def test_what_is_used_costs_no_more_than_lo1(name):
    f, (function, both, _, linear, transposed, most), at, _ = LO1[name]
    used = tl.unzip(f, *map(np.float64, at))
    assert tl.cost(f, *map(np.float64, at)).work <= function
    assert tl.work(used) <= both
    assert tl.work(used.linear) <= linear
    assert tl.work(used.transposed) <= transposed
    assert len(used.residuals) <= most


def test_lo1_dead_code():
    function = strict_form(dead())
    halves = unzip(jvp(function))
    programs = (function, jvp(function), halves.nonlinear, halves.linear, transpose(halves.linear))
    assert (*map(tl.work, programs), halves.residuals) == (3, 8, 3, 5, 5, 1)


def test_lo2():
    m, v = np.array([[2.0, 7.0], [1.0, 8.0]]), f64(2, 3)
    value, gradient = tl.value_and_grad(lambda v: tnp.prod(m @ v))(v)
    np.testing.assert_allclose(value, 650, rtol=1e-15)
    np.testing.assert_allclose(gradient, (77, 382), rtol=1e-14)


# ---- unzip ----------------------------------------------------------------------------------------------------


def running(x):
    return tnp.sin(x) * x


def test_unzip_prints():
    line = place(running, "tnp.sin")
    assert str(tl.unzip(running, ONE)) == dotted(
        f"""primal
{{ lambda a:~f64[]. let
    b:~f64[] = sin a
    c:~f64[] = cos a
    d:~f64[] = mul b a
  in d, c, a, b }}

linear
{{ lambda a:~f64[] b:~f64[] c:~f64[] ; ḋ:~f64[]. let
    ė:~f64[] = mul ḋ a
    ḟ:~f64[] = mul ė b
    ġ:~f64[] = mul c ḋ
    ḣ:~f64[] = add ḟ ġ
  in ; ḣ }}

residuals
float64[] from cos at {line}
float64[] the argument x
float64[] from sin at {line}
3 arrays of 24 bytes; 0 operations computed again"""
    )


def test_transposed_prints():
    assert str(tl.unzip(running, ONE, strict=True).transposed) == dotted(
        """{ lambda a:~f64[] b:~f64[] c:~f64[] ; ḋ:~f64[]. let
    ė:~f64[] ḟ:~f64[] = dup ḋ
    ġ:~f64[] = mul ė c
    ḣ:~f64[] = mul ḟ b
    i̇:~f64[] = mul ḣ a
    j̇:~f64[] = add i̇ ġ
  in ; j̇ }"""
    )


def test_programs_transposed_twice():
    """T4: to the first one, but for the order of equations and operands."""
    u = tl.unzip(running, ONE, strict=True)
    again = tl.transpose_jaxpr(u.transposed, strict=True)
    assert sorted(str(eqn.primitive) for eqn in again.eqns) == sorted(str(eqn.primitive) for eqn in u.linear.eqns)
    assert str(tl.transpose_jaxpr(u.linear, strict=True)) == str(u.transposed)
    given = f64(2, 3, 5, 7)
    for strict in (False, True):
        linear = tl.unzip(running, ONE).linear
        there = tl.transpose_jaxpr(linear, strict=strict)
        back = tl.transpose_jaxpr(there, strict=strict)
        assert any(eqn.primitive.name == "dup" for eqn in back.eqns) == strict
        if not strict:
            assert compute(back, given) == compute(there, given) == compute(linear, given)


def test_transpose_jaxpr_of_programs_with_constants():
    """Zeros that are captured are residuals, which nothing reads."""
    zero = np.zeros(2)
    program = tl.check_linear(lambda x: tnp.concatenate([x, zero]), np.ones(1))
    (pulled,) = compute(tl.transpose_jaxpr(program), [zero, f64(1, 2, 3)])
    assert pulled == f64(1)
    assert [eqn.primitive.name for eqn in tl.transpose_jaxpr(program, strict=True).eqns] == ["drop", "split", "drop"]


def test_errors_of_transpose_jaxpr():
    with raises(
        TypeError,
        "transpose_jaxpr: expected a program, not 3.\n"
        "  Pass tl.unzip(f, *args).linear for a derivative; tl.linear_transpose transposes functions.",
    ):
        tl.transpose_jaxpr(3)  # type: ignore[arg-type]
    u = tl.unzip(running, ONE, strict=True)
    with raises(ValueError, "transpose_jaxpr: the program is in strict form, it has dup: pass strict=True."):
        tl.transpose_jaxpr(u.linear)
    with pytest.raises(tl.errors.LinearityError, match=r"transpose_jaxpr: no input of running is marked as linear"):
        tl.transpose_jaxpr(tl.make_jaxpr(running)(ONE))
    looping = tl.check_linear(lambda x: lax.while_loop(lambda x: True, lambda x: 2 * x, x), ONE)
    with pytest.raises(NotImplementedError, match="the strict form of a derivative of while is not known"):
        tl.transpose_jaxpr(looping, strict=True)


def test_the_program_that_is_unzipped():
    """Value and tangent in one; in strict form it has the work of both halves."""
    for strict in (False, True):
        u = tl.unzip(running, ONE, strict=strict)
        assert u.jvp.jaxpr.linear_in == (False, True) and [v.linear for v in u.jvp.jaxpr.outvars] == [False, True]
        assert tl.work(u.jvp) == tl.work(u) == 7
    scale = f64(1, 2, 3)
    u = tl.unzip(lambda x: scale * x * x, scale)
    value, pushed = compute(u.jvp.jaxpr, [*u.jvp.consts, f64(1, 2, 3), f64(1, 0, 1)])
    np.testing.assert_allclose([value, pushed], [(1, 8, 27), (2, 0, 18)])


def test_the_halves_are_programs():
    u = tl.unzip(running, ONE)
    value, *saved = compute(u.primal.jaxpr, [*u.primal.consts, f64(2.0)[0]])
    np.testing.assert_allclose(value, np.sin(2) * 2)
    slope = np.sin(2) + 2 * np.cos(2)
    np.testing.assert_allclose(compute(u.linear, [*saved, ONE]), [slope])
    np.testing.assert_allclose(compute(u.transposed, [*saved, ONE]), [slope])


def compute(jaxpr: Jaxpr, args: list[Any]) -> list[Any]:
    return [np.asarray(x) for x in eval_jaxpr(jaxpr, args)]


def test_policies_choose_the_residuals():
    at = tl.ShapeDtypeStruct((100,), "float64")
    everything, nothing = tl.unzip(running, at), tl.unzip(running, at, policy=policies.nothing_saveable)
    assert tl.residual_bytes(everything) == everything.residuals.nbytes == 2400
    assert tl.residual_bytes(nothing) == 800
    assert [r.argument for r in nothing.residuals] == ["the argument x"]
    assert nothing.residuals.recomputed == 2  # the sine and the cosine
    assert tl.work(nothing) == tl.work(everything) + 200 - 100  # but the cosine is computed once: the primal has it not
    message = "unzip: strict=True takes no policy, for the strict form saves every residual. Leave one of them out."
    with raises(ValueError, message):
        tl.unzip(running, ONE, policy=policies.nothing_saveable, strict=True)


def test_unzip_of_trees_constants_and_integers():
    scale = f64(1, 2, 3)

    def f(params, n):
        return {"y": tnp.sum(scale * params["w"] * params["w"]) * n, "n": n}

    u = tl.unzip(f, {"w": f64(1, 2, 3)}, 3)
    assert len(u.linear.outvars) == 1  # integers have no tangent
    assert sum(u.linear.linear_in) == 1
    assert any("params['w']" in str(r) for r in u.residuals)
    assert tl.residual_bytes(u) == sum(v.aval.size * v.aval.dtype.itemsize for v in u.linear.invars if not v.linear)


def nested(n: int) -> Any:
    """n calls, each in the body of the next."""
    f = lambda x: tnp.sin(x) * x  # noqa: E731
    for _ in range(n):
        f = tl.jit(lambda x, f=f: f(x) * x)
    return f


def in_a_row(n: int) -> Any:
    """n calls of one function, each of the result of the one before."""
    f = tl.jit(lambda x: tnp.sin(x) * x)

    def run(x: Any) -> Any:
        for _ in range(n):
            x = f(x)
        return x

    return run


def programs_of(f: Any) -> list[Jaxpr]:
    """Both halves, the transposed one, and the gradient as one program."""
    u = tl.unzip(f, ONE)
    return [u.primal.jaxpr, u.linear, u.transposed, tl.make_jaxpr(tl.grad(f))(ONE).jaxpr]


def distinct(jaxpr: Jaxpr, found: dict[Jaxpr, None]) -> dict[Jaxpr, None]:
    """A program and those that it carries, each once."""
    if jaxpr not in found:
        found[jaxpr] = None
        for eqn in jaxpr.eqns:
            for inner in subjaxprs(eqn.params):
                distinct(inner, found)
    return found


def equations(jaxpr: Jaxpr) -> int:
    return sum(len(body.eqns) for body in distinct(jaxpr, {}))


def references(jaxpr: Jaxpr) -> int:
    """Of equations that are not calls: what calls pass on is not counted."""
    return sum(len(eqn.invars) for body in distinct(jaxpr, {}) for eqn in body.eqns if not any(subjaxprs(eqn.params)))


def bodies(jaxpr: Jaxpr) -> int:
    return len(distinct(jaxpr, {}))


def is_linear_in_n(measure: Any, f: Any) -> bool:
    found = np.array([list(map(measure, programs_of(f(n)))) for n in (2, 4, 6, 8)])
    return not np.any(np.diff(found, 2, axis=0))


@pytest.mark.parametrize("f", [nested, in_a_row])
@pytest.mark.parametrize("measure", [bodies, equations, references])
def test_bodies_are_never_copied(f, measure):
    """LO11: the programs of n calls are linear in n, each body being there once."""
    assert is_linear_in_n(measure, f)


def test_calls_in_a_row_share_their_body():
    assert [list(map(bodies, programs_of(in_a_row(n)))) for n in (2, 5, 9)] == [[2, 2, 2, 3]] * 3
    assert is_linear_in_n(tl.program_size, in_a_row)


def test_calls_in_calls_pass_no_residuals_on():
    """A function that is called once is written in the place of its call: so its residuals are in one list."""
    assert is_linear_in_n(tl.program_size, nested)
    assert list(map(bodies, programs_of(nested(9)))) == [1, 1, 1, 3]


def test_what_is_called_twice_passes_its_residuals_on():
    """Of n functions, each of which calls the next one twice, there are n bodies, and 2**n residuals."""

    def twice(n: int) -> Any:
        f = tl.jit(lambda x: tnp.sin(x) * x)
        for _ in range(n):
            f = tl.jit(lambda x, f=f: f(f(x)))
        return f

    for measure in (bodies, equations):
        assert is_linear_in_n(measure, twice)
    lists = [sum(not v.linear for v in tl.unzip(twice(n), ONE).linear.invars) for n in (2, 4, 6)]
    assert lists[2] / lists[1] == lists[1] / lists[0] == 4


# ---- check_linear and strict_form -----------------------------------------------------------------------------


def test_check_linear_in_some_arguments():
    program = tl.check_linear(lambda a, x, y: a * x + y, ONE, ONE, ONE, linear=(1, 2))
    assert program.jaxpr.linear_in == (False, True, True)
    assert tl.check_linear(lambda a, x: a * x, 3, ONE, linear=-1).jaxpr.linear_in == (False, True)

    def product(a, x):
        return a * x

    text = "product is not linear (bilinear): mul multiplies two values that are both linear."
    line = place(product, "a * x")
    message = f"{text}\n  ċ:f64[] = mul ȧ ḃ\n  It was reached from {line}."
    with raises(tl.errors.LinearityError, dotted(message)):
        tl.check_linear(product, ONE, ONE)


def test_check_linear_of_trees():
    tl.check_linear(lambda p, a: {"z": p["x"] + a * p["y"][0]}, {"x": ONE, "y": [ONE]}, ONE, linear=0)


def test_check_linear_asks_for_what_can_be_linear():
    with raises(TypeError, "check_linear: arguments must be floating point or complex, not int32[]."):
        tl.check_linear(lambda x: x, 1)
    with pytest.raises(ValueError, match="check_linear: argnums=2 names argument 2"):
        tl.check_linear(lambda x: x, ONE, linear=2)


def test_check_linear_strictly():
    tl.check_linear(lambda x: 2.0 * x, ONE, strict=True)

    def doubled(x):
        return x + x

    text = "doubled is not strict (implicit dup): ȧ:f64[] is read 2 times, without a dup.\n  ḃ:f64[] = add ȧ ȧ\n"
    with raises(tl.errors.LinearityError, dotted(f"{text}  It was reached from {place(doubled, 'x + x')}.")):
        tl.check_linear(doubled, ONE, strict=True)
    with pytest.raises(tl.errors.LinearityError, match=r"implicit drop\)"):
        tl.check_linear(lambda x, y: x, ONE, ONE, strict=True)


def test_strict_form_of_programs_and_functions():
    of_function = tl.strict_form(running, ONE)
    assert str(of_function) == str(tl.strict_form(tl.make_jaxpr(running)(ONE)))
    linear = tl.linearize(running, ONE)[1]
    operations = [str(eqn.primitive) for eqn in tl.strict_form(linear).eqns]
    products = ["mul"] * sum(
        eqn.primitive is mul_p for eqn in linear.jaxpr.eqns
    )  # two of them, or one of their product
    assert [name for name in operations if name != "lit"] == ["dup", *products, "add"]
    assert str(tl.strict_form(lambda x, y: x, ONE, ONE, linear=(0, 1))) == dotted(
        "{ lambda ; ȧ:f64[] ḃ:f64[]. let\n    drop ḃ\n  in ; ȧ }"
    )
    with raises(TypeError, "strict_form: expected a program or a function and its arguments, not 3."):
        tl.strict_form(3)
    with raises(
        TypeError, "strict_form: expected one program, not the halves of `unzip`: pass its `.primal` or `.linear`."
    ):
        tl.strict_form(tl.unzip(running, ONE))


# ---- linear_transpose -----------------------------------------------------------------------------------------


def test_adjoint():
    """<y, f(x)> = <f*(y), x> with conjugation; the transpose is without."""
    a = np.array([[1 + 2j, 3j], [2 - 1j, 4]])
    x, y = np.array([1j, 2.0]), np.array([3 - 1j, 1j])
    (plain,) = tl.linear_transpose(lambda x: a @ x, x)(y)
    (conjugated,) = tl.linear_transpose(lambda x: a @ x, x, adjoint=True)(y)
    np.testing.assert_allclose(plain, a.T @ y)
    np.testing.assert_allclose(conjugated, a.conj().T @ y)
    np.testing.assert_allclose(np.vdot(y, a @ x), np.vdot(conjugated, x))


def test_adjoint_of_real_is_transpose():
    a = np.arange(6.0).reshape(2, 3)
    for adjoint in (False, True):
        (pulled,) = tl.linear_transpose(lambda x: a @ x, np.ones(3), adjoint=adjoint)(f64(1, 2))
        np.testing.assert_allclose(pulled, a.T @ f64(1, 2))


def test_zeros_that_are_captured():
    zero = tnp.zeros(2)
    (pulled,) = tl.linear_transpose(lambda x: tnp.concatenate([x, zero]), np.ones(2))(f64(1, 2, 3, 4))
    np.testing.assert_allclose(pulled, (1, 2))
    with pytest.raises(tl.errors.LinearityError, match="affine"):
        tl.linear_transpose(lambda x: tnp.concatenate([x, zero + 1]), np.ones(2))


def test_linear_scan_is_transposed():
    def f(x):
        return lax.scan(lambda c, a: (0.5 * c + a, c), 0.0, x)[0]

    (pulled,) = tl.linear_transpose(f, np.ones(4))(ONE)
    np.testing.assert_allclose(pulled, (0.125, 0.25, 0.5, 1))


# ---- cost -----------------------------------------------------------------------------------------------------


def test_cost_of_whatever_is_a_program():
    closed = tl.make_jaxpr(running)(ONE)
    linear = tl.linearize(running, ONE)[1]
    halves = tl.unzip(running, ONE)
    assert tl.cost(closed) == tl.cost(closed.jaxpr) == tl.cost(running, ONE)
    assert tl.work(linear) == tl.cost(linear).work <= tl.work(halves.linear) <= 4
    assert tl.work(halves) == tl.work(halves.primal) + tl.work(halves.linear) <= 7
    assert tl.program_size(halves) == tl.program_size(halves.primal) + tl.program_size(halves.linear)
    with raises(TypeError, "cost: expected a program or a function and its arguments, not 'f'."):
        tl.cost("f")


def triangular(x):
    return tnp.sum(tnp.tril(x) @ x)


def test_cost_in_two_models_prints():
    found = tl.cost(triangular, tl.ShapeDtypeStruct((30, 30), "float64"))
    assert (
        str(found)
        == """\
            strict  sparse
nonlinear   55,799  27,899
adds             0       0
multiplies       0       0
drops            0       0
work        55,799  27,899
moved 1,800 scalars, 7,200 bytes
program size 15, residuals 7,200 bytes"""
    )


def test_cost_of_linear_jaxprs_has_kinds():
    strict = tl.unzip(running, ONE, strict=True)
    found = tl.cost(strict.transposed)
    assert (found.nonlinear, found.adds, found.multiplies, found.drops, found.work) == (0, 1, 3, 0, 4)
    assert (found.moved, found.moved_bytes, found.program_size) == (0, 0, tl.program_size(strict.transposed))
    assert found.residual_bytes == tl.residual_bytes(strict) == 24
    dropping = tl.cost(tl.check_linear(lambda x: x[:2], np.ones(5)))
    assert (dropping.drops, dropping.sparse.drops, dropping.moved, dropping.moved_bytes) == (3, 0, 2, 16)


def test_cost_knows_constants_that_are_captured():
    mask = np.eye(6)
    found = tl.cost(lambda x: (x * mask) @ x, np.ones((6, 6)))
    assert found.sparse.work == 36
    assert found.work == 36 + 36 * 6 + 36 * 5


def test_cost_as_xla_counts():
    """Compiled when it is asked for, from types alone; then it is printed too."""
    found = tl.cost(lambda x, y: tnp.sin(x @ y), *[tl.ShapeDtypeStruct((8, 8), "float32")] * 2)
    assert "XLA" not in str(found)
    assert found.xla.flops == pytest.approx(2 * 8**3, rel=0.2)
    assert found.xla.transcendentals == 64
    assert found.xla.bytes_accessed >= 3 * 8 * 8 * 4
    assert str(found).endswith(f"\nXLA {found.xla}") and str(found.xla).endswith(" bytes accessed")


def test_cost_as_xla_counts_of_both_halves():
    halves = tl.unzip(lambda x: tnp.sin(x) * x, np.ones(100))
    parts = [tl.cost(halves.primal).xla, tl.cost(halves.linear).xla]
    assert tl.cost(halves).xla == tuple(map(sum, zip(*parts)))
    strict = tl.unzip(running, ONE, strict=True)
    with pytest.raises(NotImplementedError, match="no emit rule for 'dup'"):
        _ = tl.cost(strict.linear).xla


def test_costs_are_equal_if_they_are_in_both_models():
    one, other = tl.cost(lambda x: x * x, np.ones(3)), tl.cost(lambda x: x * x, 2 * np.ones(3))
    assert one == other and hash(one) == hash(other) and repr(one) == str(one)
    assert one != tl.cost(lambda x: x * x, np.ones(4)) and one != one.strict


def test_what_is_no_program_no_function_or_no_policy():
    help = "\n  Pass tl.make_jaxpr(f)(*args) for a function, tl.unzip(f, *args) for its derivative."
    with raises(TypeError, "work: expected a program, not 'abc'." + help):
        tl.work("abc")
    with raises(TypeError, "program_size: expected a program, not 3." + help):
        tl.program_size(3)
    with raises(TypeError, "residual_bytes: expected the result of tl.unzip, not an object of type ClosedJaxpr."):
        tl.residual_bytes(tl.make_jaxpr(tnp.sin)(1.0))
    with raises(TypeError, "unzip: expected a function and its arguments, not 3."):
        tl.unzip(3, 1.0)
    with raises(TypeError, "unzip: expected a policy of tl.checkpoint_policies, or a function, not 3."):
        tl.unzip(tnp.sin, 1.0, policy=3)
    with raises(TypeError, "check_linear: expected a function, not 2."):
        tl.check_linear(2, 1.0)
    with raises(TypeError, "linear_transpose: expected arrays, or their types, not 'abc' of type str."):
        tl.linear_transpose(tnp.sin, "abc")


@pytest.mark.parametrize("program", [lambda f: tl.make_jaxpr(f)(1.0), lambda f: tl.make_jaxpr(f)(1.0).jaxpr])
@pytest.mark.parametrize("f", [lambda x: 2 * x, lambda x: x, tl.jit(lambda x: (x, x))])
@pytest.mark.parametrize("strict", [False, True])
def test_transposing_a_program_without_linear_inputs_says_how_to_mark_them(program, f, strict):
    with pytest.raises(
        tl.errors.LinearityError, match=r"(?s)no input of .* is marked as linear, .*\n  tl\.check_linear\(f, \*args"
    ):
        tl.transpose_jaxpr(program(f), strict=strict)
    tl.transpose_jaxpr(tl.check_linear(f, 1.0))
