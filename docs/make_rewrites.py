"""Write docs/rewrites.md, every rewrite and pass with an example before and after: `python docs/make_rewrites.py`.

tests/interpreters/simplifications/test_rewrites.py checks that the page is what this gives, and tries every rewrite.
"""

import ast
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.interpreters import simplify, writer
from tapeless.interpreters.simplifications import if_conversion, matchers, pass_order
from tapeless.interpreters.simplifications.fusion import affine_indexing
from tapeless.interpreters.simplifications.matchers import Licence, Rewrite
from tapeless.interpreters.simplifications.rewrites import BROADCASTS, REWRITES
from tapeless.tracer.jaxpr import Equation, Jaxpr
from tapeless.tracer.linear_vars import mark_linear

PAGE = Path(__file__).parent / "rewrites.md"
HEAD = """# Rewrites

This page lists every rewrite and pass of [the simplifier](simplifier.md), each with an example before and after.
`python docs/make_rewrites.py` writes it from the table in `interpreters/simplifications/rewrites.py` and the list of
passes.

A rewrite is written `pattern -> replacement if condition  # reason; where it holds`. `x` and `y` are operands, `ẋ` is
a linear operand, `m` and `n` are numbers, params are in brackets. A number also matches an array with this value
everywhere, and `0` matches a zero of either sign. Linear inputs have a dot. A rewrite is not applied if it would
change the type of a result, such as its dtype, or make a weak type strong.
"""


class Example(NamedTuple):
    """Shapes of operands, [2,3] if none is given, and values of params, by the names that a row gives them.

    dtypes: of operands that have another than the rest. only: the dtype of the rest, if the row needs one. numbers:
      names of operands that are one number everywhere. made: operands that are no inputs, but made by functions.
    """

    shapes: Mapping[str, tuple[int, ...]] = {}
    params: Mapping[str, Any] = {}
    dtypes: Mapping[str, str] = {}
    only: str | None = None
    numbers: str = ""
    made: Mapping[str, Callable[[], Any]] = {}


def _params(**params: Any) -> Example:
    return Example(params=params)


def _twos() -> Any:
    return tnp.full((2, 3), np.float32(2), "float32")


