"""Index rows against what NumPy says of the samples: values, and that nothing is read that the row does not name.

Sums of terms and monoids are evaluated and compared. A pointwise row reads its operands, and the function of what it
reads is the value. Of any row, what it does not read for an element can be changed, and the element stays.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tapeless.interpreters.index_rows import Combination, IndexRow, reasons, rows
from tapeless.tracer import core, dtypes
from tapeless.tracer.primitives import FAMILIES as ALL
from tapeless.tracer.terms.evaluate import BOOLEANS, COUNTS, Semiring, evaluate_sum, numbers
from tapeless.tracer.terms.solve import solve_term, transposed
from tapeless.tracer.terms.term import Read, Sum, looked_up, term
from tapeless.tracer.types import aval_of
from tests.samples import FAMILIES, SAMPLES
from tests.samples.sample import RECORD, Sample, ours
from tests.test_primitives import assert_close, expected, over

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

ELEMENTS = 2  # of each result, that what is not read is changed for
OF_ITSELF = ("eigh", "svd")  # whose references bind the primitive, to have the same signs: slow
WITH_ROWS = [row for row in SAMPLES if row.primitive in rows]


def index_row(row: Sample) -> IndexRow:
    return rows[row.primitive](row.params, [aval_of(ours(x)) for x in row.args])


def samples(*combinations: Combination) -> list[Sample]:
    """Those of numbers, whose rows combine so."""
    found = [row for row in WITH_ROWS if not any(np.asarray(x).dtype == RECORD for x in row.args)]
    return [row for row in found if index_row(row).combination in combinations]


def fixed_operands(sums: Sequence[Sum]) -> set[int]:
    """Operands that are positions, cases or symbols."""
    return {k for s in sums for t in s for k in looked_up(t)}


# ---- coverage ------------------------------------------------------------------------------------------------


def test_every_primitive_has_a_row_or_a_reason():
    primitives = core.all_primitives()
    assert [p.name for p in primitives if (p in rows) == (p in reasons)] == []
    assert {*rows, *reasons} >= {*primitives}
    assert {*ALL} == {*FAMILIES}


def test_what_has_no_row_carries_programs_or_leaves_the_program():
    family = {row.primitive: name for name, found in FAMILIES.items() for row in found}
    programs = {"call", "checkpoint", "control_flow", "custom", "invertible", "linear_solve", "linear_while"}
    assert {family[p] for p in reasons} == {*programs, "callback", "collective"}


@over(WITH_ROWS)
def test_results(row: Sample):
    """Terms of every result's rank, that read operands at accesses of their rank."""
    found, avals = index_row(row), [aval_of(ours(x)) for x in row.args]
    typed = row.primitive.type(tuple(avals), dict(row.params))
    for result, y in zip(found.results, typed, strict=True):
        for t in result:
            assert len(t.out) == y.ndim
            assert all(len(f.access) == avals[f.operand].ndim for f in t.factors)
            assert found.combination in (Combination.TERMS, Combination.POINTWISE) or len(t.factors) <= 1
    assert (found.combination is Combination.MONOID) == (found.operation is not None)


def test_equal_rows_have_the_same_terms():
    """Those of an array of positions with nan outside, too."""
    row = next(row for row in SAMPLES if row.primitive.name == "gather" and row.label == "outside, fill")
    assert [a is b for a, b in zip(*[index_row(row).results[0] for _ in range(2)])] == [True] * 3


# ---- values --------------------------------------------------------------------------------------------------


@over(samples(Combination.TERMS))
def test_values_of_terms(row: Sample):
    """As they are, and solved."""
    given, reference = [np.asarray(x) for x in row.args], [np.asarray(y) for y in expected(row, row.args)]
    sums = index_row(row).results
    for after in (sums, [tuple([found for t in s if (found := solve_term(t)) is not None]) for s in sums]):
        values = [evaluate_sum(s, y.shape, given, numbers(y.dtype)) for s, y in zip(after, reference, strict=True)]
        assert_close(values, reference, row.rtol)


