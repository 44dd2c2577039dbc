"""Terms as text: `out[i,j] += Σ k. a[i,k] b[k,j]`, which `parsing/terms.py` reads.

A variable takes as many values as the shortest axis that it alone is an index of has elements. Where it does not, or is
no such index, its size is written: `Σ k<4.`, or `for i<3` at the end if the result is indexed by it.
"""

import itertools
import string
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from tapeless.tracer.terms.affine import Affine, Symbol, Variable
from tapeless.tracer.terms.term import Bracket, IsZero, Lookup, Read, Term, Use, variables_in

_LETTERS = "ijklmnpqruvw"


Shapes = Sequence[Sequence[int]]


def term_text(
    t: Term,
    out: str = "out",
    operands: Sequence[str] | None = None,
    shapes: Shapes | None = None,
    shape: Sequence[int] = (),
) -> str:
    """Print a term with these names of result and operands, by default `out` and a, b, c, ...

    Variables that the result is not indexed by stand after Σ. With the shapes of the operands and of the result, those
    sizes of variables are printed that the shapes do not let one expect.
    """
    names = TermNames(operands)
    free = variables_in(t.out)
    expected = dict(enumerate(t.sizes))
    if shapes is not None:
        expected = expected_sizes(t.out, t.factors, t.brackets, shapes, shape)
    sizes = ["" if expected.get(v) == n else f"<{n}" for v, n in enumerate(t.sizes)]
    sized = [f"{names.variable(v)}{size}" for v, size in enumerate(sizes)]
    summed = [text for v, text in enumerate(sized) if v not in free]
    unexpected = [text for v, text in enumerate(sized) if v in free and sizes[v]]
    plain = [f for f in t.factors if f.use is not Use.DIVIDED]
    brackets = [f"[{_bracket(b, names)}]" for b in t.brackets]
    parts = [
        *([f"Σ {' '.join(summed)}."] if summed else []),
        *([] if t.coefficient == 1 and (plain or t.brackets) else [f"{t.coefficient}"]),
        *brackets,
        *[_factor(f, names) for f in plain],
        *["/ " + _factor(f, names) for f in t.factors if f.use is Use.DIVIDED],
        *([f"for {' '.join(unexpected)}"] if unexpected else []),
    ]
    return f"{out}[{_access(t.out, names)}] += {' '.join(parts)}"


def expected_sizes(
    out: Sequence[Affine],
    factors: Sequence[Read],
    brackets: Sequence[Bracket],
    shapes: Shapes,
    shape: Sequence[int],
) -> dict[Variable, int]:
    """The sizes that variables have unless another one is written: of the shortest axis that each alone is an index of.

    Variables that are nowhere alone are left out.
    """
    lookups = [b for b in brackets if isinstance(b, Lookup)]
    reads = [(x.access, shapes[x.operand]) for x in (*factors, *lookups)]
    found: dict[Variable, int] = {}
    for access, sizes in [(out, shape), *reads]:
        for index, n in zip(access, sizes):
            if (v := index.variable) is not None:
                found[v] = min(found.get(v, n), n)
    return found


def read_text(f: Read) -> str:
    """Print a read with default names: `a[i + 1,j]`."""
    return _factor(f, TermNames(None))


def affine_text(a: Affine) -> str:
    """Print an index with default names: `2i - j + 3`."""
    return named_affine(a, TermNames(None))


class IndexNaming(Protocol):
    """Names of what indices are made of."""

    def variable(self, v: Variable) -> str: ...

    def symbol(self, s: Symbol) -> str: ...


class TermNames:
    """Names of operands, and of variables: letters that no operand is called by."""

    def __init__(self, operands: Sequence[str] | None) -> None:
        self._operands = operands

    def operand(self, k: int) -> str:
        return self._operands[k] if self._operands is not None else _nth(letters(string.ascii_lowercase), k)

    def symbol(self, s: Symbol) -> str:
        return f"clip({self.operand(s.operand)}, {s.low}, {s.high})"

    def variable(self, v: Variable) -> str:
        taken = self._operands or ()
        return _nth((name for name in letters(_LETTERS) if name not in taken), v)


def _nth(names: Iterator[str], k: int) -> str:
    return next(itertools.islice(names, k, None))


def letters(alphabet: str) -> Iterator[str]:
    """The letters, then each with 1, each with 2, and so on."""
    for number in itertools.count():
        yield from (letter + (str(number) if number else "") for letter in alphabet)


def _factor(f: Read, names: TermNames) -> str:
    read = f"{names.operand(f.operand)}[{_access(f.access, names)}]" if f.access else names.operand(f.operand)
    return f"conj({read})" if f.use is Use.CONJUGATED else read


def _access(access: Sequence[Affine], names: TermNames) -> str:
    return ",".join(named_affine(a, names) for a in access)


def named_affine(a: Affine, names: "IndexNaming") -> str:
    """`2i - j + 3`, with no spaces where there is one part only."""
    pairs = [*_named(a.variables, names.variable), *_named(a.symbols, names.symbol)]
    parts = [(c, name if abs(c) == 1 else f"{abs(c)}{name}") for name, c in pairs]
    if a.constant or not parts:
        parts.append((a.constant, str(abs(a.constant))))
    return signed_sum([(c < 0, part) for c, part in sorted(parts, key=lambda p: p[0] < 0)])


def signed_sum(parts: Sequence[tuple[bool, str]]) -> str:
    """Write a sum of parts, each of which is subtracted or added; empty if there are none."""
    text = "".join([f"{' - ' if negative else ' + '}{part}" for negative, part in parts])
    return "-" + text.removeprefix(" - ") if text.startswith(" - ") else text.removeprefix(" + ")


def _named(pairs: Sequence[tuple[Any, int]], name: Callable[[Any], str]) -> list[tuple[str, int]]:
    return [(name(x), c) for x, c in pairs]


def _bracket(b: Bracket, names: TermNames) -> str:
    """Numbers that are subtracted stand on the other side."""
    if isinstance(b, Lookup):
        read = _factor(Read(b.operand, b.access), names)
        if b.limits or b.key:  # brackets tell a scalar that is looked up from a symbol
            name = "entry" if b.key else "within" if b.is_within else "clip"
            numbers = "".join(f", {n}" for n in (*(b.limits or ()), *([b.key] if b.key else [])))
            read = f"{name}({read if b.access else read + '[]'}{numbers})"
        return f"{named_affine(b.index, names)} = {read}"
    left, right = sides(b.index)
    return f"{named_affine(left, names)} {'=' if isinstance(b, IsZero) else '>='} {named_affine(right, names)}"


def sides(a: Affine) -> tuple[Affine, Affine]:
    """(l, r) with a = l - r and no number in them negative."""
    left = a.part(lambda c: c > 0) + max(a.constant, 0)
    return left, left - a
