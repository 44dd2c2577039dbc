"""Squares of roots: the derivatives of |x|², sqrt(s)² and norm(x)² are those of x², s and the sum of squares.

A root has a kink, or an infinite derivative, where it is 0; its square is smooth there, which the chain rule loses: it
multiplies by the derivative of the root. So a tracer of forward mode whose value is a root remembers how it was made,
and an even power of it takes its tangent from the square, computed without the root. Values stay as they are.
The square of the result of a call is a call, too. Each square is computed once for a root. Left out: roots that pass a
loop, a branch, a rule of a user or more than `_MOST` operations before the square; roots of equal values, computed
twice; other even functions of a root. Squares of floats of a narrow range are in float32, as
quotients of numbers whose squares overflow are not large; in float32 and wider they may overflow where powers do not.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tapeless.tracer import core, dtypes
from tapeless.tracer.array import Array
from tapeless.tracer.core import Primitive, Trace, Tracer
from tapeless.tracer.primitives import contraction as c
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives import indexing, shape
from tapeless.tracer.primitives.reduction import reduce_sum
from tapeless.tracer.rules import Rules, Table
from tapeless.tracer.types import ShapedArray, aval_of

Args = tuple[Any, ...]
Params = dict[str, Any]


class RootOrigin:
    """The application of a primitive whose result is a root."""

    __slots__ = ("_square", "args", "depth", "params", "primitive")

    def __init__(self, primitive: Primitive, args: Args, params: Params) -> None:
        self.primitive: Final = primitive
        self.args: Final = args
        self.params: Final = params
        self.depth: Final = 1 + max([made.depth for made in map(made_of, args) if made is not None], default=0)
        self._square: Any = None

    def square(self, owner: Trace) -> Any:
        """Compute the square of the result, which belongs to `owner`, without the root."""
        if core.current_trace() is not owner:  # a program that is traced meanwhile computes its own
            return self._squared()
        if self._square is None:
            self._square = self._squared()
        return self._square

    def _squared(self) -> Any:
        return with_range(roots[self.primitive].square(*self.args, **self.params))

    def is_same(self, other: "RootOrigin | None") -> bool:
        """Tell whether another application has the same operands, so that the results are equal."""
        return (
            other is not None
            and (self.primitive, len(self.args), self.params) == (other.primitive, len(other.args), other.params)
            and all(x is y for x, y in zip(self.args, other.args))
        )


class Root(NamedTuple):
    """An entry of `roots`."""

    square: Callable[..., Any]  # of (*args, **params), computes the square of the result without the root
    applies: Callable[[Args, Params], bool]  # whether it does so for these


roots: Final[Table[Root]] = Table(
    "roots", "the square of the result, and when it is known", absent="squares are differentiated by the chain rule"
)
even_powers: Final = Rules(
    "even_powers",
    "rule(*args, **params) -> the same result from the square of the first operand; None if it is no even power",
    absent="it is no even power of an operand",
)


def made_of(x: Any) -> RootOrigin | None:
    """Return how a value was made if it is a root."""
    return getattr(x, "root", None)


def squared(x: Any) -> Any:
    """Compute the square of a value, without the root if it is one; in float32 if its dtype has a narrower range."""
    made = made_of(x)
    return e.square(with_range(x)) if made is None else made.square(x.owner)


def with_range(x: Any) -> Any:
    """Convert x to float32 if its dtype has a narrower range."""
    dtype = aval_of(x).dtype
    return e.convert_element_type(x, _dtype_with_range(dtype)) if _dtype_with_range(dtype) != dtype else x


def _dtype_with_range(dtype: dtypes.DType) -> dtypes.DType:
    return np.dtype(np.float32) if dtypes.is_float(dtype) and dtypes.finfo(dtype).maxexp < 128 else dtype


def root(primitive: Primitive, args: Args, params: Params) -> RootOrigin | None:
    """Describe the application of a primitive if its result is a root, of not too many operations."""
    found = dict.get(roots, primitive)
    if found is None or not found.applies(args, params):
        return None
    made = RootOrigin(primitive, args, params)
    return made if made.depth <= _MOST else None


_MOST: Final = (
    32  # operations that a root is remembered through: squares recur through them, and each keeps its operands
)


def even_power(primitive: Primitive, args: Args, params: Params) -> Any:
    """Compute an even power of a root, the first operand, from the square of that; return None for other results."""
    found = dict.get(even_powers, primitive)
    return None if found is None else found(*args, **params)


# ---- programs ------------------------------------------------------------------------------------------------


def square_of(f: Callable[..., Sequence[Any]], *args: Any) -> Any:
    """Compute the square of the only result of a function, without the root; what has rules of users keeps them."""
    trace = _RootTrace(core.current_trace(), f)
    return core.under_new(trace, lambda: trace.value(squared(f(*args)[0])))


class _RootTrace(Trace):
    """The trace that applies primitives as they are, and remembers how roots were made."""

    __slots__ = ()
    what = "jvp"

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: Params) -> tuple[Any, ...]:
        values = tuple(map(self.value, args))
        outs = core.under(self.parent, self.parent.process, primitive, values, params)
        made = root(primitive, args, params)
        return outs if made is None else tuple([_RootTracer(self, y, made) for y in outs])

    def value(self, x: Any) -> Any:
        """Return the value of a tracer of this trace; others are constants here."""
        return x.value if type(x) is _RootTracer and x.owner is self else x


class _RootTracer(Tracer):
    """A root, and how it was made."""

    __slots__ = ("root", "value")

    def __init__(self, trace: Trace, value: Any, made: RootOrigin) -> None:
        self.owner: Trace = trace
        self.aval: ShapedArray = aval_of(value)
        self.value: Final = value
        self.root: Final = made


# ---- roots ---------------------------------------------------------------------------------------------------


def always(args: Args, params: Params) -> bool:
    """Tell that each result of a primitive is a root."""
    return True


def _of_root(args: Args, params: Params) -> bool:
    return any(made_of(x) is not None for x in args)


def _without_widening(args: Args, params: Params) -> bool:
    """Tell whether a root stays in a format that holds its square if the operand's format does."""
    old, new = aval_of(args[0]).dtype, params["dtype"]
    return _of_root(args, params) and dtypes.is_float(new) and dtypes.bits_of(new) <= dtypes.bits_of(old)


