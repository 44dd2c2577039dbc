"""Tapeless: automatic differentiation whose linear half is a program you can see.

`import tapeless as tl; import tapeless.numpy as tnp`. Names and meanings follow JAX wherever JAX has a name.
"""

from tapeless import lax, numpy, random, testing, tree, tree_util
from tapeless.autodiff import grad, jvp, linear_transpose, linearize, value_and_grad, vjp
from tapeless.compiling import jit
from tapeless.custom_rules import custom_jvp
from tapeless.interpreters import rules as _transforms
from tapeless.jacobians import hessian, jacfwd, jacrev
from tapeless.lowering import dispatch as _dispatch
from tapeless.lowering import rules as _emitters
from tapeless.lowering.array import from_dlpack
from tapeless.lowering.devices import (
    default_backend,
    default_device,
    device_count,
    devices,
    local_devices,
    set_default_device,
)
from tapeless.placement import block_until_ready, device_get, device_put
from tapeless.stages import ShapeDtypeStruct
from tapeless.tracer import core as _core
from tapeless.tracer import errors
from tapeless.tracer.array import Array
from tapeless.tracer.config import config, enable_x64
from tapeless.tracer.primitives.elementwise import stop_gradient
from tapeless.tracing import eval_shape, make_jaxpr
from tapeless.vectorization import vmap

_RULES = _transforms, _emitters  # importing them filled the tables
_core.set_evaluator(_dispatch.Evaluator())
__version__ = "0.1.0"  # as in pyproject.toml; reading the package's metadata would double the cost of importing

__all__ = [
    "Array",
    "ShapeDtypeStruct",
    "block_until_ready",
    "config",
    "custom_jvp",
    "default_backend",
    "default_device",
    "device_count",
    "device_get",
    "device_put",
    "devices",
    "enable_x64",
    "errors",
    "eval_shape",
    "from_dlpack",
    "grad",
    "hessian",
    "jacfwd",
    "jacrev",
    "jit",
    "jvp",
    "lax",
    "linear_transpose",
    "linearize",
    "local_devices",
    "make_jaxpr",
    "numpy",
    "random",
    "set_default_device",
    "stop_gradient",
    "testing",
    "tree",
    "tree_util",
    "value_and_grad",
    "vjp",
    "vmap",
]
