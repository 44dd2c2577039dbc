"""Lowering of terms: sums of products at affine indices as operations on arrays.

Masks, slicing, fusion and the index language write their sums by it. Begin with `lower_terms`: `plan` gives the order
of a term's contraction and its cost, `steps` and `tiles` what is not a product; the other `lower_` modules write it.
`lower_ein` is the pass that does so for every `ein` of a program.
"""
