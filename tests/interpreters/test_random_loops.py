"""Random programs with loops, against the same programs step by step in NumPy.

A program is data: instructions over a state of numbers and buffers, and one input that is only read. One interpreter
runs it with Python's own control flow and overwrites copies; it runs on NumPy's arrays, and on traced ones as the
unrolled program. The other stages loops and branches. Values, both modes and second derivatives must agree.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests.close import random_loops as close
from tests.stepping import in_steps, stepped

N = 4  # elements of a buffer, and steps of the outer loop
NUMBERS, BUFFERS = 2, 2
TABLE = np.array([2, 0, 3, 0])  # has one place twice and misses another
PROGRAMS = 64


# ---- programs ------------------------------------------------------------------------------------------------


class Program(NamedTuple):
    """What one step does, and the loop around it."""

    loop: str
    body: tuple[Any, ...]


LOOPS = ("fori", "fori", "scan", "reverse", "unroll", "while")
PLACES = ("here", "before", "affine", "table")
LEAVES = (
    *("read", "input", "set", "add", "mul", "max", "min", "swap", "mix", "where", "where_number", "window"),
    *("overwrite", "where_swap", "where_most"),
)
NESTED = ("cond", "parity", "inner", "call", "checkpoint")


def random_program(seed: int) -> Program:
    rng = np.random.default_rng(seed)
    return Program(LOOPS[seed % len(LOOPS)], random_body(rng, 2))


def random_body(rng: np.random.Generator, depth: int) -> tuple[Any, ...]:
    return tuple(random_instruction(rng, depth) for _ in range(rng.integers(1, 2 + depth)))


def random_instruction(rng: np.random.Generator, depth: int) -> tuple[Any, ...]:
    """(name, number, buffer, place, other place, bodies)."""
    nested = depth > 0 and rng.random() < 0.4
    name = str(rng.choice(NESTED if nested else LEAVES))
    bodies = [random_body(rng, depth - 1) for _ in range(2 if nested else 0)]
    places = [(str(rng.choice(PLACES)), int(rng.integers(1, N)), int(rng.integers(N))) for _ in range(2)]
    return (name, int(rng.integers(NUMBERS)), int(rng.integers(BUFFERS)), *places, bodies)


class State(NamedTuple):
    numbers: Any  # [NUMBERS], as a tuple
    buffers: Any  # [N] each, as a tuple


class Inputs(NamedTuple):
    numbers: Any  # [NUMBERS]
    buffers: Any  # [BUFFERS, N]
    x: Any  # [N]


def random_inputs(rng: np.random.Generator) -> Inputs:
    return Inputs(rng.uniform(-1, 1, NUMBERS), rng.uniform(-1, 1, (BUFFERS, N)), rng.uniform(-1, 1, N))


# ---- two interpreters ----------------------------------------------------------------------------------------


class Unrolled:
    """Runs a program with Python's control flow; notes how close a decision was."""

    def __init__(self, lib: Any) -> None:
        self.lib, self.margin = lib, np.inf

    def put(self, buffer: Any, i: Any, how: str, value: Any) -> Any:
        if self.lib is not np:
            return getattr(buffer.at[i], how)(value)
        copy = buffer.copy()
        if how in ("max", "min") and copy[i] != value:  # of one value twice, either may be taken
            self.margin = min(self.margin, abs(float(copy[i]) - float(value)))
        copy[i] = {
            "set": value, "add": copy[i] + value, "multiply": copy[i] * value,
            "max": max(copy[i], value), "min": min(copy[i], value),
        }[how]  # fmt: skip
        return copy

    def window(self, buffer: Any, i: Any) -> Any:
        start = min(i, N - 2)
        return buffer[start : start + 2]

    def put_window(self, buffer: Any, window: Any, i: Any) -> Any:
        start = min(i, N - 2)
        return self.put(self.put(buffer, start, "set", window[0]), start + 1, "set", window[1])

    def above(self, x: Any, bound: float) -> Any:
        self.margin = min(self.margin, abs(float(x) - bound)) if self.lib is np else self.margin
        return x > bound

    def where(self, choice: Any, x: Any, y: Any) -> Any:
        return x if choice else y

    def cond(self, choice: Any, f: Any, g: Any, state: State) -> State:
        return f(state) if choice else g(state)

    def lookup(self, i: Any) -> Any:
        return int(TABLE[i])

    def wrapped(self, how: str, f: Callable[[State], State]) -> Callable[[State], State]:
        return f

    def inner(self, body: Callable[[Any, State], State], state: State) -> State:
        for j in range(3):
            state = body(j, state)
        return state

    def outer(self, loop: str, step: Callable[[Any, Any, State], Any], state: State, x: Any) -> tuple[State, Any]:
        rows: list[Any] = [None] * N
        for i in range(N)[:: -1 if loop == "reverse" else 1]:
            state, rows[i] = step(i, x[i], state)
        return state, self.lib.stack(rows)


