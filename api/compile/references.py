"""References in compiled functions: their arrays go in with the arguments, and come out with the results."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tapeless.arguments.names import name_of_leaf
from tapeless.tracer import core
from tapeless.tracer.jaxpr import ClosedJaxpr
from tapeless.tracer.passes import rearrange_program
from tapeless.tracer.references import Ref, values_of
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import ShapedArray


class ProgramReferences(NamedTuple):
    """The references of a program: inputs and results beside those of the function.

    function, names, tree: what the user's function and its arguments by position are called, and their structure.
    given: positions of references among the leaves of the arguments.
    closed: references that the function closes over; what is in them are the last inputs.
    written: which of all these, in this order, are written; what is in them then are the last results.
    """

    function: str
    names: tuple[str, ...]
    tree: Any
    given: tuple[int, ...]
    closed: tuple[Ref, ...]
    written: tuple[int, ...]

    @property
    def are_global(self) -> bool:
        """Tell whether the closed-over references belong to no function being traced."""
        return all(ref.owner is core.bottom_trace() for ref in self.closed)

    def inputs(self, leaves: Sequence[Any]) -> list[Any]:
        """Return the inputs of the program, but for constants. Raises: ValueError if a reference is passed in twice."""
        self.check_distinct(leaves)
        return values_of([*leaves, *self.closed])

    def results(self, leaves: Sequence[Any], outs: Sequence[Any]) -> Sequence[Any]:
        """Write what the program gives into the references; return the results of the function."""
        references, n = self._all(leaves), len(outs) - len(self.written)
        for i, value in zip(self.written, outs[n:], strict=True):
            references[i].put(value)
        return outs[:n]

    def _all(self, leaves: Sequence[Any]) -> list[Ref]:
        return [*[leaves[i] for i in self.given], *self.closed]

    def check_distinct(self, leaves: Sequence[Any], who: str = "jit") -> None:
        """Raise ValueError if a reference is there twice."""
        first: dict[int, str] = {id(ref): "closed over" for ref in self.closed}
        for i in self.given:
            name, ref = name_of_leaf(self.names, self.tree, i), leaves[i]
            other = first.setdefault(id(ref), f"argument {name}")
            if other != f"argument {name}":
                raise ValueError(
                    f"{who}: a reference reaches {self.function} twice, {other} and argument {name}: {ref.aval}.\n"
                    "  Pass it once: what is written by one name would not be seen by the other."
                )


def trace_with_references(
    f: Callable[..., Sequence[Any]],
    leaves: Sequence[Any],
    avals: Sequence[ShapedArray],
    tree: Any,
    names: tuple[str, ...],
    **how: Any,
) -> tuple[ClosedJaxpr, ProgramReferences | None]:
    """Write a flat function down, of arguments among whose leaves are references.

    Args:
      avals: types of the leaves; of references, of what is in them.
      tree, names: the structure of the arguments, and what those by position are called, for messages.
      how: options of `trace_to_jaxpr`.
    Raises: ValueError if a reference is there twice; whatever `f` raises.
    """
    given = [i for i, x in enumerate(leaves) if isinstance(x, Ref)]
    closed: list[Ref] = []

    def flat(*xs: Any) -> list[Any]:
        inner = {i: Ref(xs[i], core.current_trace(), borrowed=True) for i in given}
        outs = f(*[inner.get(i, x) for i, x in enumerate(xs)])
        return [*outs, *[ref.value for ref in inner.values()]]

    jaxpr, consts = trace_to_jaxpr(flat, avals, references=closed, **how)
    if not given and not closed:
        return ClosedJaxpr(jaxpr, consts), None
    k = len(given) + len(closed)
    n, first = len(jaxpr.outvars) - k, len(consts)
    places = [*[first + i for i in given], *range(len(jaxpr.invars) - len(closed), len(jaxpr.invars))]
    written = tuple([i for i, place in enumerate(places) if jaxpr.outvars[n + i] is not jaxpr.invars[place]])
    program = rearrange_program(jaxpr, range(len(jaxpr.invars)), [*range(n), *[n + i for i in written]])
    function = core.describe_function(how["function"])
    references = ProgramReferences(function, names, tree.snapshot(), tuple(given), tuple(closed), written)
    references.check_distinct(leaves, how["what"])
    return ClosedJaxpr(program.replace(name=jaxpr.name), consts), references
