"""Tapeless: automatic differentiation whose linear half is a program you can see.

`import tapeless as tl; import tapeless.numpy as tnp`. Names and meanings follow JAX wherever JAX has a name.
"""

import typing as _typing

import tapeless.seldom_collected as _seldom_collected  # before all others
from tapeless import (
    dtypes,
    errors,
    lax,
    numpy,
    tree,
    tree_util,
)
from tapeless.batch.vmap import vmap
from tapeless.compile.jit import clear_caches, jit
from tapeless.compile.make_jaxpr import eval_shape, make_jaxpr
from tapeless.compile.placement import block_until_ready, copy_to_host_async, device_get, device_put
from tapeless.compile.stages import ShapeDtypeStruct
from tapeless.differentiate.autodiff import grad, jvp, linear_transpose, linearize, value_and_grad, vjp
from tapeless.host import tracebacks as _tracebacks
from tapeless.interpreters import inline as _inline
from tapeless.interpreters import rules as _transforms
from tapeless.interpreters import simplify as _simplify
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
from tapeless.tracer import core as _core
from tapeless.tracer.array import Array
from tapeless.tracer.dtypes import float0
from tapeless.tracer.folding import ensure_compile_time_eval
from tapeless.tracer.late_imports import LateModule as _LateModule
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace
from tapeless.tracer.numpy import array_methods as _array_methods
from tapeless.tracer.primitives.elementwise import stop_gradient
from tapeless.tracer.references import Ref, empty_ref, free_ref, freeze, new_ref, typeof
from tapeless.tracer.settings.config import config, enable_x64
from tapeless.tracer.settings.scoped_settings import (
    allow_f16_reductions,
    array_garbage_collection_guard,
    check_tracer_leaks,
    checking_leaks,
    debug_infs,
    debug_key_reuse,
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
    softmax_custom_jvp,
    threefry_partitionable,
    transfer_guard,
    transfer_guard_device_to_device,
    transfer_guard_device_to_host,
    transfer_guard_host_to_device,
)
from tapeless.tracer.source import named_scope

_RULES = _transforms, _emitters  # importing them filled the tables
if _typing.TYPE_CHECKING:
    from tapeless.interpreters.terms import lower_ein as _lower_ein

# ---- written by docs/make_names.py from the imports above
__all__ = [
    "Array", "Device", "Opaque", "Ref", "ShapeDtypeStruct", "ad", "ad_checkpoint", "allow_f16_reductions",
    "array_garbage_collection_guard", "as_jax", "block_until_ready", "check_linear", "check_tracer_leaks",
    "checking_leaks", "checkpoint", "checkpoint_name", "checkpoint_policies", "clear_caches", "closure_convert",
    "config", "config_cpu_devices", "copy_to_host_async", "core", "cost", "custom_batching", "custom_derivatives",
    "custom_gradient", "custom_jvp", "custom_vjp", "debug", "debug_infs", "debug_key_reuse", "debug_nans",
    "default_backend", "default_device", "default_matmul_precision", "default_prng_impl", "device_count", "device_get",
    "device_put", "devices", "disable_jit", "dlpack", "ds", "dtypes", "effects_barrier", "empty_ref", "enable_checks",
    "enable_custom_prng", "enable_x64", "ensure_compile_time_eval", "errors", "eval_shape", "experimental", "explain",
    "explain_cache_misses", "explain_control_flow", "extend", "flatten_util", "float0", "free_ref", "freeze",
    "from_dlpack", "frontier", "fwd_and_bwd", "grad", "gradient_program", "hessian", "host_count", "host_id",
    "host_ids", "image", "index", "invertible", "io_callback", "jacfwd", "jacobian", "jacrev", "jit", "jvp", "lax",
    "legacy_prng_key", "linear_transpose", "linearize", "live_arrays", "load", "local_device_count", "local_devices",
    "log_compiles", "make_jaxpr", "make_user_context", "memory", "named_call", "named_scope", "new_ref", "nn",
    "no_execution", "no_tracing", "numpy", "numpy_dtype_promotion", "numpy_rank_promotion", "ops", "optimizers",
    "parse_jaxpr", "partial_eval", "pmap", "print_environment_info", "print_saved_residuals", "process_count",
    "process_index", "process_indices", "profile", "profiler", "program_size", "program_text", "pure_callback",
    "random", "ref", "remat", "residual_bytes", "save", "saved_residuals", "scipy", "set_default_device", "sharding",
    "softmax_custom_jvp", "sparse", "stages", "stop_gradient", "strict_form", "testing", "threefry_partitionable",
    "transfer_guard", "transfer_guard_device_to_device", "transfer_guard_device_to_host",
    "transfer_guard_host_to_device", "transpose_jaxpr", "tree", "tree_util", "typeof", "typing", "unzip",
    "value_and_grad", "vjp", "vmap", "work",
]  # fmt: skip

