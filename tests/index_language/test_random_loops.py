"""Random folds and scans over an index against loops in Python: values, both derivatives, batches, checkpoints."""

from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import index as ix
from tapeless.testing import check_grads
from tests.index_language import test_random_bodies as bodies


def random_step(rng: np.random.Generator, names: list[str], depth: int) -> str:
    """Write a formula of the carry c and of elements, most of them read at the index of the step, the last name."""
    k = names[-1]
    read = [f"x[{k}]", f"a[{k}, {bodies.random_index(rng, names)}]", f"row({k})", f"x[{k} - 1]"]
    element = str(rng.choice([*read, bodies.random_element(rng, names, depth)]))
    other, condition = str(rng.choice(read)), bodies.random_condition(rng, names)
    return str(
        rng.choice(
            [f"sin(c) * {element}", f"0.5 * c + {element}", f"c * {other} + {element}", f"{condition} * c + {other}",
             f"where({condition}, c, {element})", f"sin(c + {element}) * {other}", f"{condition} * ({other} + sin(c))"]
        )
    )  # fmt: skip


def random_loop(rng: np.random.Generator, names: list[str]) -> str:
    k, n, start = f"k{len(names)}", rng.choice([1, 4, 5, 6]), rng.choice(["1.0", "x[1]", f"a[{names[0]}, 2]"])
    inner = [*names, k]
    step = random_step(rng, inner, 1)
    if rng.random() < 0.3:
        step = f"{step} + fold(lambda c, k{len(inner)}: {random_step(rng, [*inner, f'k{len(inner)}'], 0)}, c, 5)"
    if rng.random() < 0.5:
        return f"fold(lambda c, {k}: {step}, {start}, {n})"
    y = random_step(rng, inner, 0)
    return f"scan(lambda c, {k}: ({step}, {y}), {start}, {n})[1][{bodies.random_index(rng, names)}]"


def folded(f: Any, c: Any, n: int) -> Any:
    for k in range(n):
        c = f(c, k)
    return c


def scanned(f: Any, c: Any, n: int) -> Any:
    ys: list[Any] = []
    for k in range(n):
        c, y = f(c, k)
        ys.append(y)
    return c, bodies.Reader(ys)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("around", ["build", "scan"])
def test_values_and_derivatives(seed: int, around: str):
    rng = np.random.default_rng([seed, len(around)])
    compare_with_loops(random_loop(rng, ["i"]), around, rng)


@pytest.mark.parametrize("around", ["build", "scan"])
@pytest.mark.parametrize(
    "text",
    [
        # positions that were computed: reads are total in steps, too
        "scan(lambda c, k: (c, x[k]), 1.0, 1)[1][where(i < i, i, 1)]",
        "fold(lambda c, k: c + x[where(k > 2, k + 3, k)] * x[p[k] + k], 0.5, 5)",
        # a conjunction of a predicate of one step and one of all elements
        "scan(lambda c, k: (where((x[k] > 0.5), c, row(k)), ((k != i) & (k > 0)) * (x[k] + sin(c))), x[i], 5)[1][p[i]]",
        "scan(lambda c, k: (c * 0.5 + x[k - 1], ((i <= k) | (k == 1)) * c + a[k, p[i] + k]), 1.0, 6)[1][i - i]",
    ],
)
def test_loops_that_went_wrong(text: str, around: str):
    compare_with_loops(text, around, np.random.default_rng(0))


def compare_with_loops(text: str, around: str, rng: np.random.Generator) -> None:
    """Compare the array of a formula for three i, in the body of a build or of a scan, with loops in Python."""
    x, a, p = rng.normal(size=5), rng.normal(size=(4, 6)), rng.integers(-1, 6, 5)

    def bulk(x: Any, a: Any) -> Any:
        names = {
            **bodies.bulk_names(x, a, tnp.asarray(p)),
            "fold": ix.fold,
            "scan": ix.scan,
            "row": lambda k: a[k].sum(),
        }
        element = lambda i: bodies.evaluated(text, {**names, "i": i})  # noqa: E731
        return ix.build(3, element) if around == "build" else ix.scan(lambda c, i: (c, element(i)), 0.0, 3)[1]

    def loops(x: Any, a: Any) -> Any:
        names = {
            **bodies.loop_names(bodies.Reader(x), bodies.Reader(a), bodies.IntegerReader(p)),
            "fold": folded, "scan": scanned, "row": lambda k: a[k].sum() if 0 <= k < len(a) else 0.0,
        }  # fmt: skip
        return np.array([bodies.evaluated(text, {**names, "i": i}) for i in range(3)], float)

    bodies.check_values_and_derivatives(bulk, loops, x, a, rng, text)
    with tl.enable_x64():
        functions, ct = (tl.checkpoint(bulk), bulk), np.ones(3)
        pulled = tl.jit(lambda x, a: tuple([tl.vjp(f, x, a)[1](ct) for f in functions]))(x, a)
        for found, expected in zip(*pulled, strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12, err_msg=text)


VECTOR, MATRIX, LONGER = np.arange(1.0, 5.0), np.arange(8.0).reshape(4, 2) / 4, np.arange(1.0, 6.0)


@pytest.mark.parametrize(
    "read, x, whole",
    [
        (lambda x, k: x[k], VECTOR, False),
        (lambda x, k: x[k] * tnp.cos(x[k]), VECTOR, False),
        (lambda x, k: x[k].sum(), MATRIX, False),
        (lambda x, k: x[k] * x[k - 1], VECTOR, True),
        (lambda x, k: x[k] * x.sum(), VECTOR, True),
        (lambda x, k: x[3 - k], VECTOR, True),
        (lambda x, k: x[k, 1], MATRIX, True),
        (lambda x, k: x[k], LONGER, True),
    ],
)
def test_arrays_read_at_the_index_alone_are_scanned(read: Any, x: Any, whole: bool):
    def f(x: Any) -> Any:
        y = tnp.sin(x)
        return ix.fold(lambda c, k: c * read(y, k), 1.0, 4)

    with tl.enable_x64():
        (scan,) = [eqn for eqn in tl.make_jaxpr(f)(x).jaxpr.eqns if str(eqn.primitive) == "scan"]
        assert scan.params["n_consts"] == whole
        check_grads(f, (x,), order=2)
