"""Backward errors of solvers and factorizations on ill-conditioned matrices, beside those of NumPy and SciPy.

The backward error of a result is the least change of the matrix, relative to its norm, of which the result is exact, or
a bound of it: residuals of systems, products of factors less the matrix, and how far factors are from orthonormal.
`python -m tests.backward_errors` tries all sizes from 5 to 200; `tests/test_backward_errors.py` one.
"""
