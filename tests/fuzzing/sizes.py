"""How large the arrays of a program are: a few elements, or so many that compilers go other ways.

From some thousands of elements on XLA divides loops among threads, vectorises and tiles them, and calls other kernels;
with seven or eight axes indices are computed otherwise. What is wrong there is right in small arrays.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

ELEMENTS = 400  # of a small array: what would be larger is not made
MOST = 2**20  # of a large one: the oracle holds some dozen arrays of complex128, and twice as many examples are mapped
WORK = 2**22  # products of all windows of an operation, which the oracle computes at once
# Powers of two, and numbers beside them that vectors and threads do not divide. XLA's faults of 0.10.2 begin at 16,384.
LONG = (4_096, 16_385, 32_769, 40_001, 65_537, 131_072)
GRIDS = ((64, 64), (65, 66), (128, 130), (3, 64, 64), (2, 33, 129), (257, 255))
STEPS = 4_096  # of a loop, of which the oracle takes each by itself


@dataclass(frozen=True)
class Extent:
    """How large: `main` is the shape of the first argument of a large program; `long` its long axis, 1 for none."""

    main: tuple[int, ...] = ()
    long: int = 1

    @property
    def is_large(self) -> bool:
        return bool(self.main)

    @property
    def elements(self) -> int:
        """The most of an array."""
        return MOST if self.main else ELEMENTS

    @property
    def axes(self) -> int:
        """The most of a result."""
        return max(5, len(self.main))

    @property
    def operand_axes(self) -> int:
        """The most of an operand."""
        return max(4, len(self.main))


SMALL = Extent()


def drawn(rng: np.random.Generator, small: Sequence[int]) -> Extent:
    """A large extent: of one long axis beside small ones, of a grid, or of seven or eight axes."""
    kind = rng.random()
    if kind < 0.35:
        first = rng.choice((1, 2, 2, 3), int(rng.choice((4, 4, 5))))
        shape = [int(n) for n in (*first, *rng.choice((5, 8, 8, 8), 3))]  # as most are: the last axes the largest
        return Extent(tuple(shape if rng.random() < 0.8 else rng.permutation(shape).tolist()))
    if kind < 0.45:
        return Extent(GRIDS[int(rng.integers(len(GRIDS)))])
    n = int(rng.choice(LONG))
    others = [int(k) for k in rng.choice([k for k in small if k] or [2], int(rng.choice((0, 1, 1, 2))))]
    while n * np.prod(others) > MOST // 2:
        others.pop()
    at = 0 if rng.random() < 0.7 else int(rng.integers(len(others) + 1))
    return Extent((*others[:at], n, *others[at:]), n)


def summed(n: int) -> float:
    """By how much a sum of n numbers is larger than they are, at most; of many, about.

    They grow by n where they are of one sign, by its root where signs are random. What is scaled by a number between
    both remains of the order of one either way.
    """
    return float(n) if n <= ELEMENTS else float(n) ** 0.75
