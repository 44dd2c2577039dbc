"""Warnings about names that the policy of a checkpoint asks for and that are misspelt."""

import importlib
from collections.abc import Iterator
from typing import Any

from tapeless.tracer import source
from tapeless.tracer.jaxpr import Jaxpr, subjaxprs
from tapeless.tracer.primitives.checkpoint import name_p


def warn_of_misspelt(policy: Any, jaxpr: Jaxpr, who: str) -> None:
    """Warn of each name of a policy that a program does not give, if it gives one much like it, unasked for."""
    asked = policy.names
    given = dict.fromkeys(_names_in(jaxpr))
    unasked = [name for name in given if name not in asked]
    for name in asked:
        close = [] if name in given else importlib.import_module("difflib").get_close_matches(name, unasked, 1)
        if close:
            source.warn(
                f"checkpoint: no value in {who} has the name {name!r} that its policy asks for. "
                f"Do you mean {close[0]!r}?"
            )


def _names_in(jaxpr: Jaxpr) -> Iterator[str]:
    for eqn in jaxpr.eqns:
        if eqn.primitive is name_p:
            yield eqn.params["name"]
        for inner in subjaxprs(eqn.params):
            yield from _names_in(inner)
