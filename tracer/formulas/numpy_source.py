"""Print sums of terms as NumPy source: calls of `einsum`, or with brackets masked products over all indices."""

from collections.abc import Sequence
from math import isfinite
from typing import Any

from tapeless.tracer.formulas.periodic import Periods, wrap_accesses
from tapeless.tracer.formulas.text import IndexNames, Operands, is_negative
from tapeless.tracer.terms.affine import Affine, Symbol, Variable
from tapeless.tracer.terms.solve import explicit
from tapeless.tracer.terms.term import Bracket, IsZero, Lookup, Read, Sum, Term, Use
from tapeless.tracer.terms.term_printing import named_affine, signed_sum

MOST_LETTERS = 26


class NumPyNames(IndexNames):
    """Indices as Python expressions: coefficients are multiplied with `*`."""

    def index(self, a: Affine) -> str:
        text = named_affine(Affine(a.constant, tuple([(v, c) for v, c in a.variables]), a.symbols), self)
        if all(abs(c) == 1 for _, c in (*a.variables, *a.symbols)):
            return text
        pairs = [(self.variable(v), c) for v, c in a.variables] + [(self.symbol(s), c) for s, c in a.symbols]
        parts = [f"{c} * {name}" for name, c in pairs] + ([str(a.constant)] if a.constant else [])
        return " + ".join(parts)

    def symbol(self, s: Symbol) -> str:
        text = super().symbol(s)
        return text if text == self.operand(s.operand) else f"np.{text}"


def sum_source(terms: Sum, shape: Sequence[int], operands: Operands, periods: Periods) -> str:
    """Write a sum of terms as a NumPy expression; axes in `periods` are read modulo their size."""
    found = [x for t in terms if (x := explicit(wrap_accesses(t, periods), shape)) is not None]
    parts = [(is_negative(t.coefficient), _term_source(t, len(shape), operands)) for t in found]
    return signed_sum(parts) or f"np.zeros({tuple(shape)})"


def _term_source(t: Term, rank: int, operands: Operands) -> str:
    """Write a term, without the sign of its coefficient."""
    c = -t.coefficient if is_negative(t.coefficient) else t.coefficient
    call = einsum_call(t, rank, operands)
    if call is not None:
        return call if c == 1 else f"{c} * {call}"
    names = NumPyNames(t, rank, operands)
    above = [_read(f, names, operands) for f in t.factors if f.use is not Use.DIVIDED]
    product = " * ".join(above if above and c == 1 else [str(c), *above])
    product += "".join([f" / {_read(f, names, operands)}" for f in t.factors if f.use is Use.DIVIDED])
    conditions = [f"({_condition(b, names, operands)})" for b in t.brackets]
    if conditions:
        product = f"np.where({' & '.join(conditions)}, {product}, 0)"
    box = f"np.broadcast_to({product}, {tuple(t.sizes)})"
    axes = tuple(range(rank, len(t.sizes)))
    text = f"{box}.sum({axes})" if axes else box
    indices = ", ".join([names.variable(v) for v in range(len(t.sizes))])
    ranges = ", ".join([f"range({n})" for n in t.sizes])
    return f"(lambda {indices}: {text})(*np.ix_({ranges}))" if indices else text


def einsum_call(t: Term, rank: int, operands: Operands) -> str | None:
    """Write an explicit term without its coefficient as a call of `einsum`, or as an operand; None if it is neither."""
    variables = [a.variable for f in t.factors for a in f.access]
    if t.brackets or None in variables or len(t.sizes) > MOST_LETTERS or set(range(len(t.sizes))) != set(variables):
        return None
    if any(t.sizes[a.variable or 0] != n for f in t.factors for a, n in zip(f.access, operands.shapes[f.operand])):
        return None
    letters = [chr(ord("a") + v) for v in range(len(t.sizes))]
    subscripts = ["".join([letters[a.variable or 0] for a in f.access]) for f in t.factors]
    out = "".join(letters[:rank])
    arrays = [_array(f, operands) for f in t.factors]
    optimized = ", optimize=True" if len(arrays) > 2 else ""
    if subscripts == [out] and t.factors[0].use is not Use.DIVIDED:
        return arrays[0]
    return f'np.einsum("{",".join(subscripts)}->{out}", {", ".join(arrays)}{optimized})' if t.factors else None


def _array(f: Read, operands: Operands) -> str:
    name = _numbers(operands.names[f.operand], f, operands)
    return {Use.PLAIN: name, Use.CONJUGATED: f"np.conj({name})", Use.DIVIDED: f"1 / {name}"}[f.use]


def _numbers(text: str, f: Read, operands: Operands) -> str:
    """Convert booleans to numbers: of booleans NumPy's sum is `or`, and it has no difference of them."""
    return f"np.asarray({text}, float)" if f.operand in operands.booleans else text


def _read(f: Read, names: NumPyNames, operands: Operands) -> str:
    """Write the read of an operand, with indices clipped to its axes, as they may be outside where brackets fail."""
    read = _indexed(names.operand(f.operand), f.access, operands.shapes[f.operand], names)
    read = _numbers(read, f, operands)
    return f"np.conj({read})" if f.use is Use.CONJUGATED else read


def _indexed(name: str, access: Sequence[Affine], shape: Sequence[int], names: NumPyNames) -> str:
    indices = [
        names.index(a) if (v := a.variable) is not None and names.sizes[v] <= n else _clipped(names.index(a), n)
        for a, n in zip(access, shape)
    ]
    return f"{name}[{', '.join(indices)}]" if indices else name


def _clipped(index: str, n: int) -> str:
    return f"np.clip({index}, 0, {n - 1})"


def _condition(b: Bracket, names: NumPyNames, operands: Operands) -> str:
    if isinstance(b, Lookup):
        read = _indexed(names.operand(b.operand), b.access, operands.shapes[b.operand], names)
        read = f"np.clip({read}, {b.limits[0]}, {b.limits[1]})" if b.limits and not b.is_within else read
        return f"{read} == {names.index(b.index)}"
    return f"{names.index(b.index)} {'==' if isinstance(b, IsZero) else '>='} 0"


def number_source(value: Any) -> str:
    """Write a NumPy scalar as a Python literal."""
    number = value.item() if hasattr(value, "item") else value
    return f"float('{number}')" if isinstance(number, float) and not isfinite(number) else repr(number)


# ---- products of matrices and vectors ------------------------------------------------------------------------
# `2 * A @ x`, where each term is a chain of them.


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
