"""Fusion of sums of products at affine indices: what to fuse, in which order to contract, lowering to primitives."""
