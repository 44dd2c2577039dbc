"""Transforms of transforms of programs with control flow: what they give is what they give of the program written out.

Transforms are written as maps from functions of [3] to functions of [3], so that any can follow any. All ordered pairs
and some triples are asked of every program. They are computed step by step (see `stepping`); each composition is
compiled for one program, and run eagerly for another. What is expected is computed without "jit" and "checkpoint",
which change no value.
"""

from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests.close import many_roundings as close
from tests.stepping import stepped

pytestmark = pytest.mark.usefixtures("eager_by_steps")

Map = Callable[[Any], Any]  # [3] -> [3]
X = np.array([0.7, -0.4, 1.1])
W = np.array([0.5, -1.2, 0.8])


class Pair(NamedTuple):
    """A program with control flow, and without."""

    staged: Map
    written_out: Map
    reverse: bool


PROGRAMS: dict[str, Pair] = {}


def program(written_out: Map, reverse: bool = True) -> Callable[[Map], Map]:
    def add(staged: Map) -> Map:
        PROGRAMS[staged.__name__] = Pair(staged, written_out, reverse)
        return staged

    return add


# ---- branches ------------------------------------------------------------------------------------------------


def _first(x):
    return tnp.sin(x) * x[1]


def _second(x):
    return x * x + W


@program(lambda x: tnp.where(x[0] > 0.5, _first(x), _second(x)))
def cond(x):
    return lax.cond(x[0] > 0.5, _first, _second, x)


@program(lambda x: tnp.where(x[1] > 0, x, _first(_second(x))))
def cond_of_a_constant_branch(x):
    return lax.cond(x[1] > 0, lambda: x, lambda: _first(_second(x)))


@program(lambda x: tnp.where(tnp.argmax(x) == 0, _first(x), tnp.where(tnp.argmax(x) == 1, W, _second(x))))
def switch(x):
    return lax.switch(tnp.argmax(x), [_first, lambda x: tnp.asarray(W), _second], x)


# ---- loops ---------------------------------------------------------------------------------------------------


def _turn(x):
    return tnp.sin(x) + 0.5 * x[::-1] * W


@program(lambda x: _turn(_turn(_turn(x))))
def fori(x):
    return lax.fori_loop(0, 3, lambda i, s: _turn(s), x)


@program(lambda x: _turn(_turn(_turn(x))), reverse=False)
def fori_of_a_traced_number(x):
    return lax.fori_loop(0, tnp.argmax(tnp.abs(tnp.asarray(W))) + 2, lambda i, s: _turn(s), x)


def _while_written_out(x):
    steps = [x, x * 1.5 + 0.1, (x * 1.5 + 0.1) * 1.5 + 0.1]
    enough = [tnp.sum(s * s) > 2 for s in steps]
    return tnp.where(enough[0], steps[0], tnp.where(enough[1], steps[1], steps[2]))


@program(_while_written_out, reverse=False)
def while_loop(x):
    def going(carry):
        i, s = carry
        return (i < 2) & (tnp.sum(s * s) <= 2)

    return lax.while_loop(going, lambda carry: (carry[0] + 1, carry[1] * 1.5 + 0.1), (0, x))[1]


def _written_out_writes(x):
    return tnp.stack([tnp.sin(x[2]) * x[0], x[1] * tnp.sin(tnp.sin(x[2]) * x[0]), x[2]])


@program(_written_out_writes)
def fori_that_writes(x):
    return lax.fori_loop(0, 2, lambda i, b: b.at[i].set(tnp.sin(b[i - 1]) * b[i]), x)


# ---- scans ---------------------------------------------------------------------------------------------------


def _cell(h, x):
    h = tnp.sin(h * W[0] + x) * h
    return h, h + x


def _cells(x):
    h, ys = x[0] * x[1], []
    for k in range(3):
        h, y = _cell(h, x[k])
        ys.append(y)
    return tnp.stack(ys) * h


@program(_cells)
def scan(x):
    h, ys = lax.scan(_cell, x[0] * x[1], x)
    return ys * h


@program(lambda x: _cells(x[::-1])[::-1] + 0 * x)
def scan_reversed(x):
    h, ys = lax.scan(_cell, x[2] * x[1], x, reverse=True, unroll=2)
    return ys * h


def _branching(h, x):
    return tnp.where(h * x > 0.2, h * x, tnp.cos(h) + x)


@program(lambda x: tnp.stack([_branching(x[1], x[0]), _branching(_branching(x[1], x[0]), x[1]), x[2]]))
def scan_with_a_branch(x):
    def body(h, element):
        h = lax.cond(h * element > 0.2, lambda h: h * element, lambda h: tnp.cos(h) + element, h)
        return h, h

    return tnp.concatenate([lax.scan(body, x[1], x[:2])[1], x[2:]])


def _nested_written_out(x):
    h = x
    for k in range(2):
        for j in range(2):
            h = tnp.sin(h) * x[k] + W * x[j]
    return h


@program(_nested_written_out)
def scans_nested(x):
    def inner(h, row):
        return lax.scan(lambda h, element: (tnp.sin(h) * row + W * element, None), h, x[:2])[0], None

    return lax.scan(inner, x, x[:2])[0]


