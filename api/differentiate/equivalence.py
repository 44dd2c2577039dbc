"""Alpha-equivalence of programs: equality up to the names of variables and of programs, and source lines.

Programs are compared by identity, as caches need it. A function value that carries a program, such as a result of
`linearize`, has to be equal to the one from tracing the same function again. `form_of` maps a program to its form;
equivalent programs have the same form.
"""

import weakref
from dataclasses import fields
from typing import Any

import numpy as np

from tapeless.tracer import core
from tapeless.tracer.caches import exact_key
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Var
from tapeless.tracer.printing import is_record


class Form:
    """The equivalence class of a program up to renaming; compared by identity."""

    __slots__ = ("__weakref__", "_key")

    def __init__(self, key: Any) -> None:
        self._key = key


def form_of(jaxpr: Jaxpr) -> Form:
    """Return the form of a program, cached for as long as the program lives.

    Forms of the programs inside are part of it, so that comparing takes time in proportion to the program's text, even
    where calls are nested. Params that are objects count as equal if they say so.
    """
    found = _forms.get(jaxpr)
    if found is None:
        key = _key_of(jaxpr)
        form = _known.get(key) or _known.setdefault(key, Form(key))
        found = _forms.setdefault(jaxpr, {"form": form})
    return found["form"]


def _key_of(jaxpr: Jaxpr) -> Any:
    numbers: dict[Var, int] = {}

    def defined(v: Var) -> Any:
        numbers[v] = len(numbers)
        return v.aval, v.linear

    def read(atom: Atom) -> Any:
        if type(atom) is Var:
            return numbers[atom]
        return atom.aval, np.asarray(atom.value).tobytes()

    def written(eqn: Equation) -> Any:
        params = tuple([(name, _exact(eqn.params[name])) for name in sorted(eqn.params)])
        return eqn.primitive, tuple(map(read, eqn.invars)), params, tuple(map(defined, eqn.outvars))

    head = tuple(map(defined, jaxpr.invars))
    return head, tuple(map(written, jaxpr.eqns)), tuple(map(read, jaxpr.outvars))


def _exact(value: Any) -> Any:
    """Make a key of a param, equal to another only if no rule can tell the params apart: 1, 1.0 and True are three."""
    return exact_key(value, _key_of_other)


def _key_of_other(value: Any) -> Any:
    if isinstance(value, Jaxpr):
        return form_of(value)
    if isinstance(value, tuple):
        return type(value), *map(_exact, value)
    if is_record(value):
        return type(value), *[_exact(getattr(value, field.name)) for field in fields(value)]
    return type(value), value


_forms = core.program_cache()
_known: weakref.WeakValueDictionary[Any, Form] = weakref.WeakValueDictionary()
