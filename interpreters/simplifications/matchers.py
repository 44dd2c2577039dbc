"""Term rewriting: compile the rewrites `pattern -> replacement if condition` of a primitive to one matcher.

The notation is that of the printer, as Python: `transpose[p](transpose[q](x)) -> transpose[picked(q, p)](x)`.
- `x` matches any operand, `ẋ` a linear one, `m` and `n` match scalar literals, `*x` the remaining operands. Params
  stand in brackets, in the order of the typing rule, and are left out where none matters.
- A number matches a value that has it everywhere; `0` matches a zero of either sign, `0.0` and `-0.0` only that one.
  The operands of `+` and `*` are matched in either order.
- A replacement is an operand, a number, an application of a primitive, or a call `f(...)`, which becomes `f(writer,
  aval, ...)` with the type of the result; if it returns None, the next row is tried. Conditions and params are
  Python. For an elementwise primitive, a replacement that is an operand is broadcast to the shape of the result.
A matcher is Python source that is generated when it is first needed, as `dataclasses` does it; `source` shows it.
Source: tinygrad's `upat_compile`. Left out: patterns of more than one result, and sharing tests among rewrites.
"""

import ast
import inspect
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np

from tapeless.interpreters.simplifications.common_subexpressions import COMMUTATIVE
from tapeless.interpreters.simplifications.constant_values import broadcast_scalar, number
from tapeless.interpreters.writer import Writer, fill_array
from tapeless.tracer.core import Primitive, primitives_by_name
from tapeless.tracer.jaxpr import Atom, Literal
from tapeless.tracer.primitives.shape import broadcast_in_dim_p

Matcher = Callable[..., Any]  # (writer, *operands, **params) -> the replacement, or None


class Licence(Enum):
    """Condition under which a rewrite holds: its name in print, and its test in a matcher."""

    ALWAYS = ("", "")
    FLOATS = ("real floats", "operands[0].aval.dtype.kind == 'f'")
    INTEGERS = ("integers", "operands[0].aval.dtype.kind in 'iu'")
    LINEAR = ("linear programs", "w.linear")


class Rewrite(NamedTuple):
    """One row: `pattern -> replacement if condition`, the reason why it holds, and the licence under which it holds."""

    text: str
    reason: str
    licence: Licence = Licence.ALWAYS

    def __str__(self) -> str:
        where = f"; {self.licence.value[0]}" if self.licence.value[0] else ""
        return f"{self.text}  # {self.reason}{where}"

    @property
    def pattern(self) -> ast.expr:
        """Parse the left side of the row."""
        return _parsed(self.text.split(" -> ")[0])

    @property
    def replacement(self) -> ast.expr:
        """Parse the right side of the row without its condition."""
        return _parsed(self.text.split(" -> ")[1].partition(" if ")[0])

    @property
    def condition(self) -> str:
        """Return the source text of the condition of the row; empty if it has none."""
        return self.text.partition(" if ")[2]


