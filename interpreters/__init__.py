"""Interpreters: transform programs by rule (differentiate, batch, transpose, simplify). Never imports jaxlib."""

import sys

from tapeless.tracer.late_imports import imports_from as _imports_from


def __getattr__(name: str) -> object:
    told = f"module 'tapeless.interpreters' has no attribute {name!r}."
    if name in ("ad", "batching", "mlir", "xla"):
        told += f"\n  What jax.interpreters.{name} offers is tl.extend.{name}."
    kind = ImportError if _imports_from(sys._getframe(1)) else AttributeError  # pyright: ignore[reportPrivateUsage]
    raise kind(told)
