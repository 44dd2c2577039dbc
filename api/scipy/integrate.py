"""Integrals of samples under the names of `scipy.integrate`."""

from tapeless.tracer.numpy.calculus import trapezoid

__all__ = ["trapezoid"]
