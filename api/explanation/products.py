"""Products of matrices and vectors as formulas write them: `a @ b`, `a.T @ b`, `outer a b`."""

from typing import Any

from tapeless.tracer.jaxpr import Equation
from tapeless.tracer.primitives.contraction import dot_general_p
from tapeless.tracer.printing import Names, equation_text, is_default


def readable_text(eqn: Equation, names: Names, titles: dict[Any, str]) -> str:
    """Print an equation as `equation_text` does; of a product of at most two axes each, the formula."""
    product = _product(eqn, names) if eqn.primitive is dot_general_p else None
    if product is None:
        return equation_text(eqn, names, titles)
    return f"{names.typed(eqn.outvars[0])} = {product}"


def _product(eqn: Equation, names: Names) -> str | None:
    """Write the formula of a product without batch axes and with the default precision; None for any other."""
    contracted, batch = eqn.params["dimension_numbers"]
    others = [value for name, value in eqn.params.items() if name != "dimension_numbers"]
    ranks = [x.aval.ndim for x in eqn.invars]
    if any(batch) or max(ranks) > 2 or len(contracted[0]) > 1 or not all(map(is_default, others)):
        return None
    left, right = map(names, eqn.invars)
    if not contracted[0]:
        return f"outer {left} {right}" if ranks == [1, 1] else None
    turned = contracted[0][0] != ranks[0] - 1, contracted[1][0] != 0
    return f"{left}{'.T' * turned[0]} @ {right}{'.T' * turned[1]}"
