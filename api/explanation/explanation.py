"""Explanation of a gradient: its three programs side by side, with the cost and the origin of each equation."""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

from tapeless.arguments.argument_checks import FUNCTION_AND_ARGUMENTS, check_callable
from tapeless.differentiate import residuals
from tapeless.differentiate.residuals import Residuals, flag_differentiated
from tapeless.differentiate.unzip import Unzipped, check_policy, unzip_program
from tapeless.explanation import page as html
from tapeless.explanation import terminal_text as terminal
from tapeless.explanation.tables import Phase, Tables, mark_equations, tables
from tapeless.interpreters import partial_eval, simplify
from tapeless.interpreters.jvp import jvp_jaxpr
from tapeless.interpreters.residuals.rematerialization import Policy
from tapeless.interpreters.simplify import AfterPass
from tapeless.tracer.jaxpr import ClosedJaxpr
from tapeless.tracer.terms.term_limits import Stop, collect_stops

# Passes of the simplifier over a linearized program: primal and linear equations as written, and after each pass.


class Passes(tuple[AfterPass, ...]):
    """Pairs `(name, program)` in order, the first "as written"; prints all of them.

    A pass that changes nothing has no pair. One that runs again, because another left it something, has several.
    """

    __slots__ = ()

    def __str__(self) -> str:
        return "\n\n".join([f"{stage.name}\n{stage.program}" for stage in self])

    __repr__ = __str__


class PassedLimits(tuple[Stop, ...]):
    """The limits of the simplifier that stopped something, each with the source line of that; prints all of them."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join(map(str, self)) or "no limit stopped anything"

    __repr__ = __str__


class Simplifying(NamedTuple):
    """The passes over a program, and the limits that stopped them."""

    passes: Passes
    limits: PassedLimits


def simplifying(closed: ClosedJaxpr) -> Simplifying:
    """Linearize a program in all inexact inputs, and simplify it step by step, before it is cut in two."""
    program, _, _ = jvp_jaxpr(closed.jaxpr, flag_differentiated(closed))
    written = partial_eval.with_linear_equations(program, program.linear_in)
    with collect_stops() as stopped:
        passes = Passes([AfterPass("as written", written), *simplify.after_passes(written)])
    return Simplifying(passes, PassedLimits(stopped))


class Explanation:
    """The three programs of a gradient, each a table of equations; prints, and shows itself in a notebook.

    primal, linear, transposed: the programs, as `.rows` (nested where an equation carries programs) with `.cost` and
      `.nbytes`, and `.program`.
    residuals: the arrays that the primal leaves for the other two, as `tl.unzip(..).residuals`.
    unzipped: what all of this was read off; its equations' places know more than places do.
    """

    def __init__(self, name: str, closed: ClosedJaxpr, unzipped: Unzipped, rows: Tables) -> None:
        self.name: Final = name
        self._closed = closed
        self.unzipped: Final = unzipped
        self._rows = rows

    @property
    def primal(self) -> Phase:
        """The primal jaxpr, as rows: the value and the residuals."""
        return self._rows.phases[0]

    @property
    def linear(self) -> Phase:
        """The derivative at that point, as a program."""
        return self._rows.phases[1]

    @property
    def transposed(self) -> Phase:
        """The linear jaxpr run backwards: the gradient."""
        return self._rows.phases[2]

    @property
    def residuals(self) -> Residuals:
        """The residuals, which the primal saves."""
        return self.unzipped.residuals

    @property
    def passes(self) -> Passes:
        """List the linear jaxpr as linearization writes it, and after each pass of the simplifier that changes it."""
        return self._simplifying.passes

    @property
    def limits(self) -> PassedLimits:
        """List the limits of the simplifier that stopped something, what they count, where, and what is lost."""
        return self._simplifying.limits

    @cached_property
    def _simplifying(self) -> Simplifying:
        return simplifying(self._closed)

    def origins(self, key: str) -> tuple[str, ...]:
        """Name the equations that `key` was made from: `l2` from some of the primal, `t2` from a linear one.

        Raises: KeyError, with the keys that there are, if it is none of the linear or the transposed program.
        """
        if key not in self._rows.origins:
            raise KeyError(f"origins: no equation {key!r} was made from others. {_keys(self._rows)}")
        return self._rows.origins[key]

    def __str__(self) -> str:
        return terminal.text(self.name, self._rows)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html.fragment(self.name, self._rows)

    def save(self, path: str | Path) -> None:
        """Write a page that needs nothing else, to be opened in a browser.

        Raises: OSError if the file cannot be written.
        """
        Path(path).write_text(html.page(self.name, self._rows), encoding="utf-8")


def _keys(rows: Tables) -> str:
    """Write `The primal jaxpr has p1 to p3, ..`: the first and the last key of each phase."""
    keys = [(phase.name, [row.key for row in phase.walk()]) for phase in rows.phases]
    spans = [f"the {name} jaxpr has {f'{found[0]} to {found[-1]}' if found else 'none'}" for name, found in keys]
    return f"{', '.join(spans)}.".capitalize()


def explain(fun: Callable[..., Any], /, *args: Any, policy: Policy | None = None, **kwargs: Any) -> Explanation:
    """Explain a gradient by its three phases: the primal jaxpr, the linear jaxpr, and its transpose.

    Args:
      args, kwargs: arguments of `fun`, or their types (`tl.ShapeDtypeStruct`); values are not used. It is
        differentiated in all that are inexact.
      policy: which values are saved, as in `tl.unzip`. None: all.
    Returns: an `Explanation`: every equation with its line, what it costs as `tl.cost` counts, and the bytes of its
      results; prints, is a table in a notebook, and is saved as a page by `.save("x.html")`.
    Raises: TypeError if `fun` or `policy` cannot be called, or no argument is inexact; whatever tracing `fun` raises.
    Source: Radul et al. 2023, figure 1: the phases.

    >>> import tapeless.numpy as tnp
    >>> explained = explain(lambda x: tnp.sin(x) * x, 1.0)
    >>> [row.text.split(" = ")[1] for row in explained.primal.rows]
    ['sin a', 'cos a', 'mul b a']
    >>> explained.primal.cost.work, explained.transposed.cost.work
    (3, 4)
    """
    check_callable("explain", fun, expected=FUNCTION_AND_ARGUMENTS)
    check_policy("explain", policy)
    closed, names = residuals.differentiable_program_of_arrays("explain", fun, args, kwargs)
    differentiated = residuals.flag_differentiated(closed)
    unzipped = unzip_program(ClosedJaxpr(mark_equations(closed.jaxpr), closed.consts), names, policy)
    short = [name.removeprefix("the argument ") for name in names]
    of = [name for name, yes in zip(short, differentiated[len(closed.consts) :], strict=True) if yes]
    return Explanation(getattr(fun, "__name__", "f"), closed, unzipped, tables(unzipped, short, of))
