"""Compare calls with array_api_strict's: `python -m tests.ecosystem.array_api_calls [MODULE [FAMILY]]`.

MODULE is tapeless.numpy if none is given, else another namespace, such as jax.numpy; FAMILY the beginning of the name
of one of `FAMILIES` without "of_", if not all are to be run. Calls that array_api_strict refuses, or warns of imaginary
parts that it drops, are not of the standard, and are left out. Of the others it prints those that raise, or whose
results have other types, shapes, dtypes or values, and how many there are.
"""

import importlib
import itertools
import operator
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import array_api_strict as strict
import numpy as np

INTEGERS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()
FLOATS = ["float32", "float64"]
COMPLEX = ["complex64", "complex128"]
DTYPES = ["bool", *INTEGERS, *FLOATS, *COMPLEX]
SHAPES: list[tuple[int, ...]] = [(), (3,), (2, 3), (0, 3)]
SPECIAL = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.5, 1e3, np.inf, -np.inf, np.nan]
RTOL = {"float32": 2e-5, "complex64": 5e-5}


class Dtype(NamedTuple):
    """The dtype of a namespace by its name."""

    name: str


class Call(NamedTuple):
    """A function of a namespace, by its dotted name, or `run`; NumPy's arrays in its arguments stand for arrays."""

    name: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = MappingProxyType({})
    run: Callable[..., Any] | None = None

    def __str__(self) -> str:
        shown = [shown_argument(x) for x in self.args] + [f"{k}={shown_argument(v)}" for k, v in self.kwargs.items()]
        return f"{self.name}({', '.join(shown)})"

    def on(self, xp: Any) -> Any:
        """The result of the call on a namespace."""
        args, kwargs = converted(self.args, xp), {k: converted(v, xp) for k, v in self.kwargs.items()}
        if self.run is not None:
            return self.run(xp, *args, **kwargs)
        function = xp
        for part in self.name.split("."):
            function = getattr(function, part)
        return function(*args, **kwargs)


def shown_argument(x: Any) -> str:
    return f"{x.dtype}{list(x.shape)}" if isinstance(x, np.ndarray) else x.name if isinstance(x, Dtype) else repr(x)


def converted(x: Any, xp: Any) -> Any:
    """An argument with arrays and dtypes of a namespace."""
    if isinstance(x, np.ndarray):
        return xp.asarray(x, dtype=getattr(xp, "bool" if x.dtype == bool else x.dtype.name), copy=True)
    if isinstance(x, Dtype):
        return getattr(xp, x.name)
    return type(x)(converted(y, xp) for y in x) if type(x) in (tuple, list) else x


# ---- arrays --------------------------------------------------------------------------------------------------


def sample(dtype: str, shape: tuple[int, ...], seed: int = 0, *, low: int = -5) -> np.ndarray[Any, Any]:
    """Small numbers."""
    rng = np.random.default_rng([seed, len(shape)])
    x = rng.integers(0 if dtype.startswith("u") or dtype == "bool" else low, 6, shape)
    if dtype in COMPLEX:
        return np.asarray(x + 0.25 + 1j * rng.integers(-5, 6, shape) / 2, dtype)
    return np.asarray(x / 2 if dtype in FLOATS else x % 2 if dtype == "bool" else x, dtype)


def arrays(
    dtypes: Iterable[str] = DTYPES, shapes: Iterable[tuple[int, ...]] = SHAPES
) -> Iterator[np.ndarray[Any, Any]]:
    yield from (sample(dtype, shape) for dtype in dtypes for shape in shapes)


def matrices(*shapes: tuple[int, ...], dtypes: Iterable[str] = (*FLOATS, *COMPLEX)) -> Iterator[np.ndarray[Any, Any]]:
    """Matrices far from singular."""
    for dtype, shape in itertools.product(dtypes, shapes):
        yield sample(dtype, shape) + np.asarray(9 * np.eye(*shape[-2:]), dtype)


def are_of_one_kind(one: str, other: str) -> bool:
    """Whether the standard says of two dtypes which they become together."""
    return any(one in kind and other in kind for kind in ([*FLOATS, *COMPLEX], INTEGERS, ["bool"]))


