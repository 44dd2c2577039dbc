"""Programs whose operations wait in XLA's pool of threads, for parts of themselves, end with few threads, too."""

import re

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.lowering import emit
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import aval_of
from tests.faults.processes import run

# With two threads, both of which may wait. Such programs did not end.
WAITING = """
import numpy as np
import tapeless as tl, tapeless.numpy as tnp
from tapeless import lax

x = np.random.RandomState(0).randn(16, 64, 64).astype("float32")
factored = lambda a: tnp.linalg.cholesky(a @ a.mT + 64 * tnp.eye(64))
once = tl.jit(factored)
programs = {
    "factorizations": factored,
    "transforms": lambda a: abs(tnp.fft.fft(a)),
    "calls": lambda a: once(once(a)),
    "loops": lambda a: lax.fori_loop(0, 2, lambda i, a: factored(a), a),
    "loops of one step": lambda a: lax.while_loop(
        lambda c: c[0] < 1, lambda c: (c[0] + 1, 2 * c[1], factored(c[2])), (0, a[0, 0, 0], a)
    )[2],
    "branches": lambda a: lax.cond(a[0, 0, 0] > 0, factored, lambda a: tnp.linalg.qr(a)[1], a),
}
for name, f in programs.items():
    many = tl.jit(lambda x: [f(tnp.sin(x + i)) for i in range(40)])
    for _ in range(3):
        found = many(x)
        assert all(np.isfinite(y).all() for y in found)
    np.testing.assert_allclose(found[7], f(tnp.sin(x + 7)), rtol=1e-4, atol=1e-4, err_msg=name)  # sums of 64
print("ended")
"""


def test_programs_that_fill_the_pool_with_operations_that_wait_end():
    assert run(WAITING, PJRT_NPROC="2") == "ended\n"


def waits(f):
    """How many operations wait for an earlier one."""
    text = tl.jit(f).lower(X).as_text()
    return len(re.findall(r'"stablehlo.or".*: \(tensor<ui32>, tensor<ui32>\)', text))


def transform(x):
    return abs(tnp.fft.fft(x))


X = np.ones((2, 3, 3), np.float32)


def test_operations_wait_for_the_one_before():
    assert waits(lambda x: [transform(x + i) for i in range(4)]) == 3
    assert waits(lambda x: [tnp.linalg.cholesky(x + i) for i in range(4)]) == 3


def test_single_matrices_do_not_wait():
    assert waits(lambda x: [tnp.linalg.cholesky(x[0] + i) for i in range(4)]) == 0


def test_what_is_called_waits_inside():
    layer = tl.jit(lambda x: tnp.cos(transform(tnp.sin(x))))
    assert waits(lambda x: [layer(x + i) for i in range(4)]) == 3


def test_loops_and_branches_wait_as_a_whole():
    def loop(x):
        return lax.fori_loop(0, 3, lambda i, a: transform(transform(a) + 1), x)

    def branch(x):
        return lax.cond(x[0, 0, 0] > 0, transform, tnp.sin, x)

    assert waits(lambda x: [loop(x + i) for i in range(3)]) >= 2 + 1
    assert waits(lambda x: [branch(x + i) for i in range(3)]) == 2


def test_a_branch_waits_if_the_next_one_has_regions_of_its_own():
    def low(x):
        return tnp.max(x.astype("int4"), 0)  # computed by a region; no result that others could wait for

    def branch(x):
        return lax.cond(
            x[0, 0, 0] > 0,
            lambda x: (transform(x), low(x) * 0),
            lambda x: (x, low(x)),
            x,
        )

    assert waits(lambda x: [branch(x + i) for i in range(3)]) == 2


@pytest.mark.parametrize("platform", ["gpu", "tpu"])
def test_programs_for_other_platforms_do_not_wait_and_keep_their_calls(platform):
    layer = tl.jit(lambda x: tnp.cos(transform(tnp.sin(x))))
    program, _ = trace_to_jaxpr(lambda x: [layer(x + i) for i in range(4)], [aval_of(X)])
    text = emit.module(program, platform=platform).text
    assert text.count("func.call") == 4 and text.count("stablehlo.fft") == 1
    assert "replica_id" not in text


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_operands_that_wait_keep_their_bits(dtype):
    x = np.random.RandomState(1).randn(2, 3, 3).astype(dtype)
    x[0, 0, 0] = -0.0
    found = tl.jit(lambda x: [tnp.linalg.qr(x * i)[1] for i in range(1, 4)])(x)
    for i, y in enumerate(found, 1):
        np.testing.assert_array_equal(y, tnp.linalg.qr(x * i)[1])
