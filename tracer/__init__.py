"""Tracer: turn a Python function into a typed program. Needs numpy and ml_dtypes only."""
