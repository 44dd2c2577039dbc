"""Formulas: arrays as sums of terms over named operands, to be printed, simplified, and evaluated.

What is no sum of products is an operand with a definition, which stands before what reads it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tapeless.arguments.argument_checks import check_callable
from tapeless.compile.jit import jit
from tapeless.differentiate.opaque import apply_opaque
from tapeless.index.constant_names import constant_names
from tapeless.index.spaces import check_symmetries, periodic_text, symmetry_text
from tapeless.interpreters.formulas.definition_text import application_text, definition_text
from tapeless.interpreters.formulas.index_expressions import index_expressions, printed_where_read
from tapeless.interpreters.formulas.let_form import (
    Computed,
    LetForm,
    bind_definition,
    evaluate_form,
    modular_axes,
    multiplied_out,
    simplify_form,
    uses,
)
from tapeless.interpreters.formulas.primitive_source import computed_source, opaque_source
from tapeless.interpreters.formulas.raise_terms import raise_program
from tapeless.interpreters.formulas.shared_contractions import with_shared_contractions
from tapeless.tracer import dtypes, pytree
from tapeless.tracer.core import Tracer
from tapeless.tracer.formulas.numpy_source import matrix_text, sum_source
from tapeless.tracer.formulas.symmetries import Symmetry
from tapeless.tracer.formulas.text import LATEX, TEXT, Notation, Operands, equation, formula, free_names, index_equation
from tapeless.tracer.indices.hints import note, note_assumptions
from tapeless.tracer.numpy import asarray, where
from tapeless.tracer.primitives.opaque import opaque_p
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.terms.term import Term
from tapeless.tracer.types import ShapedArray, aval_of

TEXT_SIZED, LATEX_SIZED = TEXT._replace(is_sized=True), LATEX._replace(is_sized=True)


class ValueName(str):
    """A name of a result that is no derivative."""

    __slots__ = ()


def _is_value(name: str | None) -> bool:
    return isinstance(name, ValueName)


class Input(NamedTuple):
    """An input of formulas: an argument, a constant with a value, or a free index below `size`."""

    name: str
    aval: ShapedArray
    symmetries: tuple[Symmetry, ...] = ()
    value: Any = None
    size: int | None = None
    periods: tuple[int, ...] = ()  # axes that are read modulo their size
    hints: tuple[tuple[int, str], ...] = ()  # axes, and names that the function has for indices of them
    stays: tuple[int, ...] = ()  # axes; indices that read these alone stay summed over


def staying_axes(inputs: Sequence[Input]) -> frozenset[tuple[int, int]]:
    """List the axes of inputs whose indices stay summed over."""
    return frozenset([(k, d) for k, o in enumerate(inputs) for d in o.stays])


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


def _aligned(line: str) -> str:
    """Mark the place in a line of LaTeX that is aligned: its equals sign, or the beginning of a line without one."""
    left, equals, right = line.partition(" = ")
    return f"{left} &= {right}" if equals and "[" not in left else f"& {line}"


@dataclass(frozen=True, repr=False)
class Formulas:
    """Arrays by formulas over named operands.

    Printed with the indices of the result as a, b, .. and those of sums as j, k, ..; `[a = b]` is 1 where that holds,
    else 0. Called with the arguments that they were derived for they are computed: an array, or a tuple of several.
    """

    form: LetForm
    inputs: tuple[Input, ...]
    defined: tuple[str, ...]  # names of definitions
    results: tuple[str | None, ...]  # names of what is differentiated with respect to, and of values
    avals: tuple[ShapedArray, ...]
    arguments: pytree.PyTreeDef  # of the tuple of arguments
    tree: pytree.PyTreeDef  # of the results
    assumptions: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        form: LetForm,
        inputs: Sequence[Input],
        results: Sequence[str | None],
        avals: Sequence[ShapedArray],
        arguments: pytree.PyTreeDef | None = None,
        tree: pytree.PyTreeDef | None = None,
    ) -> "Formulas":
        """Name the definitions of a let form. Of one result, and of arguments that are arrays, no trees are needed."""
        given = [o for o in inputs if o.value is None and o.size is None]
        arguments = pytree.structure(tuple([0] * len(given))) if arguments is None else arguments
        tree = pytree.structure(0) if tree is None else tree
        names = _definition_names(inputs, form)
        periods = {(k, d): o.aval.shape[d] for k, o in enumerate(inputs) for d in o.periods}
        form = form._replace(periods=periods, stays=staying_axes(inputs))
        return cls(form, tuple(inputs), names, tuple(results), tuple(avals), arguments, tree)

    @property
    def is_single(self) -> bool:
        """Tell whether there is one result, and it has no name."""
        return pytree.treedef_is_leaf(self.tree)

    # ---- simplified

    def simplify(self) -> "Formulas":
        """Merge terms that are alike up to the names of indices, the order of factors, and the symmetries of spaces.

        Of equal forms one with few conjugates is chosen. Factors that are divided by are cancelled, also where that is
        0 / 0. `assumptions` are the symmetries that were needed for it.
        """
        declared = {k: o.symmetries for k, o in enumerate(self.inputs) if o.symmetries}
        form, used = simplify_form(self.form, [x.shape for x in self.avals], declared)
        said = [symmetry_text(self.inputs[k].name, s) for k, found in used.items() for s in found]
        said += [periodic_text(self.inputs[k].name, self.inputs[k].aval, d) for k, d in modular_axes(form)]
        return self._with(form, assumptions=tuple(dict.fromkeys([*self.assumptions, *said])))

    def expand(self) -> "Formulas":
        """Write definitions by sums of products into the products that read them."""
        return self._with(multiplied_out(self.form))

    def share(self) -> "Formulas":
        """Give contractions that several terms have in common a name, so that each is computed once.

        So the value of `grad(value=True)` is a product with the gradient. Calling formulas does this by itself.
        """
        declared = {k: o.symmetries for k, o in enumerate(self.inputs) if o.symmetries}
        return self._with(with_shared_contractions(self.form, self.avals, declared))

    @cached_property
    def _shared(self) -> LetForm:
        return self.share().form

    def _with(self, form: LetForm, **changes: Any) -> "Formulas":
        inputs = changes.get("inputs", self.inputs)
        return replace(self, form=form, defined=_definition_names(inputs, form), **changes)

    # ---- functions that are not known

    def instantiate(self, **functions: Callable[..., Any]) -> "Formulas":
        """Put functions in the place of opaque ones: formulas of what they compute, and of their derivatives.

        Args:
          functions: by the names of opaque ones, of the same arguments and results; they may read arrays of outside.
        Raises: TypeError for a name that no opaque function in the formulas has, if one is no function, or if it gives
          another shape.
        """
        known = {c.params["function"] for c in self._opaque}
        if unknown := functions.keys() - known:
            said, there = ", ".join(sorted(unknown)), ", ".join(sorted(known)) or "none"
            raise TypeError(f"instantiate: no function is called {said}; there are {there}.")
        for f in functions.values():
            check_callable("instantiate", f)

        def apply(c: Computed, operands: Sequence[Any]) -> Any:
            f = functions.get(c.params["function"]) if c.primitive is opaque_p else None
            return bind_definition(c, operands) if f is None else apply_opaque(f, operands, c.params)

        def program(*values: Any) -> Any:
            return evaluate_form(self.form, values, self.avals, apply)

        taken = [o.name for o in self.inputs]
        jaxpr, consts = trace_to_jaxpr(program, list(self.form.inputs), what="instantiate")
        constants = list[Input]()
        for f in functions.values():
            taken += [o.name for o in constants]
            constants = constants or [
                Input(name, aval_of(x), value=x) for name, x in zip(constant_names(f, consts, taken), consts)
            ]
        inputs = (*constants, *self.inputs)
        return self._with(raise_program(jaxpr, {}, stays=staying_axes(inputs)), inputs=inputs)

    @property
    def _opaque(self) -> list[Computed]:
        found = [d.value for d in self.form.definitions]
        return [c for c in found if isinstance(c, Computed) and c.primitive is opaque_p]

    # ---- printed

    @property
    def operands(self) -> Operands:
        """Names of all operands."""
        booleans = frozenset(k for k, x in enumerate(self.form.avals) if dtypes.is_bool(x.dtype))
        indices = frozenset(k for k, o in enumerate(self.inputs) if o.size is not None)
        hints = dict[tuple[int, int], list[str]]()
        for k, o in enumerate(self.inputs):
            for axis, name in dict.fromkeys(o.hints):
                hints.setdefault((k, axis), []).append(name)
        named = (*[o.name for o in self.inputs], *self.defined)
        shapes = [x.shape for x in self.form.avals]
        expressions = printed_where_read(self.form)
        return Operands(named, shapes, booleans, indices, hints, self.form.stays, expressions, self.form.real)

    @property
    def terms(self) -> Any:
        """The terms: a tuple, or one for each argument if there are several."""
        found = [tuple([FormulaTerm(t, x.shape, self.operands) for t in r]) for r, x in self._sums]
        return pytree.unflatten(self.tree, found)

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
        return "\\begin{aligned}\n" + " \\\\\n".join(map(_aligned, lines)) + "\n\\end{aligned}"

    def _repr_latex_(self) -> str:
        said = ", ".join(self.assumptions)
        return f"$\\displaystyle {self.latex()}$" + (f" if `{said}`" if said else "")

    def __str__(self) -> str:
        """Print as text, and what was assumed of the arrays."""
        return self.text() + self.assumed

    @property
    def assumed(self) -> str:
        """Write what was assumed of the arrays as a line to follow the text; nothing if that is nothing."""
        return f"\n  if {', '.join(self.assumptions)}" if self.assumptions else ""

    __repr__ = __str__

    def _lines(self, notation: Notation) -> Iterator[str]:
        operands, n = self.operands, len(self.inputs)
        applied_once, of_indices = self._applied_once, index_expressions(self.form)
        for k, (name, d) in enumerate(zip(self.defined, self.form.definitions, strict=True), n):
            if k in operands.expressions:
                continue
            if k in of_indices:
                yield index_equation(name, of_indices[k], d.aval.shape, operands, notation)
            elif k not in applied_once:
                yield definition_text(name, d, operands, notation)
            else:  # stands where it is read
                text, names = application_text(d.value, operands, notation), operands.names
                operands = operands._replace(names=(*names[:k], text, *names[k + 1 :]))
        for name, (terms, aval) in zip(self.results, self._sums, strict=True):
            if self.is_single:
                yield formula(terms, aval.shape, operands, notation)
            elif _is_value(name):
                yield equation(str(name), terms, aval.shape, operands, notation)
            else:
                left = notation.operand(f"{notation.nabla}{name}", free_names(aval.ndim, operands))
                yield f"{left} = {formula(terms, aval.shape, operands, notation)}"

    @property
    def _applied_once(self) -> frozenset[int]:
        """Find applications of opaque functions that one product reads."""
        counts, n = uses(self.form), len(self.inputs)
        found = {k for k, d in enumerate(self.form.definitions, n) if d.value in self._opaque and counts[k] == 1}
        read = {k for d in self.form.definitions if isinstance(d.value, Computed) for k in d.value.operands}
        return frozenset(found - read)

    # ---- as source for NumPy

    def numpy(self) -> str:
        """Write a function that runs with NumPy alone: of the arguments, and of constants and free indices by name.

        Raises: NotImplementedError naming a function that NumPy does not have.
        """
        operands = self._source_operands
        names = [_source_name(name) for name in self.results]
        functions = list(dict.fromkeys(opaque_source(c.params) for c in self._opaque))
        if taken := {"np", "range", *names, *functions} & {*operands.names}:
            raise ValueError(
                f"numpy: the source has names of its own, {', '.join(sorted(taken))}: call the array another."
            )
        arguments = [o.name for o in self.inputs if o.value is None and o.size is None]
        others = [*[o.name for o in self.inputs if o.value is not None or o.size is not None], *functions]
        lines = list[str]()
        for name, d in zip(self.defined, self.form.definitions, strict=True):
            if isinstance(d.value, Computed):
                lines.append(f"{name} = {computed_source(d.value, operands.names, d.aval.dtype)}")
            else:
                lines.append(self._assignment(name, d.value, d.aval))
        for name, (terms, aval) in zip(names, self._sums, strict=True):
            lines.append(self._assignment(name, terms, aval))
        head = ", ".join([*arguments, *(["*", *others] if others else [])])
        returned = pytree.unflatten(self.tree, map(_Name, names))
        body = "".join([f"    {line}\n" for line in [*lines, f"return {returned!r}"]])
        return f"import numpy as np\n\n\ndef {'gradient' if self.results[0] else 'derivative'}({head}):\n{body}"

    def _assignment(self, name: str, terms: tuple[Term, ...], aval: ShapedArray) -> str:
        """Write an assignment, of the real part where terms add up to a real number."""
        text = sum_source(terms, aval.shape, self._source_operands, self.form.periods)
        given = [self.form.avals[f.operand] for t in terms for f in t.factors]
        is_complex = any(dtypes.is_complex(x.dtype) for x in given) and not dtypes.is_complex(aval.dtype)
        if dtypes.is_bool(aval.dtype):
            return f"{name} = ({text}) != 0"
        if dtypes.is_integer(aval.dtype):
            return f"{name} = np.asarray({text}, '{aval.dtype}')"
        if dtypes.is_complex(aval.dtype) and not any(dtypes.is_complex(x.dtype) for x in given):
            text = f"{text} + 0j"
        return f"{name} = np.real({text})" if is_complex else f"{name} = {text}"

    @property
    def _source_operands(self) -> Operands:
        """Operands without names of the user for indices, which names of source might be."""
        return self.operands._replace(hints={})

    def einsum(self) -> str:
        """Write the formulas as calls of `einsum`, a line for each array.

        Raises: NotImplementedError naming a term that is none.
        """
        operands, lines = self._source_operands, list[str]()
        for d in self.form.definitions:
            if isinstance(d.value, Computed):
                raise NotImplementedError(f"einsum: {d.value.primitive.name} is no sum of products: use numpy().")
        sums = [(d.value, d.aval) for d in self.form.definitions if not isinstance(d.value, Computed)]
        names = [*self.defined, *map(_source_name, self.results)]
        for name, (terms, aval) in zip(names, [*sums, *self._sums], strict=True):
            text = sum_source(terms, aval.shape, operands, self.form.periods)
            if "np.broadcast_to" in text:
                raise NotImplementedError(f"einsum: {formula(terms, aval.shape, operands)} has brackets: use numpy().")
            lines.append(text if self.is_single and len(names) == 1 else f"{name} = {text}")
        return "\n".join(lines)

    def matrix(self) -> str:
        """Write the formulas with products of matrices, `2 * A @ x`, a line for each array.

        Raises: NotImplementedError naming a formula that is no sum of chains of matrices and vectors.
        """
        operands, lines = self._source_operands, list[str]()
        sums = [(d.value, d.aval) for d in self.form.definitions if not isinstance(d.value, Computed)]
        if len(sums) < len(self.form.definitions):
            raise NotImplementedError("matrix: a definition is no sum of products: use text().")
        names = [*self.defined, *["derivative" if x is None else x if _is_value(x) else f"∇{x}" for x in self.results]]
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
          args: arrays of the shapes that the formulas were derived for, or trees of them, one for each argument.
          check: compare arrays with the symmetries that are declared of their spaces.
          indices: values of free indices.
        Raises: TypeError for a wrong number of arguments, another shape, or another dtype where the formulas compute
          with theirs only (a loop); ValueError naming array and symmetry if the array does not have it; IndexError for
          a free index outside of its axis.
        """
        expected = [o for o in self.inputs if o.value is None and o.size is None]
        n = len(pytree.treedef_children(self.arguments))
        if len(args) != n:
            names = ", ".join([o.name for o in expected])
            raise TypeError(f"this formula is of ({names}), not of {len(args)} arguments.")
        leaves = pytree.flatten_up_to(self.arguments, args, "formula", ("derived for", "given"))
        given = {o.name: _checked(o, x, check) for o, x in zip(expected, leaves)}
        note_assumptions(self.assumptions)
        for o in expected:
            for axis, name in o.hints:
                note(given[o.name], axis, name, stays=axis in o.stays)
        free = {o.name: _index(o, indices) for o in self.inputs if o.size is not None}
        given |= {name: i for name, (i, _) in free.items()}
        values = [o.value if o.value is not None else given[o.name] for o in self.inputs]
        try:
            found = evaluate_form(self._shared, values, self.avals)
        except TypeError as error:
            raise _of_dtypes(error, [(o, given[o.name]) for o in expected]) from None
        for is_inside in [is_inside for _, is_inside in free.values() if is_inside is not None]:
            found = [where(is_inside, x, 0) for x in found]  # formulas are linear in each one-hot
        return pytree.unflatten(self.tree, found)

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
            rest = iter(pytree.leaves(args))
            values = [held[o.name] if o.name in held else next(rest) for o in expected]
            return self(*pytree.unflatten(self.arguments, values), check=False, **indices)

        return jit(run)


