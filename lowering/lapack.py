"""Emission of calls of LAPACK, which has the decompositions that StableHLO lacks.

Matrices are in column-major order, and all leading axes are batch axes. Where a routine fails (its info is not 0), its
results are nan.
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


Option = str | int | bool  # a letter, a number, or a flag


def call(
    f: Function,
    routine: str,
    x: Value,
    outs: Sequence[ShapedArray],
    in_place: Sequence[tuple[int, int]] = ((0, 0),),
    **options: Option,
) -> list[Value]:
    """Emit a call of a routine on x [.., m, n], whose results are `outs` and, for each matrix, its info.

    Args:
      routine: its name without the letter of the dtype.
      outs: types of the results.
      in_place: as for `call_plainly`; by default the first result takes the place of x.
      options: one letter each, or a number.
    Returns: the results, nan where the routine failed. A singular matrix is no failure of `getrf`.
    Raises: NotImplementedError on other devices than the CPU.
    """
    info = ShapedArray(x.aval.shape[:-2], np.dtype(np.int32))
    x, finite = write_out(f, _finite_matrices, [x])
    *results, status = call_plainly(f, routine, [x], [*outs, info], in_place, **options)
    done = f.compare(status, f.constant(0, info), "GE" if routine == "getrf" else "EQ")
    done = f.op("and", [done, finite], finite.aval)
    return [nan_unless(f, done, y) for y in results]


def _finite_matrices(x: Array) -> tuple[Array, Array]:
    """Zero out batch members with a non-finite element; also return the mask of the untouched ones.

    LAPACK's iterations may not end on such a matrix.
    """
    axes = (x.ndim - 2, x.ndim - 1)
    finite = reduce_and(e.eq(e.sub(x, x), full_like(x, 0)), axes)
    return e.select_n(broadcast_in_dim(finite, x.shape, range(x.ndim - 2)), full_like(x, 0), x), finite


def call_plainly(
    f: Function,
    routine: str,
    operands: Sequence[Value],
    outs: Sequence[ShapedArray],
    in_place: Sequence[tuple[int, int]],
    **options: Option,
) -> list[Value]:
    """Emit a call of a routine as `call` does, without checking its info.

    Args:
      outs: types of all its results.
      in_place: pairs of a result and the operand whose memory it takes.
    """
    if f.platform != "cpu":
        raise NotImplementedError(f"{routine}: LAPACK's routines run on the CPU, and this program is for {f.platform}.")
    compat.load_lapack()
    letter = _LETTERS[operands[0].aval.dtype.name]
    return custom_call(f, f"lapack_{letter}{routine}_ffi", operands, outs, in_place, **options)


def custom_call(
    f: Function,
    target: str,
    operands: Sequence[Value],
    outs: Sequence[ShapedArray],
    in_place: Sequence[tuple[int, int]],
    **options: Option,
) -> list[Value]:
    """Emit a call of a routine by its full name; arrays of the highest rank among the operands are matrices."""
    _load(f, target)
    matrices = max(x.aval.ndim for x in operands)
    written = ", ".join(f"{name} = {_attribute(x)}" for name, x in options.items())
    places = ", ".join(_alias(*pair, len(outs)) for pair in in_place)
    attributes = (
        f'call_target_name = "{target}", api_version = 4 : i32, '
        f"backend_config = {{{written}}}, operand_layouts = {_layouts([x.aval for x in operands], matrices)}, "
        f"result_layouts = {_layouts(outs, matrices)}, output_operand_aliases = [{places}]"
    )
    return f.ops("custom_call", operands, outs, attributes)


def _load(f: Function, routine: str) -> None:
    if f.platform != "cpu":
        raise NotImplementedError(f"{routine}: LAPACK's routines run on the CPU, and this program is for {f.platform}.")
    compat.load_lapack()


def _attribute(x: Option) -> str:
    if isinstance(x, str):
        return f"{ord(x)} : ui8"
    return str(x).lower() if isinstance(x, bool) else f"{x} : i32"


def _alias(result: int, operand: int, results: int) -> str:
    place = "" if results == 1 else result
    return (
        f"#stablehlo.output_operand_alias<output_tuple_indices = [{place}], operand_index = {operand}, "
        "operand_tuple_indices = []>"
    )


def variant(aval: ShapedArray, of_real: str, of_complex: str) -> str:
    """Choose between the real and the complex name of a LAPACK routine, by dtype."""
    return of_complex if dtypes.is_complex(aval.dtype) else of_real


def identity(f: Function, aval: ShapedArray) -> Value:
    """Emit the vectors of matrices without elements: the identity if they are completed to a basis, or no elements."""
    if not aval.size:
        return f.constant(0, aval)

    def matrix() -> Array:
        square = eye(*aval.shape[-2:], dtype=aval.dtype)
        return broadcast_in_dim(square, aval.shape, (aval.ndim - 2, aval.ndim - 1))

    return write_out(f, matrix, [])[0]


def _layouts(avals: Sequence[ShapedArray], matrices: int) -> str:
    """Print the layouts of operands: column-major for arrays of rank `matrices`, else row-major."""
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
