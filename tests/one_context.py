"""Modules parsed in one MLIR context of the process, instead of one for each, as jaxlib makes them for a text.

Making a context takes a fifth of the time of compiling a small module, and tests compile tens of thousands. The context
has the dialects that modules are written in: jaxlib's passes over a module search all operations that its context knows
for rewrites, which takes a tenth of that time if a context has all dialects that are available.
"""

import functools
import importlib
import itertools
import threading
from collections.abc import Callable
from typing import Any

from tapeless.lowering import compile

_LIFETIME = 500  # modules: a context keeps the constants of all that were parsed in it
_parsed = itertools.count()


def compiling(call: Callable[..., Any], f: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
    """Do as `call(f, *args, **keywords)` does, with the first of `args` parsed if it is the text of a module.

    Only in the main thread: while a module is parsed, its context loads dialects, and no other thread may use it.
    """
    first, *others = args
    shares = isinstance(first, str) and threading.current_thread() is threading.main_thread()
    return call(f, _module(first) if shares else first, *others, **keywords)


def _module(text: str) -> Any:
    """Parse a text; return it as it is if that fails, for jaxlib's own error."""
    try:
        return compile.parse(text, _context(next(_parsed) // _LIFETIME))
    except Exception:  # MLIRError, a class of bindings that are loaded by the first parse
        return text


@functools.lru_cache(maxsize=1)
def _context(_generation: int) -> Any:
    ir: Any = importlib.import_module("jaxlib.mlir.ir")
    made, registry = ir.Context(), ir.DialectRegistry()
    importlib.import_module("jaxlib.mlir._mlir_libs._jax_mlir_ext").register_dialects(registry)
    made.append_dialect_registry(registry)  # those are loaded when a module is written in them
    for name in ("stablehlo", "chlo", "sdy"):
        importlib.import_module(f"jaxlib.mlir.dialects.{name}").register_dialect(made)
    return made
