"""Replacements for names of SciPy, NumPy, JAX and PyTorch that have no counterpart: the expressions to write instead.

Read by `missing_names.py`, when an error is printed; `pytorch_names.py` has the names of the page on PyTorch.
"""

from typing import Final

_CALLBACK = "tl.pure_callback of that function, which needs a rule of its own for derivatives, tl.custom_jvp"
_ONE_DEVICE = "tl.vmap over the axis of the devices: a program runs on one device, and sharding is not there"
_NEWTON = (
    "Newton's method, x - tnp.linalg.solve(tl.jacfwd(f)(x), f(x)), in tl.lax.while_loop; inside tl.lax.custom_root the "
    "solution has derivatives"
)
_NEWTON_OF_ONE = (
    "steps of bisection, or of Newton's method, x - f(x) / tl.grad(f)(x), in tl.lax.while_loop; inside "
    "tl.lax.custom_root the solution has derivatives"
)
_LEAST_SQUARES = (
    "steps p - tnp.linalg.solve(J.T @ J + damping * tnp.eye(len(p)), J.T @ residual(p)) with J = "
    'tl.jacfwd(residual)(p), or tl.scipy.optimize.minimize(lambda p: tnp.sum(residual(p) ** 2), p, method="BFGS")'
)
_ODE = "tl.experimental.ode.odeint(f, y0, t), of f(y, t): steps of Dormand and Prince, for problems that are not stiff"
_QUADRATURE = "tnp.sum(weights * f(nodes)), with nodes and weights of numpy.polynomial.legendre.leggauss(n)"
_SPARSE = (
    "arrays of rows, columns and values: the product with a vector is tl.ops.segment_sum(values * x[columns], rows, n)"
)
_SPARSE_SOLVE = (
    "tl.scipy.sparse.linalg.cg(matvec, b), or tl.scipy.sparse.linalg.gmres(matvec, b), of a function that multiplies; "
    "tnp.linalg.solve(a, b), of a dense matrix; tl.lax.linalg.tridiagonal_solve, of three diagonals"
)
_EIGENVALUES = "tnp.linalg.eigh(a), of a dense matrix, or power iterations in tl.lax.fori_loop"
_SPLINE = (
    "tnp.interp(x, xs, ys), which is linear; a cubic spline takes its slopes from tl.lax.linalg.tridiagonal_solve, and "
    "its pieces from tnp.polyval"
)
_FILTER = "tl.scipy.signal.convolve(x, kernel), or tl.lax.conv_general_dilated for many at once"
_RECURSION = "tl.lax.scan over the samples, with the state of the filter as the carry"
_WINDOWS_OF = "tl.lax.reduce_window(x, -tnp.inf, tl.lax.max, window, strides, padding)"
_NEIGHBOURS = "tl.lax.top_k(-distances, k), of all distances tnp.linalg.norm(x[:, None] - y[None], axis=-1)"
_CONVERTED = "tnp.asarray(x): arrays have no other layout"
_OF_NUMPY = "NumPy's function of that name: all functions here take its arrays"
_PARAMETERS = "functions whose parameters are arguments; libraries for JAX run inside of `with tl.as_jax():`"

