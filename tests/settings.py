"""Settings of the process, and primitives, that end with a test."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tapeless.tracer import core
from tapeless.tracer.rules import Table
from tapeless.tracer.settings.config import _fields, config


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


def forget(primitives: set[core.Primitive]) -> None:
    """Remove primitives of tests from the registry, and their entries from all tables."""
    for primitive in primitives:
        core._registry.pop(primitive.name, None)
    ours = [module for name, module in sys.modules.items() if name.startswith("tapeless.")] if primitives else []
    for table in [x for module in ours for x in vars(module).values() if isinstance(x, Table)]:
        for primitive in primitives & table.keys():
            del table[primitive]
