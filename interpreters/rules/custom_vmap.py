"""How functions with a vmap rule of their own transform.

The derivative of such a function has a rule too, the derivative of the rule, for as long as it is forward mode; what
is unzipped is the program of one example, and its rule is forgotten.
"""

from collections.abc import Sequence
from typing import Any

from tapeless.interpreters import jvp, partial_eval, recompute, recompute_programs, transpose, vmap
from tapeless.interpreters.zero import Zero, instantiate
from tapeless.tracer import dtypes
from tapeless.tracer.jaxpr import Jaxpr
from tapeless.tracer.primitives import call
from tapeless.tracer.primitives import custom_vmap as c
from tapeless.tracer.types import aval_of

Flags = tuple[bool, ...]


class _Pushed:
    """The rule of a derivative: arguments, then tangents of some of them -> results, tangents of some of these."""

    def __init__(self, rule: Any, n: int, some: Flags, some_out: Flags, of_consts: Sequence[Any]) -> None:
        self._rule, self._n, self._some, self._some_out, self._of_consts = rule, n, some, some_out, list(of_consts)
        self.__name__ = f"jvp_{rule.__name__}"

    def __call__(self, size: int, args: Sequence[Any], mapped: Sequence[bool]) -> tuple[list[Any], list[bool]]:
        if self._of_consts:
            raise TypeError(
                f"custom_vmap: {self._rule.__name__} closes over a value that is being differentiated, "
                f"{self._of_consts[0]}, which its rule is not given.\n  Pass it as an argument."
            )
        each = [(args[k], mapped[k]) for k in range(self._n)]
        given = iter(zip(args[self._n :], mapped[self._n :], strict=True))
        pushed = [next(given) if yes else None for yes in self._some]
        both = [x or (t is not None and t[1]) for (_, x), t in zip(each, pushed)]
        primals = [_as(x, was, now, size) for (x, was), now in zip(each, both)]
        tangents = [
            Zero(aval_of(x).tangent()) if t is None else _as(*t, now, size) for x, t, now in zip(primals, pushed, both)
        ]
        out_mapped: list[bool] = []

        def outs(*xs: Any) -> list[Any]:
            results, out_mapped[:] = self._rule(size, xs, both)
            return results

        values, out_tangents = jvp.jvp(outs, primals, tangents, self._rule)
        chosen = [(instantiate(t), m) for t, m, yes in zip(out_tangents, out_mapped, self._some_out) if yes]
        return [*values, *[t for t, _ in chosen]], [*out_mapped, *[m for _, m in chosen]]


def _as(x: Any, was: bool, now: bool, size: int) -> Any:
    """x, with the mapped axis first if it `was` so; and repeated if it is not but shall be `now`."""
    return vmap.materialized(x, None, size) if now and not was else x


def _custom_vmap_jvp(primals: Any, tangents: Any, *, rule: Any, jaxpr: Jaxpr, n_consts: int) -> Any:
    some = tuple([type(t) is not Zero for t in tangents])
    inexact = tuple([aval.tangent().dtype != dtypes.float0 for aval in jaxpr.out_avals])
    program, outer, some_out = jvp.jvp_jaxpr(jaxpr, some, inexact)  # what is zero here may not be so in the rule
    of_consts = [aval_of(x) for x, yes in zip(primals[:n_consts], some) if yes]
    pushed = _Pushed(rule, len(primals) - n_consts, some[n_consts:], some_out, of_consts)
    given = [t for t, yes in zip(tangents, some) if yes]
    results = c.custom_vmap(pushed, program, [*outer, *primals[:n_consts]], [*primals[n_consts:], *given])
    outs, out_tangents = results[: len(some_out)], iter(results[len(some_out) :])
    return outs, tuple([next(out_tangents) if yes else Zero(aval_of(y).tangent()) for y, yes in zip(outs, some_out)])


def _custom_vmap_partial_eval(trace: Any, args: Any, *, jaxpr: Jaxpr, **_: Any) -> Any:
    return partial_eval.rules[call.jit_p](trace, args, jaxpr=jaxpr)


def _custom_vmap_transpose(cts: Any, totals: Any, *args: Any, jaxpr: Jaxpr, **_: Any) -> Any:
    return transpose.accumulating[call.jit_p](cts, totals, *args, jaxpr=jaxpr)


def _custom_vmap_vmap(size: int, args: Any, dims: Any, *, rule: Any, jaxpr: Jaxpr, n_consts: int) -> Any:
    for x, d in zip(args[:n_consts], dims):
        if d is not None:
            raise TypeError(
                f"custom_vmap: {rule.__name__} closes over a value that is mapped, {aval_of(x)}, axis {d}, which its "
                "rule is not given.\n  Pass it as an argument."
            )
    given, of_given = args[n_consts:], dims[n_consts:]
    fronted = [x if d is None else vmap.to_front(x, d) for x, d in zip(given, of_given)]
    outs, mapped = rule(size, fronted, [d is not None for d in of_given])
    return outs, [0 if yes else None for yes in mapped]


jvp.rules[c.custom_vmap_p] = _custom_vmap_jvp
partial_eval.rules[c.custom_vmap_p] = _custom_vmap_partial_eval
transpose.accumulating[c.custom_vmap_p] = _custom_vmap_transpose
vmap.rules[c.custom_vmap_p] = _custom_vmap_vmap
recompute.rules[c.custom_vmap_p] = recompute_programs.call
