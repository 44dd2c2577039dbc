"""Libraries' own tests through `as_jax`, a file of each that is installed; `own_tests.py` runs all of them."""

import pytest

from tests.ecosystem.own_reasons import REASONS
from tests.ecosystem.own_tests import LIBRARIES, compare, reason

FILES = {"chex": "dimensions", "distrax": "chain", "haiku": "dot", "optax": "fromage"}


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_file(library: str):
    pytest.importorskip(library)
    found = compare(library, [FILES[library]])
    assert found.passed and all(reason(library, test) for test in found.lost)


def test_reasons():
    assert set(REASONS) == set(LIBRARIES)
    assert reason("chex", "chex/_src/fake_test.py::PmapFakeTest::test_with_kwargs_fake_jit").startswith("for several")
    assert not reason("chex", "chex/_src/fake_test.py::OtherTest::test_with_kwargs")
