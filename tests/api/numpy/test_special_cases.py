"""Functions of elements at zeros, infinities and nan: every row of the array API standard's special cases."""

import itertools

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tests.api.numpy import special_cases as standard

VALUES = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, np.inf]
VALUES = [*VALUES, *(-x for x in VALUES), np.nan]
PAIRS = list(itertools.product(VALUES, VALUES))
RTOL = {"float32": 1e-6, "float64": 1e-14, "complex64": 2e-6, "complex128": 1e-13}


def disagreements(points, results, text, rtol):
    """The points at which a row of the table says otherwise."""
    for operands, parts in standard.rows(text):
        chosen = [i for i, p in enumerate(points) if all(map(standard.fits, operands, p))]
        assert chosen, f"no sample fits {operands}"
        for i in chosen:
            x, y = (*points[i], 0.0)[:2]
            for found, part in zip(results[i], parts, strict=True):
                wanted = standard.expected(part, x, y)
                if not standard.same(float(found), wanted, part.startswith("~"), rtol):
                    yield f"{' '.join(operands)}: {', '.join(parts)} at {points[i]} is {found}"


def parts_of(x):
    x = np.asarray(x)
    return np.stack([x.real, x.imag], -1) if np.iscomplexobj(x) else x[:, None]


def complex_grid(dtype):
    """The pairs as complex numbers; the sum of a real and an imaginary one would lose signs."""
    grid = np.empty(len(PAIRS), dtype)
    grid.real, grid.imag = np.array(PAIRS).T
    return grid


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", standard.ONE)
def test_of_one_operand(name, dtype):
    found = getattr(tnp, name)(np.array(VALUES, dtype))
    wrong = disagreements([(x,) for x in VALUES], parts_of(found), standard.ONE[name], RTOL[dtype])
    assert not list(wrong)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", standard.TWO)
def test_of_two_operands(name, dtype):
    found = getattr(tnp, name)(*np.array(PAIRS, dtype).T)
    wrong = disagreements(PAIRS, parts_of(found), standard.TWO[name], RTOL[dtype])
    assert not list(wrong)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", standard.COMPLEX)
def test_of_complex_operands(name, dtype):
    found = getattr(tnp, name)(complex_grid(dtype))
    assert not list(disagreements(PAIRS, parts_of(found), standard.COMPLEX[name], RTOL[dtype]))


def values(name, dtype="complex128"):
    return parts_of(getattr(tnp, name)(complex_grid(dtype)))


def at(name, points, dtype="complex128"):
    """The parts of a function at complex numbers of the grid, whose parts are signed or exchanged."""
    places = {(str(x), str(y)): i for i, (x, y) in enumerate(PAIRS)}
    return values(name, dtype)[[places[str(x), str(y)] for x, y in points]]


def assert_same(name, found, wanted):
    for point, mine, theirs in zip(PAIRS, found, wanted, strict=True):
        open_sign = np.isnan(point).any() or np.isinf(point).all() or np.isnan(mine).any()
        for a, b in zip(mine, theirs, strict=True):
            assert standard.same(a, b, open_sign, rtol=1e-14), (name, point, mine, theirs)


@pytest.mark.parametrize("name", ["acos", "acosh", "asin", "asinh", "atan", "atanh"])
def test_nothing_is_known_beside_nan_and_a_large_number(name):
    """XLA's have a finite part there."""
    found = getattr(tnp, name)(np.array([complex(1e150, np.nan), complex(np.nan, 1e150)]))
    assert np.isnan(parts_of(found)).all()


@pytest.mark.parametrize("name", standard.AS_IF)
def test_as_if_of_another(name):
    u, v = at(standard.AS_IF[name], [(-y, x) for x, y in PAIRS]).T
    assert_same(name, values(name), np.stack([u, v] if name == "cos" else [v, -u], -1))


@pytest.mark.parametrize("name", standard.CONJUGATE)
def test_symmetries(name):
    found = values(name)
    assert_same(name, at(name, [(x, -y) for x, y in PAIRS]), found * [1, -1])
    if name in standard.ODD_FUNCTIONS + standard.EVEN_FUNCTIONS:
        sign = -1 if name in standard.ODD_FUNCTIONS else 1
        assert_same(name, at(name, [(-x, -y) for x, y in PAIRS]), sign * found)


def test_signs_of_nan_are_copied():
    signs, x = np.array([1.0, -1.0, 0.0, -0.0, np.nan, -np.nan]), np.full(6, np.nan)
    for f in (tnp.copysign, tl.jit(tnp.copysign)):
        np.testing.assert_array_equal(np.signbit(f(x, signs)), np.signbit(signs))
    np.testing.assert_array_equal(tnp.signbit(signs), np.signbit(signs))
