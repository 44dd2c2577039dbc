"""The error of a program that ran out of memory: its largest values, with their lines, and a budget that would fit.

Where programs run asynchronously the runtime's error appears when a result is read, of this program or of one after it,
and has no more than the number of bytes that were asked for: these are the temporaries of the program to be found.
"""

import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from tapeless.tracer.jaxpr import Equation, Jaxpr, list_inner_jaxprs
from tapeless.tracer.late_imports import LateModule

if TYPE_CHECKING:
    from tapeless.lowering import free_memory
    from tapeless.lowering.devices import Device
else:
    free_memory = LateModule("tapeless.lowering.free_memory")

SHOWN: Final = 3  # values


class Exhausted(NamedTuple):
    """The memory of a program that ran out of it.

    temporaries: bytes that XLA allots to it besides arguments and results; results: those of results that take no
    argument's memory. free: bytes that could be allotted when this was asked; None if nobody says.
    """

    temporaries: int
    results: int
    free: int | None


class CompiledProgram(Protocol):
    """A compiled program, as an error describes it."""

    @property
    def device(self) -> "Device":
        """The device that it runs on."""
        ...

    @property
    def program(self) -> Callable[[], Jaxpr | None] | None:
        """A weak reference to what it was compiled from."""
        ...

    @property
    def budget(self) -> Callable[[], Callable[[Exhausted], str] | None] | None:
        """A weak reference to what says which budget of its gradients would fit."""
        ...

    def memory_analysis(self) -> Any:
        """Return the memory that a run takes."""
        ...


def is_exhausted(error: Exception) -> bool:
    """Tell whether an error of the runtime says that memory was exhausted."""
    return str(error).startswith("RESOURCE_EXHAUSTED")


def explain_read(error: Exception) -> Exception:
    """Return the error for reading a result: as the program raises it that ran out of memory, if it can be told."""
    text = str(error)
    asked = text.removeprefix(_ASKING).removesuffix(" bytes.")
    if text == f"{_ASKING}{asked} bytes." and asked.isdigit():
        alive = [program for ref in list(programs) if (program := ref()) is not None]
        for program in alive:
            with suppress(RuntimeError, MemoryError):  # of one without figures, or where nothing is left to make them
                if program.memory_analysis().temp_size_in_bytes == int(asked):
                    return type(error)(text + describe_memory(program))
    return error


def describe_memory(program: CompiledProgram) -> str:
    """Describe the largest values of a program, each kind of value at a line once, and say what bounds them."""
    jaxpr = program.program and program.program()
    if not jaxpr:
        return ""
    found: Counter[Any] = Counter()
    for eqn in _equations(jaxpr):
        found.update([(v.aval, eqn.primitive, eqn.source) for v in eqn.outvars])
    largest = sorted(found, key=lambda key: -found[key] * key[0].nbytes)[:SHOWN]
    return "\n".join(
        [
            f"\n  The largest values of {jaxpr.name}, not all of which are there at once:",
            *[_line(key, found[key]) for key in largest],
            *_fitting_budget(program),
            "  tl.memory(f, *args) predicts what the gradient of f needs, and tl.frontier(f, *args) its budgets.",
            "  tl.grad and tl.jacrev take memory_budget, tl.jit takes donate_argnums.",
        ]
    )


def _fitting_budget(program: CompiledProgram) -> Iterator[str]:
    """Say which budget would fit. What stands in the way of finding one hides no error of memory."""
    budget = program.budget and program.budget()
    if budget:
        with suppress(Exception):
            sizes = program.memory_analysis()
            results = sizes.output_size_in_bytes - sizes.alias_size_in_bytes
            text = budget(Exhausted(sizes.temp_size_in_bytes, results, free_memory.free_bytes(program.device)))
            yield from [f"  {line}" for line in text.splitlines()]


def _line(key: Any, n: int) -> str:
    aval, primitive, source = key
    place = f" at {source.describe()}" if source else ""
    return f"    {n * aval.nbytes:,} bytes: {f'{n} times ' if n > 1 else ''}{aval} from {primitive}{place}"


def _equations(jaxpr: Jaxpr) -> Iterator[Equation]:
    for eqn in jaxpr.eqns:
        inner = list(list_inner_jaxprs(eqn))
        if not inner:
            yield eqn
        for program in inner:
            yield from _equations(program)


_ASKING: Final = "RESOURCE_EXHAUSTED: Out of memory allocating "
programs: set["weakref.ref[Any]"] = set()  # all that are alive
