"""Names of a namespace whose modules few programs need: they are imported when the name is first used."""

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from tapeless.tracer.errors import missing_name


def imported_late(namespace: dict[str, Any], modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Make the `__getattr__` of a namespace.

    Args:
      namespace: its `globals()`, which a name is put into when it is found.
      modules: names, and the modules of `tapeless` that have them; "" where the name is the module.
    Raises: when it is called, AttributeError for any other name.
    """

    def find(name: str) -> Any:
        module = modules.get(name)
        if module is None:
            raise missing_name(namespace["__name__"], name)
        if not module:
            return importlib.import_module(f"{namespace['__name__']}.{name}")
        found = namespace[name] = getattr(importlib.import_module(f"tapeless.{module}"), name)
        return found

    return find
