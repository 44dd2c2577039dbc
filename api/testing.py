"""What tests of numerical programs need."""

from tapeless.gradient_checks import check_grads

__all__ = ["check_grads"]