@over(samples(Combination.POINTWISE))
def test_values_of_pointwise_rows(row: Sample):
    reference = expected(row, row.args)
    for (t,) in index_row(row).results:
        assert [f.operand for f in t.factors] == list(range(len(row.args)))
        reads = [
            evaluate_sum((term(t.out, t.sizes, [f]),), np.shape(reference[0]), row.args, numbers(x.dtype))
            for f, x in zip(t.factors, row.args)
        ]
        assert_close([np.asarray(x) for x in expected(row, reads)], reference, row.rtol)


def monoid(operation: str | None, dtype: Any) -> Semiring:
    """Its operation and neutral element, in a dtype."""
    ends = dtypes.iinfo(dtype) if dtypes.is_integer(dtype) else None
    low, high = (ends.min, ends.max) if ends else (-np.inf, np.inf)
    found: dict[str | None, Any] = {
        "mul": (1, np.multiply),
        "max": (low, np.maximum),
        "min": (high, np.minimum),
        "logaddexp": (-np.inf, np.logaddexp),
        "and": (np.invert(np.zeros((), dtype)) if low != -np.inf or dtypes.is_bool(dtype) else None, np.bitwise_and),
        "or": (0, np.bitwise_or),
        "xor": (0, np.bitwise_xor),
    }
    return Semiring(dtype, *found[operation])


def monoids(of_numbers: bool) -> list[Sample]:
    """Samples of monoids with a neutral element, or of those where what is written last stays."""
    return [row for row in samples(Combination.MONOID) if (index_row(row).operation != "last") == of_numbers]


@over(monoids(True))
def test_values_of_monoids(row: Sample):
    found, reference = index_row(row), np.asarray(expected(row, row.args)[0])
    ring = monoid(found.operation, reference.dtype)
    assert_close([evaluate_sum(found.results[0], reference.shape, row.args, ring)], [reference], row.rtol)


@over(monoids(False))
def test_values_of_what_is_written_last(row: Sample):
    """Where one update is written at most."""
    (kept, updated), reference = index_row(row).results[0], np.asarray(expected(row, row.args)[0])
    ring, ones = numbers(reference.dtype), [np.ones_like(x, bool) if k != 1 else x for k, x in enumerate(row.args)]
    written = evaluate_sum((updated,), reference.shape, ones, COUNTS)
    before, values = [evaluate_sum((t,), reference.shape, row.args, ring) for t in (kept, updated)]
    found = np.where(written > 0, values, before)
    np.testing.assert_array_equal(found[written < 2], reference[written < 2])


# ---- what is not read ----------------------------------------------------------------------------------------


@over([row for row in samples(*Combination) if row.args and row.primitive.name not in OF_ITSELF])
def test_what_is_not_read_may_change(row: Sample):
    found, before = index_row(row), [np.asarray(y) for y in expected(row, row.args)]
    fixed = fixed_operands(found.results)
    for k, (s, y) in enumerate(zip(found.results, before, strict=True)):
        for at in list(np.ndindex(y.shape))[:: max(y.size // ELEMENTS, 1)]:
            args = [x if i in fixed else changed(x, read_for(s, y, at, i, row.args)) for i, x in enumerate(row.args)]
            after = np.asarray(expected(row, args)[k])
            assert_close([after[at]], [y[at]], row.rtol)


def read_for(s: Sum, y: Any, at: Any, operand: int, args: Sequence[Any]) -> Any:
    """The elements of an operand that one element of the result is made of: the transpose of a one-hot."""
    given = [x if i in fixed_operands([s]) else np.ones(np.shape(x), bool) for i, x in enumerate(args)]
    given[operand] = np.zeros(y.shape, bool)
    given[operand][at] = True
    found = np.zeros(np.shape(args[operand]), bool)
    for t in s:
        for f in t.factors:
            if f.operand == operand:
                alone = term(t.out, t.sizes, [Read(operand, f.access)], t.brackets)
                found |= evaluate_sum((transposed(alone, 0),), found.shape, given, BOOLEANS)
    return found


def changed(x: Any, kept: Any) -> Any:
    """Other elements where they are not kept: still in a domain, a positive matrix, and so on."""
    other = ~x if x.dtype == bool else x // 2 if x.dtype.kind in "iu" else (x * 0.75).astype(x.dtype)
    return np.where(kept, x, other)
