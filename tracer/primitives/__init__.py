"""The primitives, one module per family: function, typing rule, Primitive.

The rules of a family are imported when one is first looked up.
"""

FAMILIES = (
    "bits",
    "call",
    "callback",
    "checkpoint",
    "collective",
    "contraction",
    "control_flow",
    "custom",
    "ein",
    "elementwise",
    "factorization",
    "fourier",
    "gamma_functions",
    "indexing",
    "integrals",
    "invertible",
    "linalg",
    "linear_solve",
    "linear_while",
    "random",
    "reduction",
    "shape",
    "sorting",
    "special",
    "spectral",
    "windows",
)
UNKNOWN = ("opaque",)  # has no values, so that statements about every primitive exclude it
