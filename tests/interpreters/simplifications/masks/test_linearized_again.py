"""Linearizing a linear map adds no choice: what is masked in its program is known by the next one."""

from collections.abc import Callable
from typing import Any

import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tests.interpreters.simplifications.masks.test_mask_analysis import GUARDED, LOOPS
from tests.interpreters.simplifications.masks.test_nested_masks import STEPS, nested
from tests.test_order_of_growth import before_emission, primitives


def guarded(x: Any) -> Any:
    return tnp.where(x > 0, tnp.sqrt(x) * tnp.log(x), x)


NESTED = {f"{name} {depth}": nested(name, depth, guarded) for name in STEPS for depth in (1, 3)}
PROGRAMS: dict[str, Callable[[Any], Any]] = {**GUARDED, **LOOPS, **NESTED}


@pytest.mark.parametrize("called", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_linearizing_again_adds_no_choice(name: str, called: bool):
    args = [tl.ShapeDtypeStruct((3,), "float64")] * 2

    def choices(times: int) -> int:
        def pushed(x: Any, t: Any) -> Any:
            f = PROGRAMS[name]
            for _ in range(times):
                f = tl.linearize(tl.jit(f) if called else f, x)[1]
            return f(t)

        return primitives(before_emission(tl.make_jaxpr(pushed)(*args).jaxpr)).count("select_n")

    assert choices(3) == choices(2) <= choices(1)
