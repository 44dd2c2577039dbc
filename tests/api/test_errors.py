"""What users read when something is wrong: whole messages, word for word."""

import functools
import inspect
import re
import string
import traceback

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.tracer.jaxpr import eval_jaxpr
from tests.messages import NO_CHILD, WIDTHS, dotted, place, raises

# ---- a traced value where Python needs a number ---------------------------------------------------------------


def relu(x):
    if x > 0:
        return x
    return 0 * x


def count(n):
    return sum(range(n))


def as_float(x):
    return float(x)


def as_array(x):
    return np.sin(x)


def formatted(x):
    return f"{x:.3f}"


STATIC, CLOSE_OVER = "make the argument static (static_argnames)", "close over the value where it is known"
CHOICE = f"Use tnp.where or lax.cond for a choice, lax.while_loop for a loop, or {STATIC}."
COUNT = f"Shapes, counts and Python indices must be known when tracing: {STATIC}."
FLOAT = "Keep it an array (tnp.* instead of math.*), or compute it outside of the traced function."
FORMAT = 'Write tl.debug.print("{:.3f}", x), which prints it when the program runs; f"{x}" shows the type.'
NUMPY = "Use tapeless.numpy (tnp) instead of numpy on traced arrays, or compute outside of the traced function."


def refusal(what, aval, f, text, help, made=""):
    (name,) = inspect.signature(f).parameters
    return (
        f"the {what} of a traced array is not known: {aval}, asked for at {place(f, text)}.\n"
        f"  Traced: {place(f)}, traced for jit.\n"
        f"  It {'depends on' if made else 'is'} {name}, argument 0 of {f.__name__}.\n{made}  {help}"
    )


def test_if_under_jit():
    made = f"  It was computed at {place(relu, 'if x > 0')}.\n"
    message = refusal("truth value", "bool[]", relu, "if x > 0", CHOICE, made)
    for f in (tl.jit(relu), tl.grad(tl.jit(relu)), tl.jit(lambda x: tl.jit(relu)(x))):
        with raises(tl.errors.TracerBoolConversionError, message):
            f(1.0)


def doubled_in_training(train):
    return 2.0 if train else 1.0


def test_a_flag_under_jit_is_to_be_static():
    help = f"{STATIC.capitalize()}, or use tnp.where or lax.cond for a choice, lax.while_loop for a loop."
    message = refusal("truth value", "bool[]", doubled_in_training, "return", help)
    with raises(tl.errors.TracerBoolConversionError, message):
        tl.jit(doubled_in_training)(True)


STATIC_ARGUMENTS = {
    "jit": tl.jit,
    "checkpoint": tl.checkpoint,
    "make_jaxpr": tl.make_jaxpr,
}
NO_STATIC_ARGUMENTS = {
    "eval_shape": lambda f: lambda x: tl.eval_shape(f, x),
    "cost": lambda f: lambda x: tl.cost(f, x),
    "explain": lambda f: lambda x: tl.explain(f, x),
    "unzip": lambda f: lambda x: tl.unzip(f, x),
    "vmap": lambda f: lambda x: tl.vmap(f)(tnp.array([x])),
}


@pytest.mark.parametrize("who", [*STATIC_ARGUMENTS, *NO_STATIC_ARGUMENTS])
@pytest.mark.parametrize("f", [relu, lambda n: tnp.zeros(n), lambda n: tnp.arange(n)])
def test_who_has_no_static_arguments_is_not_told_to_use_them(who, f):
    """Around it there may be a transformation that has: what jit is given is static, vmap or not."""
    transform = {**STATIC_ARGUMENTS, **NO_STATIC_ARGUMENTS}[who]
    with pytest.raises(tl.errors.ConcretizationTypeError) as caught:
        transform(f)(3)
    static = STATIC if who == "jit" else STATIC.replace("names", "nums")
    advice, other = (static, CLOSE_OVER) if who in STATIC_ARGUMENTS else (CLOSE_OVER, static)
    assert str(caught.value).endswith(f"{advice}.")
    assert other not in str(caught.value)
    with pytest.raises(tl.errors.ConcretizationTypeError, match=r"make the argument static \(static_arg(names|nums)\)"):
        tl.jit(transform(f))(3)


def test_if_under_grad_just_works():
    assert tl.grad(relu)(2.0) == 1.0
    assert tl.grad(relu)(-2.0) == 0.0
    assert tl.grad(tl.grad(lambda x: x**3 if x > 0 else x))(2.0) == 12.0
    assert tl.jvp(relu, (2.0,), (3.0,))[1] == 3.0


def test_count_under_jit():
    with raises(tl.errors.TracerIntegerConversionError, refusal("integer value", "int32[]", count, "range", COUNT)):
        tl.jit(count)(3)


def test_float_under_jit():
    with raises(
        tl.errors.ConcretizationTypeError, refusal("float value", "float32[]", as_float, "return float", FLOAT)
    ):
        tl.jit(as_float)(3.0)


def test_numpy_function_under_jit():
    message = refusal("NumPy array", "float32[]", as_array, "np.sin", NUMPY)
    with raises(tl.errors.TracerArrayConversionError, message):
        tl.jit(as_array)(3.0)
    with raises(tl.errors.TracerArrayConversionError, re.sub("for jit.*\n.*", "for grad.", message)):
        tl.grad(as_array)(3.0)


def first(p, n, *rest, k=0):
    return tnp.zeros(p["n"] + 0 * n if k else p["n"] if rest else n)


def scaled(x):
    return tl.lax.scan(lambda c, _: (c * float(x), None), 1.0, None, length=2)


def many(a, b, c, d, e, f):
    return bool(a + b + c + d + e + f)


@pytest.mark.parametrize(
    ("f", "args", "keywords", "origin"),
    [
        (tl.jit(first), ({"n": 3}, 2), {}, "is n, argument 1 of first"),
        (tl.jit(first), ({"n": 3}, 2, 1), {}, "is p['n'], in argument 0 of first"),
        (tl.jit(first, static_argnums=0), (tl.tree_util.Partial(int), 2), {}, "is n, argument 1 of first"),
        (tl.jit(first, static_argnames="k"), ({"n": 3}, 2), {"k": 1}, "depends on p and n, arguments 0 and 1 of first"),
        (tl.jit(first, static_argnames="k"), ({"n": 3},), {"n": 2}, "is n, argument of first"),
        (tl.jit(lambda *xs: range(xs[1])), (2, 3), {}, "is xs[1], argument 1 of <lambda>"),
        (tl.jit(functools.partial(first, {"n": 3})), (2,), {}, "is n, argument 0 of first"),
        (tl.jit(lambda x: tl.jit(relu)(2 * x)), (1.0,), {}, "depends on x, argument 0 of relu"),
        (tl.jit(scaled), (1.0,), {}, "is x, argument 0 of scaled"),
        (tl.jit(many), (1, 2, 3, 4, 5, 6), {}, "depends on a, b, c, d and 2 more, arguments of many"),
        (tl.checkpoint(relu), (tl.ShapeDtypeStruct((), "float32"),), {}, "depends on x, argument 0 of relu"),
        (tl.jit(tnp.arange), (3,), {}, "is start, argument 0 of arange"),
        (tl.jit(lambda x, n: x[1:n]), (np.ones(3), 2), {}, "is n, argument 1 of <lambda>"),
        (tl.jit(tnp.unique), (np.ones(3),), {}, "is ar, argument 0 of unique"),
        (tl.jit(lambda x: x[x > 0]), (np.ones(3),), {}, "depends on x, argument 0 of <lambda>"),
    ],
)
def test_the_argument_is_named(f, args, keywords, origin):
    with pytest.raises(TypeError) as caught:
        f.lower(*args, **keywords) if hasattr(f, "lower") else tl.eval_shape(f, *args)
    assert f"\n  It {origin}.\n" in str(caught.value)


