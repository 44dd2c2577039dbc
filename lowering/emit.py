"""From a program to a StableHLO module, as text with the user's source lines.

One function per distinct inner program: however often it is called, its text stands once.
"""

from collections.abc import Sequence
from typing import Any

from tapeless.lowering import hlo
from tapeless.lowering.hlo import Function, Value
from tapeless.tracer.jaxpr import Jaxpr, Literal
from tapeless.tracer.rules import Rules
from tapeless.tracer.source import Source

rules = Rules("emit")  # rule(f: Function, outs: avals, *operands: Value, **params) -> Values


def module_text(jaxpr: Jaxpr, donated: Sequence[int] = (), name: str = "jit") -> str:
    """The module of a program: its inputs are the arguments of `@main`.

    Args:
      donated: positions of inputs whose memory the results may take.
    Raises: NotImplementedError if a primitive has no emit rule; TypeError if a dtype has no StableHLO name.
    """
    return _Module(name).text(jaxpr, frozenset(donated))


class _Module:
    """The functions written so far, and the source lines they refer to."""

    def __init__(self, name: str) -> None:
        self._name = "".join(c if c.isalnum() else "_" for c in name)
        self._titles: dict[Jaxpr, str] = {}
        self._taken: set[str] = {"main"}
        self._texts: list[str] = []
        self._places: dict[str, str] = {}
        self._marks: dict[Source | None, str] = {}

    def text(self, jaxpr: Jaxpr, donated: frozenset[int]) -> str:
        main = self._function(jaxpr, "public @main", donated)
        places = [f"{alias} = loc({spot})" for spot, alias in self._places.items()]
        return "\n".join([f"module @{self._name} {{", main, *self._texts, "}", *places])

    def _function(self, jaxpr: Jaxpr, title: str, donated: frozenset[int] = frozenset()) -> str:
        f = Function(self._call, self._location)
        arguments = [Value(f"%arg{i}", v.aval) for i, v in enumerate(jaxpr.invars)]
        results = lower(f, jaxpr, arguments)
        head = ", ".join(_argument(v, i in donated) for i, v in enumerate(arguments))
        types = ", ".join(hlo.tensor(v.aval) for v in results)
        end = f'    "func.return"({", ".join(v.name for v in results)}) : ({types}) -> ()'
        return "\n".join([f"  func.func {title}({head}) -> ({types}) {{", *f.lines, end, "  }"])

    def _call(self, f: Function, jaxpr: Jaxpr, operands: Sequence[Value]) -> Sequence[Value]:
        """A call of the function of an inner program, written on first use."""
        title = self._titles.get(jaxpr)
        if title is None:
            title = self._titles[jaxpr] = self._distinct(jaxpr.name)
            self._texts.append(self._function(jaxpr, f"private @{title}"))
        return f.ops("func.call", operands, jaxpr.out_avals, f"callee = @{title}")

    def _distinct(self, name: str) -> str:
        plain = "".join(c if c.isalnum() else "_" for c in name)
        title, n = plain, 0
        while title in self._taken:
            n += 1
            title = f"{plain}_{n}"
        self._taken.add(title)
        return title

    def _location(self, source: Source | None) -> str:
        found = self._marks.get(source)
        if found is None:
            found = self._marks[source] = self._mark(source)
        return found

    def _mark(self, source: Source | None) -> str:
        """What is printed behind an operation of this place."""
        if source is None:
            return ""
        spot = f'"{source.file}":{source.line}:0'.replace("\\", "/")
        alias = self._places.get(spot)
        if alias is None:
            alias = self._places[spot] = f"#loc{len(self._places)}"
        return f" loc({alias})"


def lower(f: Function, jaxpr: Jaxpr, arguments: Sequence[Value]) -> list[Value]:
    """Write a program's equations into `f`; also used for the bodies of loops and branches."""
    env = dict(zip(jaxpr.invars, arguments))

    def read(v: Any) -> Value:
        return f.constant(v.value, v.aval) if type(v) is Literal else env[v]

    for eqn in jaxpr.eqns:
        f.at(eqn.source)
        outs = [v.aval for v in eqn.outvars]
        values = rules[eqn.primitive](f, outs, *[read(v) for v in eqn.invars], **eqn.params)
        env.update(zip(eqn.outvars, values, strict=True))
    return [read(v) for v in jaxpr.outvars]


def _argument(v: Value, donated: bool) -> str:
    return f"{v.name}: {hlo.tensor(v.aval)}{' {jax.buffer_donor = true}' if donated else ''}"