def _squared_modulus(x: Any) -> Any:
    if dtypes.is_complex(aval_of(x).dtype):
        return e.add(e.square(e.real(x)), e.square(e.imag(x)))
    return squared(x)


def _squared_product(x: Any, y: Any) -> Any:
    """Compute (x y)² as x² y y if x is a root: the product of x² and y², which may overflow, is not formed."""
    if made_of(x) is not None and made_of(y) is not None:
        return e.mul(squared(x), squared(y))
    r, factor = (x, with_range(y)) if made_of(x) is not None else (y, with_range(x))
    return e.mul(e.mul(squared(r), factor), factor)


def _squared_quotient(x: Any, y: Any) -> Any:
    if made_of(y) is not None:
        return e.div(squared(x), squared(y))
    factor = with_range(y)
    return e.div(e.div(squared(x), factor), factor)


def _squared_conversion(x: Any, *, dtype: dtypes.DType, weak_type: bool) -> Any:
    return e.convert_element_type_p.bind(squared(x), dtype=_dtype_with_range(dtype), weak_type=weak_type)[0]


def _squared_gather(x: Any, indices: Any, *, fill_value: Any, **params: Any) -> Any:
    """Read from squares; what is read outside of the array is squared, too."""
    fill = None if fill_value is None else fill_value**2
    return indexing.gather_p.bind(squared(x), indices, fill_value=fill, **params)[0]


def _moved(primitive: Primitive, data: slice = slice(None)) -> None:
    """Register a primitive that moves the elements of the operands in `data`."""

    def square(*args: Any, **params: Any) -> Any:
        moving = [*args]
        moving[data] = map(squared, moving[data])
        return primitive.bind(*moving, **params)[0]

    roots[primitive] = Root(square, _of_root)


roots[e.abs_p] = Root(_squared_modulus, always)
roots[e.sqrt_p] = roots[e.root_of_squares_p] = Root(lambda x: x, always)
roots[e.neg_p] = Root(squared, _of_root)
roots[e.mul_p] = Root(_squared_product, _of_root)
roots[e.div_p] = Root(_squared_quotient, _of_root)
roots[e.convert_element_type_p] = Root(_squared_conversion, _without_widening)
for _primitive in (
    e.copy_p, shape.reshape_p, shape.transpose_p, shape.rev_p, shape.slice_p, shape.broadcast_in_dim_p,
    shape.concatenate_p, shape.pad_p,
):  # fmt: skip
    _moved(_primitive)
roots[indexing.gather_p] = Root(_squared_gather, _of_root)
_moved(indexing.dynamic_slice_p, slice(0, 1))
_moved(e.select_n_p, slice(1, None))

# ---- even powers ---------------------------------------------------------------------------------------------


def _power(x: Any, half: int) -> Any:
    square, dtype = squared(x), aval_of(x).dtype
    found = square if half == 1 else e.integer_pow(square, half)
    return found if aval_of(found).dtype == dtype else e.convert_element_type(found, dtype)


def _integer_pow(x: Any, *, y: int) -> Any:
    return _power(x, y // 2) if y > 0 and y % 2 == 0 else None


def _pow(x: Any, y: Any) -> Any:
    """Raise to a power that is known while the program is traced."""
    if isinstance(y, Array) or np.ndim(y):
        return None
    exponent = float(np.real(y))
    return _power(x, int(exponent) // 2) if 0 < exponent <= 64 and exponent % 2 == 0 and exponent == y else None


def _mul(x: Any, y: Any) -> Any:
    return _power(x, 1) if _are_equal(x, y) else None


def _dot_general(x: Any, y: Any, *, dimension_numbers: Any, **params: Any) -> Any:
    """Contract a root with itself, if no axis is left over."""
    (axes, same), (batch, aligned) = dimension_numbers
    is_square = axes == same and batch == aligned == tuple(range(len(batch)))
    is_whole = len(axes) + len(batch) == aval_of(x).ndim
    is_exact = params.get("preferred_element_type") in (None, aval_of(x).dtype)
    return reduce_sum(_power(x, 1), axes) if is_square and is_whole and is_exact and _are_equal(x, y) else None


def _are_equal(x: Any, y: Any) -> bool:
    made = made_of(x)
    return x is y or (made is not None and made.is_same(made_of(y)))


even_powers[e.square_p] = lambda x: _power(x, 1)
even_powers[e.integer_pow_p] = _integer_pow
even_powers[e.pow_p] = _pow
even_powers[e.mul_p] = _mul
even_powers[c.dot_general_p] = _dot_general
