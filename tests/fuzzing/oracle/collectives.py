"""Operations across the examples of a named axis: all examples are evaluated together, equation by equation."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.fuzzing.oracle.elementwise import better
from tests.fuzzing.oracle.interpreter import Run, meaning, read, taken
from tests.fuzzing.oracle.values import Values, declared, kind_of

Examples = list[Values]
Collective = Callable[..., Examples]  # collective(run, equation, examples) -> examples
collectives: dict[str, Collective] = {}


class _Together(Run):
    """A run of several examples. Programs that are called are entered where something in them is a collective."""

    def __init__(self, exact: bool, size: int) -> None:
        super().__init__(exact)
        self.size = size

    def examples(self, jaxpr: Any, args: Sequence[Sequence[Values]]) -> list[list[Values]]:
        """The results for every example, of the arguments of every example."""
        envs = [dict(zip(jaxpr.invars, xs, strict=True)) for xs in args]
        for eqn in jaxpr.eqns:
            given = [[read(env, v) for v in eqn.invars] for env in envs]
            for env, outs in zip(envs, self._equation_of_all(eqn, given), strict=True):
                env.update(zip(eqn.outvars, outs, strict=True))
        return [[read(env, v) for v in jaxpr.outvars] for env in envs]

    def _equation_of_all(self, eqn: Any, given: list[list[Values]]) -> list[list[Values]]:
        f = collectives.get(eqn.primitive.name)
        if f is not None:
            outs = f(self, eqn, [xs[0] if xs else np.zeros(()) for xs in given])
            return [[self._settled(y, eqn.outvars[0].aval)] for y in outs]
        if eqn.primitive.name == "jit":
            return self.examples(eqn.params["jaxpr"], given)
        return [self.equation(eqn, xs) for xs in given]


def evaluate_mapped(jaxpr: Any, args: Sequence[Any], size: int, *, exact: bool = False) -> list[Values]:
    """The results of a program for `size` examples along the first axis of all arguments, stacked.

    Collectives may stand in it and in the programs that it calls by `jit`. One axis is mapped: they are taken to speak
    across that. Raises: as `evaluate`.
    """
    run, avals = _Together(exact, size), [v.aval for v in jaxpr.invars]
    with np.errstate(all="ignore"):
        each = [taken([np.asarray(x)[i] for x in args], avals) for i in range(size)]
        outs = run.examples(jaxpr, each)
        return [declared(np.stack(ys), v.aval.dtype, exact) for ys, v in zip(zip(*outs), jaxpr.outvars)]


def _alone(run: Run, eqn: Any, *xs: Values) -> Any:
    raise NotImplementedError(f"{eqn.primitive.name} speaks across examples: use evaluate_mapped.")


def collective(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function of the run, the equation and the examples of one group, which gives theirs."""

    def enter(f: Callable[..., Any]) -> Callable[..., Any]:
        def grouped(run: Run, eqn: Any, xs: Examples) -> Examples:
            out: list[Any] = [None] * len(xs)
            for group in eqn.params.get("groups") or (tuple(range(len(xs))),):
                for i, y in zip(group, f(run, eqn, [xs[i] for i in group]), strict=True):
                    out[i] = y
            return out

        collectives.update(dict.fromkeys(names, grouped))
        meaning(*names)(_alone)
        return f

    return enter


@collective("psum")
def _sum(run: Run, eqn: Any, xs: Examples) -> Examples:
    return [np.sum(np.stack(xs), 0)] * len(xs)


@collective("pmax", "pmin")
def _extreme(run: Run, eqn: Any, xs: Examples) -> Examples:
    name, complex_numbers = eqn.primitive.name, kind_of(eqn.invars[0].aval.dtype) == "c"
    out = xs[0]
    for x in xs[1:]:
        out = better(run, name, out, x, greater=name == "pmax", complex_numbers=complex_numbers)
    return [out] * len(xs)


@collective("all_gather")
def _all_gather(run: Run, eqn: Any, xs: Examples) -> Examples:
    return [np.concatenate(xs, eqn.params["axis"])] * len(xs)


@collective("psum_scatter")
def _psum_scatter(run: Run, eqn: Any, xs: Examples) -> Examples:
    return np.split(np.sum(np.stack(xs), 0), len(xs), eqn.params["axis"])


@collective("all_to_all")
def _all_to_all(run: Run, eqn: Any, xs: Examples) -> Examples:
    parts = [np.split(x, len(xs), eqn.params["split_axis"]) for x in xs]
    return [np.concatenate([part[i] for part in parts], eqn.params["concat_axis"]) for i in range(len(xs))]


@collective("ppermute")
def _ppermute(run: Run, eqn: Any, xs: Examples) -> Examples:
    out = [np.zeros_like(x) for x in xs]
    for source, target in eqn.params["perm"]:
        out[target] = xs[source]
    return out


@collective("axis_index")
def _axis_index(run: Run, eqn: Any, xs: Examples) -> Examples:
    return [np.asarray(i) for i in range(len(xs))]