def test_what_depends_on_no_argument_names_none():
    ref = tl.new_ref(tnp.ones(()))
    with pytest.raises(tl.errors.ConcretizationTypeError) as caught:
        tl.jit(lambda x: float(ref[...]))(1.0)
    assert "\n  It " not in str(caught.value)


def test_formatting_under_jit():
    with raises(tl.errors.ConcretizationTypeError, refusal("value", "float32[]", formatted, "{x", FORMAT)):
        tl.jit(formatted)(3.0)


def test_formatting_without_a_format_shows_the_type():
    shown = []
    tl.jit(lambda x: shown.append(f"{x}") or x)(3.0)
    assert shown == ["StagedTracer<~f32[]>"]


def test_formatting_under_grad_works():
    shown = []
    tl.grad(lambda x: shown.append(f"{x:.2f} {int(x)} {bool(x)} {float(tl.stop_gradient(x))}") or x)(3.5)
    assert shown == ["3.50 3 True 3.5"]


@pytest.mark.parametrize(
    "transform", [tl.grad, lambda f: tl.grad(tl.grad(f)), lambda f: lambda x: tl.jvp(f, (x,), (x,))]
)
@pytest.mark.parametrize(
    "f", [as_float, lambda x: complex(x).real, lambda x: x.item(), lambda x: x.tolist(), lambda x: x.tobytes()]
)
def test_a_number_that_would_lose_its_derivative(transform, f):
    with pytest.raises(tl.errors.ConcretizationTypeError, match="of an array that is differentiated has no derivative"):
        transform(f)(3.0)


def test_float_under_grad():
    message = (
        f"the float value of an array that is differentiated has no derivative: float32[], asked for at "
        f"{place(as_float, 'return float')}.\n  Traced: {place(as_float)}, traced for grad.\n"
        "  Keep it an array (tnp.* instead of math.*), or use float(tl.stop_gradient(x)) where it is a constant."
    )
    with raises(tl.errors.ConcretizationTypeError, message):
        tl.grad(as_float)(3.0)


FILL = "To fill an array, make it with tnp.zeros and write out = out.at[i].set(x); or collect a list and tnp.stack it."


def filled(x):
    out = np.zeros(2)
    out[0] = 2 * x
    return out.sum()


def test_writing_into_a_numpy_array():
    """NumPy's own error, "setting an array element with a sequence", hides ours; and it is no silent zero."""
    made = f"  It was computed at {place(filled, 'out[0]')}.\n"
    message = refusal("float value", "float32[]", filled, "out[0]", f"{FLOAT}\n  {FILL}", made)
    with raises(tl.errors.ConcretizationTypeError, message):
        tl.jit(filled)(3.0)
    with pytest.raises(tl.errors.ConcretizationTypeError) as caught:
        tl.jit(filled)(3.0)
    assert any(frame.name == "filled" for frame in traceback.extract_tb(caught.value.__traceback__))
    for transformed in (tl.grad(filled), tl.jit(tl.grad(filled)), tl.grad(tl.grad(filled)), tl.make_jaxpr(filled)):
        with pytest.raises(tl.errors.ConcretizationTypeError) as caught:
            transformed(3.0)
        assert str(caught.value).endswith(FILL)


def test_writing_arrays_into_a_numpy_array_and_at_a_traced_place():
    def rows(x):
        out = np.zeros((2, 2))
        out[0] = x
        return out

    def at(i):
        out = np.zeros(2)
        out[i] += 1.0
        return out

    def chosen(x):
        out = {}
        out["sign"] = 1 if x > 0 else -1
        return out

    for f, x in ((rows, np.ones(2)), (at, 1)):
        with pytest.raises(tl.errors.ConcretizationTypeError) as caught:
            tl.jit(f)(x)
        assert str(caught.value).endswith(FILL)
    with pytest.raises(tl.errors.TracerBoolConversionError) as caught:
        tl.jit(chosen)(1.0)
    assert FILL not in str(caught.value)


def test_size_under_jit():
    def zeros(n):
        return tnp.zeros(n)

    message = refusal("integer value", "int32[]", zeros, "tnp.zeros", COUNT)
    message = message.replace("the integer value of", "zeros: the size given by", 1)
    with raises(tl.errors.TracerIntegerConversionError, message):
        tl.jit(zeros)(3)


def test_item_under_jit():
    def item(x):
        return x.item()

    with raises(tl.errors.ConcretizationTypeError, refusal("value", "float32[]", item, "x.item", FLOAT)):
        tl.jit(item)(3.0)


def test_arrays_are_values():
    def place_of(x):
        x.at[0] = 1

    def entry_of(x):
        del x[0]

    for under in (lambda f: f, tl.jit):
        with pytest.raises(TypeError, match=r"Instead of x.at\[i\] = y write x = x.at\[i\].set\(y\)."):
            under(place_of)(tnp.ones(2))
        with pytest.raises(TypeError, match=r"Instead of del x\[i\] write x = tnp.delete\(x, i\)."):
            under(entry_of)(tnp.ones(2))


def test_hash_and_pickle_of_a_traced_array():
    with raises(
        TypeError, "a traced array is not hashable: float32[]. Sets and keys of dicts need values that are known."
    ):
        tl.jit(lambda x: {x: 1})(1.0)
    with raises(TypeError, "a traced array cannot be pickled: float32[]."):
        tl.jit(lambda x: x.__reduce__())(1.0)


# ---- shapes and dtypes ----------------------------------------------------------------------------------------

A, B = np.ones((2, 3)), np.ones((4, 5))
DOT = "{}: contracted axes differ in size: axis 1 of float64[2,3] has 3, axis 0 of float64[4,5] has 4."


