"""Every function of `tapeless.numpy` against NumPy: values, shapes, dtypes, what is refused, and every keyword.

The calls are in tables, `tests/numpy_agreement`. All are evaluated by the oracle; a sample is compiled, and one of each
function run eagerly. `python -m tests.numpy_agreement` compiles all of them as users compile.
"""

import inspect

import numpy as np
import pytest

import tapeless.numpy as tnp
from tests.numpy_agreement import jax_side
from tests.numpy_agreement.cases import Case, Row, call, numbers
from tests.numpy_agreement.comparing import problems, unused_keywords
from tests.numpy_agreement.evaluators import compiled, eager, interpreted
from tests.numpy_agreement.tables import ROWS, SINGLE, WITHOUT, at_ends, chunks, thinned

NAMES = sorted(ROWS)
each_name = pytest.mark.parametrize("name", NAMES)
each_chunk = pytest.mark.parametrize("names", chunks(NAMES, 24), ids=lambda names: names[0])


def assert_none(found):
    assert not found, "\n".join(map(str, found))


# ---- the tables are complete


def test_every_name_has_a_row_or_a_reason():
    inside = {f"{space}.{name}" for space in ("fft", "linalg") for name in getattr(tnp, space).__all__}
    names = {*tnp.__all__, *inside}
    assert names == {*ROWS, *WITHOUT}
    assert not {*ROWS} & {*WITHOUT}


def test_every_keyword_that_both_have_is_given():
    assert {name: keys for name, row in ROWS.items() if (keys := unused_keywords(name, row))} == {}


def test_reasons_are_needed():
    """Exceptions to agreement apply to a call that is there."""
    reasons = [
        (name, why, applies) for name, row in ROWS.items() for why, applies in {**row.refuses, **row.accepts}.items()
    ]
    assert [why for name, why, applies in reasons if not any(map(applies, ROWS[name].cases))] == []


# ---- agreement


@each_name
def test_agrees(name):
    assert_none(problems({name: ROWS[name]}, interpreted))


@each_chunk
def test_agrees_compiled(names):
    assert_none(problems(thinned(names, 3), compiled))


def test_single_calls_agree_compiled():
    assert_none(problems(SINGLE, compiled))


def test_agrees_compiled_where_operands_are_not_finite():
    rows = at_ends(NAMES)
    assert len(rows) > 90
    assert_none(problems(rows, compiled))


@each_chunk
def test_agrees_eagerly(names):
    assert_none(problems(thinned(names, 1), eager))


@pytest.mark.parametrize("bits", [32, 64])
def test_dtypes_are_those_of_jax(bits):
    jax = pytest.importorskip("jax")
    assert_none(jax_side.dtype_problems(jax, ROWS, bits, 2))


# ---- what would not be found if the comparison were blind


@pytest.mark.parametrize(("f", "what"), [
    (lambda x: x + 1, "[2.0, 3.0], NumPy [1.0, 2.0]"),
    (lambda x: x[None], "shape (1, 2), NumPy (2,)"),
    (lambda x: x.astype(np.float16), "dtype float16, NumPy float32"),
    (lambda x: [x, x], "2 results, NumPy 1"),
    (lambda x: tnp.reshape(x, (3,)), "refused: ValueError: reshape: float32[2] has 2 elements"),
    (lambda x: x.nothing, "AttributeError: "),
])  # fmt: skip
def test_disagreement_is_found(f, what):
    row = Row([call(np.array([1, 2], np.float32))], numpy=lambda x: x, ours=f)
    for run in (interpreted, compiled):
        found = problems({"copy": row}, run)
        assert len(found) == 1 and found[0].what.startswith(what)


def test_acceptance_is_found():
    row = Row([call(numbers("float32", (2,)))], numpy=lambda x: np.reshape(x, (3,)), ours=lambda x: x)
    assert problems({"copy": row}, interpreted)[0].what.startswith("accepted, refused by NumPy: ValueError")


def test_forgotten_keywords_are_found():
    assert unused_keywords("sum", Row([Case((np.ones(2),), {"axis": 0})])) == ["dtype", "keepdims", "initial", "where"]
    assert "where" in inspect.signature(np.sum).parameters
