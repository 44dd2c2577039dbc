"""NumPy's functions as operations on two matrices of one shape: what random programs are made of.

An operation is `f(lib, x, y)`, where `lib` is numpy or tapeless.numpy; what it returns broadcasts to the shape of x.
Operands are of the size of 1, and so are results, give or take; functions that are not defined or not smooth
everywhere are asked where they are, away from places that an operand would meet other than by accident.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import tapeless.numpy as tnp

SHAPE = ROWS, COLUMNS = (3, 4)
Operation = Callable[[Any, Any, Any], Any]

OPERATIONS: dict[str, Operation] = {}
PLACES = np.array([2, 0, 0, 1])
MASK = np.array([[True, False, True, True], [False, False, True, False], [True, True, False, True]])
WEIGHTS = np.linspace(-1, 1, ROWS * COLUMNS).reshape(SHAPE)


add = OPERATIONS.update


# ---- operands in the domain of what is asked -----------------------------------------------------------------


def inside(lib: Any, x: Any) -> Any:
    """Between -0.8 and 0.8."""
    return 0.8 * lib.tanh(x)


def positive(lib: Any, x: Any) -> Any:
    """Between 0.8 and 3.2."""
    return 2 + 1.2 * lib.tanh(x)


def apart(lib: Any, x: Any) -> Any:
    """No two elements alike: what sorts or takes the greatest is smooth there."""
    return x + lib.asarray(np.array([[3, 7, 1, 10], [0, 5, 11, 2], [8, 4, 9, 6]]) * 0.37)


def rows(lib: Any, x: Any) -> Any:
    """A number for every row, as a column."""
    return lib.reshape(x, (ROWS, 1))


# ---- elementwise ---------------------------------------------------------------------------------------------

for name in """sin cos tanh arctan arcsinh exp exp2 expm1 sinc square negative positive fabs abs degrees deg2rad
               radians rad2deg real conj nan_to_num sinh cosh""".split():
    OPERATIONS[name] = lambda lib, x, y, name=name: getattr(lib, name)(x)
for name in "arcsin arccos arctanh tan log1p i0".split():
    OPERATIONS[name] = lambda lib, x, y, name=name: getattr(lib, name)(inside(lib, x))
for name in "log log2 log10 sqrt cbrt reciprocal".split():
    OPERATIONS[name] = lambda lib, x, y, name=name: getattr(lib, name)(positive(lib, x))
for name in "sign floor ceil trunc rint fix signbit".split():
    OPERATIONS[name] = lambda lib, x, y, name=name: x * getattr(lib, name)(2.3 * y + 0.123)
for name in "add subtract multiply maximum minimum fmax fmin logaddexp logaddexp2 arctan2 hypot".split():
    OPERATIONS[name] = lambda lib, x, y, name=name: getattr(lib, name)(x + 0.0123, 0.9 * y)
for name in "divide floor_divide remainder mod fmod copysign float_power power".split():
    OPERATIONS[name] = lambda lib, x, y, name=name: getattr(lib, name)(positive(lib, x), positive(lib, y) - 0.00123)
for name in "less less_equal greater greater_equal equal not_equal".split():
    OPERATIONS[name] = lambda lib, x, y, name=name: x * getattr(lib, name)(x, 0.9 * y + 0.0123)

add(
    arccosh=lambda lib, x, y: lib.arccosh(1 + positive(lib, x)),
    angle=lambda lib, x, y: lib.angle(positive(lib, x) + 1j * y),
    complex_exp=lambda lib, x, y: lib.real(lib.exp(1j * x) * (y - 2j)),
    complex_abs=lambda lib, x, y: lib.abs(x + 1j * positive(lib, y)),
    complex_quotient=lambda lib, x, y: lib.imag((x + 1j * y) / (2 + lib.conjugate(1j * x))),
    cube=lambda lib, x, y: inside(lib, x) ** 3,
    inverse_square=lambda lib, x, y: positive(lib, x) ** -2,
    root=lambda lib, x, y: positive(lib, x) ** 0.5,
    number_to_the_power=lambda lib, x, y: 1.7 ** x,
    divmod=lambda lib, x, y: lib.divmod(x + 0.0123, positive(lib, y))[1],
    modf=lambda lib, x, y: lib.modf(2.3 * x + 0.123)[0],
    ldexp=lambda lib, x, y: lib.ldexp(x, lib.asarray(PLACES)),
    nextafter=lambda lib, x, y: lib.nextafter(x, y),
    frexp=lambda lib, x, y: lib.frexp(positive(lib, x) + 0.0123)[0],
    heaviside=lambda lib, x, y: x * lib.heaviside(y + 0.0123, 0.5),
    round=lambda lib, x, y: x * lib.round(y + 0.0123, 1),
    clip=lambda lib, x, y: lib.clip(x, -0.4123, 0.9 * lib.abs(y) + 0.1),
    where=lambda lib, x, y: lib.where(y > 0.0123, lib.sin(x), x * y),
    where_root=lambda lib, x, y: lib.where(x > 0.0123, lib.sqrt(lib.where(x > 0.0123, x, 1.0)), y),
    masked=lambda lib, x, y: lib.where(MASK, x, 2.0),
    select=lambda lib, x, y: lib.select([x > 0.5123, y > 0.0123], [x * y, lib.cos(x)], 0.3),
    interp=lambda lib, x, y: lib.interp(x, np.linspace(-2, 2.1, 5), np.arange(5.0) ** 2) / 8,
    interp_values=lambda lib, x, y: lib.interp(0.7, np.arange(4.0), y[1]) * x,
    unwrap=lambda lib, x, y: lib.unwrap(4 * lib.cos(x)),
    numbers=lambda lib, x, y: (2 - x) * 3 / 4 + (1 / (3 + inside(lib, y))) - 1.5,
    bools=lambda lib, x, y: lib.where((x > 0.0123) & ~(y > 0.0123) | (x < -0.4123), x, -y),
)  # fmt: skip

# ---- reductions and scans ------------------------------------------------------------------------------------

for name in "sum mean nansum nanmean median nanmedian std var nanstd nanvar max min nanmax nanmin ptp".split():
    add(**{
        name: lambda lib, x, y, name=name: getattr(lib, name)(apart(lib, x)) / 4,
        f"{name}_of_columns": lambda lib, x, y, name=name: getattr(lib, name)(apart(lib, x), axis=0) / 4,
        f"{name}_of_rows": lambda lib, x, y, name=name: getattr(lib, name)(apart(lib, x), axis=1, keepdims=True) / 4,
    })  # fmt: skip
for name in "prod nanprod".split():
    OPERATIONS[name] = lambda lib, x, y, name=name: getattr(lib, name)(x, axis=0)
for name in "cumsum cumprod nancumsum nancumprod".split():
    OPERATIONS[name] = lambda lib, x, y, name=name: getattr(lib, name)(x, axis=1)
for name in "argmax argmin nanargmax argsort".split():
    OPERATIONS[name] = lambda lib, x, y, name=name: y[0] * getattr(lib, name)(apart(lib, x), axis=0) / 3

add(
    prod_with_zero=lambda lib, x, y: lib.prod(lib.where(MASK, x, 0.0), axis=0) + lib.prod(lib.where(~MASK, 0.0, y)),
    prod_of_all=lambda lib, x, y: lib.prod(positive(lib, x) / 2),
    sum_where=lambda lib, x, y: lib.sum(x, axis=0, where=MASK, initial=0.5),
    max_where=lambda lib, x, y: lib.max(x + 0.1 * y, axis=0, where=MASK, initial=0.25),
    mean_where=lambda lib, x, y: lib.mean(x * y, axis=(0, 1), where=MASK),
    var_corrected=lambda lib, x, y: rows(lib, lib.var(x, axis=-1, ddof=1)),
    percentile=lambda lib, x, y: lib.percentile(apart(lib, x), 30, axis=0) / 4,
    quantiles=lambda lib, x, y: rows(lib, lib.quantile(apart(lib, x), np.array([0.1, 0.77]), axis=1)[1]) / 9,
    average=lambda lib, x, y: lib.average(x, axis=0, weights=positive(lib, y)[:, 0]),
    count_nonzero=lambda lib, x, y: x * lib.count_nonzero(y > 0.0123, axis=0) / 3,
    any=lambda lib, x, y: lib.where(lib.any(y > 0.5123, axis=1, keepdims=True), x, -x),
    all=lambda lib, x, y: lib.where(lib.all(y > -0.7123, axis=0), x, x * x),
    logsumexp=lambda lib, x, y: lib.log(lib.sum(lib.exp(x), axis=1, keepdims=True)),
    softmax=lambda lib, x, y: lib.exp(x) / lib.sum(lib.exp(x), axis=0) * y,
    norm=lambda lib, x, y: lib.sqrt(lib.sum(lib.square(x)) + 0.1),
    diff=lambda lib, x, y: lib.diff(x, axis=1, prepend=0.5),
    second_diff=lambda lib, x, y: lib.diff(x, n=2, axis=0),
    ediff1d=lambda lib, x, y: lib.ediff1d(x, to_end=1.0).reshape(SHAPE),
    gradient=lambda lib, x, y: lib.gradient(x, 0.7, axis=1),
    gradients=lambda lib, x, y: sum(lib.gradient(x * y)),
    trapezoid=lambda lib, x, y: rows(lib, tnp_or_np(lib, "trapezoid", "trapz")(x, axis=1)) / 3,
    cov=lambda lib, x, y: lib.cov(x)[:, :1] + lib.cov(x[0], y[1])[0, 1],
    corrcoef=lambda lib, x, y: lib.corrcoef(apart(lib, x))[:, 1:2],
)  # fmt: skip


def tnp_or_np(lib: Any, name: str, before: str) -> Any:
    """A function of NumPy 2 that NumPy 1 calls otherwise."""
    return getattr(lib, name, None) or getattr(lib, before)


# ---- products ------------------------------------------------------------------------------------------------

add(
    matmul=lambda lib, x, y: x @ lib.transpose(y) @ y / 4,
    vector_matrix=lambda lib, x, y: y[:, 0] @ x,
    matrix_vector=lambda lib, x, y: rows(lib, x @ y[0]),
    batched_matmul=lambda lib, x, y: (x[:, :, None] @ y[:, None, :])[:, 1],
    dot=lambda lib, x, y: lib.dot(x[:, :3], y) / 2,
    vdot=lambda lib, x, y: lib.vdot(x, y) / 6,
    inner=lambda lib, x, y: lib.inner(x, y)[:, 1:2],
    outer=lambda lib, x, y: lib.outer(x[:, 0], y[1]),
    tensordot=lambda lib, x, y: lib.tensordot(x, y, axes=([0], [0]))[1:] / 2,
    full_tensordot=lambda lib, x, y: lib.tensordot(x, y) / 6,
    einsum=lambda lib, x, y: lib.einsum("ij,kj->ik", x, y)[:, :1] / 2,
    einsum_trace=lambda lib, x, y: lib.einsum("ii,jk->k", x[:, :3], y) / 3,
    einsum_three=lambda lib, x, y: lib.einsum("ij,kj,kl->il", x, y, WEIGHTS) / 4,
    kron=lambda lib, x, y: lib.kron(x[:1, :2], y[:, 1:3]),
    cross=lambda lib, x, y: rows(lib, lib.cross(x[:, 0], y[:, 1])),
    convolve=lambda lib, x, y: lib.convolve(x[0], y[0, :3], mode="same") / 2,
    correlate=lambda lib, x, y: lib.correlate(x[0], y[1], mode="same") / 2,
    polyval=lambda lib, x, y: lib.polyval(y[:, 0], x) / 3,
    polymul=lambda lib, x, y: lib.polymul(x[0, :2], y[0, 1:]),
    polyadd=lambda lib, x, y: lib.polyadd(x[0], y[0, 1:]),
    polyder=lambda lib, x, y: lib.polyder(x[:, 0])[1] * y,
    polyint=lambda lib, x, y: lib.polyint(x[:, 0]),
    vander=lambda lib, x, y: lib.vander(x[:, 0], 4),
    trace=lambda lib, x, y: lib.trace(x) * y,
)

# ---- the same elements elsewhere -----------------------------------------------------------------------------

for name in "flip fliplr flipud".split():
    OPERATIONS[name] = lambda lib, x, y, name=name: getattr(lib, name)(x) * y
for name in "tril triu".split():
    OPERATIONS[name] = lambda lib, x, y, name=name: getattr(lib, name)(x, 1)
for name in "constant edge reflect symmetric wrap linear_ramp maximum minimum mean".split():
    OPERATIONS[f"pad_{name}"] = lambda lib, x, y, name=name: (
        lib.pad(apart(lib, x), ((1, 2), (2, 0)), mode=name)[:3, :4] / 4
    )

add(
    reshape=lambda lib, x, y: lib.reshape(lib.reshape(x, (4, 3)), (2, 6)).reshape(SHAPE),
    reshape_fortran=lambda lib, x, y: lib.ravel(x, order="F").reshape(SHAPE),
    transpose=lambda lib, x, y: x.T[:3, :1] * y,
    moveaxis=lambda lib, x, y: lib.moveaxis(lib.stack([x, y, x * y]), 0, -1)[:, :, 1],
    swapaxes=lambda lib, x, y: lib.swapaxes(x, 0, 1)[:3, :1],
    rollaxis=lambda lib, x, y: lib.rollaxis(x, 1)[1:, :1],
    squeeze=lambda lib, x, y: lib.squeeze(lib.expand_dims(x, (0, 2))),
    roll=lambda lib, x, y: lib.roll(x, 1, axis=0) - lib.roll(y, -2),
    rot90=lambda lib, x, y: lib.rot90(x[:, :3])[:, :1],
    tile=lambda lib, x, y: lib.tile(x[:1, :2], (3, 2)),
    repeat=lambda lib, x, y: lib.repeat(x[:, :2], 2, axis=1),
    repeats=lambda lib, x, y: lib.repeat(x, np.array([0, 2, 1]), axis=0),
    concatenate=lambda lib, x, y: lib.concatenate([x[1:], y[:1]], axis=0),
    stack=lambda lib, x, y: lib.stack([x[:, 0], y[:, 1], x[:, 1], x[:, 2]], axis=1),
    vstack=lambda lib, x, y: lib.vstack([x[0], y[2], x[1]]),
    hstack=lambda lib, x, y: lib.hstack([x[:, :1], y[:, 1:]]),
    dstack=lambda lib, x, y: lib.dstack([x, y])[..., 1],
    column_stack=lambda lib, x, y: lib.column_stack([x[:, 0], y[:, :3]]),
    block=lambda lib, x, y: lib.block([[x[:1, :2], y[:1, :2]], [y[1:, 1:]  , x[1:, :1]]]),
    split=lambda lib, x, y: lib.split(x, 2, axis=1)[1][:, :1] * lib.array_split(y, 3, axis=1)[0][:, :1],
    append=lambda lib, x, y: lib.append(x[:, :2], y[:, 2:], axis=1),
    insert=lambda lib, x, y: lib.insert(x[:, 1:], 1, y[:, 0], axis=1),
    delete=lambda lib, x, y: lib.delete(x, np.array([0, 2, 3]), axis=1),
    resize=lambda lib, x, y: lib.resize(x[:2], SHAPE),
    diag=lambda lib, x, y: lib.diag(x[:, 1])[:, :1] + lib.diag(y[:, :3])[:, None],
    diagonal=lambda lib, x, y: rows(lib, lib.diagonal(x, 1)),
    diagflat=lambda lib, x, y: lib.diagflat(x[:1, :3])[:, 1:2],
    broadcast_to=lambda lib, x, y: lib.broadcast_to(x[0], SHAPE) * lib.broadcast_to(y[:, :1], SHAPE),
    meshgrid=lambda lib, x, y: lib.meshgrid(x[0], y[:, 0])[0] * lib.meshgrid(x[0], y[:, 0])[1],
    atleast_3d=lambda lib, x, y: lib.atleast_3d(x)[..., 0],
    linspace=lambda lib, x, y: lib.linspace(x[0, 0], y[1, 1], 4),
    geomspace=lambda lib, x, y: lib.geomspace(positive(lib, x)[0, 0], positive(lib, y)[1, 1] + 1, 4),
    full=lambda lib, x, y: lib.full(SHAPE, x[1, 2]) * lib.full_like(y, 0.5) * y,
)  # fmt: skip

# ---- by order ------------------------------------------------------------------------------------------------

add(
    sort=lambda lib, x, y: lib.sort(apart(lib, x), axis=1) / 4,
    sort_flat=lambda lib, x, y: lib.sort(apart(lib, x), axis=None).reshape(SHAPE) / 4,
    partition=lambda lib, x, y: lib.partition(apart(lib, x), 1, axis=0)[1] / 4,
    by_argsort=lambda lib, x, y: lib.take_along_axis(y, lib.argsort(apart(lib, x), axis=0), axis=0),
    searchsorted=lambda lib, x, y: x * lib.searchsorted(np.array([-0.5123, 0.1, 0.7]), y),
    digitize=lambda lib, x, y: x * lib.digitize(y, np.array([-0.5123, 0.1, 0.7])),
    bincount=lambda lib, x, y: lib.bincount(PLACES, weights=x[0], minlength=4),
)

# ---- reading and writing by index ----------------------------------------------------------------------------

add(
    row=lambda lib, x, y: x[1] * y[-1],
    steps=lambda lib, x, y: x[::-1, ::-1] * y[:, ::3][:, :1],
    ellipsis=lambda lib, x, y: x[..., 2, None] - y[None, 0],
    positions=lambda lib, x, y: x[:, PLACES] * y,
    repeated_positions=lambda lib, x, y: x[PLACES][:3],
    two_arrays=lambda lib, x, y: x[np.array([0, 1, 2])[:, None], PLACES],
    apart_arrays=lambda lib, x, y: lib.stack([x, y])[np.array([1, 0, 1]), :, np.array([3, 3, 0])][:, :1],
    known_mask=lambda lib, x, y: rows(lib, x[MASK][:3]),
    computed_positions=lambda lib, x, y: x[:, lib.argmax(apart(lib, y), axis=0)],
    take=lambda lib, x, y: lib.take(x, PLACES, axis=1) + lib.take(y, np.array([5, -1, 5, 0])),
    take_along_axis=lambda lib, x, y: lib.take_along_axis(x, np.array([[3, 0, 0, 1]] * 3), axis=1),
    compress=lambda lib, x, y: lib.compress(np.array([True, False, True, False]), x, axis=1)[:, :1],
    triangle=lambda lib, x, y: x[lib.tril_indices(3)][:4],
)


def written(lib: Any, x: Any, index: Any, method: str, values: Any) -> Any:
    """`x.at[index].method(values)`, for NumPy in a copy."""
    if lib is tnp:
        return getattr(x.at[index], method)(values)
    changed = np.array(x)
    if method == "set":
        changed[index] = values
    else:
        _UFUNCS[method].at(changed, index, values)
    return changed


_UFUNCS = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "power": np.power,
    "min": np.minimum, "max": np.maximum,
}  # fmt: skip
_INDICES = {
    "row": 1,
    "column": (slice(None), 2),
    "window": (slice(0, 2), slice(1, 4)),
    "steps": (slice(None, None, 2), slice(None, None, -1)),
    "positions": (slice(None), np.array([2, 0])),
    "mask": np.array([True, False, True]),
}


def _write(method: str, index: Any) -> Operation:
    def write(lib: Any, x: Any, y: Any) -> Any:
        if method in ("divide", "power"):
            return written(lib, positive(lib, x), index, method, positive(lib, y)[index]) / 4
        return written(lib, x + 0.0123, index, method, lib.sin(y)[index])

    return write


for name, index in _INDICES.items():
    for method in ("set", *_UFUNCS):
        OPERATIONS[f"at_{name}_{method}"] = _write(method, index)

add(
    at_repeated_add=lambda lib, x, y: written(lib, x, (slice(None), PLACES), "add", y),
    at_number=lambda lib, x, y: written(lib, x, (1, slice(2)), "set", 0.5) * y,
    at_one=lambda lib, x, y: written(lib, x, (0, 0), "add", y[1, 1]),
)


def spread(lib: Any, x: Any) -> Any:
    """A result as a matrix, of the size of 1."""
    return lib.tanh(lib.broadcast_to(x, SHAPE))
