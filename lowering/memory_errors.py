"""The error of a program that ran out of memory: its largest values, with their lines."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from tapeless.tracer.jaxpr import Equation, Jaxpr, list_inner_jaxprs

SHOWN: Final = 3  # values


def is_exhausted(error: Exception) -> bool:
    """Tell whether an error of the runtime says that memory was exhausted."""
    return str(error).startswith("RESOURCE_EXHAUSTED")


def describe_memory(jaxpr: Jaxpr) -> str:
    """Describe the largest values of a program, each kind of value at a line once, and say what bounds them."""
    found: Counter[Any] = Counter()
    for eqn in _equations(jaxpr):
        found.update([(v.aval, eqn.primitive, eqn.source) for v in eqn.outvars])
    largest = sorted(found, key=lambda key: -found[key] * key[0].nbytes)[:SHOWN]
    lines = [_line(key, found[key]) for key in largest]
    return "\n".join(
        [
            f"\n  The largest values of {jaxpr.name}, not all of which are there at once:",
            *lines,
            "  tl.memory(f, *args) predicts what the gradient of f needs, and tl.frontier(f, *args) its budgets.",
            "  tl.grad and tl.jacrev take memory_budget, tl.jit takes donate_argnums.",
        ]
    )


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
