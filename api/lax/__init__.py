"""Operations, branches, loops under the names of `jax.lax`: operands of one dtype and shape, nothing converted."""

import typing as _typing

from tapeless.lax.own_primitive_names import FUNCTIONS_IN_LAX as _FUNCTIONS
from tapeless.lax.own_primitive_names import IN_LAX as _PRIMITIVES
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace
from tapeless.tracer.primitives.bits import (
    bitcast_convert_type,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    clz,
    population_count,
    reduce_precision,
    shift_left,
    shift_right_arithmetic,
    shift_right_logical,
)
from tapeless.tracer.primitives.checkpoint import dce_sink
from tapeless.tracer.primitives.contraction import (
    Precision,
    batch_matmul,
    conv,
    conv_general_dilated,
    conv_transpose,
    conv_with_general_padding,
    dot,
    dot_general,
)
from tapeless.tracer.primitives.dimension_numbers import ConvDimensionNumbers, conv_dimension_numbers
from tapeless.tracer.primitives.elementwise import (
    RoundingMethod,
    abs,
    acos,
    acosh,
    add,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cbrt,
    ceil,
    clamp,
    complex,
    conj,
    convert_element_type,
    cos,
    cosh,
    div,
    eq,
    exp,
    exp2,
    expm1,
    floor,
    ge,
    gt,
    imag,
    integer_pow,
    is_finite,
    le,
    log,
    log1p,
    logistic,
    lt,
    max,
    min,
    mul,
    ne,
    neg,
    nextafter,
    pow,
    real,
    reciprocal,
    rem,
    round,
    rsqrt,
    select,
    select_n,
    sign,
    sin,
    sinh,
    sqrt,
    square,
    stop_gradient,
    sub,
    tan,
    tanh,
)
from tapeless.tracer.primitives.fourier import FftType, fft
from tapeless.tracer.primitives.indexing import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    dynamic_index_in_dim,
    dynamic_slice,
    dynamic_slice_in_dim,
    dynamic_update_index_in_dim,
    dynamic_update_slice,
    dynamic_update_slice_in_dim,
    gather,
    index_take,
    scatter,
    scatter_add,
    scatter_max,
    scatter_min,
    scatter_mul,
    scatter_sub,
)
from tapeless.tracer.primitives.random import RandomAlgorithm, rng_bit_generator
from tapeless.tracer.primitives.reduction import (
    argmax,
    argmin,
    cumlogsumexp,
    cummax,
    cummin,
    cumprod,
    cumsum,
    reduce_and,
    reduce_max,
    reduce_min,
    reduce_or,
    reduce_prod,
    reduce_sum,
    reduce_xor,
)
from tapeless.tracer.primitives.shape import (
    broadcast,
    broadcast_in_dim,
    broadcasted_iota,
    collapse,
    concatenate,
    expand_dims,
    full,
    full_like,
    index_in_dim,
    iota,
    pad,
    reshape,
    rev,
    slice,
    split,
    squeeze,
    tile,
    transpose,
    zeros_like,
)
from tapeless.tracer.primitives.sorting import (
    sort,
    sort_key_val,
    top_k,
)
from tapeless.tracer.primitives.special import (
    bessel_i0e,
    bessel_i1e,
    betainc,
    digamma,
    erf,
    erf_inv,
    erfc,
    igamma,
    igamma_grad_a,
    igammac,
    lgamma,
    polygamma,
    random_gamma_grad,
    zeta,
)
from tapeless.tracer.primitives.windows import (
    padtype_to_pads,
    select_and_gather_add,
    select_and_scatter_add,
)

if _typing.TYPE_CHECKING:
    from tapeless.batch.collectives import (
        all_gather,
        all_to_all,
        axis_index,
        axis_size,
        pmax,
        pmean,
        pmin,
        ppermute,
        pshuffle,
        psum,
        psum_scatter,
        pswapaxes,
    )
    from tapeless.batch.user_reductions import reduce, reduce_window
    from tapeless.control_flow.branches_and_loops import cond, fori_loop, switch, while_loop
    from tapeless.control_flow.scan import associative_scan, map, scan
    from tapeless.custom.linear_solves import custom_linear_solve, custom_root
    from tapeless.lax import linalg
    from tapeless.lax.aliases import (
        ConvGeneralDilatedDimensionNumbers,
        DotDimensionNumbers,
        PrecisionLike,
    )
    from tapeless.lax.alternatives import (
        composite,
        platform_dependent,
    )
    from tapeless.lax.barriers import optimization_barrier
    from tapeless.lax.convolutions import (
        conv_general_dilated_local,
        conv_general_dilated_patches,
    )
    from tapeless.lax.elements import (
        approx_max_k,
        approx_min_k,
        mulhi,
        scatter_apply,
    )
    from tapeless.lax.ragged import (
        RaggedDotDimensionNumbers,
        ragged_dot,
        ragged_dot_general,
    )
    from tapeless.lax.scaled_contraction import scaled_dot
    from tapeless.lax.shapes import (
        broadcast_like,
        broadcast_shapes,
        broadcast_to_rank,
        conv_general_permutations,
        conv_general_shape_tuple,
        conv_shape_tuple,
        conv_transpose_shape_tuple,
        dtype,
        empty,
        reduce_window_shape_tuple,
        shape_as_value,
        slice_in_dim,
        stack,
        stage,
        unstack,
    )
    from tapeless.tracer.primitives.dot_algorithms import DotAlgorithm, DotAlgorithmPreset

