"""Contractions: products and sums taken apart into factors, and put together in a cheaper order."""
