"""Promotion and broadcasting of the operands of NumPy functions: one dtype, one shape.

Primitives want equal dtypes, and equal shapes or rank 0. Bare numbers become constants of the other operand's
dtype, weak types give way, shapes are broadcast explicitly. Two arrays of one type, or an array and a number that
does not widen it, are by far the most frequent and return at once. Source: "Type promotion semantics" of JAX.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeAlias, TypeVar, overload

import numpy as np

from tapeless.tracer import core, dtypes, source
from tapeless.tracer.advice.called_functions import find_called, given_arrays, prefix_called
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import Primitive
from tapeless.tracer.errors import ConcretizationTypeError
from tapeless.tracer.primitives.elementwise import convert_element_type_p, copy_p
from tapeless.tracer.primitives.operands import constant, convert_number, known_elements
from tapeless.tracer.primitives.shape import broadcast_in_dim_p
from tapeless.tracer.settings.config import config
from tapeless.tracer.types import (
    ShapedArray,
    aval_of,
    by_protocol,
    check_unmasked,
    conversion_hint,
    exact,
    incoming,
    incoming_number,
    is_arraylike,
)

Operand: TypeAlias = Array | np.ndarray[Any, Any]  # ours, or a constant of the program
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
_NUMBERS: dict[type, int] = {bool: 0, int: 1, float: 2, complex: 3}


# ---- applying a primitive ------------------------------------------------------------------------------------


def apply(name: str, primitive: Primitive, x: ArrayLike) -> Array:
    """Apply a primitive of one operand, of any dtype that the primitive takes."""
    if not isinstance(x, Array):
        x = operand(name, x)
    return primitive.bind(x)[0]


def apply_inexact(name: str, primitive: Primitive, x: ArrayLike) -> Array:
    """Apply a primitive to one floating-point or complex operand; integers are converted."""
    return primitive.bind(inexact(name, x))[0]


def apply2(name: str, primitive: Primitive, x: ArrayLike, y: ArrayLike, on_bool: Primitive | None = None) -> Array:
    """Apply a primitive to two operands, promoted and broadcast; another primitive to booleans."""
    if isinstance(x, Array) and isinstance(y, Array):
        if x.aval is not y.aval:
            if x.aval.dtype != y.aval.dtype and (x.aval.weak_type or y.aval.weak_type):
                _check_weak(name, x, y)
            if x.aval.ndim != y.aval.ndim:
                check_ranks(name, x, y)
            return _apply_mixed(x, y, name=name, primitive=primitive, on_bool=on_bool)
    else:
        x, y = promote_operands(name, x, y)
    if on_bool is not None and x.dtype.kind == "b":
        primitive = on_bool
    return primitive.bind(x, y)[0]


def apply2_inexact(name: str, primitive: Primitive, x: ArrayLike, y: ArrayLike) -> Array:
    """Apply a primitive to two floating-point or complex operands, promoted and broadcast; integers are converted."""
    return primitive.bind(*promoted_inexact(name, x, y))[0]


@core.compound
def _apply_mixed(x: Array, y: Array, *, name: str, primitive: Primitive, on_bool: Primitive | None) -> Array:
    operands = _promoted(name, x, y)
    return (on_bool if on_bool is not None and operands[0].dtype.kind == "b" else primitive).bind(*operands)[0]


# ---- operands ------------------------------------------------------------------------------------------------


def check_operands(name: str, *xs: Any) -> None:
    """Raise TypeError for the first of `xs` that is neither an array nor a number."""
    for i, x in enumerate(xs):
        if not isinstance(x, Array) and not is_arraylike(x):
            raise TypeError(
                f"{find_called(name)}: argument {i} must be an array or a number, not {type(x).__name__}: {x!r:.80}."
                f"{conversion_hint(x)}"
            )


def refuse_keys(name: str, *xs: Any) -> None:
    """Raise TypeError in the name of `name` if any of the arrays or numbers `xs` holds keys."""
    core.refuse_keys(name, *map(aval_of, xs))


def _common_dtype(name: str, *xs: Any) -> tuple[np.dtype[Any], bool]:
    """Return `dtypes.result_type`, with errors in the name of `name` where keys are among the operands."""
    try:
        return dtypes.result_type(*xs)
    except TypeError as error:
        refusal = error
    refuse_keys(name, *xs)
    raise refusal


def check_no_out(name: str, out: Any) -> None:
    """Raise NotImplementedError if there is an array to write the result to, TypeError if `out` stands for keepdims."""
    if isinstance(out, bool):
        raise TypeError(
            f"{name}: {out} stands in the place of out. If it says whether axes stay, name it: keepdims=True."
        )
    if out is not None:
        raise NotImplementedError(f"{name}: arrays are never written to: leave out=None and use the result.")


@overload
def operand(name: str, x: Array) -> Array: ...
@overload
def operand(name: str, x: Any) -> Operand: ...
def operand(name: str, x: Any) -> Operand:
    """Return x if x is an array, or a number with its dtype spelled out. Raises: TypeError if x is neither."""
    if isinstance(x, Array):
        return x
    x = by_protocol(x)
    if isinstance(x, Array):
        return x
    check_operands(name, x)
    x = incoming_number(x)
    return x if isinstance(x, np.ndarray) else constant(x, aval_of(x))


def as_array(x: ArrayLike) -> Array:
    """Convert x to an array: its elements go to the device, or into the program being traced."""
    if isinstance(x, Array) or isinstance(x := by_protocol(x), Array):
        return x
    x = incoming_number(x)
    return copy_p.bind(x if isinstance(x, np.ndarray) else constant(x, aval_of(x)))[0]


def array_operand(name: str, x: Any) -> Array:
    """Convert x to an array. Raises: TypeError if x is neither an array nor a number."""
    if isinstance(x, Array):
        return x
    x = by_protocol(x)
    check_operands(name, x)
    if not (config.debug_nans or config.debug_infs):
        return as_array(x)
    with config.scope(debug_nans=False, debug_infs=False):  # an operand that holds nan is no result that holds it
        return as_array(x)


def number_operand(name: str, x: Any) -> Array:
    """Convert x to an array. Raises: TypeError if x is neither an array nor a number, or holds keys."""
    operand = array_operand(name, x)
    if dtypes.is_key(operand.aval.dtype):
        core.refuse_keys(name, operand.aval)
    return operand


@overload
def cast(x: Array, dtype: np.dtype[Any], weak_type: bool = False) -> Array: ...
@overload
def cast(x: Any, dtype: np.dtype[Any], weak_type: bool = False) -> Operand: ...
def cast(x: Any, dtype: np.dtype[Any], weak_type: bool = False) -> Operand:
    """Convert the elements of x to `dtype`; a number becomes a constant of `dtype`.

    Raises: OverflowError for a number, or weak integers, known not to fit. If they are not known, the conversion is
      written down as one between weak types, for `narrowing` to find: the arguments are checked in every call.
    """
    if isinstance(x, Array):
        aval = x.aval
        if aval.dtype == dtype:
            return x
        if aval.weak_type and not check_fits(x, dtype) and not weak_type:
            x = convert_element_type_p.bind(x, dtype=dtype, weak_type=True)[0]
        return convert_element_type_p.bind(x, dtype=dtype, weak_type=weak_type)[0]
    if isinstance(x, np.ndarray):
        taken = incoming(x)
        if taken.dtype == dtype:
            return taken
        if weak_type:
            return convert_element_type_p.bind(taken, dtype=dtype, weak_type=True)[0]
        return exact(taken.astype(dtype))
    return constant(x, ShapedArray((), dtype, weak_type))


def check_fits(x: Any, dtype: np.dtype[Any]) -> bool:
    """Tell whether all elements of x surely fit an integer `dtype`. Raises: OverflowError if one is known not to."""
    if dtypes.holds(dtype, x.dtype):
        return True
    known = known_elements(x)
    if known is not None and known.size:
        dtypes.check_fits(int(known.min()), dtype)
        dtypes.check_fits(int(known.max()), dtype)
    return known is not None


def _check_weak(name: str, x: Array, y: Array) -> None:
    """Check that weak integers, whose values are known, fit the common dtype."""
    dtype, _ = _common_dtype(name, x, y)
    for operand in (x, y):
        if operand.aval.weak_type:
            check_fits(operand, dtype)


def convert_fitting(x: Any, dtype: np.dtype[Any]) -> Operand:
    """Convert x to `dtype`. Raises: OverflowError for integers, weak or not, that are known not to fit."""
    x = by_protocol(x)
    if not isinstance(x, (Array, np.ndarray)):
        return convert_number(x, dtype)
    check_fits(x, dtype)
    return cast(x, dtype)


@overload
def inexact(name: str, x: Array) -> Array: ...
@overload
def inexact(name: str, x: Any) -> Operand: ...
def inexact(name: str, x: Any) -> Operand:
    """Convert x to floating-point or complex elements: integers and booleans by `dtypes.inexact_of`."""
    x = x if isinstance(x, Array) else by_protocol(x)
    if isinstance(x, Array):
        aval = x.aval
        if dtypes.is_inexact(aval.dtype):
            return x
        core.refuse_keys(name, aval)
    else:
        check_operands(name, x)
        aval = aval_of(x)
    return cast(x, dtypes.inexact_of(aval.dtype), aval.weak_type)


def promote_operands(name: str, x: Any, y: Any) -> tuple[Operand, Operand]:
    """Convert two operands to their common dtype and shape, up to rank 0. Raises: TypeError, ValueError naming both."""
    if isinstance(x, Array):
        if isinstance(y, Array):
            if x.aval is y.aval:
                return x, y
        elif _takes(x.aval, y):
            return x, constant(y, x.aval)
        elif type(y) is np.ndarray and _is_of(x.aval, y):
            return x, y
    elif isinstance(y, Array):
        if _takes(y.aval, x):
            return constant(x, y.aval), y
        if type(x) is np.ndarray and _is_of(y.aval, x):
            return x, y
    x, y = by_protocol(x), by_protocol(y)
    check_operands(name, x, y)
    check_ranks(name, x, y)
    try:
        return _promoted(name, x, y)
    except (TypeError, ValueError) as error:
        source.name_line(error)
        raise


def _takes(aval: ShapedArray, number: Any) -> bool:
    """Tell whether a number of Python's surely takes the type of an array; among weak ones the widest counts."""
    kind = type(number)
    return kind in _NUMBERS and _NUMBERS[kind] <= dtypes.rank(aval.dtype) and not aval.weak_type


