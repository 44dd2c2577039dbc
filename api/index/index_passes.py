"""Passes of the index language that one can call and look at: program -> program, each with its normal form.

A program is what `tl.make_jaxpr(f)(x)` returns. Source: Bernstein et al. 2020, sections 5 and 6.
"""

from typing import Any, Final, TypeVar

from tapeless.index.formulas import Formulas, Input
from tapeless.interpreters.formulas.let_form import used_definitions
from tapeless.interpreters.formulas.raise_terms import raise_program
from tapeless.interpreters.index import normal_forms
from tapeless.interpreters.index.normal_forms import NormalForm
from tapeless.tracer.jaxpr import ClosedJaxpr, Jaxpr
from tapeless.tracer.printing import Names
from tapeless.tracer.types import aval_of

AnyProgram = TypeVar("AnyProgram", ClosedJaxpr, Jaxpr)
FORMS = ("text", "latex", "einsum", "numpy")


class ProgramPass:
    """A pass: a function from programs to equivalent programs in a normal form, which cost no more.

    `is_normal(program)` tells whether a program has that form already.
    """

    def __init__(self, name: str, form: NormalForm, doc: str) -> None:
        self.__name__: str = name
        self.__doc__: str | None = doc
        self._form = form

    def __call__(self, program: AnyProgram) -> AnyProgram:
        after = self._form.apply(_jaxpr(self.__name__, program))
        found: Any = ClosedJaxpr(after, program.consts) if isinstance(program, ClosedJaxpr) else after
        return found

    def is_normal(self, program: ClosedJaxpr | Jaxpr) -> bool:
        """Tell whether a program has the normal form of this pass.

        Raises: TypeError if it is no program.
        """
        return self._form.holds(_jaxpr(f"{self.__name__}.is_normal", program))

    def __repr__(self) -> str:
        return f"<pass {self.__name__}>"


def _jaxpr(who: str, program: Any) -> Jaxpr:
    if isinstance(program, ClosedJaxpr):
        return program.jaxpr
    if isinstance(program, Jaxpr):
        return program
    raise TypeError(
        f"index.{who}: expected a program, not an object of type {type(program).__name__}: tl.make_jaxpr(f)(*args)."
    )


let_lift: Final = ProgramPass(
    "let_lift",
    normal_forms.let_lift,
    """Lift lets outward: bindings in a called function move to the program that calls it.

    Normal form: no equation calls a function. Bodies of `build` and of sums have no lets left: tracing writes an
    equation of theirs in bulk, before the body is over, which is `let X = gen i. a`.
    """,
)
pair_eliminate: Final = ProgramPass(
    "pair_eliminate",
    normal_forms.pair_eliminate,
    """Rewrite arrays of structs as structs of arrays.

    Normal form: all variables are arrays. There is nothing to do: tracing flattens the pytree of a body's result, and
    makes an array of each leaf.
    """,
)
gen_push_out: Final = ProgramPass(
    "gen_push_out",
    normal_forms.gen_push_out,
    """Read elements where they come from: (gen i. x[2 i])[a] is x[2 a].

    Normal form: no `ein` reads an array whose elements are elements of another, unless a bracket would be needed.
    Generators of computed elements are outermost already: they are equations, which are shared, not copied.
    """,
)
raise_terms: Final = ProgramPass(
    "raise_terms",
    normal_forms.raise_terms,
    """Rewrite contractions, sums, slices, products and similar operations as sums of terms, `ein`; masks as brackets.

    Normal form: what is no `ein` has no terms, may be summed in no other order, would be more work, or is a conversion.
    """,
)
tensor_ssa: Final = ProgramPass(
    "tensor_ssa",
    normal_forms.tensor_ssa,
    """Write a program in tensor SSA: `let_lift`, then `raise_terms`, and equal equations are one.

    Normal form: constants, functions of elements and `ein`, and what is neither (sorts, loops, factorizations); no two
    equations of known values are alike.
    """,
)
solve: Final = ProgramPass(
    "solve",
    normal_forms.solve,
    """Eliminate brackets: equalities between indices are solved, inequalities become ranges.

    Normal form: bounds decide no bracket, no equality has a variable with coefficient 1 or -1, no inequality is of one
    variable, and each variable is an index of something. What tracing writes has this form.
    """,
)
merge: Final = ProgramPass(
    "merge",
    normal_forms.merge,
    """Merge terms that differ only in their coefficients, and the terms of all cases of a choice.

    Normal form: no two terms of an `ein` are alike. What tracing writes has this form.
    """,
)
fuse: Final = ProgramPass(
    "fuse",
    normal_forms.fuse,
    """Write sums of products into all of their readers where that is less work, or as much and less is held.

    Normal form: for no value is it a gain. Which values are looked at, and how large terms may become, has bounds.
    """,
)
lower_terms: Final = ProgramPass(
    "lower_terms",
    normal_forms.lower_terms,
    """Rewrite every `ein` as other operations: views, contractions, convolutions, masks, gathers.

    Normal form: no `ein`. Of the operations counted those on zeros that a view pads with may be more than before.
    """,
)


def show(program: ClosedJaxpr | Jaxpr, form: str = "text") -> str:
    """Format the results of a program as formulas of its inputs.

    Args:
      form: "text", "latex", calls of "einsum", or the source of functions for "numpy".
    Raises: ValueError for another form; TypeError if it is no program; NotImplementedError naming what NumPy has not.

    >>> import tapeless as tl
    >>> print(show(tl.make_jaxpr(lambda x: 2 * x[::-1])(tl.numpy.ones(2))))
    2 * a[1 - b]
    """
    jaxpr = _jaxpr("show", program)
    if form not in FORMS:
        raise ValueError(f"index.show: form={form!r} is none of {', '.join(map(repr, FORMS))}.")
    names = Names()
    values = program.consts if isinstance(program, ClosedJaxpr) else ()
    inputs = [Input(names(v), v.aval) for v in jaxpr.invars]
    inputs[: len(values)] = [o._replace(value=x, aval=aval_of(x)) for o, x in zip(inputs, values)]
    found = raise_program(jaxpr, {})
    each = [
        Formulas.of(used_definitions(found._replace(results=(terms,))), inputs, (None,), (aval,))
        for terms, aval in zip(found.results, jaxpr.out_avals)
    ]
    return "\n\n".join([getattr(formulas, form)() for formulas in each])
