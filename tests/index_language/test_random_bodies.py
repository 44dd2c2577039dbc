"""Random bodies against loops over elements in Python, which share no code with them: values and both derivatives."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import index as ix

pytestmark = pytest.mark.usefixtures("eager_by_steps")

SIZES = (3, 4, 5)


class Reader:
    """An array of NumPy that reads 0 outside, as arrays in bodies do; its elements may be of any type."""

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)

    def __getitem__(self, index: Any) -> Any:
        items = index if isinstance(index, tuple) else (index,)
        inside = all(0 <= i < n for i, n in zip(items, self.values.shape, strict=True))
        return self.values[items] if inside else 0.0


Body = Callable[..., Any]


def random_index(rng: np.random.Generator, names: Sequence[str]) -> str:
    i, j = rng.choice(names, 2)
    return str(
        rng.choice(
            [f"{i}", f"{i} + {j}", f"2 * {i} - 1", f"{i} - {j}", f"{i} - 1", "2", f"({i} + 2 * {j}) // 3",
             f"({i} + {j}) % 3", f"3 - {i}", f"where({i} < {j}, {i}, 1)", f"p[{i}]", f"p[{i}] + {j}"]
        )
    )  # fmt: skip


def random_condition(rng: np.random.Generator, names: Sequence[str]) -> str:
    i, j = rng.choice(names, 2)
    compare = rng.choice(["==", "!=", "<", "<=", ">", ">="])
    first = f"({i} {compare} {j} + {rng.integers(-1, 2)})"
    return rng.choice([first, f"({first} & ({i} > 0))", f"({first} | ({j} == 1))", f"(x[{i}] > 0.5)"])


def random_element(rng: np.random.Generator, names: list[str], depth: int) -> str:
    """Write a formula of an element, in which bodies of inner sums have names of their own."""
    if depth == 0:
        read = [f"x[{random_index(rng, names)}]", f"a[{random_index(rng, names)}, {random_index(rng, names)}]"]
        return str(rng.choice(read))
    kind = rng.choice(["times", "plus", "bracket", "sin", "sum", "where", "build"])
    one = random_element(rng, names, depth - 1)
    if kind in ("sum", "build"):
        new = f"k{len(names)}"
        inner = random_element(rng, [*names, new], depth - 1)
        n = rng.choice(SIZES)
        if kind == "sum":
            return f"total({n}, lambda {new}: {inner})"
        return f"build({n}, lambda {new}: {inner})[{random_index(rng, names)}]"
    other = random_element(rng, names, depth - 1)
    condition = random_condition(rng, names)
    return {
        "times": f"({one} * {other})",
        "plus": f"({one} + {other})",
        "bracket": f"({condition} * {one})",
        "sin": f"sin({one})",
        "where": f"where({condition}, {one}, {other})",
    }[kind]


def bulk_names(x: Any, a: Any, p: Any) -> dict[str, Any]:
    return {"x": x, "a": a, "p": p, "total": ix.sum, "build": ix.build, "where": ix.where, "sin": tnp.sin}


def loop_names(x: Any, a: Any, p: Any) -> dict[str, Any]:
    def build(n: int, f: Body) -> Reader:
        return Reader([f(k) for k in range(n)])

    def where(c: Any, u: Any, v: Any) -> Any:
        return u if c else v

    total = lambda n, f: sum((f(k) for k in range(n)), 0.0)  # noqa: E731
    return {"x": x, "a": a, "p": p, "total": total, "build": build, "where": where, "sin": np.sin}


def evaluated(text: str, names: dict[str, Any]) -> Any:
    return eval(text, names)  # the formulas are our own


def check_values_and_derivatives(bulk: Body, loops: Body, x: Any, a: Any, rng: np.random.Generator, text: str) -> None:
    """Compare a function of a vector and a matrix with loops in Python: values, both derivatives, and a batch."""
    with tl.enable_x64():
        xs, As = tnp.asarray(x), tnp.asarray(a)
        expected = loops(x, a)
        dx, da, ct = rng.normal(size=x.shape), rng.normal(size=a.shape), rng.normal(size=expected.shape)

        @tl.jit
        def compiled(x: Any, a: Any, dx: Any, da: Any, ct: Any) -> Any:
            pulled = tl.vjp(bulk, x, a)[1](ct)
            return tl.jvp(bulk, (x, a), (dx, da)), pulled, tl.vmap(bulk, (None, 0))(x, tnp.stack([a, 2 * a]))

        (value, pushed), (gx, ga), batched = compiled(x, a, dx, da, ct)
        for found in (bulk(xs, As), value):
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9, err_msg=text)
        step = 1e-6
        slope = (loops(x + step * dx, a + step * da) - loops(x - step * dx, a - step * da)) / (2 * step)
        # Central differences of sums of a few products of normal numbers: an error of step^2 and of rounding / step.
        np.testing.assert_allclose(pushed, slope, rtol=1e-5, atol=1e-6, err_msg=text)
        np.testing.assert_allclose((gx * dx).sum() + (ga * da).sum(), (ct * pushed).sum(), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(batched[1], loops(x, 2 * a), rtol=1e-9, atol=1e-9, err_msg=text)


@pytest.mark.parametrize("seed", range(16))
def test_values_and_derivatives(seed: int):
    rng = np.random.default_rng(seed)
    n, m = rng.choice(SIZES, 2)
    text = random_element(rng, ["i", "j"], 3)
    x, a, p = rng.normal(size=5), rng.normal(size=(4, 6)), rng.integers(-1, 6, 5)

    def bulk(x: Any, a: Any) -> Any:
        return ix.build(
            (int(n), int(m)), lambda i, j: evaluated(text, {**bulk_names(x, a, tnp.asarray(p)), "i": i, "j": j})
        )

    def loops(x: Any, a: Any) -> Any:
        names = loop_names(Reader(x), Reader(a), IntegerReader(p))
        return np.array([[evaluated(text, {**names, "i": i, "j": j}) for j in range(m)] for i in range(n)], float)

    check_values_and_derivatives(bulk, loops, x, a, rng, text)


class IntegerReader(Reader):
    """An array of integers, whose element outside is the integer 0."""

    def __getitem__(self, index: Any) -> Any:
        return int(super().__getitem__(index))


def random_program(seed: int) -> tuple[str, Callable[[Any, Any], Any]]:
    """Write a random formula, and the array of it as a function of a vector and a matrix."""
    rng = np.random.default_rng(seed)
    n, m = map(int, rng.choice(SIZES, 2))
    text, p = random_element(rng, ["i", "j"], 3), rng.integers(-1, 6, 5)

    def bulk(x: Any, a: Any) -> Any:
        names = bulk_names(x, a, tnp.asarray(p))
        return ix.build((n, m), lambda i, j: evaluated(text, {**names, "i": i, "j": j}))

    return text, bulk


REDUCTIONS = {
    "sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min, "argmax": np.argmax, "argmin": np.argmin,
}  # fmt: skip


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str):
    a = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    found = getattr(ix, name)((3, 4), lambda i, j: tnp.asarray(a)[i, j])
    np.testing.assert_allclose(found, REDUCTIONS[name](a), rtol=1e-6)


def test_quantifiers():
    r = tnp.asarray(np.array([[True, False], [True, True], [False, False]]))
    np.testing.assert_array_equal(ix.build(3, lambda i: ix.exists(2, lambda j: r[i, j])), [True, True, False])
    np.testing.assert_array_equal(ix.build(3, lambda i: ix.forall(2, lambda j: r[i, j])), [False, True, False])
    assert ix.any is ix.exists and ix.all is ix.forall


@pytest.mark.parametrize("shape", list(itertools.product([(), (3,)], [(), (2,)])))
def test_bodies_of_arrays_and_trees(shape: tuple[tuple[int, ...], tuple[int, ...]]):
    outer, inner = shape
    x = tnp.arange(12.0).reshape(3, 2, 2)

    def body(*i: Any) -> Any:
        row = x[i[0]] if i else x[0]
        return {"a": row[0] if inner else row[0, 0], "b": (1, row.sum())}

    found = ix.build(outer, body)
    assert found["a"].shape == outer + inner
    assert found["b"][0].shape == found["b"][1].shape == outer
    np.testing.assert_array_equal(found["b"][1], x.sum((1, 2)) if outer else x[0].sum())


def test_keys_in_bodies():
    keys = tl.random.split(tl.random.key(0), 3)
    expected = tl.vmap(tl.random.uniform)(keys)
    np.testing.assert_array_equal(ix.build(3, lambda i: tl.random.uniform(keys[i])), expected)
    folded = [tl.random.uniform(tl.random.fold_in(keys[0], i)) for i in range(3)]
    found = ix.build(3, lambda i: tl.random.uniform(tl.random.fold_in(keys[0], i)))
    np.testing.assert_array_equal(found, np.array(folded))


@pytest.mark.parametrize(
    "formula, element",
    [
        (lambda i: (i - 3) // 2, lambda i: (i - 3) // 2),
        (lambda i: (2 - i) // 3, lambda i: (2 - i) // 3),
        (lambda i: (i - 3) % 4, lambda i: (i - 3) % 4),
        (lambda i: (i - 3) // -2, lambda i: (i - 3) // -2),
        (lambda i: ((i // 2) // 2, (i // 2) % 3), lambda i: ((i // 2) // 2, (i // 2) % 3)),
        (lambda i: (i * 2_000_000_000 + 7) % 5, lambda i: (i * 2_000_000_000 + 7) % 5),
        (lambda i: np.float32(2) * i + np.arange(2), lambda i: 2 * i + np.arange(2)),
        (lambda i: i / 2 + 1 / (i + 1) + 2.0**i, lambda i: i / 2 + 1 / (i + 1) + 2.0**i),
        (lambda i: (i > 0) * (1 / (0.0 * i)), lambda i: np.inf if i else 0.0),
    ],
)
def test_arithmetic_of_indices(formula, element):
    for k, leaf in enumerate(tl.tree.leaves(ix.build(6, formula))):
        expected = [np.ravel(element(i))[k] if isinstance(element(i), tuple) else element(i) for i in range(6)]
        np.testing.assert_allclose(leaf, expected, rtol=1e-6)


def test_positions_of_narrow_integers():
    """Their sums with indices do not wrap around, and what they say is outside is."""
    narrow, wide = tnp.array([0, -1, 127], dtype="int8"), tnp.array([2**40, 1], dtype="int64")
    np.testing.assert_array_equal(ix.build(3, lambda i: tnp.arange(300.0)[narrow[i] + 100]), [100, 99, 227])
    np.testing.assert_array_equal(ix.build(2, lambda i: tnp.arange(3.0)[wide[i]]), [0, 1])
