"""The text of programs, for users: `parse_jaxpr` reads what `str` and `program_text` write."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tapeless import checkpoint_policies as policies
from tapeless.custom.primitives import LibraryPrimitive
from tapeless.interpreters.analysis import strict_form
from tapeless.interpreters.residuals.state_limit import StateLimit
from tapeless.tracer import dtypes
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import ClosedJaxpr, Jaxpr
from tapeless.tracer.parsing.params import Maker
from tapeless.tracer.parsing.programs import ReadProgram, read_program
from tapeless.tracer.primitives.random import random_unwrap
from tapeless.tracer.printing import element_text, jaxpr_text
from tapeless.tracer.types import ShapedArray, aval_of

_STRICT = {p.name: p for p in (strict_form.lit, strict_form.lzero, strict_form.dup, strict_form.drop)}
_MOST_ELEMENTS = 10_000  # of a constant that is written in full


def parse_jaxpr(
    text: str, consts: Sequence[Any] | None = None, *, objects: Mapping[str, Any] | None = None
) -> ClosedJaxpr:
    """Read a program from its text, as `str` prints it or as written by hand.

    The program is checked by the typing rules of its operations. Types of results may be left out; a variable is linear
    if its name has a dot; the operations of the strict form (`dup`, `drop`, `lzero`, `lit`) may be used.

    Args:
      text: of the program; those that it calls stand above it.
      consts: values of the constants in brackets, if the text does not have them (`program_text` writes them).
      objects: Python objects that text has only the names of, by these names: functions of callbacks and of custom
        rules, policies of checkpoints, primitives of libraries. Policies of `tl.checkpoint_policies` are known.
    Returns: the program, which prints as the text does.
    Raises: ProgramTextError naming line and column, if it is not the text of a program, if the program is badly typed,
      with the types on both sides, or if it has a Python object that is not given; ValueError if there are not as many
      `consts` as constants, TypeError if they are of other types.

    >>> parse_jaxpr("{ lambda a:f32[3]. let b = sin a; c = mul b 2.0 in c }")
    { lambda a:f32[3]. let
        b:f32[3] = sin a
        c:f32[3] = mul b 2.0
      in c }
    """
    if type(text) is not str:
        raise TypeError(f"parse_jaxpr: expected the text of a program, not an object of type {type(text).__name__}.")
    found = read_with_known_objects("parse_jaxpr", text, objects or {})
    values = found.values if consts is None else tuple(consts)
    names = ", ".join(v.aval.str_short() for v in found.jaxpr.invars[: found.n_constants])
    if values is None:
        raise ValueError(
            f"parse_jaxpr: the constants of the program, {names}, have no values.\n"
            "  Pass consts=program.consts, or write them by tl.program_text(program, constants=True)."
        )
    if len(values) != found.n_constants:
        raise ValueError(f"parse_jaxpr: {len(values)} consts were given; the program has {found.n_constants}: {names}.")
    for k, (value, aval) in enumerate(zip(values, found.jaxpr.in_avals)):
        given = aval_of(value)
        if (given.shape, given.dtype) != (aval.shape, aval.dtype):
            raise TypeError(f"parse_jaxpr: consts[{k}] is {given}, and the program has {aval} there.")
    return ClosedJaxpr(found.jaxpr, values)


def read_with_known_objects(
    who: str, text: str, objects: Mapping[str, Any], rule_named: Callable[[str], Any] | None = None
) -> ReadProgram:
    """Read a program with the objects that the package knows, and these; errors name `who`."""
    operations = {name: x.operation if isinstance(x, LibraryPrimitive) else x for name, x in objects.items()}
    given = {name: x for name, x in operations.items() if isinstance(x, Primitive)}
    others = {name: x for name, x in objects.items() if name not in given}
    return read_program(who, text, {**_STRICT, **given}, {**_policies(), **others}, (strict_form.lzero,), rule_named)


def _policies() -> dict[str, Any]:
    """Return the policies of checkpoints, and the functions that make some, by their printed names."""
    return {policy.__name__: policy for policy in _POLICIES} | {maker.__name__: Maker(maker) for maker in _MAKERS}


_POLICIES = (
    policies.save_all,
    policies.save_none,
    policies.dots_saveable,
    policies.dots_with_no_batch_dims_saveable,
)
_MAKERS = (
    policies.budget,
    policies.save_only_these_names,
    policies.save_any_names_but_these,
    policies.save_anything_except_these_names,
    policies.save_from_both_policies,
    policies.offload_dot_with_no_batch_dims,
    StateLimit,
)


def program_text(program: Any, *, constants: bool = False) -> str:
    """Write a program, such as `make_jaxpr` gives, as `str` does; with `constants`, the values of constants in full.

    Raises: TypeError if it is no program; ValueError naming a constant of more than 10000 elements: pass these to
      `parse_jaxpr` as consts.

    >>> import tapeless as tl, tapeless.numpy as tnp
    >>> w = tnp.array([0.1, 0.2])
    >>> print(program_text(tl.make_jaxpr(lambda x: w * x)(w), constants=True))
    { lambda [a:f32[2]=[0.1, 0.2]] b:f32[2]. let
        c:f32[2] = mul a b
      in c }
    """
    if isinstance(program, Jaxpr):
        return jaxpr_text(program)
    if not isinstance(program, ClosedJaxpr):
        raise TypeError(f"program_text: expected a program, such as tl.make_jaxpr(f)(*args), not {program!r:.80}.")
    if not constants:
        return str(program)
    values = [_in_full(k, x, aval) for k, (x, aval) in enumerate(zip(program.consts, program.jaxpr.in_avals))]
    return jaxpr_text(program.jaxpr, len(values), values)


def _in_full(k: int, value: Any, aval: ShapedArray) -> str:
    if aval.size > _MOST_ELEMENTS:
        raise ValueError(
            f"program_text: constant {k}, {aval}, has more than {_MOST_ELEMENTS} elements.\n"
            "  Leave constants=True out, and pass parse_jaxpr(text, consts=program.consts)."
        )
    elements = np.asarray(random_unwrap(value) if dtypes.is_key(aval.dtype) else value)
    return _nested(elements, aval, 0)


def _nested(elements: Any, aval: ShapedArray, axis: int) -> str:
    if axis == aval.ndim:
        return element_text(elements, aval.dtype)
    return f"[{', '.join(_nested(part, aval, axis + 1) for part in elements)}]"
