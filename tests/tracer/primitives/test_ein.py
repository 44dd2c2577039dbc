"""The primitive `ein`: its text, its normal form and its errors."""

from typing import Any

import numpy as np
import pytest

import tapeless as tl
from tapeless.lowering import emit
from tapeless.tracer.errors import InternalError
from tapeless.tracer.primitives.ein import ein, ein_p
from tapeless.tracer.terms.affine import Affine, variables
from tapeless.tracer.terms.term import IsZero, Lookup, NotNegative, Read, Term, Use, term
from tests.messages import text_of

i, j, k = variables((0, 0, 0))
X, Y = np.ones((3, 4), np.float32), np.ones((4, 2), np.float32)
PRODUCT = term((i, j), (3, 2, 4), [Read(0, (i, k)), Read(1, (k, j))])


def printed(*terms: Term, given: Any, shape: Any) -> str:
    return str(tl.make_jaxpr(lambda *x: ein(x, terms, shape))(*given)).splitlines()[1].strip()


def test_text():
    assert printed(PRODUCT, given=(X, Y), shape=(3, 2)) == "c:f32[3,2] = ein[c[i,j] += Σ k. a[i,k] b[k,j]] a b"
    both = term((i,), (3, 4), [Read(0, (i, j))], [Lookup(Affine(1), 1, (i,))]), term((i,), (3,), brackets=[IsZero(i)])
    assert printed(*both, given=(X, X[:, 0] > 0), shape=(3,)) == (
        "c:f32[3] = ein[c[i] += Σ j. [1 = b[i]] a[i,j]; c[0] += 1] a b"
    )


def test_gradients_are_terms_with_the_same_brackets():
    t = term((i,), (4, 4), [Read(0, (i,)), Read(1, (j,))], [NotNegative(i - j), Lookup(Affine(1), 2, (j,))])

    def f(x: Any, y: Any, mask: Any, ct: Any) -> Any:
        return tl.vjp(lambda x, y: ein([x, y, mask], [t], (4,)), x, y)[1](ct)

    mask = np.array([True, False, True, True])
    program = str(tl.make_jaxpr(f)(X[0], X[1], mask, X[2]))
    assert [line.strip() for line in program.splitlines()[1:-1]] == [
        "e:f32[4] = ein[e[i] += Σ j. [i >= j] [1 = c[j]] b[j] d[i]] b c d",
        "f:f32[4] = ein[f[i] += Σ j. [j >= i] [1 = c[i]] a[j] d[j]] a c d",
    ]


def test_normal_form():
    """Solved, merged, without operands that nothing reads; what is outside is left out."""
    shifted = term((i,), (3,), [Read(1, (i + 1,))])
    assert printed(shifted, shifted, given=(X, X[0, :3]), shape=(3,)) == "c:f32[3] = ein[c[i] += 2 b[i + 1] for i<2] b"
    nowhere = term((i,), (3,), [Read(0, (i + 9,))])
    np.testing.assert_array_equal(ein([X[0]], [nowhere], (3,)), np.zeros(3))
    exists = term((), (3,), [Read(0, (0 * i,))])
    assert ein([np.array([True])], [exists], ()).dtype == bool


def test_lowering_never_sees_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(emit, "passes", [])
    with pytest.raises(InternalError, match="ein is lowered as it is, though the pass lower_ein comes before"):
        emit.module(tl.make_jaxpr(lambda x, y: ein([x, y], [PRODUCT], (3, 2)))(X, Y).jaxpr)


ERRORS: dict[str, tuple[tuple[Any, ...], Term, type[Exception]]] = {
    "ein: factor b[i,j], operand 1 of type float32[4], has 2 indices for 1 axes.": (
        (X, Y[:, 0]), term((i,), (3, 4), [Read(0, (i, j)), Read(1, (i, j))]), ValueError,
    ),
    "ein: factor b[j], operand 1 of type float64[4], is not of the dtype of the result, float32: convert it.": (
        (X, np.ones(4)), term((j,), (4, 3), [Read(0, (j, i)), Read(1, (i,))]), TypeError,
    ),
    "ein: out[i] += Σ j. [j = b[i]] a[i,j] reads operand 1 of 1: float32[3,4].": (
        (X,), term((i,), (3, 4), [Read(0, (i, j))], [Lookup(j, 1, (i,))]), ValueError,
    ),
    "ein: no term has a factor, so the dtype of the result must be given.": ((), term((i,), (3,)), TypeError),
}  # fmt: skip


@pytest.mark.parametrize("message", ERRORS)
def test_errors(message: str):
    given, t, error = ERRORS[message]
    with pytest.raises(error) as raised:
        ein(given, [t], (3,))
    assert str(raised.value) == message


def test_what_leaves_an_array_needs_a_bracket():
    t = term((i,), (3, 4), [Read(0, (i, j + 1))])
    with pytest.raises(IndexError) as raised:
        tl.make_jaxpr(lambda x: ein_p.bind(x, terms=(t,), shape=(3,), dtype=None, precision=None)[0])(X)
    assert text_of(raised.value) == (
        "ein: factor a[i,j + 1], operand 0 of type float32[3,4], is out of range along axis 1 of 4: j + 1 is 1 to 4, "
        "and no bracket keeps it inside.\n  out[i] += Σ j. a[i,j + 1]"
    )


def test_integers_do_not_divide():
    t = term((i,), (3,), [Read(0, (i,), Use.DIVIDED)])
    with pytest.raises(TypeError, match="divides, which integers and booleans do not"):
        ein([np.arange(3)], [t], (3,))


def test_linearity():
    """Bilinear, affine and quotients are told by name."""
    square = [term((i,), (3,), [Read(0, (i,)), Read(0, (i,))])]
    inverse = [term((i,), (3,), [Read(0, (i,), Use.DIVIDED)])]
    shifted = [term((i,), (3,), [Read(0, (i,))]), term((i,), (3,))]
    x = np.ones(3)
    for terms, reason in ((square, "bilinear"), (inverse, "nonlinear primitive"), (shifted, "affine")):
        with pytest.raises(tl.errors.LinearityError) as raised:
            tl.check_linear(lambda x, terms=terms: ein([x], terms, (3,)), x)
        assert raised.value.reason == reason
