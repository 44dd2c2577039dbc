"""Lowered terms against their values: random accesses and brackets, of all that operations are known for."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import tapeless as tl
from tapeless.interpreters.terms.lower_terms import lower_sum
from tapeless.interpreters.terms.plan import plan_term
from tapeless.interpreters.writer import Writer
from tapeless.tracer.jaxpr import Jaxpr
from tapeless.tracer.terms.affine import Affine
from tapeless.tracer.terms.evaluate import evaluate_sum, numbers
from tapeless.tracer.terms.solve import solve_term
from tapeless.tracer.terms.term import Bracket, IsZero, Lookup, NotNegative, Read, Sum, Term, term
from tests.stepping import by_steps

SIZES = (2, 3, 4, 2)  # of variables


def index(random: np.random.Generator, free: list[int]) -> tuple[Affine, int]:
    """An index of one or two digits, or a number, and the length of an axis that it stays inside of."""
    digits = [free.pop() for _ in range(min(int(random.integers(3)), len(free)))]
    found, step = Affine(), int(random.integers(1, 3))
    for v in digits:
        found = found + Affine(0, ((v, step * int(random.choice([1, -1]))),))
        step *= SIZES[v] + int(random.integers(2))
    low, high = found.bounds(SIZES)
    return found + (int(random.integers(2)) - low), high - low + 3


def access(random: np.random.Generator, rank: int) -> tuple[tuple[Affine, ...], tuple[int, ...]]:
    free = [int(v) for v in random.permutation(len(SIZES))]
    found = [index(random, free) for _ in range(rank)]
    return tuple([a for a, _ in found]), tuple([n for _, n in found])


def repeated(random: np.random.Generator, a: tuple[Affine, ...], n: tuple[int, ...]) -> Any:
    """An access with an index more that moves along with one of the others, sometimes."""
    if random.integers(3) or not a:
        return a, n
    k = int(random.integers(len(a)))
    return (*a, a[k]), (*n, n[k])


def drawn(seed: int) -> tuple[Term | None, tuple[int, ...], list[tuple[int, ...]]]:
    """A term, the shape of its result, and those of its operands."""
    random = np.random.default_rng(seed)
    out, shape = repeated(random, *access(random, 2))
    reads = [repeated(random, *access(random, 2)) for _ in range(int(random.integers(1, 4)))]
    brackets: list[Bracket] = []
    if random.integers(2):
        difference = Affine(int(random.integers(-1, 2)), ((0, 1), (2, -1)))
        brackets.append(IsZero(difference) if random.integers(2) else NotNegative(difference))
    factors = [Read(k, a) for k, (a, _) in enumerate(reads)]
    found = solve_term(term(out, SIZES, factors, brackets, int(random.choice([1, -1, 3]))))
    return found, shape, [n for _, n in reads]


def program(terms: Sum, shape: tuple[int, ...], operands: list[Any]) -> tuple[Jaxpr, str]:
    """The sum of terms by the operations that it is lowered to, and the names of these."""
    jaxpr = tl.make_jaxpr(lambda *xs: xs)(*operands).jaxpr
    w, aval = Writer(jaxpr), jaxpr.invars[0].aval.update(shape=shape)
    found = lower_sum(w, terms, jaxpr.invars.__getitem__, aval, None)
    assert found is not None
    return jaxpr.replace(eqns=w.eqns, outvars=[found]), " ".join([eqn.primitive.name for eqn in w.eqns])


def written(terms: Sum, shape: tuple[int, ...], operands: list[Any]) -> Any:
    return by_steps(program(terms, shape, operands)[0], operands)[0]


def test_random_terms():
    known = 0
    for seed in range(36):
        t, shape, shapes = drawn(seed)
        if t is None or plan_term(t, tuple([shapes[f.operand] for f in t.factors]), shape) is None:
            continue
        known += 1
        random = np.random.default_rng(seed)
        operands = [random.integers(-9, 9, n).astype(np.int32) for n in shapes]
        expected = evaluate_sum((t,), shape, operands, numbers(np.int32))
        np.testing.assert_array_equal(written((t,), shape, operands), expected, err_msg=str(seed))
    assert known > 10


def looked_up(seed: int) -> tuple[Term | None, tuple[int, ...], list[tuple[int, ...]]]:
    """A term with indices that arrays hold, or running sums, the shape of its result, and those of its operands."""
    random = np.random.default_rng(seed)
    sizes = [int(n) for n in random.choice([1, 2, 3, 3], 6)]
    v = [Affine(0, ((k, 1),)) for k in range(6)]
    shapes, factors, brackets, runs = list[tuple[int, ...]](), list[Read](), list[Bracket](), seed % 3 == 0

    def drawn(most: int, of: Sequence[int]) -> list[int]:
        return [int(k) for k in random.permutation(of)[: random.integers(most + 1)]]

    for _ in range(random.integers(1, 4)):
        axes = [*drawn(2, range(5 if runs else 6)), *([5] if runs and not shapes else [])]
        factors.append(Read(len(shapes), tuple([v[k] + 1 if shapes else v[k] for k in axes])))
        shapes.append(tuple([sizes[k] + 2 for k in axes]))
    out = drawn(2, range(5 if runs else 6))
    for k in () if runs else random.permutation(6)[: random.integers(1, 3)]:
        axes = drawn(2, [n for n in range(6) if n != k])
        sign, first = int(random.choice([1, 1, -1])), int(random.choice([0, 0, 1, 3, -1]))
        limits = [None, (0, sizes[k] - 1), (first, sizes[k] - 1 + first), (first + 1 - sizes[k], first)]
        within = limits[random.integers(4)]
        brackets.append(Lookup(sign * v[k] + first, len(shapes), tuple([v[a] for a in axes]), within))
        shapes.append(tuple([sizes[a] for a in axes]))
    if runs:
        upto = v[out[0] if out else 0]
        brackets.append(NotNegative((upto - v[5]) * int(random.choice([1, -1])) + int(random.choice([0, 0, 1, -1]))))
    shape = tuple([sizes[k] + 1 for k in out])
    found = solve_term(term(tuple([v[k] for k in out]), sizes, factors, brackets, int(random.choice([1, -1, 3]))))
    return found, shape, shapes


def read_by(t: Term) -> list[int]:
    return [*[f.operand for f in t.factors], *[b.operand for b in t.brackets if isinstance(b, Lookup)]]


def check_looked_up(seed: int) -> str | None:
    """Compare a random term with its values, and name the operations that it is lowered to; None if none are known."""
    t, shape, shapes = looked_up(seed)
    if t is None or plan_term(t, tuple([shapes[k] for k in read_by(t)]), shape) is None:
        return None
    random = np.random.default_rng(seed)
    positions = {b.operand for b in t.brackets if isinstance(b, Lookup)}
    kind = str(random.choice(["int8", "uint8", "int32", "int64", "uint64"]))
    operands = [random.integers(-9, 9, n).astype(np.int32) for n in shapes]
    operands = [random.integers(0, 6, x.shape).astype(kind) if k in positions else x for k, x in enumerate(operands)]
    for k in positions:
        if operands[k].size and random.integers(3) == 0:
            operands[k].flat[0] = np.iinfo(kind).max if random.integers(2) else np.iinfo(kind).min
    jaxpr, found = program((t,), shape, operands)
    np.testing.assert_array_equal(
        by_steps(jaxpr, operands)[0], evaluate_sum((t,), shape, operands, numbers(np.int32)), err_msg=str(seed)
    )
    return found


def test_random_positions_and_running_sums():
    found = [names for seed in range(120) if (names := check_looked_up(seed)) is not None]
    for name in ("gather", "scatter_add", "cumsum"):
        assert sum(name in names for names in found) >= 4, name


@pytest.mark.parametrize("coefficients", [(1, -2), (-1, -3), (-1, 2), (3, 3)])
def test_sums(coefficients: tuple[int, int]):
    """What is negative is subtracted."""
    i, j = Affine(0, ((0, 1),)), Affine(0, ((1, 1),))
    terms = [term((i, j), (3, 3), [Read(k, a)], (), c) for k, (a, c) in enumerate(zip([(i, j), (j, i)], coefficients))]
    operands = [np.arange(9.0).reshape(3, 3), np.ones((3, 3)).cumsum(0)]
    expected = coefficients[0] * operands[0] + coefficients[1] * operands[1].T
    np.testing.assert_array_equal(written(tuple(terms), (3, 3), operands), expected)


def test_nothing():
    np.testing.assert_array_equal(written((), (2, 3), [np.ones(2)]), np.zeros((2, 3)))
