"""Indices of the index language: integers that are known by their affine form, and what they read."""
