"""Iterations that solve linear systems and find minima: what `scipy.sparse.linalg` and `scipy.optimize` name."""
