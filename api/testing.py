"""Checks for tests of numerical programs."""

from tapeless.compile.compilation_count import count_compilations
from tapeless.custom.compare import check_custom_rule
from tapeless.custom.inverses import check_inverse
from tapeless.differentiate.derivative_rules import DerivativeRules, derivative_rules
from tapeless.differentiate.finite_differences import check_grads
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

__all__ = [
    "DerivativeRules",
    "check_custom_rule",
    "check_grads",
    "check_inverse",
    "count_compilations",
    "derivative_rules",
]

_complete_namespace(globals())
