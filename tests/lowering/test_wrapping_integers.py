"""Random programs of integers that wrap, compiled as users compile them: every bit is that of exact arithmetic.

The expected values are computed by Python's integers, which are wrapped to the dtype after each operation.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.tracer import dtypes

LENGTH = 12
EXPRESSIONS = 30  # of a program; each operation reads one or two earlier ones, or arguments
DTYPES = [f"{sign}int{bits}" for bits in (2, 4, 8, 16, 32, 64) for sign in ("", "u")]


@pytest.fixture(scope="module", autouse=True)
def wide(optimized) -> Iterator[None]:
    with tl.enable_x64(True):
        yield


class Integers(NamedTuple):
    """The integers of a dtype."""

    bits: int
    signed: bool

    @property
    def least(self) -> int:
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def greatest(self) -> int:
        return self.least + (1 << self.bits) - 1

    def wrap(self, n: int) -> int:
        return (n - self.least) % (1 << self.bits) + self.least

    def unsigned(self, n: int) -> int:
        return n % (1 << self.bits)


def of(dtype: str) -> Integers:
    return Integers(dtypes.bits_of(tnp.dtype(dtype)), dtype.startswith("i"))


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1)


def signum(a: int) -> int:
    return (a > 0) - (a < 0)


class Operation(NamedTuple):
    """A function of arrays, and what it is to integers: of each element, or `whole` of lists."""

    ours: Callable[..., Any]
    exact: Callable[..., Any]
    operands: int = 1
    whole: bool = False
    constant: Callable[[Any, Integers], int] | None = None  # draws a last operand


def any_number(rng: Any, of: Integers) -> int:
    edges = [of.least, of.least + 1, -1, 0, 1, 2, 3, 7, 8, of.greatest // 2 + 1, of.greatest]
    return of.wrap(int(rng.choice(np.array(edges, object))))


def divisor(rng: Any, of: Integers) -> int:
    return any_number(rng, of) or 1


def shift(rng: Any, of: Integers) -> int:
    return int(rng.integers(0, min(of.bits, of.greatest + 1)))


def running(combine: Callable[[int, int], int]) -> Callable[[list[int]], list[int]]:
    def run(a: list[int]) -> list[int]:
        out = [a[0]]
        for n in a[1:]:
            out.append(combine(out[-1], n))
        return out

    return run


def total(combine: Callable[[int, int], int]) -> Callable[[list[int]], list[int]]:
    return lambda a: [running(combine)(a)[-1]] * len(a)


def sum_of_products(a: list[int], b: list[int]) -> list[int]:
    return [sum(x * y for x, y in zip(a, b, strict=True))] * len(a)


def add(a: int, b: int) -> int:
    return a + b


def mul(a: int, b: int) -> int:
    return a * b


def spread(x: Any) -> Any:
    return tnp.broadcast_to(x, (LENGTH,))


OPERATIONS = {
    "add": Operation(lambda x, y: x + y, add, 2),
    "sub": Operation(lambda x, y: x - y, lambda a, b: a - b, 2),
    "mul": Operation(lambda x, y: x * y, mul, 2),
    "square": Operation(lambda x: x * x, lambda a: a * a),
    "square of a part": Operation(
        lambda x: spread(x[1] * x[1]), lambda a: [a[1] * a[1]] * LENGTH, whole=True
    ),
    "tnp.square": Operation(tnp.square, lambda a: a * a),
    "x**2": Operation(lambda x: x**2, lambda a: a**2),
    "x**3": Operation(lambda x: x**3, lambda a: a**3),
    "x**4": Operation(lambda x: x**4, lambda a: a**4),
    "neg": Operation(lambda x: -x, lambda a: -a),
    "abs": Operation(abs, abs),
    "sign": Operation(tnp.sign, signum),
    "not": Operation(lambda x: ~x, lambda a: ~a),
    "and": Operation(lambda x, y: x & y, lambda a, b: a & b, 2),
    "or": Operation(lambda x, y: x | y, lambda a, b: a | b, 2),
    "xor": Operation(lambda x, y: x ^ y, lambda a, b: a ^ b, 2),
    "max": Operation(tnp.maximum, max, 2),
    "min": Operation(tnp.minimum, min, 2),
    "which": Operation(lambda x, y: tnp.where(x < y, x * x, abs(y)), lambda a, b: a * a if a < b else abs(b), 2),
    "max c": Operation(tnp.maximum, max, constant=any_number),
    "clip": Operation(lambda x, c: lax.clamp(c, x, tnp.maximum(c, x)), max, constant=any_number),
    "add c": Operation(lambda x, c: x + c, add, constant=any_number),
    "mul c": Operation(lambda x, c: x * c, mul, constant=any_number),
    "and c": Operation(lambda x, c: x & c, lambda a, c: a & c, constant=any_number),
    "floor_divide c": Operation(tnp.floor_divide, lambda a, c: a // c, constant=divisor),
    "remainder c": Operation(tnp.remainder, lambda a, c: a % c, constant=divisor),
    "div c": Operation(lax.div, truncated, constant=divisor),
    "rem c": Operation(lax.rem, lambda a, c: a - truncated(a, c) * c, constant=divisor),
    "div": Operation(lambda x, y: lax.div(x, y | 1), lambda a, b: truncated(a, b | 1), 2),
    "rem": Operation(lambda x, y: lax.rem(x, y | 1), lambda a, b: a - truncated(a, b | 1) * (b | 1), 2),
    "shift_left c": Operation(lax.shift_left, lambda a, c: a << c, constant=shift),
    "shift_right_arithmetic c": Operation(lax.shift_right_arithmetic, None, constant=shift),
    "shift_right_logical c": Operation(lax.shift_right_logical, None, constant=shift),
    "cumsum": Operation(lax.cumsum, running(add), whole=True),
    "cumprod": Operation(lax.cumprod, running(mul), whole=True),
    "sum": Operation(lambda x: spread(tnp.sum(x, dtype=x.dtype)), total(add), whole=True),
    "prod": Operation(lambda x: spread(tnp.prod(x, dtype=x.dtype)), total(mul), whole=True),
    "max of all": Operation(lambda x: spread(tnp.max(x)), total(max), whole=True),
    "dot": Operation(lambda x, y: spread(x @ y), sum_of_products, 2, whole=True),
    "sum of squares": Operation(lambda x: spread(x @ x), lambda a: sum_of_products(a, a), whole=True),
    "dot of one": Operation(lambda x: spread(x[:1] @ x[:1]), lambda a: [a[0] ** 2] * LENGTH, whole=True),
    "prod of two": Operation(
        lambda x: tnp.prod(tnp.stack([x, x]), 0, dtype=x.dtype), lambda a: a * a
    ),
    "reverse": Operation(lambda x: x[::-1], lambda a: a[::-1], whole=True),
    **{
        f"{name} c": Operation(
            lambda x, c, compare=compare: compare(x, c).astype(x.dtype),
            lambda a, c, compare=compare: int(compare(a, c)),
            constant=any_number,
        )
        for name, compare in {
            "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b,
            "ge": lambda a, b: a >= b, "eq": lambda a, b: a == b,
        }.items()
    },
    **{
        f"{name} 0": Operation(
            lambda x, compare=compare: compare(x, 0).astype(x.dtype), lambda a, compare=compare: int(compare(a, 0))
        )
        for name, compare in {
            "lt": lambda a, b: a < b, "ge": lambda a, b: a >= b, "gt": lambda a, b: a > b
        }.items()
    },
}  # fmt: skip


class Node(NamedTuple):
    name: str
    operands: tuple[int, ...]
    constant: int | None


def drawn(rng: Any, integers: Integers) -> list[Node]:
    """Draw operations; operands are numbers of earlier values, rather late ones, of which 0 and 1 are arguments."""
    nodes = list[Node]()
    names = list(OPERATIONS)
    for k in range(2, EXPRESSIONS + 2):
        name = names[int(rng.integers(len(names)))]
        operation = OPERATIONS[name]
        near = [int(rng.integers(max(0, k - 8), k)) if rng.random() < 0.7 else int(rng.integers(2)) for _ in range(2)]
        constant = operation.constant and operation.constant(rng, integers)
        nodes.append(Node(name, tuple(near[: operation.operands]), constant))
    return nodes


def computed(nodes: list[Node], dtype: str, x: Any, y: Any) -> list[Any]:
    values = [x, y]
    for node in nodes:
        constants = [] if node.constant is None else [tnp.asarray(node.constant, dtype)]
        values.append(OPERATIONS[node.name].ours(*[values[i] for i in node.operands], *constants))
    return values[2:]


def exactly(node: Node, integers: Integers, operands: list[list[int]]) -> list[int]:
    """Compute the elements of a value by Python's integers, wrapped."""
    operation, constants = OPERATIONS[node.name], [] if node.constant is None else [node.constant]
    exact = operation.exact or shifted_right(integers, node.name)
    rows = [exact(*operands)] if operation.whole else zip(*operands, strict=True)
    found = rows[0] if operation.whole else [exact(*row, *constants) for row in rows]
    return [integers.wrap(n) for n in found]


