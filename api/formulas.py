"""Formulas: arrays as sums of terms over named operands, to be printed, simplified, and evaluated.

What is no sum of products is an operand with a definition, which stands before what reads it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from tapeless.compile.jit import jit
from tapeless.interpreters.let_form import Computed, Definition, LetForm, evaluated, multiplied_out, simplified
from tapeless.interpreters.numpy_source import computed_source
from tapeless.spaces import check_symmetries, symmetry_text
from tapeless.tracer import dtypes
from tapeless.tracer.core import Tracer
from tapeless.tracer.jaxpr import Literal
from tapeless.tracer.numpy import asarray
from tapeless.tracer.terms.formulas import LATEX, TEXT, Notation, Operands, equation, formula, latex_name
from tapeless.tracer.terms.matrix_products import matrix_text
from tapeless.tracer.terms.numpy_source import sum_source
from tapeless.tracer.terms.symmetries import Symmetry
from tapeless.tracer.terms.term import Term
from tapeless.tracer.types import ShapedArray, aval_of

TEXT_SIZED, LATEX_SIZED = TEXT._replace(is_sized=True), LATEX._replace(is_sized=True)


class Input(NamedTuple):
    """An input of formulas: an argument, a constant with a value, or a free index below `size`."""

    name: str
    aval: ShapedArray
    symmetries: tuple[Symmetry, ...] = ()
    value: Any = None
    size: int | None = None


@dataclass(frozen=True)
class FormulaTerm:
    """A term of a formula: a number times a sum of products."""

    term: Term
    shape: tuple[int, ...]
    operands: Operands

    @property
    def coefficient(self) -> Any:
        return self.term.coefficient

    def text(self) -> str:
        return formula((self.term,), self.shape, self.operands)

    def latex(self) -> str:
        return formula((self.term,), self.shape, self.operands, LATEX)

    def __repr__(self) -> str:
        return self.text()


@dataclass(frozen=True, repr=False)
class Formulas:
    """Arrays by formulas over named operands.

    Printed with the indices of the result as a, b, .. and those of sums as j, k, ..; `[a = b]` is 1 where that holds,
    else 0. Called with the arguments that they were derived for they are computed: an array, or a tuple of several.
    """

    form: LetForm
    inputs: tuple[Input, ...]
    defined: tuple[str, ...]  # names of definitions
    results: tuple[str | None, ...]  # names of what is differentiated with respect to
    avals: tuple[ShapedArray, ...]
    is_single: bool
    assumptions: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        form: LetForm,
        inputs: Sequence[Input],
        results: Sequence[str | None],
        avals: Sequence[ShapedArray],
        is_single: bool,
    ) -> "Formulas":
        """Name the definitions of a let form."""
        names = tuple(_definition_names([o.name for o in inputs], len(form.definitions)))
        return cls(form, tuple(inputs), names, tuple(results), tuple(avals), is_single)

    # ---- simplified

    def simplify(self) -> "Formulas":
        """Merge terms that are alike up to the names of indices, the order of factors, and the symmetries of spaces.

        Factors that are divided by are cancelled, also where that is 0 / 0. `assumptions` are the symmetries that
        were needed for it.
        """
        declared = {k: o.symmetries for k, o in enumerate(self.inputs) if o.symmetries}
        form, used = simplified(self.form, [x.shape for x in self.avals], declared)
        said = [symmetry_text(self.inputs[k].name, s) for k, found in used.items() for s in found]
        return self._with(form, assumptions=tuple(dict.fromkeys([*self.assumptions, *said])))

    def expand(self) -> "Formulas":
        """Write definitions that are sums of products into the products that read them."""
        return self._with(multiplied_out(self.form))

    def _with(self, form: LetForm, **changes: Any) -> "Formulas":
        names = tuple(_definition_names([o.name for o in self.inputs], len(form.definitions)))
        return replace(self, form=form, defined=names, **changes)

    # ---- printed

    @property
    def operands(self) -> Operands:
        """Names of all operands."""
        booleans = frozenset(k for k, x in enumerate(self.form.avals) if dtypes.is_bool(x.dtype))
        indices = frozenset(k for k, o in enumerate(self.inputs) if o.size is not None)
        return Operands((*[o.name for o in self.inputs], *self.defined), booleans, indices)

    @property
    def terms(self) -> Any:
        """The terms: a tuple, or one for each argument if there are several."""
        found = [tuple([FormulaTerm(t, x.shape, self.operands) for t in r]) for r, x in self._sums]
        return found[0] if self.is_single else tuple(found)

    @property
    def _sums(self) -> list[tuple[tuple[Term, ...], ShapedArray]]:
        return list(zip(self.form.results, self.avals, strict=True))

    def text(self, notation: Notation = TEXT) -> str:
        """Print as text: definitions, then the gradients, each a line."""
        return "\n".join(self._lines(notation))

    def latex(self, notation: Notation = LATEX) -> str:
        """Print as LaTeX: one formula, or lines that are aligned."""
        lines = list(self._lines(notation))
        if len(lines) == 1:
            return lines[0]
        return "\\begin{aligned}\n" + " \\\\\n".join([x.replace("=", "&=", 1) for x in lines]) + "\n\\end{aligned}"

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def _lines(self, notation: Notation) -> Iterator[str]:
        operands = self.operands
        for name, d in zip(self.defined, self.form.definitions, strict=True):
            yield _definition_text(name, d, operands, notation)
        for name, (terms, aval) in zip(self.results, self._sums, strict=True):
            if self.is_single:
                yield formula(terms, aval.shape, operands, notation)
            else:
                yield equation(f"{notation.nabla}{name}", terms, aval.shape, operands, notation)

    # ---- as source for NumPy

    def numpy(self) -> str:
        """Write a function that runs with NumPy alone: of the arguments, and of constants and free indices by name.

        Raises: NotImplementedError naming a function that NumPy does not have.
        """
        operands = self.operands
        names = [f"gradient_{name}" if name else "derivative" for name in self.results]
        if taken := {"np", "range", *names} & {*operands.names}:
            raise ValueError(
                f"numpy: the source has names of its own, {', '.join(sorted(taken))}: call the array another."
            )
        arguments = [o.name for o in self.inputs if o.value is None and o.size is None]
        others = [o.name for o in self.inputs if o.value is not None or o.size is not None]
        lines = list[str]()
        for name, d in zip(self.defined, self.form.definitions, strict=True):
            if isinstance(d.value, Computed):
                lines.append(f"{name} = {computed_source(d.value, operands.names)}")
            else:
                lines.append(self._assignment(name, d.value, d.aval))
        for name, (terms, aval) in zip(names, self._sums, strict=True):
            lines.append(self._assignment(name, terms, aval))
        head = ", ".join([*arguments, *(["*", *others] if others else [])])
        body = "".join([f"    {line}\n" for line in [*lines, f"return {', '.join(names)}"]])
        return f"import numpy as np\n\n\ndef {'gradient' if self.results[0] else 'derivative'}({head}):\n{body}"

    def _assignment(self, name: str, terms: tuple[Term, ...], aval: ShapedArray) -> str:
        """Write an assignment, of the real part where terms add up to a real number."""
        text = sum_source(terms, aval.shape, [x.shape for x in self.form.avals], self.operands)
        given = [self.form.avals[f.operand] for t in terms for f in t.factors]
        is_complex = any(dtypes.is_complex(x.dtype) for x in given) and not dtypes.is_complex(aval.dtype)
        if dtypes.is_bool(aval.dtype):
            return f"{name} = ({text}) != 0"
        return f"{name} = np.real({text})" if is_complex else f"{name} = {text}"

    def einsum(self) -> str:
        """Write the formulas as calls of `einsum`, a line for each array.

        Raises: NotImplementedError naming a term that is none.
        """
        operands, lines = self.operands, list[str]()
        for d in self.form.definitions:
            if isinstance(d.value, Computed):
                raise NotImplementedError(f"einsum: {d.value.primitive.name} is no sum of products: use numpy().")
        sums = [(d.value, d.aval) for d in self.form.definitions if not isinstance(d.value, Computed)]
        names = [*self.defined, *[f"gradient_{name}" if name else "derivative" for name in self.results]]
        for name, (terms, aval) in zip(names, [*sums, *self._sums], strict=True):
            text = sum_source(terms, aval.shape, [x.shape for x in self.form.avals], operands)
            if "np.broadcast_to" in text:
                raise NotImplementedError(f"einsum: {formula(terms, aval.shape, operands)} has brackets: use numpy().")
            lines.append(text if self.is_single and len(names) == 1 else f"{name} = {text}")
        return "\n".join(lines)

    def matrix(self) -> str:
        """Write the formulas with products of matrices, `2 * A @ x`, a line for each array.

        Raises: NotImplementedError naming a formula that is no sum of chains of matrices and vectors.
        """
        operands, lines = self.operands, list[str]()
        sums = [(d.value, d.aval) for d in self.form.definitions if not isinstance(d.value, Computed)]
        if len(sums) < len(self.form.definitions):
            raise NotImplementedError("matrix: a definition is no sum of products: use text().")
        names = [*self.defined, *[f"∇{name}" if name else "derivative" for name in self.results]]
        for name, (terms, aval) in zip(names, [*sums, *self._sums], strict=True):
            text = matrix_text(terms, aval.shape, operands)
            if text is None:
                raise NotImplementedError(f"matrix: {formula(terms, aval.shape, operands)} is no chain: use text().")
            lines.append(text if self.is_single and len(names) == 1 else f"{name} = {text}")
        return "\n".join(lines)

    # ---- evaluated

    def __call__(self, *args: Any, check: bool = True, **indices: Any) -> Any:
        """Compute the arrays.

        Args:
          args: arrays of the shapes that the formulas were derived for, one for each argument of the function.
          check: compare arrays with the symmetries that are declared of their spaces.
          indices: values of free indices.
        Raises: TypeError for a wrong number of arguments or another shape, ValueError naming array and symmetry if the
          array does not have it, IndexError for a free index outside of its axis.
        """
        expected = [o for o in self.inputs if o.value is None and o.size is None]
        if len(args) != len(expected):
            names = ", ".join([o.name for o in expected])
            raise TypeError(f"this formula is of ({names}), not of {len(args)} arguments.")
        given = {o.name: _checked(o, x, check) for o, x in zip(expected, args)}
        for o in self.inputs:
            if o.size is not None:
                given[o.name] = _index(o, indices)
        values = [o.value if o.value is not None else given[o.name] for o in self.inputs]
        found = evaluated(self.form, values, self.avals)
        return found[0] if self.is_single else tuple(found)

    def compile(self, *, check: bool = True, **bound: Any) -> Callable[..., Any]:
        """Compile, with arrays for some arguments: a function of the others, in order.

        Args:
          check: compare what is bound with the symmetries that are declared of its space.
          bound: arrays by the names of arguments.
        Raises: TypeError for a name that no argument has; what calling the formulas raises.
        """
        expected = [o for o in self.inputs if o.value is None and o.size is None]
        for name in bound:
            if name not in [o.name for o in expected]:
                raise TypeError(
                    f"compile: no argument is called {name}; there are {', '.join(o.name for o in expected)}."
                )
        held = {o.name: _checked(o, bound[o.name], check) for o in expected if o.name in bound}

        def run(*args: Any, **indices: Any) -> Any:
            rest = iter(args)
            values = [held[o.name] if o.name in held else next(rest) for o in expected]
            return self(*values, check=False, **indices)

        return jit(run)


def _definition_names(taken: Sequence[str], n: int) -> Iterator[str]:
    names = (f"y{k or ''}" for k in range(n + len(taken) + 1))
    free = [name for name in names if name not in taken]
    return iter(free[:n])


def _definition_text(name: str, d: Definition, operands: Operands, notation: Notation) -> str:
    if not isinstance(d.value, Computed):
        return equation(name, d.value, d.aval.shape, operands, notation)
    written = latex_name if notation is LATEX else str
    given = [str(x.value) if isinstance(x, Literal) else written(operands.names[x]) for x in d.value.operands]
    given += [f"{key}={value}" for key, value in d.value.params.items()]
    text = f"{written(d.value.primitive.name)}({', '.join(given)})"
    return f"{written(name)} = {text}" + (f"[{d.value.result}]" if d.value.result else "")


def _checked(o: Input, x: Any, check: bool) -> Any:
    """Take an array for an argument. Raises: TypeError for another shape; ValueError for a missing symmetry."""
    x = asarray(x)
    aval = aval_of(x)
    if aval.shape != o.aval.shape:
        raise TypeError(f"{o.name} is {aval}, but the formula was derived for {o.aval}.")
    if dtypes.is_complex(aval.dtype) and not dtypes.is_complex(o.aval.dtype):
        raise TypeError(f"{o.name} is complex, {aval}, but the formula was derived for {o.aval}, which is real.")
    if check and o.symmetries and not isinstance(x, Tracer):
        check_symmetries(o.name, np.asarray(x), o.symmetries)
    return x


def _index(o: Input, indices: Mapping[str, Any]) -> Any:
    assert o.size is not None
    if o.name not in indices:
        raise TypeError(f"the formula has the free index {o.name}: give it a value, {o.name}=0.")
    i = indices[o.name]
    if isinstance(i, int) and not 0 <= i < o.size:
        raise IndexError(f"the free index {o.name}={i} is outside of its axis of {o.size}.")
    return asarray(i, np.int32)
