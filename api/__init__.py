"""Tapeless: automatic differentiation whose linear half is a program you can see.

`import tapeless as tl; import tapeless.numpy as tnp`. Names and meanings follow JAX wherever JAX has a name.
"""

import typing as _typing

import tapeless.seldom_collected as _seldom_collected  # before all others
from tapeless import (
    ad_checkpoint,
    checkpoint_policies,
    custom_batching,
    custom_derivatives,
    debug,
    dtypes,
    errors,
    experimental,
    lax,
    numpy,
    random,
    stages,
    testing,
    tree,
    tree_util,
)
from tapeless.batch.vmap import vmap
from tapeless.compile.jit import clear_caches, jit
from tapeless.compile.make_jaxpr import eval_shape, make_jaxpr
from tapeless.compile.placement import block_until_ready, copy_to_host_async, device_get, device_put
from tapeless.compile.stages import ShapeDtypeStruct
from tapeless.custom.closures import closure_convert
from tapeless.custom.jvp import custom_jvp
from tapeless.custom.vjp import custom_vjp
from tapeless.differentiate.autodiff import grad, jvp, linear_transpose, linearize, value_and_grad, vjp
from tapeless.differentiate.jacobians import hessian, jacfwd, jacobian, jacrev
from tapeless.differentiate.unzip import check_linear, cost, program_size, residual_bytes, strict_form, unzip, work
from tapeless.explain.control_flow import explain_control_flow
from tapeless.explain.explanation import explain
from tapeless.host.callbacks import effects_barrier, io_callback, pure_callback
from tapeless.interpreters import inline as _inline
from tapeless.interpreters import rules as _transforms
from tapeless.interpreters import simplifications as _simplifications
from tapeless.interpreters import simplify as _simplify
from tapeless.late_names import imported_late as _imported_late
from tapeless.lowering import dispatch as _dispatch
from tapeless.lowering import emit as _emit
from tapeless.lowering import rules as _emitters
from tapeless.lowering.array import from_dlpack, live_arrays
from tapeless.lowering.devices import (
    Device,
    config_cpu_devices,
    default_backend,
    default_device,
    device_count,
    devices,
    local_device_count,
    local_devices,
    process_count,
    process_index,
    process_indices,
    set_default_device,
)
from tapeless.remat.checkpoint import checkpoint, checkpoint_name, remat
from tapeless.remat.residuals import print_saved_residuals, saved_residuals
from tapeless.tracer import core as _core
from tapeless.tracer.array import Array
from tapeless.tracer.config import config, enable_x64
from tapeless.tracer.core import ensure_compile_time_eval
from tapeless.tracer.dtypes import float0
from tapeless.tracer.numpy import array_methods as _array_methods
from tapeless.tracer.primitives.elementwise import stop_gradient
from tapeless.tracer.references import Ref, empty_ref, free_ref, freeze, new_ref, typeof
from tapeless.tracer.scoped_settings import (
    check_tracer_leaks,
    checking_leaks,
    debug_infs,
    debug_nans,
    default_matmul_precision,
    default_prng_impl,
    disable_jit,
    enable_checks,
    enable_custom_prng,
    explain_cache_misses,
    legacy_prng_key,
    log_compiles,
    no_execution,
    no_tracing,
    numpy_dtype_promotion,
    numpy_rank_promotion,
    threefry_partitionable,
    transfer_guard,
    transfer_guard_device_to_device,
    transfer_guard_device_to_host,
    transfer_guard_host_to_device,
)
from tapeless.tracer.source import named_scope

_RULES = _transforms, _simplifications, _emitters  # importing them filled the tables
_emit.passes += [_inline.inlined, _simplify.simplified]
_core.set_evaluator(_dispatch.EagerEvaluator())
_array_methods.set_namespace(numpy)
__version__ = "0.1.0"  # as in pyproject.toml; reading the package's metadata would double the cost of importing

__all__ = [
    "Array",
    "Device",
    "Ref",
    "ShapeDtypeStruct",
    "ad",
    "ad_checkpoint",
    "as_jax",
    "block_until_ready",
    "check_linear",
    "check_tracer_leaks",
    "checking_leaks",
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "clear_caches",
    "closure_convert",
    "config",
    "config_cpu_devices",
    "copy_to_host_async",
    "core",
    "cost",
    "custom_batching",
    "custom_derivatives",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "debug",
    "debug_infs",
    "debug_nans",
    "default_backend",
    "default_device",
    "default_matmul_precision",
    "default_prng_impl",
    "device_count",
    "device_get",
    "device_put",
    "devices",
    "disable_jit",
    "dlpack",
    "dtypes",
    "effects_barrier",
    "empty_ref",
    "enable_checks",
    "enable_custom_prng",
    "enable_x64",
    "ensure_compile_time_eval",
    "errors",
    "eval_shape",
    "experimental",
    "explain",
    "explain_cache_misses",
    "explain_control_flow",
    "extend",
    "flatten_util",
    "float0",
    "free_ref",
    "freeze",
    "from_dlpack",
    "fwd_and_bwd",
    "grad",
    "hessian",
    "image",
    "io_callback",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "lax",
    "legacy_prng_key",
    "linear_transpose",
    "linearize",
    "live_arrays",
    "local_device_count",
    "local_devices",
    "log_compiles",
    "make_jaxpr",
    "make_user_context",
    "named_call",
    "named_scope",
    "new_ref",
    "nn",
    "no_execution",
    "no_tracing",
    "numpy",
    "numpy_dtype_promotion",
    "numpy_rank_promotion",
    "ops",
    "optimizers",
    "pmap",
    "print_environment_info",
    "print_saved_residuals",
    "process_count",
    "process_index",
    "process_indices",
    "profiler",
    "program_size",
    "pure_callback",
    "random",
    "ref",
    "remat",
    "residual_bytes",
    "saved_residuals",
    "scipy",
    "set_default_device",
    "sharding",
    "stages",
    "stop_gradient",
    "strict_form",
    "testing",
    "threefry_partitionable",
    "transfer_guard",
    "transfer_guard_device_to_device",
    "transfer_guard_device_to_host",
    "transfer_guard_host_to_device",
    "tree",
    "tree_util",
    "typeof",
    "typing",
    "unzip",
    "value_and_grad",
    "vjp",
    "vmap",
    "work",
]

if _typing.TYPE_CHECKING:  # what few programs use is loaded when it is used
    from tapeless import (
        ad,
        core,
        dlpack,
        extend,
        flatten_util,
        image,
        nn,
        ops,
        optimizers,
        profiler,
        ref,
        scipy,
        sharding,
        typing,
    )
    from tapeless.batch.pmap import pmap
    from tapeless.compile.named_call import named_call
    from tapeless.custom.gradient import custom_gradient
    from tapeless.differentiate.fwd_and_bwd import fwd_and_bwd
    from tapeless.host.environment import print_environment_info
    from tapeless.jax_shim import as_jax
    from tapeless.tracer.user_contexts import make_user_context
else:
    __getattr__ = _imported_late(
        globals(),
        {
            **dict.fromkeys(
                "ad core dlpack extend flatten_util image nn ops optimizers profiler ref scipy sharding typing".split(),
                "",
            ),
            "as_jax": "jax_shim",
            "custom_gradient": "custom.gradient",
            "fwd_and_bwd": "differentiate.fwd_and_bwd",
            "make_user_context": "tracer.user_contexts",
            "print_environment_info": "host.environment",
            "named_call": "compile.named_call",
            "pmap": "batch.pmap",
        },
    )

_seldom_collected.as_before()