DOT = {
    "dimension_numbers": (((1,), (0,)), ((), ())),
    "precision": (lax.Precision.DEFAULT,) * 2,
    "preferred_element_type": None,
}
EXAMPLES: dict[str, Example] = {
    "convert_element_type[d, k](x) -> x": Example(params={"d": np.dtype("float32"), "k": False}, only="float32"),
    "convert_element_type[d, k](n) -> in": Example(params={"d": np.dtype("float64"), "k": False}, only="float32"),
    "convert_element_type[d, k](convert": Example(
        params={"d": np.dtype("float64"), "k": False, "dtype": np.dtype("int32"), "weak_type": False}, only="bool"
    ),
    "select_n(p, *x) -> only": Example(dtypes={"p": "bool"}),
    "select_n(p, *x) -> no": Example(dtypes={"p": "bool"}),
    "select_n(p, *x) -> parts": Example({"x": (5,)}, made={"p": lambda: tnp.arange(5) < 2}),
    "select_n(p, *x) * n": Example(dtypes={"p": "bool"}, only="float32", made={"x": lambda: _twos()}),
    "select_n(p, *x) + select_n(p, *y)": Example(
        dtypes={"p": "bool"}, only="float32", made={"x": lambda: _twos(), "y": lambda: _twos()}
    ),
    "iota": Example(params={"t": np.dtype("float32"), "s": (1, 3), "d": 0}, only="float32"),
    "broadcast_in_dim[s, d](x)": _params(s=(2, 3), d=(0, 1)),
    "broadcast_in_dim[s, d](broadcast": _params(s=(5, 2, 4, 3), d=(1, 2, 3), t=(2, 4, 3), e=(0, 2)),
    "broadcast_in_dim[s, d](reshape": _params(s=(2, 4, 3), d=(0, 1, 2), t=(2, 1, 3)),
    "reshape[s](x)": _params(s=(2, 3)),
    "reshape[s](reshape": _params(s=(6,), shape=(3, 2)),
    "reshape[s](broadcast_in_dim(x))": Example({"x": ()}, {"s": (6,), "shape": (2, 3), "dims": ()}),
    "reshape[s](broadcast_in_dim[t, d]": _params(s=(4, 1, 2, 3), t=(4, 2, 3), d=(1, 2)),
    "transpose[p](x)": _params(p=(0, 1)),
    "transpose[p](transpose": Example({"x": (2, 3, 4)}, {"p": (1, 2, 0), "q": (1, 2, 0)}),
    "transpose[p](broadcast": _params(p=(2, 0, 1), s=(2, 4, 3), d=(0, 2)),
    "rev[d](x)": Example({"x": (1, 3)}, {"d": (0,)}),
    "rev[d](rev": _params(d=(0, 1), e=(0,)),
    "concatenate": _params(dimension=0),
    "pad[c](x, v) -> x": Example({"v": ()}, {"c": ((0, 0, 0), (0, 0, 0))}),
    "pad[c](x, v) -> slice": Example({"v": ()}, {"c": ((0, -1, 0), (-1, 0, 0))}),
    "pad[c](pad": Example({"u": (), "v": ()}, {"c": ((1, 0, 0), (0, 2, 0)), "d": ((0, 1, 0), (1, 1, 1))}, numbers="uv"),
    "slice[a, b, c](x)": _params(a=(0, 0), b=(2, 3), c=(1, 1)),
    "slice[a, b, c](slice": Example({"x": (9,)}, {"a": (1,), "b": (4,), "c": (2,), "i": (1,), "j": (9,), "k": (2,)}),
    "split": _params(n=(3,), d=1),
    "reduce_sum[d](x) -> x": _params(d=()),
    "reduce_sum[d](x) -> reshape": Example({"x": (1, 3)}, {"d": (0,)}),
    "reduce_sum[d](broadcast": _params(d=(1,), s=(2, 4, 3), e=(0, 2)),
    "reduce_sum[d](reduce_sum": Example({"x": (2, 3, 4)}, {"d": (0,), "e": (1,)}),
    "dynamic_slice": _params(slice_sizes=(2, 2)),
    "dot_general(ẋ, 0)": Example({"0": (3, 4)}, DOT),
    "dot_general(0, ẋ)": Example({"0": (2, 3), "ẋ": (3, 4)}, DOT),
    "dot_general[c, p, t](x, y) -> outer": Example(
        {"y": (2,)}, {"c": (((), ()), ((), ())), "p": (lax.Precision.DEFAULT,) * 2, "t": None}, numbers="y"
    ),
    "dot_general[c, p, t](x, y) -> element": Example(
        {"y": ()}, {"c": (((), ()), ((), ())), "p": (lax.Precision.DEFAULT,) * 2, "t": None}
    ),
}


def example(row: Rewrite) -> Example:
    """Write the example of a row; a row needs none if all operands are alike and there are no params."""
    found = [of for text, of in EXAMPLES.items() if row.text.startswith(text)]
    return found[0] if found else Example()


