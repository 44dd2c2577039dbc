"""The order of contraction, and what it costs."""

from tapeless.interpreters.terms.plan import plan_term
from tapeless.tracer.terms.affine import Affine
from tapeless.tracer.terms.term import IsZero, Read, term

i, j, k = (Affine(0, ((v, 1),)) for v in range(3))


def test_matrix_chain():
    """(A (B v)) is n^2, whichever the order of the factors is."""
    n = 10
    t = term((i,), (n, n, n), [Read(0, (i, j)), Read(1, (j, k)), Read(2, (k,))])
    plan = plan_term(t, ((n, n), (n, n), (n,)), (n,))
    assert plan is not None and plan.cost.work == 4 * n * n and plan.cost.held == 2 * n


def test_sums_come_before_products():
    n = 10
    t = term((), (n, n), [Read(0, (i,)), Read(1, (j,))])
    plan = plan_term(t, ((n,), (n,)), ())
    assert plan is not None and plan.cost.work == 2 * n + 1


def test_many_factors():
    """A chain of eight: of more than six, some are joined greedily."""
    n = 4
    v = [Affine(0, ((axis, 1),)) for axis in range(9)]
    t = term((v[0], v[8]), (n,) * 9, [Read(factor, (v[factor], v[factor + 1])) for factor in range(8)])
    plan = plan_term(t, ((n, n),) * 8, (n, n))
    assert plan is not None and plan.cost.work == 7 * 2 * n**3


def test_what_no_operation_is_known_for():
    """Windows, and masks of a variable that is summed and one that no factor has with it."""
    assert plan_term(term((i,), (3, 4), [Read(0, (i + j,))]), ((6,),), (3,)) is None
    assert plan_term(term((i,), (3, 3), [Read(0, (j,))], [IsZero(2 * i - 3 * j)]), ((3,),), (3,)) is None