class Staged:
    """Runs a program with lax's control flow."""

    lib = tnp

    def put(self, buffer: Any, i: Any, how: str, value: Any) -> Any:
        return getattr(buffer.at[i], how)(value)

    def window(self, buffer: Any, i: Any) -> Any:
        return lax.dynamic_slice(buffer, (i,), (2,))

    def put_window(self, buffer: Any, window: Any, i: Any) -> Any:
        return lax.dynamic_update_slice(buffer, window, (i,))

    def above(self, x: Any, bound: float) -> Any:
        return x > bound

    def where(self, choice: Any, x: Any, y: Any) -> Any:
        return tnp.where(choice, x, y)

    def cond(self, choice: Any, f: Any, g: Any, state: State) -> State:
        return lax.cond(choice, f, g, state)

    def lookup(self, i: Any) -> Any:
        return tnp.asarray(TABLE)[i]

    def wrapped(self, how: str, f: Callable[[State], State]) -> Callable[[State], State]:
        return {"call": tl.jit, "checkpoint": tl.checkpoint}[how](f)

    def inner(self, body: Callable[[Any, State], State], state: State) -> State:
        return lax.fori_loop(0, 3, body, state)

    def outer(self, loop: str, step: Callable[[Any, Any, State], Any], state: State, x: Any) -> tuple[State, Any]:
        if loop == "fori":
            rows = tnp.zeros(N, x.dtype)
            return lax.fori_loop(0, N, lambda i, c: self._row(step, i, x, *c), (state, rows))
        if loop == "while":
            rows = tnp.zeros(N, x.dtype)
            _, *out = lax.while_loop(
                lambda c: c[0] < N, lambda c: (c[0] + 1, *self._row(step, c[0], x, *c[1:])), (0, state, rows)
            )
            return tuple(out)
        how = {"reverse": {"reverse": True}, "unroll": {"unroll": 2}}.get(loop, {})
        return lax.scan(lambda s, ix: step(*ix, s), state, (np.arange(N), x), **how)

    @staticmethod
    def _row(step: Any, i: Any, x: Any, state: State, rows: Any) -> tuple[State, Any]:
        state, row = step(i, x[i], state)
        return state, rows.at[i].set(row)


def run(program: Program, machine: Any, inputs: Inputs) -> Any:
    """A number that depends on everything that the loop leaves behind."""
    lib, x = machine.lib, inputs.x
    state = State(tuple(inputs.numbers[k] for k in range(NUMBERS)), tuple(inputs.buffers[k] for k in range(BUFFERS)))

    def step(i: Any, element: Any, state: State) -> tuple[State, Any]:
        state = put_number(state, 0, lib.tanh(state.numbers[0] + 0.3 * element))
        state = apply(program.body, machine, i, x, state)
        return state, state.numbers[1] * element

    (numbers, buffers), rows = machine.outer(program.loop, step, state, x)
    weights = np.linspace(0.5, 1.5, N)
    return sum(lib.sin(s) for s in numbers) + sum(lib.sum(weights * lib.sin(b)) for b in (*buffers, rows))


def on_arrays(program: Program, machine: Any, inputs: Inputs) -> Any:
    return run(program, machine, Inputs(*map(tnp.asarray, inputs)))


def apply(body: Sequence[Any], machine: Any, i: Any, x: Any, state: State) -> State:
    for name, k, b, p, q, bodies in body:
        at, other = (place(machine, i, spec) for spec in (p, q))
        inside = [partial(apply, each, machine, i, x) for each in bodies]
        state = INSTRUCTIONS[name](machine, state, k, b, at, other, x, i, inside, bodies)
    return state


