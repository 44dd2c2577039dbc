"""Compare calls of `lax` with those of JAX: `python -m tests.ecosystem.lax_calls [FAMILY ...]`.

FAMILY is the name of one of `FAMILIES`, all if none is given. A call differs if one library alone refuses it, or if
results have another value, sign of a zero, dtype, shape or weak type. It prints the calls that differ unless `REASONS`
knows why, and how many there are of each reason.
"""

import collections
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

import tapeless as tl
import tapeless.numpy as tnp
from tests.ecosystem.lax_arguments import COMPARISONS, FAMILIES, Call, Made

RTOL = {"float32": 2e-5, "complex64": 4e-5, "float16": 4e-3, "bfloat16": 2e-2}
ONLY_THEY, ONLY_WE = "refused here alone", "taken here alone"


class Difference(NamedTuple):
    """How the results of a call differ: the kind, and both sides."""

    kind: str
    text: str


class Reason(NamedTuple):
    """Why calls differ on purpose: those of some functions (all if there are none), of a kind, that it applies to."""

    text: str
    kind: str
    names: str = ""
    applies: Callable[[Call], bool] = lambda _: True

    def explains(self, call: Call, kind: str) -> bool:
        return kind == self.kind and (not self.names or call.name in self.names.split()) and self.applies(call)


def arguments(call: Call) -> list[Any]:
    """The arguments, and those in lists and tuples among them."""
    return _flat([*call.args, *call.kwargs.values()])


def _flat(x: Any) -> list[Any]:
    if type(x) in (list, tuple):
        return [leaf for part in x for leaf in _flat(part)]
    return _flat(list(x.values())) if isinstance(x, dict) else [x]


def has_number(call: Call) -> bool:
    return any(type(x) in (bool, int, float, complex) for x in arguments(call))


def has_complex(call: Call) -> bool:
    return any(np.iscomplexobj(x) for x in arguments(call) if isinstance(x, np.ndarray | complex))


def has_fraction(call: Call) -> bool:
    return any(type(x) is float for x in arguments(call))


def has_other_axes(call: Call) -> bool:
    """Whether an axis counts from the end, or one integer or None stands for axes."""
    return any(x is None or (type(x) is int and x < 0) for x in arguments(call)) or type(call.args[-1]) is int


REASONS = [
    Reason("a Python number takes the dtype of the array beside it", ONLY_WE, "", has_number),
    Reason("axes may count from the end, be one integer, or None for all", ONLY_WE, "", has_other_axes),
    Reason("booleans are strongly typed", "weak type", " ".join([*COMPARISONS, "is_finite"])),
    Reason("a Python integer that does not fit is refused, where JAX wraps it", ONLY_THEY, "", has_number),
    Reason("parameters are integers, not fractions", ONLY_THEY, "", has_fraction),
    Reason("scalars are repeated beside arrays", ONLY_WE, "select select_n clamp"),
    Reason("a carry that is weakly typed stays so", "weak type", "fori_loop while_loop scan"),
    Reason("complex numbers are true unless they are 0", "value", "convert_element_type", has_complex),
    Reason("cumulative logarithms of sums are of real numbers", ONLY_THEY, "cumlogsumexp"),
    Reason("a Fourier transform is over at least one axis, of at least one element", ONLY_THEY, "fft"),
    Reason("unsigned integers have a modulus, and integers powers", ONLY_WE, "abs pow"),
    Reason("reductions, scans and sorts take booleans", ONLY_WE, "cummax cummin"),
    Reason(
        "complex numbers on a branch cut are on the side of the sign of zero; beside infinities parts may be nan",
        "value",
        "acos acosh asin asinh atan atanh cos cosh exp log pow sin sinh sqrt tan tanh cbrt log1p expm1 rsqrt logistic",
        has_complex,
    ),
    Reason("a complex nan is greatest, as in NumPy", "value", "max min reduce_max reduce_min", has_complex),
    Reason(
        "complex numbers have no order here but in max, min and sort", ONLY_THEY, "clamp cummax cummin", has_complex
    ),
    Reason("complex arc tangents of two are not there", ONLY_THEY, "atan2", has_complex),
    Reason("powers of two of 16 bits are exact, JAX's to 5 %", "value", "exp2"),
    Reason("the limits are SciPy's", "value", "igamma igammac betainc digamma zeta polygamma"),
    Reason("a narrower dtype that is asked for is given", ONLY_WE, "dot conv_general_dilated"),
    Reason("only an operand that another is promoted to makes a common dtype", ONLY_THEY, "dot"),
]


