"""Every row of the table of rewrites: it is found in the program of its pattern, and that gives what it gave before.

Tried where it is said to hold: in dtypes of all kinds, at zeros of both signs, infinities and nan; in linear programs
at what is finite, where zeros have no sign. Complex numbers are finite too: as pairs, 1 (inf + i) is inf + nan i.
"""

from typing import Any

import numpy as np
import pytest

from tapeless.interpreters.simplifications.matchers import Licence, Rewrite, Rewrites
from tapeless.interpreters.simplifications.replacements import operations
from tapeless.interpreters.simplifications.rewrites import REWRITES
from tapeless.interpreters.simplify import simplify_program
from tapeless.interpreters.writer import Writer, rules
from tapeless.tracer.check import check
from tapeless.tracer.jaxpr import Equation, Jaxpr, Literal, Var, eval_jaxpr
from tapeless.tracer.primitives.elementwise import add_p, mul_p, neg_p
from tapeless.tracer.primitives.reduction import reduce_sum_p
from tapeless.tracer.types import aval_of
from tests.pages import DOCS, maker

MAKER = maker("rewrites")
DTYPES = {
    Licence.ALWAYS: ("float32", "int32", "complex128"),
    Licence.FLOATS: ("float32", "float64"),
    Licence.INTEGERS: ("int8", "uint8"),
    Licence.LINEAR: ("float32", "complex128"),
}
# As complex numbers, 2 (inf + i) is inf + nan i: counts are multiplied by in linear programs only.
NOT_COMPLEX = ("reduce_sum[d](broadcast_in_dim",)
ROWS = [pytest.param(p, row, id=row.text) for p, rows in REWRITES.items() for row in rows]
FLOATS = (0.0, -0.0, 1.5, -2.5, 1e-3, 7.0)
SPECIAL = (np.inf, -np.inf, np.nan)


def values(aval: Any, seed: int, finite: bool) -> Any:
    """Elements of a type, all kinds of which there are."""
    kind = aval.dtype.kind
    pool = {"b": (True, False), "i": (0, 1, -3, 127), "u": (0, 1, 3, 255), "c": (0, 1 + 2j, -3j, 2.5)}
    some = np.array(pool.get(kind, FLOATS if finite else (*FLOATS, *SPECIAL)), aval.dtype)
    return np.random.default_rng(seed).choice(some, aval.shape)


def same(x: Any, y: Any, signs: bool, exact: bool) -> bool:
    x, y = np.asarray(x), np.asarray(y)
    if x.dtype != y.dtype or x.shape != y.shape:
        return False
    if signs and x.dtype.kind == "f" and not np.array_equal(np.signbit(x), np.signbit(y)):
        return False
    if exact or x.dtype.kind in "iub":
        return np.array_equal(x, y, equal_nan=x.dtype.kind in "fc")
    return np.allclose(x, y, rtol=1e-6, equal_nan=True)


@pytest.mark.parametrize("primitive, row", ROWS)
def test_row(primitive: Any, row: Rewrite):
    linear = row.licence is Licence.LINEAR
    adds = primitive is reduce_sum_p  # in another order
    for dtype in dict.fromkeys(MAKER.Built(row, dtype).dtype for dtype in DTYPES[row.licence]):
        if dtype == "complex128" and row.text.startswith(NOT_COMPLEX):
            continue
        before = MAKER.Built(row, dtype)
        after = check(before.rewritten())
        assert after is not before.jaxpr and before.root().primitive is primitive
        for seed in range(2):
            args = [values(aval, seed, linear or dtype == "complex128") for aval in before.jaxpr.in_avals]
            for x, y in zip(eval_jaxpr(before.jaxpr, args), eval_jaxpr(after, args), strict=True):
                assert same(x, y, signs=not linear and dtype != "complex128" and not adds, exact=not adds), (x, y)


def test_every_example_is_of_a_row():
    texts = [row.text for rows in REWRITES.values() for row in rows]
    assert [start for start in MAKER.EXAMPLES if not any(text.startswith(start) for text in texts)] == []


