"""Running one program in every mode, and what each result must equal.

A quantity is what several modes compute: the values, the tangents along t, the cotangents of c, second derivatives.
Reference of each is the oracle, which evaluates what was traced, and differentiates it on its own.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests.fuzzing.program import Program, draw, made, np_dtype, seed_of
from tests.fuzzing.sizes import ELEMENTS

TAPELESS = {"tl": tl, "tnp": tnp, "lax": lax, "np": np}
Arrays = list[np.ndarray]
ROWS = 2  # of a batch


@dataclass
class Case:
    """A program at a point, with the directions that its derivatives are taken along."""

    program: Program
    seed: int

    @cached_property
    def args(self) -> list[Any]:
        return [tnp.asarray(x) for x in draw(self.program.args, self.seed, self.program.among)]

    @cached_property
    def f(self) -> Callable[..., Any]:
        return self.program.function(TAPELESS)

    @cached_property
    def smooth(self) -> list[int]:
        """Arguments that can be differentiated in."""
        return [i for i, v in enumerate(self.program.args) if v.kind in "fc"]

    @cached_property
    def xs(self) -> list[Any]:
        return [self.args[i] for i in self.smooth]

    @cached_property
    def ts(self) -> Arrays:
        return directions([self.program.args[i] for i in self.smooth], self.seed + 1)

    @cached_property
    def cts(self) -> Arrays:
        return directions([v for v in self.program.results if v.kind in "fc"], self.seed + 2)

    def at(self, xs: Sequence[Any]) -> list[Any]:
        """All arguments, those that can be differentiated in being `xs`."""
        args: list[Any] = list(self.args)
        for i, x in zip(self.smooth, xs):
            args[i] = x
        return args

    def g(self, xs: Sequence[Any]) -> list[Any]:
        """The results that can be differentiated, of the arguments that can; integers are constants."""
        outs = self.f(*self.at(xs))
        return [y for y, v in zip(outs, self.program.results) if v.kind in "fc"]

    def of(self, text: str) -> Callable[..., Any]:
        """One of the expressions below, as a function of (xs, ts, cts)."""
        return eval(f"lambda xs, ts, cts: {text}", {**TAPELESS, "g": self.g})

    def names(self) -> dict[str, Any]:
        """What the texts of modes speak of."""
        return {**TAPELESS, "f": self.f, "g": self.g, "args": self.args, "xs": self.xs, "ts": self.ts, "cts": self.cts}


def directions(variables: Sequence[Any], seed: int) -> Arrays:
    """Numbers between -1 and 1, none of them small."""
    rng = np.random.default_rng(seed)
    found: Arrays = []
    for v in variables:
        if v.size > ELEMENTS:
            found.append(made(direction(v, seed), v.dtype))
            continue
        t = rng.uniform(0.3, 1, v.shape) * rng.choice((-1, 1), v.shape)
        if v.kind == "c":
            t = t + 1j * rng.uniform(0.3, 1, v.shape)
        found.append(np.asarray(t).astype(np_dtype(v.dtype)))
    return found


def direction(v: Any, seed: int) -> str:
    """An expression of a large direction, as `recipe` gives of arguments."""
    text = f"r.uniform(.3, 1, {v.shape}) * r.choice((-1, 1), {v.shape})"
    text += f" + 1j * r.uniform(.3, 1, {v.shape})" if v.kind == "c" else ""
    return f"(lambda r: {text})(np.random.default_rng({seed_of(v, seed)}))"


# ---- modes ---------------------------------------------------------------------------------------------------

PUSHED, PULLED = "tl.jvp(g, (xs,), (ts,))[1]", "tl.vjp(g, xs)[1](cts)[0]"
LINEARIZED = "tl.linearize(g, xs)[1](ts)"
PUSHED_PULLED = f"tl.jvp(lambda xs: {PULLED}, (xs,), (ts,))[1]"
PULLED_PUSHED = f"tl.vjp(lambda xs: {PUSHED}, xs)[1](cts)[0]"
PULLED_TWICE = f"tl.vjp(lambda xs: {PULLED}, xs)[1](ts)[0]"
PUSHED_TWICE = f"tl.jvp(lambda xs: {PUSHED}, (xs,), (ts,))[1]"
POLICIES = {
    "all recomputed": "",
    "nothing": ", policy=tl.checkpoint_policies.nothing_saveable",
    "everything": ", policy=tl.checkpoint_policies.everything_saveable",
    "dots": ", policy=tl.checkpoint_policies.dots_saveable",
    "budget": ", policy=tl.checkpoint_policies.budget(0)",
}
# what the oracle evaluates for a quantity, and of what it takes the derivative to have it
DEFINED: dict[str, tuple[str, str]] = {
    "tangents": (PUSHED, "g(xs)"),
    "cotangents": (PULLED, ""),
    "second": (PUSHED_PULLED, PULLED),
    "curvature": (PUSHED_TWICE, PUSHED),
    "twice": (PULLED_TWICE, ""),
}


@dataclass(frozen=True)
class Mode:
    """A way to compute a `quantity`, of one program in `one_in`: an expression of `Case.names`, or a function."""

    name: str
    quantity: str
    how: str | Callable[[Case], Any]
    one_in: int = 1
    reverse: bool = False

    def run(self, case: Case) -> Any:
        return eval(self.how, case.names()) if isinstance(self.how, str) else self.how(case)


def jitted(text: str) -> str:
    return f"tl.jit(lambda xs, ts, cts: {text})(xs, ts, cts)"


def mapped_values(case: Case) -> Any:
    """The row of a batch that holds the case's arguments; only some of them are mapped, along any axis."""
    axes = batch_axes(case)
    if all(a is None for a in axes):
        return case.f(*case.args)
    args = [x if a is None else np.stack(rows(case, x), a) for x, a in zip(case.args, axes)]
    out = tl.jit(tl.vmap(case.f, in_axes=tuple(axes)))(*args)
    return [y[case.seed % ROWS] for y in out]


