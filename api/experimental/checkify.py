"""Errors as values: the names of `jax.experimental.checkify`."""

from tapeless.host.checkify import (
    Error,
    ErrorCategory,
    JaxRuntimeError,
    all_checks,
    automatic_checks,
    check,
    check_error,
    checkify,
    debug_check,
    div_checks,
    float_checks,
    index_checks,
    init_error,
    nan_checks,
    user_checks,
)
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

# ---- written by docs/make_names.py from the imports above
__all__ = [
    "Error", "ErrorCategory", "JaxRuntimeError", "all_checks", "automatic_checks", "check", "check_error", "checkify",
    "debug_check", "div_checks", "float_checks", "index_checks", "init_error", "nan_checks", "user_checks",
]  # fmt: skip
# ---- end of what is written

_complete_namespace(globals())
