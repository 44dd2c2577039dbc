"""Checks for tests of numerical programs."""

import typing as _typing

from tapeless.compile.compilation_count import count_compilations
from tapeless.custom.compare import check_custom_rule
from tapeless.differentiate.derivative_rules import DerivativeRules, derivative_rules
from tapeless.differentiate.finite_differences import check_grads
from tapeless.tracer.late_imports import imported_late as _imported_late

__all__ = ["DerivativeRules", "check_custom_rule", "check_grads", "count_compilations", "derivative_rules"]

if not _typing.TYPE_CHECKING:  # type checkers know better what is there
    __getattr__ = _imported_late(globals(), {})
