"""Programs as data: typed statements that print as Python, run under tapeless or JAX, and can be edited.

A statement is a text with holes: `{0}`, `{1}` are operands, `{o0}` results, `{b0}` nested functions. What is printed is
what runs, so a report needs nothing of this package.
"""

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import ml_dtypes
import numpy as np

from tests.fuzzing.sizes import ELEMENTS


@dataclass(frozen=True, eq=False)
class Var:
    """A variable: its type, and a bound of the absolute values of its elements, which the generator keeps small."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    bound: float = 1.0

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    @property
    def kind(self) -> str:
        """ "f", "c", "i", "u" or "b"."""
        return KINDS[self.dtype]

    def same_type(self, other: "Var") -> bool:
        return self.shape == other.shape and self.dtype == other.dtype


DTYPES = {
    "f": ("float64", "float32", "float16", "bfloat16"),
    "c": ("complex128", "complex64"),
    "i": ("int64", "int32", "int16", "int8"),
    "u": ("uint64", "uint32", "uint16", "uint8"),
    "b": ("bool",),
}
NARROW = {
    "f": ("float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"),
    "i": ("int4", "int2"),
    "u": ("uint4", "uint2"),
}  # what programs convert to
KINDS = {dtype: kind for table in (DTYPES, NARROW) for kind, dtypes in table.items() for dtype in dtypes}


@dataclass(frozen=True, eq=False)
class Block:
    """A nested function: `def name(head)`, an unpacking of its parameters, statements, `return result`."""

    name: str
    head: str
    params: tuple[Var, ...]
    unpack: str
    statements: tuple["Statement", ...]
    result: str
    results: tuple[Var, ...]

    def lines(self) -> Iterator[str]:
        yield f"def {self.name}({self.head}):"
        body = [self.unpack] if self.unpack else []
        body += [line for statement in self.statements for line in statement.lines()]
        yield from ("    " + line for line in (*body, "return " + filled(self.result, self.results)))


@dataclass(frozen=True, eq=False)
class Statement:
    """An assignment of `outs`, made of operands and nested functions; `feature` is what the report counts."""

    outs: tuple[Var, ...]
    text: str
    operands: tuple[Var, ...] = ()
    blocks: tuple[Block, ...] = ()
    feature: str = ""

    def lines(self) -> Iterator[str]:
        for block in self.blocks:
            yield from block.lines()
        yield from filled(self.text, self.operands, self.outs, self.blocks).split("\n")


@dataclass(frozen=True, eq=False)
class Program:
    """A function of `args`; `forward_only` where JAX has no reverse mode (loops of unknown length)."""

    args: tuple[Var, ...]
    statements: tuple[Statement, ...]
    results: tuple[Var, ...]
    forward_only: bool = False
    preamble: str = ""
    features: frozenset[str] = field(default_factory=frozenset)
    kinks: bool = False  # arguments hold zeros and ties; second derivatives are compared with differences of values
    special: bool = False  # arguments hold zeros of both signs, ties, infinities and nan; only values are compared
    rounded: bool = False  # every operation of the oracle is rounded to its dtype, and results are compared in units

    @property
    def among(self) -> tuple[float, ...]:
        """Numbers that floats are drawn from; none if they are drawn from an interval."""
        return SPECIAL if self.special else KINKS if self.kinks else ()

    def source(self) -> str:
        block = Block("f", ", ".join(v.name for v in self.args), self.args, "", self.statements, "", ())
        lines = [*block.lines()][:-1]
        return "\n".join([*filter(None, [self.preamble]), *lines, f"    return {_tuple(self.results)}"])

    def function(self, names: Mapping[str, Any]) -> Callable[..., Any]:
        """The function, with `tl`, `tnp`, `lax`, `np` taken from `names`."""
        scope = dict(names)
        exec(compile(self.source(), "<program>", "exec"), scope)
        return scope["f"]

    def size(self) -> int:
        return sum(1 for _ in walk(self.statements))

    def with_statements(self, statements: Sequence[Statement]) -> "Program":
        return replace(self, statements=tuple(statements))


def _tuple(variables: Sequence[Var]) -> str:
    return "(" + "".join(v.name + ", " for v in variables).rstrip() + ")" if variables else "()"


def filled(text: str, operands: Sequence[Var], outs: Sequence[Var] = (), blocks: Sequence[Block] = ()) -> str:
    """The text with the names in its holes."""
    named = {f"o{i}": v.name for i, v in enumerate(outs)} | {f"b{i}": b.name for i, b in enumerate(blocks)}
    return text.format(*(v.name for v in operands), **named)


def walk(statements: Sequence[Statement]) -> Iterator[Statement]:
    """All statements, nested ones before those that hold them."""
    for statement in statements:
        for block in statement.blocks:
            yield from walk(block.statements)
        yield statement


KINKS = (0.0, 0.0, 0.0, 0.0, 0.5, 0.5, -0.5, 1.0)
SPECIAL = (0.0, -0.0, 1.0, 1.0, -1.0, 2.0, 0.5, -2.5, np.inf, -np.inf, np.nan)


def draw(args: Sequence[Var], seed: int, among: Sequence[float] = ()) -> list[np.ndarray]:
    """Values of the arguments: floats of three decimals between minus and plus their bounds, or `among` numbers.

    Large arrays are as their `recipe` says, so that reports are short, and their floats have all digits: of three
    decimals there are not enough numbers for them to differ.
    """
    rng = np.random.default_rng(seed)
    return [
        made(recipe(v, seed, among), v.dtype)
        if v.size > ELEMENTS
        else drawn_among(v, rng, among)
        if len(among) and v.kind == "f"
        else drawn(v, rng)
        for v in args
    ]


def recipe(v: Var, seed: int, among: Sequence[float] = ()) -> str:
    """An expression of the values of a large argument, by a generator of its own."""
    low, high, shape = -v.bound, v.bound, v.shape
    texts = {
        "f": f"r.uniform({low}, {high}, {shape})",
        "c": f"r.uniform({low}, {high}, {shape}) + 1j * r.uniform({low}, {high}, {shape})",
        "b": f"r.random({shape}) < .5",
        "i": f"r.integers({int(low)}, {int(high) + 1}, {shape})",
        "u": f"r.integers(0, {int(high) + 1}, {shape})",
    }
    if len(among):
        texts["f"] = f"r.choice(({', '.join(_NAMED.get(str(x), repr(x)) for x in among)}), {shape})"
    return f"(lambda r: {texts[v.kind]})(np.random.default_rng({seed_of(v, seed)}))"


_NAMED = {"inf": "np.inf", "-inf": "-np.inf", "nan": "np.nan"}


def seed_of(v: Var, seed: int) -> int:
    """Of a variable's own generator: it stays when other variables go."""
    return zlib.crc32(f"{v.name} {seed}".encode())


