"""The primitives, one module per family: function, typing rule, Primitive.

The rules of frequent families are imported with Tapeless, those of a rare one when one is first looked up.
"""

FREQUENT = ("bits", "call", "contraction", "elementwise", "indexing", "reduction", "shape")
RARE = (
    "callback",
    "checkpoint",
    "collective",
    "condensed_forms",
    "control_flow",
    "custom",
    "custom_vmap",
    "ein",
    "error_functions",
    "factorization",
    "fourier",
    "gamma_functions",
    "integrals",
    "linalg",
    "linear_solve",
    "platform",
    "random",
    "sorting",
    "special",
    "spectral",
    "tridiagonal_systems",
    "windows",
)
UNKNOWN = ("opaque",)  # has no values, so that statements about every primitive exclude it
