"""Gathers, scatters and choices by index become slices, reverses, pads and parts. `after` compares signs of zeros."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests.interpreters.simplifications.programs import A, X, after, names

N = len(X)
AT: dict[str, tuple[Callable[[Any], Any], set[str]]] = {
    "an index": (lambda i: i, set()),
    "of a part": (lambda i: i[:5] + 2, {"slice"}),
    "turned": (lambda i: N - 1 - i, {"rev"}),
    "by steps": (lambda i: i[:5] * 3 + 1, {"slice"}),
    "from the end": (lambda i: i - N, set()),
    "shifted": (lambda i: i - 1, {"slice", "concatenate"}),
    "shifted modulo": (lambda i: (i + 3) % N, {"slice", "concatenate"}),
    "cut off by the mode": (lambda i: i + 1, {"slice", "concatenate"}),
    "clipped": (lambda i: tnp.clip(i, 2, 12), {"slice", "broadcast_in_dim", "reshape", "concatenate"}),
    "maximum": (lambda i: tnp.maximum(i - 1, 0), {"slice", "concatenate"}),
    "minimum": (lambda i: tnp.minimum(i + 1, N - 1), {"slice", "concatenate"}),
    "one of two": (lambda i: tnp.where(i < 4, i + 8, N - 1 - i), {"slice", "rev", "concatenate"}),
    "conjunction": (lambda i: tnp.where((i > 3) & (i <= 6), 0, i), {"slice", "broadcast_in_dim", "concatenate"}),
    "disjunction": (lambda i: tnp.where((i < 3) | ~(i < 9), i, 15 - i), {"slice", "rev", "concatenate"}),
    "all but one": (lambda i: tnp.where(i != 5, i, 0), {"slice", "concatenate"}),
    "short integers": (lambda i: i.astype("int8"), set()),
    "unsigned": (lambda i: i.astype("uint8") + np.uint8(200), {"slice", "broadcast_in_dim", "reshape"}),
    "long integers": (lambda i: i.astype("int64") * 2, {"slice", "broadcast_in_dim", "reshape", "concatenate"}),
    "of two axes": (lambda i: i[:4, None] * 4 + i[None, :4], {"reshape"}),
    "with gaps": (lambda i: i[:3, None] * 5 + i[None, :4], {"slice", "reshape"}),
    "turned in two axes": (lambda i: 15 - (i[:4, None] * 4 + i[None, :4]), {"rev", "reshape"}),
    "repeated": (lambda i: i[:, None] + 0 * i[None, :3], {"broadcast_in_dim"}),
    "joined": (lambda i: tnp.concatenate([i[:3], i[5:], i[:1]]), {"slice", "concatenate"}),
    "padded": (lambda i: tnp.pad(i + 1, (2, 1))[:N], {"slice", "broadcast_in_dim", "concatenate"}),
}


@pytest.mark.parametrize("name", AT)
def test_reads(name: str):
    at, operations = AT[name]
    jaxpr = after(lambda x: x[at(tnp.arange(N))], X)
    assert set(names(jaxpr)) <= {*operations, "reshape"} and operations - {"reshape"} <= set(names(jaxpr))


STAY: dict[str, Callable[[Any, Any], Any]] = {
    "windows": lambda x, i: x[i[:4, None] + i[None, :4]],
    "squares": lambda x, i: x[(i * i)[:4]],
    "quotients": lambda x, i: x[i // 3],
    "triangle": lambda x, i: x[i[:, None] - i[None, :]],
    "data": lambda x, i: x[tnp.where(i < 3, (10 * x).astype("int32"), i)],
    "wrapped": lambda x, i: x[i.astype("int8") * np.int8(17) + 1],
    "few of many": lambda x, i: x[i[:2, None] * 8 + i[None, :2]],
}


@pytest.mark.parametrize("name", STAY)
def test_what_stays_a_gather(name: str):
    """Where indices overlap or are no boxes, or nothing is known, or more is moved than read."""
    assert "gather" in names(after(lambda x: STAY[name](x, tnp.arange(N)), X))


def test_a_diagonal_of_what_is_repeated_is_repeated():
    def diagonal(x):
        return tnp.broadcast_to(x[:, None, None], (N, 4, N))[tnp.arange(N), :, tnp.arange(N)]

    jaxpr = after(diagonal, X)
    assert names(jaxpr) == ["broadcast_in_dim"]


MATRIX: dict[str, Callable[[Any, Any], Any]] = {
    "all": lambda a, i: a[i[:, None], i[None]],
    "transposed": lambda a, i: a[i[None], i[:, None]],
    "part": lambda a, i: a[i[2:5, None], i[None, :3] * 2],
    "rows": lambda a, i: a[15 - i],
    "columns": lambda a, i: a[:, 15 - i],
    "diagonal": lambda a, i: a[i, i],
    "rolled": lambda a, i: a[i[:, None] - 1, i[None] - 2],
    "row": lambda a, i: a[3, i],
    "row by row": lambda a, i: tl.vmap(lambda r: r[15 - i])(a),
    "windows": lambda a, i: tl.vmap(lambda k: lax.dynamic_slice(a, (k, 0), (1, 16)))(i)[:, 0],
}


@pytest.mark.parametrize("name", MATRIX)
def test_reads_of_matrices(name: str):
    assert not {"gather", "select_n", "iota"} & set(names(after(lambda a: MATRIX[name](a, tnp.arange(16)), A)))


@pytest.mark.parametrize("mode", ["clip", "fill", "promise_in_bounds"])
@pytest.mark.parametrize("fill", [None, 0, 7])
@pytest.mark.parametrize("shift", [-2, 0, 3])
@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("dtype", ["float32", "int8", "uint8", "bool", "complex64"])
def test_modes(mode: str, fill: Any, shift: int, n: int, dtype: str):
    """Of positions outside, which lax does not count from the end."""

    def f(x: Any) -> Any:
        numbers = lax.GatherDimensionNumbers((), (0,), (0,))
        at = (tnp.arange(4) + shift)[:, None]
        return lax.gather(x, at, numbers, (1,), mode=mode, fill_value=fill)

    jaxpr = after(f, (np.arange(n) - 1).astype(dtype))
    assert "gather" not in names(jaxpr)


def test_what_is_filled_stands_beside_what_is_read():
    for fill in (None, 0.0, -0.0, np.inf, 0.1):
        jaxpr = after(lambda x: x.at[tnp.arange(N) + 2].get(mode="fill", fill_value=fill), X)  # noqa: B023
        assert ("gather" in names(jaxpr)) == (str(fill) == "-0.0")


@pytest.mark.parametrize("n", [0, 1])
def test_few_elements(n: int):
    for f in (lambda x: x[tnp.arange(n)], lambda x: x[n - 1 - tnp.arange(n)], lambda x: tnp.zeros(n).at[0:n].add(x)):
        after(f, np.ones(n))


# ---- writes --------------------------------------------------------------------------------------------------

INTO: dict[str, Callable[[Any, Any, Any], Any]] = {
    "turned": lambda z, x, i: z.at[15 - i].add(x),
    "shifted": lambda z, x, i: z.at[(i + 3) % N].add(x),
    "by steps": lambda z, x, i: z.at[i[:5] * 3].add(x[:5]),
    "outside": lambda z, x, i: z.at[i + 4].add(x, mode="drop"),
    "moved inside": lambda z, x, i: z.at[i + 4].add(x, mode="clip"),
    "all at one place": lambda z, x, i: z.at[0 * i + 3].add(x),
    "two at each": lambda z, x, i: z.at[tnp.where(i < 8, i, i - 8)].add(x),
    "twice": lambda z, x, i: z.at[i].add(x).at[15 - i].add(2 * x),
    "subtracted": lambda z, x, i: z.at[15 - i].subtract(x),
}


@pytest.mark.parametrize("name", INTO)
def test_writes_into_zeros(name: str):
    jaxpr = after(lambda x: INTO[name](tnp.zeros(N), x, tnp.arange(N)), X)
    assert not {"scatter_add", "gather", "iota"} & set(names(jaxpr))


@pytest.mark.parametrize("name", INTO)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "complex64"])
def test_writes_into_numbers(name: str, dtype: str):
    """Signs of zeros stay where nothing is added, and integers wrap around."""
    z = np.where(np.arange(N) % 2, -0.0, 100).astype(dtype)
    after(lambda z, x: INTO[name](z, x, tnp.arange(N)), z, (np.arange(N) - 7).astype(dtype))


def test_few_updates_stay_a_scatter():
    """As in a loop, where they are written into the array itself."""
    assert names(after(lambda z: z.at[tnp.arange(3) + 1].add(1.0), X)).count("scatter_add") == 1
    f = lambda z: lax.fori_loop(0, 3, lambda k, z: z.at[tnp.arange(2) * 2].add(z[0]), z)  # noqa: E731
    assert "scatter_add" in str(after(f, X))


def test_sums_of_small_range_stay_a_scatter():
    f = lambda x: tnp.zeros(3, "float16").at[0 * tnp.arange(N)].add(x)  # noqa: E731
    assert "scatter_add" in names(after(f, X.astype("float16")))


SET: dict[str, tuple[Callable[[Any, Any, Any], Any], bool]] = {
    "all": (lambda z, x, i: z.at[15 - i].set(x), True),
    "shifted": (lambda z, x, i: z.at[(i + 3) % N].set(x), True),
    "outside": (lambda z, x, i: z.at[i + 4].set(x, mode="drop"), True),
    "in the middle": (lambda z, x, i: z.at[i[:9] + 4].set(x[:9]), True),
    "of a matrix": (lambda z, x, i: z.reshape(4, 4).at[1 + i[:3, None], i[None, :3]].set(x[:9].reshape(3, 3)), True),
    "into zeros, by steps": (lambda z, x, i: (0 * x).at[i[:5] * 3].set(x[:5]), False),
    "by steps": (lambda z, x, i: z.at[i[:8] * 2].set(x[:8]), False),
    "few": (lambda z, x, i: z.at[i[:3]].set(x[:3]), False),
    "two at each": (lambda z, x, i: z.at[tnp.where(i < 8, i, i - 8)].set(x), False),
    "moved inside": (lambda z, x, i: z.at[i + 4].set(x, mode="clip"), False),
    "all at one place": (lambda z, x, i: z.at[0 * i + 3].set(x), False),
}


@pytest.mark.parametrize("name", SET)
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "complex64"])
def test_elements_that_are_replaced(name: str, dtype: str):
    """No element is written twice, and none is lost between those that are written."""
    f, is_bulk = SET[name]
    z = np.where(np.arange(N) % 2, -0.0, 100).astype(dtype)
    jaxpr = after(lambda z, x: f(z, x, tnp.arange(N)), z, (np.arange(N) - 7).astype(dtype))
    assert ("scatter" not in names(jaxpr)) == is_bulk


# ---- choices -------------------------------------------------------------------------------------------------

CHOICES: dict[str, tuple[Callable[[Any, Any, Any], Any], set[str]]] = {
    "range": (lambda x, y, i: tnp.where(i < 5, x, y), {"slice", "concatenate"}),
    "middle": (lambda x, y, i: tnp.where((i >= 5) & (i < 7), x, y), {"slice", "concatenate"}),
    "one": (lambda x, y, i: tnp.where(i == 5, x, y), {"slice", "concatenate"}),
    "zeros": (lambda x, y, i: tnp.where(i < 5, x, 0.0), {"slice", "pad"}),
    "negative zeros": (lambda x, y, i: tnp.where(i < 5, x, -0.0), {"slice", "concatenate", "broadcast_in_dim"}),
    "always": (lambda x, y, i: tnp.where(i < 16, x, y), set()),
    "never": (lambda x, y, i: tnp.where(i < 0, x, y), set()),
    "of many": (
        lambda x, y, i: lax.select_n(tnp.clip(i - 7, 0, 2), x, y, 2 * x),
        {"slice", "concatenate", "mul"},
    ),
    "beyond all cases": (lambda x, y, i: lax.select_n(i, x, y, 2 * x), {"slice", "concatenate", "mul"}),
    "nested": (lambda x, y, i: tnp.where(i < 5, x, tnp.where(i < 7, y, 2 * x)), {"slice", "concatenate", "mul"}),
}


@pytest.mark.parametrize("name", CHOICES)
def test_choices(name: str):
    f, operations = CHOICES[name]
    assert set(names(after(lambda x, y: f(x, y, tnp.arange(N)), X, -X))) == operations


def test_only_what_is_chosen_is_computed():
    jaxpr = after(lambda x: tnp.where(tnp.arange(N) < 8, tnp.sin(x), tnp.exp(x)), X)
    sizes = {str(eqn.primitive): eqn.outvars[0].aval.size for eqn in jaxpr.eqns}
    assert (sizes["sin"], sizes["exp"]) == (8, 8)


def test_what_stays_a_choice():
    """No boxes, and what is computed."""
    assert "select_n" in names(after(lambda a: tnp.where(tnp.arange(16)[:, None] < tnp.arange(16), a, 1.0), A))
    assert "select_n" in names(after(lambda x: tnp.where(x < 1, x, 1.0), X))


def test_keys_are_left_alone():
    keys = tl.random.split(tl.random.key(0), 4)
    f = tl.jit(lambda k: tl.random.key_data(tnp.where(tnp.arange(4) < 2, k[3 - tnp.arange(4)], k)))
    data = np.asarray(tl.random.key_data(keys))
    np.testing.assert_array_equal(f(keys), np.concatenate([data[:1:-1], data[2:]]))