# ---- written by docs/make_names.py from the imports above
__all__ = [
    "ConvDimensionNumbers", "ConvGeneralDilatedDimensionNumbers", "DotAlgorithm", "DotAlgorithmPreset",
    "DotDimensionNumbers", "FftType", "GatherDimensionNumbers", "GatherScatterMode", "Precision", "PrecisionLike",
    "RaggedDotDimensionNumbers", "RandomAlgorithm", "RoundingMethod", "ScatterDimensionNumbers", "abs", "acos", "acosh",
    "add", "all_gather", "all_to_all", "approx_max_k", "approx_min_k", "argmax", "argmin", "asin", "asinh",
    "associative_scan", "atan", "atan2", "atanh", "axis_index", "axis_size", "batch_matmul", "bessel_i0e", "bessel_i1e",
    "betainc", "bitcast_convert_type", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "broadcast",
    "broadcast_in_dim", "broadcast_like", "broadcast_shapes", "broadcast_to_rank", "broadcasted_iota", "cbrt", "ceil",
    "clamp", "clz", "collapse", "complex", "composite", "concatenate", "cond", "conj", "conv", "conv_dimension_numbers",
    "conv_general_dilated", "conv_general_dilated_local", "conv_general_dilated_patches", "conv_general_permutations",
    "conv_general_shape_tuple", "conv_shape_tuple", "conv_transpose", "conv_transpose_shape_tuple",
    "conv_with_general_padding", "convert_element_type", "cos", "cosh", "cumlogsumexp", "cummax", "cummin", "cumprod",
    "cumsum", "custom_linear_solve", "custom_root", "dce_sink", "digamma", "div", "dot", "dot_general", "dtype",
    "dynamic_index_in_dim", "dynamic_slice", "dynamic_slice_in_dim", "dynamic_update_index_in_dim",
    "dynamic_update_slice", "dynamic_update_slice_in_dim", "empty", "eq", "erf", "erf_inv", "erfc", "exp", "exp2",
    "expand_dims", "expm1", "fft", "floor", "fori_loop", "full", "full_like", "gather", "ge", "gt", "igamma",
    "igamma_grad_a", "igammac", "imag", "index_in_dim", "index_take", "integer_pow", "iota", "is_finite", "le",
    "lgamma", "linalg", "log", "log1p", "logistic", "lt", "map", "max", "min", "mul", "mulhi", "ne", "neg", "nextafter",
    "optimization_barrier", "pad", "padtype_to_pads", "platform_dependent", "pmax", "pmean", "pmin", "polygamma",
    "population_count", "pow", "ppermute", "pshuffle", "psum", "psum_scatter", "pswapaxes", "ragged_dot",
    "ragged_dot_general", "random_gamma_grad", "real", "reciprocal", "reduce", "reduce_and", "reduce_max", "reduce_min",
    "reduce_or", "reduce_precision", "reduce_prod", "reduce_sum", "reduce_window", "reduce_window_shape_tuple",
    "reduce_xor", "rem", "reshape", "rev", "rng_bit_generator", "round", "rsqrt", "scaled_dot", "scan", "scatter",
    "scatter_add", "scatter_apply", "scatter_max", "scatter_min", "scatter_mul", "scatter_sub", "select",
    "select_and_gather_add", "select_and_scatter_add", "select_n", "shape_as_value", "shift_left",
    "shift_right_arithmetic", "shift_right_logical", "sign", "sin", "sinh", "slice", "slice_in_dim", "sort",
    "sort_key_val", "split", "sqrt", "square", "squeeze", "stack", "stage", "stop_gradient", "sub", "switch", "tan",
    "tanh", "tile", "top_k", "transpose", "unstack", "while_loop", "zeros_like", "zeta",
]  # fmt: skip

_LATE = {
    "": "linalg",
    "batch.collectives": (
        "all_gather all_to_all axis_index axis_size pmax pmean pmin ppermute pshuffle psum psum_scatter pswapaxes"
    ),
    "batch.user_reductions": "reduce reduce_window",
    "control_flow.branches_and_loops": "cond fori_loop switch while_loop",
    "control_flow.scan": "associative_scan map scan",
    "custom.linear_solves": "custom_linear_solve custom_root",
    "lax.aliases": "ConvGeneralDilatedDimensionNumbers DotDimensionNumbers PrecisionLike",
    "lax.alternatives": "composite platform_dependent",
    "lax.barriers": "optimization_barrier",
    "lax.convolutions": "conv_general_dilated_local conv_general_dilated_patches",
    "lax.elements": "approx_max_k approx_min_k mulhi scatter_apply",
    "lax.ragged": "RaggedDotDimensionNumbers ragged_dot ragged_dot_general",
    "lax.scaled_contraction": "scaled_dot",
    "lax.shapes": (
        "broadcast_like broadcast_shapes broadcast_to_rank conv_general_permutations conv_general_shape_tuple "
        "conv_shape_tuple conv_transpose_shape_tuple dtype empty reduce_window_shape_tuple shape_as_value "
        "slice_in_dim stack stage unstack"
    ),
    "tracer.primitives.dot_algorithms": "DotAlgorithm DotAlgorithmPreset",
}  # fmt: skip
# ---- end of what is written

if not _typing.TYPE_CHECKING:
    __all__.extend([*_FUNCTIONS, *_PRIMITIVES])
    _LATE |= {"like_jax.function_primitives": " ".join(_FUNCTIONS), "like_jax.own_primitives": " ".join(_PRIMITIVES)}
    _complete_namespace(globals(), _LATE)
