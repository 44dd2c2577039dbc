"""Random loops in loops, compiled as users compile them, against the same programs in plain NumPy.

What a loop or branch does not carry it reads from around it, so that inner loops read what outer ones change. A program
is data, run by one interpreter on two machines: NumPy's, with Python's control flow, and ours. Integers must agree
exactly; of floating point, values, both modes and second derivatives, the oracle's by complex steps.
`python -m tests.interpreters.test_random_nesting 0 5000` runs on, and writes which seeds disagree.
"""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests.close import random_nesting as close

N = 4  # elements of a vector
SCALARS, VECTORS = ("r", "s", "t"), ("u", "v", "w")
NAMES = SCALARS + VECTORS
LOOPS = ("fori", "scan", "reverse", "while")
HOW = ("set", "add", "multiply", "window", "swap")
PROGRAMS = 32


class Program(NamedTuple):
    """An outer loop of three steps."""

    loop: str
    body: tuple[Any, ...]


def random_program(seed: int, loops: Sequence[str] = LOOPS, depth: int = 3) -> Program:
    rng = np.random.default_rng(seed)
    return Program(loops[seed % len(loops)], random_body(rng, depth, NAMES, loops))


def random_body(rng: np.random.Generator, depth: int, carried: Sequence[str], loops: Sequence[str]) -> tuple[Any, ...]:
    return tuple(random_instruction(rng, depth, carried, loops) for _ in range(rng.integers(1, 3 + (depth == 3))))


def random_instruction(rng: np.random.Generator, depth: int, carried: Sequence[str], loops: Sequence[str]) -> Any:
    """(name, what it changes, its parameters, bodies)."""
    numbers = tuple(int(k) for k in rng.integers(0, 12, 4))
    if depth > 1 and rng.random() < 0.55:
        kind = str(rng.choice((*loops, *loops, "cond", "switch", "choose")))
        names = tuple(name for name in carried if rng.random() < 0.6) or carried[:1]
        n = {"cond": 2, "choose": 2, "switch": 3}.get(kind, 1)
        bodies = tuple(random_body(rng, depth - 1, names, loops) for _ in range(n))
        return kind, names, (*numbers, str(rng.choice(SCALARS)), str(rng.choice(VECTORS))), bodies
    target = str(rng.choice(carried))
    sources = tuple(str(rng.choice(names)) for names in (SCALARS, VECTORS, NAMES))
    kind = "write" if target in VECTORS and rng.random() < 0.6 else "compute"
    return kind, target, (*numbers, *sources), ()


# ---- two machines --------------------------------------------------------------------------------------------


class Plain:
    """Runs programs with Python's control flow on NumPy's arrays; notes how close a decision was."""

    lib = np

    def __init__(self) -> None:
        self.margin = np.inf

    def put(self, x: Any, i: Any, how: str, value: Any) -> Any:
        copy = x.copy()
        copy[i] = {"set": value, "add": copy[i] + value, "multiply": copy[i] * value}[how]
        return copy

    def window(self, x: Any, i: Any, values: Any) -> Any:
        start, copy = min(i, N - 2), x.copy()
        copy[start : start + 2] = values[start : start + 2]
        return copy

    def above(self, x: Any) -> Any:
        self.margin = min(self.margin, abs(x.real - 0.11))
        return x.real > 0.11

    def choose(self, index: Any, bodies: Sequence[Any], state: Any) -> Any:
        return bodies[min(max(int(index), 0), len(bodies) - 1)](state)

    def loop(self, kind: str, n: int, body: Callable[[Any, Any, Any], Any], state: Any, xs: Any) -> Any:
        ys = np.zeros_like(xs[:n])
        for i in range(n)[:: -1 if kind == "reverse" else 1]:
            state, ys[i] = body(i, xs[i], state)
        return state, ys


class Staged:
    """Runs programs with lax's control flow."""

    lib = tnp

    def put(self, x: Any, i: Any, how: str, value: Any) -> Any:
        return getattr(x.at[i], how)(value)

    def window(self, x: Any, i: Any, values: Any) -> Any:
        return lax.dynamic_update_slice(x, lax.dynamic_slice(values, (i,), (2,)), (i,))

    def above(self, x: Any) -> Any:
        return x > 0.11

    def choose(self, index: Any, bodies: Sequence[Any], state: Any) -> Any:
        if index.dtype == bool:
            return lax.cond(index, bodies[1], bodies[0], state)
        return lax.switch(index, bodies, state)

    def loop(self, kind: str, n: int, body: Callable[[Any, Any, Any], Any], state: Any, xs: Any) -> Any:
        def step(i: Any, carry: Any) -> Any:
            state, ys = carry
            state, y = body(i, xs[i], state)
            return state, ys.at[i].set(y)

        if kind in ("scan", "reverse"):
            numbers = np.arange(n)
            return lax.scan(lambda s, ix: body(*ix, s), state, (numbers, xs[:n]), reverse=kind == "reverse")
        carry = (state, tnp.zeros(n, xs.dtype))
        if kind == "fori":
            return lax.fori_loop(0, n, step, carry)
        return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, step(c[0], c[1])), (np.int64(0), carry))[1]


