"""Probability distributions: densities, distribution functions and quantiles, one module each, as in `scipy.stats`."""
