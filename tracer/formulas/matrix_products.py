"""Sums of terms as products of matrices and vectors: `2 * A @ x`."""

from collections.abc import Sequence

from tapeless.tracer.formulas.text import Operands, is_negative
from tapeless.tracer.terms.affine import Variable
from tapeless.tracer.terms.printing import signed_sum
from tapeless.tracer.terms.solve import explicit
from tapeless.tracer.terms.term import Read, Sum, Term, Use


def matrix_text(terms: Sum, shape: Sequence[int], operands: Operands) -> str | None:
    """Write a sum of terms with products of matrices; None if a term is no chain of them, or the rank not 1 or 2."""
    if len(shape) not in (1, 2):
        return None
    parts = list[tuple[bool, str]]()
    for t in [x for t in terms if (x := explicit(t, shape, operands.stays)) is not None]:
        chain = _chain(t, len(shape), operands)
        if chain is None:
            return None
        c = -t.coefficient if is_negative(t.coefficient) else t.coefficient
        product = " @ ".join(chain)
        parts.append((is_negative(t.coefficient), product if c == 1 else f"{c} * {product}"))
    return signed_sum(parts) or "0"


def _chain(t: Term, rank: int, operands: Operands) -> list[str] | None:
    """List the factors of a matrix product, from the first index of the result to the second or to a vector.

    None if the term is no such product.
    """
    left, chain = list(t.factors), list[str]()
    at: Variable | None = 0
    if t.brackets or not all(_reads_all(f, t, operands) for f in left):
        return None
    while left:
        near = [f for f in left if at in _variables(f)]
        step = None if at is None or len(near) != 1 else _step(near[0], at, operands)
        if step is None:
            return None
        left.remove(near[0])
        at = step[1]
        chain.append(step[0])
    return chain if chain and at == (1 if rank == 2 else None) else None


def _reads_all(f: Read, t: Term, operands: Operands) -> bool:
    """Tell whether a factor is an array of numbers, read along each axis at a variable that has its values."""
    axes = zip(f.access, operands.shapes[f.operand], strict=True)
    is_whole = all(a.variable is not None and t.sizes[a.variable] == n for a, n in axes)
    return is_whole and f.operand not in operands.booleans


def _step(f: Read, at: Variable, operands: Operands) -> tuple[str, Variable | None] | None:
    """Write a factor read at index `at`, and return its other index, None for a vector; None if it is no matrix."""
    name, indices = operands.names[f.operand], _variables(f)
    if f.use is Use.DIVIDED or len(indices) > 2 or len(set(indices)) < len(indices):
        return None
    name = f"{name}.conj()" if f.use is Use.CONJUGATED else name
    if len(indices) == 1:
        return name, None
    return (name, indices[1]) if indices[0] == at else (f"{name}.T", indices[0])


def _variables(f: Read) -> list[Variable | None]:
    return [a.variable for a in f.access]
