"""Tangents that are zeros as soon as a program is simplified, beside others, through all that carries programs.

A carry that begins as such a zero and stays one is no linear value, though its equation has linear results. Values of
`2 x`, whatever becomes of the zero: reverse mode reads programs backwards, and so depends on every mark.
"""

from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax

X = np.array([1.0, 2.0])


def in_loop(z: Any, y: Any) -> Any:
    """Halve `z` and carry `y` beside it."""
    return lax.scan(lambda c, _: ((c[0] * 0.5, c[1] * tnp.cos(c[1] * 0)), None), (z, y), None, length=3)[0]


def in_two_loops(z: Any, y: Any) -> Any:
    def step(c: Any, _: Any) -> Any:
        z, y = in_loop(*c)
        return (z, y + z), z

    (z, y), zs = lax.scan(step, (z, y), None, length=2)
    return z + zs[0], y


def as_constant_and_elements(z: Any, y: Any) -> Any:
    def step(c: Any, e: Any) -> Any:
        first, c = in_loop(z, c)
        second, c = in_loop(e, c)
        return c + first * X + second, second

    y, zs = lax.scan(step, y, tnp.stack([z, z]))
    return zs[1], y


def in_while(z: Any, y: Any) -> Any:
    z, y, _ = lax.fori_loop(0, 2, lambda i, c: (c[0] * 0.5, c[1] + c[0], c[2]), (z, y, z))
    return z, y


@tl.custom_jvp
def with_rule(z: Any, y: Any) -> Any:
    return z * 0.5, y


@tl.custom_batching.custom_vmap
def with_vmap_rule(z: Any, y: Any) -> Any:
    return in_loop(z, y)


with_vmap_rule.def_vmap(lambda size, mapped, z, y: (in_loop(z, y), tuple(mapped)))
with_rule.defjvp(lambda primals, tangents: (with_rule(*primals), (tangents[0] * 0.5, tangents[1])))

CARRIERS = {
    "scan": in_loop,
    "scan in scan": in_two_loops,
    "constant and elements": as_constant_and_elements,
    "fori_loop": in_while,
    "jit": tl.jit(in_loop),
    "jit in scan": lambda z, y: lax.scan(lambda c, _: (tl.jit(in_two_loops)(*c), None), (z, y), None, length=2)[0],
    "checkpoint": tl.checkpoint(lambda z, y: in_loop(tnp.sin(z), y)),
    "cond": lambda z, y: lax.cond(y[0] < 9, in_loop, lambda z, y: (y, z), z, y),
    "custom_jvp": lambda z, y: in_loop(*with_rule(z, y)),
    "custom_vmap": lambda z, y: in_loop(*with_vmap_rule(z, y)),
    "barrier": lambda z, y: in_loop(*lax.optimization_barrier((z, y))),
    # the loop's body becomes one that returns what it takes, when its tangents' program is simplified
    "overwritten": lambda z, y: (
        z,
        lax.scan(
            lambda c, _: (lax.dynamic_update_slice(tnp.sin(c), c, [y[0].astype("int32")]), None), y, None, length=2
        )[0],
    ),
}


@pytest.mark.parametrize("carrier", CARRIERS)
def test_zeros_stay_zeros_beside_linear_values(carrier: str):
    def f(x: Any) -> Any:
        z, y = CARRIERS[carrier](x * 0.0, x)
        return tnp.sin(z) * 3 + y + (y + z) * tnp.cos(z)

    def everything(x: Any, v: Any) -> Any:
        back = tl.vjp(f, x)[1]
        return {
            "vjp": back(v)[0],
            "jvp": tl.jvp(f, (x,), (v,))[1],
            "transposed": tl.linear_transpose(lambda ct: back(ct)[0], x)(v)[0],
            "vjp of jvp": tl.vjp(lambda x, v: tl.jvp(f, (x,), (v,))[1], x, v)[1](v)[1],
            "vjp of vjp": tl.vjp(lambda v: back(v)[0], v)[1](v)[0],
            "vmap of vjp": tl.vmap(lambda v: back(v)[0])(tnp.stack([v, v]))[1],
        }

    x, v = X, np.array([3.0, -1.0])
    for name, found in tl.jit(everything)(x, v).items():
        np.testing.assert_array_equal(found, 2 * v, err_msg=name)  # exact: factors are powers of two
