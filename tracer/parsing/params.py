"""Parse the params of equations: `axes=(0, 1) dtype=float32 mode=CLIP jaxpr=@body`.

Words are members of enumerations, dtypes, or names of Python objects, which are given to the reader. A tuple becomes
the named tuple that the typing rule of the primitive has at that param.
"""

import ast
import inspect
from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial
from typing import Any, NamedTuple, get_args

from tapeless.tracer import dtypes
from tapeless.tracer.core import Primitive
from tapeless.tracer.parsing.tokens import Reader, Token, names_listed, read_type
from tapeless.tracer.primitives import kinds
from tapeless.tracer.primitives.contraction import Precision
from tapeless.tracer.primitives.dot_algorithms import DotAlgorithmPreset
from tapeless.tracer.primitives.elementwise import RoundingMethod
from tapeless.tracer.primitives.fourier import FftType
from tapeless.tracer.primitives.indexing import GatherScatterMode
from tapeless.tracer.primitives.random import RandomAlgorithm
from tapeless.tracer.printing import records

_ENUMS: tuple[type[Enum], ...] = (
    Precision, DotAlgorithmPreset, GatherScatterMode, RoundingMethod, FftType, RandomAlgorithm,
)  # fmt: skip
_MEMBERS = {member.name: member for enum in reversed(_ENUMS) for member in enum}
_CONSTANTS = {"None": None, "True": True, "False": False}
_TWO = """add sub difference mul div rem max min nextafter atan2 and or xor
 shift_left shift_right_logical shift_right_arithmetic
 eq ne lt le gt ge beta betaln comb poch xlogy xlog1py kl_div polygamma zeta igamma igammac igamma_grad_a
 random_gamma_grad"""
_OPERANDS = dict.fromkeys(_TWO.split(), 2) | {
    "betainc": 3,
    "betaincc": 3,
}  # of elementwise operations that take more than one
_LEFT_OUT = {"precision": (Precision.DEFAULT, Precision.DEFAULT)}


class Maker(NamedTuple):
    """An object that is written as a call: `budget(100)`."""

    function: Callable[..., Any]


class ParamReader:
    """Parser of the params in one text: `programs` read so far by title, and Python `objects` by name.

    Objects that are a `Maker` are called with the values in parentheses behind their name. `rule_named` makes a
    placeholder for a function with a custom rule that is not among the objects.
    """

    def __init__(
        self,
        reader: Reader,
        programs: Mapping[str, Any],
        objects: Mapping[str, Any],
        rule_named: Callable[[str], Any] | None = None,
    ) -> None:
        self._reader, self._programs, self._objects, self._rule_named = reader, programs, objects, rule_named

    def all(self, primitive: Primitive) -> dict[str, Any]:
        """Read params up to the closing bracket."""
        reader, found = self._reader, dict[str, Any]()
        while not reader.took("]"):
            token = reader.expect_kind("name", f"a param of {primitive}")
            if token.text in found:
                reader.fail(f"the param {token.text} is there twice", token)
            reader.expect("=", f"the param {token.text}")
            found[token.text] = self._rule() if token.text == "custom" else self.value()
        return found

    def value(self) -> Any:
        """Read the value of a param."""
        reader = self._reader
        token = reader.next
        if reader.took("("):
            return self._tuple()
        if token.kind == "number":
            return _number(reader.take().text)
        if token.kind == "string":
            return ast.literal_eval(reader.take().text)
        if token.kind == "title":
            return self._program(reader.take())
        if token.kind == "object":
            return self._object(reader.take())
        is_type = token.text == "~" or reader.ahead().text == "["
        if is_type and (token.text == "~" or dtypes.of_short_name(token.text)):
            return read_type(reader)
        return self._word(reader.expect_kind("name", "the value of a param"))

    def _rule(self) -> Any:
        """Read the name of a function with a custom rule."""
        token = self._reader.next
        if self._rule_named is None or token.text in self._objects:
            return self.value()
        return self._rule_named(self._reader.take().text)

    def _tuple(self) -> tuple[Any, ...]:
        found: list[Any] = []
        while not self._reader.took(")"):
            if found:
                self._reader.expect(",", "a tuple")
                if self._reader.took(")"):
                    break
            found.append(self.value())
        return tuple(found)

    def _program(self, token: Token) -> Any:
        if token.text not in self._programs:
            self._reader.fail(
                f"no program {token.text} stands above: there are {names_listed([*self._programs])}", token
            )
        return self._programs[token.text]

    def _word(self, token: Token) -> Any:
        word = token.text
        if word in _CONSTANTS:
            return _CONSTANTS[word]
        if word in records and self._reader.took("("):
            return self._record(records[word])
        if isinstance(self._objects.get(word), Maker):
            return self._made(token)
        for table in (self._objects, _MEMBERS):
            if word in table:
                return table[word]
        return dtypes.of_name(word) or self._object(token)

    def _record(self, cls: type) -> Any:
        fields: dict[str, Any] = {}
        while not self._reader.took(")"):
            if fields:
                self._reader.expect(",", cls.__name__)
            name = self._reader.expect_kind("name", f"a field of {cls.__name__}").text
            self._reader.expect("=", f"the field {name}")
            fields[name] = self.value()
        return cls(**fields)

    def _made(self, token: Token) -> Any:
        self._reader.expect("(", token.text)
        try:
            return self._objects[token.text].function(*self._tuple())
        except (TypeError, ValueError) as error:
            self._reader.fail(f"{token.text} cannot be made so: {error}", token)

    def _object(self, token: Token) -> Any:
        if token.text in self._objects:
            return self._objects[token.text]
        return self._reader.fail(
            f"{token.text} is a Python object, such as a function, of which text has only the name: "
            f"give it, objects={{{token.text!r}: ...}}",
            token,
        )


