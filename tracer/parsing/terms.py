"""Reading the terms of `ein`: `c[i,j] += Σ k. 2.0 [i >= k] a[i,k] b[k,j] / d[i]`, as `term_printing.py` writes them."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from tapeless.tracer.parsing.params import ParamReader
from tapeless.tracer.parsing.tokens import Reader, Token, names_listed
from tapeless.tracer.primitives.contraction import Precision
from tapeless.tracer.primitives.ein import expected_dtype
from tapeless.tracer.terms.affine import Access, Affine, symbol
from tapeless.tracer.terms.term import Bracket, IsZero, Lookup, NotNegative, Read, Term, Use, term
from tapeless.tracer.terms.term_printing import expected_sizes
from tapeless.tracer.types import ShapedArray


class TermOperands(NamedTuple):
    """Operands that the terms of an equation may read, by name, and the equation's result."""

    numbers: dict[str, int]
    types: Sequence[ShapedArray]
    result: str
    type: ShapedArray


def read_ein(reader: Reader, params: ParamReader, operands: TermOperands) -> dict[str, Any]:
    """Read the params of an `ein` up to the closing bracket: terms, and those that are written beside."""
    terms: list[Term] = []
    while reader.next.text == operands.result and reader.ahead().text == "[":
        terms.append(_TermReader(reader, operands).term())
        reader.took(";")
    if not terms:
        reader.fail(f"a term belongs here, {operands.result}[...] += ..., and there is {reader.shown(reader.next)}")
    given: dict[str, Any] = {"dtype": expected_dtype(terms, operands.type)}
    while not reader.took("]"):
        token = reader.expect_kind("name", "a term, or a param of ein,")
        reader.expect("=", f"the param {token.text}")
        given[token.text] = params.value()
    precision = given.pop("precision", (Precision.DEFAULT, Precision.DEFAULT))
    return {"terms": tuple(terms), "shape": operands.type.shape, **given, "precision": precision}


_LOOKUPS = {"clip": (2,), "within": (2,), "entry": (1, 3)}  # how many numbers stand behind what is looked up