def _is_of(aval: ShapedArray, x: np.ndarray[Any, Any]) -> bool:
    """Tell whether an array of NumPy has a type as it is."""
    taken = x.dtype == aval.dtype and (config.numpy_bits == 64 or x.dtype.itemsize < 8)
    return taken and x.shape == aval.shape and not aval.weak_type


def _promoted(name: str, x: Any, y: Any) -> tuple[Operand, Operand]:
    dtype, weak = _common_dtype(name, x, y)
    return _broadcast2(name, cast(x, dtype, weak), cast(y, dtype, weak))


def require_ordered(x: Operand, name: str) -> Operand:
    """Return x, which has a sign. Raises: TypeError for complex numbers, which have none."""
    if dtypes.is_complex(aval_of(x).dtype):
        raise TypeError(
            f"{find_called(name)}: complex numbers have no sign, and x is {aval_of(x)}. "
            "Take tnp.real(x), or tnp.abs(x)."
        )
    return x


def promoted_inexact(name: str, x: Any, y: Any) -> tuple[Operand, Operand]:
    """Convert two operands to their common floating-point or complex dtype, and to their common shape, up to rank 0."""
    x, y = promote_operands(name, x, y)
    aval = aval_of(x)
    if dtypes.is_inexact(aval.dtype):
        return x, y
    core.refuse_keys(name, aval)
    dtype, weak = dtypes.inexact_of(aval.dtype), aval.weak_type and aval_of(y).weak_type
    return cast(x, dtype, weak), cast(y, dtype, weak)


