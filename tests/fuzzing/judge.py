"""Compares what the modes of a program computed, with each other and with the oracle, within what rounding explains."""

import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

import tapeless as tl
from tests.fuzzing import oracle
from tests.fuzzing.modes import DEFINED, Arrays, Case, Mode, chosen
from tests.fuzzing.noise import noisy
from tests.fuzzing.oracle import second_differences
from tests.fuzzing.oracle.values import kind_of, units
from tests.fuzzing.program import np_dtype, walk


@dataclass
class Disagreement:
    """`mode` computed something else than `reference`, of one quantity; or raised."""

    quantity: str
    mode: str
    reference: str
    detail: str

    def kind(self) -> tuple[str, str, str]:
        """What must stay while a program is made shorter."""
        first = self.detail.split(":")[0] if self.reference == "raises" else ""
        return (self.mode, self.reference, first)

    def __str__(self) -> str:
        return f"{self.quantity}: {self.mode} against {self.reference}: {self.detail}"


@dataclass
class Verdict:
    modes: list[str] = field(default_factory=list)
    disagreements: list[Disagreement] = field(default_factory=list)
    unstable: list[Disagreement] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    excused: list[Disagreement] = field(default_factory=list)


def unit_of(case: Case) -> float:
    """The unit of rounding of the narrowest floating dtype in the program."""
    variables = [*case.program.args, *(v for s in walk(case.program.statements) for v in s.outs)]
    dtypes = {np_dtype(v.dtype) for v in variables if v.kind in "fc"}
    return max([float(ml_dtypes.finfo(d).eps) for d in dtypes], default=2.0**-52)


def longest(case: Case) -> int:
    """The elements of the largest array in the program: no sum has more terms, but those of nested loops."""
    variables = [*case.program.args, *(v for s in walk(case.program.statements) for v in s.outs)]
    return max([v.size for v in variables], default=1)


def of_sums(unit: float, terms: int) -> float:
    """How far sums of so many numbers of the order of one may be off, whatever is left of them.

    Where signs are random, partial sums are of the order of the root of their number n, and so is each of n rounding
    errors, in units; these add up as random numbers do, to n units. What sums to n itself errs by less relative to
    itself (Higham 2002, 4.2). Narrow numbers are summed in float32.
    """
    return terms * min(unit, 2.0**-23)


def tolerance(unit: float) -> float:
    """How far results may be apart, relative to the largest number of a quantity: half the digits.

    The other half is room for the condition of a program, times its length. What is wrong is wrong in the first digits.
    """
    return 4 * unit**0.5


Outside = Callable[[Case, str], Arrays | None]
Notify = Callable[[str], None]


def judge(
    case: Case,
    every: bool = False,
    only: Sequence[str] = (),
    outside: Outside | None = None,
    notify: Notify = lambda mode: None,
) -> Verdict:
    """Run a case in its modes and compare.

    Args:
      every: in all modes; otherwise in some, chosen by the seed.
      only: in the modes of these names.
      outside: gives what somebody else computes, of a quantity.
      notify: is told the name of each mode before it is run, as it may end the process.
    """
    verdict = Verdict()
    modes = [m for m in chosen(case.program, case.seed, every or bool(only)) if not only or m.name in only]
    for quantity in dict.fromkeys(m.quantity for m in modes):
        _Quantity(case, quantity, verdict, outside, notify).compare([m for m in modes if m.quantity == quantity])
    return verdict


def _says_that_there_is_none(error: Exception) -> bool:
    """Tell whether a derivative is refused for want of a formula, as that of igamma's derivative by its order."""
    return isinstance(error, NotImplementedError) and "the derivative by its" in str(error)


