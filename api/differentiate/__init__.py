"""Derivatives of functions: grad, vjp, jvp, linearize, Jacobians, linear maps and what they cost."""
