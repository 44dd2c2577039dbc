"""Print sums of terms as formulas for people, in text and in LaTeX: `2 * Σ[j] A[a,j] * x[j]`.

Search terms: pretty-printing, Einstein notation, Iverson bracket. Indices of the result are called a, b, .., and those
of sums j, k, ..; brackets that bound an index from both sides are printed as one, `[0 <= i - j < 3]`. An index has as
many values as every axis that it alone indexes; where that does not hold, its range is printed, `Σ[j<4] x[a + j]`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from tapeless.tracer.terms.affine import Affine, Symbol, Variable, variables
from tapeless.tracer.terms.solve import NO_AXES, Axes, explicit
from tapeless.tracer.terms.term import (
    Bracket,
    IsZero,
    Lookup,
    NotNegative,
    Read,
    Sum,
    Term,
    Use,
    conjugate,
    indices_of,
    variables_of,
)
from tapeless.tracer.terms.term_printing import letters, named_affine, sides, signed_sum

FREE, BOUND = "abcdefghopqrstuv", "jklmnpqrstuvwi"


PRODUCT, SUM, COMPARISON, LOGIC = 1, 2, 3, 4  # how loosely operators bind; 0 is a number or an index


class IndexExpression(NamedTuple):
    """A function of indices in text and LaTeX, in which `{0}`, `{1}`, .. stand for them, and how loosely it binds."""

    text: str
    latex: str
    level: int = 0

    def over(self, indices: Sequence[str]) -> "IndexExpression":
        """Substitute texts for the indices."""
        return IndexExpression(self.text.format(*indices), self.latex.format(*indices), self.level)

    def in_parentheses(self, needed: bool = True) -> "IndexExpression":
        """Put the expression in parentheses, if these are needed."""
        return IndexExpression(f"({self.text})", f"({self.latex})") if needed else self

    def at(self, indices: Sequence[str]) -> "IndexExpression":
        """Substitute texts for the indices, in parentheses where they are sums."""
        if self.level == 0:
            return self.over(indices)._replace(level=0 if all(i.isalnum() for i in indices) else SUM)
        return self.over([i if i.isalnum() else f"({i})" for i in indices])


class Operands(NamedTuple):
    """Operands by number: their names and shapes, the booleans and the free indices among them.

    `hints`: the user's names for indices of an axis of an operand. `stays`: axes whose indices stay summed over, as in
    `solve_term`. `expressions`: operands that are printed as functions of their indices. `real`: real operands.
    """

    names: Sequence[str]
    shapes: Sequence[Sequence[int]]
    booleans: frozenset[int] = frozenset()
    indices: frozenset[int] = frozenset()
    hints: Mapping[tuple[int, int], Sequence[str]] = {}
    stays: Axes = NO_AXES
    expressions: Mapping[int, IndexExpression] = {}
    real: frozenset[int] = frozenset()


class Reduction(NamedTuple):
    """A reduction over indices, in text and in LaTeX."""

    text: str
    latex: str


TOTAL, PRODUCT_OF = Reduction("Σ", r"\sum"), Reduction("Π", r"\prod")
LARGEST, SMALLEST = Reduction("max", r"\max"), Reduction("min", r"\min")
SOME, EVERY = Reduction("∃", r"\exists"), Reduction("∀", r"\forall")


class Notation(NamedTuple):
    """A notation for formulas: text or LaTeX."""

    operand: Any  # name, indices -> text
    conjugated: Any  # text -> text
    reduced: Any  # reduction, names -> text
    times: str
    over: Any  # numerator, denominators -> text
    less_or_equal: str
    power: Any  # base, exponent -> text
    nabla: str
    expression: Any  # IndexExpression -> text
    part: Any  # name of the real or imaginary part, text -> text
    is_sized: bool = False  # print the ranges of all sums, and of no result


def _indexed(name: str, indices: Sequence[str]) -> str:
    return f"{name}[{','.join(indices)}]" if indices else name


def latex_name(name: str) -> str:
    """Write a name in LaTeX; a text that ends with `)` is LaTeX already."""
    if name.endswith(")"):
        return name
    if name.startswith(LATEX.nabla):
        return LATEX.nabla + latex_name(name.removeprefix(LATEX.nabla))
    return name if len(name) == 1 else rf"\mathrm{{{name.replace('_', chr(92) + '_')}}}"


def _latex_indexed(name: str, indices: Sequence[str]) -> str:
    separator = "" if all(len(i) == 1 for i in indices) else ","
    return f"{latex_name(name)}_{{{separator.join(indices)}}}" if indices else latex_name(name)


TEXT = Notation(
    _indexed,
    lambda read: f"conj({read})",
    lambda how, names: f"{how.text}[{','.join(names)}] ",
    " * ",
    lambda above, below: " / ".join([above, *below]),
    "<=",
    lambda base, n: f"{base}**{n}",
    "∇",
    lambda x: x.text,
    lambda name, text: f"{name}({text})",
)
LATEX = Notation(
    _latex_indexed,
    lambda read: rf"\overline{{{read}}}",
    lambda how, names: rf"{how.latex}_{{{','.join(names)}}} ",
    r" \, ",
    lambda above, below: rf"\frac{{{above}}}{{{' '.join(below)}}}" if below else above,
    r"\le",
    lambda base, n: f"{{{base}}}^{{{n}}}",
    r"\nabla ",
    lambda x: x.latex,
    lambda name, text: rf"\mathrm{{{name}}}({text})",
)


def equation(name: str, terms: Sum, shape: Sequence[int], operands: Operands, notation: Notation = TEXT) -> str:
    """Write a sum of terms as an equation, `name[a,b<4] = ..`, with the ranges of indices that nothing read implies."""
    found, names = _explicit(terms, shape, operands), free_names(len(shape), operands)
    if not notation.is_sized:
        names = [x if _is_implied(v, n, found, operands) else f"{x}<{n}" for v, (x, n) in enumerate(zip(names, shape))]
    return f"{notation.operand(name, names)} = {formula(terms, shape, operands, notation)}"


def index_equation(name: str, x: IndexExpression, shape: Sequence[int], operands: Operands, notation: Notation) -> str:
    """Write a function of indices as an equation, `name[a<4] = 2 * a`."""
    names = free_names(len(shape), operands)
    ranges = names if notation.is_sized else [f"{i}<{n}" for i, n in zip(names, shape)]
    return f"{notation.operand(name, ranges)} = {notation.expression(x.at(names))}"


def reduction_equation(
    name: str, how: Reduction, k: int, axes: Sequence[int], operands: Operands, notation: Notation
) -> str:
    """Write the reduction of operand k over some axes as an equation, `name[a] = max[j] x[a,j]`."""
    shape, expression = operands.shapes[k], operands.expressions.get(k)
    free = free_names(len(shape) - len(axes), operands)
    taken = {*operands.names, *free}
    bound = list(islice((x for x in letters(BOUND) if x not in taken), len(axes)))
    names = iter(free), iter(bound)
    indices = [next(names[d in axes]) for d in range(len(shape))]
    ranged = [f"{i}<{n}" if expression or (notation.is_sized and i in bound) else i for i, n in zip(indices, shape)]
    left = notation.operand(name, [i for d, i in enumerate(ranged) if d not in axes])
    read = (
        notation.operand(operands.names[k], indices)
        if expression is None
        else notation.expression(expression.at(indices))
    )
    return f"{left} = {notation.reduced(how, [ranged[d] for d in axes])}{read}"


def _explicit(terms: Sum, shape: Sequence[int], operands: Operands) -> list[Term]:
    return [x for t in terms if (x := explicit(t, shape, operands.stays)) is not None]


def _is_implied(v: Variable, size: int, terms: Sequence[Term], operands: Operands) -> bool:
    """Tell whether a variable alone indexes some axis, and all such axes have as many elements as it has values."""
    reads = [(x.operand, x.access) for t in terms for x in (*t.factors, *t.brackets) if isinstance(x, (Read, Lookup))]
    axes = [zip(access, operands.shapes[k], strict=True) for k, access in reads if k not in operands.expressions]
    return {n for axis in axes for a, n in axis if a.variable == v} == {size}


def formula(terms: Sum, shape: Sequence[int], operands: Operands, notation: Notation = TEXT) -> str:
    """Write a sum of terms as a formula, for a result of this shape with indices a, b, ..

    Args:
      operands: names, by number.
    """
    left, parts = _explicit(terms, shape, operands), list[tuple[bool, str]]()
    while left:
        t = left.pop(0)
        other = conjugate(t, operands.real)
        if other is not t and other in left:
            left.remove(other)
            parts.append(_real_part(t, len(shape), operands, notation))
        else:
            is_subtracted = is_negative(t.coefficient)
            text = _product(t.scaled(-1) if is_subtracted else t, len(shape), operands, notation)
            parts.append((is_subtracted, text))
    return signed_sum(parts) or "0"


def _real_part(t: Term, rank: int, operands: Operands, notation: Notation) -> tuple[bool, str]:
    """Write a term plus its conjugate: twice the real part, or the imaginary part if the coefficient is imaginary."""
    c, name = t.coefficient, "Re"
    if isinstance(c, complex) and not c.real:
        c, name = -c.imag, "Im"
    inside, number = (t.scaled(2), 1) if isinstance(c, complex) else (t.unit, 2 * c)
    text = notation.part(name, _product(inside, rank, operands, notation))
    size = abs(number)
    factor = "" if size == 1 else f"{int(size) if size == int(size) else size}{notation.times}"
    return is_negative(c), factor + text


def is_negative(c: Any) -> bool:
    return not isinstance(c, complex) and c < 0


def free_names(rank: int, operands: Operands) -> list[str]:
    """Name the indices of a result by letters that are neither names of operands nor hints of the user."""
    taken = {*operands.names, *[name for names in operands.hints.values() for name in names]}
    return list(islice((x for x in letters(FREE) if x not in taken), rank))


class IndexNames:
    """Names of the variables of an explicit term, and of operands."""

    def __init__(self, t: Term, rank: int, operands: Operands) -> None:
        self.sizes: tuple[int, ...] = t.sizes
        free = free_names(rank, operands)
        order = [v for v in dict.fromkeys(_variables_in_order(t)) if v >= rank]
        bound = _bound_names(t, order, {*operands.names, *free}, operands)
        self._names, self._operands = {**dict(enumerate(free)), **bound}, operands
        self.bound: list[Variable] = order

    def variable(self, v: Variable) -> str:
        return self._names[v]

    def operand(self, k: int) -> str:
        return self._operands.names[k]

    def symbol(self, s: Symbol) -> str:
        name = self.operand(s.operand)
        return name if s.operand in self._operands.indices else f"clip({name}, {s.low}, {s.high})"

    def is_boolean(self, k: int) -> bool:
        return k in self._operands.booleans

    def expression(self, k: int, access: Sequence[Affine]) -> IndexExpression | None:
        """Write the read of an operand that is a function of its indices; None if it is none."""
        found = self._operands.expressions.get(k)
        return None if found is None else found.at(list(map(self.index, access)))

    def index(self, a: Affine) -> str:
        return named_affine(a, self)


def _bound_names(t: Term, order: Sequence[Variable], taken: set[str], operands: Operands) -> dict[Variable, str]:
    """Name summed variables by the user's hint for an axis that they index, if that name is free, else by letters."""
    found = dict[Variable, str]()
    for v in order:
        axes = [(f.operand, d) for f in _factors(t) for d, a in enumerate(f.access) if [*variables_of(a)] == [v]]
        axes.sort(key=lambda axis: axis not in operands.stays)
        hints = [name for axis in axes for name in operands.hints.get(axis, ())]
        wanted = [*hints, *[f"{name}{n}" for n in range(1, len(order)) for name in hints]]
        name = next((x for x in wanted if x not in taken and x not in found.values()), None)
        if name is not None:
            found[v] = name
    rest = (x for x in letters(BOUND) if x not in taken and x not in found.values())
    return {v: found[v] if v in found else next(rest) for v in order}