def shifted_right(integers: Integers, name: str) -> Callable[[int, int], int]:
    """Return the function that shifts the bits of integers taken as signed, or logically as unsigned."""
    of_bits = Integers(integers.bits, "arithmetic" in name)
    return lambda a, count: of_bits.wrap(a) >> count


def inputs(rng: Any, integers: Integers) -> list[int]:
    """Draw elements: the ends of the dtype, numbers whose squares wrap, and others."""
    ends = [integers.least, integers.least + 1, integers.greatest, -1, 1, 0]
    roots = [round(2 ** (integers.bits / 2)) + k for k in range(3)]
    more = [int(n) for n in rng.integers(0, 2**16, LENGTH - len(ends) - len(roots)) * 40503]
    found = [integers.wrap(n) for n in (*ends, *roots, *more)]
    return [found[i] for i in rng.permutation(LENGTH)]


def wrong_values(seed: int, dtype: str) -> list[str]:
    """Run a random program; describe what is not as exact arithmetic has it."""
    rng, integers = np.random.default_rng(seed), of(dtype)
    nodes, exact = drawn(rng, integers), [inputs(rng, integers) for _ in range(2)]
    arrays = [np.array(a, object).astype("int64" if integers.signed else "uint64") for a in exact]
    given = [tnp.asarray(a.astype(tnp.dtype(dtype))) for a in arrays]
    found = tl.jit(lambda x, y: computed(nodes, dtype, x, y))(*given)
    wrong = list[str]()
    for node, array in zip(nodes, found, strict=True):
        operands = [exact[i] for i in node.operands]
        exact.append(exactly(node, integers, operands))
        got = [int(n) for n in np.asarray(array).astype(object)]
        if got != exact[-1] or array.dtype != tnp.dtype(dtype):
            wrong.append(f"{dtype}, seed {seed}: {node} of {operands} is {got}, not {exact[-1]}")
    return wrong


