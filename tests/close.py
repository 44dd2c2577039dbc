"""Comparison of results with what is wanted, but for roundings: one comparison for each tolerance, by its name.

A module imports the one that its programs need, `from tests.close import some_roundings as close`. A test that needs
another says so where it compares. Tolerances of single functions are in the rows of their tables.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import tapeless as tl


@dataclass(frozen=True)
class Close:
    """Compares: |found - wanted| <= atol + rtol |wanted|, element by element."""

    rtol: float
    atol: float  # of results near 0, whose terms have a size of 1 or less
    same_dtypes: bool = False  # whether these are compared, too
    dtype: str | None = None  # that results have, if wanted are Python numbers

    def __call__(
        self, found: Any, wanted: Any, rtol: float | None = None, atol: float | None = None, err_msg: str = ""
    ) -> None:
        """Compare trees leaf by leaf, in shape and value; a list stands for an array where the other is one."""
        found = np.asarray(found) if isinstance(found, list) and isinstance(wanted, np.ndarray) else found
        leaves, structure = tl.tree.flatten(found)
        for x, y in zip(leaves, structure.flatten_up_to(wanted), strict=True):
            assert not isinstance(y, (tuple, dict)), f"found an array, wanted {y!r} {err_msg}"
            assert np.shape(x) == np.shape(y), f"found shape {np.shape(x)}, wanted {np.shape(y)} {err_msg}"
            x, y = np.asarray(x), np.asarray(y)
            assert x.dtype == y.dtype or not self.same_dtypes, f"found {x.dtype}, wanted {y.dtype} {err_msg}"
            assert self.dtype in (None, x.dtype), f"found {x.dtype}, wanted {self.dtype} {err_msg}"
            if x.dtype != tl.float0:
                tolerances = self.rtol if rtol is None else rtol, self.atol if atol is None else atol
                np.testing.assert_allclose(x, y, *tolerances, err_msg=err_msg)


close = Close(0, 0)  # by the tolerances of the call, else exactly

# ---- float64, whose operations round by 1.1e-16 ------------------------------------------------------------------

# One operation, or a few without differences, by XLA's functions and by NumPy's.
one_rounding = Close(1e-14, 0)
# A few functions and products, and differences of these.
some_roundings = Close(1e-14, 1e-15)
some_roundings_of_float64 = replace(some_roundings, dtype="float64")
# Some dozen operations, which XLA fuses, and sums in an order of its own.
small_programs = Close(1e-13, 1e-14)
small_programs_and_dtypes = replace(small_programs, same_dtypes=True)
# Hessians, batches and loops of these: longer sums.
long_programs = Close(1e-12, 1e-14)
long_programs_of_float64 = replace(long_programs, dtype="float64")
# Some hundred operations in any order, fused or not.
many_roundings = Close(1e-11, 1e-12)
# A few hundred operations, fused or not, of values between -3 and 3 or so: loops multiply roundings.
random_loops = Close(1e-10, 1e-11)
# The same in loops in loops.
random_nesting = Close(1e-9, 1e-10)
# Sums of up to 64 products of numbers of the size of 1, in any order, a few times over.
rewritten = Close(1e-8, 1e-8)
# Factors of small matrices by LAPACK: elements near 0 have the roundings of the largest.
factorizations = Close(1e-12, 1e-12)
# SciPy computes in another way: roundings times the condition of the problem.
other_algorithms = Close(1e-9, 1e-9)

# ---- float32, whose operations round by 6e-8 ---------------------------------------------------------------------

# Some dozen operations.
single_precision = Close(1e-5, 1e-6)
single_precision_and_dtypes = replace(single_precision, same_dtypes=True)
# The same in other programs, which XLA fuses in other ways, and factors of small matrices.
fused_single_precision = Close(2e-5, 1e-5)
