"""Comparison of what an inverse gives back with what the function was given."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapeless.arguments.names import argument_name
from tapeless.custom.compare import TOLERANCES
from tapeless.differentiate.autodiff import jvp
from tapeless.differentiate.finite_differences import draw_like, wide
from tapeless.tracer import core, dtypes, pytree
from tapeless.tracer.types import aval_of, holds_keys

_DOUBLE = 1e-9


def check_inverse(
    f: Callable[..., Any], args: Sequence[Any], atol: float | None = None, rtol: float | None = None
) -> None:
    """Check that the inverse of a `tl.invertible` function gives back its first argument, and a tangent of it.

    Errors of the inverse add up along a chain of functions: check the whole chain, as a function that is invertible by
    the inverses in the opposite order. Gradients need the values; derivatives of gradients the tangent, too.

    Args:
      f: the function.
      args: where to check: `x`, and the other arguments.
      atol, rtol: how far numbers may be apart, relative to the largest number of a leaf, and to each; by default 1e-9
        in double precision, 1e-4 in single. Integers must be equal.
    Raises: AssertionError naming both functions, the leaf, what it was and what comes back, and the largest error;
      TypeError if f has no inverse, or `args` is one argument instead of a sequence.

    >>> import tapeless as tl
    >>> double = tl.invertible(lambda x: 2 * x, lambda y: y / 2)
    >>> check_inverse(double, (1.5,))
    """
    if not hasattr(f, "inverse"):
        raise TypeError(f"check_inverse: {f!r} has no inverse; tl.invertible makes functions that have one.")
    if not isinstance(args, (tuple, list)):
        raise TypeError(
            f"check_inverse: args must be a tuple or list of arguments, not {type(args).__name__}.\n"
            "  Write check_inverse(f, (x, *args))."
        )
    x, others = args[0], args[1:]
    pairs, tree = pytree.flatten_with_path(x)
    moving = [i for i, (_, leaf) in enumerate(pairs) if dtypes.is_inexact(aval_of(leaf).dtype)]

    def there_and_back(*xs: Any) -> list[Any]:
        leaves = [leaf for _, leaf in pairs]
        for i, leaf in zip(moving, xs):
            leaves[i] = leaf
        y = f(pytree.unflatten(tree, leaves), *others)
        return pytree.leaves(f.inverse(y[0] if f.has_aux else y, *others))  # type: ignore[attr-defined]

    rng = np.random.default_rng(len(pairs))
    primals = [pairs[i][1] for i in moving]
    tangents = [draw_like(rng, leaf) for leaf in primals]
    back, moved = jvp(there_and_back, primals, tangents)
    for i, (path, leaf) in enumerate(pairs):
        name = f"{argument_name(f, 0)}{pytree.keystr(path)}"
        _compare(f, name, leaf, back[i], atol, rtol)
    for i, t in zip(moving, tangents):
        name = f"the tangent of {argument_name(f, 0)}{pytree.keystr(pairs[i][0])}"
        _compare(f, name, t, moved[i], atol, rtol)


def _compare(f: Any, name: str, before: Any, after: Any, atol: float | None, rtol: float | None) -> None:
    """Compare a leaf with what comes back. Raises: AssertionError if they differ."""
    aval = aval_of(before)
    if holds_keys(aval):
        return
    default = TOLERANCES.get(aval.dtype.name, _DOUBLE) if dtypes.is_inexact(aval.dtype) else 0.0
    a, b = (default if given is None else given for given in (atol, rtol))
    x, z = (wide(v) if dtypes.is_inexact(aval.dtype) else np.asarray(v) for v in (before, after))
    largest = np.max(np.abs(x[np.isfinite(x)]), initial=0) if default else 0
    wrong = ~np.isclose(z, x, rtol=b, atol=a * largest, equal_nan=True) if default else z != x
    if not np.any(wrong):
        return
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    with np.errstate(invalid="ignore"):
        off = f", and the largest error is {np.max(np.abs(z - x)[wrong]):.3g}" if default else ""
    raise AssertionError(
        f"check_inverse: {core.describe_function(f.inverse)} does not invert {core.describe_function(f.fun)}: "
        f"{name}{list(index) if index else ''} is {x[index]}, comes back as {z[index]}{off} (rtol={b}, atol={a})."
    )