# ---- one interpreter -----------------------------------------------------------------------------------------


def run(program: Program, machine: Any, state: dict[str, Any]) -> dict[str, Any]:
    """What the program makes of its variables."""
    env = {**state, "i": np.int64(0), "o": np.int64(1)}
    env = loop(machine, program.loop, NAMES, (3, 0, 0, 0, "r", "u"), (program.body,), env)
    return {name: env[name] for name in NAMES}


def execute(machine: Any, body: Sequence[Any], env: dict[str, Any]) -> dict[str, Any]:
    for kind, changed, numbers, bodies in body:
        if kind in ("cond", "choose", "switch"):
            env = choose(machine, kind, changed, numbers, bodies, env)
        elif kind in LOOPS:
            env = loop(machine, kind, changed, numbers, bodies, env)
        else:
            value = (write if kind == "write" else compute)(machine, changed, numbers, env)
            env = {**env, changed: value}
    return env


def loop(machine: Any, kind: str, names: Any, numbers: Any, bodies: Any, env: dict[str, Any]) -> dict[str, Any]:
    """A loop over elements of a vector, which gives those of another back, if that is carried."""
    n, xs, ys = numbers[0] % 4, env[numbers[-1]], numbers[-1]

    def body(i: Any, x: Any, state: Any) -> Any:
        inside = execute(machine, bodies[0], {**env, **dict(zip(names, state)), "i": i, "o": env["i"]})
        return tuple(inside[name] for name in names), inside["r"] - x

    state, rows = machine.loop(kind, n, body, tuple(env[name] for name in names), xs)
    env = {**env, **dict(zip(names, state))}
    if ys in names and n:
        env[ys] = env[ys] - machine.lib.concatenate([rows, xs[n:]])
    return env


def choose(machine: Any, kind: str, names: Any, numbers: Any, bodies: Any, env: dict[str, Any]) -> dict[str, Any]:
    def branch(inside: Any, state: Any) -> Any:
        after = execute(machine, inside, {**env, **dict(zip(names, state))})
        return tuple(after[name] for name in names)

    if kind == "cond":
        index = (env["i"] + numbers[0]) % 2 == 0
    elif kind == "choose":
        index = machine.above(env[numbers[-2]])
    else:  # also outside of the branches
        index = (env["i"] + numbers[0]) % 5 - 1
    state = machine.choose(index, [partial(branch, each) for each in bodies], tuple(env[name] for name in names))
    return {**env, **dict(zip(names, state))}


def places(numbers: Any, env: dict[str, Any]) -> tuple[Any, Any]:
    return (numbers[0] * env["i"] + numbers[1]) % N, (env["o"] + numbers[2]) % N


def compute(machine: Any, target: str, numbers: Any, env: dict[str, Any]) -> Any:
    """Elementwise; all that is computed stays between -3 and 3, and near to itself if the operands do."""
    *_, k, s, v, any_of_both = numbers
    at, other = places(numbers, env)
    x, y = (env[s], env[v][at]) if target in SCALARS else (env[any_of_both], env[v])
    if env[target].dtype.kind == "i":
        return (x + y, env[target] - y, 3 * x + env[target], x ^ y, machine.lib.maximum(x, y))[k % 5] + 0 * env[target]
    sin = machine.lib.sin
    values = (
        lambda: 0.6 * x + 0.3 * y,
        lambda: 0.5 * sin(x) * y + 0.4 * env[target],
        lambda: sin(0.7 * y) - 0.2 * env[target],
        lambda: 0.5 * env[target] + 0.4 * env[v][other],
        lambda: 0.9 * y,
    )
    return values[k % 5]() + 0.0 * env[target]


def write(machine: Any, target: str, numbers: Any, env: dict[str, Any]) -> Any:
    s, v = numbers[4:6]
    at, other = places(numbers, env)
    x, how = env[target], HOW[numbers[3] % len(HOW)]
    if how == "window":
        return machine.window(x, at, env[v])
    if how == "swap":
        return machine.put(machine.put(x, at, "set", x[other]), other, "set", x[at])
    value = env[s] if x.dtype.kind == "i" else machine.lib.sin(0.5 * env[s])
    return machine.put(x, at, how, value)


