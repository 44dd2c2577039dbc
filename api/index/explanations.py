"""Explanations of programs of the index language: from the bodies as they were traced to the operations that run."""

from collections import Counter
from collections.abc import Callable, Iterator
from html import escape
from typing import Any, Final, NamedTuple

from tapeless.arguments.argument_checks import FUNCTION_AND_ARGUMENTS, check_callable
from tapeless.compile.jit import program_of
from tapeless.compile.stages import ShapeDtypeStruct
from tapeless.differentiate.residuals import argument_names, flag_differentiated
from tapeless.differentiate.unzip import Unzipped, unzip_program
from tapeless.index.spaces import Space
from tapeless.interpreters.analysis import cost as counting
from tapeless.interpreters.index.index_bodies import IndexBody, recorded_bodies
from tapeless.interpreters.index.normal_forms import tensor_ssa
from tapeless.interpreters.simplify import simplify_program
from tapeless.interpreters.terms.lower_ein import without_ein
from tapeless.tracer.jaxpr import ClosedJaxpr, Equation, Jaxpr, Var
from tapeless.tracer.primitives.ein import ein_p, operands_of
from tapeless.tracer.printing import Names
from tapeless.tracer.terms.term import Term
from tapeless.tracer.terms.term_printing import term_text


class LoweredTerm(NamedTuple):
    """A term of a program: as text, the number of its operations, and the primitives that it is lowered to."""

    text: str
    work: int
    operations: tuple[str, ...]


class IndexExplanation:
    """A function of the index language, step by step; prints.

    bodies: what was traced for one element, inner bodies first: `.program`, and `.sizes` of its last inputs, indices.
    tensor_ssa: the program, simplified, in constants, functions of elements and sums of products.
    linear, transposed: its derivative and that run backwards, simplified; None if no argument is inexact.
    lowered: each term of these three programs, and what it is lowered to.
    cost: operations of the three, as `tl.cost` counts them; 0 for a program that is None.
    """

    def __init__(self, name: str, bodies: list[IndexBody], program: ClosedJaxpr, unzipped: Unzipped | None) -> None:
        self.name: Final = name
        self.bodies: Final = tuple(bodies)
        self.tensor_ssa: Final = ClosedJaxpr(tensor_ssa.apply(simplify_program(program.jaxpr)), program.consts)
        self.linear: Final = None if unzipped is None else simplify_program(unzipped.linear)
        self.transposed: Final = None if unzipped is None else simplify_program(unzipped.transposed)

    @property
    def lowered(self) -> tuple[tuple[LoweredTerm, ...], ...]:
        """The terms of each program."""
        return tuple([tuple(_lowered_terms(p)) for _, p in self._programs])

    @property
    def cost(self) -> tuple[int, int, int]:
        """Operation counts of the program, of its derivative, and of its transposed derivative."""
        found = [counting.work(p) for _, p in self._programs]
        return found[0], *(found[1:] or [0, 0])  # type: ignore[return-value]

    @property
    def _programs(self) -> list[tuple[str, Jaxpr]]:
        found = [("tensor SSA", self.tensor_ssa.jaxpr), ("linear", self.linear), ("transposed", self.transposed)]
        return [(name, p) for name, p in found if p is not None]

    def __str__(self) -> str:
        return "\n\n".join([self.name, *map(_body_text, self.bodies), *[_text(*p) for p in self._programs]])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def explain(fun: Callable[..., Any], /, *args: Any, **kwargs: Any) -> IndexExplanation:
    """Explain a function of the index language: its bodies, its bulk program, its derivative, and what these run.

    Args:
      args, kwargs: arguments of `fun`, their types (`tl.ShapeDtypeStruct`), or `Space`s; values are not used.
    Returns: an `IndexExplanation`, which prints; a body that was traced before in a jitted function is not in it.
    Raises: TypeError if `fun` cannot be called; whatever tracing `fun` raises.

    >>> explained = explain(lambda a: a @ a, Space("a", (3, 3)))
    >>> explained.lowered[0]
    (LoweredTerm(text='b[i,j] += Σ k. a[i,k] a[k,j]', work=45, operations=('dot_general',)),)
    """
    check_callable("index.explain", fun, expected=FUNCTION_AND_ARGUMENTS)
    given = [ShapeDtypeStruct(x.shape, x.dtype) if isinstance(x, Space) else x for x in args]
    with recorded_bodies() as bodies:
        program = program_of("index.explain", fun, given, kwargs)
    names = argument_names(fun, tuple(given), kwargs)
    unzipped = unzip_program(program, names) if any(flag_differentiated(program)) else None
    return IndexExplanation(getattr(fun, "__name__", "f"), bodies, program, unzipped)


def _body_text(body: IndexBody) -> str:
    names = Names()
    inputs = [names(v) for v in body.program.invars]
    indices = [f"{name} < {n}" for name, n in zip(inputs[len(inputs) - len(body.sizes) :], body.sizes, strict=True)]
    return f"BODY, for {', '.join(indices) or 'no index'}\n{body.program}"


def _text(name: str, program: Jaxpr) -> str:
    found = list(_lowered_terms(program))
    width = max([len(x.text) for x in found], default=0)
    rows = [f"  {x.text:{width}}  work {x.work}: {_counted(x.operations) or 'nothing'}" for x in found]
    return "\n".join([f"{name.upper()}: work {counting.work(program)}", str(program), *rows])


def _counted(names: tuple[str, ...]) -> str:
    return ", ".join([name if n == 1 else f"{n} {name}" for name, n in Counter(names).items()])


def _lowered_terms(program: Jaxpr) -> Iterator[LoweredTerm]:
    names = Names()
    for v in program.invars:
        names(v)
    for eqn in program.eqns:
        for v in eqn.outvars:
            names(v)
        for t in eqn.params["terms"] if eqn.primitive is ein_p else ():
            yield _lowered_term(eqn, t, names)


def _lowered_term(eqn: Equation, t: Term, names: Names) -> LoweredTerm:
    (out,), shapes = eqn.outvars, [x.aval.shape for x in eqn.invars]
    used = sorted(operands_of(t))
    params = {**eqn.params, "terms": (t.with_operands(used.index),)}
    if not t.factors:
        params["dtype"] = out.aval.dtype
    alone = eqn.replace(invars=[eqn.invars[k] for k in used], params=params)
    inputs = list(dict.fromkeys([x for x in alone.invars if isinstance(x, Var)]))
    after = simplify_program(without_ein(Jaxpr(inputs, [alone], [out])))
    text = term_text(t, names(out), [names(x) for x in eqn.invars], shapes, out.aval.shape)
    return LoweredTerm(text, counting.equation_cost(alone).work, tuple([e.primitive.name for e in after.eqns]))