class _Name(str):
    """A name, written without quotes in trees."""

    def __repr__(self) -> str:
        return str(self)


def _source_name(result: str | None) -> str:
    return "derivative" if result is None else result if _is_value(result) else f"gradient_{result}"


def _definition_names(inputs: Sequence[Input], form: LetForm) -> tuple[str, ...]:
    """Name definitions y, y1, .., those that cotangents depend on l1, l2, .."""
    taken = [o.name for o in inputs]
    most = len(form.definitions) + len(taken) + 1
    primal = (name for k in range(most) if (name := f"y{k or ''}") not in taken)
    linear = (name for k in range(1, most + 1) if (name := f"l{k}") not in taken)
    hidden = {k - len(inputs) for k in printed_where_read(form)}  # only source has them
    order = sorted(range(len(form.definitions)), key=lambda k: k in hidden)
    found = {k: next(linear if form.definitions[k].is_linear else primal) for k in order}
    return tuple([found[k] for k in range(len(found))])


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
    is_whole = not dtypes.is_inexact(aval.dtype) and dtypes.is_inexact(o.aval.dtype)
    return x.astype(o.aval.dtype) if is_whole else x


def _of_dtypes(error: TypeError, given: Sequence[tuple[Input, Any]]) -> TypeError:
    """Explain an error by the first array that is of another dtype than the formulas are of; as it is if none is."""
    for o, x in given:
        if x.dtype != o.aval.dtype:
            space = f"index.Space({o.name!r}, {o.aval.shape}, {x.dtype.name!r})"
            return TypeError(
                f"{o.name} is {x.aval}, but the formula was derived for {o.aval}, and computes with that only.\n"
                f"  Convert it with astype, or derive the formula for {space}."
            )
    return error


def _index(o: Input, indices: Mapping[str, Any]) -> tuple[Any, Any]:
    """Take the value of a free index, and whether it is on its axis: None if it is known to be.

    Raises: TypeError if there is none, or it is no integer; IndexError if it is known to be outside.
    """
    assert o.size is not None
    if o.name not in indices:
        raise TypeError(f"the formula has the free index {o.name}: give it a value, {o.name}=0.")
    i = asarray(indices[o.name])
    if i.shape or not dtypes.is_integer(i.dtype):
        raise TypeError(f"the free index {o.name} is {i.aval}: expected an integer.")
    if isinstance(i, Tracer):
        return i.astype(np.int32), (i >= 0) & (i < o.size)
    k = int(np.asarray(i))
    if not 0 <= k < o.size:
        raise IndexError(f"the free index {o.name}={k} is outside of its axis of {o.size}.")
    return asarray(k, np.int32), None
