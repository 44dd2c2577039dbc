"""Functions whose derivatives the user gives."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tapeless.autodiff import typed
from tapeless.interpreters.zero import Zero, instantiate
from tapeless.tracer import dtypes, pytree
from tapeless.tracer.primitives import call
from tapeless.tracer.primitives.elementwise import add
from tapeless.tracer.types import aval_of


class custom_jvp:
    """A function with a JVP rule of its own, which reverse mode uses too.

    Args:
      fun: a function of pytrees of arrays.
      nondiff_argnums: arguments that are passed to the rule as they are, first; they need not be arrays.

    >>> @custom_jvp
    ... def double(x):
    ...     return 2.0 * x
    >>> @double.defjvp
    ... def double_jvp(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return double(x), 2.0 * t
    """

    def __init__(self, fun: Callable[..., Any], nondiff_argnums: Sequence[int] = ()) -> None:
        functools.update_wrapper(self, fun)
        self.fun, self.nondiff_argnums = fun, tuple(nondiff_argnums)
        self.jvp: Callable[..., Any] | None = None

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
        static, given = self._split(args)
        leaves, tree = pytree.flatten((given, kwargs))
        flat = _FlatCall(self, static, tree)
        return pytree.unflatten(*flat.result(call.custom_jvp(flat, *leaves)))

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def _split(self, args: Sequence[Any]) -> tuple[dict[int, Any], list[Any]]:
        """Arguments without a derivative, by position; the others."""
        static = {i % len(args): args[i] for i in self.nondiff_argnums}
        return static, [x for i, x in enumerate(args) if i not in static]


class _FlatCall:
    """One call of a custom_jvp function, on flat arrays."""

    def __init__(self, custom: custom_jvp, static: dict[int, Any], tree: Any) -> None:
        self._custom, self._static, self._tree = custom, static, tree
        self._out_tree: Any = None
        self.__name__, self.__wrapped__ = getattr(custom.fun, "__name__", "f"), custom.fun

    def function(self, *leaves: Any) -> list[Any]:
        """The function itself."""
        given, kwargs = pytree.unflatten(self._tree, leaves)
        args = list(given)
        for i in sorted(self._static):
            args.insert(i, self._static[i])
        outs, self._out_tree = pytree.flatten(self._custom.fun(*args, **kwargs))
        return outs

    def rule(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The user's rule. Raises: TypeError if what it returns does not fit."""
        name = self._custom.__name__
        assert self._custom.jvp is not None
        given, kwargs = pytree.unflatten(self._tree, primals)
        pushed, pushed_kwargs = pytree.unflatten(self._tree, [instantiate(t) for t in tangents])
        static = [self._static[i] for i in sorted(self._static)]
        extra = (tuple(kwargs.values()), tuple(pushed_kwargs.values()))
        out = self._custom.jvp(*static, (*given, *extra[0]), (*pushed, *extra[1]))
        if not isinstance(out, (tuple, list)) or len(out) != 2:
            raise TypeError(f"custom_jvp: the rule of {name} must return (value, tangent), but returned {out!r}.")
        values, self._out_tree = pytree.flatten(out[0])
        out_tangents, tangent_tree = pytree.flatten(out[1])
        if tangent_tree != self._out_tree:
            raise TypeError(
                f"custom_jvp: the rule of {name} returned a value of structure {self._out_tree}, "
                f"but a tangent of structure {tangent_tree}."
            )
        return values, [_tangent(y, t, name) for y, t in zip(values, out_tangents)]

    def result(self, leaves: Sequence[Any]) -> tuple[Any, Sequence[Any]]:
        """Structure and leaves of the result."""
        return self._out_tree, leaves


def _tangent(y: Any, t: Any, name: str) -> Any:
    want = aval_of(y).tangent()
    if want.dtype == dtypes.float0:
        return Zero(want)
    return typed(t, want, f"custom_jvp: a tangent from the rule of {name}", f"its value {aval_of(y)}")
