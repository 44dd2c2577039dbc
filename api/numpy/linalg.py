"""Linear algebra under the names of `numpy.linalg`: `tapeless.numpy.linalg`."""

from tapeless.tracer.late_imports import complete_namespace as _complete_namespace
from tapeless.tracer.numpy.contraction import matmul, tensordot, vecdot
from tapeless.tracer.numpy.decompositions import (
    EighResult,
    EigResult,
    QRResult,
    SVDResult,
    cholesky,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    qr,
    svd,
    svdvals,
)
from tapeless.tracer.numpy.norms import matrix_norm, norm, vector_norm
from tapeless.tracer.numpy.shaping import matrix_transpose
from tapeless.tracer.numpy.systems import (
    SlogdetResult,
    cond,
    cross,
    det,
    diagonal,
    inv,
    lstsq,
    matrix_power,
    matrix_rank,
    multi_dot,
    outer,
    pinv,
    slogdet,
    solve,
    tensorinv,
    tensorsolve,
    trace,
)

# ---- written by docs/make_names.py from the imports above
__all__ = [
    "EigResult", "EighResult", "QRResult", "SVDResult", "SlogdetResult", "cholesky", "cond", "cross", "det", "diagonal",
    "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq", "matmul", "matrix_norm", "matrix_power", "matrix_rank",
    "matrix_transpose", "multi_dot", "norm", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot",
    "tensorinv", "tensorsolve", "trace", "vecdot", "vector_norm",
]  # fmt: skip
# ---- end of what is written

_complete_namespace(globals())
