"""Contractions of scaled arrays beside the product without the factor: values, which are shared, and which are not."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax

X, W, ROW, COLUMN = (30, 7, 40), (40, 5), (5,), (40,)
Program = Callable[..., Any]


def cut(a: Any) -> Any:
    return lax.optimization_barrier(a)


# Programs of numpy's or ours (np), x, w, and vectors along the rows and along the columns of w; products in the result.
PROGRAMS: dict[str, tuple[int, Program]] = {
    "right": (1, lambda np, x, w, r, c: (x @ w, x @ (w * r))),
    "right, before its product": (1, lambda np, x, w, r, c: (x @ (r * w), x @ w)),
    "left": (1, lambda np, x, w, r, c: (x @ w, (x * c[:30, None, None]) @ w)),
    "two factors, one by one": (1, lambda np, x, w, r, c: (x @ w, x @ (w * r), x @ ((w * r) * np.sin(r)))),
    "both sides": (1, lambda np, x, w, r, c: (x @ w, x @ (w * r), (x * c[:7, None]) @ (w * r))),
    "written again": (1, lambda np, x, w, r, c: (np.sin(x) @ np.cos(w), np.sin(x) @ (np.cos(w) * r))),
    "along what is summed": (2, lambda np, x, w, r, c: (x @ w, x @ (w * c[:, None]))),
    "along both axes": (2, lambda np, x, w, r, c: (x @ w, x @ (w * np.outer(c, r)))),
    "of another array": (2, lambda np, x, w, r, c: (x @ w, np.sin(x) @ (w * r))),
    "without its product": (1, lambda np, x, w, r, c: (x @ (w * r),)),
}


def arrays(rng: np.random.Generator, dtype: str) -> list[Any]:
    return [(4 * rng.normal(size=shape)).astype(dtype) for shape in (X, W, ROW, COLUMN)]


def distinct_products(text: str) -> int:
    """Count the contractions of an optimised program, in which XLA has merged equal ones."""
    return text.count("lhs_contracting_dims=")


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_values(dtype: str, rng: np.random.Generator):
    given = arrays(rng, dtype)
    kinds = {n: f for n, (_, f) in PROGRAMS.items() if dtype != "int32" or "sin" not in f.__code__.co_names}
    found = tl.jit(lambda *args: {name: f(tnp, *args) for name, f in kinds.items()})(*given)
    each = {name: tl.jit(lambda *args, f=f: f(tnp, *args))(*given) for name, f in kinds.items()}
    looped = tl.jit(lambda *args: lax.map(lambda args: {n: f(tnp, *args) for n, f in kinds.items()}, args))(
        *[a[None] for a in given]
    )
    for name, f in kinds.items():
        for k, wanted in enumerate(f(np, *given)):
            for one in (found[name][k], each[name][k], looped[name][k][0]):
                # Sums of 40 products of at most a thousand, some of which cancel, in another order.
                np.testing.assert_allclose(one, wanted, rtol=1e-4, atol=1e-2, err_msg=name)


@pytest.mark.parametrize("name", PROGRAMS)
def test_which_products_are_shared(name: str, rng: np.random.Generator):
    products, f = PROGRAMS[name]
    compiled = tl.jit(lambda *args: f(tnp, *args)).lower(*arrays(rng, "float32")).compile()
    assert distinct_products(compiled.as_text()) == products


def test_fences_and_narrow_dtypes_are_not_shared(rng: np.random.Generator):
    x, w, r, _ = arrays(rng, "float32")
    apart = tl.jit(lambda x, w, r: (x @ w, cut(x) @ (w * r))).lower(x, w, r).compile()
    assert distinct_products(apart.as_text()) == 2
    narrow = tl.jit(lambda x, w, r: (x @ w, x @ (w * r))).lower(*[a.astype(np.float16) for a in (x, w, r)])
    assert narrow.as_text().count("stablehlo.multiply") == 1
    assert "tensor<40x5xf16>, tensor<40x5xf16>" in narrow.as_text()  # the factor is multiplied before


def test_a_second_derivative_shares_the_products_of_the_first(rng: np.random.Generator):
    """A network of place: u_x and u_xx contract the same arrays; see Burgers' equation in benchmarks."""
    a, b, c = rng.normal(size=(2, 9)), rng.normal(size=(9, 9)), rng.normal(size=9)

    def u(t: Any, x: Any) -> Any:
        return tnp.tanh(tnp.tanh(tnp.stack([t, x]) @ a) @ b) @ c

    slope = tl.grad(u, argnums=1)
    both = tl.vmap(lambda t, x: (slope(t, x), tl.grad(slope, argnums=1)(t, x)))
    t, x = rng.normal(size=(2, 50))
    h = 1e-4
    first, second = tl.jit(both)(t, x)
    # Central differences in float64 of a function whose derivatives are below 1e4: errors of h**2, and of rounding.
    values = [tl.jit(tl.vmap(u))(t, x + k * h) for k in (-1, 0, 1)]
    np.testing.assert_allclose(first, (values[2] - values[0]) / (2 * h), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(second, (values[2] - 2 * values[1] + values[0]) / h**2, rtol=1e-3, atol=1e-3)
    text = tl.jit(both).lower(t, x).compile().as_text()
    assert distinct_products(text) <= 5  # 6 if the scaled one is another
