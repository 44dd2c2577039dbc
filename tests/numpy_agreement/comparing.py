"""Runs the calls of rows in one program, and says how the results differ from NumPy's."""

import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.tracer.errors import ConcretizationTypeError
from tests.numpy_agreement.cases import Case, Row, changed, dtypes_in

REFUSALS = (TypeError, ValueError, IndexError, NotImplementedError, OverflowError)
NOT_SHARED = {
    "out": "arrays are never written to",
    "order": "of elements in memory, or of fields, which arrays of ours do not have",
    "casting": "NumPy's ufuncs take it, ours have no such argument",
    "overwrite_input": "arrays are never written to",
    "device": "NumPy knows the CPU alone; tests/api/numpy/test_array_api.py",
    "kind": "the algorithm, which is XLA's",
    "copy": "whether memory is shared, which is tested where arrays are made",
}


class Problem(NamedTuple):
    """One call whose result is not as expected."""

    name: str
    case: Case
    what: str

    def __str__(self) -> str:
        return f"tnp.{self.name}{self.case}: {self.what}"


def function_of(module: Any, name: str) -> Any:
    """The function that a dotted name means in a module."""
    for part in name.split("."):
        module = getattr(module, part)
    return module


def problems(rows: dict[str, Row], run: Callable[[Callable[..., Any]], Callable[..., Any]] = tl.jit) -> list[Problem]:
    """What is wrong in these rows, their calls traced into one program that `run` makes."""
    pairs = [(name, row, case) for name, row in rows.items() for case in row.cases]
    expected = [_expected(name, row, case) for name, row, case in pairs]
    found = _found(pairs, run)
    return [
        Problem(name, case, what)
        for (name, row, case), theirs, ours in zip(pairs, expected, found, strict=True)
        for what in _differences(row, case, theirs, ours)
    ]


# ---- NumPy's side --------------------------------------------------------------------------------------------


def _expected(name: str, row: Row, case: Case) -> Any:
    f = row.numpy or function_of(np, name)
    args, kwargs = changed(case, np.copy)
    if row.inexact:
        args, _ = changed(Case(args), _as_float64)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return leaves(f(*args, **kwargs))
        except (*REFUSALS, AttributeError, ZeroDivisionError) as error:
            return error


