"""Minima under the names of `scipy.optimize`: `tapeless.scipy.optimize`."""

from tapeless.iterative.minimization import OptimizeResults, minimize

__all__ = ["OptimizeResults", "minimize"]
