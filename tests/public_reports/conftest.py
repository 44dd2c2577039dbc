"""Fixtures of the tables."""

from collections.abc import Iterator

import pytest

from tapeless.tracer import core
from tests.eager_steps import SteppingEvaluator


@pytest.fixture(scope="module")
def stepping() -> Iterator[None]:
    """Single steps are the oracle's: XLA's are tested with each primitive."""
    before = core._bottom.evaluator
    assert before is not None
    core.set_evaluator(SteppingEvaluator())
    yield
    core.set_evaluator(before)
