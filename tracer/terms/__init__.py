"""Sums of products of arrays at affine indices: the data types, and the algebra on them."""
