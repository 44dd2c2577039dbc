"""Fusion of sums of products at affine indices, and the order in which they are contracted."""
