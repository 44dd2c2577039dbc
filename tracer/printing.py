"""Print programs as text: `{ lambda x:f32[3] ; ẋ:f32[3]. let y = sin x; c = cos x; ẏ = mul c ẋ in y ; ẏ }`.

Linear variables wear a dot; a semicolon stands between nonlinear and linear, unless they are mixed. Programs inside
params are printed once each, as named functions above the program that calls them.

The text is a format, which `parsing/` reads. It leaves out lines of source and the name of the whole program, and has
the names only of Python objects, such as the functions of callbacks. A number has the type that is inferred from its
equation (`scalar_text.expected_type`), or one behind it: `2.0:f16`. Params that are None, or the default precision, are
left out.
"""

import itertools
import re
import string
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from enum import Enum
from typing import Any, Final

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer.array import Array
from tapeless.tracer.extended_dtypes import KEY
from tapeless.tracer.late_imports import LateModule
from tapeless.tracer.rules import Rules
from tapeless.tracer.scalar_text import expected_type, scalar_text
from tapeless.tracer.types import ShapedArray

_keys: Any = LateModule("tapeless.tracer.primitives.random")  # late, as it imports this module

texts: Final = Rules(
    "printing",
    "rule(eqn, name of the result, names of operands) -> text of some params, and the others",
    absent="its params are printed by their names",
)
records: dict[str, type] = {}  # classes of params that are written and read field by field, by name
RESERVED = frozenset({"in", "let", "lambda", "nan", "inf", "key", "clip", "conj", "for"})  # names that no variable has
DOT = "\u0307"
_NO_TITLE = re.compile(r"[^A-Za-z0-9_<>.]")  # characters that titles do not have


class Names:
    """Names for variables, in order of appearance: a, b, ..., z, aa, ab, ..."""

    def __init__(self) -> None:
        self._given: dict[Any, str] = {}
        self._fresh = _letters()

    def __call__(self, atom: Any) -> str:
        if not hasattr(atom, "value"):
            return self._given.get(atom) or self._name(atom)
        return literal_text(atom)

    def operand(self, atom: Any, types: Iterable[ShapedArray]) -> str:
        """Print an operand: the name of a variable, or a literal, with its type unless it is inferred from `types`."""
        return typed_literal_text(atom, types) if hasattr(atom, "value") else self(atom)

    def _name(self, var: Any) -> str:
        plain = next(name for name in self._fresh if name not in RESERVED)
        name = plain[0] + DOT + plain[1:] if var.linear else plain
        self._given[var] = name
        return name

    def share(self, var: Any, other: Any) -> None:
        """Give a variable the name of another, which is the same value in another program."""
        self._given[var] = self(other)

    def typed(self, var: Any) -> str:
        return f"{self(var)}:{var.aval.str_short()}"


def jaxpr_text(jaxpr: Any, n_constants: int = 0, values: Sequence[str] = (), with_source: bool = False) -> str:
    """Print a whole program; its first `n_constants` inputs are constants, printed in brackets, with `values` if given.

    Args:
      with_source: print the user's line behind each equation, as a comment.
    """
    titles = titles_inside(jaxpr)
    texts = [f"{title} = {_program(program, titles, with_source=with_source)}" for program, title in titles.items()]
    return "\n".join([*texts, _program(jaxpr, titles, n_constants, values, with_source)])


def color_text(text: str) -> str:
    """Mark variables with their types, primitives and words in the text of a program by colors of terminals (ANSI)."""
    return _MARKED.sub(_mark, text)


def _mark(found: re.Match[str]) -> str:
    parts = [(_COLORS[kind], part) for kind, part in found.groupdict().items() if part]
    return "".join(f"\x1b[{color}m{part}\x1b[0m" for color, part in parts) or found[0]


_COLORS = {"word": 1, "primitive": 32, "variable": 34, "type": 36}
_MARKED = re.compile(  # comments and strings, first, stay as they are
    r"#.*$|'[^'\n]*'|\b(?P<word>lambda|let|in)\b|(?:(?<= = )|(?<=^    ))(?P<primitive>[A-Za-z_]\w*)(?=[\[ ]|$)"
    rf"|(?<!\w)(?P<variable>[a-z]{DOT}?[a-z]*)(?P<type>:~?[\w<>]+\[[^\]]*\])",
    re.MULTILINE,
)


def titles_inside(jaxpr: Any) -> dict[Any, str]:
    """Map the programs that a program carries, innermost first, to their titles: `@body`."""
    return {program: f"@{title}" for program, title in _functions(jaxpr).items()}


def equation_text(eqn: Any, names: Names | None = None, titles: dict[Any, str] | None = None) -> str:
    """Print an equation: `y:f32[3] = reduce_sum[axes=(1,)] x`."""
    names, types = names or Names(), types_around(eqn)
    operands, results = [names.operand(v, types) for v in eqn.invars], [names.typed(v) for v in eqn.outvars]
    rule, written, params = texts.get(eqn.primitive), "", eqn.params
    if rule is not None:
        written, params = rule(eqn, names(eqn.outvars[0]), operands)
    shown = _params(params, titles or {}, written)
    return f"{' '.join(results)} = {eqn.primitive}{shown} {' '.join(operands)}".removeprefix(" = ").rstrip()


def types_around(eqn: Any) -> list[ShapedArray]:
    """List the types from which those of literals in an equation are inferred: of its variables, operands first."""
    return [v.aval for v in (*eqn.invars, *eqn.outvars) if not hasattr(v, "value")]


def literal_text(literal: Any) -> str:
    """Print a literal: `2.0`, `True`, `key(1, 2)`; the shortest decimal that is this number in its own dtype."""
    return element_text(literal.value, literal.aval.dtype)


