"""What derivatives cost, on every program of the suite, in the model that knows of zeros.

D pushes a tangent and D* pulls a cotangent; both compute the function too. `in` and `out` are scalars.
    cost(D) <= 4 cost        cost(D*) <= 4 cost + in + out
The 4 is the constant of a product, and of every function of scalars: those that are composed of several operations
count as these (analysis/operation_counts.py). What needs more has a constant of its own, by name and with its
reason; a program has the greatest of its primitives. The theorem itself is weaker, cost(D*) <= 4 (cost + in + out), and
holds for random programs by the hundred.
`python -m tests.cost_ratios` prints the ratios. Source: Bernstein et al. 2020, section 6.
"""

from typing import Any, NamedTuple

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tests import cost_ratios
from tests.cost_ratios import Case, Ratio, ratio
from tests.samples.sample import Sample
from tests.test_primitives import over


class Bound(NamedTuple):
    """cost(D) <= forward cost + ends (in + out); cost(D*) <= reverse cost + max(ends, 1) (in + out)."""

    forward: float = 4
    reverse: float = 4
    ends: int = 0

    def holds(self, found: Ratio) -> bool:
        """Whether it does for these figures."""
        backwards = found.of_reverse(max(self.ends, 1)) <= self.reverse
        return found.of_forward(self.ends) <= self.forward and backwards


# What has more than that, and why. Factorizations of matrices are not of the theorem's language, which is made of sums,
# products and functions of scalars: they are LAPACK's, which counts its own, and their derivatives are other formulas.
EXCEPTIONS: dict[str, tuple[Bound, str]] = {
    "ein": (Bound(6, 6), "the derivative of m factors is m products of m, of which nothing is shared"),
    "tanh": (Bound(5), "(1 - y)(1 + y), which no compiler makes one operation here and two there"),
    "atan2": (Bound(7, 7), "operands are scaled by the greater of them, so that no square overflows or vanishes"),
    "cholesky": (Bound(7, 8), "n³ / 3 operations, with two triangular solves of n³ each, and a product"),
    "lu": (Bound(6, 6), "2 n³ / 3 operations, with two triangular solves of n³ each, and two products of triangles"),
    "qr": (
        Bound(7, 6),
        "of few columns, with a triangular solve, and three products; more of one whose columns complete a basis",
    ),
    "det": (Bound(5), "2 n³ / 3 operations, with an adjugate, which is an inverse, of 2 n³"),
    "adjugate": (
        Bound(27, 27),
        "2 n³ operations; nearly singular ones have a mean over n - 1 others, and their svd",
    ),
    "eigh": (
        Bound(10, 10),
        "4 n³ / 3 operations without the vectors, of 9 n³, that derivatives of values need too",
    ),
    "svd": (Bound(8, 8), "8 n³ / 3 operations without the vectors, of 26 n³, that derivatives of values need too"),
    # what is not a sum, a product or a function of scalars either
    "scatter": (Bound(ends=1), "free; where updates may overlap, the one that won is written by adding it to a zero"),
    "scatter_max": (Bound(9), "what is greatest is found again, and ties share"),
    "scatter_min": (Bound(9), "what is least is found again, and ties share"),
}


def bound(case: Case) -> Bound:
    """The greatest that its primitives need."""
    some = [EXCEPTIONS[name][0] for name in cost_ratios.primitives(case.function, case.args) if name in EXCEPTIONS]
    return Bound(*map(max, zip(Bound(), *some)))


@over(list(cost_ratios.PRIMITIVES.values()))
def test_of_primitives(row: Sample):
    case = cost_ratios.of_primitive(row)
    assert bound(case).holds(case.ratio())


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_exceptions_are_needed(name):
    cases = [cost_ratios.of_primitive(row) for row in cost_ratios.PRIMITIVES.values() if row.primitive.name == name]
    assert not all(Bound().holds(case.ratio()) for case in cases)


@pytest.mark.parametrize("name, case", [pytest.param(name, case, id=name) for name, case in cost_ratios.suite()])
def test_of_programs(name: str, case: Case):
    assert bound(case).holds(case.ratio())


@pytest.mark.parametrize("first", range(1000, 1200, 50))
def test_of_random_programs(first):
    """The theorem: cost(D*) <= 4 (cost + in + out)."""
    seeds = range(first, first + 50)
    for name, case in [*cost_ratios.structured(seeds), *cost_ratios.small(seeds)]:
        found = ratio(case.function, case.args, forward=False)
        assert found.reverse is not None
        assert found.reverse <= 4 * (found.function + found.ends), name


# ---- what attains it, and what does not --------------------------------------------------------------------------


def spec(*shape: int) -> Any:
    return tl.ShapeDtypeStruct(shape, "float64")


def test_a_product_attains_the_bound():
    assert ratio(lambda x, y: x * y, (spec(), spec())) == Ratio(function=1, forward=4, reverse=3, ends=3)
    assert ratio(lambda x: x * x, (spec(),)).of_forward() == 4


def test_cotangents_of_what_is_free_are_paid_by_scalars_in_and_out():
    assert ratio(lambda x: tnp.broadcast_to(x, (9,)), (spec(),)) == Ratio(function=0, forward=0, reverse=8, ends=10)
    windows = ratio(lambda x: tnp.stack([x[k : k + 7] for k in range(3)]), (spec(9),))
    assert windows == Ratio(function=0, forward=0, reverse=3 * 7 - 9, ends=9 + 21)


def test_indexing_is_free_both_ways():
    for f in (lambda x: x[np.array([3, 1, 0])], lambda x: tnp.roll(x, 2)[::-1], lambda x: tnp.pad(x, 2).reshape(3, 3)):
        found = ratio(f, (spec(5),))
        assert (found.function, found.forward, found.reverse) == (0, 0, 0)
