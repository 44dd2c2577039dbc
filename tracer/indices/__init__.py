"""Indices of the index language: integers with an affine form, and reads of arrays at them."""
