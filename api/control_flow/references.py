"""References in the bodies of loops and branches.

Those of outside are a part of the carry, or one more operand and result. Those that a loop goes over are elements and
stacked results.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from tapeless.control_flow.body_tracing import TracedBody
from tapeless.tracer import core, pytree
from tapeless.tracer import numpy as tnp
from tapeless.tracer.jaxpr import Var
from tapeless.tracer.passes import rearrange_program
from tapeless.tracer.references import Ref, lent, values_of


class ElementReferences:
    """The references among `xs`, which a loop goes over: each step has references to its elements of their arrays.

    arrays: `xs`, with the arrays of references in their places.
    """

    def __init__(self, xs: Any) -> None:
        leaves, self._tree = pytree.flatten(xs)
        self._references = {i: x for i, x in enumerate(leaves) if isinstance(x, Ref)}
        self.arrays: Final = pytree.unflatten(self._tree, values_of(leaves)) if self._references else xs

    def __bool__(self) -> bool:
        return bool(self._references)

    def step(self, f: Callable[[Any, Any], tuple[Any, Any]]) -> Callable[[Any, Any], tuple[Any, Any]]:
        """Make `f` a step over `arrays`, which also gives the elements after it, to be stacked."""

        def stepped(carry: Any, x: Any) -> tuple[Any, Any]:
            leaves = pytree.leaves(x)
            inner = {i: Ref(tnp.asarray(leaves[i]), core.current_trace(), borrowed=True) for i in self._references}
            carry, y = f(carry, pytree.unflatten(self._tree, [inner.get(i, x) for i, x in enumerate(leaves)]))
            return carry, (y, [ref.value for ref in inner.values()])

        return stepped

    def run(self, who: str, loop: Callable[[], tuple[Any, tuple[Any, list[Any]]]]) -> tuple[Any, Any]:
        """Run a loop with such steps while nobody else uses the references, and write them; return what steps gave.

        Raises: ValueError if somebody does, or one is there twice.
        """
        with lent(self._references.values(), who):
            carry, (ys, after) = loop()
        for ref, x in zip(self._references.values(), after, strict=True):
            if x is not ref.get():
                ref.put(x)
        return carry, ys


def lending(who: str, f: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `f`, a function of references, to use each by one name: others are lent meanwhile.

    The function raises ValueError if a reference is there twice, or `f` closes over one of its arguments.
    """

    def borrowing(*operands: Any) -> Any:
        leaves, tree = pytree.flatten(operands)
        references = {i: x for i, x in enumerate(leaves) if isinstance(x, Ref)}
        before = values_of(leaves)
        inner = {i: Ref(before[i], core.current_trace(), borrowed=True) for i in references}
        with lent(references.values(), who):
            result = f(*pytree.unflatten(tree, [inner.get(i, x) for i, x in enumerate(leaves)]))
        for i, ref in references.items():
            if inner[i].value is not before[i]:
                ref.put(inner[i].value)
        return result

    return borrowing


def align_references(bodies: Sequence[TracedBody]) -> list[TracedBody]:
    """Let all bodies take, and give, the references that any body uses."""
    references = {id(ref): ref for body in bodies for ref in body.references}
    return [_with_references(body, tuple(references.values())) for body in bodies]


def _with_references(body: TracedBody, references: tuple[Ref, ...]) -> TracedBody:
    jaxpr, k = body.jaxpr, len(body.references)
    ins, outs = jaxpr.invars[len(jaxpr.invars) - k :], jaxpr.outvars[len(jaxpr.outvars) - k :]
    own = {id(ref): (before, after) for ref, before, after in zip(body.references, ins, outs, strict=True)}
    missing = {id(ref): Var(ref.aval.inner_aval) for ref in references if id(ref) not in own}
    pairs = [own.get(id(ref)) or (missing[id(ref)], missing[id(ref)]) for ref in references]
    invars = [*jaxpr.invars[: len(jaxpr.invars) - k], *[before for before, _ in pairs]]
    outvars = [*jaxpr.outvars[: len(jaxpr.outvars) - k], *[after for _, after in pairs]]
    return body._replace(jaxpr=jaxpr.replace(invars=invars, outvars=outvars), references=references)


def written_by(body: TracedBody) -> list[bool]:
    """Flag the references that a body writes."""
    k, jaxpr = len(body.references), body.jaxpr
    ins, outs = jaxpr.invars[len(jaxpr.invars) - k :], jaxpr.outvars[len(jaxpr.outvars) - k :]
    return [before is not after for before, after in zip(ins, outs, strict=True)]


def put_back(bodies: Sequence[TracedBody], outs: Sequence[Any]) -> list[Any]:
    """Write the last results into the references that one of the bodies writes; return the other results."""
    references = bodies[0].references
    n, flags = len(outs) - len(references), map(any, zip(*map(written_by, bodies), strict=True))
    for ref, after, is_written in zip(references, outs[n:], flags, strict=True):
        if is_written:
            ref.put(after)
    return list(outs[:n])


def in_the_carry(body: TracedBody, n_carry: int, n_xs: int) -> TracedBody:
    """Move references behind the carry of a body of `scan`, before the elements and the results that are stacked."""
    k, first = len(body.references), len(body.consts) + n_carry
    if not k:
        return body
    last_in, last_out = len(body.jaxpr.invars) - k, len(body.jaxpr.outvars) - k
    ins = [*range(first), *range(last_in, last_in + k), *range(first, first + n_xs)]
    outs = [*range(n_carry), *range(last_out, last_out + k), *range(n_carry, last_out)]
    return body._replace(jaxpr=rearrange_program(body.jaxpr, ins, outs))


def verdict_only(cond_fun: Any, condition: TracedBody) -> TracedBody:
    """Drop arrays in references from the results of a condition. Raises: ValueError if the condition writes one."""
    for ref, is_written in zip(condition.references, written_by(condition), strict=True):
        if is_written:
            raise ValueError(
                f"while_loop: {core.describe_function(cond_fun)} writes a reference, {ref.aval}: a condition only "
                "reads.\n"
                "  Write it in the body of the loop."
            )
    return condition._replace(jaxpr=rearrange_program(condition.jaxpr, range(len(condition.jaxpr.invars)), [0]))