class _Quantity:
    """One quantity of a case: its references, and how far from them a result may be."""

    def __init__(self, case: Case, name: str, verdict: Verdict, outside: Outside | None, notify: Notify) -> None:
        self.case, self.name, self.verdict, self.outside, self.notify = case, name, verdict, outside, notify
        self.unit, self.rounded = unit_of(case), case.program.rounded
        self.jaxpr: Any = None

    def compare(self, modes: Sequence[Mode]) -> None:
        references = dict(self.references())
        for mode in modes:
            self.verdict.modes.append(mode.name)
            self.notify(mode.name)
            found = self.attempt(mode.name, lambda mode=mode: arrays(mode.run(self.case)))
            if found is None:
                continue
            before = len(self.verdict.disagreements)
            for name, (expected, errors) in references.items():
                self.check(mode.name, found, name, expected, errors)
            references = references or {mode.name: (found, None)}
            if self.name == "cotangents" and not self.rounded:
                self.pairing(mode.name, found)
                self.excuse(before)
            if self.case.program.kinks and self.name in ("second", "twice"):
                self.pairing(mode.name, found, self.curved)

    def excuse(self, before: int) -> None:
        """Cotangents that only JAX has otherwise are JAX's: both modes agree here, and with the oracle's derivative.

        Of reads out of range that are clamped, JAX drops the cotangent, though not the tangent.
        """
        latest = self.verdict.disagreements[before:]
        if latest and all(d.reference == "JAX" for d in latest):
            del self.verdict.disagreements[before:]
            self.verdict.excused += latest

    def attempt(self, mode: str, run: Callable[[], Any]) -> Any:
        try:
            return run()
        except Exception as error:
            if _says_that_there_is_none(error):
                return None
            text = (
                f"{type(error).__name__}: {str(error)[:300]}\n{''.join(traceback.format_tb(error.__traceback__)[-3:])}"
            )
            self.verdict.disagreements.append(Disagreement(self.name, mode, "raises", text))
            return None

    def references(self) -> Iterator[tuple[str, tuple[Arrays, Any]]]:
        """By the oracle: the traced program evaluated, and the derivative of the one that it is the derivative of."""
        case = self.case
        text, derived = DEFINED.get(self.name, ("", ""))
        if text:
            self.jaxpr, args = self.traced(text), case.xs
        else:
            self.jaxpr, args = self.attempt("trace", lambda: tl.make_jaxpr(case.f)(*case.args)), case.args
        if self.jaxpr is None:
            return
        values = self.consult(lambda: oracle.evaluate(self.jaxpr, args, exact=not self.rounded))
        if values is not None:
            yield "oracle", (values, None)
        if (
            self.outside
            and (theirs := self.consult(lambda: self.outside and self.outside(case, self.name))) is not None
        ):
            yield "JAX", (theirs, None)
        if case.program.kinks and self.name == "curvature" and (curved := self.curved()) is not None:
            yield "second differences", curved
        inner = derived and not self.rounded and self.traced(derived)
        if inner:
            found = self.consult(lambda: oracle.directional(inner, case.xs, case.ts))
            if found is not None:
                kept = [k for k, e in enumerate(found[1]) if e is not None]
                yield "differences", ([found[0][k] for k in kept], [found[1][k] for k in kept])

    def traced(self, text: str) -> Any:
        """The program of an expression in xs."""
        case = self.case
        of = case.of(text)
        return self.attempt(
            f"trace {text}", lambda: tl.make_jaxpr(lambda *xs: of(list(xs), case.ts, case.cts))(*case.xs)
        )

    def consult(self, ask: Callable[[], Any]) -> Any:
        """What the oracle says; what it does not know is noted."""
        try:
            return ask()
        except Exception as error:
            notes = "; ".join(getattr(error, "__notes__", [])[:1])
            self.verdict.unknown.append(f"{type(error).__name__}: {str(error)[:200]} {notes}")
            return None

    def check(self, mode: str, found: Arrays, name: str, expected: Arrays, errors: Any) -> None:
        if len(found) != len(expected) or any(np.shape(a) != np.shape(b) for a, b in zip(found, expected)):
            shapes = [a.shape for a in found], [b.shape for b in expected]
            self.verdict.disagreements.append(Disagreement(self.name, mode, name, f"shapes {shapes[0]}, {shapes[1]}"))
            return
        scale = size_of(expected)
        slack = tolerance(self.unit) * scale + of_sums(self.unit, longest(self.case))
        for k, (a, b) in enumerate(zip(found, expected)):
            error = 0.0 if errors is None else 10 * errors[k]
            gap = distance(a, b, 2 * units(wide(b), b.dtype) if self.rounded and is_float(b) else slack + error)
            if gap.any():
                self.note(Disagreement(self.name, mode, name, shown(k, a, b)), k, float(np.nanmax(gap)))

    def note(self, found: Disagreement, k: int, gap: float) -> None:
        """A disagreement, unless what is computed scatters by a third of it when operations err a little."""
        scattered = self.scatter()
        explained = scattered is not None and (k < 0 or scattered[k] > gap / 3)
        (self.verdict.unstable if explained else self.verdict.disagreements).append(found)

    def scatter(self) -> list[float] | None:
        args = self.case.args if self.name == "values" else self.case.xs
        unit, count = (None, 8) if self.rounded else (self.unit, 4)
        runs = [self.consult(lambda seed=seed: noisy(self.jaxpr, args, unit, seed)) for seed in range(count)]
        if any(r is None for r in runs):
            return None
        return [
            max(float(np.max(distance(a, b, 0.0), initial=0.0)) for b in each[1:])
            for each in zip(*runs)
            for a in each[:1]
        ]

    def curved(self) -> Any:
        """Second derivatives along t, by the oracle's differences of values."""
        inner = self.traced("g(xs)")
        return inner and self.consult(lambda: second_differences.curvature(inner, self.case.xs, self.case.ts))

    def pushed(self) -> Any:
        """The derivative along t, by the oracle."""
        inner = self.traced("g(xs)")
        return inner and self.consult(lambda: oracle.directional(inner, self.case.xs, self.case.ts))

    def pairing(self, mode: str, pulled: Arrays, push: Callable[[], Any] | None = None) -> None:
        """<c, J t> = <J* c, t>, with J t from the oracle's derivative; or <c, t H t> = <c H t, t>."""
        found = (push or self.pushed)()
        if not found:
            return
        tangents, errors = ([x for x in each if x is not None] for each in found)
        left, right = paired(self.case.cts, tangents), paired(pulled, self.case.ts)
        error = sum(float(np.sum(np.abs(c) * e)) for c, e in zip(self.case.cts, errors))
        scale = max(1.0, sum(float(np.sum(np.abs(c * t))) for c, t in zip(self.case.cts, tangents)), size_of(pulled))
        sums = of_sums(self.unit, longest(self.case))
        if np.isfinite(error) and not abs(left - right) <= tolerance(self.unit) * scale + sums + 10 * error:
            scattered = self.scatter()
            detail = f"<c, J t> is {left:.9g}, <J* c, t> {right:.9g}"
            found = Disagreement(self.name, mode, "differences", detail)
            explained = scattered is not None and max(scattered, default=0) > abs(left - right) / 10
            (self.verdict.unstable if explained else self.verdict.disagreements).append(found)