@pytest.mark.parametrize("under", [lambda f: f, tl.jit, lambda f: lambda x: tl.jvp(f, (x,), (x,))])
@pytest.mark.parametrize(
    "f, kind, message",
    [
        (lambda x: tnp.asarray(x) + B, ValueError, "+: shapes (2,3) and (4,5) do not broadcast."),
        (lambda x: tnp.arctan2(x, B), ValueError, "arctan2: shapes (2,3) and (4,5) do not broadcast."),
        (lambda x: tnp.asarray(x) @ B, TypeError, DOT.format("@")),
        (lambda x: tnp.dot(x, B), TypeError, DOT.format("dot")),
        (lambda x: tl.lax.add(x, B), ValueError, "add: operands differ in shape: float64[2,3] and float64[4,5]. "
                                                 "Broadcast them first."),
        (lambda x: tnp.stack([x, x]) @ np.ones((5, 3, 2)), ValueError,
         "@: the leading axes of float64[2,2,3] and float64[5,3,2] do not broadcast: (2,) and (5,)."),
        (lambda x: tnp.concatenate(x, tnp.asarray(B)), TypeError,
         "concatenate: the arrays must be one list, concatenate([x, y]), but one is given as axis."),
        (lambda x: tnp.concatenate([x, x], axis=2), tl.errors.AxisError,
         "concatenate: axis 2 is out of range for an array of 2 axes."),
        (lambda x: tnp.stack([x, x], axis=1.0), TypeError, "stack: axis must be an integer, not 1.0."),
        (lambda x: tnp.sum(x, axis=1.0), TypeError,
         "sum: axis must be an integer, not 1.0. The array is float64[2,3]."),
        (lambda x: tnp.reshape(x, (3.0, 2)), TypeError, "reshape: shape must be a sequence of integers, not (3.0, 2)."),
        (lambda x: tnp.broadcast_to(x, (2.0, 3)), TypeError,
         "broadcast_to: shape must be a sequence of integers, not (2.0, 3)."),
        (lambda x: tnp.clip(x, B, 1), ValueError, "clip: shapes (2,3) and (4,5) do not broadcast."),
    ],
)  # fmt: skip
def test_shapes_and_dtypes(under, f, kind, message):
    with raises(kind, message):
        under(f)(A)


def test_mixed_widths_name_the_numpy_array_where_it_is_seen():
    """Eagerly the array is at hand; an argument of a compiled function might have been one."""
    differ = "add: operands differ in dtype: float64[2,3] and float32[2,3]. Convert with astype."
    add = lambda x: tl.lax.add(x, np.ones((2, 3), "float32"))  # noqa: E731
    seen = (
        "\n  float64[2,3] is a NumPy array, and NumPy's width is kept: convert where data come in, set "
        "tl.config.numpy_bits = 32 for all of them, "
        'or make 64 bits the default: tl.config.update("default_bits", 64).'
    )
    with raises(TypeError, differ + seen):
        add(A)
    with raises(TypeError, differ + seen):
        tl.jvp(add, (A,), (A,))
    with raises(TypeError, differ + WIDTHS):
        tl.jit(add)(A)


@pytest.mark.parametrize("reshape", [tnp.reshape, lambda x, shape: tnp.asarray(x).reshape(*shape)])
def test_two_lengths_left_open(reshape):
    with raises(ValueError, "reshape: only one length of the shape (-1, -1) may be -1."):
        reshape(np.ones(4), (-1, -1))


class Foreign:
    """An array of another library that does not know ours."""

    def __dlpack__(self):
        raise NotImplementedError

    def __radd__(self, other):
        return NotImplemented

    def __rmul__(self, other):
        return "its own answer"

    def __repr__(self):
        return "Foreign(1.)"


@pytest.mark.parametrize("under", [lambda f: f, tl.jit, tl.grad])
@pytest.mark.parametrize(
    ("symbol", "f"), [("+", lambda x: x + Foreign()), ("<", lambda x: x < Foreign()), ("==", lambda x: x == Foreign())]
)
def test_array_of_another_library_on_the_right(under, symbol, f):
    message = (
        f"{symbol}: the left operand is float32[], the right one is not an array or a number, but Foreign: Foreign(1.)."
        "\n  Write tnp.asarray(...) around an array of another library: it is copied to the device."
    )
    with raises(TypeError, message):
        under(f)(tnp.float32(1.0))


def test_another_library_may_answer():
    assert tnp.float32(1.0) * Foreign() == "its own answer"


# ---- grad -----------------------------------------------------------------------------------------------------


def halves(x):
    return x / 2


def test_gradient_of_an_array():
    message = (
        "halves must return a scalar, but returned float64[2,3].\n"
        "  Reduce it (tnp.sum or tnp.mean), or use tl.vjp or tl.jacrev."
    )
    for who, f in (
        ("grad", tl.grad(halves)),
        ("value_and_grad", tl.value_and_grad(halves)),
        ("grad", tl.jit(tl.grad(halves))),
    ):
        with raises(TypeError, f"{who}: {message}"):
            f(tnp.asarray(A))


def test_gradient_of_a_pair():
    def pair(x):
        return x, {"twice": 2 * x}

    message = (
        "grad: pair must return a scalar, but returned (float32[], {'twice': float32[]}).\n"
        "  Use has_aux=True if it returns (scalar, aux), else tl.vjp or tl.jacrev."
    )
    with raises(TypeError, message):
        tl.grad(pair)(1.0)


def test_gradient_in_an_integer():
    message = (
        "grad: argument d['n'] of f is int32[], and integers have no derivative.\n"
        "  Convert it with astype(float), choose others with argnums=, or pass allow_int=True for float0 zeros."
    )

    def f(x, d):
        return x * d["n"]

    with raises(TypeError, message):
        tl.grad(f, argnums=1)(1.0, {"n": 3})


def test_gradient_of_an_integer():
    def f(x):
        return 3

    with raises(TypeError, "grad: f returned int32[], and integers have no derivative."):
        tl.grad(f)(1.0)
    with raises(TypeError, "grad: <lambda> returned bool[], and booleans have no derivative."):
        tl.grad(lambda x: x > 0)(1.0)


def test_gradient_of_what_is_no_array():
    def f(x):
        return "abc"

    with raises(TypeError, "grad: the result of f is 'abc' of type str, which is not an array."):
        tl.grad(f)(1.0)
    with raises(TypeError, f"grad: argument x of f is 'abc' of type str, which is not an array.{NO_CHILD}"):
        tl.grad(f)("abc")
    with raises(TypeError, f"grad: argument x['name'] of f is 'abc' of type str, which is not an array.{NO_CHILD}"):
        tl.grad(f)({"name": "abc", "x": 1.0})


def test_gradient_of_a_complex_function():
    message = (
        "grad: f returned complex64[]; a gradient is defined for real results.\n"
        "  Take the real part or a modulus, or pass holomorphic=True."
    )

    def f(z):
        return z * z

    with raises(TypeError, message):
        tl.grad(f)(1j)
    with raises(TypeError, "grad: with holomorphic=True inputs must be complex, but argument z of f is float32[]."):
        tl.grad(f, holomorphic=True)(1.0)


