"""`python -m tapeless.as_jax script.py ...`, or `-m module ...`: run a program for JAX with Tapeless in its place."""

import runpy
import sys
from contextlib import AbstractContextManager
from types import ModuleType

from tapeless.like_jax.shim import as_jax

_USAGE = "usage: python -m tapeless.as_jax [-m module | script.py] [arguments ...]"


def main(arguments: list[str]) -> None:
    """Run a script, or a module after `-m`, as the main program, with the arguments behind it."""
    by_name = arguments[:1] == ["-m"]
    given = arguments[by_name:]
    if not given or given[0].startswith("-"):
        raise SystemExit(_USAGE)
    sys.argv[:] = given
    with as_jax():
        if by_name:
            runpy.run_module(given[0], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(given[0], run_name="__main__")


class _CallableModule(ModuleType):
    """`tl.as_jax()` works whether or not this module, which then takes the function's place, has been imported."""

    def __call__(self) -> AbstractContextManager[ModuleType]:
        return as_jax()


sys.modules[__name__].__class__ = _CallableModule

if __name__ == "__main__":
    main(sys.argv[1:])
