"""Where arrays may differ from zero: what padding, masks, one-hots and writes into zeros leave, found by their rules.

A program is read once, forwards, and of each value is found a superset of the places where it may not be zero; for
what is computed from constants alone, as masks and indices are, the elements. Rules (sparsity_rules.py) are stated for
primitives that keep or make zeros; of results of all others nothing is known. Knowingly simple: arrays of more than
`LIMIT` elements are zero everywhere or perhaps nowhere, and so is what is read or written at places that are not known.
Source: Bernstein et al. 2020, section 5, the brackets.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer.jaxpr import Equation
from tapeless.tracer.primitives.operands import known_elements
from tapeless.tracer.rules import Table
from tapeless.tracer.types import ShapedArray, aval_of

LIMIT = 1 << 16  # elements of an array whose zeros are told apart

# Where a value may differ from zero: everywhere, nowhere, or a mask, which broadcasts to its shape.
Support = Any


class Known(NamedTuple):
    """What is known of a value: where it may not be zero, and its elements if they are.

    static: it depends on no input. binary: where it is zero or one, a bracket and not a factor, as supports are told.
    """

    aval: ShapedArray
    support: Support = True
    value: Any = None
    static: bool = False
    binary: Support = False

    @property
    def hits(self) -> int:
        """Scalars that may not be zero."""
        return hits(self.support, self.aval.shape)

    @property
    def mask(self) -> Any:
        """The support as an array of truth values, of the value's shape."""
        return whole(self.support, self.aval)


def whole(mask: Support, aval: ShapedArray) -> Any:
    """A mask as an array of truth values of the value's shape."""
    return np.broadcast_to(np.asarray(mask), aval.shape)


def hits(support: Support, shape: tuple[int, ...]) -> int:
    """Places of a support in an array."""
    if isinstance(support, bool):
        return prod(shape) * support
    return int(np.count_nonzero(np.broadcast_to(support, shape)))


def known(x: Any, static: bool = False) -> Known:
    """What is known of a value in hand: its elements, if it has few."""
    aval = aval_of(x)
    value = known_elements(x) if aval.size <= LIMIT and _is_number(aval) else None
    return Known(aval) if value is None else _of_value(aval, value, static)


def _is_number(aval: ShapedArray) -> bool:
    return any(of(aval.dtype) for of in (dtypes.is_bool, dtypes.is_integer, dtypes.is_inexact))


def results(eqn: Equation, given: Sequence[Known]) -> list[Known]:
    """What is known of the results of an equation that carries no programs."""
    static = all(k.static for k in given) and eqn.primitive.effect is None
    avals = [v.aval for v in eqn.outvars]
    small = all(aval.size <= LIMIT for aval in (*[k.aval for k in given], *avals))
    values = _values(eqn, given) if small and all(k.value is not None for k in given) else None
    if values is not None:
        return [_of_value(aval, _converted(x, aval), static) for aval, x in zip(avals, values, strict=True)]
    found = _supports(eqn, given if small else list(map(_coarse, given)), small)
    brackets = _brackets(eqn, given, small)
    return [Known(aval, s, None, static, _or_zero(b, s)) for aval, s, b in zip(avals, found, brackets, strict=True)]


def join(a: Known, b: Known) -> Known:
    """What is known of what is one thing or another."""
    same = a.value is not None and b.value is not None and np.array_equal(a.value, b.value)
    support, value = _simple(a.support | b.support), a.value if same else None
    return Known(a.aval, support, value, a.static and b.static, _simple(a.binary & b.binary))


def _of_value(aval: ShapedArray, value: Any, static: bool) -> Known:
    binary = np.asarray((value == 0) | (value == 1))
    return Known(aval, _simple(np.asarray(value != 0)), value, static, _simple(binary))


def _brackets(eqn: Equation, given: Sequence[Known], small: bool) -> Sequence[Support]:
    """Where results are truth values, or what operations make of zeros and ones."""
    n = len(eqn.outvars)
    if all(dtypes.is_bool(v.aval.dtype) for v in eqn.outvars):
        return [True] * n
    if eqn.primitive in moves:
        return _moved(eqn, given, [k.binary for k in given], small, otherwise=False)
    row = binary.get(eqn.primitive)
    return [_simple(row(eqn, *given))] if row else [False] * n


def _or_zero(binary: Support, support: Support) -> Support:
    return True if binary is True else _simple(np.asarray(binary) | np.logical_not(support))


def _converted(x: Any, aval: ShapedArray) -> Any:
    x = np.asarray(x)
    return (x if dtypes.is_complex(aval.dtype) else x.real).astype(aval.dtype)


def _simple(support: Support) -> Support:
    """True and False for masks that are everywhere and nowhere."""
    if isinstance(support, bool):
        return support
    if not np.any(support):
        return False
    return True if np.all(support) else support


def _coarse(k: Known) -> Known:
    return k._replace(support=k.support is not False, value=None, binary=k.binary is True)


def _values(eqn: Equation, given: Sequence[Known]) -> Sequence[Any] | None:
    row = moves.get(eqn.primitive) or meanings.get(eqn.primitive)
    with np.errstate(all="ignore"):
        return row(eqn, *[k.value for k in given]) if row else None


def _supports(eqn: Equation, given: Sequence[Known], small: bool) -> Sequence[Support]:
    if eqn.primitive in moves:
        return _moved(eqn, given, [k.support for k in given], small, otherwise=True)
    row = supports.get(eqn.primitive)
    return [_simple(row(eqn, *given))] if row else [True] * len(eqn.outvars)


def _moved(
    eqn: Equation, given: Sequence[Known], masks: Sequence[Support], small: bool, otherwise: bool
) -> Sequence[Support]:
    """Masks of the operands moved as these are; `otherwise` if they are too large and not alike."""
    n = len(eqn.outvars)
    if all(mask is True for mask in masks) or all(mask is False for mask in masks):
        return [masks[0]] * n
    if not small:
        return [otherwise] * n
    arrays = [whole(mask, k.aval) for mask, k in zip(masks, given, strict=True)]
    return [_simple(mask) for mask in moves[eqn.primitive](eqn, *arrays)]


moves: Table[Callable[..., Sequence[Any]]] = Table(
    "NumPy moves",
    "row(eqn, *arrays) -> arrays: NumPy moves elements, of values and of masks alike",
    absent="it does more than move elements",
)
meanings: Table[Callable[..., Sequence[Any]]] = Table(
    "NumPy values",
    "row(eqn, *arrays) -> arrays: NumPy computes its value",
    absent="its value is not known, even of known operands",
)
supports: Table[Callable[..., Support]] = Table(
    "supports",
    "row(eqn, *operands: Known) -> where its result may differ from zero",
    absent="everywhere",
)
binary: Table[Callable[..., Support]] = Table(
    "binary",
    "row(eqn, *operands: Known) -> where its result, if nonzero, is one",
    absent="nowhere",
)
