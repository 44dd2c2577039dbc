"""What does one small call cost, beyond the arithmetic?

Baseline: JAX. Jitted calls with arguments of few elements: arrays, NumPy's arrays and numbers, trees, static ones; a
training step; transformed functions and single operations without `jit`. The arithmetic is a few nanoseconds, the rest
is overhead. Calls are issued back to back and the last result of a sample is waited for.
"""

from collections.abc import Callable
from functools import partial
from itertools import count
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


def on_host(value: Any) -> Callable[[ModuleType], Thunk]:
    """Call with a value of the host, the same at every call."""

    def prepare(lib: ModuleType) -> Thunk:
        f = lib.jit(lambda x: x + 1)
        return repeated(lib, lambda: f(value), CALLS)

    return prepare


def new_number(lib: ModuleType) -> Thunk:
    f, numbers, x = lib.jit(lambda x, t: x * t), count(), three(lib)
    return repeated(lib, lambda: f(x, next(numbers) / 7), CALLS)


def new_array(lib: ModuleType) -> Thunk:
    f, numbers, batch = lib.jit(lambda x: x + 1), count(), BATCH.copy()

    def call() -> Any:
        batch[0, 0] = next(numbers)
        return f(batch)

    return repeated(lib, call, CALLS)


def jitted_list(length: int) -> Callable[[ModuleType], Thunk]:
    def prepare(lib: ModuleType) -> Thunk:
        f = lib.jit(lambda xs: [x + 1 for x in xs])
        xs = [three(lib)] * length
        return repeated(lib, lambda: f(xs), CALLS)

    return prepare


BATCH = np.linspace(0, 1, 12, dtype=np.float32).reshape(4, 3)


def network(lib: ModuleType) -> Any:
    """Parameters of three layers, six arrays in all."""
    w = lib.numpy.asarray(np.eye(3, dtype=np.float32))
    return {f"layer{i}": {"w": w, "b": three(lib)} for i in range(3)}


def loss(params: Any, batch: Any, scale: Any = 1.0) -> Any:
    for layer in params.values():
        batch = batch @ layer["w"] * scale + layer["b"]
    return (batch * batch).sum()


def jitted_network(lib: ModuleType) -> Thunk:
    f, params = lib.jit(loss), network(lib)
    return repeated(lib, lambda: f(params, BATCH), CALLS)


def jitted_network_with_float(lib: ModuleType) -> Thunk:
    f, params = lib.jit(loss), network(lib)
    return repeated(lib, lambda: f(params, BATCH, scale=0.5), CALLS)


def jitted_static(value: Any) -> Callable[[ModuleType], Thunk]:
    def prepare(lib: ModuleType) -> Thunk:
        f, x = partial(lib.jit, static_argnums=1)(lambda x, how: x + 1 if how else x), three(lib)
        return repeated(lib, lambda: f(x, value), CALLS)

    return prepare


def jitted_static_by_name(lib: ModuleType) -> Thunk:
    f, x = partial(lib.jit, static_argnames="how")(lambda x, how: x + 1 if how else x), three(lib)
    return repeated(lib, lambda: f(x, how="add"), CALLS)


def jitted_gradient(lib: ModuleType) -> Thunk:
    f, params = lib.jit(lib.value_and_grad(loss)), network(lib)
    return repeated(lib, lambda: f(params, BATCH), CALLS)


def training_step(lib: ModuleType) -> Thunk:
    """Nested parameters, an optimizer's state of 50 arrays, a NumPy batch, a float and a static argument."""
    params, w = network(lib), three(lib)
    state = {"count": w[0], "mu": [w] * 24, "nu": [w] * 25}

    def step(params: Any, state: Any, batch: Any, rate: float, decay: bool) -> Any:
        value, gradient = lib.value_and_grad(loss)(params, batch)
        params = lib.tree.map(lambda p, g: p - rate * g, params, gradient)
        return params, lib.tree.map(lambda x: 0.9 * x if decay else x, state), value

    jitted = lib.jit(step, static_argnames="decay")
    return repeated(lib, lambda: jitted(params, state, BATCH, 1e-3, decay=True), CALLS)


def eager_gradient(lib: ModuleType) -> Thunk:
    f, params = lib.value_and_grad(loss), network(lib)
    return repeated(lib, lambda: f(params, BATCH), CALLS)


def eager_vmap(lib: ModuleType) -> Thunk:
    f, params = lib.vmap(loss, (None, 0)), network(lib)
    return repeated(lib, lambda: f(params, BATCH), CALLS)


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
    "jit, a NumPy array": (on_host(BATCH), 1.5),
    "jit, a NumPy array with a new element": (new_array, 1.5),
    "jit, a Python float": (on_host(2.5), 1.15),
    "jit, a NumPy scalar": (on_host(np.float32(2.5)), 1.15),
    "jit, an array and a new float at each call": (new_number, 1.5),
    "jit, list of 3 -> list": (jitted_list(3), 1.15),
    "jit, list of 50 -> list": (jitted_list(50), 1.15),
    "jit, list of 200 -> list": (jitted_list(200), 1.15),
    "jit, dict of lists and a keyword": (jitted_tree, 1.15),
    "jit, nested dict of 6 and a NumPy batch": (jitted_network, 1.15),
    "jit, the same and a float by name": (jitted_network_with_float, 1.15),
    "jit, a static argument, an int": (jitted_static(3), 1.15),
    "jit, a static argument, a tuple": (jitted_static(("add", 2, 0.5)), 1.15),
    "jit, a static argument by name": (jitted_static_by_name, 1.15),
    "jit(value_and_grad), dict and batch": (jitted_gradient, 1.15),
    "jit, training step": (training_step, 1.1),
    "jit(f) anew, 400 operations": (jitted_anew, 1.1),
    "value_and_grad without jit, dict and batch": (eager_gradient, 1.0),
    "vmap without jit, dict and batch": (eager_vmap, 1.0),
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
