"""Differential equations: the names of `jax.experimental.ode`."""

from tapeless.integrators.odeint import odeint

__all__ = ["odeint"]
