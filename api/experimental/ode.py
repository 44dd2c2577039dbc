"""Differential equations: the names of `jax.experimental.ode`."""

from tapeless.experimental.integrators.odeint import odeint
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

__all__ = ["odeint"]

_complete_namespace(globals())
