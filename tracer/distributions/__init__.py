"""Densities and probabilities of distributions: what `tapeless.scipy.stats` exports, a module each."""