# ---- calls of functions of elements, and of operators --------------------------------------------------------

ONE = """abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag isfinite isinf
    isnan log log10 log1p log2 logical_not negative positive real reciprocal round sign signbit sin sinh sqrt square
    tan tanh trunc""".split()
TWO = """add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal
    floor_divide greater greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor maximum
    minimum multiply nextafter not_equal pow remainder subtract""".split()
OPERATORS = """add sub mul truediv floordiv mod pow and or xor lshift rshift lt le gt ge eq ne""".split()
PAIRS: list[tuple[tuple[int, ...], tuple[int, ...]]] = [((2, 3), (3,)), ((), (2, 1)), ((0, 3), (3,)), ((3,), (3,))]
SCALARS = [True, 2, 1.5, 1 + 2j]


def of_elements() -> Iterator[Call]:
    for name in ONE:
        yield from (Call(name, (x,)) for x in arrays())
        yield from (Call(name, (np.array(SPECIAL, dtype),)) for dtype in FLOATS)
    pairs = np.array(list(itertools.product(SPECIAL, SPECIAL))).T
    for name in TWO:
        yield from (Call(name, tuple(pairs.astype(dtype))) for dtype in FLOATS)
        for one, other in itertools.product(DTYPES, DTYPES):
            shapes = PAIRS if one == other else PAIRS[-1:]
            yield from (Call(name, operands(one, other, *pair)) for pair in shapes)
        for dtype, scalar in itertools.product(DTYPES, SCALARS):
            yield Call(name, (sample(dtype, (3,), low=1), scalar))
            yield Call(name, (scalar, sample(dtype, (3,), low=1)))
    for dtype in DTYPES:
        x, bounds = sample(dtype, (2, 3)), (sample(dtype, (3,)), sample(dtype, (2, 1), 1) + np.ones((), dtype))
        yield Call("clip", (x,))
        yield from (Call("clip", (x, *pair)) for pair in [(0, 2), (None, 2), bounds, (bounds[0], None)])


def operands(one: str, other: str, *shapes: tuple[int, ...]) -> tuple[Any, Any]:
    """Two arrays, the second above 0: division and powers of integers, and shifts, are not specified elsewhere."""
    return sample(one, shapes[0], 1), sample(other, shapes[1], 2, low=1) + np.ones((), other)


def of_operators() -> Iterator[Call]:
    for name, dtype in itertools.product(OPERATORS, DTYPES):
        x, y = operands(dtype, dtype, (2, 3), (3,))
        of_operator = getattr(operator, f"__{name}__")
        in_place = getattr(operator, f"__i{name}__", of_operator)  # of immutable arrays another name for the former
        yield from (Call(f"__{name}__", (x, y), run=lambda xp, x, y, f=f: f(x, y)) for f in (of_operator, in_place))
        for s in SCALARS:
            yield Call(f"__{name}__", (x, s), run=lambda xp, x, s, f=of_operator: f(x, s))
            yield Call(f"__r{name}__", (x, s), run=lambda xp, x, s, f=of_operator: f(s, x))
    for name, x in itertools.product("abs neg pos invert".split(), arrays()):
        yield Call(f"__{name}__", (x,), run=lambda xp, x, name=name: getattr(x, f"__{name}__")())
    for name, x in itertools.product("bool int float complex index".split(), arrays(shapes=[()])):
        yield Call(f"__{name}__", (x,), run=lambda xp, x, name=name: getattr(x, f"__{name}__")())
    for name, x in itertools.product("dtype ndim shape size T mT device".split(), arrays()):
        yield Call(name, (x,), run=lambda xp, x, name=name: described(getattr(x, name)))


def described(x: Any) -> Any:
    """An attribute, dtypes and devices as words."""
    return (
        x if isinstance(x, (int, tuple)) or (hasattr(x, "dtype") and hasattr(x, "shape")) else type(x).__name__ != "str"
    )


# ---- calls of other functions --------------------------------------------------------------------------------


