"""Parse literals, `2.0:f16`, and the values of constants, `[[1.0, 2.0], [3.0, 4.0]]`."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer.extended_dtypes import KEY
from tapeless.tracer.jaxpr import Literal
from tapeless.tracer.parsing.tokens import Reader, Token, read_element_type
from tapeless.tracer.primitives.random import random_wrap
from tapeless.tracer.scalar_text import expected_type, read_scalar
from tapeless.tracer.types import ShapedArray, exact


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
