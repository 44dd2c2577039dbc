"""Exact texts of errors, with the places of the test's own source in them."""

import inspect
import os
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

# What errors end with where 64 bits meet 32 that may have come of NumPy's arrays.
WIDTHS = (
    "\n  NumPy arrays of 64 bits keep their width, as arguments of compiled functions, too: convert where data come "
    "in, set tl.config.numpy_bits = 32 for all of them, "
    'or make 64 bits the default: tl.config.update("default_bits", 64).'
)
# What errors about leaves that are no arrays advise, where nothing is static.
NO_CHILD = "\n  Close over it, or make it a field that is no child: meta_fields of tl.tree_util.register_dataclass."


@contextmanager
def raises(kind: type[Exception], message: str) -> Iterator[None]:
    """Exactly this exception type with exactly this text, and after it at most the user's line."""
    with pytest.raises(kind) as caught:
        yield
    assert caught.type is kind
    assert message == (str(caught.value) if "\n  At " in message else text_of(caught.value))


def text_of(error: BaseException) -> str:
    """The text of an error without the user's line at its end."""
    return str(error).rpartition("\n  At ")[0] or str(error)


def place(f: Callable[..., Any], text: str = "") -> str:
    """`tests/api/test_errors.py:12 (f), y = sin(x)`: where `text` is in `f`; without text, `f at file:line`."""
    lines, first = inspect.getsourcelines(f)
    file = short(inspect.getsourcefile(f))
    if not text:
        return f"{f.__name__} at {file}:{first}"
    offset, line = next((i, line) for i, line in enumerate(lines) if text in line)
    return f"{file}:{first + offset} ({f.__qualname__}), {line.strip()}"


def short(file: Any) -> str:
    """As messages show it: relative, or the bare name if it is elsewhere."""
    relative = os.path.relpath(file)
    return os.path.basename(file) if relative.startswith("..") else relative


def dotted(text: str) -> str:
    """As programs print linear variables: a letter and a combining dot, for which editors may write one character."""
    return unicodedata.normalize("NFD", text)
