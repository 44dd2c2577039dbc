"""What derivatives cost, on every program of the suite, in the model that knows of zeros.

D pushes a tangent and D* pulls a cotangent; both compute the function too. `in` and `out` are scalars.
    cost(D) <= 4 cost        cost(D*) <= 4 cost + in + out
The 4 is for functions whose derivative is one operation, as it is for add, mul, div, sin, cos, exp. A primitive whose
derivative is more has a constant of its own, by name and with its reason; a program has the greatest of its own.
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


SLOPE = "its derivative is several operations"
# What has more than that, and why.
EXCEPTIONS: dict[str, tuple[Bound, str]] = {
    # scalar functions
    "tanh": (Bound(5), f"{SLOPE}: (1 - y)(1 + y)"),
    "asinh": (Bound(5), f"{SLOPE}: 1 / sqrt(1 + x²)"),
    "atanh": (Bound(5), f"{SLOPE}: 1 / (1 - x²)"),
    "asin": (Bound(6), f"{SLOPE}: 1 / sqrt((1 - x)(1 + x))"),
    "acos": (Bound(7, 5), f"{SLOPE}: -1 / sqrt((1 - x)(1 + x))"),
    "acosh": (Bound(7, 5), f"{SLOPE}: 1 / sqrt((x - 1)(x + 1))"),
    "erf": (Bound(6), f"{SLOPE}: 2 / sqrt(π) exp(-x²)"),
    "erfc": (Bound(6), f"{SLOPE}: -2 / sqrt(π) exp(-x²)"),
    "erf_inv": (Bound(5), f"{SLOPE}: sqrt(π) / 2 exp(y²)"),
    "bessel_i0e": (Bound(6), f"{SLOPE}: I1 - sign(x) I0"),
    "bessel_i1e": (Bound(8, 6), f"{SLOPE}: I0 - I1 (sign(x) + 1 / x), and its limit at 0"),
    "sign": (Bound(8, 6), f"{SLOPE}, of complex numbers: x / |x| by its two parts"),
    # functions of two numbers, each with a derivative
    "rem": (Bound(6), f"{SLOPE}: 1 and the quotient, truncated"),
    "atan2": (Bound(13, 9), f"{SLOPE}: y / (x² + y²) and -x / (x² + y²), scaled"),
    "pow": (Bound(10, 7), f"{SLOPE}: y x^(y-1) and x^y log x, with their limits"),
    "igamma": (Bound(38, 34), f"{SLOPE}: a density by logarithms, and igamma_grad_a"),
    "igammac": (Bound(40, 37), f"{SLOPE}: those of igamma, negated"),
    "igamma_grad_a": (Bound(21, 19), f"{SLOPE}: differences of itself"),
    # what goes along an axis
    "reduce_prod": (Bound(7), "each factor's derivative is the product of all others, in a tree, for zeros' sake"),
    "cumprod": (Bound(4.5), "a recurrence of two operations a step, and what drives it"),
    "cumlogsumexp": (Bound(10, 7), "a recurrence, whose weights are exponentials of differences"),
    "linear_recurrence": (Bound(4.5), "a recurrence for each of its operands, what drives the one, and their sum"),
    "reduce_window_prod": (Bound(40, 47), "products of all others in every window, which may overlap all"),
    "reduce_window_max": (
        Bound(4, 6),
        "if dilated, windows are laid out, and cotangents of all places that may be greatest added",
    ),
    "reduce_window_min": (
        Bound(4, 6),
        "if dilated, windows are laid out, and cotangents of all places that may be least added",
    ),
    "scatter_max": (Bound(9), "what is greatest is found again, and ties share"),
    "scatter_min": (Bound(9), "what is least is found again, and ties share"),
    # matrices
    "cholesky": (Bound(8, 9), "n³ / 3 operations, with two triangular solves of n³ each, and a product"),
    "triangular_solve": (Bound(5), "half a product, whose derivative is a whole one"),
    "lu": (Bound(6, 6), "2 n³ / 3 operations, with two triangular solves of n³ each, and two products of triangles"),
    "qr": (Bound(4, 5), "of few columns, with a triangular solve, and three products"),
    "det": (Bound(5), "2 n³ / 3 operations, with an adjugate, which is an inverse, of 2 n³"),
    "adjugate": (
        Bound(26, 26),
        "2 n³ operations; nearly singular ones have a mean over n - 1 others, and their svd",
    ),
    "eigh": (
        Bound(10, 10),
        "4 n³ / 3 operations without the vectors, of 9 n³, that derivatives of values need too",
    ),
    "svd": (Bound(8, 8), "8 n³ / 3 operations without the vectors, of 26 n³, that derivatives of values need too"),
    # what costs nothing itself
    "scatter": (Bound(ends=1), "free; where updates may overlap, the one that won is written by adding it to a zero"),
    "reduce_max": (Bound(ends=1), "free without axes; its derivative shares among ties"),
    "reduce_min": (Bound(ends=1), "free without axes; its derivative shares among ties"),
    "complex": (Bound(ends=2), "two scalars in, one out; i times a cotangent is taken apart again"),
}
# Programs of which more must be allowed than of their primitives.
PROGRAMS = {
    "structured 2": (Bound(5, 5), "an outer product is formed before the mask that leaves one diagonal of it"),
    "structured 9": (
        Bound(5, ends=1),
        "the function is zero and free, of which its derivative's coefficients know not",
    ),
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
    allowed = PROGRAMS[name][0] if name in PROGRAMS else bound(case)
    assert allowed.holds(case.ratio())


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
