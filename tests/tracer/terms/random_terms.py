"""Random terms, and their values by a loop over all values of all variables, in Python's integers."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tapeless.tracer.terms.affine import Affine, Symbol
from tapeless.tracer.terms.term import Bracket, IsZero, Lookup, NotNegative, Read, Sum, Term, Use, term

# Two arrays of numbers, a mask, an array of positions, a scalar: operands 0 to 4.
SHAPES = ((3, 4), (5,), (4,), (3,), ())
MASK, POSITIONS, SCALAR = 2, 3, 4
ALL_POSITIONS = (-2, 6)  # nothing need be clipped to these
OUT = (4, 3)


def operands(seed: int) -> list[Any]:
    """Operands of `SHAPES`; numbers are small integers, so that sums in any order are equal."""
    rng = np.random.default_rng(seed)
    matrix, vector = [rng.integers(-3, 4, shape).astype(np.float64) for shape in SHAPES[:2]]
    mask = rng.integers(0, 2, SHAPES[MASK]) > 0
    positions = rng.integers(ALL_POSITIONS[0], ALL_POSITIONS[1] + 1, SHAPES[POSITIONS])
    return [matrix, vector, mask, positions, np.asarray(rng.integers(-2, 7))]


# ---- the oracle ----------------------------------------------------------------------------------------------


def value_of(a: Affine, at: Sequence[int], given: Sequence[Any]) -> int:
    symbols = sum(c * min(max(int(given[s.operand]), s.low), s.high) for s, c in a.symbols)
    return a.constant + symbols + sum(c * at[v] for v, c in a.variables)


def element(x: Any, access: Sequence[Affine], at: Sequence[int], given: Sequence[Any]) -> Any:
    index = tuple(value_of(a, at, given) for a in access)
    assert all(0 <= i < n for i, n in zip(index, x.shape)), f"{index} is outside of {x.shape}"
    return x[index]


def holds(b: Bracket, at: Sequence[int], given: Sequence[Any]) -> bool:
    index = value_of(b.index, at, given)
    if isinstance(b, IsZero):
        return index == 0
    if isinstance(b, NotNegative):
        return index >= 0
    found = int(element(given[b.operand], b.access, at, given))
    return index == (min(max(found, b.limits[0]), b.limits[1]) if b.limits else found)


def looped(terms: Sum, given: Sequence[Any], shape: Sequence[int] = OUT, dtype: Any = np.float64) -> Any:
    """The sum of `terms`, product by product. Brackets without lookups come first, and guard what these read."""
    out = np.zeros(shape, dtype)
    for t in terms:
        brackets = sorted(t.brackets, key=lambda b: isinstance(b, Lookup))
        for at in product(*map(range, t.sizes)):
            if all(holds(b, at, given) for b in brackets):
                value = t.coefficient
                for f in t.factors:
                    x = element(given[f.operand], f.access, at, given)
                    x = np.conj(x) if f.use is Use.CONJUGATED else x
                    value = value / x if f.use is Use.DIVIDED else value * x
                index = tuple(value_of(a, at, given) for a in t.out)
                assert all(0 <= i < n for i, n in zip(index, shape)), f"{index} is outside of {shape}"
                out[index] += value
    return out


# ---- random terms --------------------------------------------------------------------------------------------

coefficients = st.sampled_from([0, 0, 0, 1, 1, 1, -1, -1, 2, -2, 3, 4, 6])


@st.composite
def affines(draw: Any, n: int) -> Affine:
    """Of n variables and, seldom, a symbol."""
    pairs = tuple([(v, c) for v in range(n) if (c := draw(coefficients))])
    seldom = draw(st.integers(0, 9)) == 0
    symbols = ((Symbol(SCALAR, 0, draw(st.integers(1, 3))), draw(st.sampled_from([1, -1, 2]))),) if seldom else ()
    return Affine(draw(st.integers(-3, 3)), pairs, symbols)


def inside(access: Sequence[Affine], shape: Sequence[int]) -> list[Bracket]:
    """The brackets that keep an access inside."""
    return [b for a, n in zip(access, shape) for b in (NotNegative(a), NotNegative(n - 1 - a))]


@st.composite
def terms(draw: Any, out: Sequence[int] = OUT, reading: Sequence[int] = (0, 1), shapes: Any = SHAPES) -> Term:
    """Terms whose brackets keep all accesses inside."""
    n = draw(st.integers(1, 4))
    sizes = [draw(st.integers(1, 4)) for _ in range(n)]

    def accessing(shape: Sequence[int]) -> tuple[Affine, ...]:
        found = tuple([draw(affines(n)) for _ in shape])
        brackets.extend(inside(found, shape))
        return found

    brackets: list[Bracket] = [IsZero(draw(affines(n))) for _ in range(draw(st.integers(0, 2)))]
    brackets += [NotNegative(draw(affines(n))) for _ in range(draw(st.integers(0, 1)))]
    for operand in draw(
        st.sampled_from([(), (), (), (MASK,), (POSITIONS,), (POSITIONS, MASK), (POSITIONS, POSITIONS)])
    ):
        index = Affine(draw(st.integers(0, 1))) if operand == MASK else draw(affines(n))
        limits = (0, 1) if operand == MASK else draw(st.sampled_from([None, None, (0, 3), (2, 2), ALL_POSITIONS]))
        brackets.append(Lookup(index, operand, accessing(shapes[operand]), limits, limits == ALL_POSITIONS))
    operand = st.sampled_from(list(reading))
    factors = [Read(k, accessing(shapes[k])) for k in draw(st.lists(operand, min_size=1, max_size=3))]
    return term(accessing(out), sizes, factors, brackets, draw(st.sampled_from([1, 1, 2, -1])))