@pytest.mark.parametrize(
    "argnums, message",
    [
        (2, "grad: argnums=2 names argument 2, but f was called with 2 positional arguments."),
        (-3, "grad: argnums=-3 names argument -3, but f was called with 2 positional arguments."),
        ((0, 2), "grad: argnums=(0, 2) names argument 2, but f was called with 2 positional arguments."),
        ((0, -2), "grad: argnums=(0, -2) names an argument of f twice."),
    ],
)
def test_wrong_argnums_of_grad(argnums, message):
    def f(x, y):
        return x * y

    with raises(ValueError, message):
        tl.grad(f, argnums)(1.0, 2.0)


@pytest.mark.parametrize("argnums", ["x", 1.5, None, (0, "y")])
def test_argnums_that_are_no_numbers(argnums):
    message = (
        f"grad: argnums must be an int or a sequence of ints, not {argnums!r}.\n"
        "  Pass the arguments to the function that grad returns: grad(f)(x)."
    )
    with raises(TypeError, message):
        tl.grad(lambda x, y: x * y, argnums)(1.0, 2.0)


@pytest.mark.parametrize("transform", [tl.grad, tl.value_and_grad, tl.jacfwd, tl.jacrev, tl.hessian])
def test_parameters_in_the_place_of_argnums(transform):
    message = (
        f"{transform.__name__}: argnums must be an int or a sequence of ints, not {{'w': float32[3]}}.\n"
        f"  Pass the arguments to the function that {transform.__name__} returns: {transform.__name__}(f)(x)."
    )
    with raises(TypeError, message):
        transform(lambda p: p["w"].sum(), {"w": tnp.ones(3)})


@pytest.mark.parametrize(
    "call",
    [
        lambda x: string.Formatter().format("{:.3f}", x),
        np.linalg.norm,
        lambda x: functools.reduce(lambda y, z: float(y) + z, [x, x]),
    ],
)
def test_the_line_that_is_named_is_the_user_s_where_a_library_calls_back(call):
    with pytest.raises(TypeError, match=r"asked for at \S*test_errors\.py:\d+ "):
        tl.jit(lambda x: call(x))(np.ones(3, np.float32))


def test_arguments_by_name_are_not_differentiated():
    def f(x):
        return x

    text = "grad: argnums=0 names argument 0, but f was called with 0 positional arguments.\n  Give x by position."
    with raises(ValueError, text):
        tl.grad(f)(x=1.0)


def test_misspelt_attributes_of_arrays():
    for name, meant in (("summ", "sum"), ("reshap", "reshape"), ("dtyp", "dtype"), ("argmaxx", "argmax")):
        with raises(AttributeError, f"an array has no attribute {name!r}.\n  Do you mean x.{meant}?"):
            getattr(tnp.ones(3), name)
    with raises(AttributeError, "an array has no attribute 'qwertz'."):
        tnp.ones(3).qwertz


def test_static_arrays_are_called_arrays():
    text = (
        "jit: static argument x of f is not hashable: an array float32[2].\n  Static arguments are compiled in. Pass a "
        "tuple instead of a list, or do not make it static if it is an array."
    )
    with pytest.raises(ValueError) as caught:
        tl.jit(lambda x: x, static_argnums=0)(tnp.ones(2))
    assert re.sub("<lambda> at [^ ]*", "f", str(caught.value)) == text


# ---- jvp, vjp, linearize --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "primals, tangents, message",
    [
        (1.0, (1.0,), "jvp: primals must be a tuple or list, one entry per argument, not 1.0."),
        ((1.0,), 2.0, "jvp: tangents must be a tuple or list, one entry per argument, not 2.0."),
        ((1.0,), (1.0, 2.0), "jvp: 1 primals were given, but 2 tangents."),
        (
            ({"a": 1.0},),
            ([1.0],),
            "jvp: primals and tangents differ in structure.\n"
            "  [0] is a dict with 'a' in primals, a list of 1 in tangents.",
        ),
        ((A,), (B,), "jvp: the tangent of x is float64[4,5], but the primal float64[2,3] asks for float64[2,3]."),
        (
            (np.float32(1.0),),
            (np.array(1.0),),
            "jvp: the tangent of x is float64[], but the primal float32[] asks for float32[].\n  float64[] is a "
            "NumPy array, and NumPy's width is kept: convert where data come in, set tl.config.numpy_bits = 32 for all "
            'of them, or make 64 bits the default: tl.config.update("default_bits", 64).',
        ),
        (
            (3,),
            (1,),
            "jvp: the tangent of x belongs to a primal of integer type, int32[]: it must be of dtype float0, not 1.",
        ),
    ],
)
def test_jvp_of_what_does_not_fit(primals, tangents, message):
    with raises(TypeError, message):
        tl.jvp(lambda x: x, primals, tangents)


def test_cotangent_that_does_not_fit():
    _, pull_back = tl.vjp(halves, np.ones(3))
    message = (
        "vjp: the cotangent must have the structure of the result of halves.\n"
        "  The root is a leaf in the result, a tuple of 1 in the cotangent."
    )
    with raises(TypeError, message):
        pull_back((np.ones(3),))
    with raises(TypeError, "vjp: cotangent 0 is float64[4], but the result of halves asks for float64[3]."):
        pull_back(np.ones(4))


def test_tangent_that_does_not_fit():
    _, push_forward = tl.linearize(halves, np.ones(3))
    message = (
        "linearize: tangents must have the structure of the arguments.\n"
        "  The root is a tuple of 1 in the arguments, a tuple of 2 in the tangents."
    )
    with raises(TypeError, message):
        push_forward(np.ones(3), np.ones(3))
    with raises(TypeError, "linearize: tangent 0 is float64[4], but the primal float64[3] asks for float64[3]."):
        push_forward(np.ones(4))


def test_aux_that_is_missing():
    with raises(TypeError, "grad: with has_aux=True halves must return (value, aux), but returned float32[]."):
        tl.grad(halves, has_aux=True)(1.0)
    message = "vjp: with has_aux=True <lambda> must return (value, aux), but returned {'y': float32[], 'z': float32[]}."
    with raises(TypeError, message):
        tl.vjp(lambda x: {"y": x, "z": x}, 1.0, has_aux=True)


# ---- transposing what is not linear ---------------------------------------------------------------------------


def sine(x):
    return tnp.sin(x)


def product(x):
    return x * x


def shifted(x):
    y = x - 1
    return 2 * y


def chosen(x):
    return tnp.where(x > 0, x, 2 * x)


def joined(x):
    return tnp.concatenate([x, np.ones(2)])


def called(x):
    return tl.jit(product)(x)


