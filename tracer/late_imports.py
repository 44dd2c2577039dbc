"""Imports of what few programs need, when it is first used: names of a namespace, and whole modules.

`if typing.TYPE_CHECKING:` imports them beside, for type checkers, and for the tests of layers, which read the source.
"""

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def imported_late(namespace: dict[str, Any], names: Mapping[str, str]) -> Callable[[str], Any]:
    """Make the `__getattr__` of a namespace, and the `__dir__` that lists its public names, late ones among them.

    Args:
      namespace: its `globals()`, which a name is put into when it is found.
      names: modules of `tapeless`, and the names from each, separated by spaces; "" stands for the modules in it.
    Raises: when it is called, AttributeError for any other name, with what is meant by it.
    """
    module_of = {name: module for module, listed in names.items() for name in listed.split()}

    def find(name: str) -> Any:
        module = module_of.get(name)
        if module is None:
            missing = importlib.import_module("tapeless.tracer.missing_names")
            # With an object Python suggests no name of its own beside ours.
            raise AttributeError(missing.Refusal(namespace["__name__"], name), name=name, obj=None)
        if not module:
            return importlib.import_module(f"{namespace['__name__']}.{name}")
        found = namespace[name] = getattr(importlib.import_module(f"tapeless.{module}"), name)
        return found

    namespace["__dir__"] = lambda: sorted({*namespace["__all__"], *filter(_is_special, namespace)})
    return find


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


interrupted: list[str] = []  # late imports that were interrupted: rules that they entered are entered again


class LateModule:
    """A module that is imported when one of its names is first asked for.

    >>> json = LateModule("json")
    >>> json.dumps([1, 2])
    '[1, 2]'
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        try:
            module = importlib.import_module(self._name)
        except BaseException:  # an interrupt, of Ctrl-C or of another signal handler
            interrupted.append(self._name)
            raise
        return getattr(module, name)
