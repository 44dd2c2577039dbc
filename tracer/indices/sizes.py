"""Symbolic sizes: numbers that have values only while a function is traced for some."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

from tapeless.tracer.indices.size_polynomials import Polynomial
from tapeless.tracer.settings.scoped_settings import make_user_context

_bound = make_user_context(())  # names and values, in pairs: programs depend on them


def with_sizes(values: Mapping[str, int]) -> AbstractContextManager[None]:
    """Bind names of sizes to values in a with block."""
    return _bound(tuple(sorted(values.items())))


def are_bound() -> bool:
    """Tell whether sizes have values here."""
    return bool(_bound.value)


class Size:
    """A symbolic size, or a polynomial of symbolic sizes, used in shapes and bodies as a number.

    Sizes have values while a function is traced for some (`index.cost`, formulas); elsewhere `int` raises TypeError.
    """

    __slots__ = ("polynomial",)

    def __init__(self, polynomial: Polynomial) -> None:
        self.polynomial: Polynomial = polynomial

    def __index__(self) -> int:
        values = dict(_bound.value)
        missing = [name for name in self.polynomial.names if name not in values]
        if missing:
            raise TypeError(
                f"the size {', '.join(missing)} has no value here: it stands for any. Sizes are for index.Space, whose "
                "formulas are derived and whose costs are counted for all sizes; elsewhere give a number."
            )
        return int(self.polynomial.at(values))

    def __int__(self) -> int:
        return self.__index__()

    def __jax_array__(self) -> int:
        return self.__index__()

    def _with(self, other: Any, polynomial: Any) -> Any:
        if isinstance(other, Size):
            return Size(polynomial(self.polynomial, other.polynomial))
        if isinstance(other, int):
            return Size(polynomial(self.polynomial, Polynomial.of(other)))
        return NotImplemented

    def __add__(self, other: Any) -> Any:
        return self._with(other, lambda x, y: x + y)

    def __sub__(self, other: Any) -> Any:
        return self._with(other, lambda x, y: x - y)

    def __rsub__(self, other: Any) -> Any:
        return self._with(other, lambda x, y: y - x)

    def __mul__(self, other: Any) -> Any:
        return self._with(other, lambda x, y: x * y)

    __radd__ = __add__
    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        if isinstance(other, int) and are_bound():
            return int(self) == other
        return self.polynomial == (other.polynomial if isinstance(other, Size) else other)

    def __hash__(self) -> int:
        return hash(self.polynomial)

    def __lt__(self, other: Any) -> bool:
        return int(self) < int(other)

    def __le__(self, other: Any) -> bool:
        return int(self) <= int(other)

    def __gt__(self, other: Any) -> bool:
        return int(self) > int(other)

    def __ge__(self, other: Any) -> bool:
        return int(self) >= int(other)

    def __str__(self) -> str:
        return str(self.polynomial)

    __repr__ = __str__


def size(name: str) -> Size:
    """Make a symbolic size with this name. Raises: TypeError if the name is not a Python identifier.

    >>> n, m = size("n"), size("m")
    >>> n * (2 * m - 1)
    n*(2*m - 1)
    """
    if not name.isidentifier():
        raise TypeError(f"index.size: the name {name!r} is not a Python identifier.")
    return Size(Polynomial.of(name))


def names_of(shape: Iterable[Any]) -> Iterator[str]:
    """Yield the names of symbolic sizes in a shape, with repeats."""
    for n in shape:
        if isinstance(n, Size):
            yield from n.polynomial.names
