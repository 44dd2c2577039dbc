"""Differential equations: the names of `jax.experimental.ode`."""

import typing as _typing

from tapeless.experimental.integrators.odeint import odeint
from tapeless.tracer.late_imports import imported_late as _imported_late

__all__ = ["odeint"]

if not _typing.TYPE_CHECKING:  # type checkers know better what is there
    __getattr__ = _imported_late(globals(), {})