@program(lambda x: tnp.stack([tnp.sin(2 * e) * x[0] for e in (x[0], x[1], x[2])]), reverse=False)
def scan_with_a_loop(x):
    def doubled(e):
        return lax.while_loop(lambda c: c[0] < 1, lambda c: (c[0] + 1, 2 * c[1]), (0, e))[1]

    return lax.scan(lambda c, e: (c, tnp.sin(doubled(e)) * x[0]), 0, x)[1]


@program(lambda x: tnp.sin(x) * tnp.sum(x * W))
def map_of_elements(x):
    return lax.map(lambda e: tnp.sin(e) * tnp.sum(x * W), x)


@program(lambda x: tnp.stack([x[0], tnp.sin(x[0]) * tnp.cos(x[1]), x[0] * x[1] * x[2]]))
def associative_scan(x):
    products = lax.associative_scan(tnp.multiply, x)
    pair = lax.associative_scan(lambda a, b: tnp.sin(a) * tnp.cos(b), x[:2])
    return tnp.stack([products[0], pair[1], products[2]])


@program(lambda x: tnp.stack([x[0], x[0] + x[1], x[0] + x[1] + x[2]]) * tnp.stack([x[0] * x[1] * x[2]] * 3))
def cumulative(x):
    return tnp.cumsum(x) * tnp.cumprod(x)[2]


# ---- custom rules --------------------------------------------------------------------------------------------


@tl.custom_jvp
def _custom(x):
    return tnp.sin(x) * x


@_custom.defjvp
def _custom_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return _custom(x), t * (tnp.cos(x) * x + tnp.sin(x))


@program(lambda x: tnp.sin(tnp.sin(x) * x) * (tnp.sin(x) * x))
def custom_jvp_in_a_scan(x):
    return lax.scan(lambda h, _: (_custom(h), None), x, None, length=2)[0]


if hasattr(tl, "custom_vjp"):

    @tl.custom_vjp
    def _reversed(x):
        return tnp.sin(x) * x

    _reversed.defvjp(lambda x: (_reversed(x), x), lambda x, ct: (ct * (tnp.cos(x) * x + tnp.sin(x)),))

    @program(lambda x: tnp.sin(tnp.sin(x) * x) * (tnp.sin(x) * x))
    def custom_vjp_in_a_scan(x):
        return lax.scan(lambda h, _: (_reversed(h), None), x, None, length=2)[0]


# ---- transforms ----------------------------------------------------------------------------------------------


def _linearized(f: Map) -> Map:
    def linearized(x: Any) -> Any:
        y, push = tl.linearize(f, x)
        return y + push(tnp.cos(x)) + push(W)

    return linearized


TRANSFORMS: dict[str, Callable[[Map], Map]] = {
    "jit": tl.jit,
    "jvp": lambda f: lambda x: tl.jvp(f, (x,), (tnp.cos(x),))[1],
    "vjp": lambda f: lambda x: tl.vjp(f, x)[1](tnp.sin(x))[0],
    "grad": lambda f: lambda x: tl.grad(lambda y: tnp.sum(f(y) * W * x))(x),
    "linearize": _linearized,
    "vmap": lambda f: lambda x: tnp.sum(tl.vmap(f)(tnp.stack([x, 0.5 * x, x[::-1]])), axis=0),
    "checkpoint": tl.checkpoint,
}
REVERSE = {"vjp", "grad"}
TRIPLES = [
    ("jit", "grad", "vmap"),
    ("vmap", "grad", "checkpoint"),
    ("vmap", "jvp", "grad"),
    ("jvp", "grad", "vmap"),
    ("grad", "jvp", "checkpoint"),
    ("vjp", "vmap", "linearize"),
    ("linearize", "vjp", "jit"),
    ("checkpoint", "vmap", "vjp"),
    ("vmap", "vmap", "grad"),
    ("vmap", "jit", "jvp"),
]
COMPOSITIONS = [*product(TRANSFORMS, repeat=2), *TRIPLES]


def composed(names: tuple[str, ...], f: Map) -> Map:
    """The first of the transforms is the outermost."""
    for name in reversed(names):
        f = TRANSFORMS[name](f)
    return f


def possible(names: tuple[str, ...], pair: Pair) -> bool:
    return pair.reverse or REVERSE.isdisjoint(names)


CASES = [
    pytest.param(k, names, label, id=f"{'-'.join(names)}-{label}")
    for k, names in enumerate(COMPOSITIONS)
    for label, pair in PROGRAMS.items()
    if possible(names, pair)
]


@pytest.mark.parametrize("k, names, label", CASES)
def test_a_composition(k, names, label):
    pair, place = PROGRAMS[label], list(PROGRAMS).index(label)
    staged = composed(names, pair.staged)
    expected = written_out(tuple([name for name in names if name not in ("jit", "checkpoint")]), label)
    close(stepped(staged, X), expected)
    if place == k % len(PROGRAMS):
        close(tl.jit(staged)(X), expected)
    if place == (k + 7) % len(PROGRAMS):
        close(staged(X), expected)


@cache
def written_out(names: tuple[str, ...], label: str) -> Any:
    return stepped(composed(names, PROGRAMS[label].written_out), X)


@pytest.mark.parametrize("label", PROGRAMS)
def test_the_programs_themselves(label):
    pair = PROGRAMS[label]
    close(stepped(pair.staged, X), pair.written_out(X))
    close(tl.jit(pair.staged)(X), pair.written_out(X))
    close(tl.vmap(pair.staged)(np.stack([X, X[::-1]])), np.stack([pair.written_out(X), pair.written_out(X[::-1])]))
