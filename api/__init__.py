"""Tapeless: automatic differentiation whose linear half is a program you can see.

`import tapeless as tl; import tapeless.numpy as tnp`.
"""

from tapeless import tree, tree_util
from tapeless.autodiff import grad, jvp, linear_transpose, linearize, value_and_grad, vjp
from tapeless.custom_rules import custom_jvp
from tapeless.jit import jit
from tapeless.interpreters import rules as _transform_rules
from tapeless.lowering import dispatch
from tapeless.lowering import rules as _emit_rules
from tapeless.stages import ShapeDtypeStruct
from tapeless.tracer import core
from tapeless.tracer.array import Array
from tapeless.tracer.config import config, enable_x64
from tapeless.tracing import eval_shape, make_jaxpr

core.set_evaluator(dispatch.Evaluator())
