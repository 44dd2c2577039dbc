"""Functions whose derivatives the user gives."""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from tapeless.autodiff import typed
from tapeless.interpreters.zero import Zero, instantiate
from tapeless.tracer import dtypes, pytree
from tapeless.tracer.config import config
from tapeless.tracer.core import Tracer
from tapeless.tracer.jaxpr import Jaxpr
from tapeless.tracer.primitives import call
from tapeless.tracer.primitives.elementwise import add, stop_gradient
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import ShapedArray, aval_of, is_arraylike


class custom_jvp:
    """A function with a JVP rule of its own, which reverse mode uses too.

    Args:
      fun: a function of pytrees of arrays.
      nondiff_argnums, nondiff_argnames: arguments that are passed to the rule as they are, first and in order; they
        need not be arrays.

    >>> @custom_jvp
    ... def double(x):
    ...     return 2.0 * x
    >>> @double.defjvp
    ... def double_jvp(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return double(x), 2.0 * t
    """

    __name__: str

    def __init__(
        self,
        fun: Callable[..., Any],
        nondiff_argnums: Sequence[int] = (),
        nondiff_argnames: str | Sequence[str] = (),
    ) -> None:
        functools.update_wrapper(self, fun, updated=())
        self._signature = _signature(fun)
        names = (nondiff_argnames,) if isinstance(nondiff_argnames, str) else nondiff_argnames
        self.fun, self.nondiff_argnums = fun, (*nondiff_argnums, *[self._position(name) for name in names])
        self.jvp: Callable[..., Any] | None = None
        self._remembered: dict[Any, Any] = {}

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Set the rule `jvp(*nondiff, primals, tangents) -> (value, tangent)`; returns it, so it can decorate.

        `symbolic_zeros`: accepted only as False; tangents that are zero are given as arrays.
        """
        if symbolic_zeros:
            raise NotImplementedError("custom_jvp: symbolic_zeros=True is not supported.")
        self.jvp = jvp
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Set the rule from one function per argument: `lambda t, value, *primals: tangent`, or None for zero."""

        def rule(primals: Any, tangents: Any) -> tuple[Any, Any]:
            value = self(*primals)
            terms = [row(t, value, *primals) for row, t in zip(jvps, tangents, strict=True) if row is not None]
            zeros = pytree.tree_map(lambda y: instantiate(Zero(aval_of(y).tangent())), value)
            total = functools.reduce(lambda a, b: pytree.tree_map(add, a, b), terms) if terms else zeros
            return value, total

        self.jvp = rule

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.jvp is None:
            raise AttributeError(f"custom_jvp: {self.__name__} has no rule: define one with defjvp.")
        static, given = self._split(self._positional(args, kwargs))
        leaves, tree = pytree.flatten(given)
        flat = _FlatCall(self, static, tree, self._remembered)
        outs = call.custom_jvp(flat, *leaves)
        return pytree.unflatten(flat.out_tree, outs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def _position(self, name: str) -> int:
        """Of the argument called `name`. Raises: ValueError if there is none."""
        names = list(self._signature.parameters) if self._signature else []
        if name not in names:
            has = ", ".join(names) or "no names"
            raise ValueError(f"custom_jvp: nondiff_argnames names {name!r}, but {self.__name__} has {has}.")
        return names.index(name)

    def _positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments by position, defaults among them: that is how the rule takes them."""
        if self._signature is None:
            if kwargs:
                raise TypeError(f"custom_jvp: the arguments of {self.__name__} have no names; give them by position.")
            return args
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            names = ", ".join(bound.kwargs)
            raise TypeError(f"custom_jvp: {self.__name__} takes {names} by name only, but its rule takes positions.")
        return bound.args

    def _split(self, args: tuple[Any, ...]) -> tuple[dict[int, Any], list[Any]]:
        """Arguments without a derivative, by position; the others."""
        for i in self.nondiff_argnums:
            if not -len(args) <= i < len(args):
                raise ValueError(
                    f"custom_jvp: nondiff_argnums names argument {i}, but {self.__name__} was called with "
                    f"{len(args)} argument{'s' * (len(args) != 1)}."
                )
        static = {i % len(args): pytree.tree_map(_undifferentiated, args[i]) for i in self.nondiff_argnums}
        return static, [x for i, x in enumerate(args) if i not in static]


def _signature(fun: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(fun)
    except (TypeError, ValueError):
        return None


def _undifferentiated(x: Any) -> Any:
    return stop_gradient(x) if isinstance(x, Tracer) else x


class _FlatCall:
    """One call of a custom_jvp function, on flat arrays."""

    def __init__(self, custom: custom_jvp, static: dict[int, Any], tree: Any, remembered: dict[Any, Any]) -> None:
        self._custom, self._static, self._tree, self._remembered = custom, static, tree, remembered
        self.out_tree: Any = None
        self._out_avals: list[ShapedArray] | None = None  # known once the function, not only its rule, has run
        self.__name__, self.__wrapped__ = custom.__name__, custom.fun

    def function(self, *leaves: Any) -> list[Any]:
        """The function itself."""
        args = list(pytree.unflatten(self._tree, leaves))
        for i in sorted(self._static):
            args.insert(i, self._static[i])
        outs, self.out_tree = pytree.flatten(self._custom.fun(*args))
        _check_arrays(outs, self.__name__)
        self._out_avals = [aval_of(y) for y in outs]
        return outs

    def traced(self, avals: tuple[ShapedArray, ...]) -> tuple[Jaxpr, tuple[Any, ...]]:
        """The function as a program, and its constants: one for all calls of these types without static arguments."""
        key, cache = (self._tree, avals, config.trace_key()), self._remembered
        if self._static or key not in cache:
            program, consts = trace_to_jaxpr(self.function, avals, what="custom_jvp", function=self)
            if self._static or any(isinstance(x, Tracer) for x in consts):
                return program, consts
            cache[key] = program, consts, self.out_tree, self._out_avals
        program, consts, self.out_tree, self._out_avals = cache[key]
        return program, consts

    def rule(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The user's rule. Raises: TypeError if what it returns does not fit."""
        of = f"the rule of {self.__name__}"
        static = [self._static[i] for i in sorted(self._static)]
        given = tuple(pytree.unflatten(self._tree, primals))
        pushed = tuple(pytree.unflatten(self._tree, [instantiate(t) for t in tangents]))
        out = self._custom.jvp(*static, given, pushed)  # type: ignore[misc]  # it was there when the call was made
        if not isinstance(out, (tuple, list)) or len(out) != 2:
            raise TypeError(f"custom_jvp: {of} must return (value, tangent), but returned {out!r}.")
        (values, value_tree), (out_tangents, tangent_tree) = map(pytree.flatten, out)
        if tangent_tree != value_tree:
            raise TypeError(
                f"custom_jvp: {of} returned a value of structure {value_tree}, "
                f"but a tangent of structure {tangent_tree}."
            )
        _check_arrays([*values, *out_tangents], of)
        self._check_values(values, value_tree)
        self.out_tree = value_tree
        return values, [_tangent(y, t, self.__name__) for y, t in zip(values, out_tangents)]

    def _check_values(self, values: Sequence[Any], tree: Any) -> None:
        if self._out_avals is None:
            return
        have, want = [str(aval_of(y)) for y in values], [str(aval) for aval in self._out_avals]
        if tree != self.out_tree or have != want:
            raise TypeError(
                f"custom_jvp: the rule of {self.__name__} must return the value of the function, of structure "
                f"{self.out_tree} and types ({', '.join(want)}), not of {tree} and ({', '.join(have)})."
            )


def _check_arrays(leaves: Sequence[Any], whose: str) -> None:
    for x in leaves:
        if not is_arraylike(x):
            raise TypeError(f"custom_jvp: {whose} returned {x!r} of type {type(x).__name__}, which is not an array.")


def _tangent(y: Any, t: Any, name: str) -> Any:
    want = aval_of(y).tangent()
    if want.dtype == dtypes.float0:
        return Zero(want)
    return typed(t, want, f"custom_jvp: a tangent from the rule of {name}", f"its value {aval_of(y)}")
