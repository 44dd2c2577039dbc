"""Calls of LAPACK, which has the decompositions that StableHLO lacks.

Matrices are in column-major order, and all leading axes batches. A routine's info is not 0 where it fails: its results
are nan there.
"""

from collections.abc import Sequence

import numpy as np

from tapeless.lowering import compat
from tapeless.lowering.composition import write_out
from tapeless.lowering.hlo import Function, Value
from tapeless.tracer import dtypes
from tapeless.tracer.array import Array
from tapeless.tracer.numpy.matrices import eye
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives.reduction import reduce_and
from tapeless.tracer.primitives.shape import broadcast_in_dim, full_like
from tapeless.tracer.types import ShapedArray

_LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}


def call(f: Function, routine: str, x: Value, outs: Sequence[ShapedArray], **options: str) -> list[Value]:
    """Overwrite x [.., m, n] by a routine, which gives `outs`, and says for each matrix whether it is done.

    Args:
      routine: without the letter of its dtype.
      outs: types of the results. The first takes the place of x.
      options: one letter each.
    Returns: the results, nan where the routine failed. That a matrix is singular is no failure of `getrf`.
    Raises: NotImplementedError on other devices than the CPU.
    """
    info = ShapedArray(x.aval.shape[:-2], np.dtype(np.int32))
    x, finite = write_out(f, _finite_matrices, [x])
    *results, status = call_plainly(f, routine, [x], [*outs, info], 0, **options)
    done = f.compare(status, f.constant(0, info), "GE" if routine == "getrf" else "EQ")
    done = f.op("and", [done, finite], finite.aval)
    return [nan_unless(f, done, y) for y in results]


def _finite_matrices(x: Array) -> tuple[Array, Array]:
    """Zero out batch members with a non-finite element; also return the mask of the untouched ones.

    Of such a matrix LAPACK's iterations may not end.
    """
    axes = (x.ndim - 2, x.ndim - 1)
    finite = reduce_and(e.eq(e.sub(x, x), full_like(x, 0)), axes)
    return e.select_n(broadcast_in_dim(finite, x.shape, range(x.ndim - 2)), full_like(x, 0), x), finite


def call_plainly(
    f: Function, routine: str, operands: Sequence[Value], outs: Sequence[ShapedArray], at: int = 0, **options: str
) -> list[Value]:
    """`call` of a routine that cannot fail; `outs` are all its results, the first in place of operand `at`."""
    if f.platform != "cpu":
        raise NotImplementedError(f"{routine}: LAPACK's routines run on the CPU, and this program is for {f.platform}.")
    compat.load_lapack()
    aval = operands[0].aval
    letters = ", ".join(f"{name} = {ord(letter)} : ui8" for name, letter in options.items())
    place = "" if len(outs) == 1 else "0"
    attributes = (
        f'call_target_name = "lapack_{_LETTERS[aval.dtype.name]}{routine}_ffi", api_version = 4 : i32, '
        f"backend_config = {{{letters}}}, operand_layouts = {_layouts([x.aval for x in operands], aval.ndim)}, "
        f"result_layouts = {_layouts(outs, aval.ndim)}, output_operand_aliases = [#stablehlo."
        f"output_operand_alias<output_tuple_indices = [{place}], operand_index = {at}, operand_tuple_indices = []>]"
    )
    return f.ops("custom_call", operands, outs, attributes)


def variant(aval: ShapedArray, of_real: str, of_complex: str) -> str:
    """Choose between the real and the complex name of a LAPACK routine, by dtype."""
    return of_complex if dtypes.is_complex(aval.dtype) else of_real


def identity(f: Function, aval: ShapedArray) -> Value:
    """The vectors of matrices without elements: mostly without elements too, or all that complete them to a basis."""
    if not aval.size:
        return f.constant(0, aval)

    def matrix() -> Array:
        square = eye(*aval.shape[-2:], dtype=aval.dtype)
        return broadcast_in_dim(square, aval.shape, (aval.ndim - 2, aval.ndim - 1))

    return write_out(f, matrix, [])[0]


def _layouts(avals: Sequence[ShapedArray], matrices: int) -> str:
    """Print the layouts of operands: column-major for arrays with as many axes as `matrices`, else row-major."""
    orders = [_order(x.ndim, x.ndim == matrices) for x in avals]
    return f"[{', '.join(f'dense<{o if o else str()}> : tensor<{len(o)}xindex>' for o in orders)}]"


def _order(n: int, column_major: bool) -> list[int]:
    return [n - 2, n - 1, *range(n - 3, -1, -1)] if column_major else list(range(n - 1, -1, -1))


def nan_unless(f: Function, done: Value, x: Value) -> Value:
    """Replace the matrices or vectors of x whose batch entry of `done` is false by nan; integers stay."""
    if not dtypes.is_inexact(x.aval.dtype):
        return x
    done = f.broadcast(done, x.aval.shape, tuple(range(done.aval.ndim)))
    return f.op("select", [done, x, f.constant(np.nan, x.aval)], x.aval)
