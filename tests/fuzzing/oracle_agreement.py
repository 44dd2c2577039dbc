"""Agreement of what is computed with what the oracle says, within the tolerance of each dtype."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapeless.tracer.extended_dtypes import KEY
from tests.fuzzing.oracle.linalg import NOT_UNIQUE

# Roundings of a few operations, of a series, of an iteration: in units of the dtype's.
TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 1e-5, "complex64": 1e-5, "float64": 1e-9, "complex128": 1e-9}


def assert_agree(jaxpr: Any, outs: Sequence[Any], wanted: Sequence[Any]) -> None:
    """Results agree within the tolerance of their dtype; integers exactly. Phases of vectors are left free."""
    free = {id(v) for eqn in jaxpr.eqns for k, v in enumerate(eqn.outvars) if k in free_results(eqn)}
    for v, got, want in zip(jaxpr.outvars, outs, wanted, strict=True):
        assert (got.shape, got.dtype) == (want.shape, want.dtype if v.aval.dtype is KEY else v.aval.dtype)
        rtol = TOLERANCE.get(got.dtype.name, 0.0)
        if id(v) in free:
            got, want = np.abs(got), np.abs(want)
        if not rtol:
            np.testing.assert_array_equal(got, want)
        else:
            wide = np.result_type(want.dtype, np.float64)
            scale = np.max(np.abs(want[np.isfinite(want)]), initial=0).astype(float)
            np.testing.assert_allclose(got.astype(wide), want.astype(wide), rtol=rtol, atol=rtol * scale)


def free_results(eqn: Any) -> tuple[int, ...]:
    """Results that are determined up to phases: none where there are no vectors."""
    return NOT_UNIQUE.get(eqn.primitive.name, ()) if len(eqn.outvars) > 1 else ()
