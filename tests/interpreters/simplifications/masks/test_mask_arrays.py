"""Whether masks of positions hold somewhere along axes, against NumPy."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.interpreters.simplifications.masks.mask_arrays import holds_somewhere


def decided(mask: Any, axes: tuple[int, ...]) -> bool | None:
    """What is known of a mask that a function without operands computes."""
    jaxpr = tl.make_jaxpr(mask)().jaxpr
    made = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    return holds_somewhere(jaxpr.outvars[0], axes, made.get)


def comparison(random: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """A comparison of two affine functions of the indices of an array of this shape."""
    numbers, operation = random.integers(-2, 3, size=len(shape) + 1), str(random.choice(["==", "<", "<=", ">", ">="]))

    def compare(lib: Any) -> Any:
        grid = [lib.broadcast_to(lib.arange(n).reshape([-1 if d == k else 1 for k in range(len(shape))]), shape)
                for d, n in enumerate(shape)]  # fmt: skip
        a = sum((int(c) * i for c, i in zip(numbers[1:], grid)), lib.full(shape, int(numbers[0])))
        return {"==": a == 0, "<": a < 0, "<=": a <= 0, ">": a > 0, ">=": a >= 0}[operation]

    return compare


@pytest.mark.parametrize("seed", range(60))
def test_against_numpy(seed: int):
    random = np.random.default_rng(seed)
    shape = tuple(map(int, random.integers(1, 5, size=random.integers(1, 4))))
    parts = [comparison(random, shape) for _ in range(random.integers(1, 4))]
    of_axes = [axes for k in range(len(shape) + 1) for axes in combinations(range(len(shape)), k)]

    def mask(lib: Any) -> Any:
        return lib.stack([part(lib) for part in parts]).all(0) if lib is np else joined(parts, lib)

    for axes in of_axes:
        found, exact = decided(lambda: mask(tnp), axes), mask(np).any(axis=axes)
        assert found is None or (exact == found).all()


def joined(parts: list[Any], lib: Any) -> Any:
    total = parts[0](lib)
    for part in parts[1:]:
        total = total & part(lib)
    return total


@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_diagonal_and_triangles_meet_every_row(n: int):
    i, j = (lambda: tnp.arange(n)[:, None]), (lambda: tnp.arange(n))
    for axes in ((0,), (1,), (0, 1)):
        assert decided(lambda: i() == j(), axes)
        assert decided(lambda: i() >= j(), axes)
        assert decided(lambda: i() > j() + n, axes) is False
    assert decided(lambda: i() == j() + 1, (1,)) is (False if n == 1 else None)  # not the first row
