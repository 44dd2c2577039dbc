"""Tables of programs in which a compiler can go wrong, compiled as users compile them."""

import re

import pytest

from tests.public_reports import (
    batching,
    compilation,
    complex_numbers,
    control_flow,
    custom_rules,
    dtypes,
    indexing,
    kinks,
    linear_algebra,
    nested,
    random_numbers,
    special_functions,
    windows,
)
from tests.public_reports.checking import check, check_refusal, parametrized
from tests.public_reports.report import Refusal

pytestmark = [pytest.mark.usefixtures("optimized", "stepping"), pytest.mark.filterwarnings("ignore::RuntimeWarning")]

HERE = (indexing, complex_numbers, windows, control_flow, compilation, dtypes)
ELSEWHERE = (linear_algebra, special_functions, random_numbers, custom_rules, batching, nested, kinks)


def test_each_row_says_where_it_comes_from():
    rows = [row for table in (*HERE, *ELSEWHERE) for row in table.ROWS]
    assert len(rows) >= 200
    assert [str(row) for row in rows if not re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", row.address)] == []
    assert len({row.address for row in rows}) == len(rows)


@parametrized(*HERE)
def test_report(row):
    check_refusal(row) if isinstance(row, Refusal) else check(row)