@pytest.mark.parametrize(
    "f, culprit, reason, equation, line",
    [
        (sine, sine, "nonlinear primitive): sin is applied to a linear value", "ḃ:f64[2] = sin ȧ", "tnp.sin"),
        (product, product, "bilinear): mul multiplies two values that are both linear", "ḃ:f64[2] = mul ȧ ȧ", "x * x"),
        (shifted, shifted, "affine): sub combines a linear value with a constant", "ḃ:f64[2] = sub ȧ 1.0", "x - 1"),
        (
            joined,
            joined,
            "affine): concatenate combines a linear value with a constant",
            "ḋ:f64[4] = concatenate[dimension=0] ḃ c",
            "concatenate",
        ),
        (
            chosen,
            chosen,
            "predicate depends on linear input): select_n goes by what gt makes of a linear value",
            "ḋ:f64[2] = select_n ḃ ċ ȧ",
            "where",
        ),
        (
            called,
            product,
            "bilinear): mul multiplies two values that are both linear, in product",
            "ḃ:f64[2] = mul ȧ ȧ",
            "x * x",
        ),
    ],
)
def test_transposing_what_is_not_linear(f, culprit, reason, equation, line):
    name = f.__name__
    message = f"{name} is not linear ({reason}.\n  {equation}\n  It was reached from {place(culprit, line)}."
    with raises(tl.errors.LinearityError, dotted(message)):
        tl.linear_transpose(f, np.ones(2))(np.ones(4 if f is joined else 2))


def test_transposing_a_constant_or_integers():
    def one(x):
        return np.ones(3)

    message = "one is not linear (constant): its result float64[3] does not depend on its arguments."
    with raises(tl.errors.LinearityError, message):
        tl.linear_transpose(one, 1.0)
    with raises(TypeError, "linear_transpose: arguments must be floating point or complex, not int32[]."):
        tl.linear_transpose(one, 1)


# ---- traced values that outlive their function ----------------------------------------------------------------

kept = []


def leaking(x):
    y = x * x
    kept.append(y)
    return y


def use():
    return tnp.sin(kept.pop())


def leak(what):
    return (
        f"a traced array escaped its function: float32[] of {place(leaking)}, traced for {what}.\n"
        f"  The value was computed at {place(leaking, 'x * x')}.\n"
        f"  It was used at {place(use, 'sin')}.\n"
        "  Return it from the function instead of storing it in a global, an attribute or a closure."
    )


@pytest.mark.parametrize(
    "what, transform",
    [
        ("jit", lambda x: tl.jit(leaking)(x)),
        ("grad", tl.grad(leaking)),
        ("value_and_grad", tl.value_and_grad(leaking)),
        ("vjp", lambda x: tl.vjp(leaking, x)),
        ("linearize", lambda x: tl.linearize(leaking, x)),
        ("jit", lambda x: tl.grad(tl.jit(leaking))(x)),
        ("linear_transpose", lambda x: tl.linear_transpose(leaking, x)),
        ("vmap", lambda x: tl.vmap(leaking)(x[None])),
        ("vmap", lambda x: tl.jit(tl.vmap(leaking))(x[None])),
    ],
)
@pytest.mark.parametrize("under", [lambda f: f(), lambda f: tl.jit(f)(), lambda f: tl.grad(lambda x: f() * x)(1.0)])
def test_leaked(what, transform, under):
    tl.jit(leaking).clear_cache()  # it leaks when it is traced
    try:
        transform(np.float32(2.0))
    except NotImplementedError:
        assert what == "linear_transpose"
    with raises(tl.errors.UnexpectedTracerError, leak(what)):
        under(use)


def test_leaked_from_jvp_is_named_without_its_line():
    tl.jvp(leaking, (np.float32(2.0),), (np.float32(1.0),))
    with raises(tl.errors.UnexpectedTracerError, leak("jvp").replace(leak("").splitlines()[1] + "\n", "")):
        use()


def test_leaked_by_returning_or_converting_it():
    for convert in (float, bool, int, np.asarray, "{:.1f}".format):
        tl.grad(leaking)(2.0)
        with pytest.raises(tl.errors.UnexpectedTracerError, match="a traced array escaped its function"):
            convert(kept.pop())
    for transform in (tl.jit, tl.grad):
        tl.grad(leaking)(2.0)
        with pytest.raises(tl.errors.UnexpectedTracerError, match="a traced array escaped its function"):
            transform(lambda x: kept.pop())(1.0)


# ---- jit ------------------------------------------------------------------------------------------------------


def power(x, n):
    return x**n


def test_static_argument_that_is_not_hashable():
    message = (
        f"jit: static argument n of {place(power)} is not hashable: [2] of type list.\n"
        "  Static arguments are compiled in. "
        "Pass a tuple instead of a list, or do not make it static if it is an array."
    )
    with raises(ValueError, message):
        tl.jit(power, static_argnums=1)(1.0, [2])
    with raises(ValueError, message):
        tl.jit(power, static_argnames="n")(1.0, n=[2])


def test_argument_that_is_no_array():
    message = (
        f"jit: argument n['k'] of {place(power)} is 'abc' of type str, which is not an array.\n"
        "  Make it a static argument of its own (static_argnames), or a static field (tl.tree_util.register_dataclass)."
    )
    with raises(TypeError, message):
        tl.jit(power)(1.0, {"k": "abc"})
    with pytest.raises(TypeError, match=r"Make it static \(static_argnums or static_argnames\)\."):
        tl.jit(power)(1.0, "abc")
    model, said = Model(), f"argument n of {place(power)} is"
    with raises(
        TypeError,
        f"jit: {said} {model!r} of type Model, which is not an array.\n"
        "  If Model holds arrays, make it a pytree: a dataclass with tl.tree_util.register_dataclass, or "
        "tl.tree_util.register_pytree_node_class.\n"
        "  Make it static (static_argnums or static_argnames), unless it holds arrays: they would be read once, when "
        "the function is traced.",
    ):
        tl.jit(power)(1.0, model)


class Model:
    def __repr__(self):
        return "<a model>"


@pytest.mark.parametrize(
    "name, meant", [("cpu", "'cpu')[0]"), ("cuda", "'gpu')[0]"), ("cuda:1", "'gpu')[1]"), ("x", "")]
)
def test_names_of_devices_say_what_to_write(name, meant):
    advice = f"\n  Write tl.devices({meant}." if meant else ""
    with raises(TypeError, f"device_put: the device must be one of tl.devices(), not {name!r}.{advice}"):
        tl.device_put(1.0, name)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"static_argnums": 2}, "static_argnums names argument 2, but {} has 2 positional arguments."),
        ({"static_argnums": (0, -3)}, "static_argnums names argument -3, but {} has 2 positional arguments."),
        ({"donate_argnums": 5}, "donate_argnums names argument 5, but {} has 2 positional arguments."),
        ({"static_argnames": "m"}, "static_argnames names 'm', but {} has x, n."),
        (
            {"static_argnums": 1, "donate_argnames": "n"},
            "argument n of {} is static and donated: a static argument is compiled in, and has no memory to give.",
        ),
        (
            {"static_argnums": 0, "donate_argnums": -2},
            "argument x of {} is static and donated: a static argument is compiled in, and has no memory to give.",
        ),
        ({"donate_argnames": ("x", "y")}, "donate_argnames names 'y', but {} has x, n."),
    ],
)
def test_wrong_argnums_of_jit(options, message):
    with raises(ValueError, "jit: " + message.format(place(power))):
        tl.jit(power, **options)


