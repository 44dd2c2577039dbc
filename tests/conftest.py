"""Every program built while tests run is type-checked; nothing is read from or left in the user's cache."""

import os

os.environ.setdefault("PJRT_NPROC", "32")  # before the first client, which sizes its pool of threads by it
os.environ["TAPELESS_CACHE"] = "0"  # tests of the cache make their own

from collections.abc import Iterator

import pytest

from tapeless.tracer.config import config

config.update("check_programs", True)


@pytest.fixture
def simplifying() -> Iterator[None]:
    """Programs are simplified while the test runs."""
    with config.scope(simplify=True):
        yield