def of_reductions() -> Iterator[Call]:
    axes: list[dict[str, Any]] = [{}, {"axis": 0}, {"axis": -1}, {"axis": (0, 1)}, {"axis": ()}, {"keepdims": True}]
    names = "sum prod max min mean std var all any count_nonzero argmax argmin".split()
    for name, x, more in itertools.product(names, arrays(), axes):
        if x.ndim or not isinstance(more.get("axis"), int):
            yield Call(name, (x,), more)
    for name, dtype, to in itertools.product(["sum", "prod", "cumulative_sum", "cumulative_prod"], DTYPES, DTYPES):
        yield Call(name, (sample(dtype, (3,)),), {"dtype": Dtype(to)})
    for name, x in itertools.product(["std", "var"], arrays(FLOATS)):
        yield Call(name, (x,), {"correction": 1.0, "axis": -1})
    for name, x in itertools.product(["cumulative_sum", "cumulative_prod"], arrays(shapes=SHAPES[1:])):
        yield Call(name, (x,))
        yield from (Call(name, (x,), {"axis": a, "include_initial": True}) for a in (0, -1))
    for x in arrays():
        yield from (Call("diff", (x,), more) for more in [{}, {"axis": 0, "n": 2}, {"prepend": x, "append": x}])


def of_order() -> Iterator[Call]:
    for x in arrays():
        yield from (Call("sort", (x,), {"descending": d, "axis": a}) for d in (False, True) for a in (0, -1))
        yield from (Call("argsort", (x,), {"descending": d, "stable": True}) for d in (False, True))
        yield from (
            Call(name, (x,)) for name in "unique_all unique_counts unique_inverse unique_values nonzero".split()
        )
        yield from (Call("isin", (x, other)) for other in (x, 1))  # array_api_strict ignores `invert`
    for dtype, side in itertools.product(DTYPES, ["left", "right"]):
        x, v = sample(dtype, (5,)), sample(dtype, (2, 2), 1)
        yield Call("searchsorted", (np.sort(x), v), {"side": side})
        yield Call("searchsorted", (x, v), {"side": side, "sorter": np.argsort(x)})
    for dtype, other in itertools.product(DTYPES, DTYPES):
        yield Call("where", (sample("bool", (3,)), sample(dtype, (2, 3)), sample(other, (3,))))
    yield from (Call("where", (sample("bool", (3,)), sample(d, (3,)), s)) for d in DTYPES for s in SCALARS)


def of_shapes() -> Iterator[Call]:
    for x in arrays():
        n = x.ndim
        yield from (Call("expand_dims", (x,), {"axis": a}) for a in (0, -1))
        yield from (Call("flip", (x,), more) for more in [{}, {"axis": 0}, {"axis": tuple(range(n))}])
        yield from (Call("roll", (x, 1), more) for more in [{}, {"axis": 0}])
        yield from (Call("reshape", (x, s), {"copy": c}) for s in [(-1,), (x.size,), (1, x.size)] for c in (None, True))
        yield from (Call("tile", (x, s)) for s in [(2,), (2, 1), ()])
        yield from (Call("repeat", (x, 2), more) for more in [{}, {"axis": 0}] if n)
        yield from (Call("broadcast_to", (x, (2, *x.shape))),)
        yield Call("broadcast_arrays", (x, x[..., :1] if n else x))
        yield Call("permute_dims", (x, tuple(reversed(range(n)))))
        yield Call("squeeze", (x.reshape(1, *x.shape),), {"axis": 0})
        yield from (Call(name, ([x, x],), more) for name in ("concat", "stack") for more in [{}, {"axis": -1}])
        yield Call("concat", ([x, x],), {"axis": None})
        yield from (Call("unstack", (x,), {"axis": a}) for a in (0, -1))
        yield from (Call("moveaxis", (x, 0, -1)), Call("matrix_transpose", (x,)))
        yield from (Call(name, (x,), {"k": k}) for name in ("tril", "triu") for k in (-1, 0, 1))
        yield from (Call("take", (x, np.array([0, 1, 0])), {"axis": a}) for a in (0, -1))
        yield Call("take_along_axis", (x, np.zeros((*x.shape[:-1], 2), np.int64)))
        yield from (Call("meshgrid", (x, x), {"indexing": i}) for i in ("xy", "ij"))
        yield from (Call(f"x[{key}]", (x,), run=lambda xp, x, key=key: x[key]) for key in KEYS)
        yield Call("x[mask]", (x, x != 0), run=lambda xp, x, mask: x[mask])
        yield Call("x[i, j]", (x, np.array([0, 1]), np.array([1, 2])), run=lambda xp, x, i, j: x[i, j])
        yield Call("x[i]", (x, np.array([[0, 1]])), run=lambda xp, x, i: x[i, ...])
    for one, other in itertools.product(DTYPES, DTYPES):
        yield Call("concat", ([sample(one, (2,)), sample(other, (3,))],))
        yield Call("stack", ([sample(one, (3,)), sample(other, (3,))],))


