"""Tables of what our own rules and functions decide, not the compiler: compiled as tests are."""

import pytest

from tests.public_reports import (
    batching,
    custom_rules,
    kinks,
    linear_algebra,
    nested,
    random_numbers,
    special_functions,
)
from tests.public_reports.checking import check, check_refusal, parametrized
from tests.public_reports.report import Refusal

pytestmark = [pytest.mark.usefixtures("stepping"), pytest.mark.filterwarnings("ignore::RuntimeWarning")]


@parametrized(linear_algebra, special_functions, random_numbers, custom_rules, batching, nested, kinks)
def test_report(row):
    check_refusal(row) if isinstance(row, Refusal) else check(row)
