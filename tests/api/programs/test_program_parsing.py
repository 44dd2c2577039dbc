"""Programs as text by public calls: read, with constants, written by hand in Linear A."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tests.messages import dotted, raises

W = tnp.array([[0.1, 1e-30], [np.nan, -0.0]])


def layer(x):
    return tnp.tanh(W @ x)


X = np.ones(2, np.float32)


def test_constants_in_full():
    program = tl.make_jaxpr(layer)(X)
    text = tl.program_text(program, constants=True)
    assert text.splitlines()[0] == "{ lambda [a:f32[2,2]=[[0.1, 1e-30], [nan, -0.0]]] b:f32[2]. let"
    again = tl.parse_jaxpr(text)
    assert np.asarray(again.consts[0]).tobytes() == np.asarray(W).tobytes()
    assert str(again) == str(program) == tl.program_text(program)


def test_constants_that_are_given():
    text = str(tl.make_jaxpr(layer)(X))
    assert tl.parse_jaxpr(text, consts=[W]).consts == (W,)
    with raises(
        ValueError,
        "parse_jaxpr: the constants of the program, f32[2,2], have no values.\n"
        "  Pass consts=program.consts, or write them by tl.program_text(program, constants=True).",
    ):
        tl.parse_jaxpr(text)
    with raises(ValueError, "parse_jaxpr: 2 consts were given; the program has 1: f32[2,2]."):
        tl.parse_jaxpr(text, consts=[W, W])
    with raises(TypeError, "parse_jaxpr: consts[0] is float32[2], and the program has float32[2,2] there."):
        tl.parse_jaxpr(text, consts=[W[0]])


@pytest.mark.parametrize(
    "values",
    [
        np.zeros((2, 0), np.int8),
        np.array([True, False]),
        np.array([1 - 2j, np.inf], np.complex64),
        np.array([[0.5, -1.5]], tnp.bfloat16),
        np.array([[3], [-4]], "int4"),
        np.array(7, np.uint64),
    ],
    ids=lambda x: str(x.dtype),
)
def test_constants_of_any_dtype(values):
    x = tnp.asarray(values)
    text = tl.program_text(tl.make_jaxpr(lambda y: (x[None], y))(1.0), constants=True)
    consts = tl.parse_jaxpr(text).consts
    if values.ndim:
        assert (consts[0].dtype, consts[0].tobytes()) == (x.dtype, np.asarray(x).tobytes())


def test_keys_among_constants():
    keys = tl.random.split(tl.random.key(3), 2)
    text = tl.program_text(tl.make_jaxpr(lambda x: (keys[::-1], x))(1.0), constants=True)
    (found,) = tl.parse_jaxpr(text).consts
    np.testing.assert_array_equal(tl.random.key_data(found), tl.random.key_data(keys))


def test_large_constants():
    large = tnp.ones(10_001)
    program = tl.make_jaxpr(lambda x: large * x)(1.0)
    with raises(
        ValueError,
        "program_text: constant 0, float32[10001], has more than 10000 elements.\n"
        "  Leave constants=True out, and pass parse_jaxpr(text, consts=program.consts).",
    ):
        tl.program_text(program, constants=True)
    assert tl.parse_jaxpr(str(program), consts=program.consts).consts == program.consts


@pytest.mark.parametrize(
    ("constants", "message"),
    [
        ("[a:f32[2]=[1.0]]", "1 entries are here, and axis 0 of float32[2] has 2"),
        ("[a:f32[2]=[1.0, x]]", "a number belongs here, and there is 'x'"),
        ("[a:i8[1]=[300]]", "300 is not a number of int8: 300 is not between -128 and 127, the limits of int8"),
        ("[a:f32[1]=[1.0] b:f32[1]]", "the constant b has no value, and others have"),
    ],
)
def test_constants_that_are_wrong(constants, message):
    with pytest.raises(tl.errors.ProgramTextError) as caught:
        tl.parse_jaxpr(f"{{ lambda {constants} c:f32[1]. in c }}")
    assert f": {message}.\n" in str(caught.value)


# ---- Python objects ------------------------------------------------------------------------------------------


@tl.custom_jvp
def cube(x):
    return x**3


cube.defjvp(lambda primals, tangents: (cube(*primals), 3 * primals[0] ** 2 * tangents[0]))


def test_python_objects_are_given_by_name():
    program = tl.make_jaxpr(cube)(2.0)
    with pytest.raises(tl.errors.ProgramTextError, match=r"cube is a Python object, .*objects={'cube'"):
        tl.parse_jaxpr(str(program))
    rule = program.eqns[0].params["custom"]
    again = tl.parse_jaxpr(str(program), objects={"cube": rule})
    assert again.eqns[0].params["custom"] is rule
    grad = tl.grad(lambda x: tl.core.eval_jaxpr(again.jaxpr, again.consts, x)[0])
    np.testing.assert_allclose(grad(2.0), 12.0)


@pytest.mark.parametrize(
    "policy",
    [
        None,
        tl.checkpoint_policies.dots_saveable,
        tl.checkpoint_policies.budget(100),
        tl.checkpoint_policies.save_only_these_names("h"),
        tl.checkpoint_policies.save_from_both_policies(
            tl.checkpoint_policies.dots_saveable, tl.checkpoint_policies.save_any_names_but_these("a", "b")
        ),
    ],
    ids=lambda policy: getattr(policy, "__name__", str(policy)),
)
def test_policies_are_known(policy):
    program = tl.make_jaxpr(tl.checkpoint(lambda x: tnp.sin(tl.checkpoint_name(x, "h")), policy=policy))(1.0)
    (eqn,), (again,) = program.eqns, tl.parse_jaxpr(str(program)).eqns
    assert again.params["policy"] == eqn.params["policy"]


def test_what_is_no_program():
    with raises(TypeError, "parse_jaxpr: expected the text of a program, not an object of type int."):
        tl.parse_jaxpr(3)
    with raises(TypeError, "program_text: expected a program, such as tl.make_jaxpr(f)(*args), not 3."):
        tl.program_text(3)


# ---- Linear A by hand ----------------------------------------------------------------------------------------

ROW_6 = """{ lambda x:f64[] y:f64[]. let
    a = add x 1.0
    b = mul 2.0 x
    c = mul y y
    d = add b c
    e = mul a d
    f = mul e e
  in f }"""


def test_work_of_a_program_by_hand():
    """LO1, row 6: ((x + 1)(2x + y²))², whose gradient at (1, 3) is (660, 528)."""
    program = tl.parse_jaxpr(ROW_6)
    named = (
        ROW_6.replace("1.0", "one").replace("2.0", "two").replace("let", "let one:f64[] = lit 1.0; two:f64[] = lit 2.0")
    )
    assert tl.work(program) == tl.work(tl.parse_jaxpr(named)) == 6

    def f(x, y):
        return tl.core.eval_jaxpr(program.jaxpr, (), x, y)[0]

    with tl.enable_x64(True):
        assert tl.grad(f, (0, 1))(1.0, 3.0) == (660.0, 528.0)
        halves = tl.unzip(f, 1.0, 3.0, strict=True)
    assert (tl.work(halves), tl.work(halves.primal), tl.work(halves.linear), tl.work(halves.transposed)) == (
        20,
        6,
        14,
        13,
    )


LO9 = {
    "{ lambda ; ȧ:f64[]. let ḃ = add ȧ ȧ in ḃ }": (
        "implicit dup",
        "f is not strict (implicit dup): ȧ:f64[] is read 2 times, without a dup.",
    ),
    "{ lambda ; ȧ:f64[] ḃ:f64[]. in ȧ }": (
        "implicit drop",
        "f is not strict (implicit drop): ḃ:f64[] is never read.",
    ),
    "{ lambda ; ȧ:f64[]. let ḃ = sin ȧ in ḃ }": (
        "nonlinear primitive",
        "f is not linear (nonlinear primitive): sin is applied to a linear value.",
    ),
    "{ lambda a:f64[] ; ḃ:f64[]. let c = sin a in ḃ }": (
        "implicit nonlinear drop",
        "f is not strict (implicit nonlinear drop): c:f64[] is never read.",
    ),
}


@pytest.mark.parametrize("text", LO9)
def test_programs_that_are_not_strict(text):
    """LO9, by public calls: four distinct errors."""
    reason, message = LO9[text]
    with pytest.raises(tl.errors.LinearityError) as caught:
        tl.check_linear(tl.parse_jaxpr(text), strict=True)
    assert caught.value.reason == reason
    assert str(caught.value).splitlines()[0] == dotted(message)


def test_a_strict_program_by_hand():
    text = dotted(
        """{ lambda a:f64[] ; ḃ:f64[] ċ:f64[]. let
    ḋ:f64[] ė:f64[] = dup ḃ
    drop ċ
    ḟ:f64[] = mul a ḋ
    ġ:f64[] = add ḟ ė
    ḣ:f64[] = lzero
  in ; ġ, ḣ }"""
    )
    program = tl.parse_jaxpr(text)
    assert tl.check_linear(program, strict=True) is program
    assert str(program) == text == str(tl.strict_form(program))
    with raises(
        TypeError, "check_linear: a program takes no arguments here, and its variables say which inputs are linear."
    ):
        tl.check_linear(program, 1.0)


def test_linear_variables_can_be_typed():
    typed = tl.parse_jaxpr("{ lambda a:f32[] ; b':f32[] cd':f32[]. let c' = mul a b'; d' = add c' cd' in ; d' }")
    shown = dotted("""{ lambda a:f32[] ; ḃ:f32[] ċ:f32[]. let
    ḋ:f32[] = mul a ḃ
    ė:f32[] = add ḋ ċ
  in ; ė }""")
    assert str(typed) == shown


def test_strict_forms_are_read():
    def f(x):
        return tl.lax.scan(lambda c, y: (tnp.sin(c) * y, c * x[0]), x[1], x)[1]

    halves = tl.unzip(f, X, strict=True)
    for program in (halves.linear, halves.transposed, tl.strict_form(halves.linear)):
        assert str(tl.parse_jaxpr(str(program))) == str(program)
        tl.check_linear(tl.parse_jaxpr(str(program)), strict=True)
