"""Derivatives against central differences, to any order.

At every order forward mode must give (f(x + h v) - f(x - h v)) / 2h along a random direction v, and reverse mode the
product of that with a random cotangent. The next order asks the same of the derivative: of (x, t) -> jvp(f, x, t) and
of x -> vjp(f, x)(f(x)), so that orders nest in all ways the modes allow.

Where a difference disagrees, its step may be too long: it counts only if the differences with steps h / 4 and h / 16 do
not come closer to the derivative until they agree with it.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tapeless.arguments.argument_checks import check_arguments, check_arrays, check_callable
from tapeless.differentiate.autodiff import jvp, vjp
from tapeless.tracer import core, dtypes, pytree
from tapeless.tracer import numpy as tnp
from tapeless.tracer.jaxpr import Equation, Jaxpr, Var, list_inner_jaxprs
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import ShapedArray, aval_of

EPS = 1 / 2048
# How far float32 differences with step EPS stray: rounding, 1e-7 / EPS = 2e-4, times ten. For float64 it is the
# truncation, EPS² = 2e-7, with room for third derivatives of a hundred.
_TOLERANCE = {
    "bfloat16": 1e-1,
    "float16": 1e-2,
    "float32": 2e-3,
    "float64": 1e-5,
    "complex64": 2e-3,
    "complex128": 1e-5,
}
_MODES = ("fwd", "rev")
_SHOWN = 3  # arrays of a direction that messages show


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int,
    modes: Sequence[str] = _MODES,
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """Check derivatives of a function against central differences.

    Args:
      f: maps pytrees of arrays to a pytree of arrays; integers are held fixed.
      args: where to check; f must be differentiable around it.
      order: 1 for first derivatives, 2 for derivatives of those too, ...
      modes: "fwd", "rev" or both.
      atol, rtol: how far a derivative may be from the difference; by default as the dtypes allow, 1e-5 for float64.
      eps: the step of the differences, 1/2048 by default; a quarter and a sixteenth of it where they disagree, and
        what differences approach as the step shrinks is right.
    Raises: AssertionError naming the disagreeing mode and order, the result and the direction, with both numbers;
      ValueError for an order or a mode that there is not.

    >>> check_grads(lambda x: x**3, (2.0,), order=2)
    """
    check_callable("check_grads", f)
    check_arguments("check_grads", f, core.describe_function(f), args)
    modes = (modes,) if isinstance(modes, str) else tuple(modes)
    if order < 1 or not modes or not set(modes) <= set(_MODES):
        raise ValueError(f"check_grads: order must be at least 1 and modes some of {_MODES}, not {order} and {modes}.")
    flat, leaves, names = _flat(f, pytree.tree_map(_array, tuple(args)))
    widest = max(_TOLERANCE.get(str(np.dtype(aval_of(x).dtype)), 0.0) for x in leaves) if leaves else 0.0
    tolerance = _Tolerance(widest if atol is None else atol, widest if rtol is None else rtol, eps or EPS)
    _check(_Case(flat, leaves, getattr(f, "__name__", "f"), names, ()), order, modes, tolerance)


class _Tolerance(NamedTuple):
    atol: float
    rtol: float
    eps: float

    def agree(self, x: Any, y: Any) -> Any:
        return np.isclose(x, y, rtol=self.rtol, atol=self.atol, equal_nan=True)

    def steps(self) -> Iterator[float]:
        """List the steps of the differences, the longest first."""
        return (self.eps / n for n in (1, 4, 16))

    def wrong(self, ours: Any, differences: Iterator[Any]) -> tuple[Any, Any]:
        """Mark where differences do not approach derivatives; also return the differences of the longest step."""
        first = before = next(differences)
        wrong = np.logical_not(self.agree(ours, first))
        while np.any(wrong) and (closer := next(differences, None)) is not None:
            receded = abs(ours - closer) > abs(ours - before) / 2  # not from what is nan
            wrong, before = wrong & np.logical_or(receded, ~self.agree(ours, closer)), closer
        return wrong, first


class _Case(NamedTuple):
    """A function of flat inexact arrays with flat inexact results, where to check it, and how to speak of it."""

    f: Callable[..., list[Any]]
    args: list[Any]
    name: str
    result_names: list[str] | None
    path: tuple[str, ...]  # the modes by which it was derived from the user's function


def _check(case: _Case, order: int, modes: Sequence[str], tolerance: _Tolerance) -> None:
    direction = _Direction(case)
    if "fwd" in modes:
        _check_forward(case, direction, tolerance)
    if "rev" in modes:
        _check_reverse(case, direction, tolerance)
    if order > 1:
        for mode in modes:
            _check(_derivative(case, mode), order - 1, modes, tolerance)


def _check_forward(case: _Case, v: "_Direction", tolerance: _Tolerance) -> None:
    values, pushed = jvp(case.f, case.args, v.tangents)
    if not all(np.all(tolerance.agree(wide(y), wide(z))) for y, z in zip(values, case.f(*case.args), strict=True)):
        raise AssertionError(f"check_grads: {_disagrees(case, 'fwd', f'{case.name} itself')}: in its value.")
    for k, ours in enumerate(map(wide, pushed)):
        wrong, theirs = tolerance.wrong(ours, (v.difference(step)[k] for step in tolerance.steps()))
        if wrong.any():
            worst = np.unravel_index(np.argmax(np.where(wrong, abs(ours - theirs), -1)), wrong.shape)
            where = case.result_names[k] if case.result_names else f"[{k}]"
            index = f"[{', '.join(map(str, worst))}]" if worst else ""
            what = f"result{where}{index} along the direction below"
            raise AssertionError(_message(case, "fwd", what, ours[worst], theirs[worst], v, tolerance))


def _check_reverse(case: _Case, v: "_Direction", tolerance: _Tolerance) -> None:
    results, pull_back = vjp(case.f, *case.args)
    cts = [v.draw(y) for y in results]
    ours = _pairing(pull_back(cts), v.tangents)
    wrong, theirs = tolerance.wrong(ours, (_pairing(cts, v.difference(step)) for step in tolerance.steps()))
    if wrong:
        what = "the sum of cotangent * derivative along the direction below"
        raise AssertionError(_message(case, "rev", what, ours, theirs, v, tolerance))


def _message(case: _Case, mode: str, what: str, ours: Any, theirs: Any, v: "_Direction", given: _Tolerance) -> str:
    return (
        f"check_grads: {_disagrees(case, mode, f'central differences of {case.name}')}.\n"
        f"  {what}: {_BY[mode]} gives {ours}, differences give {theirs} "
        f"(atol={given.atol}, rtol={given.rtol}, eps={given.eps}).\n"
        f"  direction: {v.shown()}{_rounding(case)}"
    )


def _rounding(case: _Case) -> str:
    """Say where a function of 64-bit arguments rounds to a narrower dtype; nothing if it does not, or is not traced."""
    avals = [aval_of(x) for x in case.args]
    try:
        jaxpr, consts = trace_to_jaxpr(case.f, avals)
    except Exception:  # whatever tracing raises: the function may branch on values, which differences do not mind
        return ""
    eqn = None if any(_is_narrow(aval) for aval in avals) else _narrow_equation(jaxpr, {*jaxpr.invars[len(consts) :]})
    if eqn is None:
        return ""
    dtype = next(v.aval.dtype for v in eqn.outvars if _is_narrow(v.aval))
    place = f" at {eqn.source.describe()}" if eqn.source else ""
    tolerance = _TOLERANCE.get(str(dtype), 0.1)
    return (
        f"\n  {case.name} rounds to {dtype}{place}: compute it in 64 bits, or pass atol={tolerance}, rtol={tolerance}."
    )


def _is_narrow(aval: ShapedArray) -> bool:
    return dtypes.is_inexact(aval.dtype) and dtypes.real_part_dtype(aval.dtype).itemsize < 8


def _narrow_equation(jaxpr: Jaxpr, varied: set[Any]) -> Equation | None:
    """Find the first equation with a result of less than 64 bits that depends on `varied`, also in inner programs."""
    for eqn in jaxpr.eqns:
        if varied.isdisjoint(v for v in eqn.invars if isinstance(v, Var)):
            continue
        varied.update(eqn.outvars)
        inside = (_narrow_equation(program, set(program.invars)) for program in list_inner_jaxprs(eqn))
        found = next((each for each in inside if each is not None), None)
        if found is not None or any(_is_narrow(v.aval) for v in eqn.outvars):
            return found or eqn
    return None


def _disagrees(case: _Case, mode: str, what: str) -> str:
    path = " of ".join((mode, *case.path[::-1]))
    return f"{_FULL[mode]} mode disagrees with {what} at order {len(case.path) + 1} ({path})"


_FULL = {"fwd": "forward", "rev": "reverse"}
_BY = {"fwd": "jvp", "rev": "vjp"}


def _derivative(case: _Case, mode: str) -> _Case:
    """Make the derivative of a case a case: of twice the arguments for forward mode."""
    f, n = case.f, len(case.args)

    def pushed(*args: Any) -> list[Any]:
        values, tangents = jvp(f, args[:n], args[n:])
        return [*values, *tangents]

    def pulled(*args: Any) -> list[Any]:
        values, pull_back = vjp(f, *args)
        return list(pull_back(values))

    derived, args = (pushed, [*case.args, *case.args]) if mode == "fwd" else (pulled, case.args)
    return _Case(derived, args, case.name, None, (*case.path, mode))


def draw_like(rng: "np.random.Generator", like: Any) -> Any:
    """Draw a random array, normally distributed, of the shape and the inexact dtype of `like`."""
    aval = aval_of(like)
    found = rng.standard_normal(aval.shape)
    if dtypes.is_complex(aval.dtype):
        found = found + 1j * rng.standard_normal(aval.shape)
    return np.asarray(found).astype(aval.dtype)


class _Direction:
    """A random direction for the arguments of a case, the same every time, and the difference along it."""

    def __init__(self, case: _Case) -> None:
        self._case, self._rng = case, np.random.default_rng(len(case.args))
        self._differences: dict[float, list[Any]] = {}
        self.tangents = [self.draw(x) for x in case.args]

    def draw(self, like: Any) -> Any:
        """Draw a random array of the type of `like`."""
        return draw_like(self._rng, like)

    def difference(self, eps: float) -> list[Any]:
        """Compute the central difference of every result, in float64 or complex128."""
        if eps not in self._differences:
            pairs = zip(self._results_at(eps), self._results_at(-eps), strict=True)
            self._differences[eps] = [(wide(y) - wide(z)) / (2 * eps) for y, z in pairs]
        return self._differences[eps]

    def _results_at(self, step: float) -> list[Any]:
        args = [wide(x) + step * wide(t) for x, t in zip(self._case.args, self.tangents)]
        return self._case.f(*[_array(np.asarray(x).astype(aval_of(y).dtype)) for x, y in zip(args, self._case.args)])

    def shown(self) -> str:
        """Render the parts for the first arguments in one line, shortened."""
        parts = [np.array2string(wide(t), precision=4, threshold=8, edgeitems=2) for t in self.tangents[:_SHOWN]]
        more = f", ... of {len(self.tangents)} arrays" if len(self.tangents) > _SHOWN else ""
        return " ".join(", ".join(parts).split()) + more


def _flat(f: Callable[..., Any], args: Any) -> tuple[Callable[..., list[Any]], list[Any], list[str]]:
    """Make `f` a function of its flat inexact arguments and results; return the arguments and names of results, too."""
    leaves, tree = pytree.flatten(args)
    varied = [i for i, x in enumerate(leaves) if dtypes.is_inexact(aval_of(x).dtype)]
    names: list[str] = []

    def flat(*given: Any) -> list[Any]:
        now = list(leaves)
        for i, x in zip(varied, given, strict=True):
            now[i] = x
        result = f(*pytree.unflatten(tree, now))
        check_arrays(f"check_grads: the result{{}} of {core.describe_function(f)}", result)
        results = pytree.leaves_with_path(result)
        kept = [(path, y) for path, y in results if dtypes.is_inexact(aval_of(y).dtype)]
        names[:] = [pytree.keystr(path) for path, _ in kept]
        return [y for _, y in kept]

    return flat, [leaves[i] for i in varied], names


def _array(x: Any) -> Any:
    """Convert an array of NumPy to one of ours, which all of a user's functions take."""
    return tnp.asarray(x) if isinstance(x, np.ndarray) else x


def wide(x: Any) -> Any:
    """Convert x to float64 or complex128."""
    kind = np.complex128 if dtypes.is_complex(aval_of(x).dtype) else np.float64
    return np.asarray(x).astype(kind)


def _pairing(xs: Sequence[Any], ys: Sequence[Any]) -> float:
    """Compute Re Σ x y, without conjugation: how cotangents meet tangents."""
    return float(sum(np.real(np.sum(wide(x) * wide(y))) for x, y in zip(xs, ys, strict=True)))