def _as_float64(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return x.astype(np.float64) if x.dtype.kind in "biu" else x.copy()


def leaves(result: Any) -> list[Any]:
    """What results in sequences consist of, one after another."""
    if isinstance(result, (list, tuple)) and not hasattr(result, "aval"):
        return [leaf for part in result for leaf in leaves(part)]
    return [result]


# ---- our side ------------------------------------------------------------------------------------------------


def _found(pairs: Sequence[tuple[str, Row, Case]], run: Any) -> list[Any]:
    """The results of each call, or what it raised. Operands are traced, where a function must know them, known."""
    operands: list[np.ndarray[Any, Any]] = []
    for _, _, case in pairs:
        changed(case, lambda x: operands.append(x) or x)
    results: list[Any] = []

    def all_calls(xs: list[Any]) -> list[Any]:
        results.clear()
        given = iter(xs)
        outs = []
        for name, row, case in pairs:
            f = row.ours or function_of(tnp, name)
            args, kwargs = changed(case, lambda _: next(given))
            results.append(_result(f, args, kwargs, case))
            if isinstance(results[-1], list):
                outs += [leaf for leaf in results[-1] if isinstance(leaf, tl.Array)]
        return outs

    values = iter(run(all_calls)(operands))
    return [
        [np.asarray(next(values)) if isinstance(leaf, tl.Array) else leaf for leaf in result]
        if isinstance(result, list)
        else result
        for result in results
    ]


def _result(f: Any, args: Any, kwargs: Any, case: Case) -> Any:
    try:
        return leaves(f(*args, **kwargs))
    except ConcretizationTypeError:
        pass
    except Exception as error:
        return error
    try:
        return leaves(f(*case.args, **case.kwargs))
    except Exception as error:
        return error


# ---- both ----------------------------------------------------------------------------------------------------


def _differences(row: Row, case: Case, theirs: Any, ours: Any) -> Iterator[str]:
    if isinstance(ours, Exception) and not isinstance(ours, REFUSALS):
        yield f"{type(ours).__name__}: {ours}"
    elif isinstance(theirs, Exception) or isinstance(ours, Exception):
        yield from _disagreement(row, case, theirs, ours)
    elif len(ours) != len(theirs):
        yield f"{len(ours)} results, NumPy {len(theirs)}"
    else:
        for i, (x, y) in enumerate(zip(ours, theirs, strict=True)):
            where = f"result {i}: " if len(ours) > 1 else ""
            yield from (where + what for what in _compared(row, case, x, y))


def _disagreement(row: Row, case: Case, theirs: Any, ours: Any) -> Iterator[str]:
    if isinstance(ours, Exception) and isinstance(theirs, Exception):
        return
    reasons = row.refuses if isinstance(ours, Exception) else row.accepts
    if not any(applies(case) for applies in reasons.values()):
        refused = ours if isinstance(ours, Exception) else theirs
        who = "refused" if refused is ours else "accepted, refused by NumPy"
        yield f"{who}: {type(refused).__name__}: {refused}".replace("\n", " ")[:300]


def _compared(row: Row, case: Case, x: Any, y: Any) -> Iterator[str]:
    number = isinstance(y, (bool, int, float)) and isinstance(x, np.ndarray)
    if not isinstance(y, (np.ndarray, np.generic)) and not number:
        if isinstance(x, (np.ndarray, np.generic)) or x != y:
            yield f"{x!r}, NumPy {y!r}"
        return
    x, y = np.asarray(x), np.asarray(y)
    if x.shape != y.shape:
        yield f"shape {x.shape}, NumPy {y.shape}"
        return
    if not (row.dtypes or number or (row.inexact and _is_mixed(case))) and x.dtype not in _like(y.dtype, case):
        yield f"dtype {x.dtype}, NumPy {y.dtype}"
    if not _close(x, y, row.tolerance):
        yield f"{x.ravel()[:24].tolist()}, NumPy {y.ravel()[:24].tolist()}".replace("\n", " ")


def _is_mixed(case: Case) -> bool:
    """Whether operands are of several dtypes, some of which are integers: what they are for `inexact` is no guide."""
    given = {*dtypes_in(Case(case.args))}
    return len(given) > 1 and any(d.kind in "biu" for d in given)


def _like(theirs: np.dtype[Any], case: Case) -> set[np.dtype[Any]]:
    """The dtypes that agree with NumPy's: what it makes 64 bits wide of its own accord is of the default width."""
    given = dtypes_in(case)
    if theirs in given or theirs.kind == "b":
        return {theirs}
    if any(d.itemsize // (2 if d.kind == "c" else 1) == 8 for d in given):
        return {theirs, np.dtype({"f": "float32", "i": "int32", "u": "uint32", "c": "complex64"}[theirs.kind])}
    narrow = {"float64": "float32", "int64": "int32", "uint64": "uint32", "complex128": "complex64"}
    found = {np.dtype(narrow.get(theirs.name, theirs.name))}
    return found | ({np.dtype("float32")} if theirs.kind == "f" and any(d.kind in "biu" for d in given) else set())


def _close(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], tolerance: float) -> bool:
    """Whether numbers are the same up to a few units in the last place of the coarser dtype."""
    if x.dtype.kind in "biu" and y.dtype.kind in "biu":
        return bool(np.array_equal(x.astype(y.dtype) if y.dtype.kind != "b" else x != 0, y))
    coarse = np.finfo(min((d for d in (x.dtype, y.dtype) if d.kind in "fc"), key=lambda d: np.finfo(d).bits))
    wide = np.complex128 if "c" in (x.dtype.kind, y.dtype.kind) else np.float64
    with np.errstate(all="ignore"):
        x, y = x.astype(wide), y.astype(wide)
        if wide is np.float64:
            y = np.where(np.abs(y) > float(coarse.max), np.copysign(np.inf, y), y)
        same = np.abs(x - y) <= float(coarse.eps) * (8 + tolerance) * (1 + np.abs(y))
        near = partial(np.isclose, rtol=1e-2, atol=0, equal_nan=True)  # beside what is not finite
        beside = (np.isnan(x) & np.isnan(y)) | (near(x.real, y.real) & near(x.imag, y.imag))
        return bool(np.all(same | (~np.isfinite(y) & beside)))


# ---- keywords ------------------------------------------------------------------------------------------------


def unused_keywords(name: str, row: Row) -> list[str]:
    """Keywords that both functions have and no call of the row gives."""
    ours, theirs = (_parameters(function_of(module, name)) for module in (tnp, np))
    given = {key for case in row.cases for key in _given(ours, case)}
    return [
        key
        for key, p in ours.items()
        if key in theirs and p.default is not p.empty and not {key} & {*given, *row.keywords, *NOT_SHARED}
    ]


def _parameters(f: Any) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(f).parameters)
    except (TypeError, ValueError):
        return {}


def _given(parameters: dict[str, inspect.Parameter], case: Case) -> set[str]:
    by_place = [k for k, p in parameters.items() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return {*by_place[: len(case.args)], *case.kwargs}
