"""Lazy imports: names of a namespace, and whole modules, are imported when they are first used.

They are also imported under `if typing.TYPE_CHECKING:`, for type checkers and for the tests of layers, which read it.
"""

import importlib
import sys
from collections.abc import Mapping
from types import FrameType, MappingProxyType
from typing import Any

_NO_NAMES: Mapping[str, str] = MappingProxyType({})


def complete_namespace(namespace: dict[str, Any], names: Mapping[str, str] = _NO_NAMES) -> None:
    """Let a namespace find lazy names, refuse other names with a suggestion, and list its public ones in `dir`.

    Its `__getattr__` raises AttributeError for any other name, and ImportError in `from .. import name`. Type checkers
    do not see this `__getattr__`, and so report such names.

    Args:
      namespace: its `globals()`, to which a name is added when it is found.
      names: modules of `tapeless`, and the names from each, separated by spaces; "" stands for submodules.
    """
    module_of = {name: module for module, listed in names.items() for name in listed.split()}

    def find(name: str) -> Any:
        module = module_of.get(name)
        if module is None:
            missing = importlib.import_module("tapeless.tracer.advice.missing_names")
            refusal = missing.Refusal(namespace["__name__"], name)
            if imports_from(sys._getframe(1)):  # pyright: ignore[reportPrivateUsage]  # the documented way to a frame
                raise ImportError(refusal, name=namespace["__name__"])  # Python's own would not have the suggestion
            # With obj=None Python suggests no name of its own beside ours.
            raise AttributeError(refusal, name=name, obj=None)
        if not module:
            return importlib.import_module(f"{namespace['__name__']}.{name}")
        found = namespace[name] = getattr(importlib.import_module(f"tapeless.{module}"), name)
        return found

    namespace["__getattr__"] = find
    # A copy of the names, since other threads may find some meanwhile.
    namespace["__dir__"] = lambda: sorted({*namespace["__all__"], *filter(_is_special, tuple(namespace))})


def imports_from(frame: FrameType) -> bool:
    """Tell whether a frame is at `from module import name`, whose errors are ImportErrors."""
    return frame.f_code.co_code[frame.f_lasti] == importlib.import_module("opcode").opmap["IMPORT_FROM"]


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


interrupted: list[str] = []  # modules whose import was interrupted: rules that they entered may be entered again


class LateModule:
    """A module that is imported when one of its names is first read.

    >>> json = LateModule("json")
    >>> json.dumps([1, 2])
    '[1, 2]'
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: Any = None  # once it was imported to its end

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module or self._imported(), name)

    def _imported(self) -> Any:
        try:
            module = importlib.import_module(self._name)
        except BaseException:  # an interrupt, of Ctrl-C or of another signal handler
            interrupted.append(self._name)
            raise
        if not getattr(module.__spec__, "_initializing", False):
            self._module = module
        return module
