"""Parse programs that printing.py or a person wrote, and check each equation by its typing rule.

    text      = { "@name =" program } program
    program   = "{ lambda" [ "[" constants "]" ] inputs [";" linear inputs] "." [ "let" { equation } ] "in" results "}"
    equation  = { name ":" type } "=" primitive [ "[" params "]" ] { operand }

Equations stand on lines of their own, or have a semicolon between them. Types of results may be left out. A variable is
linear if its name has a dot. Errors name the line and the column, and both types.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tapeless.tracer import core, dtypes, linear_vars
from tapeless.tracer.core import Primitive
from tapeless.tracer.extended_dtypes import KEY
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from tapeless.tracer.parsing.params import ParamReader, check_count, complete_params
from tapeless.tracer.parsing.terms import TermOperands, read_ein
from tapeless.tracer.parsing.tokens import Reader, Token, names_listed, read_element_type, read_type
from tapeless.tracer.primitives.ein import ein_p
from tapeless.tracer.primitives.random import random_wrap
from tapeless.tracer.printing import DOT
from tapeless.tracer.rules import import_rules
from tapeless.tracer.scalar_text import expected_type, read_scalar
from tapeless.tracer.types import ShapedArray, exact


class ReadProgram(NamedTuple):
    """A parsed program, how many of its inputs are constants, and their values, None if these are not written."""

    jaxpr: Jaxpr
    n_constants: int
    values: tuple[Any, ...] | None


def read_program(
    who: str,
    text: str,
    primitives: Mapping[str, Primitive] | None = None,
    objects: Mapping[str, Any] | None = None,
    of_any_type: Collection[Primitive] = (),
    rule_named: Callable[[str], Any] | None = None,
) -> ReadProgram:
    """Parse a program and the programs above it, which it calls.

    Args:
      who: the function that errors name.
      primitives: further primitives, by name. objects: Python objects that params hold, by name.
      of_any_type: primitives without a typing rule: their results have the types and dots that are written.
      rule_named: makes a placeholder for a function with a custom_jvp or custom_vjp rule that is not in `objects`.
    Raises: ProgramTextError naming line and column, if the text is no program, or if the program is not well typed:
      then both types are named.
    """
    reader = Reader(who, text)
    programs: dict[str, Jaxpr] = {}
    allowed = _Allowed(primitives or {}, objects or {}, of_any_type, rule_named)
    reader.skip_lines()
    while reader.next.kind == "title":
        title = reader.take()
        if title.text in programs:
            reader.fail(f"a program {title.text} stands above already", title)
        reader.expect("=", "a program with a name")
        one = _ProgramReader(reader, programs, allowed)
        programs[title.text] = one.program(title.text[1:]).jaxpr
        reader.skip_lines()
    found = _ProgramReader(reader, programs, allowed).program("f")
    reader.skip_lines()
    if reader.next.kind != "end":
        reader.fail(f"the text goes on after the program: {reader.shown(reader.next)}")
    return found


class _Allowed(NamedTuple):
    """Primitives and objects that the caller of `read_program` adds."""

    primitives: Mapping[str, Primitive]
    objects: Mapping[str, Any]
    of_any_type: Collection[Primitive]
    rule_named: Callable[[str], Any] | None


class _Declared(NamedTuple):
    """A variable as it is written: its name, and its type if there is one."""

    token: Token
    aval: ShapedArray | None

    @property
    def linear(self) -> bool:
        return DOT in self.token.text


class _ProgramReader:
    """Parser of one program."""

    def __init__(self, reader: Reader, programs: Mapping[str, Jaxpr], allowed: _Allowed) -> None:
        self._reader, self._allowed = reader, allowed
        self._params = ParamReader(reader, programs, allowed.objects, allowed.rule_named)
        self._bound: dict[str, Var] = {}

    def program(self, name: str) -> ReadProgram:
        reader = self._reader
        reader.expect("{", "a program")
        reader.expect("lambda", "a program")
        consts, values = self._constants()
        inputs = [*consts, *self._inputs()]
        eqns: list[Equation] = []
        reader.skip_lines()
        if reader.took("let"):
            eqns = self._equations()
        reader.expect("in", "a program")
        outvars = self._results([v.aval for v in inputs])
        reader.expect("}", "a program")
        return ReadProgram(Jaxpr(inputs, eqns, outvars, name), len(consts), values)

    # ---- inputs and results

    def _constants(self) -> tuple[list[Var], tuple[Any, ...] | None]:
        """Read constants in brackets, and the values of all of them, or None if no value is written."""
        found, values = list[Var](), list[Any]()
        if not self._reader.took("["):
            return found, ()
        while not self._reader.took("]"):
            token = self._reader.next
            found.append(self._input())
            if self._reader.took("="):
                values.append(read_elements(self._reader, found[-1].aval))
            if values and len(values) < len(found):
                self._reader.fail(f"the constant {token.text} has no value, and others have", token)
        return found, tuple(values) if len(values) == len(found) else None

    def _inputs(self) -> list[Var]:
        found: list[Var] = []
        linear = False
        while not self._reader.took("."):
            self._reader.skip_lines()
            if not linear and self._reader.took(";"):
                linear = True
                continue
            token = self._reader.next
            found.append(self._input())
            if linear and not found[-1].linear:
                self._reader.fail(f"{token.text} stands among the linear inputs, and its name has no dot", token)
        return found

    def _input(self) -> Var:
        declared = self._declared()
        if declared.aval is None:
            self._reader.fail(f"the input {declared.token.text} has no type: {declared.token.text}:f32[3]")
        return self._bind(declared, declared.aval)

    def _results(self, types: Sequence[ShapedArray]) -> list[Atom]:
        reader, found = self._reader, list[Atom]()
        while not reader.sees("}"):
            reader.skip_lines()
            if reader.took(",", ";") or reader.sees("}"):
                continue
            found.append(self._atom(types))
            reader.skip_lines()
        return found

    # ---- equations

    def _equations(self) -> list[Equation]:
        reader, found = self._reader, list[Equation]()
        while True:
            while reader.next.kind == "line" or reader.sees(";"):
                reader.take()
            if reader.sees("in", "}"):
                return found
            found.append(self._equation())

    def _equation(self) -> Equation:
        reader = self._reader
        start, declared = reader.next, list[_Declared]()
        while not reader.took("="):
            if declared and reader.next.kind != "name":
                reader.fail(f"'=' belongs here, and there is {reader.shown(reader.next)}")
            if not declared and not self._begins_results():
                break
            declared.append(self._declared())
        primitive = self._primitive()
        opening, position = reader.next, reader.position
        has_params = reader.took("[")
        if has_params:
            reader.skip_brackets()
        operands = self._operands([d.aval for d in declared if d.aval])
        end = reader.position
        if has_params:
            reader.position = position + 1
        params = self._read_params(primitive, operands, declared, opening) if has_params else {}
        reader.position = end
        return self._typed(start, primitive, operands, params, declared)

    def _begins_results(self) -> bool:
        """Tell whether results are next: a name with a type, with more names, or with an equals sign behind it."""
        k = 0
        while self._reader.ahead(k).kind == "name" and self._reader.ahead(k + 1).kind == "name":
            k += 1
        return self._reader.ahead(k).kind == "name" and self._reader.ahead(k + 1).text in (":", "=")

    def _declared(self) -> _Declared:
        token = self._reader.expect_kind("name", "the name of a variable")
        return _Declared(token, read_type(self._reader) if self._reader.took(":") else None)

    def _primitive(self) -> Primitive:
        token = self._reader.expect_kind("name", "the name of an operation")
        try:
            return self._allowed.primitives.get(token.text) or core.primitive_named(token.text)
        except KeyError:
            self._reader.fail(f"there is no operation {token.text!r}", token)

    def _operands(self, results: Sequence[ShapedArray]) -> list[Atom]:
        """Read operands up to the end of the equation; variables first, as literals infer their types from them."""
        reader = self._reader
        start, types = reader.position, list[ShapedArray]()
        while not self._ends_equation():
            if sees_literal(reader):
                skip_literal(reader)
            else:
                types.append(self._variable(reader.take()).aval)
        reader.position = start
        found: list[Atom] = []
        while not self._ends_equation():
            found.append(self._atom([*types, *results]))
        return found

    def _ends_equation(self) -> bool:
        return self._reader.next.kind in ("line", "end") or self._reader.sees(";", "in", "}")

    def _atom(self, types: Sequence[ShapedArray]) -> Atom:
        if sees_literal(self._reader):
            return read_literal(self._reader, types)
        return self._variable(self._reader.take())

    def _variable(self, token: Token) -> Var:
        if token.text not in self._bound:
            known = names_listed([*self._bound])
            self._reader.fail(
                f"{self._reader.shown(token)} is no variable that is bound above: there are {known}", token
            )
        return self._bound[token.text]

    def _bind(self, declared: _Declared, aval: ShapedArray) -> Var:
        name = declared.token.text
        if name in self._bound:
            self._reader.fail(f"{name} is bound above already, to {self._bound[name].aval.str_short()}", declared.token)
        self._bound[name] = found = Var(aval, declared.linear)
        return found

    # ---- params and types

    def _read_params(
        self, primitive: Primitive, operands: Sequence[Atom], declared: Sequence[_Declared], opening: Token
    ) -> dict[str, Any]:
        if primitive is not ein_p:
            return self._params.all(primitive)
        if len(declared) != 1 or declared[0].aval is None:
            self._reader.fail("the result of ein needs its type, y:f32[3] = ein[...]", opening)
        numbers: dict[str, int] = {}
        for name, v in self._bound.items():
            if v in operands:
                numbers[name] = operands.index(v)
        named = TermOperands(numbers, [v.aval for v in operands], declared[0].token.text, declared[0].aval)
        return read_ein(self._reader, self._params, named)

    def _typed(
        self,
        start: Token,
        primitive: Primitive,
        operands: Sequence[Atom],
        params: dict[str, Any],
        declared: Sequence[_Declared],
    ) -> Equation:
        """Make the equation, bind its results. Raises: ProgramTextError if typing fails or infers other types."""
        import_rules(primitive.family)
        given = ", ".join(v.aval.str_short() for v in operands) or "nothing"
        self._checked(start, f"{primitive} of {given}", lambda: check_count(primitive, len(operands)))
        params = self._checked(start, f"{primitive} of {given}", lambda: complete_params(primitive, params))
        is_typed = primitive not in self._allowed.of_any_type
        if not is_typed:
            typed = tuple([self._written(d) for d in declared])
        else:
            avals = tuple([v.aval for v in operands])
            typed = self._checked(start, f"{primitive} of {given}", lambda: primitive.type(avals, params))
        if len(typed) != len(declared):
            self._reader.fail(f"{len(declared)} results are written, and {primitive} has {len(typed)}", start)
        for one, aval in zip(declared, typed):
            if one.aval not in (None, aval):
                self._reader.fail(
                    f"{one.token.text} is written as {one.aval.str_short()}, and {primitive} of {given} gives "
                    f"{aval.str_short()}",
                    one.token,
                )
        eqn = Equation(primitive, operands, params, [self._bind(d, aval) for d, aval in zip(declared, typed)])
        if is_typed:
            self._check_dots(eqn, declared)
        return eqn

    def _checked(self, start: Token, what: str, compute: Any) -> Any:
        try:
            return compute()
        except Exception as error:  # typing rules raise any error for params or types that they do not expect
            self._reader.fail(f"{what} is not well typed: {str(error).rstrip('.')}", start)

    def _written(self, declared: _Declared) -> ShapedArray:
        if declared.aval is None:
            self._reader.fail(f"{declared.token.text} needs its type here", declared.token)
        return declared.aval

    def _check_dots(self, eqn: Equation, declared: Sequence[_Declared]) -> None:
        """Check that exactly the results that depend on linear operands have a dot. Raises: ProgramTextError."""
        for one, linear in zip(declared, linear_vars.linear_results(eqn)):
            if one.linear != linear:
                says, is_so = ("a", "no") if one.linear else ("no", "a")
                self._reader.fail(
                    f"{one.token.text} has {says} dot, and by its operands {eqn.primitive} gives {is_so} linear value "
                    "there",
                    one.token,
                )


# ---- literals ------------------------------------------------------------------------------------------------
# `2.0:f16`, and the values of constants, `[[1.0, 2.0], [3.0, 4.0]]`.


def sees_literal(reader: Reader) -> bool:
    """Tell whether a literal is next: a number, a boolean, a key."""
    token = reader.next
    return token.kind == "number" or token.text in ("True", "False") or _sees_key(reader)


def read_literal(reader: Reader, types: Iterable[ShapedArray] = ()) -> Literal:
    """Read a literal; without a written type it has the one that `expected_type` infers from `types`."""
    token = reader.next
    if _sees_key(reader):
        dtype = _key_dtype(token)
        return Literal(random_wrap(exact(_words(reader), np.uint32), dtype.impl))
    reader.take()
    aval = _type_behind(reader, token) or expected_type(token.text, types)
    value = _element(reader, token, aval)
    return Literal(value if aval.weak_type else exact(value), aval)


def skip_literal(reader: Reader) -> None:
    """Skip a literal, whose type is not known yet."""
    token = reader.next
    if _sees_key(reader):
        _words(reader)
    else:
        reader.take()
        _type_behind(reader, token)


def _type_behind(reader: Reader, token: Token) -> ShapedArray | None:
    if reader.next.text != ":" or reader.next.place != token.place + len(token.text):
        return None
    reader.take()
    return read_element_type(reader)


def _sees_key(reader: Reader) -> bool:
    return _key_dtype(reader.next) is not None and reader.ahead().text == "("


def _key_dtype(token: Token) -> Any:
    """Return the dtype of the keys that `key` or `key<rbg>` names; None for another token."""
    found = KEY if token.text == "key" else dtypes.of_short_name(token.text)
    return found if dtypes.is_key(found) else None


def _words(reader: Reader) -> list[int]:
    n = _key_dtype(reader.take()).words
    reader.expect("(", "a key")
    words: list[int] = []
    while not reader.took(")"):
        if words:
            reader.expect(",", "a key")
        token = reader.next
        words.append(reader.integer("a word of a key"))
        if not 0 <= words[-1] < 2**32 or len(words) > n:
            reader.fail(f"a key is {n} words of 32 bits", token)
    return words


def _element(reader: Reader, token: Token, aval: ShapedArray) -> Any:
    try:
        return read_scalar(token.text, aval.dtype)
    except (ValueError, OverflowError) as error:
        reader.fail(f"{token.text} is not a number of {aval.dtype.name}: {error}", token)


def read_elements(reader: Reader, aval: ShapedArray) -> Any:
    """Read the nested lists of a constant to an array of type `aval`. Raises: ProgramTextError for another shape."""
    opening = reader.next
    found: list[Any] = []
    _nested(reader, aval, 0, found)
    if dtypes.is_key(aval.dtype):
        dtype: Any = aval.dtype
        return random_wrap(exact(found, np.uint32).reshape(*aval.shape, dtype.words), dtype.impl)
    if len(found) != aval.size:
        reader.fail(f"{len(found)} elements are here, and {aval.size} belong to {aval}", opening)
    values = np.empty(aval.shape, aval.dtype)
    values.reshape(-1)[:] = found
    return exact(values)


def _nested(reader: Reader, aval: ShapedArray, axis: int, found: list[Any]) -> None:
    if axis == aval.ndim:
        found.append(_key_words(reader, aval) if dtypes.is_key(aval.dtype) else _element(reader, _number(reader), aval))
        return
    opening = reader.expect("[", f"axis {axis} of {aval}")
    count = 0
    while not reader.took("]"):
        if count:
            reader.expect(",", "a list of elements")
        reader.skip_lines()
        _nested(reader, aval, axis + 1, found)
        count += 1
    if count != aval.shape[axis]:
        reader.fail(f"{count} entries are here, and axis {axis} of {aval} has {aval.shape[axis]}", opening)


def _key_words(reader: Reader, aval: ShapedArray) -> list[int]:
    if _key_dtype(reader.next) is not aval.dtype:
        reader.fail(f"a {aval.dtype} belongs here, and there is {reader.shown(reader.next)}")
    return _words(reader)


def _number(reader: Reader) -> Token:
    return reader.take() if reader.sees("True", "False") else reader.expect_kind("number", "a number")