def element_text(value: Any, dtype: Any) -> str:
    """Print a number, or a key by its words."""
    if not dtypes.is_key(dtype):
        return scalar_text(value, dtype)
    words = np.asarray(_keys.random_unwrap(value) if isinstance(value, Array) else value)
    return f"{'key' if dtype is KEY else dtype}({', '.join(map(str, words))})"


def typed_literal_text(literal: Any, types: Iterable[ShapedArray] = ()) -> str:
    """Print a literal, with its type behind it unless it is inferred from `types`."""
    text, aval = literal_text(literal), literal.aval
    if dtypes.is_key(aval.dtype) or (not text.startswith("0x") and aval is expected_type(text, types)):
        return text
    return f"{text}:{'~' * aval.weak_type}{dtypes.short_name(aval.dtype)}"


def _program(
    jaxpr: Any, titles: dict[Any, str], n_constants: int = 0, values: Sequence[str] = (), with_source: bool = False
) -> str:
    names = Names()
    head = _head(jaxpr, names, n_constants, values)
    body = [f"    {equation_text(eqn, names, titles)}" for eqn in jaxpr.eqns]
    if with_source:
        body = _with_places(body, [eqn.source for eqn in jaxpr.eqns])
    types = jaxpr.in_avals
    tail = _sides(jaxpr.outvars, lambda v: names.operand(v, types), ", ")
    if not body:
        return f"{{ lambda {head}. in {tail} }}"
    return "\n".join([f"{{ lambda {head}. let", *body, f"  in {tail} }}"])


def _with_places(lines: Sequence[str], places: Sequence[Any]) -> list[str]:
    """Append the user's line to the lines of equations, as comments below each other."""
    width = max(map(len, lines), default=0)
    shown = [f"{line:{width}}  # {place} ({place.function})" if place else line for line, place in zip(lines, places)]
    return [line.rstrip() for line in shown]


def _head(jaxpr: Any, names: Names, n_constants: int, values: Sequence[str]) -> str:
    consts = [names.typed(v) for v in jaxpr.invars[:n_constants]]
    if values:
        consts = [f"{const}={value}" for const, value in zip(consts, values, strict=True)]
    rest = _sides(jaxpr.invars[n_constants:], names.typed, " ")
    return f"[{' '.join(consts)}] {rest}".rstrip() if consts else rest


def _sides(atoms: Sequence[Any], name: Any, comma: str) -> str:
    """Print nonlinear and linear atoms, with a semicolon between them unless they are mixed."""
    flags = [v.linear for v in atoms]
    shown = [name(v) for v in atoms]
    if not any(flags) or flags != sorted(flags):
        return comma.join(shown)
    k = flags.index(True)
    return f"{comma.join(shown[:k])} ; {comma.join(shown[k:])}".lstrip()


def _params(params: dict[str, Any], titles: dict[Any, str], written: str = "") -> str:
    shown = [f"{name}={_param(value, titles)}" for name, value in params.items() if not is_default(value)]
    shown = [written, *shown] if written else shown
    return f"[{' '.join(shown)}]" if shown else ""


def is_default(value: Any) -> bool:
    """Tell whether a param is not printed, as it has its default value: None, or the default precision."""
    if isinstance(value, tuple) and len(value) == 2:
        return all(isinstance(item, Enum) and (type(item).__name__, item.name) == _DEFAULT for item in value)
    return value is None


_DEFAULT = ("Precision", "DEFAULT")


def _param(value: Any, titles: dict[Any, str]) -> str:
    if _is_program(value) and value in titles:
        return titles[value]
    if isinstance(value, tuple):
        inside = ", ".join(_param(item, titles) for item in value)
        return f"({inside}{',' if len(value) == 1 else ''})"
    if is_record(value):
        given = [(f.name, getattr(value, f.name)) for f in fields(value) if getattr(value, f.name) != f.default]
        inside = ", ".join(f"{name}={_param(field, titles)}" for name, field in given)
        return f"{type(value).__name__}({inside})"
    return _plain_param(value)


def _plain_param(value: Any) -> str:
    if isinstance(value, (np.dtype, Enum)):
        return value.name
    if isinstance(value, ShapedArray):
        return value.str_short()
    if isinstance(value, str):
        return repr(value)
    return getattr(value, "__name__", None) or str(value)


def _functions(jaxpr: Any) -> dict[Any, str]:
    """Collect the programs reachable from `jaxpr`, innermost first, with distinct titles."""
    found: dict[Any, str] = {}
    _collect_functions(jaxpr, found, set())
    return found


def _collect_functions(jaxpr: Any, found: dict[Any, str], taken: set[str]) -> None:
    for eqn in jaxpr.eqns:
        for inner in _programs(eqn.params):
            if inner not in found:
                _collect_functions(inner, found, taken)
                found[inner] = _distinct(inner.name, taken)


def _distinct(name: str, taken: set[str]) -> str:
    name = _NO_TITLE.sub("_", name)
    candidates = itertools.chain([name], (f"{name}_{i}" for i in itertools.count(1)))
    title = next(c for c in candidates if c not in taken)
    taken.add(title)
    return title


def _programs(params: dict[str, Any]) -> Iterator[Any]:
    for value in params.values():
        for item in value if isinstance(value, tuple) else _fields(value):
            if _is_program(item):
                yield item


def _fields(value: Any) -> list[Any]:
    return [getattr(value, f.name) for f in fields(value)] if is_record(value) else [value]


def is_record(value: Any) -> bool:
    """Tell whether a param is printed field by field."""
    return records.get(type(value).__name__) is type(value)


def _is_program(value: Any) -> bool:
    return hasattr(value, "eqns")


def _letters() -> Iterator[str]:
    for length in itertools.count(1):
        for letters in itertools.product(string.ascii_lowercase, repeat=length):
            yield "".join(letters)
