"""Comparison of users' rules with the derivative of the function itself."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapeless.arguments.names import argument_name
from tapeless.custom.calls import CustomFunction
from tapeless.differentiate.autodiff import jvp, vjp
from tapeless.differentiate.finite_differences import draw_like, wide
from tapeless.tracer import dtypes, pytree
from tapeless.tracer.types import aval_of

# Both sides are exact derivatives, so they differ by roundings only: hundreds of them, for formulas that cancel.
TOLERANCES: Final = {"bfloat16": 1e-1, "float16": 1e-2, "float32": 1e-4, "complex64": 1e-4}
_DOUBLE = 1e-9
_MODES = ("fwd", "rev")


def check_custom_rule(
    f: Callable[..., Any],
    args: Sequence[Any],
    modes: Sequence[str] = _MODES,
    atol: float | None = None,
    rtol: float | None = None,
) -> None:
    """Check the rule of a `custom_jvp` or `custom_vjp` function against the derivative of its own body.

    Args:
      f: the function, or a method; its body must have a derivative itself in the modes that are checked.
      args: where to check, a tuple or list as for `check_grads`; arguments without a derivative, and integers, are held
        fixed.
      modes: "fwd", "rev" or both: jvp along a random direction, vjp of a random cotangent.
      atol, rtol: how far numbers may be apart, relative to the largest number of the body, and to each; by default
        1e-9 in double precision, 1e-4 in single.
    Raises: AssertionError naming the mode, the leaf, and both numbers; TypeError if f has no rule of its own, or
      `args` is one argument instead of a sequence; ValueError for a mode there is not.

    >>> import tapeless as tl
    >>> f = tl.custom_jvp(lambda x: x**3)
    >>> f.defjvps(lambda t, y, x: 3 * x**2 * t)
    >>> check_custom_rule(f, (2.0,))
    """
    modes = (modes,) if isinstance(modes, str) else tuple(modes)
    if not modes or not set(modes) <= set(_MODES):
        raise ValueError(f"check_custom_rule: modes must be some of {_MODES}, not {modes}.")
    if not isinstance(args, (tuple, list)):
        raise TypeError(
            f"check_custom_rule: args must be a tuple or list of arguments, not {type(args).__name__}.\n"
            "  Write check_custom_rule(f, (x, y)), as check_grads(f, (x, y), order=1)."
        )
    comparison = _Comparison(f, tuple(args), rtol, atol)
    for mode in modes:
        (comparison.forward if mode == "fwd" else comparison.reverse)()


class _Comparison:
    """A function and its body as functions of flat inexact arguments, and where they are compared."""

    def __init__(self, f: Any, args: tuple[Any, ...], rtol: float | None, atol: float | None) -> None:
        custom, bound = _unbound(f)
        self._name, self._args = custom.__name__, (*bound, *args)
        self._fixed = {i % len(self._args) for i in custom.nondiff_argnums}
        self._rule, self._body = self._flat(custom), self._flat(custom.fun)
        leaves = [(path, x) for path, x in pytree.leaves_with_path(self._args) if self._varies(path, x)]
        self._names = [f"argument {argument_name(custom.fun, path[0].idx, path[1:])}" for path, _ in leaves]  # type: ignore[union-attr]
        self._primals = [x for _, x in leaves]
        widest = max([TOLERANCES.get(aval_of(x).dtype.name, _DOUBLE) for x in self._primals], default=_DOUBLE)
        self._rtol, self._atol = (widest if given is None else given for given in (rtol, atol))
        self._rng = np.random.default_rng(len(leaves))

    def forward(self) -> None:
        """Compare values and tangents."""
        tangents = [draw_like(self._rng, x) for x in self._primals]
        (values, pushed), (true_values, true_pushed) = (
            jvp(f, self._primals, tangents) for f in (self._rule, self._body)
        )
        self._compare("the value in forward mode", values, true_values)
        self._compare("the tangent in forward mode", pushed, true_pushed)

    def reverse(self) -> None:
        """Compare values and cotangents."""
        (values, pull), (true_values, true_pull) = (vjp(f, *self._primals) for f in (self._rule, self._body))
        self._compare("the value in reverse mode", values, true_values)
        cts = {path: draw_like(self._rng, y) for path, y in values.items()}
        pulled, true_pulled = (dict(zip(self._names, each(cts))) for each in (pull, true_pull))
        self._compare("the cotangent in reverse mode", pulled, true_pulled)

    def _compare(self, what: str, ours: dict[str, Any], theirs: dict[str, Any]) -> None:
        if list(ours) != list(theirs):
            raise AssertionError(f"check_custom_rule: {self._name} has results {list(theirs)}, its rule {list(ours)}.")
        for where, x, y in [(where, wide(ours[where]), wide(theirs[where])) for where in ours]:
            largest = np.max(np.abs(y[np.isfinite(y)]), initial=0.0)
            wrong = ~np.isclose(x, y, rtol=self._rtol, atol=self._atol * largest, equal_nan=True)
            if wrong.any():
                index = tuple(int(i) for i in np.argwhere(wrong)[0])
                raise AssertionError(
                    f"check_custom_rule: {what} disagrees at {where}{list(index) if index else ''}: the rule of "
                    f"{self._name} gives {x[index]}, its body {y[index]} (rtol={self._rtol}, atol={self._atol})."
                )

    def _flat(self, fun: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
        pairs, tree = pytree.flatten_with_path(self._args)

        def flat(*xs: Any) -> dict[str, Any]:
            given = iter(xs)
            leaves = [next(given) if self._varies(path, x) else x for path, x in pairs]
            results = pytree.leaves_with_path(fun(*pytree.unflatten(tree, leaves)))
            return {f"result{pytree.keystr(path)}": y for path, y in results if dtypes.is_inexact(aval_of(y).dtype)}

        return flat

    def _varies(self, path: Any, x: Any) -> bool:
        return path[0].idx not in self._fixed and dtypes.is_inexact(aval_of(x).dtype)


def _unbound(f: Any) -> tuple[CustomFunction, tuple[Any, ...]]:
    """Separate a function with a rule from the arguments that are bound to it: a method has its object."""
    custom, bound = (f.func, f.args) if isinstance(f, functools.partial) and not f.keywords else (f, ())
    if not isinstance(custom, CustomFunction):
        raise TypeError(f"check_custom_rule: {f!r} is not a custom_jvp or custom_vjp function.")
    return custom, bound