def _factors(t: Term) -> list[Read]:
    """Order factors as they are printed: those with most indices first."""
    return sorted(t.factors, key=lambda f: -len(f.access))


def _variables_in_order(t: Term) -> Iterator[Variable]:
    """Yield variables in the order in which they are printed, with repeats; those of brackets and unused ones last."""
    for access in [*[f.access for f in _factors(t)], *map(indices_of, t.brackets)]:
        for a in access:
            yield from variables_of(a)
    yield from range(len(t.sizes))


def _product(t: Term, rank: int, operands: Operands, notation: Notation) -> str:
    names = IndexNames(t, rank, operands)

    def read(f: Read) -> str:
        found = names.expression(f.operand, f.access)
        if found is not None:
            text = notation.expression(found.in_parentheses(found.level > 0 and not names.is_boolean(f.operand)))
            return f"[{text}]" if names.is_boolean(f.operand) else text
        text = notation.operand(names.operand(f.operand), [names.index(a) for a in f.access])
        return notation.conjugated(text) if f.use is Use.CONJUGATED else text

    def powers(found: list[Read]) -> list[str]:
        counts = Counter(map(read, found))
        return [x if n == 1 else notation.power(x, n) for x, n in counts.items()]

    factors = _factors(t)
    above = [*brackets_text(t, names, notation), *powers([f for f in factors if f.use is not Use.DIVIDED])]
    below = powers([f for f in factors if f.use is Use.DIVIDED])
    number = [] if t.coefficient == 1 and above else [_number(t.coefficient)]
    if not names.bound:
        return notation.over(notation.times.join([*number, *above]), below)
    summed = notation.reduced(TOTAL, [_ranged(v, t, names, operands, notation) for v in names.bound])
    if not above:
        return summed + notation.over(*number, below)
    return notation.times.join([*number, summed + notation.over(notation.times.join(above), below)])


