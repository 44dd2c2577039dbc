"""Polynomials in sizes: arithmetic and interpolation against evaluation, and their text."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeless.tracer.indices.size_polynomials import Polynomial, interpolate_polynomial

N, M = Polynomial.of("n"), Polynomial.of("m")
powers = st.dictionaries(st.sampled_from("mn"), st.integers(1, 2), max_size=2).map(lambda p: tuple(sorted(p.items())))
polynomials = st.dictionaries(powers, st.integers(-5, 5), max_size=4).map(Polynomial)
points = st.fixed_dictionaries({"n": st.integers(-9, 9), "m": st.integers(-9, 9)})


@given(polynomials, polynomials, points)
def test_arithmetic(p: Polynomial, q: Polynomial, x: dict[str, int]):
    assert (p + q).at(x) == p.at(x) + q.at(x)
    assert (p - q).at(x) == p.at(x) - q.at(x)
    assert (p * q).at(x) == p.at(x) * q.at(x)


@given(polynomials, points)
def test_text_is_an_expression(p: Polynomial, x: dict[str, int]):
    assert eval(str(p), {k: Fraction(v) for k, v in x.items()}) == p.at(x)


@given(polynomials, st.tuples(st.integers(-4, 9), st.integers(-4, 9)))
def test_interpolation(p: Polynomial, start: tuple[int, int]):
    assert interpolate_polynomial(("m", "n"), start, 4, lambda x: int(p.at({"m": x[0], "n": x[1]}))) == p


@pytest.mark.parametrize(
    "p, text",
    [
        (N * (M * 2 - 1), "n*(2*m - 1)"),
        (2 * N * M - N - M + 1, "2*m*n - m - n + 1"),
        (-N * N, "-n**2"),
        (-(N - 1), "-n + 1"),
        (Polynomial.of(0), "0"),
        (Polynomial.of(-4), "-4"),
        (N * (N - 1) * Fraction(1, 2), "1/2*n*(n - 1)"),
    ],
)
def test_text(p: Polynomial, text: str):
    assert str(p) == text
