"""Emission of calls of LAPACK, for the decompositions that StableHLO lacks, and of its counterparts for GPUs.

These are the kernels of the CUDA plugin: cuSOLVER's, and for `geev` and `geqp3` hybrid ones, which call LAPACK on the
host, or MAGMA where it is installed. Matrices are in column-major order, and all leading axes are batch axes. Where a
routine fails (its info is not 0), its results are nan.
"""

from collections.abc import Sequence
from math import prod

import numpy as np

from tapeless.lowering.emit import write_out
from tapeless.lowering.hlo import Function, Value
from tapeless.lowering.xla_workarounds import compat
from tapeless.tracer import dtypes
from tapeless.tracer.array import Array
from tapeless.tracer.numpy.matrices import eye
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives.reduction import reduce_and
from tapeless.tracer.primitives.shape import broadcast_in_dim, full_like
from tapeless.tracer.types import ShapedArray

_LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
_OF_CUSOLVER = frozenset("geqrf gesvd gesvdj getrf orgqr potrf syevd sytrd".split())
Option = str | int | bool  # a letter, which is a number of 8 bits, or a word; a number; or a flag


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
      options: as the platform's routine takes them.
    Returns: the results, nan where the routine failed. A singular matrix is no failure of `getrf`.
    Raises: NotImplementedError if the platform lacks the routine.
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
    return custom_call(f, _target(f, routine, operands[0].aval), operands, outs, in_place, None, **options)


def _target(f: Function, routine: str, aval: ShapedArray) -> str:
    """Return the full name of a routine on the platform of a program."""
    if f.platform == "cpu":
        return f"lapack_{_LETTERS[aval.dtype.name]}{routine}_ffi"
    if f.platform == "gpu" and routine in _OF_CUSOLVER:
        return f"cusolver_{routine}_ffi"
    if f.platform == "gpu" and routine == "geqp3":
        return "cuhybrid_geqp3"
    if f.platform == "gpu" and routine == "geev":
        return f"cuhybrid_eig_{'comp' if dtypes.is_complex(aval.dtype) else 'real'}"
    raise f.unsupported(f"{f.operation}: LAPACK's {routine} runs on the CPU, and no kernel computes the same here")


def custom_call(
    f: Function,
    target: str,
    operands: Sequence[Value],
    outs: Sequence[ShapedArray],
    in_place: Sequence[tuple[int, int]],
    rank_of_matrices: int | None = None,
    **options: Option,
) -> list[Value]:
    """Emit a call of a routine by its full name; by default arrays of the operands' highest rank are its matrices."""
    if f.platform == "cpu" or target.startswith("cuhybrid"):
        _check_is_there(f, target)
    matrices = max(x.aval.ndim for x in operands) if rank_of_matrices is None else rank_of_matrices
    written = ", ".join(f"{name} = {_attribute(x)}" for name, x in options.items())
    places = ", ".join(_alias(*pair, len(outs)) for pair in in_place)
    attributes = (
        f'call_target_name = "{target}", api_version = 4 : i32, '
        f"backend_config = {{{written}}}, operand_layouts = {_layouts([x.aval for x in operands], matrices)}, "
        f"result_layouts = {_layouts(outs, matrices)}, output_operand_aliases = [{places}]"
    )
    is_batch = any(x.aval.ndim == matrices and prod(x.aval.shape[:-2]) > 1 for x in operands)
    return (f.in_turn if is_batch else f.ops)("custom_call", operands, outs, attributes)


def _check_is_there(f: Function, target: str) -> None:
    """Load LAPACK. Raises: NotImplementedError, with the user's line, if jaxlib lacks a routine."""
    routines = compat.load_lapack(f.platform)
    if routines and target not in routines:
        release = compat.jaxlib_version()
        raise f.unsupported(
            f"{f.operation}: jaxlib {release} lacks {target}", "Install a release of jaxlib that has it."
        )


def _attribute(x: Option) -> str:
    if isinstance(x, str):
        return f"{ord(x)} : ui8" if len(x) == 1 else f'"{x}"'
    return str(x).lower() if isinstance(x, bool) else f"{x} : i32"


def _alias(result: int, operand: int, results: int) -> str:
    place = "" if results == 1 else result
    return (
        f"#stablehlo.output_operand_alias<output_tuple_indices = [{place}], operand_index = {operand}, "
        "operand_tuple_indices = []>"
    )


def variant(f: Function, aval: ShapedArray, of_real: str, of_complex: str) -> str:
    """Choose between the real and the complex name of a routine, by dtype; kernels for GPUs have the real one."""
    return of_complex if dtypes.is_complex(aval.dtype) and f.platform == "cpu" else of_real


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