def arrays(out: Any) -> Arrays:
    return [np.asarray(x) for x in out]


def wide(x: Any) -> np.ndarray:
    x = np.asarray(x)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def distance(a: Any, b: Any, slack: Any) -> np.ndarray:
    """How far elements are apart where that is more than `slack`, 0 elsewhere; infinite where only one is finite."""
    a, b = np.asarray(a), np.asarray(b)
    if not (is_float(a) or is_float(b)):
        return np.where(a == b, 0.0, np.maximum(np.abs(wide(a) - wide(b)), 1.0))
    a, b = wide(a), wide(b)
    with np.errstate(all="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        gap = np.where(same, 0.0, np.abs(a - b))
    gap = np.where(np.isnan(gap), np.inf, gap)
    return np.where(gap > slack, gap, 0.0)


def is_float(x: Any) -> bool:
    return kind_of(np.asarray(x).dtype) in "fc"


def size_of(values: Sequence[Any]) -> float:
    """The largest finite number of them, at least 1."""
    largest = 1.0
    for x in values:
        x = np.abs(wide(x)) if is_float(x) else np.zeros(1)
        largest = max(largest, float(np.max(x[np.isfinite(x)], initial=0.0)))
    return largest


def paired(xs: Sequence[Any], ys: Sequence[Any]) -> float:
    return sum(float(np.real(np.sum(wide(x) * wide(y)))) for x, y in zip(xs, ys, strict=True))


def shown(k: int, a: np.ndarray, b: Any) -> str:
    with np.printoptions(precision=6, threshold=20):
        return f"result {k}: {np.array2string(np.asarray(a))} against {np.array2string(np.asarray(b))}".replace(
            "\n", " "
        )