def by_place(x, n=1, /, *rest, **options):
    return x


@pytest.mark.parametrize("name", ["n", "rest"])
def test_names_of_arguments_that_are_taken_by_position(name):
    message = f"names {name!r}, which {place(by_place)} takes by position only. Give its number: argnums."
    with raises(ValueError, f"jit: static_argnames {message}"):
        tl.jit(by_place, static_argnames=name)
    with raises(ValueError, f"jit: donate_argnames {message}"):
        tl.jit(by_place, donate_argnames=[name])
    tl.jit(by_place, static_argnames="anything")


def test_what_is_no_number_or_name_of_an_argument():
    with raises(TypeError, "jit: static_argnums must be an integer or several, not 'n'."):
        tl.jit(power, static_argnums="n")
    with raises(TypeError, "jit: donate_argnums must be an integer or several, not 1.5."):
        tl.jit(power, donate_argnums=1.5)
    with raises(TypeError, "jit: static_argnames must be a name or several, not (1,)."):
        tl.jit(power, static_argnames=(1,))
    with raises(TypeError, "jit: donate_argnames must be a name or several, not 1."):
        tl.jit(power, donate_argnames=1)


@pytest.mark.parametrize("axes", [False, True, (False,)], ids=str)
def test_booleans_are_no_axes(axes):
    number = axes[0] if isinstance(axes, tuple) else axes
    with raises(TypeError, f"vmap: in_axes must be ints or None, not {number}."):
        tl.vmap(lambda x: x, in_axes=axes)(tnp.ones((2, 2)))
    with raises(TypeError, f"vmap: out_axes must be ints or None, not {number}."):
        tl.vmap(lambda x: (x,), out_axes=axes)(tnp.ones((2, 2)))


def test_integer_that_fits_no_argument():
    with pytest.raises(OverflowError, match="the integer 1099511627776 does not fit int32"):
        tl.jit(lambda n: n)(2**40)


def test_one_array_donated_and_used():
    f, x = tl.jit(lambda x, y: x + y, donate_argnums=(0, 1)), tnp.ones(3)
    message = (
        "x, argument 0 of <lambda>, and y, argument 1 of <lambda>, are one array, float32[3], "
        "and its memory is donated.\n"
        "  Pass a copy as one of them, or donate neither."
    )
    with raises(ValueError, message):
        f(x, x)


def test_what_is_no_function():
    with raises(TypeError, "grad: expected a function, not 9.0."):
        tl.grad(3.0**2)
    with raises(TypeError, "jit: expected a function, not 9.0."):
        tl.jit(3.0**2)
    with raises(TypeError, "grad: expected a function, not an array float32[3]."):
        tl.grad(tnp.ones(3))


ONE_FUNCTION = {
    tl.grad: tl.grad,
    tl.value_and_grad: tl.value_and_grad,
    tl.jvp: lambda f: tl.jvp(f, (1.0,), (1.0,)),
    tl.linear_transpose: lambda f: tl.linear_transpose(f, 1.0),
    tl.jacfwd: tl.jacfwd,
    tl.jacrev: tl.jacrev,
    tl.hessian: tl.hessian,
    tl.jit: tl.jit,
    tl.vmap: tl.vmap,
    tnp.vectorize: tnp.vectorize,
    tl.checkpoint: tl.checkpoint,
    tl.make_jaxpr: tl.make_jaxpr,
    tl.eval_shape: lambda f: tl.eval_shape(f, 1.0),
    tl.custom_jvp: tl.custom_jvp,
    tl.custom_vjp: tl.custom_vjp,
    tl.custom_batching.custom_vmap: tl.custom_batching.custom_vmap,
    tl.custom_batching.sequential_vmap: tl.custom_batching.sequential_vmap,
    tl.pure_callback: lambda f: tl.pure_callback(f, 1.0, 1.0),
    tl.io_callback: lambda f: tl.io_callback(f, 1.0, 1.0),
    tl.testing.check_grads: lambda f: tl.testing.check_grads(f, (1.0,), 1),
    tl.check_linear: lambda f: tl.check_linear(f, 1.0),
}
WITH_ARGUMENTS = (tl.vjp, tl.linearize, tl.closure_convert, tl.saved_residuals, tl.unzip, tl.explain)


@pytest.mark.parametrize("transform", ONE_FUNCTION, ids=lambda f: f.__name__)
def test_transforms_of_what_is_no_function(transform):
    with raises(TypeError, f"{transform.__name__}: expected a function, not 3."):
        ONE_FUNCTION[transform](3)


@pytest.mark.parametrize("transform", WITH_ARGUMENTS, ids=lambda f: f.__name__)
def test_what_is_no_function_with_its_arguments(transform):
    with raises(TypeError, f"{transform.__name__}: expected a function and its arguments, not 3."):
        transform(3, 1.0)


def test_rules_that_are_no_functions():
    with raises(TypeError, "custom_jvp: the rule must be a function, not 3."):
        tl.custom_jvp(halves).defjvp(3)
    with raises(TypeError, "custom_jvp: a rule of defjvps must be a function, not 3."):
        tl.custom_jvp(halves).defjvps(3)
    with raises(TypeError, "custom_vjp: fwd must be a function, not 3."):
        tl.custom_vjp(halves).defvjp(3, halves)
    with raises(TypeError, "custom_vjp: bwd must be a function, not None."):
        tl.custom_vjp(halves).defvjp(halves, None)
    with raises(TypeError, "custom_vmap: the rule must be a function, not 3."):
        tl.custom_batching.custom_vmap(halves).def_vmap(3)


NO_ARRAY = "'abc' of type str, which is not an array."
WORDS = {"w": "abc"}


def words(_):
    return WORDS


