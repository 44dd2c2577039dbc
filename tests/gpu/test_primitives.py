"""Every primitive on the GPU against the CPU, by its rows in tests/samples: one program for each primitive."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import tapeless as tl
from tapeless.lowering import dispatch
from tapeless.tracer.check import check
from tapeless.tracer.primitives import indexing
from tapeless.tracer.primitives.random import random_unwrap
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import aval_of, holds_keys
from tests.gpu import IS_GPU
from tests.gpu.comparing import TF32, assert_agree
from tests.samples.indexing import scatter_reference
from tests.samples.sample import Sample, ours
from tests.test_primitives import applied, converted, rows_by_primitive

# Where the lowering calls LAPACK or the host, which only the CPU has. Each is refused with a message that says so.
CPU_ONLY = frozenset({"hessenberg", "schur"})
# Signs and phases of vectors are free, and libraries choose others: see tests/gpu/test_linalg.py.
WITH_FREE_SIGNS = frozenset("eig eigh geqrf qr svd tridiagonal".split())
BY_MATRIX_UNITS = frozenset("dot_general conv_general_dilated custom_linear_solve ein linear_solve".split())
PLATFORMS_OWN = frozenset({"platform_index"})  # the CPU's is another


def program(rows: Sequence[Sample]) -> tuple[Any, list[Any]]:
    """All rows, and all dtypes of the first, as one function and its arguments."""
    cases = [(row, list(row.args)) for row in rows if not overlapping(row)]
    first = rows[0]
    names = [name for name in first.dtypes if name in np.sctypeDict]
    cases += [(first, converted(first.args, np.dtype(name))) for name in names]

    def f(*xs: Any) -> list[Any]:
        given = iter(xs)
        return [y for row, args in cases for y in applied(row)(*[next(given) for _ in args])]

    return f, [x for _, args in cases for x in args]


def overlapping(row: Sample) -> bool:
    """Whether updates overlap, of which any may win on a GPU, another one each time."""
    if row.primitive is not indexing.scatter_p:
        return False
    x, indices, updates = row.args
    count = scatter_reference(np.add)
    return bool(np.max(count(np.zeros(x.shape), indices, np.ones(updates.shape), **row.params), initial=0) > 1)


@pytest.mark.parametrize("name", rows_by_primitive())
def test_agrees_with_the_cpu(name: str, device: Any, cpu: Any):
    f, args = program(rows_by_primitive()[name])
    if IS_GPU and name in CPU_ONLY:
        with pytest.raises(NotImplementedError, match=r"(?i)cpu"):
            run(device, f, args)
        return
    found, wanted = (run(place, f, args) for place in (device, cpu))
    if IS_GPU and name in PLATFORMS_OWN:
        assert any(np.any(x != y) for x, y in zip(found, wanted, strict=True))
        return
    if IS_GPU and name in WITH_FREE_SIGNS:
        found, wanted = ([np.abs(y) for y in ys] for ys in (found, wanted))
    assert_agree(found, wanted, rtol=TF32 if name in BY_MATRIX_UNITS else 0.0)


def run(device: Any, f: Any, args: Sequence[Any]) -> list[Any]:
    """The results of the program as it is traced, type-checked; the simplifier is not to mend what a rule does."""
    given = [ours(x) for x in args]
    jaxpr, consts = trace_to_jaxpr(f, [aval_of(x) for x in given])
    with tl.default_device(device):
        outs = dispatch.run(check(jaxpr), [tl.device_put(x, device) for x in [*consts, *given]])
    assert all(x.device is device for x in outs)
    return [np.asarray(random_unwrap(x) if holds_keys(x.aval) else x) for x in outs]


@pytest.mark.parametrize("name", ["copy", "gather", "dot_general"])
def test_the_tier_itself(name: str, cpu: Any):
    """Runs where there is no GPU: rows with keys, with indices and with several dtypes."""
    f, args = program(rows_by_primitive()[name])
    found, wanted = run(cpu, f, args), tl.jit(f)(*map(ours, args))
    assert [y.shape for y in found] == [y.shape if not holds_keys(y.aval) else (*y.shape, 2) for y in wanted]