def place(machine: Any, i: Any, spec: tuple[str, int, int]) -> Any:
    kind, a, b = spec
    return {
        "here": lambda: i,
        "before": lambda: (i - 1) % N,
        "affine": lambda: (a * i + b) % N,
        "table": lambda: machine.lookup(i),
    }[kind]()


def put_number(state: State, k: int, value: Any) -> State:
    return state._replace(numbers=tuple(value if j == k else s for j, s in enumerate(state.numbers)))


def put_buffer(state: State, b: int, value: Any) -> State:
    return state._replace(buffers=tuple(value if j == b else s for j, s in enumerate(state.buffers)))


def _read(m: Any, s: State, k: int, b: int, at: Any, *_: Any) -> State:
    return put_number(s, k, 0.5 * s.numbers[k] + m.lib.sin(s.buffers[b][at]))


def _input(m: Any, s: State, k: int, b: int, at: Any, other: Any, x: Any, *_: Any) -> State:
    return put_number(s, k, m.lib.tanh(s.numbers[k]) * x[at])


def _writing(how: str) -> Any:
    def write(m: Any, s: State, k: int, b: int, at: Any, *_: Any) -> State:
        return put_buffer(s, b, m.put(s.buffers[b], at, how, m.lib.cos(s.numbers[k])))

    return write


def _swap(m: Any, s: State, k: int, b: int, at: Any, other: Any, *_: Any) -> State:
    u, v = s.buffers[b][at], s.buffers[b][other]
    return put_buffer(s, b, m.put(m.put(s.buffers[b], at, "set", v), other, "set", 0.9 * u))


def _mix(m: Any, s: State, k: int, b: int, *_: Any) -> State:
    return put_number(s, k, m.lib.sin(s.numbers[k]) * s.numbers[1 - k] + m.lib.cos(s.numbers[k]))


def _where(m: Any, s: State, k: int, b: int, at: Any, *_: Any) -> State:
    written = m.put(s.buffers[b], at, "set", 0.8 * s.numbers[k])
    return put_buffer(s, b, m.where(m.above(s.numbers[1 - k], 0.2), written, s.buffers[b]))


def _where_swap(m: Any, s: State, k: int, b: int, at: Any, other: Any, *_: Any) -> State:
    swapped = _swap(m, s, k, b, at, other).buffers[b]
    return put_buffer(s, b, m.where(m.above(s.numbers[k], 0.2), s.buffers[b], swapped))


def _where_most(m: Any, s: State, k: int, b: int, at: Any, other: Any, *_: Any) -> State:
    written = m.put(m.put(s.buffers[b], at, "max", 0.7 * s.numbers[k]), other, "multiply", s.numbers[1 - k])
    return put_buffer(s, b, m.where(m.above(s.numbers[1 - k], 0.2), written, s.buffers[b]))


def _where_number(m: Any, s: State, k: int, b: int, at: Any, *_: Any) -> State:
    return put_number(s, k, m.where(m.above(s.buffers[b][at], 0.1), 0.7 * s.numbers[k], s.buffers[b][at]))


def _window(m: Any, s: State, k: int, b: int, at: Any, other: Any, *_: Any) -> State:
    window = m.window(s.buffers[b], at)
    return put_buffer(s, b, m.put_window(s.buffers[b], m.lib.sin(window) * s.numbers[k], other))


def _overwrite(m: Any, s: State, k: int, b: int, at: Any, *_: Any) -> State:
    """Read, used twice, and overwritten."""
    value = s.buffers[b][at]
    return put_number(put_buffer(s, b, m.put(s.buffers[b], at, "set", 0.0)), k, value * m.lib.cos(value))


def _cond(m: Any, s: State, k: int, b: int, at: Any, other: Any, x: Any, i: Any, inside: Any, bodies: Any) -> State:
    return m.cond(m.above(s.numbers[k], 0.15), *inside, s)


def _parity(m: Any, s: State, k: int, b: int, at: Any, other: Any, x: Any, i: Any, inside: Any, bodies: Any) -> State:
    return m.cond(i % 2 == 0, *inside, s)


def _inner(m: Any, s: State, k: int, b: int, at: Any, other: Any, x: Any, i: Any, inside: Any, bodies: Any) -> State:
    return m.inner(lambda j, state: apply(bodies[0], m, (i + j) % N, x, state), s)


def _wrapped(how: str) -> Any:
    def wrap(m: Any, s: State, k: int, b: int, at: Any, other: Any, x: Any, i: Any, inside: Any, bodies: Any) -> State:
        return m.wrapped(how, inside[0])(s)

    return wrap


