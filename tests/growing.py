"""What XLA made of a program: its instructions, and which of them make whole arrays at every step of a loop."""

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

import tapeless as tl

SIZES = (4_000, 40_000)  # sums of fewer elements are written in another form
# Machine code is not looked at: without LLVM's optimizations the instructions and the memory are the same.
UNOPTIMIZED = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}


class Instruction(NamedTuple):
    name: str
    shapes: tuple[int, ...]  # elements of the result; several if it is a tuple
    opcode: str
    calls: dict[str, tuple[str, ...]]
    is_root: bool
    operands: tuple[str, ...]


_COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.-]+) \(.*\) -> .* \{$")
_INSTRUCTION = re.compile(r"^\s+(ROOT )?%([\w.-]+) = (\(.*?\)|\S+) ([\w-]+)\((.*)$")
_CALLS = re.compile(r"(body|calls|to_apply|branch_computations|true_computation|false_computation)=(\{.*?\}|%[\w.-]+)")
# What moves arrays around without making one, or changes one in place.
_IN_PLACE = frozenset(
    "parameter get-tuple-element tuple bitcast opt-barrier while conditional call dynamic-update-slice scatter".split()
)


def computations(text: str) -> dict[str, list[Instruction]]:
    found: dict[str, list[Instruction]] = {}
    current: list[Instruction] = []
    for line in text.splitlines():
        if head := _COMPUTATION.match(line):
            current = found[head[1]] = []
        elif match := _INSTRUCTION.match(re.sub(r"/\*.*?\*/", "", line)):
            root, name, shape, opcode, rest = match.groups()
            sizes = tuple(np.prod([int(d) for d in dims.split(",") if d], dtype=int) for dims in _dims(shape))
            calls = {kind: tuple(re.findall(r"%([\w.-]+)", names)) for kind, names in _CALLS.findall(rest)}
            operands = tuple(re.findall(r"%([\w.-]+)", rest.split(")")[0]))
            current.append(Instruction(name, sizes, opcode, calls, bool(root), operands))
    return found


def _dims(shape: str) -> list[str]:
    return re.findall(r"\w+\[([\d,]*)\]", shape)


def in_loops(program: dict[str, list[Instruction]]) -> Iterator[Instruction]:
    """The instructions that loops run at every step, in branches and loops inside too, those of fusions apart."""
    everything = [x for body in program.values() for x in body]
    waiting = [name for x in everything if x.opcode == "while" for name in x.calls["body"]]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            yield from program[name]
            waiting += [each for x in program[name] if x.opcode != "fusion" for each in sum(x.calls.values(), ())]


def arrays_made_in_loops(text: str, n: int) -> list[str]:
    """The instructions in loops that make arrays of at least n elements."""
    program = computations(text)
    large = [x for x in in_loops(program) if max(x.shapes, default=0) >= n]
    return [f"{x.opcode} {x.name}" for x in large if _makes(program, x, n)]


def _makes(program: dict[str, list[Instruction]], x: Instruction, n: int) -> bool:
    if x.opcode != "fusion":
        return x.opcode not in _IN_PLACE
    inside = {y.name: y for y in program[x.calls["calls"][0]]}
    root = next(y for y in inside.values() if y.is_root)
    made = [inside[name] for name in root.operands] if root.opcode == "tuple" else [root]
    return any(_unbitcast(y, inside).opcode not in _IN_PLACE for y in made if max(y.shapes) >= n)


def _unbitcast(x: Instruction, inside: dict[str, Instruction]) -> Instruction:
    return _unbitcast(inside[x.operands[0]], inside) if x.opcode == "bitcast" else x


class Compiled(NamedTuple):
    text: str
    instructions: int
    equations: int
    temp: int


def compiled(f: Callable[[Any], Any], n: int) -> Compiled:
    x = np.linspace(0.1, 0.9, n, dtype=np.float32)
    program = tl.jit(f).lower(x).compile(UNOPTIMIZED)
    text = program.as_text()
    equations = len(str(tl.make_jaxpr(f)(x)).splitlines())
    instructions = sum(map(len, computations(text).values()))
    return Compiled(text, instructions, equations, program.memory_analysis().temp_size_in_bytes)


def linear(f: Callable[[Any], Any]) -> None:
    """Assert that loops of len(x) steps in `f` cost of the order of len(x)."""
    found = [compiled(f, n) for n in SIZES]
    assert arrays_made_in_loops(found[1].text, SIZES[1]) == []
    assert len({each.equations for each in found}) == 1
    counts = [each.instructions for each in found]
    assert max(counts) <= 1.1 * min(counts)  # what is done to all of a large array is split among threads
    # ten times, and what does not grow: buffers of less than a page
    assert all(after.temp <= 10.5 * before.temp + 4096 for before, after in pairwise(found))
