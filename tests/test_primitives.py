"""Every primitive, by its rows in tests/samples: rules, value, types, programs, vmap.

Functions of primitives are computed as whole programs, each checked by the type checker first. Their derivatives are
tested in tests/test_derivatives.py.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

from tapeless.interpreters import jvp, transpose, vmap
from tapeless.lowering import dispatch, emit
from tapeless.tracer import core, dtypes
from tapeless.tracer.check import check
from tapeless.tracer.extended_dtypes import KEY
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import aval_of
from tests.fuzzing import oracle
from tests.fuzzing.oracle_agreement import assert_agree
from tests.samples import FAMILIES, SAMPLES
from tests.samples.sample import RECORD, Sample, keys, numpys, ours

ELEMENTWISE = {row.primitive for name in ("elementwise", "special") for row in FAMILIES[name]}
# Roundings of the narrow types, a few of them in a row.
TOLERANCE = {"float16": 1e-2, "bfloat16": 5e-2, "float32": 1e-5, "complex64": 1e-5}


def over(rows: Sequence[Sample]) -> Any:
    """A test for each of the rows."""
    return pytest.mark.parametrize("row", rows, ids=str)


def rows_by_primitive() -> dict[str, list[Sample]]:
    """The rows, by the name of their primitive."""
    found: dict[str, list[Sample]] = {}
    for row in SAMPLES:
        found.setdefault(row.primitive.name, []).append(row)
    return found


def is_inexact(x: Any) -> bool:
    """Whether a value has tangents."""
    return dtypes.is_inexact(aval_of(ours(x)).dtype)


def differentiable_at(row: Sample) -> list[int]:
    """Positions of the operands that the primitive has a derivative by."""
    found = range(len(row.args)) if row.differentiable is None else row.differentiable
    return [k for k in found if is_inexact(row.args[k])]


# ---- coverage ------------------------------------------------------------------------------------------------


def test_every_primitive_has_a_row():
    covered = {row.primitive for row in SAMPLES}
    assert [p.name for p in core.all_primitives() if p not in covered] == []


def test_every_primitive_has_every_rule():
    for table in (jvp.rules, emit.rules):
        assert [p.name for p in core.all_primitives() if p not in table] == []
    assert [p.name for p in jvp.structurally_linear if p not in transpose.rules] == []
    with_operands = {row.primitive for row in SAMPLES if row.args}  # without any, there is nothing to map
    assert sorted(p.name for p in with_operands if p not in vmap.rules) == []


# ---- value ---------------------------------------------------------------------------------------------------


@over([rows[0] for rows in rows_by_primitive().values()])
def test_value(row: Sample):
    """Computed by itself; all rows of a primitive are computed by one program below."""
    outs = bind(row, row.args)
    assert_types(row, row.args, outs)
    assert_close(outs, expected(row, row.args), row.rtol)


class Use(NamedTuple):
    """A row with operands that it is asked for, and what NumPy computes of them."""

    row: Sample
    args: Sequence[Any]
    reference: tuple[Any, ...]
    rtol: float


def uses(row: Sample) -> Iterator[Use]:
    """A row as it is, in each of its dtypes, and if it is elementwise, of no elements and of rank zero."""
    yield Use(row, row.args, expected(row, row.args), row.rtol)
    for name in row.dtypes:
        args = converted(row.args, dtypes.canonical(name))
        known = [wide(x) if name in TOLERANCE else x for x in args]
        yield Use(row, args, expected(row, known), max(row.rtol, TOLERANCE.get(name, 0.0)))
    if row.primitive in ELEMENTWISE:
        for args in ([x[:0] if np.ndim(x) else x for x in row.args], [_first(x) for x in row.args]):
            yield Use(row, args, expected(row, args), row.rtol)


def _first(x: Any) -> Any:
    """The first element, as an array of rank zero."""
    return np.asarray(x).reshape(-1)[:1].reshape(())


@pytest.mark.parametrize("rows", rows_by_primitive().values(), ids=rows_by_primitive())
def test_program(rows: Sequence[Sample]):
    """One program of all uses of a primitive, against NumPy and against the oracle, in exact runs too."""
    asked = [use for row in rows for use in uses(row)]

    def f(*xs: Any) -> list[Any]:
        given = iter(xs)
        return [y for use in asked for y in bind(use.row, [next(given) for _ in use.args])]

    args = [ours(x) for use in asked for x in use.args]
    jaxpr, consts = trace_to_jaxpr(f, [aval_of(x) for x in args])
    outs = dispatch.run(check(jaxpr), [*consts, *args])
    found = iter(outs)
    for use in asked:
        values = [next(found) for _ in use.reference]
        assert_types(use.row, use.args, values)
        assert_close(values, use.reference, use.rtol)
    for exact in (False, True):
        assert_agree(jaxpr, list(map(numpys, outs)), oracle.evaluate(jaxpr, [*consts, *args], exact=exact))


@pytest.mark.parametrize(("row", "case"), [(r, i) for r in SAMPLES for i in range(len(r.bad))], ids=lambda x: str(x))
def test_constraints(row: Sample, case: int):
    args, params, error = row.bad[case]
    with pytest.raises(error) as raised:
        bind(row, args, params)
    text = str(raised.value)
    shapes = [np.shape(x)[row.axis is not None :] for x in args]  # across an axis, those of one example
    assert not shapes or any(shape_is_named(shape, text) for shape in shapes), (
        f"none of the shapes {shapes} is in: {text}"
    )


def without_keys() -> list[Sample]:
    """One row for each primitive that keys are refused by."""
    return list({row.primitive: row for row in SAMPLES if row.args and not row.primitive.takes_keys}.values())


@over(without_keys())
def test_keys_are_refused(row: Sample):
    """By name, before anything else is said of them."""
    avals = [aval_of(x) for x in row.args]
    for k, aval in enumerate(avals):
        given = (*avals[:k], aval.update(dtype=KEY, weak_type=False), *avals[k + 1 :])
        with pytest.raises(TypeError) as raised:
            row.primitive.type(given, dict(row.params))
        assert str(raised.value).startswith(f"{row.primitive} is not defined for keys of random numbers: ")
        assert "key<fry>[" in str(raised.value)


# ---- vmap ----------------------------------------------------------------------------------------------------


# Their kernels are long to compile, and there are as many ways as operands, and three.
BY_OPERATION = {row.primitive for name in ("special", "gamma_functions") for row in FAMILIES[name] if len(row.args) > 1}


@pytest.mark.parametrize("name", [name for name, rows in rows_by_primitive().items() if any(r.args for r in rows)])
def test_vmap(name: str):
    """One program of all rows of a primitive and all ways to map their operands, against a loop.

    Those `BY_OPERATION` are computed one operation after another: all ways need the same kernel.
    """
    rows = [row for row in rows_by_primitive()[name] if row.args]
    asked = [Mapped(row, case) for k, row in enumerate(rows) for case in mappings(len(row.args), turn=max(0, k - 7))]

    def f(*xs: Any) -> list[Any]:
        given = iter(xs)
        return [y for way in asked for y in way.computed([next(given) for _ in way.case])]

    args = [x for way in asked for x in way.args()]
    found = iter([numpys(y) for y in f(*args)] if asked[0].row.primitive in BY_OPERATION else compute(f, *args))
    for way in asked:
        wanted = way.looped()
        values = [next(found) for _ in wanted]
        assert [(x.shape, x.dtype) for x in values] == [(y.shape, y.dtype) for y in wanted]
        assert_close(values, wanted, way.row.rtol)


class Mapped(NamedTuple):
    """A row with two examples of its operands, and where each has the axis of examples: None for the first of them."""

    row: Sample
    case: Sequence[int | None]

    def args(self) -> list[Any]:
        """The operands, examples along the mapped axes."""
        both = [(x, another(x)) for x in map(numpys, self.row.args)]
        return [x if d is None else np.stack([x, y], axis=d) for d, (x, y) in zip(self.case, both)]

    def computed(self, xs: Sequence[Any]) -> Sequence[Any]:
        """The primitive, mapped."""
        dims = [np.ndim(x) if d == -1 else d for d, x in zip(self.case, self.row.args)]
        return vmap.vmap_to_front(applied(self.row), xs, dims, 2)

    def looped(self) -> list[Any]:
        """What the primitive gives for both examples, one after the other."""
        args = list(map(numpys, self.row.args))
        second = [x if d is None else another(x) for d, x in zip(self.case, args)]
        each = zip(*[bind(self.row, xs) for xs in (args, second)])
        return [np.stack([numpys(x), numpys(y)]) for x, y in each]


def mappings(n: int, turn: int) -> list[tuple[int | None, ...]]:
    """Where the mapped axes of `n` operands are: first in all, last in all, here and there, in one alone.

    One of these by turns, unless `turn` is 0: the first rows of a primitive are mapped in all ways.
    """
    alone = [tuple(0 if i == k else None for i in range(n)) for k in range(n)] if n > 1 else []
    mixed = [tuple(-(i % 2) for i in range(n))] if n > 1 else []
    ways = [(0,) * n, (-1,) * n, *mixed, *alone]
    return [ways[turn % len(ways)]] if turn else ways


def another(x: Any) -> Any:
    """A second example of an operand, as legal as the first: its elements in another order, half of a lone one."""
    if x.size > 1:
        return np.flip(x)
    if x.dtype == RECORD:
        return np.asarray(keys(*x.shape, seed=9))
    return ~x if x.dtype == bool else x // 2 if dtypes.is_integer(x.dtype) else (x / 2).astype(x.dtype)


# ---- helpers -------------------------------------------------------------------------------------------------


def bind(row: Sample, args: Sequence[Any], params: Any = None) -> Sequence[Any]:
    """The primitive applied; one that speaks across an axis, to all examples along the first axis of its operands."""
    args, given = [ours(x) for x in args], dict(row.params if params is None else params)
    if row.axis is None:
        return row.primitive.bind(*args, **given)
    name, size = row.axis
    return vmap.vmap_to_front(
        lambda *xs: row.primitive.bind(*xs, **given), args, [0] * len(args), size, row.primitive, name
    )


def applied(row: Sample, args: Sequence[Any] = (), open_at: Sequence[int] | None = None) -> Callable[..., Any]:
    """The primitive as a function of the operands at `open_at`, the others being those of `args`; of all by default."""

    def f(*xs: Any) -> Sequence[Any]:
        if open_at is None:
            return bind(row, xs)
        whole = list(args)
        for k, x in zip(open_at, xs, strict=True):
            whole[k] = x
        return bind(row, whole)

    return f


def differentiable_part(row: Sample) -> tuple[Callable[..., Any], list[Any]]:
    """The primitive as a function of the operands that it has a derivative by, and those, in double precision."""
    args, positions = [widened(x) for x in row.args], differentiable_at(row)
    return applied(row, args, positions), [args[k] for k in positions]


def compute(f: Callable[..., Any], *args: Any) -> list[Any]:
    """What `f` computes, as one checked program."""
    args = tuple(map(ours, args))
    jaxpr, consts = trace_to_jaxpr(f, [aval_of(x) for x in args])
    return [numpys(x) for x in dispatch.run(check(jaxpr), [*consts, *args])]


def expected(row: Sample, args: Sequence[Any]) -> tuple[Any, ...]:
    """What the reference computes."""
    found = row.reference(*args, **row.params)
    return tuple(found) if isinstance(found, (tuple, list)) else (found,)


def converted(args: Sequence[Any], dtype: Any) -> list[Any]:
    """Operands in another dtype: the inexact ones, or all if there are none. Complex ones get an imaginary part."""
    some = any(dtypes.is_inexact(aval_of(x).dtype) for x in args)
    turn = 1 + 0.25j if dtypes.is_complex(dtype) else 1
    return [
        (np.asarray(x) * turn).astype(dtype) if not some or dtypes.is_inexact(aval_of(x).dtype) else x for x in args
    ]


def widened(x: Any) -> Any:
    """A floating point operand in double precision."""
    dtype = aval_of(x).dtype
    if not dtypes.is_inexact(dtype):
        return x
    return np.asarray(x).astype(np.complex128 if dtypes.is_complex(dtype) else np.float64)


def wide(x: Any) -> Any:
    """A value of a type that NumPy does not know well in one that it does."""
    dtype = aval_of(x).dtype
    return np.asarray(x).astype(np.float32) if dtypes.is_float(dtype) and dtypes.bits_of(dtype) < 32 else x


def assert_types(row: Sample, args: Sequence[Any], outs: Sequence[Any]) -> None:
    """What was computed has the types that the typing rule says."""
    size = () if row.axis is None else (row.axis[1],)
    avals = [aval_of(ours(x)) for x in args]
    typed = row.primitive.type(tuple(a.update(shape=a.shape[len(size) :]) for a in avals), dict(row.params))
    assert [((*size, *x.shape), x.dtype) for x in typed] == [(x.shape, x.dtype) for x in outs]


def assert_close(outs: Sequence[Any], reference: Sequence[Any], rtol: float) -> None:
    """Results equal the reference: exactly if they are not floating point."""
    for x, y in zip(outs, reference, strict=True):
        got, want = numpys(x), np.asarray(y)
        if RECORD in (got.dtype, want.dtype):
            np.testing.assert_array_equal(got, want)
            continue
        got, want = wide(got), wide(want)
        if not dtypes.is_inexact(got.dtype):
            np.testing.assert_array_equal(got, want)
        else:
            scale = np.max(np.abs(want[np.isfinite(want)]), initial=0)
            np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * scale)


def shape_is_named(shape: tuple[int, ...], text: str) -> bool:
    """Whether an error message shows a shape, as `float32[3,2]` or `(3, 2)`."""
    return f"[{','.join(map(str, shape))}]" in text or str(shape) in text