def _number(text: str) -> Any:
    if text.lstrip("-").isdigit():
        return int(text)
    return complex(text) if text.endswith(("j", "j)")) else float(text)


def check_count(primitive: Primitive, n: int) -> None:
    """Check that an elementwise operation has `n` operands (other typing rules count them). Raises: TypeError."""
    if is_elementwise(primitive) and n != _OPERANDS.get(primitive.name, 1):
        raise TypeError(f"{primitive} takes {_OPERANDS.get(primitive.name, 1)}, not {n}")


def is_elementwise(primitive: Primitive) -> bool:
    """Tell whether the typing rule is one of elementwise operations, which take any number of operands."""
    return primitive.typing_rule.__module__ == kinds.__name__


def complete_params(primitive: Primitive, given: dict[str, Any]) -> dict[str, Any]:
    """Add default values of params that were left out.

    Tuples become the named tuples of the typing rule.

    Raises: TypeError naming params that the primitive does not have, or that are missing.
    """
    parameters = _parameters(primitive.typing_rule)
    known = {p.name: p.annotation for p in parameters if p.kind is p.KEYWORD_ONLY}
    optional = {p.name for p in parameters if p.default is not p.empty}
    odd = [name for name in given if name not in known]
    if odd and not any(p.kind is p.VAR_KEYWORD for p in parameters):
        raise TypeError(f"{primitive} has no param {', '.join(odd)}: it has {names_listed([*known])}")
    left_out = [name for name in known if name not in given and name not in optional]
    if needed := [name for name in left_out if name not in _LEFT_OUT and not _may_be_none(known[name])]:
        raise TypeError(f"{primitive} needs a value of {', '.join(needed)}")
    given |= {name: _LEFT_OUT.get(name) for name in left_out}
    return {name: _conformed(value, known.get(name)) for name, value in given.items()}


def _may_be_none(annotation: Any) -> bool:
    return annotation is Any or type(None) in get_args(annotation)


def _parameters(rule: Callable[..., Any]) -> list[inspect.Parameter]:
    function = rule.func if isinstance(rule, partial) else rule
    return [*inspect.signature(function).parameters.values()]


def _conformed(value: Any, annotation: Any) -> Any:
    if type(value) is tuple and isinstance(annotation, type) and hasattr(annotation, "_fields"):
        return annotation(*value)
    return value
