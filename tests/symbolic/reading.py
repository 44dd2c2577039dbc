"""Printed formulas evaluated by reading their text, element by element, as a person would, with no code of the printer.

An index of a sum has the range that is printed, or else that of the axes that it alone indexes, which must agree. Where
a bracket fails nothing is read; else all that is read must be inside of its array.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

READ = re.compile(r"(∇?[A-Za-z_]\w*)\[([^\[\]]*)\]")
SUM = re.compile(r"Σ\[([^\]]*)\] ")
REDUCTIONS = {"max": max, "min": min, "Π": np.prod, "∃": any, "∀": all}
REDUCED = re.compile(r"(max|min|Π|∃|∀)\[([^\]]*)\] (.*)")
POWER = re.compile(r"(\w+)\*\*(\S+)")
PART = re.compile(r"(?:(\S+) \* )?(Re|Im)\((.*)\)")
CALL = re.compile(r"(\w+)\((.*)\)(?:\[0\])?")
FUNCTIONS = {
    "exp": np.exp, "log": np.log, "sin": np.sin, "cos": np.cos, "max": np.maximum, "sign": np.sign, "eq": np.equal,
    "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "add": np.add,
    "sub": np.subtract, "mul": np.multiply, "and": np.logical_and, "or": np.logical_or, "not": np.logical_not,
    "convert_element_type": lambda x, **_: np.asarray(x, float),
    "pow": np.power, "is_finite": np.isfinite, "any": np.any, "all": np.all, "argmax": np.argmax,
    "select_n": lambda c, x, y: np.where(c, y, x),
}  # fmt: skip


def read_text(text: str, arrays: Mapping[str, Any], shapes: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    """Evaluate printed equations, in order: all arrays by name. Those that `shapes` names have these shapes."""
    known = {name: np.asarray(x) for name, x in arrays.items()}
    for line in text.split("\n"):
        left, right = line.split(" = ", 1)
        call = CALL.fullmatch(right)
        if call is not None and call[1] in FUNCTIONS:
            known[left] = eval(
                f"f({call[2]})", {"f": FUNCTIONS[call[1]], "inf": np.inf, "float64": 0, "float32": 0, **known}
            )
            continue
        if power := POWER.fullmatch(right):
            known[left] = known[power[1]] ** float(power[2])
            continue
        head = READ.fullmatch(left)
        name, indices = (head[1], head[2].split(",")) if head else (left, [])
        names = [i.split("<")[0] for i in indices]
        shape = shapes.get(name) or [_size(i, right, known) for i in indices]
        is_index = "[" not in right and set(re.findall(r"[A-Za-z_]\w*", right)) <= {*names, "and", "or", "not"}
        read = _of_indices if is_index else _formula
        found = [read(right, known, dict(zip(names, at))) for at in product(*map(range, shape))]
        known[name] = np.reshape(np.array(found), shape)
    return known


def _size(index: str, text: str, known: Mapping[str, Any]) -> int:
    """Find the number of values of an index: printed as `i<4`, or that of the axes that it alone indexes."""
    name, _, printed = index.partition("<")
    if printed:
        return int(printed)
    axes = [zip(re.split(",(?! )", access), known[array].shape, strict=True) for array, access in READ.findall(text)]
    (size,) = {n for axis in axes for i, n in axis if i == name}
    return int(size)


def _of_indices(text: str, known: Mapping[str, Any], at: Mapping[str, int]) -> Any:
    return eval(_condition(text), dict(at))


def _formula(text: str, known: Mapping[str, Any], at: Mapping[str, int]) -> Any:
    if reduction := REDUCED.fullmatch(text):
        return _reduced(reduction[1], reduction[2].split(","), reduction[3], known, at)
    signs = {" + ": 1, " - ": -1}
    text, total = (" + " + text).replace(" + -", " - ", 1), 0
    for sign, part in _split(text, signs):
        total += signs[sign] * _term(part, known, at)
    return total


def _reduced(how: str, indices: list[str], text: str, known: Mapping[str, Any], at: Mapping[str, int]) -> Any:
    sizes, names = [_size(i, text, known) for i in indices], [i.split("<")[0] for i in indices]
    read = _formula if "[" in text else _of_indices
    return REDUCTIONS[how]([read(text, known, {**at, **dict(zip(names, v))}) for v in product(*map(range, sizes))])


def _term(text: str, known: Mapping[str, Any], at: Mapping[str, int]) -> Any:
    if part := PART.fullmatch(text):
        z = _formula(part[3], known, at)
        return float(part[1] or 1) * (z.real if part[2] == "Re" else z.imag)
    found = SUM.search(text)
    if found is None:
        return _product(text, known, at)
    before, body = text[: found.start()].removesuffix(" * "), text[found.end() :]
    indices = found[1].split(",")
    sizes = [_size(i, body, known) for i in indices]
    names = [i.split("<")[0] for i in indices]
    assert not set(names) & {*at, *known}, f"{names} are names of others"
    each = [_product(body, known, {**at, **dict(zip(names, values))}) for values in product(*map(range, sizes))]
    return (_product(before, known, at) if before else 1) * sum(each)


def _product(text: str, known: Mapping[str, Any], at: Mapping[str, int]) -> Any:
    parts = _split(" * " + text, (" * ", " / "))
    brackets = [part for _, part in parts if part.startswith("[")]
    brackets.sort(key=lambda part: bool(READ.search(part[1:-1])))  # what is looked up, they may keep inside
    arrays = {name: _Inside(name, x) for name, x in known.items()}
    names = {**arrays, **at, "conj": np.conj, "clip": lambda x, low, high: min(max(x, low), high)}
    if not all(eval(_condition(b[1:-1]), names) for b in brackets):
        return 0
    value: Any = 1
    for sign, part in parts:
        if not part.startswith("["):
            x = eval(READ.sub(lambda m: f"{m[1]}[{_multiplied(m[2])}]", part), names) + 0
            value = value * x if sign == " * " else value / x
    return value


def _condition(text: str) -> str:
    return _multiplied(re.sub(r" = ", " == ", text))


def _multiplied(text: str) -> str:
    return re.sub(r"(?<![\w.])(\d+)(?=[A-Za-z])", r"\1*", text)


def _split(text: str, separators: Any) -> list[tuple[str, str]]:
    """Split a text that begins with a separator at those outside of brackets; the separators with what follows."""
    found, depth = list[tuple[str, str]](), 0
    for k, c in enumerate(text):
        depth += (c in "[(") - (c in "])")
        if depth == 0 and text[k : k + 3] in separators:
            found.append((text[k : k + 3], ""))
        elif found and depth >= 0:
            found[-1] = found[-1][0], found[-1][1] + c
    return [(sign, part[2:]) for sign, part in found]


class _Inside:
    """An array, or a number, that is not read outside."""

    def __new__(cls, name: str, values: Any) -> Any:
        return object.__new__(cls) if values.ndim else values[()]

    def __init__(self, name: str, values: Any) -> None:
        self.name, self.values = name, values

    def __getitem__(self, index: Any) -> Any:
        items = index if isinstance(index, tuple) else (index,)
        assert all(0 <= i < n for i, n in zip(items, self.values.shape, strict=True)), f"{self.name}[{index}]"
        return self.values[items]
