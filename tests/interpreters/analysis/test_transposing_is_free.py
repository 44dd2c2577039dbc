"""Transposing is free: W transposed <= W linear + out - in, for every primitive that is linear in some operands.

In strict form and out of it, each linear primitive of the suite is applied to linear operands together. What needs more
is listed by name, with its reason; it is of the same order: W transposed <= W linear + 3 (in + out + residuals). So are
programs that read several parts of an array: cotangents of the parts are added with the zeros around them.
"""

from typing import Any, NamedTuple

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests.samples import SAMPLES
from tests.samples.sample import Sample, ours

EXCEPTIONS = {
    "fft": "rfft halves what irfft doubles: the transpose of a real transform multiplies each coefficient by a number",
    "scatter": "the cotangent of what was overwritten is set to 0, where the updates that won are found again",
    "complex": "the imaginary part of a cotangent is negated, which counts as a product",
    "pad": "the cotangent of a filler that is linear is the sum of all but the array's",
    "dynamic_update_slice": "of an array of one element, which is overwritten and dropped",
    "scatter_add": "of windows without elements, which drops all of its cotangent",
    "conv_general_dilated": "of empty arrays and windows without room, which drop all of their operands",
}


class Figures(NamedTuple):
    """Work of a linear program and of its transposed one; scalars of its linear inputs, results and residuals."""

    linear: int
    transposed: int
    n_in: int
    n_out: int
    residuals: int

    @property
    def is_free(self) -> bool:
        return self.transposed <= self.linear + self.n_out - self.n_in

    @property
    def is_of_its_order(self) -> bool:
        return self.transposed <= self.linear + 3 * (self.n_in + self.n_out + self.residuals)


def figures(row: Sample) -> list[Figures]:
    """Return the figures of a primitive, applied to its linear operands: plain, and strict."""
    given = list(map(ours, row.args))

    def f(*linear: Any) -> Any:
        args = dict(enumerate(given)) | dict(zip(row.linear_in, linear))
        return row.primitive.bind(*args.values(), **row.params)

    program = tl.check_linear(f, *[given[k] for k in row.linear_in])
    found = [_figures(program.jaxpr, tl.transpose_jaxpr(program))]
    if row.primitive.name != "linear_solve":  # it has no strict form
        strict = tl.strict_form(program)
        found.append(_figures(strict, tl.transpose_jaxpr(strict, strict=True)))
    return found


def _figures(linear: Any, transposed: Any) -> Figures:
    own, residuals = [sum(v.aval.size for v in linear.invars if v.linear is yes) for yes in (True, False)]
    return Figures(tl.work(linear), tl.work(transposed), own, sum(v.aval.size for v in linear.outvars), residuals)


def rows() -> list[Sample]:
    """List the samples of linear primitives, of inexact operands.

    Without `linear_while`, whose number of steps is not known: backwards it computes states again, within the bound of
    tests/api/control_flow/test_reverse_while.py. And without `linear_scan`, which has no strict form.
    """
    return [
        row
        for row in SAMPLES
        if row.linear_in
        and row.primitive.name not in ("linear_scan", "linear_while")
        and not row.axis
        and all(np.issubdtype(np.asarray(row.args[k]).dtype, np.inexact) for k in row.linear_in)
    ]


def test_all_linear_primitives():
    """In one test, because each takes two milliseconds."""
    needed = set[str]()
    for row in rows():
        for found in figures(row):
            assert found.is_of_its_order, (str(row), found)
            if not found.is_free:
                assert row.primitive.name in EXCEPTIONS, (str(row), found)
                needed.add(row.primitive.name)
    assert needed == set(EXCEPTIONS)


ONE_READ = [
    lambda x: x[np.array([3, 1, 0, 5, 2, 4])], lambda x: x[np.array([0, 0, 0, 1])], lambda x: x[tnp.argsort(-x)],
    tnp.sort, lambda x: lax.top_k(x, 3)[0], lambda x: x[2], lambda x: x[::2], lambda x: x[::-1] * x[::-1], tnp.cumsum,
    lambda x: tnp.take(x, np.array([[1, 1], [5, 0]])), tnp.fft.fft, tnp.max,
]  # fmt: skip
SEVERAL = [
    tnp.diff, lambda x: tnp.roll(x, 2) * x, lambda x: x.at[np.array([1, 3])].add(x[:2]), tnp.median, tnp.fft.rfft,
    lambda x: tnp.fft.irfft(x + 0j), lambda x: tnp.convolve(x, x[:3]),
]  # fmt: skip


@pytest.mark.parametrize("f, free", [*[(f, True) for f in ONE_READ], *[(f, False) for f in SEVERAL]])
def test_functions_that_index(f: Any, free: bool):
    x = tnp.array([0.5, -1.0, 2.0, -0.25, 3.0, 1.5])
    for strict in (False, True):
        linear = tl.unzip(f, x, strict=strict).linear
        linear = getattr(linear, "jaxpr", linear)
        found = _figures(linear, tl.transpose_jaxpr(linear, strict=strict))
        assert found.is_free if free else found.is_of_its_order, found
