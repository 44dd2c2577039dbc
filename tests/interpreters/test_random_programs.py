"""Random programs of NumPy's functions: values against NumPy's own, derivatives against differences and each other.

A program is a list of steps over a pool of matrices; each step appends one, and all of them count in the result. The
functions are dealt out at random, so that every one is in some program of a deal. A few programs are asked each time,
for compiling takes long; `TAPELESS_PROGRAMS=52 pytest tests/interpreters/test_random_programs.py` asks a whole deal.
"""

import os
from typing import Any, NamedTuple

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tests.interpreters.numpy_operations import OPERATIONS, SHAPE, spread

pytestmark = pytest.mark.usefixtures("eager_by_steps")

STEPS, PROGRAMS = 6, int(os.environ.get("TAPELESS_PROGRAMS", "7"))
STEP_SIZE = 1e-6
# Values are of the size of 1, with a dozen roundings each; a difference quotient loses half of the digits.
ROUNDING = {"rtol": 1e-9, "atol": 1e-9}
DIFFERENCES = {"rtol": 1e-5, "atol": 1e-6}


class Step(NamedTuple):
    name: str
    i: int
    j: int


class Program(NamedTuple):
    """Steps, and a coefficient for each."""

    steps: tuple[Step, ...]
    shares: tuple[float, ...]

    def __call__(self, lib: Any, x: Any, y: Any) -> Any:
        pool = [x, y]
        for name, i, j in self.steps:
            pool.append(spread(lib, OPERATIONS[name](lib, pool[i], pool[j])))
        return sum(share * z for share, z in zip(self.shares, pool[2:], strict=True))


def dealt(seed: int) -> list[Program]:
    """Programs that have every function between them. A step reads one of the last three results, and any."""
    random = np.random.default_rng(seed)
    names = random.permutation(sorted(OPERATIONS))
    programs = []
    for start in range(0, len(names), STEPS):
        chosen = names[start : start + STEPS]
        steps = [Step(str(n), k + 1 - int(random.integers(min(k + 2, 3))), int(random.integers(k + 2)))
                 for k, n in enumerate(chosen)]  # fmt: skip
        programs.append(Program(tuple(steps), tuple(random.uniform(0.3, 1, len(steps)).round(2).tolist())))
    return programs


class Measured(NamedTuple):
    """What one compiled program says of itself at a point, in a direction."""

    value: Any
    tangent: Any
    gradient: Any
    forward_over_reverse: Any
    reverse_over_forward: Any


class Asked:
    """A program with a point, a direction and weights that make it scalar."""

    def __init__(self, program: Program) -> None:
        random = np.random.default_rng(0)
        self.program, self.weights = program, random.normal(size=SHAPE)
        self.point = random.normal(size=SHAPE), random.normal(size=SHAPE)
        self.direction = random.normal(size=SHAPE), random.normal(size=SHAPE)
        self.compiled = tl.jit(self.measured)

    def reference(self, x: Any, y: Any) -> Any:
        return self.program(np, x, y)

    def ours(self, x: Any, y: Any) -> Any:
        return self.program(tnp, x, y)

    def loss(self, x: Any, y: Any) -> Any:
        return tnp.sum(self.ours(x, y) * self.weights)

    def measured(self, x: Any, y: Any) -> Measured:
        gradient = tl.grad(self.loss, argnums=(0, 1))
        return Measured(
            *tl.jvp(self.ours, (x, y), self.direction),
            gradient(x, y),
            tl.jvp(gradient, (x, y), self.direction)[1],
            tl.grad(lambda *xs: tl.jvp(self.loss, xs, self.direction)[1], argnums=(0, 1))(x, y),
        )

    def difference(self, f: Any) -> Any:
        """That of f along the direction, per step."""
        steps = [[x + s * t for x, t in zip(self.point, self.direction)] for s in (STEP_SIZE, -STEP_SIZE)]
        return (np.asarray(f(*steps[0])) - np.asarray(f(*steps[1]))) / (2 * STEP_SIZE)


def inner_product(xs: Any, ys: Any) -> float:
    return float(sum(np.vdot(x, y) for x, y in zip(xs, ys, strict=True)))


@pytest.fixture(scope="module", params=dealt(0)[:PROGRAMS], ids=lambda p: "-".join(step.name for step in p.steps))
def asked(request: pytest.FixtureRequest) -> Asked:
    return Asked(request.param)


@pytest.fixture(scope="module")
def found(asked: Asked) -> Measured:
    return asked.compiled(*asked.point)


def test_values_are_those_of_numpy(asked: Asked, found: Measured):
    expected = asked.reference(*asked.point)
    np.testing.assert_allclose(found.value, expected, **ROUNDING)
    assert found.value.dtype == expected.dtype


def test_tangents_are_differences(asked: Asked, found: Measured):
    np.testing.assert_allclose(found.tangent, asked.difference(asked.reference), **DIFFERENCES)


def test_reverse_is_the_transpose_of_forward(asked: Asked, found: Measured):
    forward = inner_product([found.tangent], [asked.weights])
    np.testing.assert_allclose(inner_product(found.gradient, asked.direction), forward, **ROUNDING)


def test_second_derivatives(asked: Asked, found: Measured):
    one, other = (np.stack(x) for x in (found.forward_over_reverse, found.reverse_over_forward))
    np.testing.assert_allclose(one, other, **ROUNDING)
    differences = asked.difference(lambda *xs: np.stack(asked.compiled(*xs).gradient))
    np.testing.assert_allclose(one, differences, **DIFFERENCES)


@pytest.mark.parametrize("program", dealt(1)[: PROGRAMS // 3], ids=lambda p: "-".join(s.name for s in p.steps))
def test_jit_changes_nothing(program: Program):
    asked = Asked(program)
    point = [tnp.asarray(x) for x in asked.point]
    for f in (asked.ours, tl.grad(asked.loss)):
        np.testing.assert_allclose(f(*point), tl.jit(f)(*point), **ROUNDING)


def test_a_deal_has_every_function():
    assert {step.name for program in dealt(0) for step in program.steps} == OPERATIONS.keys()