def resolved(x: Any, lax: Any, numpy: Any) -> Any:
    """An argument as a library takes it."""
    if isinstance(x, Made):
        return x.make(lax, numpy)
    if isinstance(x, np.ndarray):
        return numpy.asarray(x)
    if type(x) in (list, tuple):
        return type(x)(resolved(part, lax, numpy) for part in x)
    return x


def outcome(call: Call, lax: Any, numpy: Any) -> list[Any] | Exception:
    """The results of a call, or what it raises."""
    try:
        args = [resolved(x, lax, numpy) for x in call.args]
        return _flat(getattr(lax, call.name)(*args, **{k: resolved(x, lax, numpy) for k, x in call.kwargs.items()}))
    except Exception as error:
        return error


def difference(call: Call) -> Difference | None:
    """How two libraries differ in a call; None if they do not."""
    ours, theirs = outcome(call, tl.lax, tnp), outcome(call, jax.lax, jax.numpy)
    if isinstance(ours, Exception) or isinstance(theirs, Exception):
        if isinstance(ours, Exception) and isinstance(theirs, Exception):
            return None
        kind = ONLY_THEY if isinstance(ours, Exception) else ONLY_WE
        return Difference(kind, f"{ours!r:.150}, JAX {theirs!r:.150}")
    return next(filter(None, map(_different, ours, theirs)), None)


def _different(x: Any, y: Any) -> Difference | None:
    if not isinstance(x, tl.Array) or not isinstance(y, jax.Array):
        return None if x is y or str(x) == str(y) or np.array_equal(x, y) else Difference("result", f"{x}, JAX {y}")
    for kind in ("shape", "dtype"):
        mine, other = (str(getattr(v, kind)) for v in (x, y))
        if mine != other:
            return Difference(kind, f"{mine}, JAX {other}")
    return _different_elements(np.asarray(x), np.asarray(y)) or _different_weak_types(x, y)


def _different_elements(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> Difference | None:
    rtol, wide = RTOL.get(str(x.dtype), 0.0), complex if x.dtype.kind == "c" else float
    if x.dtype.kind in "biu":
        wide = x.dtype.type
    x, y = x.astype(wide), y.astype(wide)
    wrong = ~np.isclose(x, y, rtol=rtol, atol=1e-37, equal_nan=True)
    if wrong.any():
        first = np.unravel_index(np.argmax(wrong), wrong.shape)
        return Difference(
            "value", f"{x[first]}, JAX {y[first]}, at {tuple(map(int, first))}, {wrong.sum()} of {x.size}"
        )
    signs = wide is float and (np.signbit(x) != np.signbit(y)) & (x == 0)
    return Difference("sign of zero", f"{x}, JAX {y}") if np.any(signs) else None


def _different_weak_types(x: Any, y: Any) -> Difference | None:
    mine, other = x.aval.weak_type, y.aval.weak_type
    return None if mine == other else Difference("weak type", f"{mine}, JAX {other}")


def shown(x: Any) -> str:
    if isinstance(x, np.ndarray):
        return f"{x.dtype}{list(x.shape)}"
    if type(x) in (list, tuple):
        return f"[{', '.join(map(shown, x))}]"
    return x.text if isinstance(x, Made) else repr(x)


def compared(calls: Iterator[Call]) -> Iterator[tuple[Call, Difference | None]]:
    for call in calls:
        yield call, difference(call)


def main(families: list[str]) -> int:
    """Compare the calls of families; print what is not explained. Return whether there is any."""
    total, unexplained, explained = 0, 0, collections.Counter[str]()
    with warnings.catch_warnings(), tl.config.scope(numpy_bits=32):
        warnings.simplefilter("ignore")
        for call, found in (pair for name in families for pair in compared(FAMILIES[name]())):
            total += 1
            reason = found and next((r.text for r in REASONS if r.explains(call, found.kind)), None)
            explained[reason or ""] += found is not None
            if found is not None and reason is None:
                unexplained += 1
                arguments_shown = [*map(shown, call.args), *(f"{k}={shown(v)}" for k, v in call.kwargs.items())]
                sys.stdout.write(f"{call.name}({', '.join(arguments_shown)})\n    {found.kind}: {found.text}\n")
    for reason, count in explained.most_common():
        if reason and count:
            sys.stdout.write(f"{count:6} {reason}\n")
    sys.stdout.write(f"{total} calls, {unexplained} differ without a reason\n")
    return unexplained > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or [*FAMILIES]))
