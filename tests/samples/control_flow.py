"""Rows of branches and loops. Their params hold programs, which are traced when this is imported.

Bodies are written with operators alone, so that the reference runs the same ones on NumPy arrays, step by step.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapeless.tracer.primitives import control_flow as c
from tapeless.tracer.primitives.elementwise import cos, sin
from tapeless.tracer.primitives.indexing import dynamic_index_in_dim, dynamic_update_index_in_dim
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import ShapedArray, aval_of
from tests.samples.sample import Sample, f32


def f64(*shape: int, seed: int = 0) -> Any:
    """Random float64, in which derivatives are checked."""
    return np.asarray(f32(*shape, seed=seed), np.float64)


def program(f: Callable[..., Any], avals: Sequence[ShapedArray]) -> Any:
    return trace_to_jaxpr(f, avals)[0]


def types(xs: Sequence[Any]) -> list[ShapedArray]:
    return [aval_of(np.asarray(x)) for x in xs]


# ---- branches ------------------------------------------------------------------------------------------------


def _mixed(w: Any, x: Any, k: Any) -> Any:
    return w * x * x, k + 1


def _other(w: Any, x: Any, k: Any) -> Any:
    return x / (2 + w * w), k


def _third(w: Any, x: Any, k: Any) -> Any:
    return w + x, 2 * k


def cond_row(label: str, index: Any, functions: Sequence[Any], operands: Sequence[Any], **more: Any) -> Sample:
    branches = tuple(program(f, types(operands)) for f in functions)

    def reference(index: Any, *xs: Any, branches: Any) -> Any:
        return functions[np.clip(int(index), 0, len(functions) - 1)](*xs)

    return Sample(c.cond_p, (np.asarray(index), *operands), reference, {"branches": branches}, label=label, **more)


def _nested(w: Any, x: Any, k: Any) -> Any:
    inner = [program(f, types((_W, _X, _K))) for f in (_mixed, _third)]
    return c.cond(k > 2, [w, x * x, k], inner)


def _nested_reference(w: Any, x: Any, k: Any) -> Any:
    return (_third if k > 2 else _mixed)(w, x * x, k)


_W, _X, _K, _ZERO = f64(3), f64(3, seed=1), np.int32(5), np.int32(0)
_OPERANDS = (_W, _X, _K)
_TWO = tuple(program(f, types(_OPERANDS)) for f in (_mixed, _other))
_BRANCHES = [
    cond_row("first", np.int32(0), (_mixed, _other, _third), _OPERANDS),
    cond_row("last", np.int32(2), (_mixed, _other, _third), _OPERANDS),
    cond_row("too_large", np.int32(7), (_mixed, _other, _third), _OPERANDS),
    cond_row("negative", np.int32(-3), (_mixed, _other, _third), _OPERANDS),
    cond_row("only", np.int32(1), (_mixed,), _OPERANDS),
    cond_row(
        "true",
        np.True_,
        (_mixed, _other),
        _OPERANDS,
        bad=(
            ((np.True_, f64(4), f64(4), _K), {"branches": _TWO}, TypeError),
            ((np.zeros(2, bool), *_OPERANDS), {"branches": _TWO}, TypeError),
            ((np.float64(1), *_OPERANDS), {"branches": _TWO}, TypeError),
            ((np.True_, *_OPERANDS), {"branches": _TWO[:1]}, TypeError),
            ((np.True_, _X), {"branches": (program(lambda x: [x], types([_X])), _TWO[0])}, TypeError),
        ),
    ),
    cond_row("false", np.False_, (_mixed, _other), _OPERANDS),
    cond_row("linear", np.True_, (lambda x, y: [x - y], lambda x, y: [3 * x]), (_W, _X), linear_in=(1, 2)),
    cond_row("constant", np.False_, (lambda x: [x * x], lambda x: [0 * x + 2]), (_X,)),
    cond_row("forwarded", np.True_, (lambda x, y: [x, y], lambda x, y: [x, x]), (_W, _X), linear_in=(1, 2)),
]
_CHOSEN = program(_nested, types(_OPERANDS))
_BRANCHES += [
    Sample(
        c.cond_p,
        (np.asarray(True), *_OPERANDS),
        lambda index, *xs, branches: _nested_reference(*xs) if index else _other(*xs),
        {"branches": (_TWO[1], _CHOSEN)},
        label="nested",
    )
]

# ---- while ---------------------------------------------------------------------------------------------------


def while_row(
    label: str,
    condition: Any,
    body: Any,
    consts: tuple[Sequence[Any], Sequence[Any]],
    carry: Sequence[Any],
    **more: Any,
) -> Sample:
    """Reverse mode has no way through these: they are not tested with derivatives here."""
    test = program(lambda *xs: [condition(*xs)], types([*consts[0], *carry]))
    step = program(body, types([*consts[1], *carry]))

    def reference(*args: Any, n_condition: int, n_body: int, **_: Any) -> Any:
        before = n_condition + n_body
        state = tuple(np.asarray(x) for x in args[before:])
        while condition(*args[:n_condition], *state):
            state = tuple(body(*args[n_condition:before], *state))
        return state

    params = {"condition": test, "body": step, "n_condition": len(consts[0]), "n_body": len(consts[1])}
    args = tuple(map(np.asarray, (*consts[0], *consts[1], *carry)))
    return Sample(c.while_p, args, reference, params, differentiable=(), label=label, **more)


def _while_params(condition: Any, body: Any, avals: Sequence[ShapedArray]) -> dict[str, Any]:
    return {"condition": program(condition, avals), "body": program(body, avals), "n_condition": 0, "n_body": 0}


def _counts(n: Any, i: Any, x: Any) -> Any:
    return i < n


def _scaled(w: Any, i: Any, x: Any) -> Any:
    return i + 1, x * w


_CARRY = (_ZERO, _X)
_COUNTER = {
    "condition": program(lambda n, i, x: [_counts(n, i, x)], types([_ZERO, *_CARRY])),
    "body": program(_scaled, types([_W, *_CARRY])),
    "n_condition": 1,
    "n_body": 1,
}
_NO_TEST = _while_params(lambda x: [x], lambda x: [x], types([_X]))
_NO_CARRY = _while_params(lambda x: [np.True_], lambda x: [x[:2]], types([_X]))
_WHILES = [
    while_row(
        "counter",
        _counts,
        _scaled,
        ([np.int32(5)], [_W]),
        _CARRY,
        bad=(
            ((np.int32(5), f64(4), *_CARRY), _COUNTER, TypeError),
            ((np.float32(5), _W, *_CARRY), _COUNTER, TypeError),
            ((_X,), _NO_TEST, TypeError),
            ((_X,), _NO_CARRY, TypeError),
        ),
    ),
    while_row("none", lambda i: i < 0, lambda i: [i + 1], ([], []), [np.int32(3)]),
    while_row("value", lambda x: x < 100, lambda x: [3 * x], ([], []), [np.float32(2.5)]),
    while_row("boolean", lambda go, i: go, lambda go, i: (go & (i < 6), i + 2), ([], []), [np.True_, np.int8(1)]),
    while_row("constant", lambda i, x: i > 0, lambda i, x: (i - 1, x), ([], []), [np.int32(4), _X]),
]

# ---- scan ----------------------------------------------------------------------------------------------------


def scan_row(
    label: str,
    body: Any,
    consts: Sequence[Any],
    carry: Sequence[Any],
    xs: Sequence[Any],
    *,
    length: int,
    reverse: bool = False,
    unroll: int = 1,
    on_numpy: Any = None,
    **more: Any,
) -> Sample:
    """`on_numpy`: the body for the reference, where it is another."""
    elements = [x.update(shape=x.shape[1:]) for x in types(xs)]
    jaxpr = program(body, [*types([*consts, *carry]), *elements])
    step = on_numpy or body

    def reference(*args: Any, n_consts: int, n_carry: int, length: int, reverse: bool, **_: Any) -> Any:
        before = n_consts + n_carry
        state, rows = tuple(args[n_consts:before]), [()] * length
        for k in range(length)[:: -1 if reverse else 1]:
            outs = step(*args[:n_consts], *state, *[x[k] for x in args[before:]])
            state, rows[k] = tuple(outs[:n_carry]), tuple(outs[n_carry:])
        avals = jaxpr.out_avals[n_carry:]
        return *state, *[np.asarray([ys[j] for ys in rows]).reshape(length, *a.shape) for j, a in enumerate(avals)]

    params = {
        "jaxpr": jaxpr,
        "n_consts": len(consts),
        "n_carry": len(carry),
        "length": length,
        "reverse": reverse,
        "unroll": unroll,
    }
    return Sample(c.scan_p, tuple(map(np.asarray, (*consts, *carry, *xs))), reference, params, label=label, **more)


def _cell(w: Any, h: Any, x: Any) -> Any:
    new = w * h + x * h / (1 + x * x)
    return new, new * x


def _counting(i: Any, h: Any, x: Any) -> Any:
    return i + 1, h + x * i, i, 2 * h


def _switching(on: Any, h: Any, x: Any) -> Any:
    return ~on, h * x + on, on


def _pair(a: Any, h: Any, g: Any, x: Any, y: Any) -> Any:
    return a * g + x, h * y, h - g


def _writing(buffer: Any, i: Any, x: Any) -> Any:
    last = dynamic_index_in_dim(buffer, i, keepdims=False)
    return dynamic_update_index_in_dim(buffer, last * x + 1, i + 1, 0), i + 1


def _writing_reference(buffer: Any, i: Any, x: Any) -> Any:
    buffer = buffer.copy()
    buffer[i + 1] = buffer[i] * x + 1
    return buffer, i + 1


def _waves(w: Any, h: Any, x: Any) -> Any:
    return sin(w * h) + x, cos(h)


def _waves_reference(w: Any, h: Any, x: Any) -> Any:
    return np.sin(w * h) + x, np.cos(h)


_CELL = program(_cell, types((_W, _W, _W)))


def _inner(w: Any, h: Any, x: Any) -> Any:
    end, ys = c.scan(_CELL, [w], [h], [x], length=2)
    return end, ys


def _inner_reference(w: Any, h: Any, x: Any) -> Any:
    first, y = _cell(w, h, x[0])
    second, z = _cell(w, first, x[1])
    return second, np.stack([y, z])


def _branching(i: Any, h: Any, x: Any) -> Any:
    return i + 1, c.cond(
        i > 1, [h, x], [program(f, types((_X, _X))) for f in (lambda h, x: [h * x], lambda h, x: [h])]
    )[0]


def _branching_reference(i: Any, h: Any, x: Any) -> Any:
    return i + 1, h if i > 1 else h * x


_H, _XS = f64(3, seed=2), f64(4, 3, seed=3)
_PARAMS = {"jaxpr": _CELL, "n_consts": 1, "n_carry": 1, "length": 4, "reverse": False, "unroll": 1}
_SCANS = [
    scan_row(
        "cell",
        _cell,
        [_W],
        [_H],
        [_XS],
        length=4,
        bad=(
            ((_W, f64(2), _XS), _PARAMS, TypeError),
            ((_W, _H, f64(5, 3)), _PARAMS, TypeError),
            ((_W, _H, np.float64(1.0)), _PARAMS, TypeError),
            ((_W, _H, _XS), {**_PARAMS, "jaxpr": program(lambda w, h, x: [h[:2]], types((_W, _W, _W)))}, TypeError),
        ),
    ),
    scan_row("reverse", _cell, [_W], [_H], [_XS], length=4, reverse=True),
    scan_row("length_0", _cell, [_W], [_H], [_XS[:0]], length=0),
    scan_row("length_1", _cell, [_W], [_H], [_XS[:1]], length=1),
    scan_row("unroll", _cell, [_W], [_H], [f64(5, 3)], length=5, unroll=2),
    scan_row("unroll_reverse", _cell, [_W], [_H], [f64(5, 3)], length=5, unroll=2, reverse=True),
    scan_row("written_out", _cell, [_W], [_H], [_XS], length=4, unroll=4, reverse=True),
    scan_row("counter", _counting, [], [_ZERO, _H], [_XS], length=4),
    scan_row("boolean", _switching, [], [np.False_, _H], [_XS], length=4),
    scan_row("two", _pair, [_W], [_H, _X], [_XS, f64(4, 3, seed=4)], length=4, reverse=True),
    scan_row("integers", lambda n, k: (n + k, n * k), [], [_ZERO], [np.arange(4, dtype=np.int32)], length=4),
    scan_row("no_carry", lambda w, x: [w * x * x], [_W], [], [_XS], length=4),
    scan_row("no_sequence", lambda w, h: (w * h, h * h), [_W], [_H], [], length=3),
    scan_row("linear", lambda h, x: (2 * h + x, h - x), [], [_H], [_XS], length=4, linear_in=(0, 1)),
    scan_row("invariant", lambda w, h, k, x: (h * w + k * x, k, k), [_W], [_H, _X], [_XS], length=4),
    scan_row("buffer", _writing, [], [f64(5), _ZERO], [f64(4, seed=5)], length=4, on_numpy=_writing_reference),
    scan_row("waves", _waves, [_W], [_H], [_XS], length=4, on_numpy=_waves_reference),
    scan_row("nested", _inner, [_W], [_H], [f64(3, 2, 3)], length=3, on_numpy=_inner_reference),
    scan_row("branch", _branching, [], [_ZERO, _H], [_XS], length=4, on_numpy=_branching_reference),
]

ROWS = [*_BRANCHES, *_WHILES, *_SCANS]
