"""Checks for tests of numerical programs."""

from tapeless.custom.compare import check_custom_rule
from tapeless.differentiate.finite_differences import check_grads

__all__ = ["check_custom_rule", "check_grads"]
