"""Examples of names outside of numpy, lax, random and nn: distributions, optimizers, policies, parts of `jax.extend`.

Lines are as in example_calls.py.
"""

_STATS = "tl.scipy.stats"


def _of_distribution(name: str, at: str, params: str, others: str) -> str:
    """Write the examples of a distribution: its functions at places, and inverses of the probability 0.25."""
    inverses = " ".join(each for each in others.split() if each in ("ppf", "isf"))
    plain = " ".join(each for each in others.split() if each not in ("ppf", "isf", "entropy"))
    lines = [f"{_STATS}.{name}.NAME({at}, {params})".replace(", )", ")") + f" | {plain}"]
    if inverses:
        lines.append(f"{_STATS}.{name}.NAME(0.25, {params})".replace(", )", ")") + f" | {inverses}")
    if "entropy" in others:
        lines.append(f"{_STATS}.{name}.NAME({params}) | entropy")
    return "\n".join(lines)


_HALF, _COUNTS = "tnp.array([0.25, 0.5])", "tnp.array([0, 2])"
_CONTINUOUS = "cdf logcdf logpdf logsf pdf sf"
DISTRIBUTIONS = {
    "bernoulli": (_COUNTS, "0.25", "cdf logpmf pmf ppf"),
    "beta": (_HALF, "2.0, 3.0", _CONTINUOUS),
    "betabinom": (_COUNTS, "4, 2.0, 3.0", "logpmf pmf"),
    "binom": (_COUNTS, "4, 0.25", "logpmf pmf"),
    "cauchy": (_HALF, "", f"{_CONTINUOUS} ppf isf"),
    "chi2": (_HALF, "3.0", _CONTINUOUS),
    "dirichlet": (_HALF, "tnp.array([1.0, 2.0, 3.0])", "logpdf pdf"),
    "expon": (_HALF, "", f"{_CONTINUOUS} ppf"),
    "gamma": (_HALF, "2.0", _CONTINUOUS),
    "gennorm": (_HALF, "1.5", "cdf logpdf pdf"),
    "geom": (_COUNTS, "0.25", "logpmf pmf"),
    "gumbel_l": (_HALF, "", f"{_CONTINUOUS} ppf"),
    "gumbel_r": (_HALF, "", f"{_CONTINUOUS} ppf"),
    "laplace": (_HALF, "", "cdf logpdf pdf"),
    "logistic": (_HALF, "", "cdf logpdf pdf sf ppf isf"),
    "multinomial": (_COUNTS, "2, tnp.array([0.25, 0.75])", "logpmf pmf"),
    "multivariate_normal": (_HALF, "tnp.zeros(2), tnp.eye(2)", "logpdf pdf"),
    "nbinom": (_COUNTS, "3, 0.25", "logpmf pmf"),
    "norm": (_HALF, "", f"{_CONTINUOUS} ppf isf"),
    "pareto": ("tnp.array([1.5, 3.0])", "2.0", f"{_CONTINUOUS} ppf"),
    "poisson": (_COUNTS, "1.5", "cdf logpmf pmf entropy"),
    "t": (_HALF, "4.0", "logpdf pdf"),
    "truncnorm": (_HALF, "-1.0, 1.0", _CONTINUOUS),
    "uniform": (_HALF, "", "cdf logpdf pdf ppf"),
    "vonmises": (_HALF, "2.0", "logpdf pdf"),
    "wrapcauchy": (_HALF, "0.5", "logpdf pdf"),
}
STATS = """
tl.scipy.stats.NAME(tnp.array([1.0, 2.0, 2.0])) | mode rankdata sem
"""
SCIPY = {
    "cluster.vq": "tl.scipy.cluster.vq.vq(tnp.array([[0.0], [9.0]]), tnp.array([[1.0], [8.0]]))",
    "fft": "tl.scipy.fft.NAME(tnp.array([1.0, 2.0, 4.0])) | dct dctn idct idctn",
    "integrate": "tl.scipy.integrate.trapezoid(tnp.array([1.0, 2.0, 4.0]))",
    "ndimage": "tl.scipy.ndimage.map_coordinates(tnp.arange(4.0), [tnp.array([0.5, 2.25])], order=1)",
    "optimize": 'tl.scipy.optimize.minimize(lambda x: tnp.sum((x - 1) ** 2), tnp.zeros(2), method="BFGS").x',
    "sparse.linalg": (
        "tl.scipy.sparse.linalg.NAME(lambda v: tnp.array([2.0, 4.0]) * v, tnp.ones(2))[0] | bicgstab cg gmres"
    ),
}
# The policy at work: the types of what is saved.
_SAVED = "[r.aval for r in tl.saved_residuals(tl.checkpoint(lambda x: tnp.sin(x @ x), policy={}), tnp.eye(2))]"
POLICIES = "\n".join(
    _SAVED.format(f"tl.checkpoint_policies.{policy}") + f" | {names}"
    for policy, names in {
        "NAME": """checkpoint_dots checkpoint_dots_with_no_batch_dims dots_saveable dots_with_no_batch_dims_saveable
            everything_saveable nothing_saveable save_all save_dots save_none""",
        'NAME("y")': "save_any_names_but_these save_anything_except_these_names save_names save_only_these_names",
        'NAME("1 kB")': "budget",
        'NAME(lambda p, *x, **params: p.name == "sin")': "save_if",
        'NAME("device", "pinned_host")': "offload_dot_with_no_batch_dims",
        'NAME(tl.checkpoint_policies.save_dots, tl.checkpoint_policies.save_names("y"))': "save_from_both_policies",
        'NAME(names_which_can_be_saved=["y"], names_which_can_be_offloaded=["z"], offload_src="device", '
        'offload_dst="pinned_host")': "save_and_offload_only_these_names",
    }.items()
)
POLICIES = POLICIES.replace("\n            ", " ")
OPTIMIZERS = """
tl.optimizers.NAME(0.1).update(tnp.array([1.0, -4.0]), tl.optimizers.NAME(0.1).init(tnp.ones(2)))[0] | adagrad adam
tl.optimizers.NAME(0.1).update(tnp.array([1.0, -4.0]), tl.optimizers.NAME(0.1).init(tnp.ones(2)))[0] | rmsprop clip
tl.optimizers.NAME(0.1).update(tnp.array([1.0, -4.0]), tl.optimizers.NAME(0.1).init(tnp.ones(2)))[0] | scale trace
tl.optimizers.NAME(0.1).update(tnp.array([1.0, -4.0]), tl.optimizers.NAME(0.1).init(tnp.ones(2)))[0] | scale_by_rss
tl.optimizers.NAME(0.1).update(tnp.array([1.0, -4.0]), (), tnp.ones(2))[0] | adaptive_grad_clip
tl.optimizers.NAME(0.1).update(tnp.array([1.0, -4.0]), ())[0] | clip_by_block_rms clip_by_global_norm
tl.optimizers.NAME(0.1).update(tnp.array([1.0, -4.0]), (), tnp.ones(2))[0] | add_decayed_weights
tl.optimizers.NAME(0.1).update(tnp.array([1.0, -4.0]), ())[0] | scale_by_learning_rate
tl.optimizers.NAME(0.1).init(tnp.ones(2)) | adamw lion
tl.optimizers.NAME().init(tnp.ones(2)) | identity scale_by_adam scale_by_lion scale_by_rms scale_by_stddev
tl.optimizers.NAME().init(tnp.ones(2)) | set_to_zero scale_by_lbfgs
tl.optimizers.NAME(4).init(tnp.ones(2)) | scale_by_backtracking_linesearch scale_by_zoom_linesearch
tl.optimizers.apply_updates(tnp.ones(2), tnp.array([0.5, -0.5]))
tl.optimizers.chain(tl.optimizers.clip(1.0), tl.optimizers.scale(-0.1)).update(tnp.array([9.0]), ((), ()))[0]
tl.optimizers.global_norm({"w": tnp.array([3.0]), "b": tnp.array([4.0])})
tl.optimizers.masked(tl.optimizers.adam(0.1), {"w": True, "b": False}).init({"w": tnp.ones(2), "b": tnp.ones(1)})
tl.optimizers.safe_increment(tnp.array(3))
tl.optimizers.scale_by_schedule(lambda step: 0.5).update(tnp.ones(2), tl.optimizers.scale_by_schedule(len).init(1.0))[0]
tl.optimizers.stateless(lambda updates, params: updates * 2).update(tnp.ones(2), ())[0]
tl.optimizers.with_extra_args_support(tl.optimizers.scale(2.0)).update(tnp.ones(2), (), value=3.0)[0]
tl.optimizers.constant_schedule(0.1)(5)
tl.optimizers.cosine_decay_schedule(0.1, 10)(5)
tl.optimizers.exponential_decay(0.1, 10, 0.5)(5)
tl.optimizers.NAME(10, 0.1)(5) | cosine_onecycle_schedule linear_onecycle_schedule
tl.optimizers.join_schedules([tl.optimizers.constant_schedule(0.1), tl.optimizers.constant_schedule(0.2)], [3])(5)
tl.optimizers.linear_schedule(0.1, 0.0, 10)(5)
tl.optimizers.piecewise_constant_schedule(0.1, {3: 0.5})(5)
tl.optimizers.piecewise_interpolate_schedule("linear", 0.1, {10: 0.5})(5)
tl.optimizers.polynomial_schedule(0.1, 0.0, 2, 10)(5)
tl.optimizers.sgdr_schedule([{"init_value": 0.0, "peak_value": 0.1, "warmup_steps": 2, "decay_steps": 8}])(5)
tl.optimizers.warmup_constant_schedule(0.0, 0.1, 10)(5)
tl.optimizers.warmup_cosine_decay_schedule(0.0, 0.1, 10, 20)(5)
tl.optimizers.warmup_exponential_decay_schedule(0.0, 0.1, 10, 20, 0.5)(5)
"""
INDEX = """
tl.index.NAME(3, lambda i: i > 1) | all any exists forall
tl.index.NAME(3, lambda i: tnp.array([2.0, 5.0, 3.0])[i]) | argmax argmin max min prod sum
tl.index.build(3, lambda i: tl.index.NAME(i > 1, i, -i)) | cond where
tl.index.push(lambda x: x, tnp.ones(3), along=lambda i: i == tl.index.NAME("k")) | free
tl.index.pullback(lambda x: tl.index.sum(3, lambda i: x[i] ** 2))(tnp.arange(3.0), 1.0)
tl.index.build((2, 2), lambda i, j: tl.index.NAME(([0, 1], [1, 0]), (2, 2))[i, j] * 1.0) | relation
tl.index.scan(lambda total, k: (total + k, total), 0, 4)
"""
CORE = """
tl.extend.core.check_jaxpr(tl.make_jaxpr(tnp.sin)(1.0).jaxpr)
type(tl.extend.core.find_top_trace([1.0])).__name__ | find_top_trace
tl.extend.core.get_opaque_trace_state() == tl.extend.core.get_opaque_trace_state() | get_opaque_trace_state
tl.extend.core.jaxpr_as_fun(tl.make_jaxpr(tnp.sin)(1.0))(0.5) | jaxpr_as_fun
list(tl.extend.core.jaxprs_in_params(tl.make_jaxpr(tl.jit(tnp.sin))(1.0).eqns[0].params)) | jaxprs_in_params
list(tl.extend.core.subjaxprs(tl.make_jaxpr(tl.jit(tnp.sin))(1.0).jaxpr)) | subjaxprs
tl.extend.core.mapped_aval(3, 0, tl.core.ShapedArray((3, 2), np.dtype("float32")))
tl.extend.core.unmapped_aval(3, 0, tl.core.ShapedArray((2,), np.dtype("float32")))
tl.extend.core.primal_dtype_to_tangent_dtype(np.dtype("int32"))
tl.extend.core.valid_jaxtype("text")
"""
EXTENSIONS = {
    "ad": """
tl.extend.ad.NAME(tnp.array([1.0, 2.0]), tnp.array([3.0, 4.0])) | add_jaxvals add_tangents
tl.extend.ad.instantiate_zeros(tl.extend.ad.Zero(tl.core.ShapedArray((2,), np.dtype("float32"))))
tl.extend.ad.is_undefined_primal(tl.extend.ad.UndefinedPrimal(tl.core.ShapedArray((2,), np.dtype("float32"))))
tl.extend.ad.NAME(tl.extend.core.Primitive("sine"), lambda t, x: t * tnp.cos(x)) | defjvp
tl.extend.ad.NAME(tl.extend.core.Primitive("exp"), lambda t, y, x: t * y) | defjvp2
tl.extend.ad.NAME(tl.extend.core.Primitive("sign")) | defjvp_zero
tl.extend.ad.NAME(tl.extend.core.Primitive("twice"), lambda ct, **params: [2 * ct]) | deflinear
tl.extend.ad.NAME(tl.extend.core.Primitive("twice"), lambda ct, x, **params: [2 * ct]) | deflinear2
tl.extend.ad.NAME(tl.extend.core.Primitive("product"), lambda ct, y: ct * y, lambda ct, x: ct * x) | defbilinear
tl.extend.ad.zeros_like_aval(tl.core.ShapedArray((2,), np.dtype("float32")))
""",
    "batching": """
tl.extend.batching.bdim_at_front(tnp.ones((2, 3)), 1, 3).shape
tl.extend.batching.broadcast(tnp.ones(2), 3, 0).shape
tl.extend.batching.NAME(tl.extend.core.Primitive("twice")) | defbroadcasting defvectorized
""",
    "mlir": """
callable(tl.extend.mlir.NAME(tl.extend.core.Primitive("twice"), tl.extend.mlir.lower_fun(TWICE))) | BOTH
""".replace("TWICE", "lambda x: 2 * x, multiple_results=False")
    .replace("NAME", "register_lowering")
    .replace("BOTH", "lower_fun register_lowering"),
    "source_info_util": """
tl.extend.source_info_util.register_exclusion("/path/to/library.py")
""",
    "partial_eval": """
tl.extend.partial_eval.dce_jaxpr(tl.make_jaxpr(lambda x: (tnp.sin(x), tnp.cos(x)))(1.0).jaxpr, [True, False])
""",
    "linear_util": """
tl.extend.linear_util.wrap_init(lambda x: 2 * x).call_wrapped(3)
""",
}
OTHERS = {
    "image": """
tl.image.resize(tnp.array([[0.0, 1.0]]), (1, 4), "linear")
tl.image.scale_and_translate(tnp.array([[0.0, 1.0]]), (1, 2), (1,), tnp.ones(1), tnp.array([0.5]), "linear")
""",
    "ops": """
tl.ops.NAME(tnp.array([1, 2, 3]), tnp.array([0, 0, 1])) | segment_max segment_min segment_prod segment_sum
""",
    "dtypes": """
tl.dtypes.finfo("float32").eps
tl.dtypes.iinfo("int8").max
tl.dtypes.issubdtype("int8", np.integer)
tl.dtypes.itemsize_bits("int4")
tl.dtypes.result_type(np.float32(1), 2)
tl.dtypes.scalar_type_of(np.float32(1))
""",
    "dlpack": """
tl.dlpack.from_dlpack(np.ones(2))
tl.dlpack.is_supported_dtype("float32")
""",
    "flatten_util": """
tl.flatten_util.ravel_pytree({"w": tnp.ones(2), "b": tnp.zeros(1)})[0]
""",
    "core": """
tl.core.eval_jaxpr(tl.make_jaxpr(tnp.sin)(1.0).jaxpr, [], 0.5)
""",
    "custom_derivatives": """
tl.custom_derivatives.NAME({"w": tl.custom_derivatives.CustomVJPPrimal(1.0, True)}) | custom_vjp_primal_tree_values
tl.custom_derivatives.zero_from_primal({"w": tnp.ones(2)})
""",
    "ad_checkpoint": """
tl.ad_checkpoint.print_saved_residuals(lambda x: tnp.sin(x) ** 2, 1.0)
""",
    "ref": """
tl.ref.NAME(tl.new_ref(tnp.array([1.0, 2.0])), 0, 5.0) | addupdate set swap
tl.ref.get(tl.new_ref(tnp.array([1.0, 2.0])), 0)
tl.ref.freeze(tl.new_ref(tnp.array([1.0, 2.0])))
tl.jit(lambda: tl.ref.NAME(tl.core.ShapedArray((2,), np.dtype("float32"))).shape)() | empty_ref
tl.jit(lambda: tl.ref.NAME(tl.new_ref(tnp.ones(2))))() | free_ref
""",
    "debug": """
tl.debug.log("x is {}", tnp.array(1.5))
""",
    "experimental": """
tl.experimental.io_callback(print, None, 0.5)
""",
    "experimental.jet": """
tl.experimental.jet.fact(3)
""",
    "experimental.checkify": """
tl.experimental.checkify.checkify(lambda x: tl.experimental.checkify.NAME(x > 0, "x is {}", x))(1.0)[0] | check
tl.experimental.checkify.checkify(lambda x: tl.experimental.checkify.NAME(x > 0, "x is {}", x))(1.0)[0] | debug_check
tl.experimental.checkify.checkify(tl.experimental.checkify.NAME)(tl.experimental.checkify.Error())[0] | check_error
""",
    "profiler": """
tl.profiler.annotate_function(lambda x: 2 * x, name="twice")(3)
tl.profiler.device_memory_profile()[:2]
""",
}
PARAMETERS = """
lax.conv_general_permutations(("NHWC", "HWIO", "NHWC"))
lax.conv_shape_tuple((1, 3, 8, 8), (4, 3, 2, 2), (2, 2), "VALID")
lax.NAME((1, 8, 8, 3), (2, 2, 3, 4), (2, 2), "VALID", ("NHWC", "HWIO", "NHWC")) | conv_general_shape_tuple
lax.NAME((1, 8, 8, 3), (2, 2, 4, 3), (2, 2), "VALID", ("NHWC", "HWOI", "NHWC")) | conv_transpose_shape_tuple
lax.reduce_window_shape_tuple((8,), (2,), (2,), ((0, 0),))
lax.gather(tnp.array([1, 2, 3]), tnp.array([[2], [0]]), lax.GatherDimensionNumbers((), (0,), (0,)), (1,))
lax.NAME(tnp.array([1, 2, 3]), tnp.array([[2]]), tnp.array([9]), lax.ScatterDimensionNumbers((), (0,), (0,))) | SCATTERS
lax.scatter_apply(tnp.arange(3), tnp.array([[2]]), lambda x: x * x, ONE, update_shape=(1,))
lax.conv_general_dilated_local(tnp.ones((1, 1, 3)), tnp.ones((1, 2, 2)), (1,), "VALID", (2,))
lax.select_and_gather_add(tnp.array([7.0, 8.0]), tnp.array([1.0, 2.0]), "ge", (2,))
lax.select_and_scatter_add(tnp.array([5.0]), tnp.array([1.0, 2.0]), "ge", (2,))
lax.NAME(tnp.ones((3, 2)), tnp.ones((2, 2, 2)), tnp.array([1, 2]), RAGGED) | ragged_dot_general
lax.rng_bit_generator(tnp.array([1, 2, 3, 4], "uint32"), (2,))[1].shape
lax.scaled_dot(tnp.ones((2, 4)), tnp.ones((4, 2)))
lax.stage(1.0)
lax.composite(lambda x: x * tnp.tanh(x), "my.activation")(0.5)
tl.vmap(lambda x: x / lax.NAME("i"), axis_name="i")(tnp.ones(2)) | axis_size
tl.vmap(lambda x: lax.NAME(x, "i"), axis_name="i")(tnp.array([1.0, 3.0])) | pmax pmin
tl.vmap(lambda x: lax.NAME(x, "i", [1, 0]), axis_name="i")(tnp.array([1.0, 3.0])) | pshuffle
tl.vmap(lambda x: lax.NAME(x, "i", 0), axis_name="i")(tnp.arange(4).reshape(2, 2)) | pswapaxes
""".replace("SCATTERS", "scatter scatter_add scatter_max scatter_min scatter_mul scatter_sub")
PARAMETERS = PARAMETERS.replace("ONE", "lax.ScatterDimensionNumbers((), (0,), (0,))")
PARAMETERS = PARAMETERS.replace("RAGGED", "lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), [0], [0])")
SETTINGS = """
tl.NAME()(tnp.sqrt)(4.0) | allow_f16_reductions check_tracer_leaks checking_leaks debug_infs debug_nans disable_jit
tl.NAME()(tnp.sqrt)(4.0) | enable_checks enable_custom_prng explain_cache_misses log_compiles softmax_custom_jvp
tl.NAME()(tnp.sqrt)(4.0) | threefry_partitionable
tl.NAME()(abs)(-4.0) | no_execution no_tracing
tl.NAME("allow")(tnp.sqrt)(4.0) | array_garbage_collection_guard legacy_prng_key numpy_rank_promotion
tl.NAME("allow")(tnp.sqrt)(4.0) | transfer_guard_device_to_device transfer_guard_device_to_host
tl.NAME("allow")(tnp.sqrt)(4.0) | transfer_guard_host_to_device
tl.default_matmul_precision("highest")(tnp.dot)(tnp.ones(2), tnp.ones(2))
tl.default_prng_impl("rbg")(tl.random.key)(0)
tl.numpy_dtype_promotion("standard")(tnp.add)(tnp.ones(2, int), 0.5)
tl.copy_to_host_async(tnp.ones(2))
tl.io_callback(print, None, 0.5)
tl.print_saved_residuals(lambda x: tnp.sin(x) ** 2, 1.0)
tl.print_environment_info(return_string=True).splitlines()[0].split(":")[0]
tl.jit(lambda: tl.NAME(tl.core.ShapedArray((2,), np.dtype("float32"))).shape)() | empty_ref
tl.jit(lambda: tl.NAME(tl.new_ref(tnp.ones(2))))() | free_ref
isinstance(tl.NAME(), list) | live_arrays
tl.set_default_device(None)
"""
FUNCTIONS = """
tnp.apply_along_axis(lambda x: x[0], 1, tnp.arange(6).reshape(2, 3))
tnp.apply_over_axes(tnp.sum, tnp.arange(6).reshape(2, 3), [0])
tnp.from_dlpack(np.ones(2))
tnp.frompyfunc(lambda x, y: x + y, 2, 1)(1, 2)
tnp.get_printoptions()["precision"]
"""
TEXTS = {
    "tapeless": SETTINGS,
    "tapeless.numpy": FUNCTIONS,
    "tapeless.lax": PARAMETERS,
    "tapeless.lax.linalg": "lax.linalg.ormqr(tnp.eye(2), tnp.zeros(2), tnp.ones((2, 1)))",
    "tapeless.nn": """
tl.nn.get_scaled_dot_general_config("mxfp8").block_size
tl.nn.scaled_dot_general(tnp.ones((1, 2, 32)), tnp.ones((1, 2, 32)), (((2,), (2,)), ((0,), (0,))))
""",
    "tapeless.scipy.special": "tl.scipy.special.sph_harm_y(tnp.array([1]), tnp.array([0]), 0.5, 0.25, n_max=1)",
    "tapeless.optimizers": OPTIMIZERS,
    "tapeless.checkpoint_policies": POLICIES,
    "tapeless.index": INDEX,
    "tapeless.extend.core": CORE,
    "tapeless.scipy.stats": STATS,
    **{f"tapeless.scipy.stats.{name}": _of_distribution(name, *row) for name, row in DISTRIBUTIONS.items()},
    **{f"tapeless.scipy.{name}": text for name, text in SCIPY.items()},
    **{f"tapeless.extend.{name}": text for name, text in EXTENSIONS.items()},
    **{f"tapeless.{name}": text for name, text in OTHERS.items()},
}