def same(x):
    return x


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: tl.jvp(same, (WORDS,), (WORDS,)), "jvp: argument x['w'] of same is"),
        (lambda: tl.jvp(same, (1.0,), ("abc",)), "jvp: the tangent of x is"),
        (lambda: tl.jvp(words, (1.0,), (1.0,)), "jvp: the result['w'] of words is"),
        (lambda: tl.vjp(same, WORDS), "vjp: argument x['w'] of same is"),
        (lambda: tl.vjp(words, 1.0), "vjp: the result['w'] of words is"),
        (lambda: tl.vjp(same, 1.0)[1]("abc"), "vjp: cotangent 0 is"),
        (lambda: tl.linearize(same, WORDS), "linearize: argument x['w'] of same is"),
        (lambda: tl.linearize(words, 1.0), "linearize: the result['w'] of words is"),
        (lambda: tl.grad(same)(WORDS), "grad: argument x['w'] of same is"),
        (lambda: tl.value_and_grad(words)(1.0), "value_and_grad: the result['w'] of words is"),
        (lambda: tl.jacfwd(words)(1.0), "jacfwd: the result['w'] of words is"),
        (lambda: tl.jacrev(words)(1.0), "jacrev: the result['w'] of words is"),
        (lambda: tl.hessian(words)(1.0), "hessian: the result['w'] of words is"),
        (lambda: tl.linear_transpose(words, 1.0), "linear_transpose: the result['w'] of words is"),
        (lambda: tl.vmap(words)(tnp.ones(3)), f"vmap: the result['w'] of {place(words)} is"),
        (lambda: tl.make_jaxpr(words)(1.0), f"make_jaxpr: the result['w'] of {place(words)} is"),
        (lambda: tl.checkpoint(words)(1.0), f"checkpoint: the result['w'] of {place(words)} is"),
        (lambda: tl.closure_convert(same, WORDS), f"closure_convert: argument x['w'] of {place(same)} is"),
        (lambda: tl.closure_convert(words, 1.0), f"closure_convert: the result['w'] of {place(words)} is"),
        (lambda: tl.device_put(WORDS), "device_put: x['w'] is"),
        (lambda: tl.pure_callback(same, 1.0, WORDS), f"pure_callback: argument x['w'] of {place(same)} is"),
        (lambda: tl.testing.check_grads(same, ("abc",), 1), f"check_grads: argument x of {place(same)} is"),
        (lambda: tl.testing.check_grads(words, (1.0,), 1), f"check_grads: the result['w'] of {place(words)} is"),
    ],
)
def test_what_is_no_array_is_named_with_its_place(call, message):
    advice = NO_CHILD if "argument x" in message else ""
    with raises(TypeError, f"{message} {NO_ARRAY}{advice}"):
        call()


def test_result_that_is_no_array():
    def f(x):
        return x, "abc"

    with raises(TypeError, f"jit: the result[1] of {place(f)} is 'abc' of type str, which is not an array."):
        tl.jit(f)(1.0)


def test_what_is_no_device():
    for place_of in ("nowhere", 3):
        with raises(TypeError, f"jit: the device must be one of tl.devices(), not {place_of!r}."):
            tl.jit(same, device=place_of)
        with raises(TypeError, f"device_put: the device must be one of tl.devices(), not {place_of!r}."):
            tl.device_put(1.0, place_of)


def test_axes_that_scalars_lack():
    with raises(tl.errors.AxisError, "categorical: axis -1 is out of range for an array of 0 axes."):
        tl.random.categorical(tl.random.key(0), 3.0)
    with raises(tl.errors.AxisError, "associative_scan: axis 0 is out of range for an array of 0 axes."):
        tl.lax.associative_scan(tnp.add, 3.0)


def test_dimension_numbers_that_are_none():
    x, at = tnp.ones((3, 3)), tnp.zeros(1, int)
    with raises(TypeError, "gather: dimension_numbers must be GatherDimensionNumbers(...), not None."):
        tl.lax.gather(x, at, None, (1,))
    with raises(TypeError, "scatter_add: dimension_numbers must be ScatterDimensionNumbers(...), not None."):
        tl.lax.scatter_add(x, at, x, None)
    message = (
        "conv: window_strides (1, 1) are 2, but lhs float32[3,3] has 0 axes of space, which are those "
        "besides batch and features."
    )
    with raises(ValueError, message):
        tl.lax.conv(x, x, (1, 1), "SAME")


# ---- nan ------------------------------------------------------------------------------------------------------


def logarithm(x):
    y = tnp.log(x)
    return y + 1


@pytest.fixture
def debug_nans():
    with tl.config.scope(debug_nans=True):
        yield


@pytest.mark.usefixtures("debug_nans")
@pytest.mark.parametrize(
    "under",
    [lambda f: f, tl.jit, tl.grad, tl.value_and_grad, lambda f: tl.grad(tl.jit(f)), lambda f: tl.jit(tl.jit(f))],
)
def test_nan_names_operation_and_line(under):
    with raises(FloatingPointError, f"nan in the result of 'log', at {place(logarithm, 'tnp.log')}."):
        under(logarithm)(tnp.asarray(-1.0))


@pytest.mark.usefixtures("debug_nans")
def test_nan_that_comes_up_in_the_backward_pass():
    def f(x):
        return x * tnp.sqrt(x)

    message = f"nan in the result of 'mul', at {place(f, 'sqrt')}.\n  It is 0 times infinity."
    for under in (tl.grad(f), tl.jit(tl.grad(f)), tl.grad(tl.jit(f))):
        with raises(FloatingPointError, message):
            under(np.float64(0.0))


INF = np.float32(np.inf)
CAUSES = {
    "operand": (tnp.sin, (np.nan,), "'sin'", "Its operand already holds nan."),
    "second": (lambda x, y: x + y, (1.0, np.nan), "'add'", "Its second operand, float32[], already holds nan."),
    "both": (
        lambda x, y: x * y,
        (np.nan, np.nan),
        "'mul'",
        "Its first operand, float32[], and its second operand, float32[], already hold nan.",
    ),
    "product": (lambda x, y: x * y, (0.0, INF), "'mul'", "It is 0 times infinity."),
    "difference": (lambda x, y: x - y, (INF, INF), "'sub'", "It is a difference of infinities."),
    "sum": (lambda x, y: x + y, (INF, -INF), "'add'", "It is a difference of infinities."),
    "quotient of zeros": (lambda x, y: x / y, (0.0, 0.0), "'div'", "It is 0 divided by 0."),
    "quotient of infinities": (lambda x, y: x / y, (INF, -INF), "'div'", "It is infinity divided by infinity."),
}


@pytest.mark.usefixtures("debug_nans")
@pytest.mark.parametrize("f, args, name, cause", CAUSES.values(), ids=CAUSES)
def test_the_cause_of_a_nan_is_said(f, args, name, cause):
    with tl.debug_nans(False):
        xs = [tnp.asarray(np.float32(x)) for x in args]
    for under in (f, tl.jit(f)):
        with pytest.raises(FloatingPointError) as caught:
            under(*xs)
        first, second = str(caught.value).split("\n")
        assert first.startswith(f"nan in the result of {name}, at ") and second == f"  {cause}"


