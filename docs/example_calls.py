"""Examples of names whose docstrings have none: calls, whose results make_examples.py records for the site.

Each line is a call, in which NAME stands for the names behind the bar; a line without a bar is of the name it calls.
Those of further namespaces are in library_examples.py.
"""

import contextlib
import io
import re

import library_examples
import numpy as np

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax

NUMPY = """
tnp.NAME(tnp.array([0.25, 0.5])) | acos arccos arcsin arctan arctanh asin atan atanh cbrt cos cosh deg2rad degrees exp
tnp.NAME(tnp.array([0.25, 0.5])) | exp2 expm1 fabs i0 log log10 log1p log2 rad2deg radians reciprocal sin sinc sinh
tnp.NAME(tnp.array([0.25, 0.5])) | sqrt
tnp.NAME(tnp.array([0.25, 0.5])) | square tan tanh arcsinh asinh spacing positive negative
tnp.NAME(tnp.array([1.0, 2.0])) | acosh arccosh
tnp.NAME(tnp.array([-1.5, 0.5, 2.5])) | abs absolute ceil fix floor rint round sign signbit trunc
tnp.NAME(tnp.array([1 + 2j, 3.0])) | angle conj conjugate imag real iscomplex isreal iscomplexobj isrealobj
tnp.NAME(tnp.array([1.0, tnp.inf, tnp.nan])) | isfinite isinf isnan isneginf isposinf nan_to_num
tnp.NAME(tnp.array([1.0, 4.0]), tnp.array([3.0, 2.0])) | add arctan2 atan2 copysign divide equal float_power
tnp.NAME(tnp.array([1.0, 4.0]), tnp.array([3.0, 2.0])) | floor_divide
tnp.NAME(tnp.array([1.0, 4.0]), tnp.array([3.0, 2.0])) | fmax fmin fmod greater greater_equal hypot less less_equal
tnp.NAME(tnp.array([1.0, 4.0]), tnp.array([3.0, 2.0])) | logaddexp logaddexp2 maximum minimum mod multiply nextafter
tnp.NAME(tnp.array([1.0, 4.0]), tnp.array([3.0, 2.0])) | not_equal pow power remainder subtract true_divide divmod
tnp.NAME(tnp.array([1.0, 4.0]), tnp.array([3.0, 2.0])) | isclose allclose array_equal array_equiv heaviside
tnp.NAME(tnp.array([12, 18]), tnp.array([8, 12])) | gcd lcm bitwise_and bitwise_or bitwise_xor
tnp.NAME(tnp.array([1, 2]), 2) | bitwise_left_shift bitwise_right_shift left_shift right_shift ldexp
tnp.NAME(tnp.array([5, 6])) | bitwise_count bitwise_invert bitwise_not invert
tnp.NAME(tnp.array([True, False]), tnp.array([True, True])) | logical_and logical_or logical_xor
tnp.NAME(tnp.array([True, False])) | logical_not
tnp.NAME(tnp.array([1.5, -2.25])) | frexp modf
tnp.NAME(tnp.array([[1.0, 2.0], [3.0, 4.0]]), axis=0) | amax amin argmax argmin average cumprod cumsum max mean median
tnp.NAME(tnp.array([[1.0, 2.0], [3.0, 4.0]]), axis=0) | min
tnp.NAME(tnp.array([[1.0, 2.0], [3.0, 4.0]]), axis=0) | nanargmax nanargmin nancumprod nancumsum nanmax nanmean
tnp.NAME(tnp.array([[1.0, 2.0], [3.0, 4.0]]), axis=0) | nanmedian
tnp.NAME(tnp.array([[1.0, 2.0], [3.0, 4.0]]), axis=0) | nanmin nanprod nanstd nansum nanvar prod ptp std sum var all
tnp.NAME(tnp.array([[1.0, 2.0], [3.0, 4.0]]), axis=0) | any
tnp.NAME(tnp.array([[1.0, 2.0], [3.0, 4.0]]), axis=0) | argsort sort flip diff trapezoid count_nonzero
tnp.NAME(tnp.array([1.0, 2.0, 4.0])) | cumulative_prod cumulative_sum ediff1d gradient sort_complex trim_zeros
tnp.NAME(tnp.array([1.0, 2.0, 4.0]), 0.5) | quantile nanquantile
tnp.NAME(tnp.array([1.0, 2.0, 4.0]), 50) | percentile nanpercentile
tnp.NAME(tnp.array([3, 1, 2]), 1) | argpartition partition
tnp.NAME(tnp.array([0, 3, 0, 2])) | flatnonzero nonzero argwhere bincount unique unique_all unique_counts
tnp.NAME(tnp.array([0, 3, 0, 2])) | unique_inverse
tnp.NAME(tnp.array([0, 3, 0, 2])) | unique_values
tnp.NAME([tnp.array([1, 2]), tnp.array([3, 4])]) | column_stack concat concatenate dstack hstack stack vstack block
tnp.NAME(tnp.arange(8).reshape(2, 2, 2), 2) | dsplit hsplit vsplit split array_split
tnp.NAME(tnp.arange(6).reshape(2, 3)) | fliplr flipud ndim ravel rot90 shape size squeeze transpose matrix_transpose
tnp.NAME(tnp.arange(6).reshape(2, 3)) | tril triu
tnp.NAME(tnp.arange(6).reshape(2, 3)) | unstack diagonal trace diag diagflat tril_indices_from triu_indices_from copy
tnp.NAME(3.0) | atleast_1d atleast_2d atleast_3d isscalar asarray array
tnp.NAME(tnp.arange(6).reshape(2, 3), 0, 1) | moveaxis rollaxis swapaxes
tnp.NAME(tnp.arange(6).reshape(2, 3), (1, 0)) | permute_dims
tnp.NAME(tnp.array([1.0, 2.0, 3.0]), tnp.array([0.0, 1.0, 0.5])) | convolve correlate cross dot inner outer vdot
tnp.NAME(tnp.array([1.0, 2.0, 3.0]), tnp.array([0.0, 1.0, 0.5])) | vecdot kron
tnp.NAME(tnp.array([1.0, 2.0, 3.0]), tnp.array([0.0, 1.0, 0.5])) | corrcoef cov polyadd polysub polymul
tnp.NAME(tnp.array([[1.0, 2.0], [3.0, 4.0]]), tnp.array([1.0, 1.0])) | matmul matvec
tnp.NAME(tnp.array([1.0, 1.0]), tnp.array([[1.0, 2.0], [3.0, 4.0]])) | vecmat
tnp.NAME(4) | bartlett blackman hamming hanning eye identity tri ones zeros arange diag_indices empty
tnp.indices((2, 2))
tnp.tensordot(tnp.ones((2, 3)), tnp.ones((3, 2)), 1)
tnp.NAME(0.0, 1.0, 3) | linspace logspace
tnp.NAME(1.0, 4.0, 3) | geomspace
tnp.NAME(3) | tril_indices triu_indices
tnp.NAME(tnp.arange(3.0)) | ones_like zeros_like empty_like vander poly roots
tnp.NAME(tnp.array([1, 2, 3]), tnp.array([2, 3, 4])) | intersect1d setdiff1d setxor1d union1d isin
tnp.NAME(tnp.array([1.0, 3.0, 2.0, 3.0]), bins=2) | histogram histogram_bin_edges
tnp.NAME(np.float32) | finfo
tnp.NAME(np.int32) | iinfo
tnp.append(tnp.array([1, 2]), 3)
tnp.around(tnp.array([1.234, 5.678]), 1)
tnp.array_repr(tnp.arange(3))
tnp.array_str(tnp.arange(3))
tnp.astype(tnp.arange(3), "float32")
tnp.broadcast_arrays(tnp.arange(3), tnp.ones((2, 1)))
tnp.broadcast_shapes((3,), (2, 1))
tnp.broadcast_to(tnp.arange(3), (2, 3))
tnp.can_cast("int32", "float64")
tnp.choose(tnp.array([0, 1]), [tnp.array([1, 2]), tnp.array([3, 4])])
tnp.clip(tnp.array([-1.0, 0.5, 2.0]), 0.0, 1.0)
tnp.compress(tnp.array([True, False, True]), tnp.arange(3))
tnp.delete(tnp.arange(4), 1)
tnp.diag_indices_from(tnp.ones((2, 2)))
tnp.digitize(tnp.array([0.5, 2.5]), tnp.array([1.0, 2.0]))
tnp.einsum_path("ij,jk->ik", tnp.ones((2, 3)), tnp.ones((3, 4)))[0]
tnp.expand_dims(tnp.arange(3), 0)
tnp.extract(tnp.array([True, False, True]), tnp.arange(3))
tnp.fill_diagonal(tnp.zeros((2, 2)), 1.0, inplace=False)
tnp.frombuffer(b"\\x01\\x02", "uint8")
tnp.fromfunction(lambda i, j: i + j, (2, 2))
tnp.fromiter(range(3), "int32")
tnp.fromstring("1 2 3", dtype="int32", sep=" ")
tnp.full((2,), 7.0)
tnp.full_like(tnp.ones(2), 7.0)
tnp.histogram2d(tnp.array([0.0, 1.0]), tnp.array([0.0, 1.0]), bins=2)[0]
tnp.histogramdd(tnp.array([[0.0, 0.0], [1.0, 1.0]]), bins=2)[0]
tnp.insert(tnp.arange(3), 1, 9)
tnp.interp(1.5, tnp.array([1.0, 2.0]), tnp.array([10.0, 20.0]))
tnp.isdtype(tnp.float32, "real floating")
tnp.ix_(tnp.array([0, 1]), tnp.array([2]))
tnp.kaiser(4, 5.0)
tnp.lexsort((tnp.array([1, 0]), tnp.array([2, 2])))
tnp.mask_indices(2, tnp.triu)
tnp.meshgrid(tnp.array([1, 2]), tnp.array([3, 4]))
tnp.packbits(tnp.array([1, 0, 0, 0, 0, 0, 0, 1]))
tnp.pad(tnp.arange(3), 1)
tnp.piecewise(tnp.array([-1.0, 1.0]), [tnp.array([True, False])], [0.0, 2.0])
tnp.place(tnp.zeros(3), tnp.array([True, False, True]), tnp.array([1.0, 2.0]), inplace=False)
tnp.polyder(tnp.array([1.0, 0.0, 2.0]))
tnp.polydiv(tnp.array([1.0, 3.0, 2.0]), tnp.array([1.0, 1.0]))
tnp.polyfit(tnp.array([0.0, 1.0, 2.0]), tnp.array([1.0, 3.0, 5.0]), 1).round(3)
tnp.polyint(tnp.array([2.0, 1.0]))
tnp.polyval(tnp.array([2.0, 1.0]), 3.0)
tnp.promote_types("int32", "float32")
tnp.put(tnp.zeros(3), 1, 5.0, inplace=False)
tnp.put_along_axis(tnp.zeros((2, 2)), tnp.array([[0], [1]]), 1.0, 1, inplace=False)
tnp.ravel_multi_index((tnp.array([1]), tnp.array([0])), (2, 3))
tnp.repeat(tnp.array([1, 2]), 2)
tnp.reshape(tnp.arange(6), (2, 3))
tnp.resize(tnp.arange(3), (2, 3))
tnp.result_type(tnp.float32, 1)
tnp.roll(tnp.arange(4), 1)
tnp.searchsorted(tnp.array([1.0, 2.0, 3.0]), 2.5)
tnp.select([tnp.array([True, False])], [tnp.array([1, 2])], 0)
tnp.take(tnp.array([10, 20, 30]), tnp.array([2, 0]))
tnp.take_along_axis(tnp.array([[3, 1, 2]]), tnp.array([[1, 2, 0]]), 1)
tnp.tile(tnp.array([1, 2]), 2)
tnp.unpackbits(tnp.array([3], "uint8"))
tnp.unravel_index(4, (2, 3))
tnp.unwrap(tnp.array([0.0, 6.0]))
tnp.where(tnp.array([True, False]), 1.0, 0.0)
""" + "\n".join(
    f"tnp.{kind}(3)"
    for kind in """bfloat16 bool bool_ cdouble complex128 complex64 complex_ csingle double float16 float32 float64
    float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float_ half
    int16 int32 int64 int8 int_ single uint uint16 uint32 uint64 uint8""".split()
)
LINALG = """
tnp.linalg.NAME(tnp.array([[2.0, 1.0], [1.0, 3.0]])) | cholesky cond det diagonal eigh eigvalsh inv matrix_norm
tnp.linalg.NAME(tnp.array([[2.0, 1.0], [1.0, 3.0]])) | matrix_rank
tnp.linalg.NAME(tnp.array([[2.0, 1.0], [1.0, 3.0]])) | matrix_transpose norm pinv qr slogdet svd svdvals trace
tnp.linalg.NAME(tnp.array([[2.0, 1.0], [1.0, 3.0]])) | vector_norm
tnp.linalg.NAME(tnp.array([[2.0, 1.0], [0.0, 3.0]])) | eig eigvals
tnp.linalg.NAME(tnp.array([[2.0, 1.0], [1.0, 3.0]]), tnp.array([1.0, 2.0])) | matmul solve tensorsolve
tnp.linalg.NAME(tnp.array([1.0, 2.0, 3.0]), tnp.array([0.0, 1.0, 0.5])) | cross outer vecdot
tnp.linalg.lstsq(tnp.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]), tnp.array([1.0, 3.0, 5.0]))[0].round(3)
tnp.linalg.matrix_power(tnp.array([[1.0, 1.0], [0.0, 1.0]]), 3)
tnp.linalg.multi_dot([tnp.ones((2, 3)), tnp.ones((3, 4)), tnp.ones((4, 1))])
tnp.linalg.tensordot(tnp.ones((2, 3)), tnp.ones((3, 2)), 1)
tnp.linalg.tensorinv(tnp.eye(4).reshape(4, 2, 2), 1).shape
"""
FFT = """
tnp.fft.NAME(tnp.array([1.0, 0.0, -1.0, 0.0])) | fft fftn fftshift ifft ifftn ifftshift rfft rfftn ihfft
tnp.fft.NAME(tnp.array([1.0, 0.0, -1.0])) | hfft irfft irfftn
tnp.fft.NAME(tnp.ones((2, 2))) | fft2 ifft2 rfft2 irfft2
tnp.fft.NAME(4) | fftfreq rfftfreq
"""
RANDOM = """
tl.random.NAME(tl.random.key(0), shape=(2,)) | cauchy exponential gumbel laplace logistic lognormal maxwell normal
tl.random.NAME(tl.random.key(0), shape=(2,)) | rademacher uniform bits
tl.random.NAME(tl.random.key(0), 2.0, shape=(2,)) | rayleigh chisquare gamma loggamma pareto poisson t wald
tl.random.NAME(tl.random.key(0), 2.0, shape=(2,)) | generalized_normal
tl.random.NAME(tl.random.key(0), 2.0, 3.0, shape=(2,)) | beta f weibull_min double_sided_maxwell
tl.random.NAME(0) | key PRNGKey
tl.random.NAME(tl.random.key(0)) | split clone key_data key_impl
tl.random.NAME(tl.random.key(0), 3) | ball orthogonal permutation
tl.random.key_dtype()
tl.random.bernoulli(tl.random.key(0), 0.5, (4,))
tl.random.binomial(tl.random.key(0), 10, 0.5, (2,))
tl.random.categorical(tl.random.key(0), tnp.log(tnp.array([0.2, 0.8])))
tl.random.choice(tl.random.key(0), 5, (3,), replace=False)
tl.random.dirichlet(tl.random.key(0), tnp.ones(3))
tl.random.fold_in(tl.random.key(0), 1)
tl.random.geometric(tl.random.key(0), 0.5, (2,))
tl.random.multinomial(tl.random.key(0), 10, tnp.array([0.5, 0.5]))
tl.random.multivariate_normal(tl.random.key(0), tnp.zeros(2), tnp.eye(2))
tl.random.randint(tl.random.key(0), (3,), 0, 10)
tl.random.triangular(tl.random.key(0), 0.0, 0.5, 1.0, (2,))
tl.random.truncated_normal(tl.random.key(0), -1.0, 1.0, (2,))
tl.random.wrap_key_data(tnp.array([0, 1], "uint32"))
"""
NN = """
tl.nn.NAME(tnp.array([-1.0, 0.5])) | celu elu gelu glu hard_sigmoid hard_silu hard_swish hard_tanh identity leaky_relu
tl.nn.NAME(tnp.array([-1.0, 0.5])) | log_sigmoid log_softmax logmeanexp logsumexp mish relu relu6 selu sigmoid silu
tl.nn.NAME(tnp.array([-1.0, 0.5])) | soft_sign
tl.nn.NAME(tnp.array([-1.0, 0.5])) | softmax softplus sparse_plus sparse_sigmoid squareplus standardize swish tanh
tl.nn.log1mexp(tnp.array([0.5, 1.0]))
tl.nn.one_hot(tnp.array([0, 2]), 3)
tl.nn.dot_product_attention(tnp.ones((1, 2, 1, 4)), tnp.ones((1, 2, 1, 4)), tnp.ones((1, 2, 1, 4))).shape
"""
INITIALIZERS = """
tl.nn.initializers.NAME()(tl.random.key(0), (2, 3)) | glorot_normal glorot_uniform he_normal he_uniform kaiming_normal
tl.nn.initializers.NAME()(tl.random.key(0), (2, 3)) | kaiming_uniform lecun_normal lecun_uniform normal orthogonal
tl.nn.initializers.NAME()(tl.random.key(0), (2, 3)) | truncated_normal uniform xavier_normal xavier_uniform
tl.nn.initializers.NAME(tl.random.key(0), (2, 3)) | ones zeros
tl.nn.initializers.constant(0.5)(tl.random.key(0), (2,))
tl.nn.initializers.delta_orthogonal()(tl.random.key(0), (3, 2, 2)).shape
tl.nn.initializers.variance_scaling(1.0, "fan_in", "normal")(tl.random.key(0), (2, 3))
"""
TREES = """
tl.tree.NAME({"a": 1, "b": [2, 3]}) | all leaves structure leaves_with_path
tl.tree.broadcast(1, {"a": 0, "b": 0})
tl.tree.map_with_path(lambda path, x: (tl.tree_util.keystr(path), x), {"a": 1})
tl.tree.reduce(lambda total, x: total + x, {"a": 1, "b": 2})
tl.tree.reduce_associative(lambda x, y: x + y, {"a": 1, "b": 2})
tl.tree.unflatten(tl.tree.structure({"a": 0}), [5])
tl.tree_util.NAME({"a": 1, "b": [2, 3]}) | tree_all tree_leaves tree_structure tree_leaves_with_path
tl.tree_util.NAME({"a": 1, "b": [2, 3]}) | flatten_one_level flatten_one_level_with_keys
tl.tree_util.NAME([1, 2]) | all_leaves
tl.tree_util.is_tree_node(dict)
tl.tree_util.tree_broadcast(1, {"a": 0, "b": 0})
tl.tree_util.tree_map_with_path(lambda path, x: (tl.tree_util.keystr(path), x), {"a": 1})
tl.tree_util.tree_reduce(lambda total, x: total + x, {"a": 1, "b": 2})
tl.tree_util.tree_reduce_associative(lambda x, y: x + y, {"a": 1, "b": 2})
tl.tree_util.tree_unflatten(tl.tree_util.tree_structure({"a": 0}), [5])
tl.tree_util.NAME(tl.tree_util.tree_structure([1, (2, 3)])) | treedef_children treedef_is_leaf
tl.tree_util.treedef_tuple([tl.tree_util.tree_structure(1), tl.tree_util.tree_structure([2])])
tl.tree_util.DictKey("a")
tl.tree_util.SequenceKey(0)
tl.tree_util.GetAttrKey("w")
tl.tree_util.FlattenedIndexKey(0)
"""
SPECIAL = """
tl.scipy.special.NAME(tnp.array([0.25, 0.5])) | dawsn digamma entr erf erfc erfcx erfinv exp1 expi expit fresnel gamma
tl.scipy.special.NAME(tnp.array([0.25, 0.5])) | gammaln
tl.scipy.special.NAME(tnp.array([0.25, 0.5])) | gammasgn i0 i0e i1 i1e log_ndtr log_softmax loggamma logit logsumexp
tl.scipy.special.NAME(tnp.array([0.25, 0.5])) | ndtr ndtri
tl.scipy.special.NAME(tnp.array([0.25, 0.5])) | sici softmax spence factorial wofz
tl.scipy.special.NAME(tnp.array([0.25, 0.5]), 2.0) | beta betaln boxcox boxcox1p gammainc gammaincc kl_div owens_t
tl.scipy.special.NAME(tnp.array([0.25, 0.5]), 2.0) | poch
tl.scipy.special.NAME(tnp.array([0.25, 0.5]), 2.0) | rel_entr xlog1py xlogy
tl.scipy.special.NAME(2, tnp.array([0.25, 0.5])) | polygamma
tl.scipy.special.NAME(1.0, 2.0, tnp.array([0.25, 0.5])) | hyp1f1
tl.scipy.special.NAME(1.0, 2.0, 3.0, tnp.array([0.25, 0.5])) | hyp2f1
tl.scipy.special.zeta(2.0, tnp.array([1.0, 2.0]))
tl.scipy.special.bernoulli(4)
tl.scipy.special.bessel_jn(tnp.array([0.5]), v=2)
tl.scipy.special.betainc(2.0, 3.0, tnp.array([0.25, 0.5]))
tl.scipy.special.comb(5, 2)
tl.scipy.special.expn(2, tnp.array([0.25, 0.5]))
tl.scipy.special.multigammaln(3.0, 2)
"""
SCIPY_LINALG = """
tl.scipy.linalg.NAME(tnp.array([[2.0, 1.0], [1.0, 3.0]])) | cho_factor cholesky det eigh expm hessenberg inv lu
tl.scipy.linalg.NAME(tnp.array([[2.0, 1.0], [1.0, 3.0]])) | lu_factor polar
tl.scipy.linalg.NAME(tnp.array([[2.0, 1.0], [1.0, 3.0]])) | qr schur sqrtm svd
tl.scipy.linalg.NAME(tnp.array([[2.0, 1.0], [1.0, 3.0]]), tnp.array([1.0, 2.0])) | solve solve_triangular
tl.scipy.linalg.NAME(tnp.array([1.0, 2.0, 3.0])) | circulant companion fiedler fiedler_companion hankel toeplitz
tl.scipy.linalg.NAME(3) | dft helmert hilbert invhilbert invpascal pascal
tl.scipy.linalg.hadamard(4)
tl.scipy.linalg.block_diag(tnp.ones((1, 1)), 2 * tnp.ones((1, 2)))
tl.scipy.linalg.cho_solve(tl.scipy.linalg.cho_factor(tnp.eye(2)), tnp.ones(2))
tl.scipy.linalg.convolution_matrix(tnp.array([1.0, 2.0]), 2)
tl.scipy.linalg.eigh_tridiagonal(tnp.array([1.0, 2.0]), tnp.array([0.5]), eigvals_only=True)
tl.scipy.linalg.expm_frechet(tnp.zeros((2, 2)), tnp.eye(2))
tl.scipy.linalg.funm(tnp.eye(2), tnp.exp).real
tl.scipy.linalg.leslie(tnp.array([1.0, 2.0]), tnp.array([0.5]))
tl.scipy.linalg.lu_solve(tl.scipy.linalg.lu_factor(tnp.eye(2)), tnp.ones(2))
tl.scipy.linalg.qr_multiply(tnp.eye(2), tnp.ones((2, 2)))[0]
tl.scipy.linalg.rsf2csf(tnp.eye(2), tnp.eye(2))[0]
tl.scipy.linalg.solve_sylvester(tnp.eye(2), tnp.eye(2), tnp.ones((2, 2)))
"""
SIGNAL = """
tl.scipy.signal.NAME(tnp.array([1.0, 2.0, 3.0]), tnp.array([0.0, 1.0])) | convolve correlate fftconvolve
tl.scipy.signal.NAME(tnp.ones((2, 2)), tnp.ones((1, 2))) | convolve2d correlate2d
tl.scipy.signal.detrend(tnp.array([1.0, 2.0, 4.0]))
tl.scipy.signal.welch(tnp.arange(8.0), nperseg=4)[1].shape
tl.scipy.signal.csd(tnp.arange(8.0), tnp.arange(8.0), nperseg=4)[1].shape
tl.scipy.signal.stft(tnp.arange(8.0), nperseg=4)[2].shape
tl.scipy.signal.istft(tl.scipy.signal.stft(tnp.arange(8.0), nperseg=4)[2], nperseg=4)[1].round(3)
"""
LAX = """
lax.NAME(tnp.array([0.25, 0.5])) | acos asin asinh atan atanh bessel_i0e bessel_i1e cbrt cos cosh digamma erf erf_inv
lax.NAME(tnp.array([0.25, 0.5])) | erfc
lax.NAME(tnp.array([0.25, 0.5])) | exp exp2 expm1 lgamma log log1p logistic reciprocal rsqrt sin sinh sqrt square tan
lax.NAME(tnp.array([0.25, 0.5])) | tanh
lax.NAME(tnp.array([0.25, 0.5])) | neg abs stop_gradient dce_sink optimization_barrier unstack zeros_like
lax.NAME(tnp.array([1.0, 2.0])) | acosh ceil floor round sign is_finite cumlogsumexp cummax cummin cumprod cumsum
lax.NAME(tnp.array([1.0, 2.0])) | dtype
lax.NAME(tnp.array([1 + 2j, 3.0])) | conj imag real
lax.NAME(tnp.array([5, 6])) | bitwise_not clz population_count
lax.NAME(tnp.array([12, 18]), tnp.array([8, 12])) | bitwise_and bitwise_or bitwise_xor mulhi
lax.NAME(tnp.array([4, 8]), tnp.array([1, 2])) | shift_left shift_right_arithmetic shift_right_logical
lax.NAME(tnp.array([1.0, 4.0]), tnp.array([3.0, 2.0])) | add atan2 complex div eq ge gt le lt max min mul ne nextafter
lax.NAME(tnp.array([1.0, 4.0]), tnp.array([3.0, 2.0])) | pow rem
lax.NAME(tnp.array([1.0, 4.0]), tnp.array([3.0, 2.0])) | sub igamma igammac igamma_grad_a random_gamma_grad zeta dot
lax.NAME(tnp.array([3.0, 1.0, 2.0])) | sort
lax.NAME(tnp.array([3.0, 1.0, 2.0]), 2) | top_k approx_max_k approx_min_k
lax.NAME(tnp.array([[1.0, 2.0], [3.0, 4.0]]), (0,)) | reduce_max reduce_min reduce_prod reduce_sum rev expand_dims
lax.NAME(tnp.array([[True, False], [True, True]]), (0,)) | reduce_and reduce_or reduce_xor
lax.NAME(tnp.array([[1.0, 2.0], [3.0, 4.0]]), 0, "int32") | argmax argmin
lax.NAME((2, 3), 0.5) | full
lax.NAME(tnp.arange(4), 1) | dynamic_index_in_dim index_in_dim
lax.NAME(tnp.arange(4), 1, 2) | dynamic_slice_in_dim
lax.NAME(tnp.arange(4), 1, 3) | slice_in_dim
lax.NAME([tnp.array([1, 2]), tnp.array([3, 4])], 0) | concatenate
lax.NAME([tnp.array([1, 2]), tnp.array([3, 4])]) | stack
lax.batch_matmul(tnp.ones((1, 2, 3)), tnp.ones((1, 3, 2)))
lax.betainc(2.0, 3.0, tnp.array([0.25, 0.5]))
lax.bitcast_convert_type(tnp.array([1.0]), "int32")
lax.broadcast(tnp.array([1, 2]), (2,))
lax.broadcast_in_dim(tnp.array([1, 2]), (2, 3), (0,))
lax.broadcast_like(1.0, tnp.zeros(3))
lax.broadcast_shapes((3,), (2, 1))
lax.broadcast_to_rank(tnp.array([1, 2]), 2)
lax.broadcasted_iota("int32", (2, 3), 1)
lax.clamp(0.0, tnp.array([-1.0, 0.5, 2.0]), 1.0)
lax.collapse(tnp.ones((2, 3, 4)), 0, 2).shape
lax.conv(tnp.ones((1, 1, 3, 3)), tnp.ones((1, 1, 2, 2)), (1, 1), "VALID")
lax.conv_general_dilated(tnp.ones((1, 1, 3, 3)), tnp.ones((1, 1, 2, 2)), (1, 1), "SAME")
lax.conv_general_dilated_patches(tnp.arange(4.0).reshape(1, 1, 2, 2), (2, 2), (1, 1), "VALID")
lax.conv_transpose(tnp.ones((1, 2, 1)), tnp.ones((2, 1, 1)), (1,), "VALID", dimension_numbers=("NHC", "HIO", "NHC"))
lax.conv_with_general_padding(tnp.ones((1, 1, 3, 3)), tnp.ones((1, 1, 2, 2)), (1, 1), "VALID", None, None)
lax.conv_dimension_numbers((1, 3, 3, 1), (2, 2, 1, 1), ("NHWC", "HWIO", "NHWC"))
lax.convert_element_type(tnp.array([1.5]), "int32")
lax.custom_linear_solve(lambda x: 2 * x, tnp.ones(2), lambda matvec, b: b / 2, symmetric=True)
lax.custom_root(lambda x: x**2 - 4, 1.0, lambda f, x: tnp.array(2.0), lambda g, y: y / g(1.0))
lax.dot_general(tnp.ones((2, 3)), tnp.ones((3, 2)), (((1,), (0,)), ((), ())))
lax.dynamic_slice(tnp.arange(4), (1,), (2,))
lax.dynamic_update_slice(tnp.zeros(4), tnp.ones(2), (1,))
lax.dynamic_update_slice_in_dim(tnp.zeros(4), tnp.ones(2), 1, 0)
lax.dynamic_update_index_in_dim(tnp.zeros(4), 1.0, 1, 0)
lax.empty((2,), "float32").shape
lax.fft(tnp.array([1.0, 0.0, -1.0, 0.0], "complex64"), "fft", (4,))
lax.full_like(tnp.ones(2), 7.0)
lax.index_take(tnp.array([10, 20, 30]), (tnp.array([2, 0]),), (0,))
lax.integer_pow(tnp.array([2.0, 3.0]), 3)
lax.iota("int32", 3)
lax.pad(tnp.array([1.0, 2.0]), 0.0, ((1, 1, 1),))
lax.padtype_to_pads((5,), (2,), (1,), "SAME")
lax.platform_dependent(1.0, cpu=lambda x: x + 1, default=lambda x: x)
lax.polygamma(1.0, tnp.array([0.5, 1.0]))
lax.ragged_dot(tnp.ones((3, 2)), tnp.ones((2, 2, 2)), tnp.array([1, 2]))
lax.reduce_precision(tnp.array([1.2345]), 5, 4)
lax.reduce_window(tnp.arange(4.0), 0.0, lax.add, (2,), (1,), "VALID")
lax.reshape(tnp.arange(6), (2, 3))
lax.select(tnp.array([True, False]), tnp.array([1, 2]), tnp.array([3, 4]))
lax.select_n(tnp.array([0, 1]), tnp.array([1, 2]), tnp.array([3, 4]))
lax.slice(tnp.arange(4), (1,), (3,))
lax.sort_key_val(tnp.array([3, 1, 2]), tnp.array([30, 10, 20]))
lax.split(tnp.arange(4), (1, 3))
lax.squeeze(tnp.ones((1, 2)), (0,))
lax.tile(tnp.array([1, 2]), (2,))
lax.transpose(tnp.arange(6).reshape(2, 3), (1, 0))
lax.shape_as_value((2, 3))
"""
LAX_LINALG = """
lax.linalg.NAME(tnp.array([[2.0, 1.0], [1.0, 3.0]])) | cholesky eigh hessenberg lu qr schur svd tridiagonal qdwh
lax.linalg.eig(tnp.array([[2.0, 1.0], [0.0, 3.0]]))
lax.linalg.cholesky_update(tnp.eye(2), tnp.ones(2))
lax.linalg.householder_product(tnp.eye(2), tnp.zeros(2))
lax.linalg.lu_pivots_to_permutation(tnp.array([1, 1], "int32"), 2)
lax.linalg.symmetric_product(tnp.ones((2, 2)), tnp.zeros((2, 2)))
lax.linalg.triangular_solve(tnp.eye(2), tnp.ones((2, 1)), left_side=True)
lax.linalg.tridiagonal_solve(tnp.zeros(2), tnp.ones(2), tnp.zeros(2), tnp.ones((2, 1)))
"""
TOP = """
tl.NAME() | default_backend device_count devices local_device_count local_devices process_count process_index
tl.NAME() | process_indices effects_barrier
tl.NAME(tnp.ones(2)) | block_until_ready device_get device_put stop_gradient typeof
tl.eval_shape(lambda x: x @ x, tl.ShapeDtypeStruct((2, 2), "float32"))
tl.ShapeDtypeStruct((2, 3), "float32")
tl.from_dlpack(np.ones(2))
tl.partial_eval(lambda w, x: tnp.exp(w) * x, 0.0, 1.0, known="w").unknown
tl.program_size(tl.unzip(lambda x: tnp.sin(x) * x, 1.0))
tl.residual_bytes(tl.unzip(lambda x: tnp.sin(x) * x, 1.0))
tl.named_call(tnp.sin, name="wave")(0.5)
tl.freeze(tl.new_ref(tnp.ones(2)))
"""
TEXTS = {
    "tapeless": TOP,
    "tapeless.lax": LAX,
    "tapeless.lax.linalg": LAX_LINALG,
    "tapeless.numpy": NUMPY,
    "tapeless.numpy.linalg": LINALG,
    "tapeless.numpy.fft": FFT,
    "tapeless.random": RANDOM,
    "tapeless.nn": NN,
    "tapeless.nn.initializers": INITIALIZERS,
    "tapeless.tree": TREES,
    "tapeless.tree_util": TREES,
    "tapeless.scipy.special": SPECIAL,
    "tapeless.scipy.linalg": SCIPY_LINALG,
    "tapeless.scipy.signal": SIGNAL,
}