class _TermReader:
    """Reading one term. Variables are numbered as they come."""

    def __init__(self, reader: Reader, operands: TermOperands) -> None:
        self._reader, self._operands = reader, operands
        self._variables: dict[str, int] = {}
        self._sizes: dict[int, int] = {}
        self._places: dict[int, Token] = {}

    def term(self) -> Term:
        reader = self._reader
        start = reader.take()
        out = self._indices()
        reader.expect("+=", "a term")
        if reader.took("Σ"):
            self._sized_variables(".")
            reader.expect(".", "the variables of a sum")
        coefficient = self._coefficient()
        brackets = list(iter(self._bracket, None))
        factors = list(iter(self._factor, None))
        if reader.took("for"):
            self._sized_variables("]", ";")
        sizes = self._all_sizes(out, factors, brackets)
        try:
            return term(out, sizes, factors, brackets, coefficient)
        except (TypeError, ValueError, IndexError) as error:
            reader.fail(f"this is not a term: {error}", start)

    def _sized_variables(self, *ends: str) -> None:
        while not self._reader.sees(*ends):
            v = self._variable(self._reader.expect_kind("name", "an index variable"))
            if self._reader.took("<"):
                self._sizes[v] = self._reader.integer("the size of an index variable")

    def _coefficient(self) -> Any:
        if self._reader.next.kind != "number":
            return 1
        text = self._reader.take().text
        if text.lstrip("-").isdigit():
            return int(text)
        return complex(text) if text.endswith(("j", "j)")) else float(text)

    def _all_sizes(self, out: Access, factors: Sequence[Read], brackets: Sequence[Bracket]) -> dict[int, int]:
        shapes = [x.shape for x in self._operands.types]
        expected = expected_sizes(out, factors, brackets, shapes, self._operands.type.shape)
        sizes = {**expected, **self._sizes}
        for name, v in self._variables.items():
            if sizes.get(v, -1) < 0:
                self._reader.fail(
                    f"how many values {name} has is not known, as it is nowhere an index by itself: write {name}<n "
                    "behind Σ, or at the end of the term, for",
                    self._places[v],
                )
        return sizes

    # ---- factors and brackets

    def _factor(self) -> Read | None:
        """Read a factor, if there is one more."""
        reader = self._reader
        if reader.took("/"):
            return self._read()._replace(use=Use.DIVIDED)
        if reader.sees("conj") and reader.ahead().text == "(":
            reader.skip(2)
            read = self._read()
            reader.expect(")", "a conjugated factor")
            return read._replace(use=Use.CONJUGATED)
        is_param = reader.ahead().text == "="
        return None if reader.sees("for", ";", "]") or is_param else self._read()

    def _read(self) -> Read:
        k = self._operand()
        return Read(k, self._indices() if self._reader.sees("[") else ())

    def _operand(self) -> int:
        token = self._reader.take()
        if token.text == "#":
            k = self._reader.integer("the number of an operand")
            if not 0 <= k < len(self._operands.types):
                self._reader.fail(f"there is no operand {k} of {len(self._operands.types)}", token)
            return k
        if token.text not in self._operands.numbers:
            known = names_listed([*self._operands.numbers])
            self._reader.fail(f"{self._reader.shown(token)} is no operand of this equation, which has {known}", token)
        return self._operands.numbers[token.text]

    def _bracket(self) -> Bracket | None:
        """Read `[i >= j]`, `[i = j]`, `[i = b[j]]`, if there is one more."""
        reader = self._reader
        if not reader.took("["):
            return None
        left = self._affine()
        if reader.took(">="):
            found: Bracket = NotNegative(left - self._affine())
        else:
            reader.expect("=", "a bracket")
            found = self._lookup(left) or IsZero(left - self._affine())
        reader.expect("]", "a bracket")
        return found

    def _lookup(self, index: Affine) -> Lookup | None:
        reader = self._reader
        if self._is_operand(reader.next):
            return Lookup(index, *self._read()[:2])
        is_call = any(map(reader.sees, _LOOKUPS)) and self._is_operand(reader.ahead(2))
        bracket_behind = 4 if reader.ahead(2).text == "#" else 3
        if not is_call or reader.ahead(bracket_behind).text != "[":
            return None
        name = reader.next.text
        reader.skip(2)
        read, numbers = self._read(), self._numbers(name)
        key = numbers.pop() if name == "entry" else 0
        limits = (numbers[0], numbers[1]) if numbers else None
        return Lookup(index, read.operand, read.access, limits, name == "within" or bool(key and limits), key)

    def _is_operand(self, token: Token) -> bool:
        return token.text == "#" or token.text in self._operands.numbers

    def _limits(self) -> tuple[int, int]:
        low, high = self._numbers("clip")
        return low, high

    def _numbers(self, name: str) -> list[int]:
        """Read `, 0, 3)`: limits of a lookup; if it is of entries, also or only how many lookups tell them apart."""
        found = list[int]()
        while not self._reader.took(")"):
            self._reader.expect(",", name)
            found.append(self._reader.integer("a number of a lookup"))
        if len(found) not in _LOOKUPS[name]:
            self._reader.fail(f"{name} takes {' or '.join(map(str, _LOOKUPS[name]))} numbers, not {len(found)}")
        return found

    # ---- indices

    def _indices(self) -> Access:
        reader, found = self._reader, list[Affine]()
        reader.expect("[", "indices")
        while not reader.took("]"):
            if found:
                reader.expect(",", "indices")
            found.append(self._affine())
        return tuple(found)

    def _affine(self) -> Affine:
        """Read `2i - j + clip(s, 0, 3) + 4`."""
        reader = self._reader
        total = (-1 if reader.took("-") else 1) * self._part()
        while True:
            if reader.took("+"):
                total = total + self._part()
            elif reader.took("-"):
                total = total - self._part()
            elif reader.next.kind == "number" and reader.next.text.startswith("-"):
                total = total + self._part()
            else:
                return total

    def _part(self) -> Affine:
        reader = self._reader
        token = reader.next
        if token.kind != "number":
            return self._unit()
        reader.take()
        numeral = re.fullmatch(r"(-?\d+)(j?)", token.text)
        if numeral is None:
            reader.fail(f"indices are of integers, not of {token.text}", token)
        k = int(numeral[1])
        if numeral[2]:  # which is a variable here
            return k * Affine(0, ((self._variable(Token("name", "j", token.place)), 1),))
        behind = reader.next.kind == "name" and reader.next.place == token.place + len(token.text)
        return k * self._unit() if behind else Affine(k)

    def _unit(self) -> Affine:
        reader = self._reader
        token = reader.expect_kind("name", "an index")
        if token.text != "clip" or not reader.took("("):
            return Affine(0, ((self._variable(token), 1),))
        operand = self._operand()
        return symbol(operand, *self._limits())

    def _variable(self, token: Token) -> int:
        if self._is_operand(token):
            self._reader.fail(f"{token.text} is an operand, and stands for an index here", token)
        v = self._variables.setdefault(token.text, len(self._variables))
        self._places.setdefault(v, token)
        return v
