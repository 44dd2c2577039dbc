"""Lowering of `ein`: values and derivatives against loops over the box, infinities, and how programs grow."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tapeless as tl
from tapeless import index as ix
from tapeless import lax
from tapeless import numpy as tnp
from tapeless.interpreters import limits
from tapeless.interpreters.terms.lower_ein import without_ein
from tapeless.tracer.check import check
from tapeless.tracer.jaxpr import Jaxpr, subjaxprs
from tapeless.tracer.primitives.contraction import dot_general_p
from tapeless.tracer.primitives.ein import ein, ein_p
from tapeless.tracer.primitives.reduction import cumsum_p
from tapeless.tracer.terms.affine import Affine, variables
from tapeless.tracer.terms.solve import solve_term
from tapeless.tracer.terms.term import IsZero, Lookup, NotNegative, Read, Sum, Term, term
from tapeless.tracer.terms.term_limits import Limit
from tests.stepping import by_steps
from tests.tracer.terms.random_terms import OUT, SHAPES, looped, operands, terms

i, j, k = variables((0, 0, 0))
N = len(SHAPES)


# ---- random sums of terms ------------------------------------------------------------------------------------


def pushed(ts: Sequence[Term]) -> Sum:
    """The terms of the derivative by operands 0 and 1, whose tangents are operands N and N + 1."""
    return tuple(
        term(t.out, t.sizes, [*t.factors[:at], f._replace(operand=f.operand + N), *t.factors[at + 1 :]], t.brackets,
             t.coefficient)
        for t in ts for at, f in enumerate(t.factors)
    )  # fmt: skip


def everything(ts: Sequence[Term]) -> Callable[..., Any]:
    """Value, both modes, and maps over each operand and over all, of two examples."""

    def f(*x: Any) -> Any:
        return ein(x, ts, OUT)

    def of_examples(first: Sequence[Any], tangents: Sequence[Any], ct: Any, both: Sequence[Any]) -> Any:
        def g(*x: Any) -> Any:
            return f(*x, *first[2:])

        y, tangent = tl.jvp(g, tuple(first[:2]), tuple(tangents))
        alone = [[0 if n == at else None for n in range(N)] for at in range(N)]
        mapped = [
            tl.vmap(f, in_axes=axes)(*[y if a == 0 else x for a, x, y in zip(axes, first, both)]) for axes in alone
        ]
        pulled = tl.vmap(lambda *x: tl.vjp(lambda *y: f(*y, *x[2:]), *x[:2])[1](ct))(*both)
        return y, tangent, tl.vjp(g, *first[:2])[1](ct), mapped, tl.vmap(f)(*both), pulled

    return of_examples


@settings(deadline=None, max_examples=8)
@given(st.lists(terms(), min_size=1, max_size=3), st.integers(0, 99))
def test_random_terms(ts: list[Term], seed: int):
    first, second = operands(seed), operands(seed + 1)
    rng = np.random.default_rng(seed)
    tangents = [rng.integers(-3, 4, shape).astype(np.float64) for shape in SHAPES[:2]]
    ct = rng.integers(-3, 4, OUT).astype(np.float64)
    both = [np.stack(pair) for pair in zip(first, second)]
    y, tangent, cts, alone, mapped, pulled = tl.jit(everything(ts))(first, tangents, ct, both)
    np.testing.assert_array_equal(y, looped(tuple(ts), first))
    np.testing.assert_array_equal(tangent, looped(pushed(ts), [*first, *tangents]))
    for at in range(N):
        for found, x in zip(alone[at], (first, second)):
            changed = [*first[:at], x[at], *first[at + 1 :]]
            np.testing.assert_array_equal(found, looped(tuple(ts), changed))
    np.testing.assert_array_equal(mapped, [looped(tuple(ts), x) for x in (first, second)])
    for ct_of, alike in zip(pulled, cts):
        np.testing.assert_array_equal(ct_of[0], alike)
    for n, x in enumerate((first, second)):
        forwards = np.sum(looped(pushed(ts), [*x, *tangents]) * ct)
        assert sum(np.sum(np.asarray(own[n]) * t) for own, t in zip(pulled, tangents)) == forwards


def with_inequalities(seed: int) -> tuple[Term | None, Sequence[int], list[Any]]:
    """A term of few indices with several inequalities, some of the same two, the shape of its result, its operands."""
    random = np.random.default_rng(seed)
    sizes = [int(n) for n in random.integers(2, 5, 4)]
    v = variables(sizes)

    def drawn(most: int) -> list[int]:
        return [int(n) for n in random.permutation(4)[: random.integers(most + 1)]]

    read, out = [drawn(2) for _ in range(random.integers(1, 4))], drawn(2)
    inequalities = list[NotNegative]()
    for _ in range(random.integers(2, 5)):
        first, second = random.permutation(3 if random.integers(2) else 4)[:2]
        a, b = (int(c) for c in random.choice([1, -1, 1, -1, 2, -2], 2))
        inequalities.append(NotNegative(v[first] * a + v[second] * b + int(random.integers(-2, 3))))
    factors = [Read(k, tuple([v[n] for n in own])) for k, own in enumerate(read)]
    found = solve_term(term(tuple([v[n] for n in out]), sizes, factors, inequalities))
    return (
        found,
        [sizes[n] for n in out],
        [random.integers(-9, 9, [sizes[n] for n in own]).astype(float) for own in read],
    )


@pytest.mark.parametrize("first", range(0, 120, 40))
def test_random_inequalities(first: int):
    """Whatever becomes a running sum, none is lost."""
    for seed in range(first, first + 40):
        t, shape, x = with_inequalities(seed)
        if t is not None:
            found = by_steps(lowered(t, shape, *x), x)[0]
            np.testing.assert_array_equal(found, looped((t,), x, shape), err_msg=str(seed))


# ---- infinities ----------------------------------------------------------------------------------------------

CUBE = (3, 3, 3)
MASKED = {
    "positions": term((i, j), CUBE, [Read(0, (i, k)), Read(1, (k, j))], [NotNegative(i - k)]),
    "data": term((i, j), CUBE, [Read(0, (i, k)), Read(1, (k, j))], [Lookup(Affine(1), 2, (k, i))]),
    "neither": term((i,), CUBE, [Read(0, (i, k)), Read(1, (i, j))], [IsZero(j + k - 2)]),
    "three": term((i,), CUBE, [Read(0, (i, k)), Read(1, (k, j)), Read(1, (j, i))], [NotNegative(j + k - i - 1)]),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of infinities
@pytest.mark.parametrize("most", [0, limits.PRODUCTS])
def test_a_failing_bracket_keeps_infinities_out(most: int, monkeypatch: pytest.MonkeyPatch):
    """Chosen from the whole product, or asked whether all is finite."""
    monkeypatch.setattr(limits, "PRODUCTS", Limit(most, "PRODUCTS", "", ""))
    rng = np.random.default_rng(0)
    a, b = [rng.integers(-3, 4, (3, 3)).astype(np.float64) for _ in range(2)]
    mask, bad = rng.integers(0, 2, (3, 3)) > 0, b.copy()
    bad[1, 2], bad[0, 0] = np.inf, np.nan

    def f(*x: Any) -> Any:
        return [ein(x, [t], CUBE[: len(t.out)]) for t in MASKED.values()]

    compiled = tl.jit(f)
    for values in ((a, b, mask), (a, bad, mask)):
        for t, found in zip(MASKED.values(), compiled(*values), strict=True):
            np.testing.assert_array_equal(found, looped((t,), values, CUBE[: len(t.out)]))


# ---- which operations ----------------------------------------------------------------------------------------


def lowered(t: Term, shape: Sequence[int], *operands: Any) -> Jaxpr:
    """The program of one term."""
    return check(without_ein(tl.make_jaxpr(lambda *x: ein(x, [t], shape))(*operands).jaxpr))


def primitives(jaxpr: Jaxpr) -> list[str]:
    return [eqn.primitive.name for eqn in jaxpr.eqns]


def test_a_matrix_product_is_one_contraction():
    t = term((i, j), (3, 2, 4), [Read(0, (i, k)), Read(1, (k, j))])
    assert primitives(lowered(t, (3, 2), np.zeros((3, 4)), np.zeros((4, 2)))) == [dot_general_p.name]


def test_a_cumulative_sum():
    t = term((i,), (5, 5), [Read(0, (j,))], [NotNegative(i - j)])
    assert primitives(lowered(t, (5,), np.zeros(5))) == [cumsum_p.name]


def test_a_gather_of_what_may_be_outside():
    """One gather, and a choice of what is there; of no more positions than there are."""
    t = term((i, k), (5, 2, 9), [Read(0, (j, k))], [Lookup(j, 1, (i,))])
    found = lowered(t, (5, 2), np.zeros((9, 2)), np.zeros(5, np.int32))
    assert primitives(found).count("gather") == 1
    assert max(v.aval.size for eqn in found.eqns for v in eqn.outvars) == 10


def test_affine_accesses_need_no_gather():
    """Windows, turned, strided and overlapping in the result; a symbol is the start of a slice."""
    windows = term((i,), (4, 3), [Read(0, (2 * i - j + 2,)), Read(1, (j,))])
    overlaid = term((2 * i + j,), (4, 3), [Read(0, (i,)), Read(1, (j,))])
    for t, shape, n in ((windows, (4,), 9), (overlaid, (9,), 4)):
        found = primitives(lowered(t, shape, np.zeros(n), np.zeros(3)))
        assert not {"gather", "scatter_add"}.intersection(found)


def test_programs_inside():
    """In branches and loops, in eager ones and in compiled ones."""
    doubled = [term((i,), (3,), [Read(0, (i,))], coefficient=2)]

    def f(x: Any) -> Any:
        y = lax.cond(x[0] > 0, lambda x: ein([x], doubled, (3,)), lambda x: x, x)
        return lax.fori_loop(0, 2, lambda n, x: ein([x], doubled, (3,)), y)

    x = np.array([1.0, 2.0, 3.0])
    program = tl.make_jaxpr(f)(x).jaxpr
    assert all(eqn.primitive is not ein_p for eqn in every_equation(without_ein(program)))
    assert without_ein(program) is without_ein(program)
    plain = tl.make_jaxpr(lambda x: x + 1)(x).jaxpr
    assert without_ein(plain) is plain
    for g in (f, tl.jit(f)):
        np.testing.assert_array_equal(g(x), 8 * x)
        np.testing.assert_array_equal(g(-x), -4 * x)


def every_equation(jaxpr: Jaxpr) -> list[Any]:
    inside = [eqn for outer in jaxpr.eqns for inner in subjaxprs(outer.params) for eqn in every_equation(inner)]
    return [*jaxpr.eqns, *inside]


# ---- growth --------------------------------------------------------------------------------------------------


def largest(jaxpr: Jaxpr) -> int:
    """Elements of the largest value."""
    return max(v.aval.size for eqn in jaxpr.eqns for v in eqn.outvars)


def band(out: Affine) -> Callable[[int], Term]:
    """A matrix with one diagonal on either side of the main one, and a vector."""
    brackets = [NotNegative(i - j + 1), NotNegative(j - i + 1)]
    (other,) = {i, j} - {out}
    return lambda n: term((out,), (n, n), [Read(0, (i, j)), Read(1, (other,))], brackets)


GROWTH: dict[str, tuple[Callable[[int], Term], int, tuple[int, ...], int]] = {
    # the term of size n, rank of the result, ranks of the operands, the order on paper
    "matrix product": (lambda n: term((i, j), (n, n, n), [Read(0, (i, k)), Read(1, (k, j))]), 2, (2, 2), 3),
    "diagonal of a product": (lambda n: term((i,), (n, n), [Read(0, (i, j)), Read(1, (j, i))]), 1, (2, 2), 2),
    "diagonal matrix and vector": (
        lambda n: term((i,), (n, n), [Read(0, (i,)), Read(1, (j,))], [IsZero(i - j)]), 1, (1, 1), 1,
    ),
    "cumulative sum": (lambda n: term((i,), (n, n), [Read(0, (j,))], [NotNegative(i - j)]), 1, (1,), 1),
    "band": (band(i), 1, (2, 1), 1),
    "band, transposed": (band(j), 1, (2, 1), 1),
    "convolution with 5": (
        lambda n: term((i,), (n, 5), [Read(0, (i + j - 2,)), Read(1, (j,))],
                       [NotNegative(i + j - 2), NotNegative(n + 1 - i - j)]), 1, (1, 1), 1,
    ),
    "convolution": (
        lambda n: term((i,), (n // 2, n // 2), [Read(0, (i + j,)), Read(1, (j,))]), 1, (1, 1), 2,
    ),
    "full convolution": (
        lambda n: term((i + j,), (n // 2, n // 2), [Read(0, (i,)), Read(1, (j,))]), 1, (1, 1), 2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GROWTH)
def test_growth(name: str):
    """Operations are of the order on paper, and values of the order of those and of what is given."""
    make, rank, ranks, order = GROWTH[name]
    programs = [lowered(make(n), (n,) * rank, *[np.zeros((n,) * r) for r in ranks]) for n in (32, 64)]
    small, large = [tl.cost(program).nonlinear for program in programs]
    assert large <= 2**order * 1.2 * small
    small, large = map(largest, programs)
    assert large <= 2 ** max(*ranks, order) * 1.2 * small


def test_writing_nowhere():
    """Brackets that contradict each other, which only bounds of several together tell."""
    t = term((3 * i + j - 1, 3 * i + 4 * j), (2, 2), [Read(0, (i,))], [NotNegative(-i - j), NotNegative(3 * i + j - 1)])
    np.testing.assert_array_equal(tl.jit(lambda x: ein([x], [t], (4, 3)))(np.ones(2)), np.zeros((4, 3)))


def test_terms_that_are_zero_in_linear_programs():
    """What is linear and found to be zero is lowered, too: here reads past the end of a scan of one step."""

    def f(x: Any) -> Any:
        ys = lambda: ix.scan(lambda c, k: (c, tnp.sin(x[k])), 0.0, 1)[1]  # noqa: E731
        return ix.build(3, lambda i: ys()[ix.where(i < i, i, 1)])

    (pulled,) = tl.vjp(tl.checkpoint(f), tnp.ones(2))[1](tnp.ones(3))
    np.testing.assert_array_equal(pulled, [0, 0])
