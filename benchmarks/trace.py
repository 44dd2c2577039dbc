"""How long does it take until the gradient of a Python function is a program for the compiler?

Baseline: JAX, same program. Tracing + linearizing + transposing is `jit(grad(f)).trace(...)`, emitting is `.lower()` of
that (with `.as_text()`, which we always print, JAX on demand). Every sample traces new function objects, so no
cache of whole functions helps either side; caches of inner pieces (JAX keeps jaxprs of its own jitted helpers) do help.
"""

from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.harness import Row, Thunk, arguments, libraries, names, report

QUESTION = "How long until a gradient is a program?"
TARGET = 0.3
Program = Callable[[ModuleType], tuple[Callable[..., Any], tuple[Any, ...]]]


def mlp(lib: ModuleType, layers: int = 100) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Compute a tanh network of 100 layers and its squared error."""
    rng = np.random.default_rng(0)
    params = [
        {"w": rng.normal(size=(32, 32)).astype(np.float32) / 6, "b": np.zeros(32, np.float32)} for _ in range(layers)
    ]
    x, y = rng.normal(size=(2, 16, 32)).astype(np.float32)

    def loss(params: list[dict[str, Any]], x: Any, y: Any) -> Any:
        for layer in params:
            x = lib.numpy.tanh(x @ layer["w"] + layer["b"])
        return lib.numpy.mean((x - y) ** 2)

    return loss, (params, x, y)


def recurrence(lib: ModuleType, steps: int = 50) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Compute a gated recurrence unrolled for 50 steps, reading its input by indexing."""
    rng = np.random.default_rng(1)
    weights = {k: rng.normal(size=(24, 24)).astype(np.float32) / 5 for k in ("update", "candidate", "input")}
    xs = rng.normal(size=(steps, 8, 24)).astype(np.float32)

    def loss(weights: dict[str, Any], xs: Any) -> Any:
        tnp = lib.numpy
        h = tnp.zeros((8, 24))
        for i in range(steps):
            z = 1 / (1 + tnp.exp(-(h @ weights["update"] + xs[i])))
            h = (1 - z) * h + z * tnp.tanh(h @ weights["candidate"] + xs[i] @ weights["input"])
        return tnp.sum(tnp.where(h > 0, h, 0.1 * h))

    return loss, (weights, xs)


def trace(lib: ModuleType, program: Program) -> Thunk:
    args = tuple(lib.tree.map(lib.numpy.asarray, arg) for arg in program(lib)[1])

    def run() -> object:
        fresh, _ = program(lib)
        return lib.jit(lib.grad(fresh)).trace(*args)

    return run


def trace_and_emit(lib: ModuleType, program: Program) -> Thunk:
    """Trace and emit StableHLO in the form that the library hands to the compiler: our text, JAX's module."""
    run = trace(lib, program)
    print_it = lib.__name__ != "jax"

    def run_and_emit() -> object:
        lowered = run().lower()
        return lowered.as_text() if print_it else lowered

    return run_and_emit


def trace_emit_and_print(lib: ModuleType, program: Program) -> Thunk:
    run = trace(lib, program)
    return lambda: run().lower().as_text()


STAGES = {
    "trace + linearize + transpose": trace,
    "... + emit": trace_and_emit,
    "... + emit + text": trace_emit_and_print,
}
PROGRAMS = {"100-layer MLP": mlp, "50-step recurrence": recurrence}


def main() -> None:
    options = arguments(QUESTION)
    pair = libraries(options.control)
    rows: list[Row] = [
        pair.compare(f"{name}: {what}", partial(stage, program=program), repeats=options.repeats, target=TARGET)
        for name, program in PROGRAMS.items()
        for what, stage in STAGES.items()
        if options.only in f"{name}: {what}"
    ]
    cannot_show = "compile time, which is XLA's, nor programs dominated by one large inner function."
    report(QUESTION, rows, names=names(options.control), cannot_show=cannot_show)


if __name__ == "__main__":
    main()
