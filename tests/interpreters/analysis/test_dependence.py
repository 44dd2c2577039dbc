"""Patterns of Jacobians against what programs compute: never an entry too few; none too many where no value decides."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.index.compressed_products import TangentProgram, tangent_program
from tapeless.interpreters import vmap as batching
from tapeless.tracer import dtypes, pytree
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import aval_of
from tests.fuzzing import oracle
from tests.fuzzing.builder import build
from tests.fuzzing.families import TABLE
from tests.fuzzing.modes import Case
from tests.fuzzing.profiles import PROFILES
from tests.samples.sample import ours
from tests.test_primitives import differentiable_part, rows_by_primitive

rng = np.random.default_rng(0)


def program_of(f: Callable[..., Any], args: Sequence[Any]) -> TangentProgram:
    return tangent_program("sparse.jacobian", f, args, pytree.structure(tuple(args)), f)


def found(program: TangentProgram) -> Any:
    p = program.pattern("sparse.jacobian")
    matrix = np.zeros(p.shape, bool)
    matrix[p.rows, p.columns] = True
    assert matrix.sum() == len(p.rows)
    return matrix


def computed(program: TangentProgram, args: Sequence[Any]) -> Any:
    """The Jacobian by the oracle, all columns at once: what does not depend on tangents is computed once."""
    total = sum(t.size for t in program.ins)
    if not total:
        return np.zeros((sum(t.size for t in program.outs), 0))
    parts = np.split(np.eye(total), np.cumsum([t.size for t in program.ins])[:-1])
    basis = [part.reshape(*t.shape, total).astype(t.dtype) for part, t in zip(parts, program.ins)]
    avals = [aval_of(x).update(weak_type=t.weak_type) for x, t in zip(basis, program.ins)]
    pushed = lambda *ts: batching.vmap(lambda *each: program.push(args, each), ts, [x.ndim - 1 for x in ts], total)  # noqa: E731
    jaxpr, consts = trace_to_jaxpr(lambda *ts: columns_last(*pushed(*ts), total), avals)
    outs = oracle.evaluate(jaxpr, [*map(np.asarray, consts), *basis], exact=True)
    return np.concatenate([np.zeros((0, total)), *[y.reshape(-1, total) for y in outs]])


def columns_last(outs: Sequence[Any], dims: Sequence[Any], total: int) -> list[Any]:
    return [batching.move_mapped_axis(y, d, aval_of(y).ndim - (d is not None), total) for y, d in zip(outs, dims)]


X = rng.standard_normal(6)
AT = np.array([3, 1, 0, 5])
MASK = np.array([True, False, True, True, False, False])
EXACT = {
    "elementwise": lambda x: tnp.sin(x) * x + tnp.exp(x),
    "neighbours": lambda x: x[1:] * x[:-1],
    "stencil": lambda x: tnp.pad(x, 1)[2:] - 2 * x + tnp.pad(x, 1)[:-2],
    "gather": lambda x: x[AT] ** 2,
    "gather by traced arithmetic": lambda x: x[tnp.arange(5) // 2 + 1],
    "gather out of bounds": lambda x: x.at[np.array([0, 9])].get(mode="fill", fill_value=0.0),
    "scatter": lambda x: x.at[AT].set(x[:4] * 2),
    "scatter of a constant": lambda x: x.at[AT].set(1.0),
    "scatter_add": lambda x: tnp.zeros(4).at[np.array([0, 1, 1, 3, 0, 2])].add(x**2),
    "sums": lambda x: x.reshape(2, 3).sum(0) + x.reshape(2, 3)[0],
    "prod": lambda x: tnp.prod(x.reshape(2, 3), 1),
    "logsumexp": lambda x: tl.nn.logsumexp(x.reshape(2, 3), 1),
    "cumsum": lambda x: tnp.cumsum(x),
    "cumsum backwards, in columns": lambda x: lax.cumsum(x.reshape(3, 2), 0, reverse=True),
    "triangle": lambda x: np.tril(np.ones((6, 6))) @ x,
    "traced triangle": lambda x: tnp.tril(tnp.ones((6, 6))) @ x,
    "zeros of a constant": lambda x: np.diag(np.arange(6.0)) @ x,
    "matmul": lambda x: x.reshape(2, 3) @ np.arange(6.0).reshape(3, 2) ** 2,
    "outer": lambda x: x[:3, None] * x[None, 3:],
    "kron": lambda x: tnp.kron(np.eye(2), x[:4].reshape(2, 2)),
    "convolution": lambda x: tnp.convolve(x, np.array([1.0, 0.0, 3.0]), mode="same"),
    "sum of windows": lambda x: lax.reduce_window(x, 0.0, lax.add, (3,), (1,), "VALID"),
    "fixed mask": lambda x: tnp.where(MASK, x, x[::-1] ** 2),
    "iota mask": lambda x: tnp.where(tnp.arange(6) < 2, x, 1.0),
    "times zero": lambda x: x * 0 + 3 * x[::-1] * MASK,
    "stop_gradient": lambda x: tl.stop_gradient(x) * x[::-1],
    "comparison": lambda x: (x > 0).astype(float),
    "concatenate": lambda x: tnp.concatenate([x[4:] ** 2, x[:2], tnp.zeros(2)]),
    "roll, transpose, rev": lambda x: tnp.roll(x, 2).reshape(2, 3).T[::-1],
    "fori_loop": lambda x: lax.fori_loop(0, 3, lambda i, c: c.at[i].set(c[i + 1] * c[i]), x),
    "scan of elements": lambda x: lax.scan(lambda c, z: (c + 1, z * x[c]), 0, x[::-1])[1],
    "map": lambda x: lax.map(lambda z: z[0] * z[1], (x, tnp.roll(x, 1))),
    "recurrence": lambda x: lax.scan(lambda c, z: (c * z,) * 2, x[0], x[1:])[1],
    "vmap": lambda x: tl.vmap(lambda i: x[i] * x[i + 1])(tnp.arange(5)),
    "jit, checkpoint": lambda x: tl.jit(lambda y: tl.checkpoint(lambda z: tnp.roll(z, 1) * z)(y))(x),
    "einsum": lambda x: tnp.einsum("ij,jk->ik", x.reshape(2, 3), np.array([[1.0, 0], [0, 2], [0, 0]])),
    "known branch": lambda x: lax.cond(True, lambda x: x, lambda x: x[::-1], x),
    "index language": lambda x: tl.index.build(6, lambda i: x[i] * x[i // 2] * x[i + 1]),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_patterns_are_exact_where_no_value_decides(name: str):
    with tl.enable_x64(True):
        program = program_of(EXACT[name], [tnp.asarray(X)])
        np.testing.assert_array_equal(found(program), computed(program, [X]) != 0)


UNION = {
    "where": (lambda x: tnp.where(x > 0, x, x[::-1]), np.eye(6) + np.eye(6)[::-1]),
    "max": (lambda x: tnp.max(x.reshape(2, 3), 1), np.kron(np.eye(2), np.ones(3))),
    "sort": (lambda x: tnp.sort(x.reshape(2, 3)), np.kron(np.eye(2), np.ones((3, 3)))),
    "cond": (lambda x: lax.cond(x[0] > 0, lambda x: x, lambda x: x[::-1], x), np.eye(6) + np.eye(6)[::-1]),
    "index": (lambda x: x[tnp.argmax(x)] + x[:2], np.ones((2, 6))),
    "dynamic_slice": (
        lambda x: lax.dynamic_slice(x, (tnp.argmax(x),), (4,)),
        sum(np.eye(4, 6, k) for k in range(3)),
    ),
    "dynamic_update_slice": (
        lambda x: lax.dynamic_update_slice(x, tnp.zeros(3, x.dtype), (tnp.argmax(x),)),
        np.diag([1, 1, 1, 1, 1, 1]),
    ),
    "while_loop": (
        lambda x: lax.while_loop(lambda c: c[0] < x[0], lambda c: (c[0] + 1, tnp.roll(c[1], 2)), (0.0, x))[1],
        np.kron(np.ones((3, 3)), np.eye(2)),
    ),
    "solve": (lambda x: tnp.linalg.solve(3 * np.eye(6), x), np.ones((6, 6))),
}


@pytest.mark.parametrize("name", UNION)
def test_patterns_are_unions_where_a_value_decides(name: str):
    f, expected = UNION[name]
    np.testing.assert_array_equal(found(program_of(f, [tnp.asarray(X)])), expected != 0)


def chosen(x: Any, n: int = 6) -> Any:
    """Integers from 0 to n - 1 that values decide."""
    return (tnp.abs(x) * 10).astype(int) % n


DECIDED = {
    "sort": lambda x: tnp.sort(x) ** 2 * x,
    "argsort": lambda x: x[tnp.argsort(x)] ** 2,
    "top_k": lambda x: lax.top_k(x**2, 2)[0],
    "cummax": lambda x: lax.cummax(x**2),
    "gather": lambda x: x[chosen(x)] ** 2,
    "take_along_axis": lambda x: tnp.take_along_axis(x.reshape(2, 3), tnp.argsort(x.reshape(2, 3), 1), 1) ** 2,
    "scatter": lambda x: (x**2).at[chosen(x[:2])].set(x[2:4] ** 3),
    "scatter_mul": lambda x: (x**2).at[chosen(x[:2])].mul(x[2:4]),
    "segment_sum": lambda x: tl.ops.segment_sum(x**2, chosen(x, 3), 4),
    "segment_max": lambda x: tl.ops.segment_max(x**2, np.array([0, 0, 1, 3, 3, 1]), 4),
    "dynamic_slice outside": lambda x: lax.dynamic_slice(x**2, (chosen(x[0]) * 3 - 6,), (3,)),
    "dynamic_update_slice": lambda x: lax.dynamic_update_slice(x**2, x[:2] ** 3, (chosen(x[0], 8) - 1,)),
    "roll": lambda x: tnp.roll(x, chosen(x[0])) ** 2,
    "select_n": lambda x: lax.select_n(chosen(x, 3), x * 2, x[::-1] ** 2, tnp.roll(x, 1) ** 2),
    "switch": lambda x: lax.switch(chosen(x[0], 9), [lambda x: x**2, lambda x: x[::-1], lambda x: tnp.roll(x, 1)], x),
    "scan of indices": lambda x: lax.scan(lambda c, z: (tnp.where(z > 0, c + 1, c) % 6, x[c] * z), 0, x)[1],
    "cond in scan": lambda x: lax.scan(
        lambda c, z: (lax.cond(z > 0, lambda c: c * z, lambda c: c + x[5], c), c), x[0], x
    )[1],
    "while": lambda x: lax.while_loop(
        lambda c: tnp.sum(c**2) > 0.1, lambda c: c.at[0].set(c[1]).at[1].set(c[2]) * 0.5, x
    ),
    "traced trips": lambda x: lax.fori_loop(0, (x[0] > 0) + 2, lambda i, c: c * tnp.roll(x, i), x),
    "associative_scan": lambda x: lax.associative_scan(tnp.multiply, x),
    "while of vmap": lambda x: tl.vmap(
        lambda z: lax.while_loop(lambda c: tnp.abs(c) > 0.5, lambda c: c * x[0] * 0.3, z)
    )(x),
    "interp": lambda x: tnp.interp(x, np.arange(4.0), x[:4] ** 2),
    "median": lambda x: tnp.median(x) * x[:2],
    "index language": lambda x: (lambda p: tl.index.build(6, lambda i: x[i] * x[p[i]]))(chosen(x)),
    "solve": lambda x: tnp.linalg.solve(3 * np.eye(3) + x[:3, None] * x[None, 3:], x[:3]),
    "second derivatives": tl.grad(lambda x: tnp.sum(tnp.sort(x) ** 2 * x[chosen(x)])),
    "bfloat16": lambda x: x.astype("bfloat16") * x[::-1].astype("bfloat16"),
    "nothing": lambda x: x[:0],
}


@pytest.mark.parametrize("name", DECIDED)
@pytest.mark.parametrize("order", [1, -1])
def test_no_entry_is_missing_where_values_decide(name: str, order: int):
    with tl.enable_x64(True):
        assert missing(DECIDED[name], [tnp.asarray(X[::order].copy())]) == []


MOST = 100  # elements of arguments and results: the oracle evaluates a program for each of the arguments


def missing(f: Callable[..., Any], args: Sequence[Any]) -> list[Any]:
    """The entries of a Jacobian that its pattern lacks; none of those of large programs."""
    program = program_of(f, args)
    if sum(t.size for t in (*program.ins, *program.outs)) > MOST:
        return []
    jacobian = computed(program, list(map(np.asarray, args)))
    return np.argwhere((jacobian != 0) & np.isfinite(jacobian) & ~found(program)).tolist()


def real_parts(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function with the results that have derivatives, complex ones as two real ones."""

    def parts(*args: Any) -> list[Any]:
        outs = [y for y in f(*args) if dtypes.is_inexact(aval_of(y).dtype)]
        return [part for y in outs for part in ((y.real, y.imag) if dtypes.is_complex(aval_of(y).dtype) else (y,))]

    return parts


@pytest.mark.parametrize("name", rows_by_primitive())
def test_no_entry_of_a_primitive_is_missing(name: str):
    """Rows are in tests/samples; what is computed of tangents is by their rules of forward mode."""
    with tl.enable_x64(True):
        for row in rows_by_primitive()[name]:
            f, args = differentiable_part(row)
            if args and row.axis is None:
                assert missing(real_parts(f), list(map(ours, args))) == []


SEEDS = {"all": 20, "nested": 12, "loops": 8, "integers": 2}
PROGRAMS = [(profile, seed) for profile, seeds in SEEDS.items() for seed in range(seeds)]


@pytest.mark.parametrize("profile, seed", PROGRAMS)
def test_no_entry_of_a_random_program_is_missing(profile: str, seed: int):
    """Programs of the fuzzer, in their floating-point arguments; other arguments are constants."""
    with tl.enable_x64(PROFILES[profile].bits == 64):
        case = Case(build(PROFILES[profile], seed, TABLE)[0], seed)
        assert missing(real_parts(lambda *xs: case.g(xs)), case.xs) == []
