"""What becomes of programs of the index language: simplified, and lowered to operations."""

from collections.abc import Callable
from typing import Any

import tapeless as tl
from tapeless.interpreters.analysis import cost as costs
from tapeless.interpreters.simplify import simplify_program
from tapeless.interpreters.terms.lower_ein import without_ein
from tapeless.tracer.jaxpr import Jaxpr


def bulk(f: Callable[..., Any], *args: Any) -> Jaxpr:
    return simplify_program(tl.make_jaxpr(f)(*args).jaxpr)


def operations(f: Callable[..., Any], *args: Any) -> list[str]:
    """Names of the primitives that run."""
    return [eqn.primitive.name for eqn in simplify_program(without_ein(bulk(f, *args))).eqns]


def work(f: Callable[..., Any], *args: Any) -> int:
    """Count the scalar operations of what runs."""
    return work_of(bulk(f, *args))


def work_of(program: Jaxpr) -> int:
    """Count the scalar operations of what runs of a program."""
    return costs.work(simplify_program(without_ein(program)))


def cost(f: Callable[..., Any], *args: Any) -> int:
    """Count the scalar operations of the simplified program, `ein` by its hits."""
    return costs.work(bulk(f, *args))