KEYS: list[Any] = [
    0,
    -1,
    ...,
    None,
    slice(1, None),
    slice(None, None, -1),
    (0, 1),
    (..., 0),
    (None, ..., slice(0, 2)),
    (),
]


def of_creation() -> Iterator[Call]:
    for dtype in [None, *map(Dtype, DTYPES)]:
        more = {"dtype": dtype}
        yield from (Call("arange", args, more) for args in [(5,), (1, 6), (1, 6, 2), (5, 1, -1), (0,)])
        yield from (Call("arange", args, more) for args in [(5.0,), (0.5, 3.0, 0.5)] if dtype is None)
        yield from (Call("linspace", (0, 2, n), {"endpoint": e, **more}) for n in (0, 1, 5) for e in (True, False))
        yield from (Call("eye", args, {"k": k, **more}) for args in [(3,), (2, 3), (0,)] for k in (-1, 0, 1))
        yield from (Call(name, (s,), more) for name in ("zeros", "ones") for s in (3, (), (2, 0), (2, 3)))
        yield from (Call("full", (s, v), more) for s in (3, (), (2, 3)) for v in SCALARS)
        yield from (Call("asarray", (v,), more) for v in [*SCALARS, [1, 2], [[1.5, 2.0]], [True], [1j, 2.0], [[]]])
        for x in arrays():
            yield from (Call(name, (x,), more) for name in ("zeros_like", "ones_like"))
            yield from (Call("full_like", (x, 1), more), Call("asarray", (abs(x),), more))
    for x, to in itertools.product(arrays(shapes=[(2, 3)]), DTYPES):
        yield Call("astype", (abs(x) if to.startswith("u") else x, Dtype(to)), {"copy": True})
    for x in arrays():
        yield Call("from_dlpack", (x,))
        yield from (Call("empty_like.shape", (x,), run=lambda xp, x: xp.empty_like(x).shape) for _ in range(1))


def of_dtypes() -> Iterator[Call]:
    kinds = ["bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric"]
    for one in DTYPES:
        yield from (Call("isdtype", (Dtype(one), kind)) for kind in [*kinds, tuple(kinds[:2])])
        for other in DTYPES:
            if are_of_one_kind(one, other):
                yield Call("can_cast", (Dtype(one), Dtype(other)))
            yield Call("isdtype", (Dtype(one), Dtype(other)))
            yield Call("result_type", (Dtype(one), Dtype(other)), run=same_dtype)
            yield Call("result_type", (sample(one, (2,)), Dtype(other)), run=same_dtype)
        yield from (Call("result_type", (sample(one, (2,)), s), run=same_dtype) for s in SCALARS)
        for name in "bits eps max min smallest_normal".split():
            yield Call(f"finfo.{name}", (Dtype(one),), run=lambda xp, d, name=name: getattr(xp.finfo(d), name))
        for name in "bits max min".split():
            yield Call(f"iinfo.{name}", (Dtype(one),), run=lambda xp, d, name=name: getattr(xp.iinfo(d), name))
    yield from (Call("broadcast_shapes", shapes) for shapes in [((2, 1), (3,)), ((), (0, 1))])
    for name in "bool_ e pi inf nan newaxis".split()[1:]:
        yield Call(name, run=lambda xp, name=name: getattr(xp, name))