class Built:
    """The program of a pattern, with operands of a dtype."""

    def __init__(self, row: Rewrite, dtype: str) -> None:
        self.row, self.example = row, example(row)
        self.dtype = self.example.only or dtype
        self.is_zero = row.text.endswith("-> 0") or "no_case" in row.text
        self.names: list[str] = []
        self.jaxpr = self._traced()

    def _traced(self) -> Jaxpr:
        self._collect(self.row.pattern)
        shapes, dtypes = self.example.shapes, self.example.dtypes
        specs = [tl.ShapeDtypeStruct(shapes.get(x, (2, 3)), dtypes.get(x, self.dtype)) for x in self.names]
        linear = self.row.licence is Licence.LINEAR
        if self.is_zero:  # what is zero is linear in nothing, and so no result of a linear program
            specs.append(tl.ShapeDtypeStruct(tl.eval_shape(self._program, *specs).shape, self.dtype))
        closed = tl.make_jaxpr(self._program)(*specs)
        return mark_linear(closed.jaxpr, [linear and name != "p" for name in [*self.names, "rest"][: len(specs)]])

    def _program(self, *xs: Any) -> Any:
        made = {name: make() for name, make in self.example.made.items()}
        value = self._value(self.row.pattern, {**dict(zip(self.names, xs)), **made})
        return value + xs[-1] if len(xs) > len(self.names) else value

    def _collect(self, node: ast.expr) -> None:
        """Collect the names of operands, in order; those that stand for many, being starts or zeros, are literals."""
        if isinstance(node, ast.Starred) and not self._is_literal(node):
            node = node.value
        others = "m", "n", *self.example.numbers, *self.example.made, *self.names
        if isinstance(node, ast.Name) and node.id not in others:
            self.names.append(node.id)
        elif matchers.is_application(node):
            for x in matchers.operands_of(node):
                self._collect(x)

    def _is_literal(self, node: ast.Starred) -> bool:
        return ast.unparse(node) == "*i" or "no_case" in self.row.text

    def root(self) -> Equation:
        """Return the equation that is rewritten."""
        return self.jaxpr.eqns[-2 if self.is_zero else -1]

    def rewritten(self) -> Jaxpr:
        """Return the program after this one row; the same object if the row does not apply."""
        root = self.root()
        whole = writer.rules[root.primitive].apply
        assert isinstance(whole, matchers.Rewrites)
        w = writer.Writer(self.jaxpr)
        for eqn in self.jaxpr.eqns:
            now = w.renamed(eqn)
            found = whole.only(self.row)(w, *now.invars, **now.params) if eqn is root else None
            if found is None or not w.replace(eqn, found):
                w.keep(now)
        return w.finish()

    def _value(self, node: ast.expr, env: dict[str, Any]) -> Any:
        if isinstance(node, ast.Name) and node.id in env:
            return env[node.id]
        if not matchers.is_application(node):
            name = ast.unparse(node)
            shape = self.example.shapes.get(name, ())
            number = np.dtype(self.dtype).type(3 if name.isidentifier() else ast.literal_eval(node))
            return tnp.full(shape, number, self.dtype) if shape else number
        operands = [y for x in matchers.operands_of(node) for y in self._values(x, env)]
        return matchers.primitive_of(node).bind(*operands, **self._params(node))[0]

    def _values(self, node: ast.expr, env: dict[str, Any]) -> Sequence[Any]:
        if not isinstance(node, ast.Starred):
            return [self._value(node, env)]
        if not self._is_literal(node):
            return [env[ast.unparse(node.value)]] * 2
        return (
            [np.int32(0), np.int32(1)]
            if ast.unparse(node) == "*i"
            else [tnp.full((2, 3), z, self.dtype) for z in (0.0, -0.0)]
        )

    def _params(self, node: ast.expr) -> dict[str, Any]:
        """Write params of an application: those in brackets by the row's names for them, else by their own."""
        params = self.example.params
        signature = inspect.signature(matchers.primitive_of(node).typing_rule).parameters
        written = {name: eval(text, dict(params)) for name, text in matchers.params_of(node).items()}
        return written or {name: params[name] for name in signature if name in params}


# ---- what is no row ------------------------------------------------------------------------------------------

F32 = "float32"


def _spec(*shape: int, dtype: str = F32) -> Any:
    return tl.ShapeDtypeStruct(shape, dtype)


def _linear(f: Callable[..., Any], linear: Sequence[bool], *args: Any) -> Jaxpr:
    return mark_linear(tl.make_jaxpr(f)(*args).jaxpr, linear)


def _reversed() -> Jaxpr:
    f = lambda x: lax.scan(lambda s, _: (s + lax.rev(x, (0,)), None), x, None, length=5)[0]  # noqa: E731
    return _linear(f, [True], _spec(9))


def _unread() -> Jaxpr:
    return tl.make_jaxpr(lambda x, y: tl.jit(lambda x, y: tnp.sin(x))(x, y))(_spec(3), _spec(3)).jaxpr


