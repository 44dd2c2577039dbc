"""Calls of what is new each time: functions, shapes, structures, code. `python -m tests.faults.long_life 10000`.

Prints objects and megabytes that the second half of the calls has left.
"""

import gc
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax

X = np.linspace(0.1, 1.0, 4, dtype=np.float32)


def _branch(x: Any) -> Any:
    return lax.cond(x[0] > 0, lambda: tnp.sum(x * 2), lambda: tnp.sum(x))


def _loop(x: Any) -> Any:
    return tnp.sum(lax.scan(lambda c, y: (c * tnp.sin(y), c), x, tnp.arange(3.0))[0])


def _custom(i: int) -> Any:
    f = tl.custom_vjp(lambda x: tnp.sin(x))
    f.defvjp(lambda x: (tnp.sin(x), x), lambda x, ct: (ct * tnp.cos(x),))
    return tl.make_jaxpr(tl.grad(lambda x: tnp.sum(f(x))))(X)


# By name: a call with a number, that traces or computes what no call before has.
WAYS: dict[str, Callable[[int], Any]] = {
    "grad": lambda i: tl.make_jaxpr(tl.grad(lambda x: tnp.sum(tnp.sin(x) * 2)))(X),
    "eager grad": lambda i: tl.grad(lambda x: tnp.sum(tnp.sin(x) * 2))(X),
    "jit": lambda i: tl.jit(tl.grad(lambda x: tnp.sum(tnp.sin(x) * 2)))(X),
    "linearize": lambda i: tl.linearize(lambda x: tnp.sin(x) * 2, X)[1](X),
    "scan": lambda i: tl.make_jaxpr(tl.grad(lambda x: _loop(x)))(X),
    "vmap of cond": lambda i: tl.make_jaxpr(tl.vmap(tl.grad(lambda x: _branch(x))))(np.stack([X, X])),
    "checkpoint": lambda i: tl.make_jaxpr(tl.grad(tl.checkpoint(lambda x: tnp.sum(tnp.sin(tnp.sin(x))))))(X),
    "custom_vjp": _custom,
}
KINDS: list[Callable[[int], Any]] = [
    *[WAYS[name] for name in ("grad", "eager grad", "jit", "scan")],
    lambda i: tl.make_jaxpr(lambda x: tnp.sum(x * 2))(np.ones((i % 89 + 1, i // 89 + 1), np.float32)),
    lambda i: tl.make_jaxpr(lambda t: tl.tree.map(lambda v: v * 2, t))({f"k{i}": X, "b": [X] * (i % 5)}),
    lambda i: tl.make_jaxpr(eval(f"lambda x: sin(x) * {i}", {"sin": tnp.sin}))(X),
    lambda i: tl.eval_shape(lambda x: x[0], np.ones((i % 89 + 1, i // 89 + 1), np.int8)),
]


def lived(calls: int) -> tuple[int, float]:
    """Objects and megabytes that the second half of so many calls has left."""
    half = calls // 2
    for i in range(half):
        KINDS[i % len(KINDS)](i)
    objects, megabytes = _used()
    for i in range(half, calls):
        KINDS[i % len(KINDS)](i)
    objects_then, megabytes_then = _used()
    return objects_then - objects, round(megabytes_then - megabytes, 1)


def _used() -> tuple[int, float]:
    gc.collect()
    with open("/proc/self/statm") as pages:
        resident = int(pages.read().split()[1])
    return len(gc.get_objects()), resident * 4096 / 2**20


if __name__ == "__main__":
    sys.stdout.write("{} objects, {} MB\n".format(*lived(int(sys.argv[1]))))
