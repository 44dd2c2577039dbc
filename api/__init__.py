"""Tapeless: automatic differentiation by tracing, linearization and transposition, compiled by XLA."""
