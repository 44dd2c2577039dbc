"""The primitives, one module per family: function, typing rule, Primitive.

The rules of a family are imported when one is first looked up.
"""

FAMILIES = (
    "bits",
    "call",
    "callback",
    "checkpoint",
    "collective",
    "condensed_forms",
    "contraction",
    "control_flow",
    "custom",
    "custom_vmap",
    "ein",
    "elementwise",
    "error_functions",
    "factorization",
    "fourier",
    "gamma_functions",
    "indexing",
    "integrals",
    "linalg",
    "linear_solve",
    "platform",
    "random",
    "reduction",
    "shape",
    "sorting",
    "special",
    "spectral",
    "tridiagonal_systems",
    "windows",
)
UNKNOWN = ("opaque",)  # has no values, so that statements about every primitive exclude it