def _written() -> Jaxpr:
    f = lambda p, b, v: lax.select_n(p, b, lax.dynamic_update_slice(b, v, (2,)))  # noqa: E731
    return tl.make_jaxpr(f)(_spec(dtype="bool"), _spec(9), _spec(3)).jaxpr


def _chosen() -> Jaxpr:
    f = lambda m, a, t: lax.select(m, a * t, tnp.zeros(3, F32))  # noqa: E731
    return _linear(f, [False, False, True], _spec(3, dtype="bool"), _spec(3), _spec(3))


PASSES: dict[str, Callable[[], Jaxpr]] = {
    "licm": _reversed,
    "dead_operands": _unread,
    "select_of_update": _written,
    "masks.sink": _chosen,
    "slicing.pushdown": lambda: tl.make_jaxpr(lambda x: tnp.exp(x)[:2])(_spec(100)).jaxpr,
    "fusion.fuse": lambda: tl.make_jaxpr(lambda x, y, z: tnp.outer(x, y) @ z)(*[_spec(9)] * 3).jaxpr,
}


# ---- the page ------------------------------------------------------------------------------------------------


def page() -> str:
    """Write the whole page."""
    return "\n".join([HEAD, *rewrites(), *scheme(), *branches(), *positions(), *passes()])


def rewrites() -> Iterator[str]:
    """Write a section for each primitive."""
    for primitive, rows in REWRITES.items():
        yield f"## {primitive}\n"
        for row in rows:
            dtype = "int32" if row.licence is Licence.INTEGERS else F32
            built = Built(row, dtype)
            yield _shown(str(row).replace("  # ", "\n# "), built.jaxpr, built.rewritten())


def scheme() -> Iterator[str]:
    """Write the rewrite of all elementwise primitives."""

    def f(x: Any) -> Any:
        return tnp.exp(tnp.broadcast_to(x, (4, 3)))

    before = tl.make_jaxpr(f)(_spec(3)).jaxpr
    yield "## Every elementwise primitive f\n"
    yield _shown(str(BROADCASTS).replace("  # ", "\n# "), before, simplify.simplify_program(before))


def branches() -> Iterator[str]:
    """Describe the rule of `cond`, which is code."""

    def f(p: Any, x: Any) -> Any:
        return lax.cond(p, lambda x: 2 * x, lambda x: -x, x)

    before = _linear(f, [False, True], _spec(dtype="bool"), _spec(3))
    yield f"## cond\n\n{_opening(if_conversion)}\n"
    yield _shown("", before, simplify.simplify_program(before))


def positions() -> Iterator[str]:
    """Describe the rule of gathers and scatters, which is code."""

    def f(x: Any) -> Any:
        return tl.vmap(lambda i: x[i] * x[8 - i])(tnp.arange(6))

    def g(x: Any) -> Any:
        return tnp.zeros(9).at[tnp.arange(3) * 2].add(x)

    yield f"## gather, scatter, scatter_add\n\n{_opening(affine_indexing)}\n"
    for before in (tl.make_jaxpr(f)(_spec(9)).jaxpr, tl.make_jaxpr(g)(_spec(3)).jaxpr):
        yield _shown("", before, simplify.simplify_program(before))


def passes() -> Iterator[str]:
    """Write a section for each pass."""
    yield "# Passes\n"
    for run in pass_order.programs:
        name = simplify.name_of(run)
        before = PASSES[name]()
        yield f"## {name}\n\n{_opening(sys.modules[run.__module__])}\n"
        yield _shown("", before, run(before))


def _opening(module: Any) -> str:
    return inspect.cleandoc(module.__doc__ or "").split("\n\n")[0]


def _shown(title: str, before: Jaxpr, after: Jaxpr) -> str:
    lines = [*([title, ""] if title else []), str(before), "", str(after)]
    return "\n".join(["```text", *lines, "```", ""])


if __name__ == "__main__":
    PAGE.write_text(page())