def _ranged(v: Variable, t: Term, names: IndexNames, operands: Operands, notation: Notation) -> str:
    """Write a summed variable, with its range unless that is implied."""
    name, is_implied = names.variable(v), not notation.is_sized and _is_implied(v, t.sizes[v], [t], operands)
    return name if is_implied else f"{name}<{t.sizes[v]}"


def _number(c: Any) -> str:
    return str(c)


def brackets_text(t: Term, names: IndexNames, notation: Notation) -> list[str]:
    """Write the brackets of a term; two that bound an index from both sides become one, `[0 <= i < 3]`."""
    left, found = list(t.brackets), list[str]()
    accesses = {a for f in t.factors for a in f.access} | set(variables(t.sizes))
    while left:
        b = left.pop(0)
        other = next((x for x in left if _is_range(b, x)), None)
        if other is None:
            found.append(_bracket(b, names, notation))
            continue
        left.remove(other)
        shorter = min(b.index, other.index, key=lambda a: abs(a.constant))
        index = next((x.index for x in (b, other) if x.index in accesses), shorter)
        size = (b.index + other.index).constant + 1
        found.append(f"[0 {notation.less_or_equal} {names.index(index)} < {size}]")
    return found


def _is_range(b: Bracket, other: Bracket) -> bool:
    both = isinstance(b, NotNegative) and isinstance(other, NotNegative)
    return both and (b.index + other.index).is_constant


def _bracket(b: Bracket, names: IndexNames, notation: Notation) -> str:
    if isinstance(b, Lookup):
        found = names.expression(b.operand, b.access)
        if found is not None:
            needed = found.level >= COMPARISON and not (b.index.is_constant and b.index.constant)
            read = notation.expression(found.in_parentheses(needed))
        else:
            read = notation.operand(names.operand(b.operand), [names.index(a) for a in b.access])
        if names.is_boolean(b.operand) and b.index.is_constant:
            return f"[{read}]" if b.index.constant else f"[not {read}]"
        if b.limits and not b.is_within and not names.is_boolean(b.operand):
            read = f"clip({read}, {b.limits[0]}, {b.limits[1]})"
        return f"[{read} = {names.index(b.index)}]"
    left, right = sides(b.index)
    if isinstance(b, IsZero):
        return f"[{names.index(left)} = {names.index(right)}]"
    if left.is_constant:
        return f"[{names.index(right)} < {left.constant + 1}]"
    return f"[{names.index(right)} {notation.less_or_equal} {names.index(left)}]"
