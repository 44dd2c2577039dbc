"""JAX's names, without _p, of primitives: of ours that are JAX's, see own_primitives.py; of functions, see
function_primitives.py."""

ALIKE = """
abs acos acosh add and asin asinh atan atan2 atanh bessel_i0e bessel_i1e ceil clamp clz complex copy cosh digamma div eq
erf erf_inv erfc floor ge gt igamma igamma_grad_a igammac imag integer_pow is_finite le lgamma lt max min ne neg
nextafter not or polygamma population_count pow real regularized_incomplete_beta rem round select_n shift_left
shift_right_arithmetic shift_right_logical sign sinh square stop_gradient sub xor zeta
concatenate cumlogsumexp cummax cummin cumprod cumsum dynamic_slice dynamic_update_slice fft gather pad reduce_and
reduce_max reduce_min reduce_or reduce_precision reduce_prod reduce_window_max reduce_window_min reduce_window_sum
reduce_xor rev transpose
""".split()
ACCURATE = "cbrt cos exp exp2 expm1 log log1p logistic rsqrt sin sqrt tan tanh".split()
SCATTERS = "scatter scatter_add scatter_max scatter_min scatter_mul".split()
RENAMED = """
argmax argmin bitcast_convert_type broadcast_in_dim conj conv_general_dilated convert_element_type dot_general iota mul
reduce_sum reshape slice
""".split()
OF_SEVERAL_RESULTS = "cond dce_sink optimization_barrier rng_bit_generator scan sort split while".split()
OF_MATRICES = "cholesky tridiagonal_solve triangular_solve".split()
OF_SEVERAL_FACTORS = "eig hessenberg lu qr schur tridiagonal".split()

IN_LAX = sorted(f"{name}_p" for name in (*ALIKE, *ACCURATE, *SCATTERS, *RENAMED, *OF_SEVERAL_RESULTS))
IN_LINALG = sorted(f"{name}_p" for name in (*OF_MATRICES, *OF_SEVERAL_FACTORS))

# ---- functions -----------------------------------------------------------------------------------------------

_IN_LAX = """
all_gather all_to_all approx_top_k axis_index device_put eq_to le_to lt_to mulhi pmax pmin ppermute psum reduce
reduce_window scatter_sub select_and_gather_add select_and_scatter_add squeeze stack stage tile top_k unstack
""".split()
_IN_LINALG = "cholesky_update eigh householder_product lu_pivots_to_permutation ormqr svd symmetric_product".split()
FUNCTIONS_IN_LAX = sorted(f"{name}_p" for name in _IN_LAX)
FUNCTIONS_IN_LINALG = sorted(f"{name}_p" for name in _IN_LINALG)
