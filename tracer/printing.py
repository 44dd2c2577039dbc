"""Programs as text: `{ lambda x:f32[3] ; ẋ:f32[3]. let y = sin x; c = cos x; ẏ = mul c ẋ in y ; ẏ }`.

Linear variables wear a dot; a semicolon stands between nonlinear and linear. Programs inside params are
printed once each, as named functions above the program that calls them.
"""

import itertools
import string
from collections.abc import Iterator
from enum import Enum
from typing import Any, Final

import numpy as np

from tapeless.tracer.rules import Rules

texts: Final = Rules(
    "printing",
    "rule(params, name of the result, names of operands) -> text of some params, and the others",
    absent="its params are printed by their names",
)
_DOT = "\u0307"


class Names:
    """Names for variables, in order of appearance: a, b, ..., z, aa, ab, ..."""

    def __init__(self) -> None:
        self._given: dict[Any, str] = {}
        self._fresh = _letters()

    def __call__(self, atom: Any) -> str:
        if not hasattr(atom, "value"):
            return self._given.get(atom) or self._name(atom)
        return literal_text(atom)

    def _name(self, var: Any) -> str:
        plain = next(self._fresh)
        name = plain[0] + _DOT + plain[1:] if var.linear else plain
        self._given[var] = name
        return name

    def share(self, var: Any, other: Any) -> None:
        """Let a variable have the name of another, which is the same value in another program."""
        self._given[var] = self(other)

    def typed(self, var: Any) -> str:
        return f"{self(var)}:{var.aval.str_short()}"


def jaxpr_text(jaxpr: Any, n_consts: int = 0) -> str:
    """The whole program; its first `n_consts` inputs are constants and stand in brackets."""
    titles = titles_inside(jaxpr)
    texts = [f"{title} = {_program(program, titles)}" for program, title in titles.items()]
    return "\n".join([*texts, _program(jaxpr, titles, n_consts)])


def titles_inside(jaxpr: Any) -> dict[Any, str]:
    """The programs that a program carries, innermost first, with what they are called: `@body`."""
    return {program: f"@{title}" for program, title in _functions(jaxpr).items()}


def equation_text(eqn: Any, names: Names | None = None, titles: dict[Any, str] | None = None) -> str:
    """`y:f32[3] = reduce_sum[axes=(1,)] x`."""
    names = names or Names()
    operands, results = [names(v) for v in eqn.invars], [names.typed(v) for v in eqn.outvars]
    rule, written, params = texts.get(eqn.primitive), "", eqn.params
    if rule is not None:
        written, params = rule(eqn.params, names(eqn.outvars[0]), operands)
    shown = _params(params, titles or {}, written)
    return f"{' '.join(results)} = {eqn.primitive}{shown} {' '.join(operands)}".removeprefix(" = ").rstrip()


def literal_text(literal: Any) -> str:
    """`2.0`, `True`: the shortest decimal that is this number in its own dtype."""
    return str(np.asarray(literal.value)[()])


def _program(jaxpr: Any, titles: dict[Any, str], n_consts: int = 0) -> str:
    names = Names()
    head = _head(jaxpr, names, n_consts)
    body = [f"    {equation_text(eqn, names, titles)}" for eqn in jaxpr.eqns]
    tail = _sides(jaxpr.outvars, names)
    if not body:
        return f"{{ lambda {head}. in {tail} }}"
    return "\n".join([f"{{ lambda {head}. let", *body, f"  in {tail} }}"])


def _head(jaxpr: Any, names: Names, n_consts: int) -> str:
    consts = " ".join(names.typed(v) for v in jaxpr.invars[:n_consts])
    rest = jaxpr.invars[n_consts:]
    nonlinear = " ".join(names.typed(v) for v in rest if not v.linear)
    linear = " ".join(names.typed(v) for v in rest if v.linear)
    head = " ".join(filter(None, [f"[{consts}]" if consts else "", nonlinear]))
    return f"{head} ; {linear}".lstrip() if linear else head


def _sides(atoms: Any, names: Names) -> str:
    nonlinear = ", ".join(names(v) for v in atoms if not v.linear)
    linear = ", ".join(names(v) for v in atoms if v.linear)
    return f"{nonlinear} ; {linear}".lstrip() if linear else nonlinear


def _params(params: dict[str, Any], titles: dict[Any, str], written: str = "") -> str:
    shown = [f"{name}={_param(value, titles)}" for name, value in params.items() if not is_default(value)]
    shown = [written, *shown] if written else shown
    return f"[{' '.join(shown)}]" if shown else ""


def is_default(value: Any) -> bool:
    """Tell whether a parameter is left out, as it has the value that it has by default."""
    if isinstance(value, tuple):
        return bool(value) and all(isinstance(item, Enum) and is_default(item) for item in value)
    return value is None or (isinstance(value, Enum) and value.name == "DEFAULT")


def _param(value: Any, titles: dict[Any, str]) -> str:
    if _is_program(value) and value in titles:
        return titles[value]
    if isinstance(value, tuple):
        inside = ", ".join(_param(item, titles) for item in value)
        return f"({inside}{',' if len(value) == 1 else ''})"
    if isinstance(value, np.dtype):
        return value.name
    if isinstance(value, Enum):
        return value.name
    return getattr(value, "__name__", None) or str(value)


def _functions(jaxpr: Any) -> dict[Any, str]:
    """Programs reachable from `jaxpr`, innermost first, with distinct titles."""
    found: dict[Any, str] = {}
    _collect_functions(jaxpr, found, set())
    return found


def _collect_functions(jaxpr: Any, found: dict[Any, str], taken: set[str]) -> None:
    for eqn in jaxpr.eqns:
        for inner in _programs(eqn.params):
            if inner not in found:
                _collect_functions(inner, found, taken)
                found[inner] = _distinct(inner.name, taken)


def _distinct(name: str, taken: set[str]) -> str:
    candidates = itertools.chain([name], (f"{name}_{i}" for i in itertools.count(1)))
    title = next(c for c in candidates if c not in taken)
    taken.add(title)
    return title


def _programs(params: dict[str, Any]) -> Iterator[Any]:
    for value in params.values():
        for item in value if isinstance(value, tuple) else (value,):
            if _is_program(item):
                yield item


def _is_program(value: Any) -> bool:
    return hasattr(value, "eqns")


def _letters() -> Iterator[str]:
    for length in itertools.count(1):
        for letters in itertools.product(string.ascii_lowercase, repeat=length):
            yield "".join(letters)
