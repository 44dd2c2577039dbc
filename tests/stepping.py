"""Programs computed one equation after the other, in loops, branches and calls too.

Compiling takes XLA most of the time of a test; what a transform makes of control flow can be seen without.
"""

from collections.abc import Callable, Sequence
from typing import Any

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.tracer.jaxpr import Equation, Jaxpr, Literal


def stepped(f: Callable[..., Any], *args: Any) -> Any:
    """What `f` gives, from the program that it is traced to."""
    return in_steps(f, *args)(*args)


def in_steps(f: Callable[..., Any], *examples: Any) -> Callable[..., Any]:
    """The program that `f` is traced to for such arguments, as a function of them."""
    closed, shape = tl.make_jaxpr(f, return_shape=True)(*examples)

    def computed(*args: Any) -> Any:
        outs = by_steps(closed.jaxpr, [*closed.consts, *tl.tree.leaves(args)])
        return tl.tree.unflatten(tl.tree.structure(shape), outs)

    return computed


def by_steps(jaxpr: Jaxpr, args: Sequence[Any]) -> list[Any]:
    """The results of a program."""
    env = dict(zip(jaxpr.invars, args, strict=True))

    def read(v: Any) -> Any:
        return v.value if isinstance(v, Literal) else env[v]

    for eqn in jaxpr.eqns:
        env.update(zip(eqn.outvars, _step(eqn, list(map(read, eqn.invars))), strict=True))
    return [read(v) for v in jaxpr.outvars]


def _step(eqn: Equation, args: list[Any]) -> Sequence[Any]:
    rule = _RULES.get(eqn.primitive.name)
    if rule is not None:
        return rule(*args, **eqn.params)
    if "jaxpr" in eqn.params:
        return by_steps(eqn.params["jaxpr"], args)
    return eqn.primitive.bind(*args, **eqn.params)


def _scan(*args: Any, jaxpr: Jaxpr, n_consts: int, n_carry: int, length: int, reverse: bool, unroll: int) -> Any:
    consts, carry, xs = args[:n_consts], args[n_consts : n_consts + n_carry], args[n_consts + n_carry :]
    rows: list[Any] = [None] * length
    for k in range(length)[:: -1 if reverse else 1]:
        outs = by_steps(jaxpr, [*consts, *carry, *[x[k] for x in xs]])
        carry, rows[k] = outs[:n_carry], outs[n_carry:]
    empty = [tnp.zeros((0, *aval.shape), aval.dtype) for aval in jaxpr.out_avals[n_carry:]]
    return [*carry, *([tnp.stack(ys) for ys in zip(*rows)] if length else empty)]


def _while(*args: Any, condition: Jaxpr, body: Jaxpr, n_condition: int, n_body: int) -> Any:
    before = n_condition + n_body
    carry: Sequence[Any] = args[before:]
    while by_steps(condition, [*args[:n_condition], *carry])[0]:
        carry = by_steps(body, [*args[n_condition:before], *carry])
    return carry


def _cond(index: Any, *operands: Any, branches: tuple[Jaxpr, ...]) -> Any:
    return by_steps(branches[min(max(int(index), 0), len(branches) - 1)], operands)


_RULES: dict[str, Callable[..., Any]] = {
    "scan": _scan,
    "while": _while,
    "cond": _cond,
    "optimization_barrier": lambda *xs: xs,
}