def same_dtype(xp: Any, *args: Any) -> Any:
    """An array of the dtype that is told."""
    return xp.zeros(1, dtype=xp.result_type(*args))


# ---- linear algebra and Fourier transforms -------------------------------------------------------------------


def of_matrices() -> Iterator[Call]:
    for one, other in filter(lambda pair: are_of_one_kind(*pair), itertools.product(DTYPES, DTYPES)):
        for shapes in [((3,), (3,)), ((2, 3), (3, 2)), ((3,), (3, 2)), ((2, 2, 3), (3,)), ((2, 2, 3), (3, 1))]:
            x, y = sample(one, shapes[0]), sample(other, shapes[1], 1)
            yield Call("matmul", (x, y))
            yield Call("__matmul__", (x, y), run=lambda xp, x, y: x @ y)
        x, y = sample(one, (2, 3)), sample(other, (2, 3), 1)
        yield from (Call("tensordot", (x, y), {"axes": a}) for a in (0, ((0, 1), (0, 1)), ((1,), (1,))))
        yield from (Call(name, (x, y), more) for name in ("vecdot", "linalg.vecdot") for more in [{}, {"axis": 0 - 2}])
        yield from (Call("linalg.cross", (x, y)), Call("linalg.outer", (x[0], y[0])))
    for x in matrices((2, 2), (3, 2, 2), (0, 0)):
        symmetric = x @ np.swapaxes(x.conj(), -1, -2)
        yield from (Call(f"linalg.{name}", (x,)) for name in "det inv pinv slogdet svdvals matrix_rank trace".split())
        yield from (Call("linalg.cholesky", (symmetric,), {"upper": u}) for u in (False, True))
        yield Call("linalg.eigvalsh", (symmetric,))
        yield Call("linalg.eigh", (symmetric,), run=lambda xp, x: rebuilt_eigh(xp, x))
        yield from (Call("linalg.matrix_power", (x, n)) for n in (-2, 0, 1, 3))
        yield from (Call("linalg.solve", (x, b)) for b in (x, x[..., :1]))
        yield Call("linalg.eigvals", (x,), run=lambda xp, x: xp.sort(abs(xp.linalg.eigvals(x))))
    for x in matrices((2, 3), (3, 2), (2, 3, 2)):
        for full in (False, True):
            yield Call(
                "linalg.svd", (x,), {"full_matrices": full}, run=lambda xp, x, **kw: shapes_of(xp.linalg.svd(x, **kw))
            )
        for mode in ("reduced", "complete"):
            yield Call("linalg.qr", (x,), {"mode": mode}, run=lambda xp, x, mode: product_of_qr(xp, x, mode))
        norms = ["fro", "nuc", np.inf, -np.inf, 1, -1, 2, -2]
        yield from (Call("linalg.matrix_norm", (x,), {"ord": o, "keepdims": k}) for o in norms for k in (False, True))
    for x in arrays([*FLOATS, *COMPLEX], SHAPES[1:3]):
        for order, more in itertools.product([2, 1, 0, 3.5, np.inf, -np.inf], [{}, {"axis": -1}, {"keepdims": True}]):
            yield Call("linalg.vector_norm", (x,), {"ord": order, **more})
    for x in arrays(shapes=[(2, 3), (2, 2, 3)]):
        yield from (Call("linalg.diagonal", (x,), {"offset": k}) for k in (-1, 0, 1))
        yield from (Call("linalg.trace", (x,), {"offset": k}) for k in (-1, 0, 1))


def rebuilt_eigh(xp: Any, x: Any) -> Any:
    found = xp.linalg.eigh(x)
    vectors = found.eigenvectors
    adjoint = xp.matrix_transpose(xp.conj(vectors))
    return found.eigenvalues, xp.matmul(vectors * xp.astype(found.eigenvalues, x.dtype)[..., None, :], adjoint)


def product_of_qr(xp: Any, x: Any, mode: str) -> Any:
    found = xp.linalg.qr(x, mode=mode)
    return xp.matmul(found.Q, found.R), *shapes_of(found)