def test_the_cause_of_an_infinity_is_said():
    for f, x, cause in (
        (lambda x: 1 / x, [0.0, 2.0], "'div', at {}.\n  It is a division by 0."),
        (tnp.log, [0.0, 2.0], "'log', at {}.\n  It is the logarithm of 0."),
        (tnp.exp, [INF, 2.0], "'exp', at {}.\n  Its operand already holds inf."),
    ):
        y = tnp.asarray(np.float32(x))
        with tl.debug_infs():
            with pytest.raises(FloatingPointError) as caught:
                f(y)
            start, end = f"inf in the result of {cause}".split("{}")
            assert str(caught.value).startswith(start) and str(caught.value).endswith(end)


@pytest.mark.usefixtures("debug_nans")
def test_no_nan_no_error():
    assert tl.jit(tl.grad(logarithm))(2.0) == 0.5
    assert np.isnan(tl.jit(lambda x: x)(np.nan))  # nothing was computed


NAN = np.full(2, np.nan, np.float32)


def gives_nan():
    return np.nan


def gives_array(x=0.0):
    return x, NAN


NESTED = tl.jit(lambda x: (tl.jit(gives_nan)(), x))
NAN_IN = {
    "the result of gives_nan, at": (tl.jit(gives_nan), tl.jit(tl.jit(gives_nan)), lambda: NESTED(1.0)),
    "the result of primal_f, at": (lambda: tl.value_and_grad(lambda x: tl.jit(lambda x: np.nan)(x))(1.0),),
    "result 1 of gives_array, at": (tl.jit(gives_array),),
    "the result of 'cond', at": (lambda: tl.lax.cond(True, gives_nan, lambda: 0.0),),
    "the result of 'scan', at": (lambda: tl.lax.scan(lambda c, x: (c, np.nan), 0.0, NAN),),
    "the result of 'copy', at": [
        under(make)
        for under in (lambda f: f, tl.jit)
        for make in (lambda: tnp.array(np.nan), lambda: tnp.asarray(NAN), lambda: tnp.full(2, np.nan))
    ],
    "the result of 'mul', at": [
        lambda f=f, under=under: under(f)(tnp.ones(()))
        for f in (lambda x: x * np.nan, lambda x: x * NAN[0])
        for under in (lambda f: f, tl.jit, tl.grad)
    ],
}


@pytest.mark.usefixtures("debug_nans")
@pytest.mark.parametrize("start, programs", NAN_IN.items(), ids=NAN_IN)
def test_constants_that_are_nan(start, programs):
    """Programs that hand them out, alone or beside other results, and arrays that are made of them."""
    operation = any(name in start for name in ("copy", "mul", "scan"))
    for program in programs:
        with pytest.raises(FloatingPointError) as caught:
            program()
        assert str(caught.value).startswith(f"nan in {start}")
        assert operation or "It is a constant there." in str(caught.value)


# ---- the user's line ------------------------------------------------------------------------------------------


def long_line(x):
    # fmt: off
    return x if x > 0 else x + 1000000000000000 + 1000000000000000 + 1000000000000000 + 1000000000000000 + 1000000000000000 + 1000000000000000 + 1000000000000000  # noqa: E501
    # fmt: on


def test_long_lines_are_cut():
    at, text = place(long_line, "return x").split(", ")
    assert len(text) > 160
    message = refusal("truth value", "bool[]", long_line, "return x", CHOICE, f"  It was computed at {at}, {text}.\n")
    with raises(tl.errors.TracerBoolConversionError, message.replace(text, f"{text[:160]}...")):
        tl.jit(long_line)(1.0)


def test_long_lines_of_residuals_are_cut():
    def f(x):
        # fmt: off
        return tnp.sin(x)  # ....................................................................................................................................................  # noqa: E501
        # fmt: on

    (kept,) = tl.saved_residuals(f, 1.0)
    at, text = place(f, "tnp.sin").split(", ")
    assert str(kept) == f"float32[] from cos at {at}, {text[:160]}..."


# ---- our own mistakes, and what must not be seen --------------------------------------------------------------


def test_broken_invariant_is_an_internal_error():
    jaxpr = tl.make_jaxpr(sine)(1.0).jaxpr
    assert eval_jaxpr(jaxpr, [np.float32(0.0)])[0] == 0.0
    error = tl.errors.InternalError("two and two are five")
    assert str(error) == "two and two are five\n  This is a bug in Tapeless, please report it."
    with pytest.raises(tl.errors.InternalError, match="primitive 'sin' is defined twice"):
        type(jaxpr.eqns[0].primitive)("sin", lambda x: (x,))


MISTAKES = {
    "if": lambda: tl.jit(relu)(1.0),
    "count": lambda: tl.jit(count)(1),
    "shape": lambda: tl.jit(lambda x: x @ B)(A),
    "leak": lambda: (tl.grad(leaking)(1.0), use()),
    "leak through jit": lambda: (tl.jit(leaking)(1.0), tl.jit(use)()),
    "closure": lambda: tl.grad(lambda z: closing_over(z)(2.0))(1.0),
    "scalar": lambda: tl.grad(halves)(A),
    "linear": lambda: tl.linear_transpose(called, 1.0)(1.0),
    "static": lambda: tl.jit(power, static_argnums=1)(1.0, [2]),
    "string": lambda: tl.jit(power)(1.0, "abc"),
    "compiled": lambda: tl.jit(halves).lower(A).compile()(B),
    "deleted": lambda: halves(deleted()),
    "index": lambda: tnp.asarray(A)[7],
    "rule": lambda: tl.grad(tl.custom_jvp(halves))(1.0),
}


def closing_over(z):
    f = tl.custom_jvp(lambda x: x * z)
    f.defjvps(lambda t, y, x: t * z)
    return f


def deleted():
    x = tnp.asarray(A)
    x.delete()
    return x


@pytest.mark.parametrize("mistake", MISTAKES)
def test_no_frame_of_a_runtime_and_no_assertion_is_seen(mistake):
    with pytest.raises(Exception) as caught:
        MISTAKES[mistake]()
    text = "".join(traceback.format_exception(caught.value))
    assert "jaxlib" not in text.replace("jaxlib/cpp", "")
    assert "AssertionError" not in text
    assert "Jax" not in text and "XLA" not in text and "INVALID_ARGUMENT" not in text


def test_known_values_are_shown():
    shown = []
    tl.grad(lambda x: shown.append(x) or x)(3.0)
    tl.vmap(lambda x: shown.append(x) or x)(np.ones((2, 20)))
    tl.jvp(lambda x: shown.append(x) or x, (np.arange(100.0),), (np.ones(100),))
    tl.vmap(tl.grad(lambda x: shown.append(x) or x))(np.arange(2.0))
    assert [*map(repr, shown)] == [
        "JVPTracer<~f32[] = 3.>",
        "BatchTracer<f64[20], axis 0 of [[1., 1., ..., 1., 1.], [1., 1., ..., 1., 1.]]>",
        "JVPTracer<f64[100] = [ 0., 1., ..., 98., 99.]>",
        "JVPTracer<f64[], axis 0 of [0., 1.]>",
    ]