def batch_axes(case: Case) -> list[int | None]:
    rng = np.random.default_rng(case.seed + 3)
    return [None if rng.random() < 0.3 else int(rng.integers(0, x.ndim + 1)) for x in case.args]


def rows(case: Case, x: Any) -> Arrays:
    """x in its row, and in the other numbers of the same range, so that branches and loops go other ways there."""
    x = np.asarray(x)
    other = (x[..., ::-1] if x.ndim else x) * (-1 if x.dtype.kind == "f" else 1)
    return [x, other.astype(x.dtype)][:: 1 if case.seed % ROWS == 0 else -1]


def mapped_pulled(case: Case) -> Any:
    """The case's cotangents, out of those mapped over points and cotangents."""
    xs, cts = ([np.stack(rows(case, x)) for x in each] for each in (case.xs, case.cts))
    out = tl.jit(tl.vmap(lambda xs, cts: case.of(PULLED)(xs, case.ts, cts)))(xs, cts)
    return [y[case.seed % ROWS] for y in out]


MODES: tuple[Mode, ...] = (
    Mode("eager", "values", "f(*args)"),
    Mode("jit", "values", "tl.jit(f)(*args)"),
    Mode("vmap", "values", mapped_values, 2),
    Mode("jvp jit", "tangents", jitted(PUSHED)),
    Mode("jvp eager", "tangents", PUSHED, 3),
    Mode("linearize jit", "tangents", jitted(LINEARIZED), 3),
    Mode("linearize eager", "tangents", LINEARIZED, 6),
    Mode("vjp jit", "cotangents", jitted(PULLED), reverse=True),
    Mode("vjp eager", "cotangents", PULLED, 3, reverse=True),
    Mode("vmap vjp", "cotangents", mapped_pulled, 3, reverse=True),
    *(
        Mode(
            f"checkpoint {name}", "cotangents", jitted(PULLED.replace("(g,", f"(tl.checkpoint(g{p}),")), 6, reverse=True
        )
        for name, p in POLICIES.items()
    ),
    Mode("jvp of vjp", "second", jitted(PUSHED_PULLED), 2, reverse=True),
    Mode("vjp of jvp", "second", jitted(PULLED_PUSHED), 3, reverse=True),
    Mode("vjp of vjp", "twice", jitted(PULLED_TWICE), 6, reverse=True),
    Mode("jvp of jvp", "curvature", jitted(PUSHED_TWICE), 3),
)
NAMED = {mode.name: mode for mode in MODES}
ROUNDED = ("eager", "jit", "vmap", "jvp jit", "vjp jit", "vjp eager")  # of programs whose operations are rounded


def chosen(program: Program, seed: int, every: bool) -> Iterator[Mode]:
    """The modes that a program runs in: some, by the seed, or all that are defined for it."""
    rng = np.random.default_rng(seed + 4)
    for mode in MODES:
        drawn = rng.random() * mode.one_in < 1 or (program.kinks and mode.quantity in ("second", "twice", "curvature"))
        defined = mode.quantity == "values" or not program.special
        defined = defined and (not program.rounded or mode.name in ROUNDED)
        if (every or drawn) and defined:
            yield mode
