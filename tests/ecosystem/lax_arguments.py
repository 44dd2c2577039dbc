"""Arguments for functions of `lax`, ordinary and odd, by family: elementwise, reductions, shapes, slices, contractions.

NumPy's arrays stand for arrays; `Made` for what each library has in its own way, such as a function or an enumeration.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

INTEGERS = "int8 int32 uint8 uint32".split()
FLOATS = "float16 bfloat16 float32".split()
DTYPES = ["bool", *INTEGERS, *FLOATS, "complex64"]
MIXED = ["bool", "int32", "bfloat16", "float32", "complex64"]
NUMBERS = (2, 2.5, True, 1j, -1, 300)


class Made(NamedTuple):
    """What a library makes for itself: `make` of its lax and its numpy, shown as `text`."""

    text: str
    make: Callable[[Any, Any], Any]


class Call(NamedTuple):
    """A function of lax by its name, and its arguments."""

    name: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = MappingProxyType({})


def from_lax(path: str) -> Made:
    return Made(path, lambda lax, _: _at(lax, path))


def _at(value: Any, path: str) -> Any:
    for part in path.split("."):
        value = getattr(value, part)
    return value


def weak(value: Any) -> Made:
    """A weakly typed array."""
    return Made(f"weak({value})", lambda _, numpy: numpy.asarray(value))


def dtype_of(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name, name))


def ramp(dtype: str, *shape: int) -> np.ndarray[Any, Any]:
    """0, 1, 2, ...; of booleans true, false, true, ..."""
    values = np.arange(int(np.prod(shape))).reshape(shape)
    return values % 2 == 0 if dtype == "bool" else values.astype(dtype_of(dtype))


def special(dtype: str) -> np.ndarray[Any, Any]:
    """Numbers at the edges of a dtype: zeros, small, large, infinite, nan."""
    if dtype == "bool":
        return np.array([True, False])
    if dtype in INTEGERS:
        least, greatest = (int(v) for v in (np.iinfo(dtype).min, np.iinfo(dtype).max))
        return np.array([0, 1, 2, 3, 7, 31, greatest, greatest - 1, least, least + 1, *([-1, -3] * (least < 0))], dtype)
    if dtype == "complex64":
        parts = [0.0, -0.0, 1.0, -2.5, 30.0, np.inf, 1e-3]
        return np.array([complex(x, y) for x in parts for y in parts], dtype)
    info = ml_dtypes.finfo(dtype_of(dtype))
    values = [0, -0.0, 1, -1, 0.5, -2.5, 3, 1e3, -30, 0.1, np.inf, -np.inf, np.nan, 0.99, -0.99]
    return np.array([*values, float(info.max), float(info.tiny), float(info.eps)]).astype(dtype_of(dtype))


# ---- elementwise ---------------------------------------------------------------------------------------------

UNARY = """
abs acos acosh asin asinh atan atanh bessel_i0e bessel_i1e bitwise_not cbrt ceil clz conj cos cosh digamma erf erf_inv
erfc exp exp2 expm1 floor imag is_finite lgamma log log1p logistic neg population_count real reciprocal round rsqrt sign
sin sinh sqrt square stop_gradient tan tanh
""".split()
BINARY = """
add atan2 bitwise_and bitwise_or bitwise_xor complex div eq ge gt igamma igammac le lt max min mul mulhi ne nextafter
pow polygamma rem shift_left shift_right_arithmetic shift_right_logical sub zeta
""".split()
COMPARISONS = "eq ge gt le lt ne".split()


def unary() -> Iterator[Call]:
    for name, dtype in itertools.product(UNARY, DTYPES):
        yield Call(name, (special(dtype),))
        yield Call(name, (ramp(dtype, 0, 2),))
    for name, x in itertools.product(UNARY, (*NUMBERS, weak(2.5), weak(2), [1, 2], None, "a")):
        yield Call(name, (x,))


def conversions() -> Iterator[Call]:
    for dtype in DTYPES:
        x = special(dtype)
        for other in (*DTYPES, "int", "float"):
            yield Call("convert_element_type", (x, other))
            yield Call("bitcast_convert_type", (ramp(dtype, 2, 4), other))
        for way in ("AWAY_FROM_ZERO", "TO_NEAREST_EVEN"):
            yield Call("round", (x, from_lax(f"RoundingMethod.{way}")))
        for power in (0, 1, 2, 3, -1, 7, 2.5):
            yield Call("integer_pow", (x, power))
        for bits in ((5, 10), (8, 7), (1, 0), (0, 3), (-1, 3), (11, 52)):
            yield Call("reduce_precision", (x, *bits))
        for number in (*NUMBERS, np.nan, np.inf):
            yield Call("convert_element_type", (number, dtype))


def binary() -> Iterator[Call]:
    for name, dtype in itertools.product(BINARY, DTYPES):
        x = special(dtype)[:: 3 if dtype == "complex64" else 1]
        yield Call(name, (np.repeat(x, len(x)), np.tile(x, len(x))))
        for y in (2, 2.5, True, 1j, 300, weak(2.0)):
            yield Call(name, (ramp(dtype, 3), y))
        yield Call(name, (2.5, ramp(dtype, 3)))
    for name in BINARY:
        for one, other in itertools.permutations(MIXED, 2):
            yield Call(name, (ramp(one, 3), ramp(other, 3)))
        for x, y in itertools.product((2, 2.5, True, weak(2)), repeat=2):
            yield Call(name, (x, y))
        for x, y in [
            ((3,), (1,)),
            ((3,), ()),
            ((2, 3), (3,)),
            ((0,), (1,)),
            ((2, 3), (2, 1)),
            ((3,), (4,)),
            ((1,), (1, 1)),
        ]:
            yield Call(name, (ramp("float32", *x), ramp("float32", *y)))


def choices() -> Iterator[Call]:
    for dtype in DTYPES:
        x = special(dtype)
        low, high = np.zeros((), x.dtype), np.ones((), x.dtype)
        for bounds in (
            (low, high),
            (high, low),
            (0, 1),
            (0.0, 1.5),
            (np.zeros_like(x), high),
            (np.zeros(1, x.dtype), high),
        ):
            yield Call("clamp", (bounds[0], x, bounds[1]))
        for which in (
            True,
            np.array(True),
            np.arange(len(x)) % 2 == 0,
            1,
            np.arange(len(x)) % 2,
            np.ones(1, bool),
            1.0,
        ):
            for other in (x, 0, 0.0, weak(1.0), np.zeros(x.shape, np.float16)):
                yield Call("select", (which, x, other))
                yield Call("select_n", (which, x, other))
        cases = [np.full(4, k).astype(x.dtype) for k in (0, 1, 1)]
        for index in (np.int32([0, 1, 2, 0]), np.int32([0, -1, 2, 5]), np.int8([0, 1, 2, 0]), np.uint32([0, 1, 2, 0])):
            yield Call("select_n", (index, *cases))
    for a, b, x in itertools.product(
        (0.1, 1.0, 2.5, 0.0, -1.0, np.inf), (0.1, 30.0, 0.0, np.nan), (0.0, 0.3, 1.0, 1.5)
    ):
        yield Call("betainc", tuple(np.float32([v]) for v in (a, b, x)))


# ---- reductions ----------------------------------------------------------------------------------------------


def reductions() -> Iterator[Call]:
    axes = ((), (0,), (1,), (0, 1), (-1,), (0, 0), (2,), [1], 0, None, (0.0,))
    for name in "and max min or prod sum xor".split():
        for dtype in DTYPES:
            yield Call(f"reduce_{name}", (special(dtype), (0,)))
        for dtype, shape, over in itertools.product(MIXED, ((2, 3), (0, 3), (), (1,)), axes):
            yield Call(f"reduce_{name}", (ramp(dtype, *shape), over))
    for name, dtype in itertools.product(("argmax", "argmin"), DTYPES):
        for axis, index in itertools.product((0, -1, 1, None), ("int32", "uint8", "float32", int)):
            yield Call(name, (special(dtype), axis, index))
            yield Call(name, (ramp(dtype, 0, 3), axis, index))
    for name, dtype in itertools.product("cumsum cumprod cummax cummin cumlogsumexp".split(), DTYPES):
        for options in ({}, {"reverse": True}, {"axis": -1}, {"axis": 1}):
            yield Call(name, (special(dtype),), options)
            yield Call(name, (ramp(dtype, 2, 3),), options)
            yield Call(name, (ramp(dtype, 0, 3),), options)
    operators = [from_lax(name) for name in "add mul max min bitwise_or".split()]
    for dtype, operator in itertools.product(MIXED, operators):
        zero = np.zeros((), dtype_of(dtype))
        for start, over in itertools.product((0, 0.0, zero, True, weak(0.0)), ((0,), (0, 1), (2,), 0)):
            yield Call("reduce", (ramp(dtype, 2, 3), start, operator, over))
        for window in ((2, 2), (1, 3), (5, 2), (2,), 2):
            for padding in ("VALID", "SAME", [(0, 0), (1, 1)]):
                yield Call("reduce_window", (ramp(dtype, 4, 5), zero, operator, window, (1, 2), padding))


def sorting() -> Iterator[Call]:
    for dtype in DTYPES:
        x, places = special(dtype), np.arange(len(special(dtype)), dtype=np.int32)
        for options in ({}, {"dimension": 0}, {"dimension": 1}, {"is_stable": False}, {"num_keys": 2}):
            yield Call("sort", (x,), options)
            yield Call("sort", ((x, places),), options)
        for k in (0, 1, 3, len(x) + 1, -1, 1.5):
            yield Call("top_k", (x, k))
            yield Call("top_k", (ramp(dtype, 2, 3), k), {"axis": 0})
        for axis in (0, -1, 2):
            yield Call("sort_key_val", (ramp(dtype, 2, 3), ramp("int32", 2, 3), axis))


# ---- shapes and slices ---------------------------------------------------------------------------------------


def shapes() -> Iterator[Call]:
    for dtype in MIXED:
        x, unit = ramp(dtype, 2, 3), ramp(dtype, 1, 2, 1)
        for sizes in ((4,), (), (0,), (2, 0), (-1,), 4):
            yield Call("broadcast", (x, sizes))
            yield Call("full", (sizes, 1.5, dtype))
            yield Call("full", (sizes, 2))
            yield Call("full_like", (x, 2, None, sizes))
        for number in (*NUMBERS, np.nan, -1.5):
            yield Call("full", ((2,), number, dtype))
            yield Call("full_like", (x, number))
        for sizes in ((6,), (3, 2), (-1,), (2, 3), (7,), (1, 6, 1), 6, (6.0,)):
            for axes in (None, (1, 0), (0,), (0, 0), (-1, 0)):
                yield Call("reshape", (x, sizes, axes))
        for shape, axes in [
            ((2, 3), (0, 1)),
            ((4, 2, 3), (1, 2)),
            ((3, 2), (1, 0)),
            ((2, 3), (0,)),
            ((2, 4), (0, 1)),
            ((2, 3, 4), (0, 0)),
        ]:
            yield Call("broadcast_in_dim", (x, shape, axes))
        for axes in ((1, 0), (0, 1), (-1, 0), (0, 0), (0,), (2, 0)):
            yield Call("transpose", (x, axes))
        for axes in ((0,), (1,), (0, 1), (), (-1,), (0, 0), (2,), (0, 2), (3,), (-4,)):
            yield Call("rev", (x, axes))
            yield Call("expand_dims", (x, axes))
            yield Call("squeeze", (unit, axes))
        for bounds in ((0, 1), (0, 2), (1, 1), (0, None), (-2, 2), (2, 1), (0, 3)):
            yield Call("collapse", (x, *bounds))
        for counts in ((2, 2), (2,), (), (0, 1), (-1, 1), (2, 2, 2)):
            yield Call("tile", (x, counts))
        for axis in (0, 1, 2, -1, -3):
            yield Call("concatenate", ([x, x], axis))
            yield Call("concatenate", ([x, ramp("float32", 2, 3)], axis))
            yield Call("stack", ([x, x], axis))
            yield Call("unstack", (x, axis))
            yield Call("split", (x, (1, 1), axis))
            yield Call("broadcasted_iota", (dtype, (2, 3), axis))
        for config in itertools.product((0, 2, -1, -5), (0, 1, -1), (0, 2, -1)):
            yield Call("pad", (ramp(dtype, 3), np.zeros((), x.dtype), [config]))
        for value in (*NUMBERS, np.zeros(1, x.dtype)):
            yield Call("pad", (ramp(dtype, 3), value, [(1, 1, 0)]))


def slices() -> Iterator[Call]:
    x = ramp("float32", 3, 4)
    for start, limit, strides in itertools.product(
        ((0, 0), (1, 1), (-1, 0), (3, 4)), ((3, 4), (4, 4), (0, 4)), (None, (2, 1), (0, 1))
    ):
        yield Call("slice", (x, start, limit, strides))
    for start, limit, axis in itertools.product((None, 0, 1, -1, -5, 5), (None, 0, 2, -1, -5, 6), (0, 1, -1, 2)):
        yield Call("slice_in_dim", (x, start, limit), {"axis": axis})
    for index, axis in itertools.product((0, 2, -1, 3, -4, np.int32(1), 1.0), (0, 1, -1, 2)):
        yield Call("index_in_dim", (x, index, axis))
        yield Call("dynamic_index_in_dim", (x, index, axis))
        for update in (ramp("float32", 1, 4), ramp("float32", 4), 1, ramp("float16", 1, 4)):
            yield Call("dynamic_update_index_in_dim", (x, update, index, axis))
            yield Call("dynamic_update_slice_in_dim", (x, update, index, axis))
    starts = (
        (0, 0),
        (1, 1),
        (-1, -1),
        (5, 5),
        (-9, 0),
        np.array([1, 2]),
        (1.0, 2),
        (1,),
        (0, 0, 0),
        (np.uint8(1), np.uint8(2)),
    )
    for start in starts:
        for sizes in ((2, 2), (3, 4), (4, 4), (0, 1), (-1, 1), (2,)):
            yield Call("dynamic_slice", (x, start, sizes))
        for update in (ramp("float32", 2, 2), ramp("float32", 4, 4), ramp("float32", 0, 1), ramp("float16", 1, 1), 1):
            yield Call("dynamic_update_slice", (x, update, start))


def indexing() -> Iterator[Call]:
    rows = Made("rows", lambda lax, _: lax.GatherDimensionNumbers((1,), (0,), (0,)))
    into = Made("into rows", lambda lax, _: lax.ScatterDimensionNumbers((1,), (0,), (0,)))
    double = Made("double", lambda *_: lambda v: v * 2)
    for dtype, indices in itertools.product(DTYPES, ([0, 2, 1], [0, 5, -1], [1, 1, 0])):
        x, update = ramp(dtype, 3, 2), ramp(dtype, 3, 2)
        places = np.int32(indices)[:, None]
        for mode in (None, "clip", "fill", "promise_in_bounds", "drop", "x"):
            yield Call("gather", (x, places, rows, (1, 2)), {"mode": mode})
            for name in "scatter scatter_add scatter_sub scatter_mul scatter_min scatter_max".split():
                yield Call(name, (x, places, update, into), {"mode": mode})
            yield Call("scatter_apply", (x, places, double, into), {"update_shape": (3, 2), "mode": mode})


# ---- contractions and transforms -----------------------------------------------------------------------------


def contractions() -> Iterator[Call]:
    sizes = [((3,), (3,)), ((2, 3), (3,)), ((2, 3), (3, 4)), ((0,), (0,)), ((2, 0), (0, 3)), ((), ()), ((2, 3), (2, 3))]
    for dtype in DTYPES:
        for x, y in sizes:
            yield Call("dot", (ramp(dtype, *x), ramp(dtype, *y)))
        for other in DTYPES:
            yield Call("dot", (ramp(dtype, 2, 3), ramp(other, 3, 2)))
            yield Call("dot", (ramp(dtype, 2, 3), ramp(dtype, 3, 2)), {"preferred_element_type": other})
        for padding, strides in itertools.product(
            ("SAME", "VALID", [(1, 1), (-1, 2)], "x"), ((1, 1), (2, 1), (0, 1), (1,))
        ):
            yield Call("conv_general_dilated", (ramp(dtype, 2, 3, 5, 6), ramp(dtype, 4, 3, 3, 2), strides, padding))
    dims = [(((0,), (0,)), ((), ())), (((1,), (1,)), ((0,), (0,))), (((0, 1), (1, 0)), ((), ())), (((), ()), ((), ()))]
    dims += [(((0,), (0,)), ((0,), (0,))), (((2,), (0,)), ((), ())), (((0,), (0, 1)), ((), ()))]
    for numbers in dims:
        yield Call("dot_general", (ramp("float32", 3, 3), ramp("float32", 3, 3), numbers))
    for groups, batches, shape in [
        (2, 1, (4, 2, 3)),
        (4, 1, (8, 1, 3)),
        (1, 2, (4, 4, 3)),
        (3, 1, (4, 2, 3)),
        (0, 1, (4, 4, 3)),
    ]:
        options = {"feature_group_count": groups, "batch_group_count": batches}
        yield Call("conv_general_dilated", (ramp("float32", 2, 4, 5), ramp("float32", *shape), (1,), "VALID"), options)
    for counts in ([1, 2], [0, 3], [1, 1], [4, 1], [0, 0]):
        yield Call("ragged_dot", (ramp("float32", 3, 2), ramp("float32", 2, 2, 4), np.int32(counts)))
    for kind, dtype in itertools.product("FFT IFFT RFFT IRFFT fft x".split(), ("float32", "complex64", "int32")):
        for shape, lengths in [
            ((4,), (4,)),
            ((4,), (3,)),
            ((2, 4), (2, 4)),
            ((2, 4), ()),
            ((5,), (8,)),
            ((2, 2, 3, 4), (2, 2, 3, 4)),
        ]:
            yield Call("fft", (ramp(dtype, *shape), kind, lengths))


def control_flow() -> Iterator[Call]:
    def python(text: str) -> Made:
        return Made(text, lambda lax, numpy: eval(text, {"lax": lax, "numpy": numpy}))

    for start in (0, 0.0, np.array(0, np.int8), np.array(0, np.float16), True):
        yield Call("while_loop", (python("lambda c: c < 3"), python("lambda c: c + 1"), start))
        for xs in (np.arange(3, dtype=np.float32), np.arange(3, dtype=np.int8), np.zeros(0, np.float32), (), None, 2.0):
            for options in ({}, {"length": 3}, {"reverse": True}, {"unroll": 2}, {"length": -1}):
                yield Call("scan", (python("lambda c, x: (c + x, c * x)"), start, xs), options)
    for low, high in itertools.product((0, 2, -1, np.array(1)), (3, 0, np.array(3), True)):
        for body in ("lambda i, c: c + i", "lambda i, c: i", "lambda i, c: c + 1.5"):
            yield Call("fori_loop", (low, high, python(body), 0))
    for which in (True, 1, 0, 2, 0.5, np.array(1), np.array([True]), None):
        yield Call("cond", (which, python("lambda x: x + 1"), python("lambda x: x * 2"), 3.0))
        yield Call("cond", (which, python("lambda: 1"), python("lambda: 2.0")))
    for which in (0, 1, 2, -1, 7, True, 1.0, np.array([1])):
        yield Call("switch", (which, [python("lambda x: x + 1"), python("lambda x: x * 2")], 3.0))
    for operator, shape in itertools.product(("add", "max", "mul"), ((5,), (0,), (4, 3))):
        for options in ({}, {"reverse": True}, {"axis": -1}, {"axis": 1}):
            yield Call("associative_scan", (from_lax(operator), ramp("float32", *shape)), options)


FAMILIES: Mapping[str, Callable[[], Iterator[Call]]] = {
    f.__name__: f
    for f in (
        *(
            unary,
            conversions,
            binary,
            choices,
            reductions,
            sorting,
            shapes,
            slices,
            indexing,
            contractions,
            control_flow,
        ),
    )
}
