"""Programs of any size: costs and formulas as functions of sizes that are symbols.

A program is traced for several values of its sizes, as types suffice for that. What is a number there, a cost or a
number in the text of a formula, is interpolated (`size_fitting.py`). The alternative, sizes as symbols in the algebra
of indices, would make of every comparison of bounds a question that may have no answer.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from tapeless.arguments.argument_checks import FUNCTION_AND_ARGUMENTS, check_callable
from tapeless.compile.jit import program_of
from tapeless.compile.stages import ShapeDtypeStruct
from tapeless.index.formulas import LATEX_SIZED, TEXT_SIZED, Formulas
from tapeless.index.size_fitting import Least, QuotientOfSizes, Sample, condition, fit_formulas
from tapeless.index.spaces import Space
from tapeless.interpreters.analysis import sparse_cost
from tapeless.interpreters.simplify import simplify_program
from tapeless.tracer import pytree
from tapeless.tracer.indices.size_polynomials import Polynomial
from tapeless.tracer.indices.sizes import Size, are_bound, names_of, with_sizes
from tapeless.tracer.types import aval_of


class IndexCost(NamedTuple):
    """The number of operations of a program, as a polynomial in its sizes.

    formula: its text, such as `n*(2*m - 1)`. least: sizes, each with the least number that it is right for, if that is
    not 1; it is printed.
    """

    polynomial: Polynomial
    least: tuple[tuple[str, int], ...] = ()

    @property
    def formula(self) -> str:
        return str(self.polynomial)

    def at(self, **sizes: int) -> int:
        """Evaluate for some sizes. Raises: KeyError for a size that has no value; ValueError for one below `least`."""
        small = [name for name, n in self.least if sizes[name] < n]
        if small:
            given = ", ".join([f"{name} = {sizes[name]}" for name in small])
            raise ValueError(f"index.cost: the cost is {self}, not for {given}: give a number for the size.")
        return int(self.polynomial.at(sizes))

    def __str__(self) -> str:
        return f"{self.formula}{condition(self.least)}"

    __repr__ = __str__


def cost(fun: Callable[..., Any], *args: Any, sizes: Sequence[Size] = (), as_written: bool = False) -> IndexCost:
    """Count the operations of a function's bulk program for all symbolic sizes; operations on zeros are free.

    Args:
      args: arguments of `fun`: arrays, their types (`tl.ShapeDtypeStruct`), or `Space`s, whose shapes may have sizes.
      sizes: that `fun` reads, and no argument has.
      as_written: count those of the program as it was traced, not simplified.
    Returns: an `IndexCost`, with `.formula`, `.polynomial` and `.at(n=..)`.
    Raises: ValueError if the operations are no polynomial of degree 4 or less, or another one for large sizes, as where
      `fun` branches on a size, and then its line is named; TypeError if `fun` cannot be called;
      whatever tracing `fun` raises.
    Source: Bernstein et al. 2020, section 6, for the costs of sums with brackets.

    >>> from tapeless import index as ix
    >>> n, m = ix.size("n"), ix.size("m")
    >>> def f(x, g):
    ...     return ix.build(n, lambda i: ix.sum(m, lambda j: g[j] * x[i + j]))
    >>> cost(f, Space("x", (n + m - 1,)), Space("g", (m,))).formula
    'n*(2*m - 1)'
    """
    check_callable("index.cost", fun, expected=FUNCTION_AND_ARGUMENTS)

    def work() -> int:
        given = pytree.tree_map(_typed, list(args))
        program = program_of("index.cost", lambda *xs: fun(*xs), given, {})
        jaxpr = program.jaxpr if as_written else simplify_program(program.jaxpr)
        return sparse_cost.cost(jaxpr, program.consts).work

    names = tuple(dict.fromkeys([*sizes_of(args), *names_of(sizes)]))
    if not names or are_bound():
        return IndexCost(Polynomial.of(work()))
    found = fit_formulas("index.cost: the number of operations", names, lambda: ("", (str(work()),)))
    (number,) = found.numbers
    assert isinstance(number, QuotientOfSizes)
    return IndexCost(number.above, found.least)


def _typed(x: Any) -> Any:
    return ShapeDtypeStruct(x.aval.shape, x.dtype) if isinstance(x, Space) else x


def sizes_of(args: Sequence[Any]) -> tuple[str, ...]:
    """List the names of sizes that are symbols in arguments."""
    spaces = [x for x in pytree.flatten(list(args))[0] if isinstance(x, Space)]
    return tuple(dict.fromkeys([name for x in spaces for name in x.sizes]))


# ---- formulas ----------------------------------------------------------------------------------------------------

_NUMBER = re.compile(r"(?<![\w.])\d+(\.\d+)?(e[+-]\d+)?(?![\d.])")


_FORMS: dict[str, Callable[[Formulas], str]] = {
    "text": lambda found: found.text(TEXT_SIZED),
    "latex": lambda found: found.latex(LATEX_SIZED),
    "with assumptions": lambda found: found.text(TEXT_SIZED) + found.assumed,
}


class SizedFormulas:
    """Formulas that hold for all sizes, derived from `Space`s with symbolic sizes.

    They print with the sizes of their sums, `Σ[j<m]`, are simplified as others, and are formulas for numbers by
    `.at(n=3)`; called with arrays they take the sizes from their shapes.
    """

    def __init__(self, derive: Callable[[], Formulas], spaces: Sequence[Any]) -> None:
        self._derive: Final = derive
        self._spaces: Final = tuple(spaces)
        self.sizes: tuple[str, ...] = sizes_of(spaces)
        self._texts: Final[dict[str, tuple[str, Least]]] = {}  # by form: deriving them at several sizes takes seconds

    def simplify(self) -> "SizedFormulas":
        """Merge terms that are alike, as `Formulas.simplify`."""
        return SizedFormulas(lambda: self._derive().simplify(), self._spaces)

    def expand(self) -> "SizedFormulas":
        """Write definitions by sums of products into the products that read them."""
        return SizedFormulas(lambda: self._derive().expand(), self._spaces)

    def share(self) -> "SizedFormulas":
        """Give contractions that several terms have in common a name, as `Formulas.share`."""
        return SizedFormulas(lambda: self._derive().share(), self._spaces)

    def at(self, **sizes: int) -> Formulas:
        """Derive the formulas for numbers. Raises: TypeError for a size without a value."""
        with with_sizes(sizes):
            return self._derive()

    def text(self) -> str:
        """Print as text. Raises: ValueError if the formulas are not the same for all sizes."""
        return self._printed("text")[0]

    def latex(self) -> str:
        """Print as LaTeX. Raises: as `text`."""
        return self._printed("latex")[0]

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"

    def __str__(self) -> str:
        """Print as text, and what was assumed of the arrays and of their sizes."""
        text, least = self._printed("with assumptions")
        return f"{text}\n {condition(least)}" if least else text

    __repr__ = __str__

    def _printed(self, form: str) -> tuple[str, Least]:
        """Print in one of the forms, once for each."""
        if form not in self._texts:
            self._texts[form] = self._fitted(_FORMS[form])
        return self._texts[form]

    def _fitted(self, printed: Callable[[Formulas], str]) -> tuple[str, Least]:
        def sample() -> Sample:
            text = printed(self._derive())
            return _NUMBER.sub("\0", text), tuple([found.group() for found in _NUMBER.finditer(text)])

        found = fit_formulas("the text of the formulas", self.sizes, sample)
        pieces = found.kept.split("\0")
        numbers = [_placed(p, before, after) for p, before, after in zip(found.numbers, pieces, pieces[1:])]
        return pieces[0] + "".join([n + after for n, after in zip(numbers, pieces[1:])]), found.least

    def __call__(self, *args: Any, check: bool = True, **indices: Any) -> Any:
        """Compute the arrays, as `Formulas` do. Raises: TypeError if shapes contradict each other or tell no size."""
        return self.at(**self._found(args))(*args, check=check, **indices)

    def _found(self, args: Sequence[Any]) -> dict[str, int]:
        if len(args) != len(self._spaces):
            raise TypeError(f"this formula is of {len(self._spaces)} arguments, not of {len(args)}.")
        spaces, tree = pytree.flatten(self._spaces, lambda x: isinstance(x, Space))
        arrays = pytree.flatten_up_to(tree, tuple(args), "formula", ("derived for", "given"))
        given = [(x, aval_of(array).shape) for x, array in zip(spaces, arrays, strict=True) if isinstance(x, Space)]
        axes = [(size, n) for x, shape in given for size, n in zip(x.declared_shape, shape) if isinstance(size, Size)]
        values = dict[str, int]()
        for _ in self.sizes:
            for size, n in axes:
                values.update(_solution(size.polynomial, n, values))
        missing = [name for name in self.sizes if name not in values]
        if missing:
            raise TypeError(f"the shapes do not tell the size {', '.join(missing)}: use .at({missing[0]}=..).")
        return values


def _solution(p: Polynomial, n: int, values: Mapping[str, int]) -> dict[str, int]:
    """Solve p = n for the only size in it that has no value; nothing if it has several, or there is no such number."""
    unknown = [name for name in p.names if name not in values]
    if len(unknown) != 1:
        return {}
    at = [p.at({**values, unknown[0]: x}) for x in (0, 1, 2)]
    slope = at[1] - at[0]
    is_solved = slope and slope == at[2] - at[1] and (n - at[0]) % slope == 0
    return {unknown[0]: int((n - at[0]) / slope)} if is_solved else {}


def _placed(number: QuotientOfSizes | str, before: str, after: str) -> str:
    """Write a polynomial in the place of a number, in parentheses where it is a sum that something binds closer to."""
    if isinstance(number, str):
        return number
    if not number.below.is_constant:
        return _quotient(number.below)
    p = number.above
    is_factor = after[:1].isalpha()
    text = str(p)
    binds = before.endswith(("- ", "* ", "*", "-")) or after.startswith((" *", "*")) or is_factor
    text = f"({text})" if binds and len(p.terms) > 1 and "(" not in text else text
    return f"{text}*" if is_factor and not p.is_constant else text


def _quotient(below: Polynomial) -> str:
    """Write one over a polynomial, such as `2/n`."""
    above = below.denominator
    text = str(below * above)
    return f"{above}/({text})" if "*" in text.replace("**", "") or " " in text else f"{above}/{text}"


def for_all_sizes(derive: Callable[..., Formulas]) -> Callable[..., Any]:
    """Make a derivation of formulas from arguments one for all sizes, where arguments have sizes that are symbols."""

    def derived(*args: Any) -> Any:
        if are_bound() or not sizes_of(args):
            return derive(*args)
        return SizedFormulas(lambda: derive(*args), args)

    return derived
