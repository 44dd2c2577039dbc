"""What derivatives of bodies cost, and the theorems on halves and transposes, by public calls.

D pushes a tangent and D* pulls a cotangent; both compute the function too. `ends` are scalars in and out.
    cost(D) <= 4 cost        cost(D*) <= 4 (cost + ends), and even 4 cost + ends
The cost of a function is that of its program as it is traced, in which each function of scalars counts, or in the model
that knows what indices are, if that is more. `python -m tests.cost_ratios index` prints the ratios.
W is the work of a program, J its derivative, l the linear half: W(nonlinear half) + W(l) = W(Jf), and
W(transpose of l) <= W(l) + |results| - |inputs|.
Sources: Bernstein et al. 2020, section 6; Radul et al. 2023, section 7.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.tracer.jaxpr import Jaxpr
from tests.cost_ratios import indexed, ratio
from tests.interpreters.analysis.test_cost import NETWORKS

CASES = dict(indexed(range(60)))


@pytest.mark.parametrize("name", CASES)
def test_derivatives_cost_a_constant_times_the_function(name: str):
    """TL16"""
    case = CASES[name]
    counted = tl.cost(case.function, *case.args)
    found = ratio(*case)._replace(function=max(counted.work, counted.sparse.work))
    assert found.forward <= 4 * found.function
    assert found.reverse <= 4 * found.function + found.ends


# ---- halves and transposes -----------------------------------------------------------------------------------


def random_function(seed: int) -> tuple[Callable[..., Any], int]:
    """A few operations of scalars, and the number of arguments."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 4))
    steps = [(int(rng.integers(5)), rng.integers(64, size=2)) for _ in range(rng.integers(1, 10))]
    operations = (tnp.sin, tnp.exp, lambda x, y: x + y, lambda x, y: x * y, lambda x, y: 2.0 * x - y)

    def f(*xs: Any) -> Any:
        pool = list(xs)
        for k, (i, j) in steps:
            given = [pool[i % len(pool)], pool[j % len(pool)]][: 1 if k < 2 else 2]
            pool.append(operations[k](*given))
        return pool[-1]

    return f, n


def check_theorems(f: Callable[..., Any], args: Any) -> None:
    """T2 to the last scalar, T3, and that a transpose's transpose is no more work than what it is one of."""
    halves = tl.unzip(f, *args, strict=True)
    assert tl.work(halves) == tl.work(halves.primal) + tl.work(halves.linear) == tl.work(halves.jvp)
    linear = halves.linear
    assert tl.work(halves.transposed) <= tl.work(linear) + scalars(linear.outvars) - scalars(tangents(linear))
    assert tl.work(tl.transpose_jaxpr(halves.transposed, strict=True)) <= tl.work(linear)


def tangents(linear: Jaxpr) -> list[Any]:
    return [v for v in linear.invars if v.linear]


def scalars(variables: Any) -> int:
    return sum(v.aval.size for v in variables)


@pytest.mark.parametrize("first", range(0, 1000, 250))
def test_theorems_on_random_functions(first: int):
    """LO10"""
    for seed in range(first, first + 250):
        f, n = random_function(seed)
        check_theorems(f, [tl.ShapeDtypeStruct((), "float32")] * n)


@pytest.mark.parametrize("f", NETWORKS, ids=lambda f: f.__name__)
def test_theorems_on_networks(f: Callable[..., Any]):
    """LO10: a perceptron, a convolutional network, a recurrent scan, attention."""
    check_theorems(f, NETWORKS[f])


def test_gradient_programs_of_nested_calls_grow_linearly():
    """LO11: as far as `tl.program_size` counts them, and each body is there once."""

    def nested(n: int) -> Any:
        f: Any = tnp.sin
        for _ in range(n):
            f = tl.jit(lambda x, f=f: tnp.sin(f(x)) * x)
        return f

    sizes = [tl.program_size(tl.gradient_program(nested(n), np.float32(1)).gradient) for n in (4, 8, 12, 16)]
    assert len(set(np.diff(sizes))) == 1
