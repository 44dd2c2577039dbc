"""Programs written by hand, and what is said of those that are wrong, by line and column."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tests.messages import dotted, raises


def parsed(text: str) -> str:
    return str(tl.parse_jaxpr(text))


def test_by_hand():
    """Types of results may be left out, semicolons end equations, and names are one's own."""
    program = tl.parse_jaxpr("{ lambda x:f32[3] ; ẋ:f32[3]. let y = sin x; c = cos x; ẏ = mul c ẋ in y ; ẏ }")
    assert str(program) == dotted(
        """{ lambda a:f32[3] ; ḃ:f32[3]. let
    c:f32[3] = sin a
    d:f32[3] = cos a
    ė:f32[3] = mul d ḃ
  in c ; ė }"""
    )
    assert program.jaxpr.linear_in == (False, True)
    x = np.array([0.1, 0.2, 0.3], np.float32)
    y, t = tl.core.eval_jaxpr(program.jaxpr, program.consts, x, x)
    np.testing.assert_allclose(y, np.sin(x), rtol=1e-6)
    np.testing.assert_allclose(t, np.cos(x) * x, rtol=1e-6)


def test_linear_variables_in_any_order():
    """A semicolon says that what is linear comes last; otherwise dots say it."""
    text = dotted("{ lambda ȧ:f32[] b:f32[]. let\n    ċ:f32[] = mul ȧ b\n  in ċ, b }")
    assert parsed(text) == text
    assert tl.parse_jaxpr(text).jaxpr.linear_in == (True, False)


def test_sums_of_products():
    program = tl.parse_jaxpr(
        "{ lambda a:f64[3,4] b:f64[4,2]. let c:f64[3,2] = ein[c[i,j] += Σ k. [i >= k] a[i,k] b[k,j]] a b in c }"
    )
    a, b = np.arange(12.0).reshape(3, 4), np.arange(8.0).reshape(4, 2)
    (found,) = tl.core.eval_jaxpr(program.jaxpr, program.consts, tnp.asarray(a), tnp.asarray(b))
    np.testing.assert_array_equal(found, np.tril(a) @ b)


@pytest.mark.parametrize(
    "terms",
    [
        "c[i] += 2 a[i + 1] for i<2",
        "c[2i] += a[i] for i<1; c[1] += -1.5 a[2]",
        "c[i] += Σ j<2. a[i] a[j]",
        "c[i] += [i = clip(n, 0, 2)] a[i]",
        "c[i] += [i = clip(n[], 0, 2)] a[i]",
        "c[i] += [i = within(n[], 0, 2)] a[i]",
        "c[i] += [1 = n] a[i]",
        "c[i] += a[i] / a[2 - i]",
        "c[i] += [2i >= 3] conj(a[i])",
    ],
)
def test_terms(terms: str):
    head = "{ lambda a:f32[3] n:i32[]. let\n    c:f32[3] = ein["
    operands = "a n" if "n" in terms.replace("conj", "") else "a"
    text = f"{head}{terms}] {operands}\n  in c }}"
    named = text.replace("n:i32", "b:i32").replace("(n", "(b").replace("= n]", "= b]").replace(" a n", " a b")
    assert parsed(text) == named


@pytest.mark.parametrize("text", ["1.0", "-0.0", "nan", "inf", "-inf", "0.1", "1e-30", "3.4028235e+38", "1e-45"])
def test_numbers(text: str):
    program = f"{{ lambda a:f32[]. let\n    b:f32[] = mul {text} a\n  in b }}"
    assert parsed(program) == program


@pytest.mark.parametrize(
    "number",
    [
        *[
            "0.1:f16",
            "0.1:~f16",
            "0.100098:bf16",
            "3:i8",
            "-1:i4",
            "3:u64",
            "True",
            "(1-2j)",
            "(nan+infj):c128",
            "1j:c128",
        ],
        *["0.5:f8_e4m3fn", "1.5:f4_e2m1fn", "0x7fc00001:f32", "nan:f64", "key(1, 2)", "4607182418800017408:i64"],
    ],
)
def test_numbers_with_types(number: str):
    program = f"{{ lambda . in {number} }}"
    assert parsed(program) == program


def test_nan_bits():
    """A nan that no word says is written by its bits."""
    value = np.array(0xFFC12345, np.uint32).view(np.float32)[()]
    text = str(tl.make_jaxpr(lambda x: x * value)(np.float32(1)))
    assert "0xffc12345:" in text
    (found,) = tl.parse_jaxpr(text).eqns[0].invars[1:]
    assert np.asarray(found.value).view(np.uint32) == 0xFFC12345


def test_strings_are_quoted():
    text = str(tl.make_jaxpr(lambda x: tl.checkpoint_name(x, "a, b] = 'c'"))(1.0))
    assert "name=\"a, b] = 'c'\"" in text and parsed(text) == text


def test_names_that_are_words_of_the_format():
    """Variables are called by letters, but by no words: there are 300 of them here."""
    text = str(tl.make_jaxpr(lambda x: [x * i for i in range(300)])(1.0))
    assert " in:" not in text and parsed(text) == text


def test_calls_by_title():
    inner = "@g = { lambda a:f32[]. let b = sin a in b }\n"
    program = tl.parse_jaxpr(inner + "{ lambda a:f32[]. let b = jit[jaxpr=@g] a; c = jit[jaxpr=@g] b in c }")
    first, second = program.eqns
    assert first.params["jaxpr"] is second.params["jaxpr"]
    assert first.params["jaxpr"].name == "g"


# ---- what is wrong -------------------------------------------------------------------------------------------

