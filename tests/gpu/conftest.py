"""The device under test. Its memory is not reserved, since jax may be in the same process or beside it."""

import os
from pathlib import Path

import pytest

import tapeless as tl
from tapeless.lowering.devices import Device
from tests.gpu import TIER

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
HERE = str(Path(__file__).parent)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if str(item.path).startswith(HERE):
            item.add_marker(pytest.mark.gpu)


@pytest.fixture(scope="session")
def device() -> Device:
    """The first device of the tier's platform."""
    try:
        return tl.devices(TIER)[0]
    except RuntimeError as error:
        pytest.skip(f"no {TIER} device: {str(error).splitlines()[0]}")


@pytest.fixture(scope="session")
def cpu() -> Device:
    """The CPU that results are compared with."""
    return tl.devices("cpu")[0]