# ---- what must hold ------------------------------------------------------------------------------------------


def integers(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed + 10_000_000)
    draw = partial(rng.integers, -9, 9)
    return {name: np.asarray(draw(size=() if name in SCALARS else N)) for name in NAMES}


def numbers(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed + 20_000_000)
    return {name: np.asarray(rng.uniform(-1, 1, () if name in SCALARS else N)) for name in NAMES}


def decided(program: Program, seed: int) -> dict[str, Any]:
    """Inputs at which no decision is close."""
    while True:
        machine, state = Plain(), numbers(seed)
        run(program, machine, state)
        if machine.margin > 1e-4:
            return state
        seed += 1_000_000_000


def total(program: Program, machine: Any, state: dict[str, Any]) -> Any:
    """A number that depends on all that the program leaves."""
    out = run(program, machine, state)
    return sum(machine.lib.sum(machine.lib.sin(out[name] + k)) for k, name in enumerate(NAMES))


def slope(program: Program, state: dict[str, Any], along: dict[str, Any]) -> float:
    """By a complex step, which is exact."""
    moved = {name: np.asarray(state[name] + 1e-30j * along[name]) for name in NAMES}
    return float(np.imag(total(program, Plain(), moved)) / 1e-30)


def staged(program: Program) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda state: run(program, Staged(), {name: tnp.asarray(x) for name, x in state.items()})


def same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    for name in NAMES:
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)


def check_integers(seed: int) -> None:
    """Compiled, and for several examples at once; now and then eagerly."""
    program = random_program(seed)
    states = [integers(seed), integers(seed + 1)]
    pair = {name: np.stack([state[name] for state in states]) for name in NAMES}
    with np.errstate(over="ignore"):
        expected = [run(program, Plain(), state) for state in states]
    both = {name: np.stack([out[name] for out in expected]) for name in NAMES}
    f = staged(program)
    if seed % 2:
        same(tl.jit(tl.vmap(f))(pair), both)
    else:
        same(tl.jit(f)(states[0]), expected[0])
    if seed % 16 == 3:
        same(f(states[1]), expected[1])


def check_derivatives(seed: int) -> None:
    """Both modes, of second order too, compiled; now and then eagerly."""
    reverse = seed % 3 > 0
    program = random_program(seed, LOOPS[:3] if reverse else LOOPS, depth=3 if seed % 4 == 0 else 2)
    state, along = decided(program, seed), numbers(seed + 1)
    f = lambda x: total(program, Staged(), {name: tnp.asarray(v) for name, v in x.items()})  # noqa: E731
    pushed = lambda x, t: tl.jvp(f, (x,), (t,))  # noqa: E731
    expected = slope(program, state, along)
    if not reverse:
        out, tangent = tl.jit(pushed)(state, along)
        close(out, total(program, Plain(), state))
        close(tangent, expected)
        return
    gradient = tl.grad(f)
    found = tl.jit(gradient)(state)
    close(sum(np.sum(np.asarray(found[name]) * along[name]) for name in NAMES), expected)
    if seed % 16 == 5:
        eager = gradient(state)
        for name in NAMES:
            close(eager[name], found[name])
    if seed % 16 == 10:
        curved = tl.jit(lambda x, t: tl.jvp(gradient, (x,), (t,))[1])(state, along)
        ends = [slope(program, {n: state[n] + h * along[n] for n in NAMES}, along) for h in (1e-5, -1e-5)]
        found_second = sum(np.sum(np.asarray(curved[name]) * along[name]) for name in NAMES)
        np.testing.assert_allclose(found_second, (ends[0] - ends[1]) / 2e-5, rtol=1e-5, atol=1e-6)


def check(seed: int) -> None:
    (check_derivatives if seed % 5 > 2 else check_integers)(seed)


@pytest.mark.usefixtures("optimized")
@pytest.mark.parametrize("seed", [*range(PROGRAMS), 4584])  # of the last one, masks wrote a cycle
def test_loops_in_loops_are_their_steps(seed):
    check(seed)


def main(seeds: Sequence[int]) -> None:
    """Checks programs and writes which disagree."""
    wrong = 0
    for count, seed in enumerate(seeds, 1):
        try:
            check(seed)
        except Exception as error:
            wrong += 1
            sys.stdout.write(f"seed {seed}: {type(error).__name__}: {str(error)[:300]}\n")
        if count % 100 == 0 or count == len(seeds):
            sys.stdout.write(f"{count} programs, {wrong} disagree\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(range(*map(int, sys.argv[1:3])))