@overload
def promoted_dtypes(name: str, *xs: Array) -> Sequence[Array]: ...
@overload
def promoted_dtypes(name: str, *xs: Any) -> Sequence[Operand]: ...
def promoted_dtypes(name: str, *xs: Any) -> Sequence[Operand]:
    """Convert operands to their common dtype, their shapes as they are."""
    xs = tuple(map(by_protocol, xs))
    check_operands(name, *xs)
    dtype, weak = _common_dtype(name, *xs)
    return [cast(x, dtype, weak) for x in xs]


@overload
def promoted_inexact_dtypes(name: str, *xs: Array) -> Sequence[Array]: ...
@overload
def promoted_inexact_dtypes(name: str, *xs: Any) -> Sequence[Operand]: ...
def promoted_inexact_dtypes(name: str, *xs: Any) -> Sequence[Operand]:
    """Convert operands to their common floating-point or complex dtype, their shapes as they are."""
    xs = tuple(map(by_protocol, xs))
    check_operands(name, *xs)
    refuse_keys(name, *xs)
    dtype, weak = dtypes.result_type(*xs)
    return [cast(x, dtypes.inexact_of(dtype), weak) for x in xs]


def as_weak_as(found: Array, *operands: Any) -> Array:
    """Make a result weakly typed if all operands are: beside an array it takes the array's dtype, as they do."""
    if found.aval.weak_type or not all(aval_of(by_protocol(x)).weak_type for x in operands):
        return found
    return convert_element_type_p.bind(found, dtype=found.dtype, weak_type=True)[0]


def strong(x: Array) -> Array:
    """Make a weakly typed array strong: results of reductions are, as in JAX."""
    return convert_element_type_p.bind(x, dtype=x.dtype, weak_type=False)[0] if x.aval.weak_type else x


