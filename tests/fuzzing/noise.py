"""Monte-Carlo arithmetic: a program evaluated with every operation's rounding error made larger, at random.

What a disagreement may be put down to: where results scatter by as much as it, when each operation errs by a few
units in the last place, rounding explains it: a tie, a jump, a cancellation. Source: Parker 1997.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.fuzzing.oracle.interpreter import Run, opened, taken
from tests.fuzzing.oracle.values import Values, kind_of, settled, units

UNITS = 30.0  # of the last place, by which each operation errs
# They give what they are given, or choose of it, and err in nothing.
EXACT = frozenset(
    """slice dynamic_slice dynamic_update_slice gather scatter reshape transpose broadcast_in_dim concatenate
    pad rev select_n iota copy convert_element_type reduce_max reduce_min max min clamp squeeze neg
    stop_gradient jit checkpoint cond scan while call custom_jvp custom_vjp sort split abs sign floor ceil
    round optimization_barrier real imag conj complex""".split()
)


class Noisy(Run):
    """A run whose operations err by some `unit`s; if it is None, by one of their dtype's, and are rounded to it."""

    def __init__(self, unit: float | None, rng: np.random.Generator) -> None:
        super().__init__(exact=unit is not None)
        self._unit, self._rng = unit, rng

    def equation(self, eqn: Any, args: Sequence[Values]) -> list[Values]:
        outs = super().equation(eqn, args)
        if eqn.primitive.name in EXACT:
            return outs
        largest = max((float(np.max(np.abs(x[np.isfinite(x)]), initial=0)) for x in args), default=0.0)
        return [self._off(x, v.aval.dtype, largest) for x, v in zip(outs, eqn.outvars, strict=True)]

    def _off(self, x: Values, dtype: Any, largest: float) -> Values:
        if kind_of(dtype) not in "fc":
            return x
        if self._unit is None:
            unit = units(x, dtype)  # of sums in float32 each term's
            unit = unit if np.dtype(dtype).itemsize < 4 else np.maximum(unit, units(np.asarray(largest), dtype))
            return settled(x + unit * self._rng.integers(-1, 2, x.shape), dtype, exact=False)
        return x * (1 + self._unit * UNITS * self._rng.uniform(-1, 1, x.shape))


def noisy(jaxpr: Any, args: Sequence[Any], unit: float | None, seed: int) -> list[Values]:
    """The results of a program whose operations err by some `unit`s, relative to what they give; see `Noisy`."""
    jaxpr, args = opened(jaxpr, args)
    run = Noisy(unit, np.random.default_rng(seed))
    with np.errstate(all="ignore"):
        return run.program(jaxpr, taken(args, [v.aval for v in jaxpr.invars]))