def test_page_is_fresh():
    assert (DOCS / "rewrites.md").read_text() == MAKER.page(), "run python docs/make_rewrites.py"


def test_rows_print():
    row = Rewrite("x + 0 -> x", "0 is neutral", Licence.INTEGERS)
    assert str(row) == "x + 0 -> x  # 0 is neutral; integers"
    assert str(row._replace(licence=Licence.ALWAYS)) == "x + 0 -> x  # 0 is neutral"


# ---- the notation --------------------------------------------------------------------------------------------


def applied(primitive: Any, rows: list[Rewrite], *operands: Any, **params: Any) -> Any:
    """What rows make of an application to inputs and literals."""
    w = Writer(Jaxpr([x for x in operands if isinstance(x, Var)], [], []))
    return Rewrites(primitive, rows, {"is_scalar": lambda x: not x.aval.shape})(w, *operands, **params)


X, Y = Var(aval_of(np.zeros(3))), Var(aval_of(np.zeros(3)))


def test_either_operand_of_a_sum_or_product_may_be_first():
    one = Literal(np.float64(1))
    rows = [Rewrite("x * 1 -> x", "")]
    assert applied(mul_p, rows, X, one) is applied(mul_p, rows, one, X) is X
    assert applied(mul_p, rows, X, Y) is None


def test_a_name_that_comes_twice_is_one_operand():
    rows = [Rewrite("x + x -> x", "")]
    assert applied(add_p, rows, X, X) is X
    assert applied(add_p, rows, X, Y) is None


def test_zeros_are_of_the_sign_that_is_written():
    for text, signs in {"x + 0 -> x": (0.0, -0.0), "x + 0.0 -> x": (0.0,), "x + -0.0 -> x": (-0.0,)}.items():
        for zero in (0.0, -0.0):
            found = applied(add_p, [Rewrite(text, "")], X, Literal(np.float64(zero)))
            assert (found is X) == (str(zero) in map(str, signs))


def test_rows_are_tried_in_order_under_their_conditions():
    rows = [Rewrite("-x -> x if is_scalar(x)", ""), Rewrite("-x -> -(-x)", "")]
    scalar = Var(aval_of(np.float64(0)))
    assert applied(neg_p, rows, scalar) is scalar
    assert applied(neg_p, rows[:1], X) is None
    assert isinstance(applied(neg_p, rows, X), Var)


def test_looks():
    """What can match nothing is not even asked, and what may is."""
    looks = {text: Rewrites(neg_p, [Rewrite(text, "")], {}).looks_at() for text in ("-x -> x", "-(-x) -> x")}
    assert looks["-x -> x"] is None
    assert {p.name for p in looks["-(-x) -> x"] or ()} == {"neg", "broadcast_in_dim"}


def test_every_elementwise_primitive_waits_for_its_broadcast():
    missing = [p.name for p in operations if p not in rules]
    assert missing == ["copy"]


def test_a_matcher_is_source_that_one_can_read():
    source = Rewrites(neg_p, [Rewrite("-(-x) -> x", "")], {}).source()
    assert source.splitlines()[:4] == [
        "def match(w, *operands, **params):",
        "    if len(operands) == 1:",
        "        made_0_neg = w.made_by(operands[0], neg_p)",
        "        if made_0_neg is not None:",
    ]


def test_types_of_results_stay():
    """A rewrite that would make a weak type strong, or the other way round, is not made."""
    weak, strong = Var(aval_of(2.0)), Literal(np.float32(1), aval_of(np.ones((), np.float32)))
    out = Var(mul_p.type((weak.aval, strong.aval), {})[0])
    assert weak.aval.weak_type and not out.aval.weak_type
    jaxpr = Jaxpr([weak], [Equation(mul_p, [weak, strong], {}, [out])], [out])
    assert simplify_program(jaxpr) is jaxpr
