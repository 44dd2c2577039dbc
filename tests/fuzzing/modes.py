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
from tests.fuzzing.program import Program, draw, np_dtype

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
        return [tnp.asarray(x) for x in draw(self.program.args, self.seed)]

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

    # ---- what is computed, as functions of (xs, ts, cts)

    def tangents(self, xs: Any, ts: Any, cts: Any) -> Any:
        return tl.jvp(self.g, (xs,), (ts,))[1]

    def linearized(self, xs: Any, ts: Any, cts: Any) -> Any:
        return tl.linearize(self.g, xs)[1](ts)

    def pulled(self, xs: Any, ts: Any, cts: Any) -> Any:
        return tl.vjp(self.g, xs)[1](cts)[0]

    def checkpointed(self, policy: Any) -> Callable[..., Any]:
        g = tl.checkpoint(self.g, policy=policy)
        return lambda xs, ts, cts: tl.vjp(g, xs)[1](cts)[0]

    def pushed_gradient(self, xs: Any, ts: Any, cts: Any) -> Any:
        return tl.jvp(lambda xs: self.pulled(xs, ts, cts), (xs,), (ts,))[1]

    def pulled_tangent(self, xs: Any, ts: Any, cts: Any) -> Any:
        _, pull = tl.vjp(lambda xs: self.tangents(xs, ts, cts), xs)
        return pull(cts)[0]

    def pulled_gradient(self, xs: Any, ts: Any, cts: Any) -> Any:
        _, pull = tl.vjp(lambda xs: self.pulled(xs, ts, cts), xs)
        return pull(ts)[0]

    def pushed_twice(self, xs: Any, ts: Any, cts: Any) -> Any:
        return tl.jvp(lambda xs: self.tangents(xs, ts, cts), (xs,), (ts,))[1]


def directions(variables: Sequence[Any], seed: int) -> Arrays:
    """Numbers between -1 and 1, none of them small."""
    rng = np.random.default_rng(seed)
    found: Arrays = []
    for v in variables:
        t = rng.uniform(0.3, 1, v.shape) * rng.choice((-1, 1), v.shape)
        if v.kind == "c":
            t = t + 1j * rng.uniform(0.3, 1, v.shape)
        found.append(np.asarray(t).astype(np_dtype(v.dtype)))
    return found


# ---- modes ---------------------------------------------------------------------------------------------------

POLICIES: dict[str, Any] = {
    "all recomputed": None,
    "nothing": tl.checkpoint_policies.nothing_saveable,
    "everything": tl.checkpoint_policies.everything_saveable,
    "dots": tl.checkpoint_policies.dots_saveable,
    "budget": tl.checkpoint_policies.budget(200),
}


@dataclass(frozen=True)
class Mode:
    """`quantity` is what it computes; `cost` how often it is run: 1 always, n one program in n."""

    name: str
    quantity: str
    run: Callable[[Case], Any]
    one_in: int = 1
    reverse: bool = False


def jitted(method: str) -> Callable[[Case], Any]:
    return lambda case: tl.jit(getattr(case, method))(case.xs, case.ts, case.cts)


def eager(method: str) -> Callable[[Case], Any]:
    return lambda case: getattr(case, method)(case.xs, case.ts, case.cts)


def mapped_values(case: Case) -> Any:
    """Row 0 of a batch in which only some arguments are mapped."""
    axes = batch_axes(case)
    if all(a is None for a in axes):
        return case.f(*case.args)
    args = [x if a is None else np.stack([x, *other_rows(np.asarray(x))], a) for x, a in zip(case.args, axes)]
    out = tl.jit(tl.vmap(case.f, in_axes=tuple(axes)))(*args)
    return [y[0] for y in out]


def batch_axes(case: Case) -> list[int | None]:
    rng = np.random.default_rng(case.seed + 3)
    return [None if rng.random() < 0.3 else int(rng.integers(0, x.ndim + 1)) for x in case.args]


def other_rows(x: np.ndarray) -> list[np.ndarray]:
    """What the rest of a batch holds: other numbers of the same range, so that other branches are taken."""
    return [(np.asarray(x[..., ::-1] if x.ndim else x) * (-1 if x.dtype.kind == "f" else 1)).astype(x.dtype)] * (
        ROWS - 1
    )


def mapped_pulled(case: Case) -> Any:
    """Row 0 of the cotangents, mapped over points and cotangents."""
    xs, cts = ([np.stack([x, *other_rows(np.asarray(x))]) for x in each] for each in (case.xs, case.cts))
    out = tl.jit(tl.vmap(lambda xs, cts: case.pulled(xs, case.ts, cts)))(xs, cts)
    return [y[0] for y in out]


MODES: tuple[Mode, ...] = (
    Mode("eager", "values", lambda case: case.f(*case.args)),
    Mode("jit", "values", lambda case: tl.jit(case.f)(*case.args)),
    Mode("vmap", "values", mapped_values, 2),
    Mode("jvp jit", "tangents", jitted("tangents")),
    Mode("jvp eager", "tangents", eager("tangents"), 3),
    Mode("linearize jit", "tangents", jitted("linearized"), 3),
    Mode("linearize eager", "tangents", eager("linearized"), 6),
    Mode("vjp jit", "cotangents", jitted("pulled"), reverse=True),
    Mode("vjp eager", "cotangents", eager("pulled"), 3, reverse=True),
    Mode("vmap vjp", "cotangents", mapped_pulled, 3, reverse=True),
    *(
        Mode(f"checkpoint {name}", "cotangents", lambda c, p=p: tl.jit(c.checkpointed(p))(c.xs, c.ts, c.cts), 6,
        reverse=True)
        for name, p in POLICIES.items()
    ),
    Mode("jvp of vjp", "second", jitted("pushed_gradient"), 2, reverse=True),
    Mode("vjp of jvp", "second", jitted("pulled_tangent"), 3, reverse=True),
    Mode("vjp of vjp", "twice", jitted("pulled_gradient"), 6, reverse=True),
    Mode("jvp of jvp", "curvature", jitted("pushed_twice"), 3),
)  # fmt: skip
QUANTITIES: dict[str, str] = {
    "tangents": "tangents",
    "cotangents": "pulled",
    "second": "pushed_gradient",
    "curvature": "pushed_twice",
    "twice": "pulled_gradient",
}


def chosen(seed: int, forward_only: bool, every: bool) -> Iterator[Mode]:
    """The modes that a program of this seed runs in."""
    rng = np.random.default_rng(seed + 4)
    for mode in MODES:
        drawn = rng.random() * mode.one_in < 1
        if (every or drawn) and not (mode.reverse and forward_only):
            yield mode
