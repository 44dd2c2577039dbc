"""The text of a program is the program: for every primitive, its derivatives and batches, and for random programs."""

import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

import tapeless as tl
from tapeless.lowering import dispatch
from tapeless.tracer import dtypes
from tapeless.tracer.jaxpr import Jaxpr
from tapeless.tracer.parsing.params import check_count, is_elementwise
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import aval_of
from tests import dense_zeros
from tests.fuzzing.builder import build
from tests.fuzzing.families import TABLE
from tests.fuzzing.modes import Case
from tests.fuzzing.profiles import PROFILES
from tests.samples.sample import Sample, ours
from tests.test_primitives import (
    applied,
    assert_close,
    differentiable_at,
    differentiable_part,
    expected,
    rows_by_primitive,
)
from tests.tracer.parsing.reading import assert_read_back

ROWS = rows_by_primitive()


@pytest.fixture(autouse=True)
def only_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether linear programs are as good as they might be is asked elsewhere, of programs that are known."""
    monkeypatch.setattr(dense_zeros, "check", lambda jaxpr: jaxpr)


@pytest.mark.parametrize("name", ROWS)
def test_of_a_primitive(name: str):
    """Written and read, it computes what NumPy says."""
    row = ROWS[name][0]
    args = list(map(ours, row.args))
    jaxpr, consts = trace_to_jaxpr(applied(row), list(map(aval_of, args)))
    outs = dispatch.run(assert_read_back(jaxpr), [*consts, *args])
    assert_close(outs, expected(row, row.args), row.rtol)


@pytest.mark.parametrize("name", [name for name in ROWS if is_elementwise(ROWS[name][0].primitive)])
def test_counts_of_operands(name: str):
    """Typing rules of elementwise operations take any number; the reader of text knows better."""
    primitive, n = ROWS[name][0].primitive, len(ROWS[name][0].args)
    check_count(primitive, n)
    with pytest.raises(TypeError, match=f"{name} takes {n}, not {n + 1}"):
        check_count(primitive, n + 1)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ROWS)
def test_of_rows(name: str):
    """Each row of a primitive, batched, and its derivatives."""
    for row in ROWS[name]:
        for jaxpr in programs(row):
            assert_read_back(jaxpr)


def programs(row: Sample) -> Iterator[Jaxpr]:
    avals = [aval_of(ours(x)) for x in row.args]
    yield trace_to_jaxpr(applied(row), avals)[0]
    if avals and row.axis is None:
        batches = [aval.update(shape=(2, *aval.shape)) for aval in avals]
        yield trace_to_jaxpr(lambda *xs: tl.vmap(applied(row))(*xs), batches)[0]
    if differentiable_at(row):
        yield from derivatives(*differentiable_part(row))


def derivatives(f: Any, xs: Sequence[Any]) -> Iterator[Jaxpr]:
    """Forwards, linearized, transposed, backwards."""

    def inexact(*xs: Any) -> list[Any]:
        return [y for y in f(*xs) if dtypes.is_inexact(y.dtype)]

    def pulled(*xs: Any) -> Any:
        y, pull = tl.vjp(inexact, *xs)
        return pull(y)

    yield tl.make_jaxpr(lambda *xs: tl.jvp(inexact, xs, xs))(*xs).jaxpr
    halves = tl.unzip(inexact, *xs)
    yield from (halves.primal.jaxpr, halves.linear, halves.transposed)
    yield tl.make_jaxpr(pulled)(*xs).jaxpr


RANDOM = [name for name in PROFILES if name != "large"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", range(0, 40, 10))
def test_of_random_programs(first: int):
    """Programs of every profile, and their gradients where they have any."""
    with tl.enable_x64(True):
        for seed in range(first, first + 10):
            profile = PROFILES[RANDOM[seed % len(RANDOM)]]
            case = Case(build(profile, zlib.crc32(f"text {seed}".encode()), TABLE)[0], seed)
            assert_read_back(tl.make_jaxpr(case.f)(*case.args).jaxpr)
            if case.smooth and case.cts and not case.program.forward_only:
                for jaxpr in derivatives(lambda *xs, case=case: case.g(xs), case.xs):
                    assert_read_back(jaxpr)
