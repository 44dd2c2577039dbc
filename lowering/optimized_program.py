"""A parser of XLA's optimised HLO text: instructions, their source lines, and the bytes that they write.

Fusions are instructions that call a computation of their own; the computation's instructions tell which lines were
fused. Left out: everything else in the text.
"""

import re
from collections.abc import Iterator, Mapping
from math import prod
from typing import NamedTuple


class SourcePlace(NamedTuple):
    """A line of the user's source."""

    file: str
    line: int


class Instruction(NamedTuple):
    """An instruction of a computation.

    nbytes: of its result, by its type. operands: their names. calls: the names of the computations that it runs.
    """

    name: str
    opcode: str
    nbytes: int
    operands: tuple[str, ...]
    calls: tuple[str, ...]
    place: SourcePlace | None
    is_root: bool


Computations = Mapping[str, Mapping[str, Instruction]]  # instructions by name, by the name of the computation
CONTROL_FLOW = frozenset({"while", "conditional", "call", "async-start"})

_COMPUTATION = re.compile(r"^(?:ENTRY )?%(?P<name>[^\s(]+) \(")
_INSTRUCTION = re.compile(
    r"^  (?P<root>ROOT )?%(?P<name>\S+) = (?P<type>\(.*?\)|\S+) (?P<opcode>[\w-]+)\((?P<rest>.*)$"
)
_CALLED = re.compile(r"(?:calls|to_apply|body|condition|true_computation|false_computation)=%([^\s,}]+)")
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
_PLACE = re.compile(r'source_file="((?:[^"\\]|\\.)*)" source_line=(\d+)')
_NAME = re.compile(r"%([^\s,(){}]+)")
_ARRAY = re.compile(r"\b(pred|token|[a-z]+\d+\w*)\[([\d,]*)\]")


def computations(text: str) -> Computations:
    """Parse the computations of an optimised program, as `Executable.as_text` prints it."""
    found: dict[str, dict[str, Instruction]] = {}
    inside: dict[str, Instruction] = {}
    for line in text.splitlines():
        head = _COMPUTATION.match(line)
        if head:
            inside = found.setdefault(head["name"], {})
        elif read := _instruction(line):
            inside[read.name] = read
    return found


def _instruction(line: str) -> Instruction | None:
    found = _INSTRUCTION.match(line)
    if found is None:
        return None
    operands, _, attributes = found["rest"].partition(")")
    branches = [name for group in _BRANCHES.findall(attributes) for name in _NAME.findall(group)]
    place = _PLACE.search(attributes)
    return Instruction(
        found["name"],
        found["opcode"],
        _bytes(found["type"]),
        tuple(_NAME.findall(operands)),
        (*_CALLED.findall(attributes), *branches),
        SourcePlace(place[1], int(place[2])) if place else None,
        bool(found["root"]),
    )


def _bytes(types: str) -> int:
    """Count the bytes of `f32[2,3]{1,0}`, or of a tuple of such."""
    return sum(prod(map(int, filter(None, sizes.split(",")))) * _width(kind) for kind, sizes in _ARRAY.findall(types))


def _width(kind: str) -> int:
    """Count the bytes of an element: 4 of `f32`, 1 of `pred` and of `f8e4m3fn`."""
    bits = re.match(r"[a-z]+(\d+)", kind)
    return 0 if kind == "token" else max(int(bits[1]) // 8, 1) if bits else 1


def lines_fused(instruction: Instruction, program: Computations) -> tuple[SourcePlace, ...]:
    """List the source lines of a kernel: of the instruction itself first, then of the instructions fused into it."""
    inner = [i for name in instruction.calls for i in program.get(name, {}).values()]
    places = [instruction.place, *[i.place for i in inner if i.is_root], *[i.place for i in inner]]
    return tuple(dict.fromkeys(place for place in places if place))


def bytes_written(instruction: Instruction, program: Computations) -> int:
    """Count the bytes that a kernel writes: of the update if it updates in place, else of its result."""
    if instruction.opcode == "fusion":
        body = program.get(instruction.calls[0], {}) if instruction.calls else {}
        root = next((i for i in body.values() if i.is_root), None)
        return instruction.nbytes if root is None else sum(_written(i, body) for i in _results(root, body))
    return instruction.nbytes


def _results(root: Instruction, body: Mapping[str, Instruction]) -> Iterator[Instruction]:
    """Yield the instructions whose values a computation returns."""
    if root.opcode in ("tuple", "bitcast"):
        for name in root.operands:
            yield from _results(body[name], body)
    else:
        yield root


_UPDATE = {"dynamic-update-slice": 1, "scatter": 2}  # the position of the operand that is written


def _written(result: Instruction, body: Mapping[str, Instruction]) -> int:
    update = _UPDATE.get(result.opcode)
    return result.nbytes if update is None else body[result.operands[update]].nbytes
