"""Simplifying is a function of the program: what it makes of one does not depend on which variables that is written
with, and simplifying what is simplified, under other names, changes nothing.

Of all programs of the suite: the function, its linear program, and the program of both before they are taken apart.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tapeless as tl
from tapeless.interpreters import jvp
from tapeless.interpreters.simplify import simplify_program
from tapeless.tracer import dtypes
from tapeless.tracer.jaxpr import Jaxpr
from tapeless.tracer.types import aval_of
from tests import cost_ratios
from tests.cost_ratios import Case
from tests.interpreters.simplifications.masks.test_mask_analysis import GUARDED, LOOPS
from tests.renaming import renamed


def programs() -> Iterator[tuple[str, Case]]:
    """The programs of the suite."""
    for name, row in cost_ratios.PRIMITIVES.items():
        yield f"primitive {name}", cost_ratios.of_primitive(row)
    for name, case in cost_ratios.suite():
        yield " ".join(name.split()[:2]) if name.startswith("numpy") else name, case
    for name, f in {**GUARDED, **LOOPS}.items():
        yield f"guarded {name}", Case(f, (np.ones(3),))


def forms(case: Case) -> Iterator[Jaxpr]:
    """The program of a function, its jvp, and the linear half of that."""
    args = [cost_ratios.spec(x) for x in case.args]

    def smooth(*xs: Any) -> list[Any]:
        return [y for y in tl.tree.leaves(case.function(*xs)) if dtypes.is_inexact(aval_of(y).dtype)]

    closed = tl.make_jaxpr(smooth)(*args)
    yield closed.jaxpr
    inexact = [dtypes.is_inexact(aval.dtype) for aval in closed.jaxpr.in_avals[len(closed.consts) :]]
    if case.reverse and any(inexact):
        yield jvp.jvp_jaxpr(closed.jaxpr, (*[False] * len(closed.consts), *inexact))[0]
        yield tl.unzip(smooth, *args).linear


def depends_on_names(jaxpr: Jaxpr) -> bool:
    """Whether another program results if the variables are others, before or after simplifying."""
    once = simplify_program(jaxpr)
    return len({str(once), str(simplify_program(renamed(jaxpr))), str(simplify_program(renamed(once)))}) > 1


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in programs()])
def test_renaming_commutes_with_simplifying(case: Case):
    assert not any(map(depends_on_names, forms(case)))
