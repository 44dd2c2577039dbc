"""Common subexpression elimination: merge equal equations. Value numbering.

A residual that equal equations compute is then saved once, and of equal linear equations one is transposed, for the sum
of their cotangents. It is not a pass of the simplifier, for XLA does the same to compiled programs. Left out:
primitives without an index row (among them callbacks and those with bodies), and fences, which must stay separate.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tapeless.interpreters.index_rows import rows
from tapeless.interpreters.writer import Writer
from tapeless.tracer.array import Array
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Literal
from tapeless.tracer.primitives.checkpoint import materialize_p, move_p, name_p, optimization_barrier_p
from tapeless.tracer.primitives.elementwise import add_p, mul_p
from tapeless.tracer.primitives.random import random_unwrap_p
from tapeless.tracer.settings.config import config

FENCES = frozenset((name_p, move_p, materialize_p, optimization_barrier_p))
COMMUTATIVE = frozenset((add_p, mul_p))


def without_common_subexpressions(jaxpr: Jaxpr) -> Jaxpr:
    """Merge equations of equal primitive, operands and params; the same object if there are none."""
    w, found = Writer(jaxpr), dict[Any, Equation]()
    # While reuse of random keys is being checked, merging would hide a second use.
    apart = FENCES | {random_unwrap_p} if config.debug_key_reuse else FENCES
    for eqn in jaxpr.eqns:
        now = w.renamed(eqn)
        if eqn.primitive in rows and not (eqn.primitive in apart or eqn.primitive.effect):
            first = found.setdefault(key_of(now.primitive, now.invars, now.params), now)
            if first is not now and w.replace(eqn, first.outvars):
                continue
        w.keep(now)
    return w.finish()


def key_of(primitive: Primitive, operands: Sequence[Atom], params: Mapping[str, Any]) -> Any:
    """Return a hashable key that is equal for equations of equal primitive, operands and params.

    The order of the operands of a sum or a product does not count.
    """
    named = tuple([(name, _bits(value)) for name, value in sorted(params.items())]) if params else ()
    given: list[Any] = []
    for x in operands:  # most are variables: a call for each takes long
        given.append(_operand(x) if type(x) is Literal else x)
    return primitive, named, tuple(sorted(given, key=hash) if primitive in COMMUTATIVE else given)


def equal_but_for_names(a: Jaxpr, b: Jaxpr) -> bool:
    """Tell whether two programs over the same inputs have equal equations in the same order, and equal results."""
    if len(a.eqns) != len(b.eqns):
        return False
    names = dict[Atom, Atom](zip(b.invars, a.invars, strict=True))
    for x, y in zip(a.eqns, b.eqns):
        given = [names.get(v, v) for v in y.invars]
        if x.linear != y.linear or key_of(x.primitive, x.invars, x.params) != key_of(y.primitive, given, y.params):
            return False
        names.update(zip(y.outvars, x.outvars))
    return [_operand(v) for v in a.outvars] == [_operand(names.get(v, v)) for v in b.outvars]


def _operand(x: Atom) -> Any:
    if type(x) is not Literal or isinstance(x.value, Array):
        return x
    return x.aval, np.asarray(x.value, x.aval.dtype).tobytes()


def _bits(value: Any) -> Any:
    """Return a key for a param that differs for 0.0 and -0.0, and for 1 and True."""
    return (type(value), repr(value)) if isinstance(value, (float, int, complex, np.generic)) else value