@pytest.mark.parametrize("dtype", ["int2", "uint4", "int8", "int32", "uint32", "int64"])
def test_every_bit_is_that_of_exact_arithmetic(dtype):
    assert wrong_values(0, dtype) == []


@pytest.mark.parametrize("dtype", ["int8", "int32"])
def test_squares_and_moduli_may_be_negative(dtype):
    """Each consumer that XLA simplifies for what it takes for non-negative, of each producer that it takes for that."""
    bits = dtypes.bits_of(np.dtype(dtype))
    root, least = {8: 12, 32: 50000}[bits], -(2 ** (bits - 1))
    producers = {
        "x * x": lambda x: x * x,
        "x**2": lambda x: x**2,
        "square": tnp.square,
        "max": lambda x: tnp.maximum(x * x, -99),
        "where": lambda x: tnp.where(x > 0, x * x, abs(x)),
        "abs": abs,
        "dot": lambda x: tnp.stack([x[:1] @ x[:1], x[1:] @ x[1:]]),
    }
    consumers = {
        abs: abs, tnp.sign: np.sign, lambda v: v < 0: lambda v: v < 0, lambda v: v >= 0: lambda v: v >= 0,
        lambda v: tnp.maximum(v, 0): lambda v: np.maximum(v, 0), lambda v: v >> 1: lambda v: v >> 1,
        lambda v: lax.div(v, tnp.asarray(8, dtype)): lambda v: np.sign(v) * (abs(v) // 8),
        lambda v: lax.rem(v, tnp.asarray(8, dtype)): lambda v: np.sign(v) * (abs(v) % 8),
    }  # fmt: skip
    x = tnp.asarray([root, least], dtype)
    values = tl.jit(lambda x: [make(x) for make in producers.values()])(x)
    together = tl.jit(lambda x: [[use(make(x)) for use in consumers] for make in producers.values()])(x)
    for value, row in zip(values, together, strict=True):
        exact = np.asarray(value).astype(np.int64)
        assert value.dtype == dtype and exact.min() < 0
        for use, found in zip(consumers.values(), row, strict=True):
            np.testing.assert_array_equal(np.asarray(found), use(exact).astype(found.dtype))
