"""The rules that all derivatives are made of, by the names of primitives."""

from typing import NamedTuple

from tapeless.interpreters import jvp, partial_eval, transpose
from tapeless.tracer.core import Primitive, all_primitives
from tapeless.tracer.rules import Rules


class DerivativeRules(NamedTuple):
    """Names of primitives that have a rule: of N for forward mode, H for partial evaluation, L for transposition."""

    forward_mode: tuple[str, ...]
    partial_evaluation: tuple[str, ...]
    transposition: tuple[str, ...]


def derivative_rules() -> DerivativeRules:
    """List the primitives with a rule of forward mode, of partial evaluation, and of transposition.

    There are no others: reverse mode has no rules of its own, but runs the derivative of forward mode backwards. So
    only what is linear, or carries programs, has more than one rule.
    Source: Radul et al. 2023, section 1.

    >>> rules = derivative_rules()
    >>> [("sin" in names, "dot_general" in names, "scan" in names) for names in rules]
    [(True, True, True), (False, False, True), (False, True, True)]
    """
    return DerivativeRules(*[_names(table) for table in (jvp.rules, partial_eval.rules, transpose.rules)])


def _names(table: Rules) -> tuple[str, ...]:
    ours: set[Primitive] = {*all_primitives()}
    return tuple(sorted([p.name for p in table if p in ours]))
