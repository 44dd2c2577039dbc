"""Libraries' own tests through `as_jax`, a file of each that is installed; `own_tests.py` runs all of them."""

import pytest

from tests.ecosystem.own_reasons import DEVICES, NAMES, reason
from tests.ecosystem.own_tests import LIBRARIES, compare

FILES = {"chex": "dimensions", "distrax": "shift", "haiku": "bias", "optax": "update"}


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_file(library: str):
    pytest.importorskip(library)
    found = compare(library, [FILES[library]])
    assert found.passed and all(reason(library, test, message) for test, message in found.lost.items())


def test_reasons():
    assert set(NAMES) == set(LIBRARIES)
    assert reason("chex", "chex/_src/fake_test.py::PmapFakeTest::test_with_kwargs_fake_jit") == DEVICES
    assert reason("optax", "any", "pmap: a program runs on one device; several are not") == DEVICES
    assert not reason("chex", "chex/_src/fake_test.py::OtherTest::test_with_kwargs", "wrong")
