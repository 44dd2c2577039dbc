"""Primitives of ours by JAX's names, for libraries that look for them in programs."""

from tapeless.custom.primitives import OwnPrimitive
from tapeless.tracer.primitives.call import jit_p as _jit_p
from tapeless.tracer.primitives.custom import custom_jvp_p
from tapeless.tracer.primitives.elementwise import stop_gradient_p as _stop_gradient_p

jit_p = OwnPrimitive(_jit_p, multiple_results=True)
custom_jvp_call_p = OwnPrimitive(custom_jvp_p, multiple_results=True)
stop_gradient_p = OwnPrimitive(_stop_gradient_p, multiple_results=False)