class Rewrites:
    """The rewrites of one primitive as a rule of `simplify`; compiled at its first call.

    names: the functions that conditions, params and replacements call. after: the fallback of an elementwise primitive
    if no row matches, (primitive, writer, operands, params) -> the replacement, or None.
    """

    def __init__(
        self, primitive: Primitive, rows: Sequence[Rewrite], names: Mapping[str, Any], after: Matcher | None = None
    ) -> None:
        self.primitive: Final = primitive
        self.rows: Final = tuple(rows)
        self._names = names
        self._after = after
        self._match: Matcher | None = None

    def __call__(self, w: Writer, /, *operands: Atom, **params: Any) -> Any:
        match = self._match
        if match is None:
            match = self._match = self._compiled()
        return match(w, *operands, **params)

    def looks_at(self) -> frozenset[Primitive] | None:
        """Return the primitives one of which must compute an operand, or an operand be a literal, for a row to match.

        None if a row may match whatever computes the operands.
        """
        found: set[Primitive] = {broadcast_in_dim_p}
        for row in self.rows:
            parts = operands_of(row.pattern)
            if all(isinstance(x, (ast.Name, ast.Starred)) and not _is_number(x) for x in parts):
                return None
            found.update(primitive_of(x) for x in parts if is_application(x))
        return frozenset(found)

    def only(self, row: Rewrite) -> "Rewrites":
        """Return a rule of one of these rows alone, without the fallback."""
        return Rewrites(self.primitive, [row], self._names, self._after and _nothing)

    def source(self) -> str:
        """Generate the Python source of the matcher."""
        numbers = sorted({k for row in self.rows for k in _numbers(self.primitive, row)})
        lines = [f"k{i} = number(w, operands[{i}])" for i in numbers]
        for row in self.rows:
            for order in _orders(self.primitive, row):
                lines += _nested(_steps(self.primitive, row, order, self._after is not None))
        lines += [] if self._after is None else [f"return after({self.primitive}_p, w, operands, params)"]
        return "\n".join(["def match(w, *operands, **params):", *[f"    {line}" for line in lines]])

    def _compiled(self) -> Matcher:
        if not self.rows and self._after is not None:
            after, primitive = self._after, self.primitive
            return lambda w, /, *operands, **params: after(primitive, w, operands, params)
        primitives = {f"{name}_p": primitive for name, primitive in primitives_by_name().items()}
        names = {
            "Literal": Literal,
            "number": number,
            "filled": fill_array,
            "spread": broadcast_scalar,
            "signbit": np.signbit,
            "after": self._after,
        }
        scope: dict[str, Any] = {**primitives, **names, **self._names}
        exec(compile(self.source(), f"<rewrites of {self.primitive}>", "exec"), scope)
        return scope["match"]


def _nothing(*_: Any) -> None:
    """Return None: the fallback of `only`, which keeps the rule elementwise."""


# ---- notation ------------------------------------------------------------------------------------------------

_OPERATORS: dict[type[ast.operator], str] = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div"}


def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _is_number(node: ast.expr) -> bool:
    """Tell whether a pattern is a number: a constant, or `m` or `n` for any."""
    return _constant(node) is not None or (isinstance(node, ast.Name) and node.id in ("m", "n"))


def _constant(node: ast.expr) -> str | None:
    """Return the source text of a pattern that is a number, with its sign; None for other patterns."""
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    return ast.unparse(node) if isinstance(inner, ast.Constant) else None


def is_application(node: ast.expr) -> bool:
    return isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Call)) and _constant(node) is None and _name(node) in _named()


def _name(node: ast.expr) -> str:
    """Return the name of the primitive or function that a pattern applies."""
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)]
    if isinstance(node, ast.UnaryOp):
        return "neg"
    assert isinstance(node, ast.Call)
    return ast.unparse(node.func.value if isinstance(node.func, ast.Subscript) else node.func)


@cache
def _named() -> dict[str, Primitive]:
    return primitives_by_name()


def primitive_of(node: ast.expr) -> Primitive:
    return _named()[_name(node)]


def operands_of(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.UnaryOp):
        return [node.operand]
    assert isinstance(node, ast.Call)
    return node.args


