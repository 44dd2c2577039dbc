"""The order of contraction: against all orders there are, and what it buys in value and gradient."""

import itertools
import math
import string

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.tracer.numpy import contraction_order


def cost(path, labels, out, sizes):
    """Multiplications of a path, counted term by term; an index that one operand alone has is summed before."""
    terms, total = [set(names) for names in labels], 0
    for i, j in path:
        b, a = terms.pop(j), terms.pop(i)
        needed = set(out).union(*terms)
        total += math.prod(sizes[n] for n in (a & (needed | b)) | (b & (needed | a)))
        terms.append((a | b) & needed)
    assert len(terms) == 1
    return total


def all_paths(operands):
    if operands == 1:
        yield ()
        return
    for pair in itertools.combinations(range(operands), 2):
        for rest in all_paths(operands - 1):
            yield (pair, *rest)


@pytest.mark.parametrize("seed", range(40))
def test_optimal_is_the_cheapest_of_all_orders(seed):
    rng = np.random.default_rng(seed)
    names = string.ascii_letters[: rng.integers(2, 7)]
    sizes = {n: int(rng.integers(1, 9)) for n in names}
    labels = [tuple(rng.permutation(list(names))[: rng.integers(1, 4)]) for _ in range(rng.integers(2, 6))]
    used = [n for n in names if any(n in each for each in labels)]
    out, sizes = tuple(used[: rng.integers(0, 3)]), {n: sizes[n] for n in used}
    found = {
        order: cost(contraction_order.contraction_path(order, labels, out, sizes), labels, out, sizes)
        for order in ("optimal", "greedy", "left")
    }
    assert found["optimal"] == min(cost(path, labels, out, sizes) for path in all_paths(len(labels)))
    assert found["optimal"] <= min(found.values())


def test_many_operands_are_contracted_greedily():
    labels = [tuple(string.ascii_letters[k : k + 2]) for k in range(20)]
    sizes = dict.fromkeys(string.ascii_letters[:21], 3)
    assert cost(contraction_order.contraction_path("optimal", labels, ("a",), sizes), labels, ("a",), sizes) < 20 * 27


def test_hartree_fock_value_and_gradient_take_two_contractions_of_the_integrals():
    """Every contraction with n^4 integrals counts n^4: one for the value, one more for the gradient in C."""
    n, m = 8, 3
    c, j = np.zeros((n, m), np.float32), np.zeros((n,) * 4, np.float32)
    energy = lambda c, j: tnp.einsum("pi,qi,rj,sj,pqrs->", c, c, c, c, j)  # noqa: E731
    n4 = n**4
    assert tl.cost(energy, c, j).work < 2.5 * n4
    assert tl.cost(tl.value_and_grad(energy), c, j).work < 5 * n4


@pytest.mark.parametrize(
    "optimize", [True, False, "auto", "optimal", "greedy", [(1, 2), (0, 1)], ["einsum_path", (0, 2), (0, 1)]]
)
def test_every_order_gives_numpys_value(optimize):
    rng = np.random.default_rng(0)
    xs = rng.normal(size=(2, 3)), rng.normal(size=(3, 4)), rng.normal(size=(4, 2))
    want = np.einsum("ab,bc,cd->ad", *xs)
    np.testing.assert_allclose(tnp.einsum("ab,bc,cd->ad", *xs, optimize=optimize), want, rtol=1e-12)


@pytest.mark.parametrize(
    ("optimize", "message"),
    [
        ("fast", "einsum: optimize='fast' is none of True, False, 'auto', 'optimal', 'dp', 'greedy', or a sequence of"),
        ([(0, 1)], "einsum: optimize=[(0, 1)] has 1 steps, 3 operands are contracted in 2."),
        ([(0, 3), (0, 1)], "einsum: step (0, 3) of optimize=[(0, 3), (0, 1)] names no two of the 3 operands left."),
    ],
)
def test_other_orders_are_refused(optimize, message):
    with pytest.raises(ValueError) as caught:
        tnp.einsum("a,a,a", *[np.ones(2)] * 3, optimize=optimize)
    assert str(caught.value).startswith(message)


def test_paths_are_reported_as_numpy_reports_them():
    xs = [np.ones(s, np.float32) for s in ((2, 3), (3, 40), (40, 1), (5, 1))]
    path, report = tnp.einsum_path("ij,jk,kl,ml->im", *xs)
    assert path[0] == "einsum_path" and len(path) == 4 and "Complete contraction:  ij,jk,kl,ml->im" in report
    np.testing.assert_allclose(tnp.einsum("ij,jk,kl,ml->im", *xs, optimize=path), 120.0)
    assert tnp.einsum_path("ij,jk->ik", *xs[:2], optimize=False)[0] == np.einsum_path("ij,jk->ik", *xs[:2])[0]
    assert tnp.einsum_path(xs[0], [0, 1], [1])[0][0] == "einsum_path"