def namespaces() -> list[str]:
    """List the namespaces that have examples here."""
    return sorted(TEXTS.keys() | library_examples.TEXTS.keys())


def calls(namespace: str) -> dict[str, str]:
    """Return the example of each name of a namespace that has one here."""
    module = re.sub(r"^tapeless\.numpy", "tnp", namespace)
    module = re.sub(r"^tapeless\.lax", "lax", module).replace("tapeless", "tl")
    found: dict[str, str] = {}
    for line in (TEXTS.get(namespace, "") + "\n" + library_examples.TEXTS.get(namespace, "")).split("\n"):
        call, _, names = line.partition(" | ")
        for name in names.split() or [line.partition("(")[0].rpartition(".")[2]]:
            written = call.replace("NAME", name)
            if f"{module}.{name}" in written:
                found[name] = written
    return found


def shown(call: str) -> str:
    """Show what a call prints and returns, as Python does."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        found = eval(compile(call, "<example>", "eval"), {"np": np, "tl": tl, "tnp": tnp, "lax": lax})
    return (printed.getvalue() + ("" if found is None else repr(found))).rstrip()


def shown_examples(namespace: str) -> dict[str, str]:
    """Return each name's example, with what it shows."""
    return {name: f">>> {call}\n{shown(call)}".rstrip() for name, call in calls(namespace).items()}