def params_of(node: ast.expr) -> dict[str, str]:
    """Return the source text of each param in brackets, by its name; empty without brackets."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript)):
        return {}
    inner = node.func.slice
    written = inner.elts if isinstance(inner, ast.Tuple) and inner.elts else [inner]
    signature = inspect.signature(primitive_of(node).typing_rule).parameters.values()
    names = [p.name for p in signature if p.kind is p.KEYWORD_ONLY]
    return dict(zip(names, map(ast.unparse, written), strict=True))


# ---- matching ------------------------------------------------------------------------------------------------


def _orders(primitive: Primitive, row: Rewrite) -> list[Sequence[int]]:
    """Return the permutations of the operands to try; an empty one if the last name takes all remaining operands."""
    parts = operands_of(row.pattern)
    if any(isinstance(x, ast.Starred) for x in parts):
        return [()]
    straight = range(len(parts))
    same = all(isinstance(x, ast.Name) for x in parts)
    return [straight] if primitive not in COMMUTATIVE or same else [straight, straight[::-1]]


def _numbers(primitive: Primitive, row: Rewrite) -> Collection[int]:
    """Return the positions of operands that a row compares with a number."""
    parts = operands_of(row.pattern)
    return {order[i] for order in _orders(primitive, row) if order for i, x in enumerate(parts) if _constant(x)}


def _nested(steps: Sequence[str]) -> Iterator[str]:
    """Indent statements so that each `if` contains all that follow it."""
    depth = 0
    for step in steps:
        yield "    " * depth + step
        depth += step.endswith(":")


def _steps(primitive: Primitive, row: Rewrite, order: Sequence[int], elementwise: bool) -> list[str]:
    """Write the Python lines that test one row against the operands and return its replacement."""
    parts, bound = operands_of(row.pattern), set[str]()
    steps = [f"if {row.licence.value[1]}:"] if row.licence.value[1] else []
    if order:
        steps += [f"if len(operands) == {len(order)}:"]
        steps += [step for i, x in zip(order, parts) for step in _match(x, f"operands[{i}]", f"k{i}", bound)]
    else:
        steps += [step for i, x in enumerate(parts) for step in _match(x, f"operands[{i}]", f"k{i}", bound)]
    steps += _match_params(row.pattern, "params", bound)
    if row.condition:
        steps.append(f"if {row.condition}:")
    replacement = _written(row.replacement)
    if elementwise and isinstance(row.replacement, ast.Name):
        replacement = f"spread(w, {replacement}, aval)"
    if "aval" in replacement:
        steps.append(f"aval = {primitive}_p.type(tuple([v.aval for v in operands]), params)[0]")
    return [*steps, f"found = {replacement}", "if found is not None:", "return found"]


def _match(node: ast.expr, at: str, known: str, bound: set[str]) -> list[str]:
    """Generate the statements to test whether the operand `at`, whose number is `known`, matches; they bind names."""
    if isinstance(node, ast.Starred):
        return [f"{ast.unparse(node.value)} = {at.replace(']', ':]')}"]
    if isinstance(node, ast.Name):
        return _match_name(node.id, at, bound)
    value = _constant(node)
    if value is not None:
        return [f"if {known} is not None and {_equals(known, value)}:"]
    made = f"made_{len(bound)}_{_name(node)}"
    steps = [f"{made} = w.made_by({at}, {_name(node)}_p)", f"if {made} is not None:"]
    for i, x in enumerate(operands_of(node)):
        steps += _match(x, f"{made}.invars[{i}]", "", bound)
    return [*steps, *_match_params(node, f"{made}.params", bound)]


def _match_name(name: str, at: str, bound: set[str]) -> list[str]:
    if name in bound:
        return [f"if {at} is {name}:"]
    bound.add(name)
    steps = [f"{name} = {at}"]
    if name in ("m", "n"):
        steps.append(f"if type({name}) is Literal and not {name}.aval.shape:")
    return [*steps, f"if {name}.linear:"] if "\u0307" in unicodedata.normalize("NFD", name) else steps


def _equals(known: str, value: str) -> str:
    if value == "0":
        return f"not {known}.any()"
    if "0.0" in value:
        return f"{known} == 0 and signbit({known}) == {value.startswith('-')}"
    return f"{known} == {value}"


def _match_params(node: ast.expr, params: str, bound: set[str]) -> list[str]:
    steps: list[str] = []
    for name, written in params_of(node).items():
        is_new = written.isidentifier() and written not in bound
        value = f"{params}[{name!r}]"
        steps.append(f"{written} = {value}" if is_new else f"if {value} == {written}:")
        bound.update([written] if is_new else [])
    return steps


# ---- writing -------------------------------------------------------------------------------------------------


def _written(node: ast.expr) -> str:
    """Generate the expression that writes a replacement."""
    value = _constant(node)
    if value is not None:
        return f"filled(w, {value}, aval)"
    if isinstance(node, ast.Name):
        return node.id
    if not is_application(node):
        assert isinstance(node, ast.Call)
        return f"{_name(node)}({', '.join(['w', 'aval', *map(ast.unparse, node.args)])})"
    params = [f"{name}={written}" for name, written in params_of(node).items()]
    return f"w.write({', '.join([f'{_name(node)}_p', *map(_written, operands_of(node)), *params])})"
