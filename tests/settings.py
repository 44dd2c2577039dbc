"""Settings of the process that end with a block."""

from collections.abc import Iterator
from contextlib import contextmanager

from tapeless.tracer.config import _fields, config


@contextmanager
def restored_settings() -> Iterator[None]:
    """Restore all settings of the process after the block, in which a program may set them as users do."""
    before = {name: field.everywhere for name, field in _fields.items()}
    try:
        yield
    finally:
        for name, value in before.items():
            if _fields[name].everywhere != value:
                config.update(name, value)
