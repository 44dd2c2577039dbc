"""Random stencils over periodic ranges against NumPy, each a program of its own: value, gradient, push, batch.

A kernel that reads an array in several rotations is where LLVM errs (docs/xla_defects.md, `reversed_rows`); programs
with many results would not have such a kernel, because what they share is stored.
"""

import itertools
from typing import Any, NamedTuple

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import index as ix
from tapeless.interpreters.analysis.cost import cost

pytestmark = pytest.mark.usefixtures("eager_by_steps")

STEPS = (1, 1, 1, 1, -1, 2, 3)


class Stencil(NamedTuple):
    """A sum of products of elements: each an (step, offset) for each axis."""

    shape: tuple[int, ...]
    terms: list[list[list[tuple[int, int]]]]

    def bulk(self, u: Any) -> Any:
        ranges = [ix.range(f"r{d}", n, periodic=True) for d, n in enumerate(self.shape)]

        def body(*indices: Any) -> Any:
            def read(places: Any) -> Any:
                return u[tuple([k * i + c for (k, c), i in zip(places, indices)])]

            return sum(_product([read(places) for places in term]) for term in self.terms)

        return ix.build(ranges, body)

    def value(self, u: Any) -> Any:
        return sum(_product([u[np.ix_(*self.places(p))] for p in term]) for term in self.terms)

    def gradient(self, u: Any, ct: Any) -> Any:
        """The transpose of the derivative, by the product rule."""
        found = np.zeros_like(u)
        for term in self.terms:
            for k, places in enumerate(term):
                others = [u[np.ix_(*self.places(p))] for m, p in enumerate(term) if m != k]
                np.add.at(found, np.ix_(*self.places(places)), _product([ct, *others]))
        return found

    def places(self, places: Any) -> list[Any]:
        return [(k * np.arange(n) + c) % n for (k, c), n in zip(places, self.shape)]


def _product(factors: list[Any]) -> Any:
    return np.prod(np.array(factors), 0) if isinstance(factors[0], np.ndarray) else _multiplied(factors)


def _multiplied(factors: list[Any]) -> Any:
    first, *rest = factors
    for x in rest:
        first = first * x
    return first


def random_stencil(rng: np.random.Generator, rank: int) -> Stencil:
    shape = tuple(int(n) for n in rng.integers(3, 40 if rank == 1 else 9, rank))

    def place() -> list[tuple[int, int]]:
        near = [int(rng.choice([-1, 1, 1, 2, -2, 0, 3 * n + 1, -2 * n - 1])) for n in shape]
        return [(int(rng.choice(STEPS)), c) for c in near]

    return Stencil(shape, [[place() for _ in range(rng.integers(1, 3))] for _ in range(rng.integers(2, 4))])


# The programs that were wrong: neighbours, added and multiplied.
NEIGHBOURS = [
    Stencil((n,), terms)
    for n, terms in itertools.product((6, 20), ([[[(1, 1)]], [[(1, -1)]]], [[[(1, 1)], [(1, -1)]]]))
]
RANDOM = [random_stencil(np.random.default_rng(seed), 1 + seed % 2) for seed in range(10)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("stencil", [*NEIGHBOURS, *RANDOM], ids=str)
def test_stencils(stencil: Stencil, dtype: str):
    rng = np.random.default_rng(0)
    with tl.enable_x64():
        # Small integers: sums and products of two or three of them are exact in float32, in any order.
        u, du, ct = (rng.integers(-9, 10, stencil.shape).astype(dtype) for _ in range(3))
        expected, slope = stencil.value(u), stencil.gradient(u, ct)
        compiled = tl.jit(stencil.bulk)
        results = [stencil.bulk(tnp.asarray(u)), compiled(u)] if dtype == "float32" else [compiled(u)]
        for found in results:
            np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(tl.jit(lambda u, ct: tl.vjp(stencil.bulk, u)[1](ct)[0])(u, ct), slope)
        if dtype == "float64":
            _, pushed = tl.jit(lambda u, du: tl.jvp(stencil.bulk, (u,), (du,)))(u, du)
            np.testing.assert_array_equal((pushed * ct).sum(), (slope * du).sum())
            batch = np.stack([u, du])
            np.testing.assert_array_equal(tl.jit(tl.vmap(stencil.bulk))(batch), [stencil.value(x) for x in batch])


@pytest.mark.parametrize("dtype", ["int32", "uint8", "bool", "complex64", "bfloat16", "float16"])
def test_rotations_of_other_dtypes(dtype: str):
    ring, u = ix.range("r", 11, periodic=True), tnp.arange(11).astype(dtype)
    for shift in (1, -1, 14, -25):
        found = tl.jit(lambda u, shift=shift: ix.build(ring, lambda i: u[i + shift]))(u)
        np.testing.assert_array_equal(found, np.roll(np.asarray(u), -shift))
        assert found.dtype == u.dtype


def test_indices_of_two_variables():
    """Modulo a size, with what is no box for a fixed period: Toeplitz and circulant reads, and their transposes."""
    n, u = 7, np.arange(1.0, 8.0, dtype=np.float32)
    ring = ix.range("r", n, periodic=True)
    i, j = np.indices((n, n))
    for index, places in [(lambda i, j: i + j, (i + j) % n), (lambda i, j: i - j, (i - j) % n)]:
        f = lambda u, index=index: ix.build((ring, ring), lambda i, j: u[index(i, j)] * u[index(i, j) + 1])  # noqa: E731
        expected = u[places] * u[(places + 1) % n]
        np.testing.assert_array_equal(tl.jit(f)(u), expected)
        np.testing.assert_array_equal(f(tnp.asarray(u)), expected)
        slope = np.zeros(n, np.float32)
        np.add.at(slope, places, u[(places + 1) % n])
        np.add.at(slope, (places + 1) % n, u[places])
        np.testing.assert_array_equal(tl.jit(tl.grad(lambda u, f=f: f(u).sum()))(u), slope)


def test_periodic_reads_are_slices():
    """No period is read behind a mask: a rotation costs nothing, a stencil its additions, in both directions."""
    ring = ix.range("r", 50, periodic=True)
    f = lambda u: ix.build(ring, lambda i: u[i + 1] + u[i - 1])  # noqa: E731
    for program in (f, lambda u: tl.vjp(f, u)[1](u)[0]):
        lowered = ix.lower_terms(tl.make_jaxpr(program)(tnp.ones(50)))
        assert {e.primitive.name for e in lowered.jaxpr.eqns} <= {"slice", "concatenate", "add"}, str(lowered)
        assert cost(lowered.jaxpr).work == 50
