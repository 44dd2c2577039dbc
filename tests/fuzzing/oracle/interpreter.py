"""The interpreter: programs evaluated equation by equation, by a table from the names of primitives to NumPy.

It reads the data structures of programs and nothing else of what it is compared with.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.fuzzing.oracle.values import Values, declared, kind_of, rounded, settled, widened

Meaning = Callable[..., Any]  # meaning(run, equation, *operands) -> a value, or a tuple of values


class NotHolomorphicError(Exception):
    """A complex step met what has no meaning for complex numbers in the place of real ones."""


class Run:
    """One evaluation. `exact`: floating point is float64 throughout, not rounded to what is declared.

    `kinks` collects where the program is not differentiable in the direction of a complex step. `straight` says what
    becomes of operations whose derivative is by definition not that of their values (see derivatives.py).
    `differentiating`: solutions of equations are those of the equations, whatever solver the program has.
    """

    def __init__(self, exact: bool, straight: "Straight | None" = None, differentiating: bool = False) -> None:
        self.exact, self.differentiating, self.kinks = exact, differentiating, list[str]()
        self.straight = Straight() if straight is None else straight

    def program(self, jaxpr: Any, args: Sequence[Values]) -> list[Values]:
        """The results of a program, all values wide."""
        env: dict[Any, Values] = dict(zip(jaxpr.invars, map(np.asarray, args), strict=True))
        for eqn in jaxpr.eqns:
            outs = self.equation(eqn, [read(env, v) for v in eqn.invars])
            env.update(zip(eqn.outvars, outs, strict=True))
        return [read(env, v) for v in jaxpr.outvars]

    def equation(self, eqn: Any, args: Sequence[Values]) -> list[Values]:
        """The results of one equation, settled into their declared types. Raises: what its meaning raises, named."""
        try:
            outs = meanings[eqn.primitive.name](self, eqn, *args)
            outs = outs if isinstance(outs, (tuple, list)) else (outs,)
            return [self._settled(x, v.aval) for x, v in zip(outs, eqn.outvars, strict=True)]
        except NotHolomorphicError:
            raise
        except Exception as error:
            error.add_note(f"in the oracle's {eqn.primitive.name} of {[str(v.aval) for v in eqn.invars]}")
            raise

    def _settled(self, x: Any, aval: Any) -> Values:
        if np.shape(x) != aval.shape:
            raise ValueError(f"the oracle has shape {np.shape(x)} where {aval} is declared.")
        return settled(x, aval.dtype, self.exact)

    def compared(self, x: Values, dtype: Any) -> Values:
        """A value as comparisons and conversions to integers see it: real, rounded to what is declared."""
        if kind_of(dtype) not in "fc":
            return x
        return rounded(x.real if kind_of(dtype) == "f" else x, dtype)

    def kink(self, where: str, at: Any) -> None:
        """Note that the direction crosses a kink, if anywhere `at` holds."""
        if np.any(at):
            self.kinks.append(where)


class Straight:
    """What `stop_gradient` and roundings with the derivative of the identity give: what they compute."""

    def value(self, x: Values, y: Values, slope: int) -> Values:
        """y computed from x, with the derivative `slope`, 0 or 1; along a complex step that is its tangent."""
        return y + 1j * slope * x.imag if np.iscomplexobj(x) and not np.iscomplexobj(y) else y


meanings: dict[str, Meaning] = {}


def meaning(*names: str) -> Callable[[Meaning], Meaning]:
    """Enter a function of the run, the equation and the operands into the table."""

    def enter(f: Meaning) -> Meaning:
        meanings.update(dict.fromkeys(names, f))
        return f

    return enter


def plain(f: Callable[..., Any]) -> Meaning:
    """A meaning that is a function of the operands and params alone."""
    return lambda run, eqn, *args: f(*args, **eqn.params)


def read(env: dict[Any, Values], v: Any) -> Values:
    """The value of a variable or literal."""
    return widened(np.asarray(v.value)) if hasattr(v, "value") else env[v]


def is_stepped(*xs: Any) -> bool:
    """Whether a value that is declared real carries a tangent."""
    return any(map(np.iscomplexobj, xs))


def taken(args: Sequence[Any], avals: Sequence[Any]) -> list[Values]:
    """Arguments as values. Raises: ValueError, TypeError if they are not of the types of the inputs."""
    if len(args) != len(avals):
        raise ValueError(f"the program has {len(avals)} inputs, {len(args)} arguments are given.")
    found: list[Values] = []
    for x, aval in zip(args, avals):
        x = x if hasattr(x, "dtype") else np.asarray(x)
        if x.shape != aval.shape:
            raise ValueError(f"the input is {aval}, the argument has shape {x.shape}.")
        if kind_of(x.dtype) != kind_of(aval.dtype):
            raise TypeError(f"the input is {aval}, the argument {x.dtype}.")
        found.append(widened(x))
    return found


def opened(jaxpr: Any, args: Sequence[Any]) -> tuple[Any, list[Any]]:
    """A program and all its arguments, the constants of a closed one among them."""
    consts = getattr(jaxpr, "consts", None)
    return (jaxpr, list(args)) if consts is None else (jaxpr.jaxpr, [*consts, *args])


def evaluate(jaxpr: Any, args: Sequence[Any], *, exact: bool = False) -> list[Values]:
    """The results of a program, by NumPy.

    Every primitive is computed in float64 or complex128; its results are then rounded to the dtypes declared, unless
    `exact`: then floating point is never rounded and comes back as float64 or complex128, to compare with within a
    tolerance of the declared dtype. Comparisons, conversions to integers and whatever else jumps are of the rounded
    values in either case, integers wrap as declared.

    Raises: KeyError for a primitive without a meaning, ValueError or TypeError if arguments are not of the input types.
    """
    jaxpr, args = opened(jaxpr, args)
    run = Run(exact)
    with np.errstate(all="ignore"):
        outs = run.program(jaxpr, taken(args, [v.aval for v in jaxpr.invars]))
        return [declared(x, v.aval.dtype, exact) for x, v in zip(outs, jaxpr.outvars)]
