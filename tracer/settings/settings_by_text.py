"""Settings by text: flags of absl, `--jax_enable_x64`, and JAX's environment variables, `JAX_ENABLE_X64=1`."""

import importlib
import os
import sys
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any

_TRUE, _FALSE = frozenset("y yes t true on 1".split()), frozenset("n no f false off 0".split())


def define_flags(names: Sequence[str], values: Callable[[str], Any], update: Callable[[str, Any], None]) -> None:
    """Define flags of absl by these names; once its `app.run` has parsed them, `update` is called for those given.

    Raises: ModuleNotFoundError if absl-py is not installed.
    """
    flags = importlib.import_module("absl.flags")
    for name in names:
        if name not in flags.FLAGS:
            define = flags.DEFINE_bool if isinstance(values(name), bool) else flags.DEFINE_string
            define(name, values(name), f"the setting {name} of Tapeless, as of JAX")
    importlib.import_module("absl.app").call_after_init(lambda: _update_from(flags.FLAGS, names, update))


def parse_flags(names: Sequence[str], values: Callable[[str], Any], update: Callable[[str, Any], None]) -> None:
    """Define flags, and parse those on the command line, `sys.argv`, before `--`; other flags are left alone."""
    define_flags(names, values, update)
    flags = importlib.import_module("absl.flags").FLAGS
    given = [word for word in takewhile(lambda word: word != "--", sys.argv) if word.startswith(("--jax", "--nojax"))]
    flags(["", *given], known_only=True)
    _update_from(flags, names, update)


def _update_from(flags: Any, names: Sequence[str], update: Callable[[str, Any], None]) -> None:
    for name in names:
        if flags[name].present:
            update(name, flags[name].value)


def in_environment(names: Sequence[str], values: Callable[[str], Any]) -> dict[str, Any]:
    """Return the settings that environment variables give, by names in capitals.

    Raises: ValueError for a word that is neither true nor false.
    """
    given = {name: os.environ[name.upper()] for name in names if name.upper() in os.environ}
    return {name: _truth(name, word) if isinstance(values(name), bool) else word for name, word in given.items()}


def _truth(name: str, word: str) -> bool:
    if word.lower() not in _TRUE | _FALSE:
        raise ValueError(f"the environment variable {name.upper()} must be true or false, not {word!r}.")
    return word.lower() in _TRUE
