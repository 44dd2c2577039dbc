"""Calls of library functions outside of `jit`: each is computed as one program, compiled once for its types.

Computed operation by operation, a function of ten operations is dispatched ten times, and promotes, broadcasts and
checks its arguments at every call. `one_program` traces the first call of a signature: the types of arrays, and the
values of whatever is no array. What cannot be traced is computed operation by operation, as are all functions under
settings that watch or refuse operations (`Settings.plain`). While something is traced the decorator does nothing, so
programs and derivatives are those of the plain function.
"""

import functools
import inspect
import math
import struct
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Final, get_args

import numpy as np

from tapeless.tracer import core, dtypes
from tapeless.tracer.array import ArrayLike
from tapeless.tracer.caches import bound_entries, exact_key
from tapeless.tracer.core import Tracer, current_trace
from tapeless.tracer.settings.config import config
from tapeless.tracer.settings.scopes import Arguments, Result
from tapeless.tracer.types import aval_of

_VARIANTS = 256  # of one function, kept at a time
_ARRAY, _NUMBER = object(), object()  # stand in signatures for operands
_REFUSALS = (TypeError, ValueError, IndexError, ArithmeticError, NotImplementedError)


def one_program_for(*static: str) -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]:
    """Make the decorator `one_program` with some parameters, annotated as `ArrayLike`, that take static numbers."""
    return lambda f: one_program(f, static)


def one_program(
    f: Callable[Arguments, Result], static: Sequence[str] = (), declared: Callable[..., Any] | None = None
) -> Callable[Arguments, Result]:
    """Compute calls of `f` outside of `jit` as one program each.

    Operands are what parameters annotated as `ArrayLike` take: arrays of ours, NumPy's, and numbers. All other
    arguments are static. The result is an array, or several. A call is one of `f` itself if its outcome depends
    on elements, if an operand is of another kind, or if it is refused.

    Args:
      static: names of other parameters that are static.
      declared: a function that declares the parameters of `f`, if `f` does not.
    """
    return core.unless_traced(_Calls(f, static, declared or inspect.unwrap(f)).evaluate, f)


