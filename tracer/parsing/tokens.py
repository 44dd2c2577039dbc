"""Tokenizer of the text of programs, and a reader that goes through the tokens."""

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple, NoReturn

from tapeless.tracer import dtypes
from tapeless.tracer.errors import ProgramTextError
from tapeless.tracer.printing import DOT
from tapeless.tracer.types import ShapedArray

_DIGITS = r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
_PART = rf"(?:{_DIGITS}|inf|nan)"
_KINDS = {
    "space": r"[^\S\n]+",
    "line": r"\n",
    "string": r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"",
    "title": r"@[A-Za-z0-9_<>.]+",
    "object": r"<[A-Za-z_][^<>\n]*>",
    # a variable `j` of a term may have a number before it, and a digit behind it
    "number": rf"0x[0-9a-f]+|\(-?{_PART}[+-]{_PART}j\)|-?{_PART}j(?!\w)|-?{_DIGITS}|-?(?:inf|nan)(?!\w)",
    "name": r"key<\w+>|[^\W\d][\w\u0307]*'?",
    "mark": r"\+=|>=|\S",
}
_PATTERN = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _KINDS.items()))
_EXCERPT = 100  # characters of a line that an error shows


class Token(NamedTuple):
    """A token: its kind, its text, and the offset where it begins."""

    kind: str
    text: str
    place: int


def tokens_of(text: str) -> list[Token]:
    """Split a text into tokens, without spaces, with ends of lines, and with an `end` token behind the last."""
    found = [Token(m.lastgroup or "", _dotted(m.group()), m.start()) for m in _PATTERN.finditer(text)]
    return [*[token for token in found if token.kind != "space"], Token("end", "", len(text))]


def _dotted(text: str) -> str:
    """Write a linear variable that is typed as `x'` with a dot, as it is printed."""
    return text[0] + DOT + text[1:-1] if text[0] != "'" and text.endswith("'") else text


class Reader:
    """A position among the tokens of a text; `who` is the function that errors name."""

    def __init__(self, who: str, text: str) -> None:
        self.who: str = who
        self.text: str = unicodedata.normalize("NFD", text)
        self.tokens: list[Token] = tokens_of(self.text)
        self.position: int = 0

    @property
    def next(self) -> Token:
        """Return the token that is read next."""
        return self.tokens[self.position]

    def ahead(self, n: int = 1) -> Token:
        """Return the token `n` after the next one."""
        return self.tokens[min(self.position + n, len(self.tokens) - 1)]

    def take(self) -> Token:
        """Read the next token; the end of the text can be read again."""
        token = self.next
        if token.kind != "end":
            self.position += 1
        return token

    def skip(self, n: int) -> None:
        """Skip `n` tokens."""
        self.position += n

    def sees(self, *texts: str) -> bool:
        """Tell whether the next token is one of these marks or words."""
        return self.next.text in texts and self.next.kind in ("mark", "name")

    def took(self, *texts: str) -> bool:
        """Read the next token if it is one of these, and tell whether it was."""
        seen = self.sees(*texts)
        self.position += seen
        return seen

    def expect(self, text: str, where: str) -> Token:
        """Read this mark or word. Raises: ProgramTextError if something else is there."""
        if not self.sees(text):
            self.fail(f"{where} needs {text!r} here, and there is {self.shown(self.next)}")
        return self.take()

    def expect_kind(self, kind: str, what: str) -> Token:
        """Read a token of a kind. Raises: ProgramTextError if one of another kind is there."""
        if self.next.kind != kind:
            self.fail(f"{what} belongs here, and there is {self.shown(self.next)}")
        return self.take()

    def integer(self, what: str) -> int:
        """Read an integer. Raises: ProgramTextError if something else is there."""
        token = self.expect_kind("number", what)
        if not token.text.lstrip("-").isdigit():
            self.fail(f"{what} belongs here, and there is {token.text}", token)
        return int(token.text)

    def skip_lines(self) -> None:
        """Skip ends of lines."""
        while self.next.kind == "line":
            self.position += 1

    def skip_brackets(self) -> None:
        """Skip to behind the bracket that closes the one just read. Raises: ProgramTextError if there is none."""
        depth, opening = 1, self.tokens[self.position - 1]
        while depth:
            token = self.take()
            if token.kind == "end":
                self.fail("this bracket is not closed", opening)
            depth += (token.text == "[") - (token.text == "]") if token.kind == "mark" else 0

    def shown(self, token: Token) -> str:
        """Describe a token for a message."""
        return {"end": "the end of the text", "line": "the end of the line"}.get(token.kind) or repr(token.text)

    def fail(self, what: str, token: Token | None = None) -> NoReturn:
        """Raise ProgramTextError naming the line and the column of a token, of the next one if it is None."""
        place = (token or self.next).place
        start, line = self.text.rfind("\n", 0, place) + 1, self.text.count("\n", 0, place) + 1
        column = len(unicodedata.normalize("NFC", self.text[start:place])) + 1
        whole = self.text[start:].split("\n", 1)[0]
        first = max(0, place - start - _EXCERPT)
        excerpt, before = whole[first : first + 2 * _EXCERPT], whole[first : place - start]
        mark = " " * sum(not unicodedata.combining(c) for c in before) + "^"
        raise ProgramTextError(
            f"{self.who}: line {line}, column {column}: {what}.\n  {excerpt}\n  {mark}", line, column
        )


def read_type(reader: Reader) -> ShapedArray:
    """Read a type, `~f32[3,2]`, with its shape."""
    aval = read_element_type(reader)
    reader.expect("[", "a type")
    return aval.update(shape=read_shape(reader))


def read_element_type(reader: Reader) -> ShapedArray:
    """Read the dtype of a number, and whether it is weak: `~f32`."""
    weak = reader.took("~")
    token = reader.expect_kind("name", "the short name of a dtype, such as f32,")
    dtype = dtypes.of_short_name(token.text)
    if dtype is None:
        reader.fail(f"{token.text!r} is not the short name of a dtype: they are like f32, i64, bool, key<fry>", token)
    return ShapedArray((), dtype, weak)


def read_shape(reader: Reader) -> tuple[int, ...]:
    """Read the sizes of a shape, whose opening bracket was read."""
    sizes: list[int] = []
    while not reader.took("]"):
        if sizes:
            reader.expect(",", "a shape")
        token = reader.next
        sizes.append(reader.integer("a size"))
        if sizes[-1] < 0:
            reader.fail("a size is not negative", token)
    return tuple(sizes)


def names_listed(names: Sequence[str], most: int = 10) -> str:
    """Join the first names for a message."""
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "") if names else "none"
