"""Primitives by which libraries find equations in programs: those of `jax.extend.core.primitives` that are here."""

import typing as _typing

from tapeless.like_jax.own_primitives import OWN as _OWN
from tapeless.like_jax.own_primitives import custom_jvp_call_p, stop_gradient_p
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace
from tapeless.tracer.primitives.call import jit_p

__all__ = ["custom_jvp_call_p", "jit_p", "stop_gradient_p"]

if not _typing.TYPE_CHECKING:
    globals().update(_OWN)
    __all__ += [name for name in _OWN if name not in __all__]
    _complete_namespace(globals())
