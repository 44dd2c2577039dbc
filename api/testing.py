"""What tests of numerical programs need."""

from tapeless.gradient_checks import check_grads
from tapeless.rule_comparison import check_custom_rule

__all__ = ["check_custom_rule", "check_grads"]
