"""Integers in the bodies of `index.build` and its like, each with its exact affine form and its bounds.

Search terms: affine index expression, loop variable, quasi-affine. An index is `constant + Σ coefficient·part`; the
parts are variables with a range, quotients of indices by numbers, and integers that an array holds. Arithmetic keeps
the form where it can; anything else, comparisons among it, is computed from the value. Source: Bernstein et al. 2020,
section 3.
"""

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NoReturn

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer.array import Array
from tapeless.tracer.core import Tracer, check_alive
from tapeless.tracer.indices.sizes import Size
from tapeless.tracer.primitives.elementwise import convert_element_type, div, rem
from tapeless.tracer.terms.affine import Affine, Symbol
from tapeless.tracer.terms.term import Bracket, IsZero
from tapeless.tracer.types import ShapedArray, aval_of

Scalar = Any  # a traced integer of rank 0


@dataclass(frozen=True, eq=False, slots=True)
class Variable:
    """A variable of a body: 0 <= value < size.

    `period`: arrays are read modulo this number. `middle`: the index is the variable minus this number. `name`: that in
    the body. `stays`: formulas do not eliminate it. `range_name`: the name of its range, if there is one.
    """

    value: Scalar
    size: int
    period: int | None = None
    middle: int | None = None
    name: str = ""
    stays: bool = False
    range_name: str = ""

    @property
    def bounds(self) -> tuple[int, int]:
        return 0, self.size - 1