_LATE = {
    "": (
        "ad ad_checkpoint checkpoint_policies core custom_batching custom_derivatives debug dlpack experimental "
        "extend flatten_util image index nn ops optimizers profiler random ref scipy sharding sparse stages testing "
        "typing"
    ),
    "compile.control_flow_decisions": "explain_control_flow",
    "compile.named_call": "named_call",
    "compile.profile": "profile",
    "custom.closures": "closure_convert",
    "custom.gradient": "custom_gradient",
    "custom.jvp": "custom_jvp",
    "custom.vjp": "custom_vjp",
    "differentiate.fwd_and_bwd": "fwd_and_bwd",
    "differentiate.jacobians": "hessian jacfwd jacobian jacrev",
    "differentiate.opaque": "Opaque",
    "differentiate.partial_eval": "partial_eval",
    "differentiate.residuals": "print_saved_residuals saved_residuals",
    "differentiate.unzip": "check_linear cost program_size residual_bytes strict_form transpose_jaxpr unzip work",
    "explanation.explanation": "explain",
    "explanation.frontier": "frontier",
    "explanation.memory": "memory",
    "host.callbacks": "effects_barrier io_callback pure_callback",
    "host.environment": "print_environment_info",
    "interpreters.terms": "_lower_ein",
    "like_jax.pmap": "pmap",
    "like_jax.processes": "host_count host_id host_ids",
    "like_jax.shim": "as_jax",
    "programs.gradient_programs": "gradient_program",
    "programs.loading": "load",
    "programs.program_parsing": "parse_jaxpr program_text",
    "remat.invertible": "invertible",
    "saving.trees": "save",
    "tracer.numpy.dynamic_windows": "ds",
    "tracer.settings.scoped_settings": "make_user_context",
}  # fmt: skip
# ---- end of what is written

if not _typing.TYPE_CHECKING:
    _lower_ein = _LateModule("tapeless.interpreters.terms.lower_ein")
_emit.passes += [_inline.inline_calls, _simplify.simplify_program, lambda jaxpr: _lower_ein.without_ein(jaxpr)]
_core.set_evaluator(_dispatch.EagerEvaluator())
_array_methods.set_namespace(numpy)
__version__ = "0.1.0"  # as in pyproject.toml; reading the package's metadata would double the cost of importing


if _typing.TYPE_CHECKING:  # what few programs use is loaded when it is used
    from tapeless import (
        ad,
        ad_checkpoint,
        checkpoint_policies,
        core,
        custom_batching,
        custom_derivatives,
        debug,
        dlpack,
        experimental,
        extend,
        flatten_util,
        image,
        index,
        nn,
        ops,
        optimizers,
        profiler,
        random,
        ref,
        scipy,
        sharding,
        sparse,
        stages,
        testing,
        typing,
    )
    from tapeless.compile.control_flow_decisions import explain_control_flow
    from tapeless.compile.named_call import named_call
    from tapeless.compile.profile import profile
    from tapeless.custom.closures import closure_convert
    from tapeless.custom.gradient import custom_gradient
    from tapeless.custom.jvp import custom_jvp
    from tapeless.custom.vjp import custom_vjp
    from tapeless.differentiate.fwd_and_bwd import fwd_and_bwd
    from tapeless.differentiate.jacobians import hessian, jacfwd, jacobian, jacrev
    from tapeless.differentiate.opaque import Opaque
    from tapeless.differentiate.partial_eval import partial_eval
    from tapeless.differentiate.residuals import print_saved_residuals, saved_residuals
    from tapeless.differentiate.unzip import (
        check_linear,
        cost,
        program_size,
        residual_bytes,
        strict_form,
        transpose_jaxpr,
        unzip,
        work,
    )
    from tapeless.explanation.explanation import explain
    from tapeless.explanation.frontier import frontier
    from tapeless.explanation.memory import memory
    from tapeless.host.callbacks import effects_barrier, io_callback, pure_callback
    from tapeless.host.environment import print_environment_info
    from tapeless.like_jax.pmap import pmap
    from tapeless.like_jax.processes import host_count, host_id, host_ids
    from tapeless.like_jax.shim import as_jax
    from tapeless.programs.gradient_programs import gradient_program
    from tapeless.programs.loading import load
    from tapeless.programs.program_parsing import parse_jaxpr, program_text
    from tapeless.remat.invertible import invertible
    from tapeless.saving.trees import save
    from tapeless.tracer.numpy.dynamic_windows import ds
    from tapeless.tracer.settings.scoped_settings import make_user_context
else:
    _complete_namespace(globals(), _LATE)

globals().pop("compile")  # PyTorch's name of `jit`, whose error is not to be that a module is not callable
_tracebacks.install()
_seldom_collected.as_before()
