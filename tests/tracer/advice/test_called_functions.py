"""Errors name the function that was called, not one that it calls: of every function, given what it does not take."""

import ast
import inspect
from collections.abc import Iterator
from importlib.util import find_spec

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.tracer import core
from tapeless.tracer.advice import called_functions
from tests.messages import raises, text_of
from tests.pages import hook

examples = hook("example_calls")
NAMES = {"np": np, "tl": tl, "tnp": tnp, "lax": lax}
WALKED = {
    "tapeless.lax": lax,
    "tapeless.lax.linalg": lax.linalg,
    "tapeless.nn": tl.nn,
    "tapeless.numpy": tnp,
    "tapeless.numpy.fft": tnp.fft,
    "tapeless.numpy.linalg": tnp.linalg,
    "tapeless.scipy.linalg": tl.scipy.linalg,
    "tapeless.scipy.signal": tl.scipy.signal,
    "tapeless.scipy.special": tl.scipy.special,
}
BAD = "'text'", "tl.random.key(0)", "tnp.ones((7, 5, 3))"
# The message is about a function that was an argument, about subscripts, or about an axis that is not bound.
OTHERS = {
    ("platform_dependent", "add"),
    ("einsum_path", "einsum"),
    ("pshuffle", "axis_size"),
    ("pswapaxes", "all_to_all"),
}


def test_modules_with_functions_to_name_exist():
    names = vars(called_functions)["_DEFINED"]
    assert len(names) > 5 and [name for name in names if find_spec(name) is None] == []


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("namespace", WALKED)
def test_errors_of_operands_that_are_not_taken(namespace: str):
    named = {name for module in WALKED.values() for name in module.__all__} | {p.name for p in core.all_primitives()}
    heads = {(name, _head(call)) for name, call in bad_calls(namespace)}
    assert {(name, head) for name, head in heads if head in named - {name}} - OTHERS == set()


def bad_calls(namespace: str) -> Iterator[tuple[str, str]]:
    """Yield the examples of functions with something else in the place of the first operand."""
    for name, example in examples.calls(namespace).items():
        tree = ast.parse(example, mode="eval").body
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
        for call in calls:
            if ast.unparse(call.func).rpartition(".")[2] == name and inspect.isroutine(
                getattr(WALKED[namespace], name)
            ):
                for bad in BAD:
                    call.args[0] = ast.parse(bad, mode="eval").body
                    yield name, ast.unparse(call)


def _head(call: str) -> str:
    """Return what the error of a call begins with: a name, before a colon or `is not defined`."""
    try:
        tl.make_jaxpr(lambda: eval(call, dict(NAMES)))()
    except Exception as error:
        return str(error).partition(":")[0].partition(" is not defined")[0]
    return ""


X, V, Z = tnp.ones(3), tnp.ones(4), tnp.ones(3, "complex64")
DIFFER = "shapes (3,) and (4,) do not broadcast."


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: tnp.hypot(X, V), f"hypot: {DIFFER}"),
        (lambda: tl.jit(lambda x: tl.vmap(tnp.hypot)(x, V[None]))(X[None]), f"hypot: {DIFFER}"),
        (lambda: tnp.acos("x"), "acos: argument 0 must be an array or a number, not str: 'x'."),
        (lambda: tnp.arccos("x"), "arccos: argument 0 must be an array or a number, not str: 'x'."),
        (lambda: lax.abs("x"), "abs: 'x' of type str is not an array or a number."),
        (lambda: tnp.copysign(1j, X), "copysign: complex numbers have no sign, and x is complex64[3]. Take "
         "tnp.real(x), or tnp.abs(x)."),
        (lambda: tnp.bitwise_and(X, X), "bitwise_and: the operand must be boolean or an integer, not float32[3] and "
         "float32[3].\n  Put comparisons in parentheses, (x > 0) & (y > 0), or convert with astype."),
        (lambda: tnp.fix(Z), "fix: the operand must be a real number or boolean, not complex64[3] and complex64[]."),
        (lambda: tl.nn.softmax(X, axis=3), "softmax: axis 3 is out of range for an array of 1 axes. The array is "
         "float32[3]."),
        (lambda: tnp.argsort(X, axis=2), "argsort: axis 2 is out of range for an array of 1 axes."),
        (lambda: tnp.argwhere(tl.random.key(0)), "argwhere is not defined for keys of random numbers: key<fry>[1].\n"
         "  Their words, which are uint32, are random.key_data(keys)."),
        (lambda: tnp.repeat(X, None), "repeat: argument 0 must be an array or a number, not NoneType: None."),
        (lambda: tnp.zeros(3, "text"), "zeros: 'text' is not a dtype of arrays: use bool, an integer, a float or a "
         "complex type, for example 'float32', np.int8 or float."),
        (lambda: tnp.full((2,), X), "full: float32[3] does not broadcast to (2,) along (0,)."),
        (lambda: tnp.hstack([X, tnp.ones((2, 2))]), "hstack: shapes must agree in all axes except 0: float32[3], "
         "float32[2,2]."),
        (lambda: X * V, f"*: {DIFFER}"),
        (lambda: tnp.linspace(0, 1, 2.5), "linspace: num must be an integer, not 2.5."),
        (lambda: tnp.ones(2, 3), "ones: 3 is not a dtype of arrays: use bool, an integer, a float or a complex type, "
         "for example 'float32', np.int8 or float.\n  If it is a size, write the shape as one tuple: (2, 3)."),
        (lambda: tnp.max(X[:1], X[:1]), "max: axis must be an integer, not Array(1., dtype=float32). The array is "
         "float32[1].\n  For the maximum of two arrays write maximum(x, y)."),
        (lambda: tnp.transpose(X, (0, 1)), "transpose: (0, 1) is not a permutation of the 1 axes of float32[3]."),
        (lambda: X.at(0), "x.at takes the index in brackets: x.at[index].set(values)."),
    ],
)  # fmt: skip
def test_messages(call, message):
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    assert text_of(caught.value) == message


def test_errors_of_functions_that_a_users_function_calls():
    def normalized(x):
        return x / tnp.linalg.norm(x, axis=5)

    message = "norm: axis 5 is out of range for an array of 1 axes. The array is float32[3]."
    with raises(tl.errors.AxisError, message):
        tl.grad(normalized)(X)