def made(text: str, dtype: str) -> np.ndarray:
    """The array of a recipe."""
    return np.asarray(eval(text, {"np": np})).astype(np_dtype(dtype))


def drawn_among(v: Var, rng: np.random.Generator, numbers: Sequence[float]) -> np.ndarray:
    """Draw all elements, or of `KINKS` often one for all, so that they are tied and their norm is 0."""
    if numbers is KINKS and rng.random() < 0.6:
        numbers = (float(rng.choice(KINKS)),)
    return np.asarray(rng.choice(numbers, v.shape)).astype(np_dtype(v.dtype))


def drawn(v: Var, rng: np.random.Generator) -> np.ndarray:
    if v.kind == "b":
        return rng.random(v.shape) < 0.5
    if v.kind in "iu":
        low = 0 if v.kind == "u" else -int(v.bound)
        if v.ndim == 0 and rng.random() < 0.15:  # as an index: far out of range
            info = ml_dtypes.iinfo(np_dtype(v.dtype))
            return np.asarray(rng.choice([int(info.min), int(info.max)])).astype(np_dtype(v.dtype))
        return rng.integers(low, int(v.bound) + 1, v.shape).astype(np_dtype(v.dtype))
    reals = rng.uniform(-v.bound, v.bound, v.shape).round(3)
    if v.kind == "c":
        reals = reals + 1j * rng.uniform(-v.bound, v.bound, v.shape).round(3)
    return np.asarray(reals).astype(np_dtype(v.dtype))


def np_dtype(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, name))