def mixing_inside(f: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Decorate a public function that mixes dtypes inside: its operands alone follow `config.numpy_dtype_promotion`.

    Where that is "strict", floating-point operands must be of one dtype; inside promotion is as usual, in functions
    that the caller gives, too.
    """

    @functools.wraps(f)
    def run(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        if config.numpy_dtype_promotion != "strict":
            return f(*args, **kwargs)
        operands = [x for x in (*args, *kwargs.values()) if isinstance(x, (Array, np.ndarray))]
        floats = [x for x in operands if dtypes.is_inexact(aval_of(x).dtype)]
        if floats:
            dtypes.result_type(*floats)
        with config.scope(numpy_dtype_promotion="standard"):
            return f(*args, **kwargs)

    return run


def promoted_all(name: str, *xs: Any) -> Sequence[Operand]:
    """Convert operands to their common dtype and broadcast them to their common shape, except those of rank 0."""
    converted = promoted_dtypes(name, *xs)
    check_ranks(name, *converted)
    return broadcast(name, *converted)


# ---- shapes --------------------------------------------------------------------------------------------------


def _broadcast2(name: str, x: Any, y: Any) -> tuple[Operand, Operand]:
    s, t = x.shape, y.shape
    if s == t or not s or not t:
        return x, y
    shape = common_shape(name, s, t)
    return broadcast_to_shape(x, shape), broadcast_to_shape(y, shape)


def check_ranks(name: str, *xs: Any) -> None:
    """Warn of the user's operands with different numbers of axes, numbers aside, or raise, as the config says.

    Raises: ValueError naming their shapes.
    """
    how = config.numpy_rank_promotion
    arrays = [shape for x in xs if (shape := tuple(np.shape(x)))]
    if how == "allow" or len({*map(len, arrays)}) < 2 or not given_arrays(name, *arrays):
        return
    shapes = " and ".join(format_shape(np.shape(x)) for x in xs)
    called = find_called(name)
    message = f"{called}: operands of shapes {shapes} differ in their numbers of axes, and config.numpy_rank_promotion"
    if how == "raise":
        raise ValueError(f"{message} is 'raise'.\n  Reshape them to one number of axes, or set it to 'allow'.")
    source.warn(f"{message} is 'warn'.")


def broadcast(name: str, *xs: Any) -> list[Operand]:
    """Broadcast operands to their common shape, except those of rank 0."""
    shape = common_shape(name, *[x.shape for x in xs])
    return [broadcast_to_shape(x, shape) if x.shape else x for x in xs]


def common_shape(name: str, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that arrays of these shapes broadcast to. Raises: ValueError naming them all."""
    ndim = max(map(len, shapes), default=0)
    padded = [(1,) * (ndim - len(s)) + tuple(s) for s in shapes]
    found = []
    for sizes in zip(*padded, strict=True):
        wide = {n for n in sizes if n != 1}
        if len(wide) > 1:
            given = " and ".join(map(format_shape, shapes))
            raise ValueError(prefix_called(f"{name}: shapes {given} do not broadcast."))
        found.append(wide.pop() if wide else 1)
    return tuple(found)


def broadcasts_to(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Tell whether an array of one shape broadcasts to the other."""
    pairs = zip(shape[::-1], wanted[::-1], strict=False)
    return len(shape) <= len(wanted) and all(n in (1, k) for n, k in pairs)


def format_shape(shape: tuple[int, ...]) -> str:
    """Write a shape: `(3,4)`; `(7,)`."""
    return f"({','.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def broadcast_to_shape(x: Any, shape: tuple[int, ...]) -> Any:
    """Broadcast x to `shape`, its axes the last ones; x itself if it has this shape."""
    own = x.shape
    if own == shape:
        return x
    n = len(shape)
    return broadcast_in_dim_p.bind(x, shape=shape, dims=tuple(range(n - len(own), n)))[0]


# ---- values that must be known -------------------------------------------------------------------------------


def concrete(name: str, x: Any, advice: str) -> np.ndarray[Any, Any]:
    """Return the elements of x. Raises: ConcretizationTypeError with `advice` if x is traced; TypeError for keys."""
    check_unmasked(x, find_called(name) + ": an argument")
    known = known_elements(x)
    if known is None:
        check_operands(name, x)
        refuse_keys(name, x)
        raise ConcretizationTypeError(
            f"{find_called(name)}: the shape depends on values, the elements of a traced array, {x.aval}.{x.origin()}\n"
            f"  {advice}" + (f"\n  At {place}" if (place := source.describe_here()) else "")
        )
    return known
