"""Products of arrays: dot_general and convolution, by einsum."""

import string
from typing import Any

import numpy as np

from tests.fuzzing.oracle.interpreter import Run, meaning
from tests.fuzzing.oracle.values import Values, kind_of
from tests.fuzzing.oracle.windows import positions, windows_of


def _common(eqn: Any, *xs: Values) -> list[Values]:
    """Operands in the kind of the result, of which booleans are 0 and 1."""
    kind = kind_of(eqn.outvars[0].aval.dtype)
    wide = {"f": np.float64, "c": np.complex128, "i": np.int64, "u": np.uint64, "b": np.bool_}[kind]
    return [x.astype(np.result_type(wide, x)) if kind in "fc" else x.astype(wide) for x in xs]


@meaning("dot_general")
def _dot_general(run: Run, eqn: Any, x: Values, y: Values) -> Any:
    (cx, cy), (bx, by) = eqn.params["dimension_numbers"]
    x, y = _common(eqn, x, y)
    letters = iter(string.ascii_letters)
    of_x, of_y = [next(letters) for _ in x.shape], [next(letters) for _ in y.shape]
    for i, j in zip((*cx, *bx), (*cy, *by)):
        of_y[j] = of_x[i]
    free_x = [a for i, a in enumerate(of_x) if i not in (*cx, *bx)]
    free_y = [a for j, a in enumerate(of_y) if j not in (*cy, *by)]
    out = "".join([*[of_x[i] for i in bx], *free_x, *free_y])
    return np.einsum(f"{''.join(of_x)},{''.join(of_y)}->{out}", x, y)


@meaning("conv_general_dilated")
def _convolution(run: Run, eqn: Any, x: Values, y: Values) -> Any:
    """Windows of the left side times the kernel, group by group."""
    p = eqn.params
    of_x, of_y, of_out = p["dimension_numbers"]
    x, y = _common(eqn, x, y)
    x, y = x.transpose(of_x), y.transpose(of_y)  # [n, c, space..], [o, i, space..]
    features, batches = p["feature_group_count"], p["batch_group_count"]
    seen = _seen(x, y.shape[2:], p)
    left = np.split(seen, features, 1) if features > 1 else np.split(seen, batches, 0)
    parts = [_grouped(a, b) for a, b in zip(left, np.split(y, features * batches, 0))]
    out = np.concatenate(parts, 1)
    return np.transpose(out, np.argsort(of_out))


def _seen(x: Values, kernel: tuple[int, ...], p: Any) -> Values:
    """The elements of windows, [n, c, windows.., elements..], 0 where there is none."""
    space = x.shape[2:]
    per_axis = map(positions, space, kernel, p["window_strides"], p["padding"], p["lhs_dilation"], p["rhs_dilation"])
    axes = [(np.arange(n)[:, None], np.ones((n, 1), bool)) for n in x.shape[:2]] + list(per_axis)
    found, _ = windows_of(x, axes, x.dtype.type(0))
    rank = len(space)
    return found.reshape(*found.shape[: 2 + rank], *found.shape[4 + rank :])


def _grouped(seen: Values, kernel: Values) -> Values:
    """[n, c, windows.., elements..] and [o, c, elements..] to [n, o, windows..]."""
    rank = kernel.ndim - 2
    windows, elements = "stuvw"[:rank], "STUVW"[:rank]
    return np.einsum(f"nc{windows}{elements},oc{elements}->no{windows}", seen, kernel)
