"""How elementwise operations run: most are one StableHLO operation of the same or a similar name."""

from collections.abc import Callable
from typing import Any

from tapeless.lowering import emit
from tapeless.lowering.hlo import Function, Value
from tapeless.tracer.primitives import elementwise as e


def _operation(name: str) -> Callable[..., Any]:
    """The rule for what StableHLO (or chlo) has: operands of rank 0 are broadcast first."""

    def rule(f: Function, outs: Any, *operands: Value) -> Any:
        shape = outs[0].shape
        return (f.op(name, [f.broadcast(x, shape) for x in operands], outs[0]),)

    return rule


def _comparison(direction: str) -> Callable[..., Any]:
    def rule(f: Function, outs: Any, x: Value, y: Value) -> Any:
        shape = outs[0].shape
        return (f.compare(f.broadcast(x, shape), f.broadcast(y, shape), direction),)

    return rule


_OPERATIONS = {
    e.neg_p: "negate",
    e.sign_p: "sign",
    e.floor_p: "floor",
    e.exp_p: "exponential",
    e.log_p: "log",
    e.sin_p: "sine",
    e.cos_p: "cosine",
    e.tanh_p: "tanh",
    e.sqrt_p: "sqrt",
    e.add_p: "add",
    e.sub_p: "subtract",
    e.mul_p: "multiply",
    e.div_p: "divide",
}
for _primitive, _name in _OPERATIONS.items():
    emit.rules[_primitive] = _operation(_name)
emit.rules[e.eq_p] = _comparison("EQ")
emit.rules[e.lt_p] = _comparison("LT")


def _integer_pow(f: Function, outs: Any, x: Value, *, y: int) -> Any:
    """By repeated squaring, so that x**2 is x*x exactly."""
    aval = outs[0]
    result, square, n = None, x, abs(y)
    while n:
        if n % 2:
            result = square if result is None else f.op("multiply", [result, square], aval)
        n //= 2
        square = f.op("multiply", [square, square], aval) if n else square
    one = f.constant(1, aval)
    result = one if result is None else result
    return (f.op("divide", [one, result], aval) if y < 0 else result,)


emit.rules[e.integer_pow_p] = _integer_pow


def _select_n(f: Function, outs: Any, which: Value, *cases: Value) -> Any:
    shape = outs[0].shape
    choices = [f.broadcast(x, shape) for x in cases]
    if len(cases) == 2 and which.aval.dtype == bool:
        return (f.op("select", [which, choices[1], choices[0]], outs[0]),)
    out = choices[-1]
    for k in range(len(choices) - 2, -1, -1):
        before = f.compare(which, f.constant(k + 1, which.aval), "LT")
        out = f.op("select", [before, choices[k], out], outs[0])
    return (out,)


emit.rules[e.select_n_p] = _select_n


def _convert(f: Function, outs: Any, x: Value, *, dtype: Any, weak_type: bool) -> Any:
    if x.aval.dtype.kind == "c" and dtype.kind != "c":
        x = f.op("real", [x], x.aval.update(dtype=x.aval.dtype.type(0).real.dtype))
    if dtype == bool:
        return (f.compare(x, f.constant(0, x.aval), "NE"),)
    return (f.op("convert", [x], outs[0]),)


emit.rules[e.convert_element_type_p] = _convert
