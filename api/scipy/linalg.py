"""Linear algebra under the names of `scipy.linalg`: `tapeless.scipy.linalg`."""

from tapeless.scipy.matrices.exponential import expm, expm_frechet
from tapeless.scipy.matrices.linear_systems import (
    cho_factor,
    cho_solve,
    cholesky,
    det,
    eigh,
    eigh_tridiagonal,
    inv,
    lu,
    lu_factor,
    polar,
    qr,
    qr_multiply,
    solve,
    solve_triangular,
    svd,
)
from tapeless.scipy.matrices.schur_form import funm, hessenberg, lu_solve, rsf2csf, schur, solve_sylvester, sqrtm
from tapeless.scipy.matrices.special_matrices import (
    block_diag,
    circulant,
    companion,
    convolution_matrix,
    dft,
    fiedler,
    fiedler_companion,
    hadamard,
    hankel,
    helmert,
    hilbert,
    invhilbert,
    invpascal,
    leslie,
    pascal,
    toeplitz,
)
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

# ---- written by docs/make_names.py from the imports above
__all__ = [
    "block_diag", "cho_factor", "cho_solve", "cholesky", "circulant", "companion", "convolution_matrix", "det", "dft",
    "eigh", "eigh_tridiagonal", "expm", "expm_frechet", "fiedler", "fiedler_companion", "funm", "hadamard", "hankel",
    "helmert", "hessenberg", "hilbert", "inv", "invhilbert", "invpascal", "leslie", "lu", "lu_factor", "lu_solve",
    "pascal", "polar", "qr", "qr_multiply", "rsf2csf", "schur", "solve", "solve_sylvester", "solve_triangular", "sqrtm",
    "svd", "toeplitz",
]  # fmt: skip
# ---- end of what is written

_complete_namespace(globals())
