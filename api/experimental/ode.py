"""Differential equations: the names of `jax.experimental.ode`."""

from tapeless.experimental.integrators.odeint import odeint

__all__ = ["odeint"]
