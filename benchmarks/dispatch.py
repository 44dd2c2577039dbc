"""What does one small call cost, beyond the arithmetic?

Baseline: JAX. Jitted calls with 1, 4 and 50 arguments of three floats, and eager single operations; the arithmetic is a
few nanoseconds, the rest is overhead. Calls are issued back to back and the last result of a sample is waited for.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.harness import Thunk, arguments, libraries, names, repeated, report

QUESTION = "What does one small call cost?"
CALLS = 200  # per sample, so that one clock reading and one wait are nothing among them


def three(lib: ModuleType) -> Any:
    return lib.numpy.asarray(np.array([1.0, 2.0, 3.0], np.float32))


def jitted(arity: int) -> Callable[[ModuleType], Thunk]:
    def prepare(lib: ModuleType) -> Thunk:
        f = lib.jit(lambda *xs: sum(xs[1:], xs[0] + 1))
        args = [three(lib)] * arity
        return repeated(lib, lambda: f(*args), CALLS)

    return prepare


def jitted_tree(lib: ModuleType) -> Thunk:
    f = lib.jit(lambda tree, *, scale: lib.tree.map(lambda x: x * scale, tree))
    tree, scale = {"a": [three(lib), three(lib)], "b": (three(lib), three(lib))}, three(lib)
    return repeated(lib, lambda: f(tree, scale=scale), CALLS)


def jitted_anew(lib: ModuleType) -> Thunk:
    """Call `jit` again for one function of 400 operations before every call."""
    x = three(lib)

    def f(x: Any) -> Any:
        for _ in range(200):
            x = x * 2 + 1
        return x

    return repeated(lib, lambda: lib.jit(f)(x), CALLS)


def eager_add(lib: ModuleType) -> Thunk:
    x = three(lib)
    return repeated(lib, lambda: x + x, CALLS)


def eager_sin(lib: ModuleType) -> Thunk:
    x = three(lib)
    return repeated(lib, lambda: lib.numpy.sin(x), CALLS)


def eager_getitem(lib: ModuleType) -> Thunk:
    x = three(lib)
    return repeated(lib, lambda: x[0], CALLS)


def eager_at_set(lib: ModuleType) -> Thunk:
    x = three(lib)
    return repeated(lib, lambda: x.at[0].set(7.0), CALLS)


def eager_grad(lib: ModuleType) -> Thunk:
    x = three(lib)
    gradient = lib.grad(lambda x: lib.numpy.sum(lib.numpy.sin(x) * x))
    return repeated(lib, lambda: gradient(x), CALLS)


ROWS: dict[str, tuple[Callable[[ModuleType], Thunk], float | None]] = {
    "jit, 1 argument": (jitted(1), 1.15),
    "jit, 4 arguments": (jitted(4), 1.15),
    "jit, 50 arguments": (jitted(50), 1.15),
    "jit, dict of lists and a keyword": (jitted_tree, 1.15),
    "jit(f) anew, 400 operations": (jitted_anew, 1.1),
    "eager x + x": (eager_add, None),
    "eager sin(x)": (eager_sin, None),
    "eager x[0]": (eager_getitem, 0.2),
    "eager x.at[0].set(7.0)": (eager_at_set, None),
    "eager grad(sum(sin(x) * x))": (eager_grad, 0.3),
}


def main() -> None:
    options = arguments(QUESTION)
    pair = libraries(options.control)
    rows = [
        pair.compare(name, prepare, repeats=options.repeats, per=CALLS, target=target)
        for name, (prepare, target) in ROWS.items()
        if options.only in name
    ]
    cannot_show = "throughput of large arrays (see steady), nor calls from several threads."
    report(QUESTION, rows, names=names(options.control), cannot_show=cannot_show)


if __name__ == "__main__":
    main()