@dataclass(frozen=True, eq=False, slots=True)
class IndexQuotient:
    """The quotient of an affine index by a positive number, rounded down."""

    dividend: "Index"
    divisor: int

    @property
    def value(self) -> Scalar:
        """Return the quotient, computed of a dividend that is not negative: there it is rounded down."""
        x, shift = self._shifted
        found = div(x.value, x.value.dtype.type(self.divisor))
        return found - shift if shift else found

    @property
    def remainder(self) -> Scalar:
        """Return the remainder, which is not negative."""
        x, _ = self._shifted
        return rem(x.value, x.value.dtype.type(self.divisor))

    @property
    def _shifted(self) -> tuple["Index", int]:
        """Return the dividend plus a multiple of the divisor that makes it not negative, and how often it was added."""
        shift = max(-(self.dividend.bounds[0] // self.divisor), 0)
        return self.dividend + shift * self.divisor, shift

    @property
    def bounds(self) -> tuple[int, int]:
        low, high = self.dividend.bounds
        return low // self.divisor, high // self.divisor


@dataclass(frozen=True, eq=False, slots=True)
class Element:
    """An integer read from an array, or computed from such integers."""

    value: Scalar


Part = Variable | IndexQuotient | Element


class Index:
    """An integer index in a body, in the affine form `constant + Σ coefficient·part`.

    It reads arrays of tapeless, `A[i, 2 * j + 1]`: outside of an axis it reads 0, which has no derivative.
    """

    __slots__ = ("constant", "parts")
    __array_ufunc__: ClassVar[None] = None  # arrays and numbers of NumPy leave operators to an index
    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # `==` makes a boolean

    def __init__(self, constant: int = 0, parts: dict[Part, int] | None = None) -> None:
        self.constant: Final = constant
        self.parts: Final = parts or {}
        _check_in_scope(self)

    # ---- what it is

    @property
    def is_affine(self) -> bool:
        """Tell whether no part is an integer read from an array."""
        return not any(isinstance(p, Element) for p in self.parts)

    @property
    def bounds(self) -> tuple[int, int]:
        """Return the least and the greatest value, by interval arithmetic, of an affine index."""
        low = high = self.constant
        for part, k in self.parts.items():
            assert not isinstance(part, Element)
            ends = sorted(k * end for end in part.bounds)
            low, high = low + ends[0], high + ends[1]
        return low, high

    @property
    def value(self) -> Scalar:
        """Return the index as an integer of the default width, of 64 bits if the range of an affine one needs them."""
        return self._added(self._dtype())

    @property
    def position(self) -> Scalar:
        """Return the index as a traced integer, in a dtype in which large elements of arrays do not wrap around."""
        if self.is_affine or (list(self.parts.values()) == [1] and not self.constant):
            return self.value
        narrow = all(part.value.dtype.itemsize < 4 for part, _ in elements_of(self)) and _fits(
            self.constant, self.constant
        )
        return self._added(np.int32 if narrow else np.int64)

    def _dtype(self) -> Any:
        if self.is_affine and not _fits(*self.bounds):
            return np.int64
        met = dtypes.result_type(*[p.value for p in self.parts])[0] if self.parts else dtypes.default_dtype("i")
        return met if np.issubdtype(met, np.integer) else np.int64

    def _added(self, dtype: Any) -> Scalar:
        """Compute the value in a dtype; negative multiples are subtracted, as unsigned dtypes do not hold them."""
        wide = dtype == np.int64 or not _fits(self.constant, self.constant)
        constant = (np.int64 if wide else np.int32)(self.constant)
        if not self.parts:
            return constant
        if (quotient := self._divided) is not None:
            found = quotient.remainder
            return found if found.dtype == dtype else convert_element_type(found, dtype)
        (part, k), *rest = sorted(self.parts.items(), key=lambda p: p[1] < 0)
        total = _multiple(part, k, dtype)
        for part, k in rest:
            x = _multiple(part, abs(k), dtype)
            total = total - x if k < 0 else total + x
        return total + constant if self.constant else total

    @property
    def _divided(self) -> IndexQuotient | None:
        """Return the quotient x // n if this index is the remainder x - n (x // n); None if it is none."""
        for q, k in self.parts.items():
            if isinstance(q, IndexQuotient) and k == -q.divisor and self.constant == q.dividend.constant:
                return q if {**q.dividend.parts, q: k} == self.parts else None
        return None

    def __jax_array__(self) -> Any:
        return self.value

    @property
    def aval(self) -> ShapedArray:
        """Return the type of the value, as arrays do, so that an index is accepted where an array is expected."""
        return aval_of(self.value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.value, name)  # methods of arrays

    def __index__(self) -> NoReturn:
        raise TypeError(f"{self} has no value yet, as it stands for all of its range. {_ADVICE}")

    __int__ = __index__
    __float__ = __index__
    __complex__ = __index__

    def __bool__(self) -> NoReturn:
        raise TypeError(f"{self} is not known where `if` or `while` asks for it: use index.where or index.cond.")

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(f"a NumPy array cannot be indexed by {self}. {_ADVICE}")

    def __iter__(self) -> NoReturn:
        raise TypeError(f"{self} is an integer. To go over a range, write sum(n, lambda k: ...) or fold.")

    def __repr__(self) -> str:
        return f"Index({self._form()})"

    def _form(self) -> str:
        if not self.is_affine:
            return "an element of an integer array"
        low, high = self.bounds
        return f"from {low} to {high}"

    # ---- affine arithmetic

    def __add__(self, other: Any) -> Any:
        y = as_index(other)
        if y is None:
            return operator.add(self.value, other)
        parts = dict(self.parts)
        for part, k in y.parts.items():
            parts[part] = parts.get(part, 0) + k
        return Index(self.constant + y.constant, {p: k for p, k in parts.items() if k})

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Index):
            if not other.parts:
                return self * other.constant
            return other * self.constant if not self.parts else _computed(operator.mul, self, other)
        if _is_integer(other):
            k = int(other)
            return Index(self.constant * k, {p: c * k for p, c in self.parts.items() if k})
        return operator.mul(self.value, other)

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self) -> "Index":
        return self * -1

    def __pos__(self) -> "Index":
        return Index(self.constant, self.parts)  # an error for an index that escaped

    def __sub__(self, other: Any) -> Any:
        y = as_index(other)
        return operator.sub(self.value, other) if y is None else self + -y

    def __rsub__(self, other: Any) -> Any:
        y = as_index(other)
        return operator.sub(other, self.value) if y is None else y + -self

    def __floordiv__(self, other: Any) -> Any:
        if not (_is_integer(other) and other > 0 and self.is_affine):
            return _computed(operator.floordiv, self, other)
        k = int(other)
        whole = {p: c // k for p, c in self.parts.items() if c % k == 0}
        rest = Index(self.constant % k, {p: c for p, c in self.parts.items() if c % k})
        low, high = rest.bounds
        quotient = Index(low // k) if low // k == high // k else Index(0, {IndexQuotient(rest, k): 1})
        return Index(self.constant // k, whole) + quotient

    def __mod__(self, other: Any) -> Any:
        if not (_is_integer(other) and other > 0 and self.is_affine):
            return _computed(operator.mod, self, other)
        return self - (self // other) * int(other)

    def __abs__(self) -> Any:
        return of_value(abs(self.value))

    def __invert__(self) -> "Index":
        return -self - 1

    def __round__(self, ndigits: int | None = None) -> Any:
        return +self if ndigits is None or ndigits >= 0 else of_value(round(self.value, ndigits))

    def __trunc__(self) -> "Index":
        return +self

    def __floor__(self) -> "Index":
        return +self

    def __ceil__(self) -> "Index":
        return +self

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other


def _computed_operator(name: str, reflected: bool = False) -> Callable[[Index, Any], Any]:
    """Make an operator method that computes with values, and loses the affine form."""
    compute: Callable[[Any, Any], Any] = getattr(operator, name)

    def operate(self: Index, other: Any) -> Any:
        return _computed(compute, other, self) if reflected else _computed(compute, self, other)

    return operate


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Index, f"__{_name}__", _computed_operator(_name))
for _name in ("truediv", "pow", "lshift", "rshift", "and_", "or_", "xor"):
    _method = _name.rstrip("_")
    setattr(Index, f"__{_method}__", _computed_operator(_name))
    setattr(Index, f"__r{_method}__", _computed_operator(_name, reflected=True))
for _name in ("floordiv", "mod"):
    setattr(Index, f"__r{_name}__", _computed_operator(_name, reflected=True))

_ADVICE = (
    "NumPy, and lists, need its value. Write index.array(a)[i] in the place of a[i], or a = index.array(a) before."
)


def _check_in_scope(index: Index) -> None:
    """Raise UnexpectedTracerError if an index has a part of a body that has ended."""
    for part in index.parts:
        if isinstance(part, IndexQuotient):
            _check_in_scope(part.dividend)
        else:
            check_alive((part.value,))


def _fits(low: int, high: int) -> bool:
    """Tell whether int32 holds both ends of a range."""
    return low >= -(2**31) and high < 2**31


def _multiple(part: Part, k: int, dtype: Any) -> Scalar:
    x = part.value if part.value.dtype == dtype else convert_element_type(part.value, dtype)
    return -(x * -k) if k < -1 else -x if k < 0 else x if k == 1 else x * k


def of_value(x: Any) -> Any:
    """Make an index of a traced integer of rank 0; return anything else as it is."""
    if isinstance(x, (Tracer, Array)) and not x.shape and np.issubdtype(x.dtype, np.integer):
        return Index(0, {Element(x): 1})
    return x


def _computed(compute: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    return of_value(compute(_value(x), _value(y)))


def _value(x: Any) -> Any:
    x = x.value if isinstance(x, Index) else int(x) if isinstance(x, Size) else x
    return np.array(x, np.int64) if isinstance(x, int) and not _fits(x, x) else x


def _is_integer(x: Any) -> bool:
    return isinstance(x, (int, np.integer, Size)) and not isinstance(x, bool)


def as_index(x: Any) -> Index | None:
    """Convert an integer to an index; return None for anything else."""
    if isinstance(x, Index):
        return x
    if _is_integer(x):
        return Index(int(x))
    found = of_value(x)
    return found if isinstance(found, Index) else None


class TermForm:
    """Builder of a term from indices: collects operands, and variables and brackets for quotients and elements."""

    def __init__(self, *operands: Array) -> None:
        self.operands: list[Any] = list(operands)
        self.sizes: list[int] = []
        self.brackets: list[Bracket] = []
        self._forms: dict[Part, Affine] = {}

    def variable(self, size: int) -> Affine:
        """Add a variable of the term."""
        self.sizes.append(size)
        return Affine(0, ((len(self.sizes) - 1, 1),))

    def operand(self, x: Any) -> int:
        """Add an operand, unless it is one already; return its number."""
        for number, known in enumerate(self.operands):
            if known is x:
                return number
        self.operands.append(x)
        return len(self.operands) - 1

    def affine(self, index: Index) -> Affine:
        """Write an affine index over symbols, and variables for quotients."""
        return sum((self._of_part(part) * k for part, k in index.parts.items()), Affine(index.constant))

    def _of_part(self, part: Part) -> Affine:
        found = self._forms.get(part)
        if found is None:
            assert not isinstance(part, Element)
            found = self._of_quotient(part) if isinstance(part, IndexQuotient) else self._symbol(part)
            self._forms[part] = found
        return found

    def _symbol(self, variable: Variable) -> Affine:
        return Affine(0, (), ((Symbol(self.operand(variable.value), *variable.bounds), 1),))

    def _of_quotient(self, quotient: IndexQuotient) -> Affine:
        """Add variables q and remainder, and a bracket dividend = divisor·q + remainder; return q."""
        low, high = quotient.bounds
        q = self.variable(high - low + 1) + low
        remainder = self.variable(quotient.divisor)
        self.brackets.append(IsZero(self.affine(quotient.dividend) - q * quotient.divisor - remainder))
        return q


def name_of(index: Index) -> str:
    """Return the name of the variable of an index whose only part it is; an empty name for other indices."""
    parts = list(index.parts)
    return parts[0].name if len(parts) == 1 and isinstance(parts[0], Variable) else ""


def stays(index: Index) -> bool:
    """Tell whether an index is v or -v plus a constant, for a variable v that formulas do not eliminate."""
    parts = list(index.parts.items())
    return len(parts) == 1 and abs(parts[0][1]) == 1 and isinstance(parts[0][0], Variable) and parts[0][0].stays


def in_array(index: Index, n: int) -> Index:
    """Convert an index to a position along an axis of n elements.

    Indices of periodic ranges are taken modulo n; those of symmetric ranges count from the middle; others stay.
    Raises: ValueError if the axis has another size than the range.
    """
    periodic = [v for v in _variables_of(index) if v.period is not None]
    if periodic:
        other = next((v for v in periodic if v.period != n), None)
        if other is not None:
            raise ValueError(
                f"an axis of {n} is read by an index of the periodic range {other.range_name}, of {other.period}: "
                "reads are modulo its size, so the axis must have the same. Index by a plain range, and `%`."
            )
        return index % n
    parts = [p for p in index.parts if isinstance(p, Variable)]
    middle = parts[0].middle if len(index.parts) == 1 and parts else None
    k = index.parts[parts[0]] if parts else 0
    if middle is None or abs(k) != 1 or index.constant != -k * middle:
        return index
    if parts[0].size != n:
        raise ValueError(
            f"an axis of {n} is read by an index of the symmetric range {parts[0].range_name}, of {parts[0].size}: "
            "reads are from its middle, so the axis must have the same size. What is added to the index counts from 0."
        )
    return index + middle


def _variables_of(index: Index) -> Iterator[Variable]:
    """Yield the variables in an index, also those in quotients."""
    for part in index.parts:
        if isinstance(part, Variable):
            yield part
        elif isinstance(part, IndexQuotient):
            yield from _variables_of(part.dividend)


def elements_of(index: Index) -> Iterator[tuple[Element, int]]:
    """Yield the parts of an index that were read from arrays, with their coefficients."""
    return ((part, k) for part, k in index.parts.items() if isinstance(part, Element))