def shapes_of(found: Any) -> tuple[tuple[int, ...], ...]:
    return tuple(x.shape for x in found)


def of_transforms() -> Iterator[Call]:
    for name, x in itertools.product(
        "fft ifft rfft irfft hfft ihfft".split(), arrays([*FLOATS, *COMPLEX], [(4,), (2, 5)])
    ):
        norms = [{"norm": n} for n in ("backward", "ortho", "forward")]
        yield from (Call(f"fft.{name}", (x,), m) for m in [{}, {"n": 3}, {"n": 8}, {"axis": 0, "n": 2}, *norms])
    for name, x in itertools.product(
        "fftn ifftn rfftn irfftn".split(), arrays([*FLOATS, *COMPLEX], [(4,), (2, 5), (2, 3, 4)])
    ):
        sizes: list[dict[str, Any]] = [{}, {"s": (3, 4), "axes": (0, 1)}, {"axes": (0,)}, {"norm": "ortho"}]
        yield from (Call(f"fft.{name}", (x,), m) for m in sizes)
    for n, d in itertools.product((1, 4, 5), (1.0, 0.5)):
        yield from (Call(f"fft.{name}", (n,), {"d": d}) for name in ("fftfreq", "rfftfreq"))
    for x in arrays([*FLOATS, *COMPLEX]):
        yield from (Call(f"fft.{name}", (x,), m) for name in ("fftshift", "ifftshift") for m in [{}, {"axes": -1}])


FAMILIES = (
    of_elements, of_operators, of_reductions, of_order, of_shapes, of_creation, of_dtypes, of_matrices, of_transforms
)  # fmt: skip


# ---- comparing -----------------------------------------------------------------------------------------------


def difference(call: Call, wanted: Any, xp: Any) -> str | None:
    """How the result of a call on a namespace differs from the standard's, if it does."""
    try:
        found = call.on(xp)
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    return unlike(found, wanted)


def unlike(found: Any, wanted: Any) -> str | None:
    """How two results differ."""
    if isinstance(wanted, (tuple, list)):
        if not isinstance(found, (tuple, list)) or len(found) != len(wanted):
            return f"is a {type(found).__name__}, not {len(wanted)} results"
        return next(filter(None, map(unlike, found, wanted)), None)
    if not isinstance(wanted, type(strict.asarray(0))):
        return (
            None
            if type(wanted) is type(found) and (found == wanted or found != found)
            else f"{found!r}, not {wanted!r}"
        )
    theirs, ours = np.asarray(wanted._array), found
    if not hasattr(ours, "__array_namespace__"):
        return f"is a {type(ours).__name__}"
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return f"{ours.dtype}{list(ours.shape)}, not {theirs.dtype}{list(theirs.shape)}"
    rtol = RTOL.get(theirs.dtype.name, 1e-11) if theirs.dtype.kind in "fc" else 0
    if not np.allclose(np.asarray(ours), theirs, rtol=rtol, atol=rtol, equal_nan=True):
        return f"{np.asarray(ours).ravel()[:8]}, not {theirs.ravel()[:8]}"
    return None


def results(xp: Any, families: str = "") -> Iterator[tuple[Call, str | None]]:
    """Every call of the standard, of families whose name begins so, and how the namespace differs from it."""
    for family in FAMILIES:
        for call in family() if family.__name__.startswith(f"of_{families}") else ():
            try:
                wanted = call.on(strict)
            except Exception:
                continue  # not of the standard
            yield call, difference(call, wanted, xp)


def main(module: str = "tapeless.numpy", families: str = "") -> None:
    """Run the calls, and print what differs."""
    package = importlib.import_module(module.partition(".")[0])
    package.config.update("jax_enable_x64", True)
    wrong = total = 0
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", np.exceptions.ComplexWarning)  # array_api_strict drops imaginary parts
        for call, what in results(importlib.import_module(module), families):
            total, wrong = total + 1, wrong + (what is not None)
            if what is not None:
                sys.stdout.write(f"{call}\n    {what}\n")
    sys.stdout.write(f"{wrong} of {total} calls differ\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
