"""Analyses of programs that change nothing: linearity, sparsity, cost, and the strict form Linear A."""