_SCIPY: Final = {
    "solve_ivp RK45 RK23 DOP853 LSODA Radau BDF": _ODE,
    "quad quad_vec nquad dblquad tplquad romberg fixed_quad quadrature": _QUADRATURE,
    "simpson simps romb": "tl.scipy.integrate.trapezoid(y, x), or tnp.sum of y times Simpson's weights",
    "cumulative_trapezoid cumtrapz cumulative_simpson": "tnp.cumsum((y[1:] + y[:-1]) / 2 * tnp.diff(x))",
    "solve_bvp": f"finite differences of the equation, and for their roots {_NEWTON}",
    "root fsolve newton_krylov broyden1 broyden2 anderson fixed_point": _NEWTON,
    "newton brentq brenth bisect ridder toms748 root_scalar": _NEWTON_OF_ONE,
    "least_squares curve_fit leastsq": _LEAST_SQUARES,
    "fmin_bfgs fmin_cg fmin_l_bfgs_b fmin_ncg fmin_powell": (
        'tl.scipy.optimize.minimize(f, x0, method="BFGS"), or tl.optimizers.lbfgs()'
    ),
    "minimize_scalar golden brent fminbound": f"the root of tl.grad(f), by {_NEWTON_OF_ONE}",
    "nnls lsq_linear": "projected steps, tnp.maximum(x - rate * a.T @ (a @ x - b), 0), in tl.lax.fori_loop",
    "linprog milp linear_sum_assignment qz solve_continuous_are solve_discrete_are cossin": _CALLBACK,
    "differential_evolution basinhopping dual_annealing shgo brute": (
        "tl.vmap over many starting points of a local search, such as tl.scipy.optimize.minimize"
    ),
    "check_grad approx_fprime approx_derivative": (
        "tl.grad, which takes no differences, and tl.testing.check_grads, which compares with them"
    ),
    "spsolve splu spilu factorized minres lgmres qmr cgs tfqmr gcrotmk": _SPARSE_SOLVE,
    "lsqr lsmr": "tl.scipy.sparse.linalg.cg(lambda x: a.T @ (a @ x), a.T @ b)",
    "eigs eigsh svds lobpcg lobpcg_standard eig_banded eigvals_banded": _EIGENVALUES,
    "LinearOperator aslinearoperator": "a function of a vector, or the operator that tl.linearize returns",
    "csr_matrix csc_matrix coo_matrix lil_matrix dia_matrix bsr_matrix dok_matrix": _SPARSE,
    "csr_array csc_array coo_array BCOO BCSR bcoo sparse_coo_tensor": _SPARSE,
    "CubicSpline make_interp_spline splrep splev UnivariateSpline InterpolatedUnivariateSpline BSpline": _SPLINE,
    "PchipInterpolator Akima1DInterpolator PPoly": _SPLINE,
    "interp1d": "tnp.interp(x, xs, ys), which is linear",
    "interp2d interpn griddata RectBivariateSpline NearestNDInterpolator LinearNDInterpolator": (
        "tl.scipy.interpolate.RegularGridInterpolator(points, values), of values on a grid"
    ),
    "RBFInterpolator Rbf": "kernel(new, x) @ tnp.linalg.solve(kernel(x, x), y)",
    "BarycentricInterpolator lagrange": "tnp.polyval(tnp.polyfit(x, y, len(x) - 1), new)",
    "linregress theilslopes": "tnp.polyfit(x, y, 1), or tnp.linalg.lstsq(a, y)",
    "pearsonr": "tnp.corrcoef(x, y)[0, 1]",
    "spearmanr": "tnp.corrcoef(tl.scipy.stats.rankdata(x), tl.scipy.stats.rankdata(y))[0, 1]",
    "zscore": "(x - tnp.mean(x)) / tnp.std(x)",
    "skew kurtosis moment": "tnp.mean(((x - tnp.mean(x)) / tnp.std(x)) ** 3), or ** 4",
    "entropy": "tnp.sum(tl.scipy.special.entr(p))",
    "wasserstein_distance": "tnp.mean(tnp.abs(tnp.sort(x) - tnp.sort(y))), of as many samples of each",
    "ttest_ind ttest_1samp ttest_rel": (
        "the statistic t by tnp.mean and tnp.var, and tl.scipy.special.betainc(n / 2, 0.5, n / (n + t**2))"
    ),
    "chisquare_test chi2_contingency": "the statistic by tnp.sum, and tl.scipy.stats.chi2.sf",
    "lognorm": "tl.scipy.stats.norm.logpdf(tnp.log(x)) - tnp.log(x)",
    "halfnorm": "tl.scipy.stats.norm.logpdf(x) + tnp.log(2), of x >= 0",
    "iqr": "tnp.diff(tnp.quantile(x, tnp.array([0.25, 0.75])))",
    "gmean": "tnp.exp(tnp.mean(tnp.log(x)))",
    "butter cheby1 cheby2 firwin": "coefficients by scipy.signal, as arrays of NumPy, which all functions here take",
    "lfilter sosfilt filtfilt sosfiltfilt": _RECURSION,
    "savgol_filter gaussian_filter gaussian_filter1d uniform_filter sobel convolve1d correlate1d prewitt": _FILTER,
    "find_peaks argrelextrema argrelmax": "tnp.flatnonzero((x[1:-1] > x[:-2]) & (x[1:-1] > x[2:])) + 1",
    "spectrogram periodogram ShortTimeFFT": "tl.scipy.signal.stft, or tl.scipy.signal.welch",
    "hilbert2 envelope": "tnp.fft.ifft of tnp.fft.fft(x) with positive frequencies doubled, and negative ones 0",
    "resample resample_poly decimate upfirdn": 'tl.image.resize(x, shape, "linear"), or a part of tnp.fft.rfft(x)',
    "medfilt medfilt2d median_filter rank_filter": ("tnp.median(x[tnp.arange(n)[:, None] + tnp.arange(width)], 1)"),
    "maximum_filter minimum_filter grey_dilation grey_erosion binary_dilation": _WINDOWS_OF,
    "get_window windows": "tnp.hanning(n), tnp.hamming(n), tnp.blackman(n) or tnp.kaiser(n, beta)",
    "zoom affine_transform geometric_transform": "tl.scipy.ndimage.map_coordinates(x, coordinates, order=1)",
    "label distance_transform_edt ConvexHull Delaunay Voronoi linkage fcluster dendrogram": _CALLBACK,
    "pdist squareform distance distance_matrix pairwise_distances": (
        "tnp.linalg.norm(x[:, None] - y[None], axis=-1), and tnp.triu_indices(n, 1) for the pairs"
    ),
    "KDTree cKDTree BallTree NearestNeighbors": _NEIGHBOURS,
    "kmeans kmeans2 KMeans": (
        "tl.scipy.cluster.vq.vq(x, centers), and tl.ops.segment_sum for the means of each center, in tl.lax.fori_loop"
    ),
    "logm": "tl.scipy.linalg.funm(a, tnp.log)",
    "cosm sinm": "tl.scipy.linalg.expm(1j * a), whose real part is the cosine and whose imaginary part is the sine",
    "null_space orth": "rows of tnp.linalg.svd(a).Vh whose singular values are 0, or columns of U of the others",
    "solve_banded solveh_banded": "tl.lax.linalg.tridiagonal_solve, of three diagonals, or tnp.linalg.solve",
    "solve_toeplitz matmul_toeplitz": "tnp.linalg.solve(tl.scipy.linalg.toeplitz(c, r), b)",
    "solve_circulant": "tnp.fft.ifft(tnp.fft.fft(b) / tnp.fft.fft(c))",
    "solve_lyapunov solve_continuous_lyapunov": "tl.scipy.linalg.solve_sylvester(a, a.conj().T, q)",
    "solve_discrete_lyapunov": "tnp.linalg.solve(tnp.eye(n * n) - tnp.kron(a, a.conj()), q.ravel()).reshape(n, n)",
    "ldl": "tnp.linalg.cholesky(a), of a definite matrix, or tl.scipy.linalg.lu(a)",
    "pinvh": "tnp.linalg.pinv(a, hermitian=True)",
    "subspace_angles": "tnp.arccos(tnp.linalg.svdvals(qa.T @ qb)), of orthonormal bases",
    "jv j0 j1 jn": "tl.scipy.special.bessel_jn(x, v=n), of all orders up to n",
    "yv y0 yn kv k0 k1 iv airy ellipk ellipe ellipj ellipkinc hyp0f1 lambertw": _CALLBACK,
    "gammaincinv gammainccinv betaincinv": "Newton's method on tl.scipy.special.gammainc, inside tl.lax.custom_root",
    "erfcinv": "tl.scipy.special.erfinv(1 - x)",
    "perm": "tnp.exp(tl.scipy.special.gammaln(n + 1) - tl.scipy.special.gammaln(n - k + 1))",
    "legendre hermite chebyt eval_legendre eval_hermite eval_chebyt lpmv": (
        "the recurrence of the polynomials in tl.lax.scan, or tnp.polyval of their coefficients"
    ),
    "pseudo_huber": "delta**2 * (tnp.sqrt(1 + (x / delta) ** 2) - 1)",
    "exprel": "tnp.where(x == 0, 1, tnp.expm1(x) / tnp.where(x == 0, 1, x))",
    "dst idst dstn idstn": "-tnp.fft.rfft(odd).imag, of the odd extension of x",
    "next_fast_len set_workers": "nothing: lengths of any factors are transformed by XLA",
}
_NUMPY: Final = {
    "row_stack": "tnp.vstack",
    "in1d": "tnp.isin",
    "product": "tnp.prod",
    "cumproduct": "tnp.cumprod",
    "alltrue": "tnp.all",
    "sometrue": "tnp.any",
    "round_": "tnp.round",
    "msort": "tnp.sort(x, 0)",
    "Inf Infinity PINF infty": "tnp.inf",
    "NINF": "-tnp.inf",
    "NaN NAN": "tnp.nan",
    "bool8": "tnp.bool_",
    "float128 longdouble complex256 clongdouble longfloat": "tnp.float64, or tnp.complex128: the widest there are",
    "asfarray": "tnp.asarray(x, float)",
    "asanyarray ascontiguousarray asfortranarray require asarray_chkfinite": _CONVERTED,
    "mat matrix asmatrix bmat": "tnp.array(x), or tnp.block(parts), and x @ y for products",
    "nditer ndenumerate ndindex": "tl.vmap(f)(x), or a Python loop over range(n)",
    "genfromtxt loadtxt savetxt fromregex memmap DataSource": _OF_NUMPY,
    "savez_compressed": "tl.save(path, tree)",
    "copyto putmask": "tnp.where(mask, values, x)",
    "errstate seterr geterr": "tl.debug_nans(True), where a nan is to be an error",
    "ma masked_array MaskedArray": "tnp.where(mask, x, 0), or where= of reductions such as tnp.mean",
    "recarray rec": "a dict of arrays, or a class by tl.tree_util.register_dataclass",
    "datetime64 timedelta64 busday_count busday_offset": "integers, such as days since a date",
    "sliding_window_view stride_tricks as_strided": "x[tnp.arange(n)[:, None] + tnp.arange(width)]",
    "shares_memory may_share_memory": "nothing: arrays never change, so that nobody sees whether they share memory",
    "show_config show_runtime": "tl.print_environment_info()",
    "poly1d Polynomial polynomial": "tnp.polyval(p, x), tnp.polymul(p, q), tnp.roots(p), of arrays of coefficients",
    "set_string_function": "tnp.set_printoptions",
    "assert_allclose assert_array_equal assert_array_almost_equal": "numpy.testing.assert_allclose, which takes arrays",
    "random_sample ranf sample": "tl.random.uniform(key, shape)",
    "standard_normal": "tl.random.normal(key, shape)",
    "standard_gamma": "tl.random.gamma(key, a, shape)",
    "standard_exponential": "tl.random.exponential(key, shape)",
    "standard_cauchy": "tl.random.cauchy(key, shape)",
    "standard_t": "tl.random.t(key, df, shape)",
    "integers random_integers": "tl.random.randint(key, shape, low, high)",
    "shuffle permuted": "tl.random.permutation(key, x)",
    "negative_binomial": "tl.random.poisson(key, tl.random.gamma(other_key, n, shape) * (1 - p) / p)",
    "get_state set_state bit_generator SeedSequence PCG64": "the key, which is a value: tl.random.key_data(key)",
}
_JAX: Final = {
    "shard_map smap pjit with_sharding_constraint reshard auto_axes explicit_axes get_abstract_mesh": _ONE_DEVICE,
    "Mesh AbstractMesh NamedSharding PartitionSpec PositionalSharding make_mesh use_mesh set_mesh": _ONE_DEVICE,
    "mesh_utils multihost_utils create_device_mesh distributed device_put_sharded device_put_replicated": _ONE_DEVICE,
    "make_array_from_callback make_array_from_process_local_data custom_partitioning": _ONE_DEVICE,
    "xmap soft_pmap": "tl.vmap, with axis_name for tl.lax.psum and others",
    "xla_computation": "tl.jit(f).lower(x).as_text(), or tl.make_jaxpr(f)(x)",
    "host_callback id_tap id_print outside_call": "tl.debug.callback, tl.debug.print or tl.pure_callback",
    "clear_backends": "tl.clear_caches()",
    "stax linen nnx flax haiku equinox eqx Module_": _PARAMETERS,
    "optax optix": "tl.optimizers; optax itself runs inside of `with tl.as_jax():`",
    "jax": "tl, of `import tapeless as tl`; libraries for JAX run inside of `with tl.as_jax():`",
    "filter_jit filter_grad filter_value_and_grad filter_vmap": (
        "tl.jit or tl.grad of the arrays alone, with the rest in static_argnums, or closed over"
    ),
    "pallas pallas_call pltpu": "functions of tl.lax, which XLA fuses: kernels of one's own are not there",
    "jax2tf tf2jax call_tf": "tl.pure_callback of the TensorFlow function, and numpy.asarray(x) for its arrays",
    "hvp hessian_vector_product": "tl.jvp(tl.grad(f), (x,), (v,))[1]",
    "vhp": "tl.vjp(tl.grad(f), x)[1](v)[0]",
    "elementwise_grad egrad": "tl.vmap(tl.grad(f))",
    "make_vjp": "tl.vjp(f, x)",
    "make_jvp": "tl.jvp(f, (x,), (v,))",
    "make_hvp": "tl.jvp(tl.grad(f), (x,), (v,))[1]",
    "grad_and_aux": "tl.value_and_grad(f, has_aux=True)",
    "value_and_jacfwd value_and_jacrev": "tl.jacfwd(lambda x: (f(x), f(x)), has_aux=True)",
    "laplacian divergence": "tnp.trace(tl.hessian(f)(x)), or tnp.trace(tl.jacfwd(f)(x))",
    "curl": "elements of tl.jacfwd(f)(x)",
    "GradientTape": "tl.grad(f), or tl.vjp(f, x): functions are differentiated, nothing is recorded",
    "stop_gradients": "tl.lax.stop_gradient(x)",
    "placeholder Variable variable convert_to_tensor": "arguments of functions, and tnp.asarray(data)",
    "reduce_mean": "tnp.mean(x, axis)",
    "while_stmt for_loop": "tl.lax.while_loop, or tl.lax.scan",
}
_PYTORCH: Final = {
    "DataParallel DistributedDataParallel FullyShardedDataParallel": _ONE_DEVICE,
    "functional_call functorch make_functional": "f(params, x): parameters are arguments, and tl.vmap, tl.grad take f",
    "script trace_module ScriptModule TorchScript export": "tl.jit(f), and tl.jit(f).lower(x) for the program",
    "is_grad_enabled requires_grad_": "nothing: tl.grad(f) differentiates in the arguments of f",
    "permute": "tnp.permute_dims(x, axes)",
    "movedim swapdims": "tnp.moveaxis(x, source, destination)",
    "narrow": "tl.lax.dynamic_slice_in_dim(x, start, length, axis)",
    "unfold Unfold im2col": "tl.lax.conv_general_dilated_patches(x, window, strides, padding)",
    "Fold col2im": "the transpose of tl.lax.conv_general_dilated_patches, by tl.linear_transpose",
    "PixelShuffle pixel_shuffle": "x.reshape(b, c, r, r, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(b, c, h * r, w * r)",
    "bucketize": "tnp.searchsorted(boundaries, x)",
    "logcumsumexp": "tl.lax.cumlogsumexp(x, axis)",
    "index_copy index_fill index_put scatter_reduce masked_scatter": "x.at[indices].set(values), .add, .max or .mul",
    "lerp": "x + t * (y - x)",
    "addcmul": "x + value * y * z",
    "addcdiv": "x + value * y / z",
    "addmv addr baddbmm addbmm": "c + x @ y",
    "mv": "x @ y",
    "ger": "tnp.outer(x, y)",
    "matrix_exp": "tl.scipy.linalg.expm(a)",
    "symeig": "tnp.linalg.eigh(a)",
    "cholesky_solve": "tl.scipy.linalg.cho_solve((c, True), b)",
    "cholesky_inverse": "tl.scipy.linalg.cho_solve((c, True), tnp.eye(n))",
    "logdet": "tnp.linalg.slogdet(a)[1]",
    "is_floating_point": "tnp.issubdtype(x.dtype, tnp.floating)",
    "is_complex": "tnp.iscomplexobj(x)",
    "get_default_dtype set_default_dtype": "tl.config.default_bits, 32 or 64",
    "manual_seed_all initial_seed seed_all fork_rng": "tl.random.key(seed)",
    "std_mean var_mean": "(tnp.std(x), tnp.mean(x))",
    "aminmax": "(tnp.min(x), tnp.max(x))",
    "unique_consecutive": "x[tnp.append(True, x[1:] != x[:-1])]",
    "histc": "tnp.histogram(x, bins, range=(low, high))[0]",
    "cartesian_prod": "tnp.stack(tnp.meshgrid(*xs, indexing='ij'), -1).reshape(-1, len(xs))",
    "combinations": "x[tnp.stack(tnp.triu_indices(len(x), 1), -1)]",
    "diag_embed": "tl.vmap(tnp.diag)(x)",
    "take_along_dim": "tnp.take_along_axis(x, indices, axis)",
    "hardtanh Hardtanh": "tl.nn.hard_tanh(x)",
    "hardsigmoid Hardsigmoid": "tl.nn.hard_sigmoid(x)",
    "hardswish Hardswish": "tl.nn.hard_swish(x)",
    "logsigmoid LogSigmoid": "tl.nn.log_sigmoid(x)",
    "softmin Softmin": "tl.nn.softmax(-x, axis)",
    "Softsign softsign": "tl.nn.soft_sign(x)",
    "PReLU prelu": "tnp.where(x > 0, x, slope * x)",
    "threshold Threshold": "tnp.where(x > limit, x, value)",
    "Hardshrink hardshrink": "tnp.where(tnp.abs(x) > limit, x, 0)",
    "gumbel_softmax": "tl.nn.softmax((scores + tl.random.gumbel(key, scores.shape)) / temperature)",
    "Identity": "lambda x: x",
    "PairwiseDistance pairwise_distance": "tnp.linalg.norm(x - y, axis=-1)",
    "CosineSimilarity": "tnp.sum(x * y, -1) / (tnp.linalg.norm(x, axis=-1) * tnp.linalg.norm(y, axis=-1))",
    "TripletMarginLoss triplet_margin_loss": "tnp.maximum(near - far + margin, 0).mean()",
    "HingeEmbeddingLoss MultiMarginLoss": "tnp.maximum(margin - scores * signs, 0).mean()",
    "GaussianNLLLoss gaussian_nll_loss": "-tl.scipy.stats.norm.logpdf(x, mean, scale).mean()",
    "PoissonNLLLoss poisson_nll_loss": "-tl.scipy.stats.poisson.logpmf(k, rate).mean()",
    "CTCLoss ctc_loss": "tl.lax.scan over time of log probabilities, which tnp.logaddexp adds",
    "ZeroPad2d ReflectionPad2d ReplicationPad2d ConstantPad2d": 'tnp.pad(x, widths, mode="reflect"), or another mode',
    "spectral_norm": "w / tnp.linalg.norm(w, 2)",
    "weight_norm": "g * v / tnp.linalg.norm(v, axis=0)",
    "pack_padded_sequence pad_packed_sequence pad_sequence": "a mask, tnp.arange(n) < lengths[:, None]",
    "xavier_uniform_ kaiming_normal_ kaiming_uniform_ xavier_normal_ trunc_normal_": (
        "tl.nn.initializers.glorot_uniform()(key, shape), or another of tl.nn.initializers"
    ),
    "clip_grads_with_norm_ get_total_norm": "tl.optimizers.global_norm(gradients)",
}


SUBSTITUTES: Final = {
    name: text for table in (_SCIPY, _NUMPY, _JAX, _PYTORCH) for names, text in table.items() for name in names.split()
}