INSTRUCTIONS: dict[str, Callable[..., State]] = {
    "read": _read,
    "input": _input,
    "set": _writing("set"),
    "add": _writing("add"),
    "mul": _writing("multiply"),
    "max": _writing("max"),
    "min": _writing("min"),
    "swap": _swap,
    "mix": _mix,
    "where": _where,
    "where_swap": _where_swap,
    "where_most": _where_most,
    "where_number": _where_number,
    "window": _window,
    "overwrite": _overwrite,
    "cond": _cond,
    "parity": _parity,
    "inner": _inner,
    "call": _wrapped("call"),
    "checkpoint": _wrapped("checkpoint"),
}


# ---- what must hold ------------------------------------------------------------------------------------------


def decided(program: Program, seed: int) -> Inputs:
    """Inputs at which no decision is so close that a small step changes it."""
    rng = np.random.default_rng(1000 + seed)
    while True:
        inputs, machine = random_inputs(rng), Unrolled(np)
        run(program, machine, inputs)
        if machine.margin > 1e-3:
            return inputs


def moved(inputs: Inputs, step: float, along: Inputs) -> Inputs:
    return Inputs(*[x + step * t for x, t in zip(inputs, along)])


def pairing(xs: Inputs, ys: Inputs) -> float:
    return sum(float(np.sum(np.asarray(x) * np.asarray(y))) for x, y in zip(xs, ys))


class Case(NamedTuple):
    program: Program
    first: Inputs
    second: Inputs
    along: Inputs
    slope: float  # of the value at `first` along `along`


def case(seed: int) -> Case:
    program = random_program(seed)
    first, second = decided(program, seed), decided(program, seed + PROGRAMS)
    along = random_inputs(np.random.default_rng(seed))
    ends = [run(program, Unrolled(np), moved(first, step, along)) for step in (1e-5, -1e-5)]
    return Case(program, first, second, along, (ends[0] - ends[1]) / 2e-5)


def pushed(f: Any) -> Any:
    return lambda x, t: tl.jvp(f, (x,), (t,))


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_a_loop_is_its_steps(seed):
    """Value and forward mode; some are compiled, too, which takes more time than all else."""
    program, first, _, along, slope = case(seed)
    staged, value = partial(on_arrays, program, Staged()), run(program, Unrolled(np), first)
    out, tangent = stepped(pushed(staged), first, along)
    close(out, value)
    close(tangent, slope, rtol=1e-6, atol=1e-8)  # of central differences
    if seed % 8 == 0:
        close(tl.jit(pushed(staged))(first, along), (out, tangent))
    elif seed % 8 == 4:
        close(staged(first), value)


@pytest.mark.parametrize("seed", [seed for seed in range(PROGRAMS // 2) if random_program(seed).loop != "while"])
def test_a_gradient_is_that_of_the_steps(seed):
    program, first, second, along, slope = case(seed)
    gradient = tl.grad(partial(on_arrays, program, Staged()))
    unrolled = tl.grad(partial(on_arrays, program, Unrolled(tnp)))
    steps = in_steps(gradient, first)
    found, other = steps(first), steps(second)
    close(pairing(found, along), slope, rtol=1e-6, atol=1e-8)
    same(found, unrolled(first))
    pair = Inputs(*map(np.stack, zip(first, second)))
    both = Inputs(*map(np.stack, zip(found, other)))
    same(stepped(tl.vmap(gradient), pair), both)
    curved = stepped(pushed(gradient), first, along)[1]
    ends = [steps(moved(first, step, along)) for step in (1e-5, -1e-5)]
    for h, a, b in zip(curved, *ends):
        np.testing.assert_allclose(h, (np.asarray(a) - np.asarray(b)) / 2e-5, rtol=1e-5, atol=1e-7)
    if seed % 16 == 1:
        same(gradient(first), found)
    elif seed % 8 == 3:
        same(tl.jit(gradient)(first), found)
    elif seed % 16 == 5:
        same(tl.jit(tl.vmap(gradient))(pair), both)
    elif seed % 16 == 8:
        same(tl.jit(pushed(gradient))(first, along)[1], curved)


def same(actual: Inputs, expected: Inputs) -> None:
    for x, y in zip(actual, expected, strict=True):
        close(x, y)