class _Calls:
    """The calls of a function: which parameters take operands, and the programs by signature."""

    def __init__(self, f: Callable[..., Any], static: Sequence[str], declared: Any) -> None:
        code, annotations = declared.__code__, declared.__annotations__
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        self.f: Final = f
        self.operands: Final = frozenset(
            name for name in names if name not in static and _is_arraylike(annotations.get(name))
        )
        self.takes: Final = [name in self.operands for name in names[: code.co_argcount]]
        self.leading: Final = [*self.takes, False].index(False)  # how many first parameters take operands
        self.variants: Final[dict[Any, _Variant]] = {}

    def evaluate(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Compute a call: by its program, or by the function itself."""
        if not config.is_plain():
            return self.f(*args, **kwargs)
        evaluator = core.evaluator()
        kind = evaluator.array_type
        operands = args
        layout: Any = 0 if kwargs or len(args) > self.leading else len(args)
        for x in args:
            if type(x) is not kind:
                layout = 0
        if not layout:
            layout, operands = self.split(args, kwargs)
            if layout is None:
                return self.f(*args, **kwargs)
        variant = self.variants.get(layout)
        if variant is None:
            variant = self.new_variant(layout, args, kwargs)
        if not variant.refused or variant.key(operands) not in variant.refused:
            try:
                found = evaluator.evaluate_function(variant, operands, {})
                return found if variant.container is None else variant.container(found)
            except _REFUSALS:
                pass  # what the function raises does not follow this error
        found = self.f(*args, **kwargs)
        variant.refuse(operands)
        return found

    def split(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
        """Split a call into its signature and its operands; the signature is None if operands are missing or wrong."""
        if len(args) > len(self.takes):
            return None, ()
        layout: list[Any] = [len(args)]
        operands: list[Any] = []
        takes = zip(self.takes, args) if not kwargs else self._all(args, kwargs)
        layout.extend(kwargs)
        for is_operand, x in takes:
            token = exact_key(x, _key_of_other) if not is_operand or x is None else _operand(x)
            if token is None:
                return None, ()
            layout.append(token)
            if token is _ARRAY or token is _NUMBER:
                operands.append(x)
        if _NUMBER in layout:
            operands = _with_numbers(operands)
        return tuple(layout) if operands else None, tuple(operands)

    def _all(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        yield from zip(self.takes, args)
        for name, x in kwargs.items():
            yield name in self.operands, x

    def new_variant(self, layout: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> "_Variant":
        """Make the program of a signature, which is traced when it is called."""
        tokens = [_ARRAY] * layout if isinstance(layout, int) else layout[1 + len(kwargs) :]
        values = zip(tokens, (*args, *kwargs.values()), strict=True)
        given = [_ARRAY if token is _ARRAY or token is _NUMBER else x for token, x in values]
        variant = _Variant(self.f, given[: len(args)], dict(zip(kwargs, given[len(args) :])))
        return bound_entries(self.variants, _VARIANTS).setdefault(layout, variant)


class _Variant:
    """A function of the operands of a signature; `container` makes several results what the function returns."""

    def __init__(self, f: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        functools.update_wrapper(self, f)
        self.f, self.args, self.kwargs = f, args, kwargs
        self.container: Callable[[Any], Any] | None = None
        self.refused: set[Any] = set()

    def __call__(self, *operands: Any) -> Any:
        trace = current_trace()
        trace.refuses_reads = True
        given = iter(operands)
        args = [next(given) if x is _ARRAY else x for x in self.args]
        found = self.f(*args, **{name: next(given) if x is _ARRAY else x for name, x in self.kwargs.items()})
        for x in found if isinstance(found, (tuple, list)) else [found]:
            if not isinstance(x, Tracer) or x.owner is not trace or any(x is operand for operand in operands):
                raise TypeError("no result of a program")
        if isinstance(found, (tuple, list)) and type(found) is not tuple:
            self.container = getattr(type(found), "_make", list)
        return found

    def key(self, operands: Sequence[Any]) -> Any:
        return (config.trace_key(), *map(aval_of, operands))

    def refuse(self, operands: Sequence[Any]) -> None:
        """Note that operands of these types are computed operation by operation."""
        if len(self.refused) > _VARIANTS:
            self.refused = set()
        self.refused.add(self.key(operands))


def _is_arraylike(annotation: Any) -> bool:
    return annotation is ArrayLike or ArrayLike in get_args(annotation)


def _operand(x: Any) -> Any:
    """Return what stands for an operand in a signature; None for one that a program cannot take as it is."""
    kind = type(x)
    if kind is core.evaluator().array_type:
        return _ARRAY
    if kind in _NUMBERS:
        return _NUMBER
    return _ARRAY if kind is np.ndarray and _is_kept(x.dtype) else None


def _is_kept(dtype: np.dtype[Any]) -> bool:
    """Tell whether NumPy's arrays of a dtype are taken with their dtype and bytes."""
    return dtype.kind in "biufc" and dtype.isnative and (config.numpy_bits == 64 or dtype.itemsize < 8)


def _key_of_other(x: Any) -> Any:
    """Return the key of a static argument that is no number or text; None for one that is not known to be immutable."""
    return (type(x), x) if isinstance(x, (type, np.dtype, Enum)) else None


_NUMBERS = frozenset((int, float))


def _with_numbers(operands: Sequence[Any]) -> list[Any]:
    """Make weak arrays of the numbers among operands; return none if a conversion of one would round it twice."""
    dtypes_of_arrays = {x.dtype for x in operands if type(x) not in _NUMBERS and dtypes.is_inexact(x.dtype)}
    found = []
    for x in operands:
        if type(x) in _NUMBERS:
            aval = aval_of(x)
            if dtypes_of_arrays != {aval.dtype} and not _is_short(x):
                return []
            x = core.evaluator().number(x, aval)
        found.append(x)
    return found


def _is_short(x: float) -> bool:
    """Tell whether a number is exact in float32, so that a conversion by way of float32 rounds it once."""
    if type(x) is int:
        return abs(x) <= 1 << 24
    return math.isinf(x) or (abs(x) < 3e38 and struct.unpack("f", struct.pack("f", x))[0] == x)
