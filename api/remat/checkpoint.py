"""checkpoint: compute again in the backward pass instead of keeping; names for values, and a barrier, for both."""

import functools
import importlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar, overload

from tapeless.arguments.argument_checks import array, check_arrays, check_call, check_callable
from tapeless.arguments.names import describe_inputs, shown_attributes
from tapeless.arguments.static import Arguments, has_hash
from tapeless.interpreters.residuals.rematerialization import Policy, ProgramPolicy, save_none
from tapeless.tracer import core, pytree
from tapeless.tracer.advice.keyword_advice import advise_keywords
from tapeless.tracer.caches import Recent
from tapeless.tracer.jaxpr import ClosedJaxpr
from tapeless.tracer.primitives import checkpoint as primitives
from tapeless.tracer.references import Ref, values_of
from tapeless.tracer.settings.config import config
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import aval_of, is_arraylike

P = ParamSpec("P")
R = TypeVar("R")


@overload
def checkpoint(
    fun: Callable[P, R],
    *,
    prevent_cse: bool | Sequence[Any] = True,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Iterable[str] = (),
) -> Callable[P, R]: ...
@overload
def checkpoint(
    *,
    prevent_cse: bool | Sequence[Any] = True,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Iterable[str] = (),
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
@advise_keywords
def checkpoint(
    fun: Callable[..., Any] | None = None,
    *,
    prevent_cse: bool | Sequence[Any] = True,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Iterable[str] = (),
) -> Any:
    """Wrap `fun` so that reverse mode saves only its arguments, and computes the other residuals again.

    Args:
      fun: a pure function of pytrees of arrays. Left out, the result is a decorator. It is traced once for arguments of
        the same types, as by `jit`, unless it closes over arrays.
      prevent_cse: keep the compiler from merging the second computation with the first, which would undo the saving.
        Not needed in the body of a loop, where there is nothing to merge. A sequence has flags for the positional
        arguments, or for parts of them, as pytrees that are prefixes: one that is true keeps all.
      policy: what is kept besides: one of `tl.checkpoint_policies`, or a function
        `policy(primitive, *operand_types, **params) -> bool` that is asked of every operation. None: nothing.
      static_argnums, static_argnames: arguments that are not arrays: known when tracing, which is done again for
        every call if they have no hash.
    Returns: a function with the same arguments and results. Arrays and traced values that `fun` closes over count as
      arguments: they are kept.
    Raises: TypeError if `fun` is no function, `policy` none, or `prevent_cse` has other values; of the result,
      TypeError naming an argument or result that is no array, ValueError if `prevent_cse` does not fit the arguments.
    Source: Griewank & Walther 2008, chapter 12; semantics of JAX.

    >>> import tapeless.numpy as tnp
    >>> from tapeless import grad
    >>> grad(checkpoint(lambda x: tnp.sin(tnp.sin(x))))(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    if fun is None:
        given = {"static_argnums": static_argnums, "static_argnames": static_argnames}
        return functools.partial(checkpoint, prevent_cse=prevent_cse, policy=policy, **given)
    _check(fun, policy, prevent_cse)
    names = static_argnames if isinstance(static_argnames, str) else tuple(static_argnames)
    traced = _TracedCheckpoint(fun, Arguments.of(fun, static_argnums, names, "static", "checkpoint"), policy)
    tied = any(pytree.leaves(prevent_cse))
    how: dict[str, Any] = {"policy": save_none if policy is None else policy, "prevent_cse": tied}

    @functools.wraps(fun, shown_attributes(fun))
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        if not isinstance(prevent_cse, bool):
            pytree.broadcast_prefix(tuple(prevent_cse), args, who="checkpoint", name="prevent_cse")
        body, leaves = traced(args, kwargs)
        operands = [*body.closed.consts, *leaves, *values_of(body.references)]
        outs = primitives.checkpoint(body.closed.jaxpr, *operands, **how)
        return pytree.unflatten(body.out_tree, body.put_back(outs))

    return checkpointed


remat = checkpoint


def checkpoint_name(x: Any, name: str) -> Any:
    """Name x, a pytree of arrays, so that policies can choose by name which values to save.

    Raises: TypeError if `name` is not a string, or a leaf of `x` not an array.

    >>> checkpoint_name(2.0, "hidden")
    Array(2., dtype=float32, weak_type=True)
    """
    _check_name(name)
    return pytree.tree_map(lambda leaf: primitives.name(array(leaf, f"checkpoint_name {name!r}"), name), x)


_ADVICE = "\n  Make it static (static_argnums or static_argnames)."
_PROGRAMS_LIMIT = 256  # of one function


class _CheckpointedProgram(NamedTuple):
    """A function as a program: constants, arguments, arrays in references -> leaves of the result, arrays."""

    closed: ClosedJaxpr
    out_tree: Any
    references: Sequence[Ref]  # of outside, that it reads or writes

    def put_back(self, outs: Sequence[Any]) -> Sequence[Any]:
        """Write the last results into the references that the function writes; return the others."""
        n, program = len(outs) - len(self.references), self.closed.jaxpr
        first = len(program.invars) - len(self.references)
        for ref, before, after, x in zip(self.references, program.invars[first:], program.outvars[n:], outs[n:]):
            if before is not after:
                ref.put(x)
        return outs[:n]


class _TracedCheckpoint:
    """A function as a program, traced once for all arguments of the same types."""

    def __init__(self, fun: Callable[..., Any], static: Arguments, policy: Any) -> None:
        self._fun, self._static, self._policy = fun, static, policy
        self._programs: Recent[Any, _CheckpointedProgram] = Recent(_PROGRAMS_LIMIT)

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[_CheckpointedProgram, list[Any]]:
        """Return the program, and the arguments it is called with."""
        statics: Any = ()
        if self._static:
            args, kwargs, statics = self._static.take_out(args, kwargs, self._fun, hashed=False)
        leaves, tree = pytree.flatten((args, kwargs))
        if not all(map(is_arraylike, leaves)):
            name = core.describe_function(self._fun)
            check_call("checkpoint", self._fun, name, args, kwargs, _ADVICE, self._static.positions(statics))
        if not has_hash(statics):
            return self._trace(leaves, tree, statics), leaves  # they may have changed since they were compared last
        key = (tuple(map(aval_of, leaves)), tree.snapshot(), statics, config.trace_key())
        found = self._programs.get(key) or self._programs.recall(key)
        if found is None:
            found = self._trace(leaves, tree, statics)
            if not found.closed.consts and not found.references:  # what it closes over may be another one next time
                self._programs.enter(key, found)
        return found, leaves

    def _trace(self, leaves: Sequence[Any], tree: Any, statics: Any) -> _CheckpointedProgram:
        out_tree: Any = None

        def flat(*xs: Any) -> list[Any]:
            nonlocal out_tree
            args, kwargs = pytree.unflatten(tree, xs)
            given, named = self._static.put_back(args, kwargs, statics)
            result = self._fun(*given, **named)
            check_arrays(f"checkpoint: the result{{}} of {core.describe_function(self._fun)}", result)
            outs, out_tree = pytree.flatten(result)
            return outs

        describe = functools.partial(describe_inputs, self._fun, tree, self._static.positions(statics))
        avals, taken = [aval_of(x) for x in leaves], list[Ref]()
        how: dict[str, Any] = {"what": "checkpoint", "function": self._fun, "arguments": describe, "references": taken}
        jaxpr, consts = trace_to_jaxpr(flat, avals, **how)
        if getattr(self._policy, "names", ()):
            checks = importlib.import_module("tapeless.remat.policy_names")
            checks.warn_of_misspelt(self._policy, jaxpr, core.describe_function(self._fun))
        name = "f" if jaxpr.name == "<lambda>" else jaxpr.name
        return _CheckpointedProgram(ClosedJaxpr(jaxpr.replace(name=name), consts), out_tree, taken)


def _check(fun: Any, policy: Any, prevent_cse: Any) -> None:
    check_callable("checkpoint", fun)
    if policy is not None and not callable(policy) and not isinstance(policy, ProgramPolicy):
        raise TypeError(
            f"checkpoint: the policy must be a function of operations, not {policy!r}. tl.checkpoint_policies has some."
        )
    flags = pytree.leaves(prevent_cse) if isinstance(prevent_cse, (tuple, list)) else [prevent_cse]
    if not all(isinstance(flag, bool) for flag in flags):
        raise TypeError(
            f"checkpoint: prevent_cse must be True or False, or a sequence of such for arguments, not {prevent_cse!r}."
        )


def _check_name(name: Any) -> None:
    if not isinstance(name, str):
        raise TypeError(f"checkpoint_name: the name must be a string, not {name!r} of type {type(name).__name__}.")