WRONG = {
    "{ lambda a:f32[3]. let\n    b:f32[2] = sin a\n  in b }": (
        "line 2, column 5: b is written as f32[2], and sin of f32[3] gives f32[3]."
    ),
    "{ lambda a:f32[3] b:f32[2]. let c = add a b in c }": (
        "line 1, column 33: add of f32[3], f32[2] is not well typed: add: operands differ in shape: "
        "float32[3] and float32[2]. Broadcast them first."
    ),
    "{ lambda a:f32[3]. let b = sin c in b }": (
        "line 1, column 32: 'c' is no variable that is bound above: there are a."
    ),
    "{ lambda a:f32[3]. let a = sin a in a }": "line 1, column 24: a is bound above already, to f32[3].",
    "{ lambda a:f32[3]. let b = sine a in b }": "line 1, column 28: there is no operation 'sine'.",
    "{ lambda a:f32[3]. let b = sin[x=1] a in b }": (
        "line 1, column 24: sin of f32[3] is not well typed: sin has no param x: it has none."
    ),
    "{ lambda a:f32[3]. let b = reduce_sum a in b }": (
        "line 1, column 24: reduce_sum of f32[3] is not well typed: reduce_sum needs a value of axes."
    ),
    "{ lambda a:f32[3]. let b = jit[jaxpr=@g] a in b }": (
        "line 1, column 38: no program @g stands above: there are none."
    ),
    "{ lambda a:f33[3]. in a }": "line 1, column 12: 'f33' is not the short name of a dtype: they are like f32, i64",
    "{ lambda a. in a }": "line 1, column 11: the input a has no type: a:f32[3].",
    "{ lambda ; ȧ:f32[3]. let b = sin ȧ in b }": (
        "line 1, column 26: b has no dot, and by its operands sin gives a linear value there."
    ),
    "{ lambda a:f32[3]. let ḃ = sin a in ḃ }": (
        "line 1, column 24: ḃ has a dot, and by its operands sin gives no linear value there."
    ),
    "{ lambda ; a:f32[3]. in a }": "line 1, column 12: a stands among the linear inputs, and its name has no dot.",
    "{ lambda a:f32[]. let b, c = sin a in b }": "line 1, column 23: there is no operation 'b'.",
    "{ lambda a:f32[]. let b c = sin a in b }": "line 1, column 23: 2 results are written, and sin has 1.",
    "{ lambda a:i8[]. let b = add a 300 in b }": (
        "line 1, column 32: 300 is not a number of int8: 300 is not between -128 and 127, the limits of int8."
    ),
    "{ lambda a:f32[3]. let b = sin a": "line 1, column 33: ",
    "{ lambda a:f32[3]. in a } b": "line 1, column 27: the text goes on after the program: 'b'.",
    "sin(x)": "line 1, column 1: a program needs '{' here, and there is 'sin'.",
    "": "line 1, column 1: a program needs '{' here, and there is the end of the text.",
    "{ lambda a:f32[3]. let b = reduce_sum[axes=(0,) a in b }": "line 1, column 38: this bracket is not closed.",
    "{ lambda a:f32[3]. let b:f32[] = ein[b[] += Σ i. a[i + 1]] a in b }": (
        "line 1, column 47: how many values i has is not known, as it is nowhere an index by itself: write i<n"
    ),
    "{ lambda a:f32[3]. let b:f32[3] = ein[b[i] += c[i]] a in b }": (
        "line 1, column 47: 'c' is no operand of this equation, which has a."
    ),
    "{ lambda a:f32[3]. let b:f32[3] = ein[b[i] += a[i + 1]] a in b }": (
        "line 1, column 24: ein of f32[3] is not well typed: ein: factor a[i + 1], operand 0 of type "
        "float32[3], is out of range along axis 0 of 3"
    ),
    "{ lambda a:f32[3]. let b = sin a a in b }": (
        "line 1, column 24: sin of f32[3], f32[3] is not well typed: sin takes 1, not 2."
    ),
    "{ lambda a:f32[3]. let b = custom_jvp[custom=f] a in b }": (
        "line 1, column 46: f is a Python object, such as a function, of which text has only the name: give it, "
        "objects={'f': ...}."
    ),
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong(text: str):
    with pytest.raises(tl.errors.ProgramTextError) as caught:
        tl.parse_jaxpr(text)
    message = str(caught.value)
    assert message.startswith(("parse_jaxpr: " + dotted(WRONG[text]), "parse_jaxpr: " + WRONG[text]))
    assert message.startswith(f"parse_jaxpr: line {caught.value.line}, column {caught.value.column}: ")


def test_the_place_is_shown():
    with raises(
        tl.errors.ProgramTextError,
        "parse_jaxpr: line 2, column 5: b is written as f32[2], and sin of f32[3] gives f32[3].\n"
        "      b:f32[2] = sin a\n"
        "      ^",
    ):
        tl.parse_jaxpr("{ lambda a:f32[3]. let\n    b:f32[2] = sin a\n  in b }")


@pytest.mark.parametrize("seed", range(40))
def test_damaged_text(seed: int):
    """Text with characters left out, doubled or replaced is read as a program, or refused by name."""
    rng = np.random.default_rng(seed)
    program = tl.make_jaxpr(tl.grad(lambda x: tl.lax.scan(lambda c, y: (tnp.sin(c * y), c), x[0], x)[1].sum()))
    text = str(program(np.ones(3, np.float32)))
    for _ in range(5):
        k = int(rng.integers(len(text)))
        damaged = text[:k] + str(rng.choice(["", text[k] * 2, "]", "(", "0", "a", " ", "\n"])) + text[k + 1 :]
        try:
            tl.parse_jaxpr(damaged)
        except tl.errors.ProgramTextError as error:
            assert error.line >= 1 and error.column >= 1
