"""Reading literals, `2.0:f16`, and the values of constants, `[[1.0, 2.0], [3.0, 4.0]]`."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer.extended_dtypes import WORDS
from tapeless.tracer.incoming import exact
from tapeless.tracer.jaxpr import Literal
from tapeless.tracer.parsing.tokens import Reader, Token, read_element_type
from tapeless.tracer.primitives.random import random_wrap
from tapeless.tracer.scalar_text import expected_type, read_scalar
from tapeless.tracer.types import ShapedArray


def sees_literal(reader: Reader) -> bool:
    """Tell whether a literal is next: a number, a truth value, a key."""
    token = reader.next
    is_key = token.text == "key" and reader.ahead().text == "("
    return token.kind == "number" or token.text in ("True", "False") or is_key


def read_literal(reader: Reader, types: Iterable[ShapedArray] = ()) -> Literal:
    """Read a literal; if no type is behind it, it has the one to be expected among these."""
    token = reader.next
    if token.text == "key":
        return Literal(_key(reader))
    reader.take()
    aval = _type_behind(reader, token) or expected_type(token.text, types)
    value = _element(reader, token, aval)
    return Literal(value if aval.weak_type else exact(value), aval)


def skip_literal(reader: Reader) -> None:
    """Read over a literal, whose type is not known yet."""
    token = reader.next
    if token.text == "key":
        _words(reader)
    else:
        reader.take()
        _type_behind(reader, token)


def _type_behind(reader: Reader, token: Token) -> ShapedArray | None:
    if reader.next.text != ":" or reader.next.place != token.place + len(token.text):
        return None
    reader.take()
    return read_element_type(reader)


def _key(reader: Reader) -> Any:
    return random_wrap(exact(_words(reader), np.uint32))


def _words(reader: Reader) -> list[int]:
    reader.expect("key", "a key")
    reader.expect("(", "a key")
    words: list[int] = []
    while not reader.took(")"):
        if words:
            reader.expect(",", "a key")
        token = reader.next
        words.append(reader.integer("a word of a key"))
        if not 0 <= words[-1] < 2**32 or len(words) > WORDS:
            reader.fail(f"a key is {WORDS} words of 32 bits", token)
    return words


def _element(reader: Reader, token: Token, aval: ShapedArray) -> Any:
    try:
        return read_scalar(token.text, aval.dtype)
    except (ValueError, OverflowError) as error:
        reader.fail(f"{token.text} is not a number of {aval.dtype.name}: {error}", token)


def read_elements(reader: Reader, aval: ShapedArray) -> Any:
    """Read the elements of a constant, as nested lists. Raises: ProgramTextError if they are not of its shape."""
    opening = reader.next
    found: list[Any] = []
    _nested(reader, aval, 0, found)
    if dtypes.is_key(aval.dtype):
        return random_wrap(exact(found, np.uint32).reshape(*aval.shape, WORDS))
    if len(found) != aval.size:
        reader.fail(f"{len(found)} elements are here, and {aval.size} belong to {aval}", opening)
    values = np.empty(aval.shape, aval.dtype)
    values.reshape(-1)[:] = found
    return exact(values)


def _nested(reader: Reader, aval: ShapedArray, axis: int, found: list[Any]) -> None:
    if axis == aval.ndim:
        is_key = dtypes.is_key(aval.dtype)
        found.append(_words(reader) if is_key else _element(reader, _number(reader), aval))
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


def _number(reader: Reader) -> Token:
    return reader.take() if reader.sees("True", "False") else reader.expect_kind("number", "a number")
