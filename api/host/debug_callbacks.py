"""Debugging of compiled programs: print, log and callback, of the namespace `tapeless.debug`.

What looks leaves the program as it is. Under differentiation it sees primal values, once; under vmap it is called for
each example, in order; in loops and branches whenever these are run. Calls that a transposed program would make are
dropped.
"""

import importlib
import string
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tapeless.arguments.argument_checks import check_callable
from tapeless.host.callbacks import key_impl_of, receive_array, send_array
from tapeless.tracer import pytree, source
from tapeless.tracer.primitives import callback as primitives
from tapeless.tracer.types import ShapedArray, aval_of


def debug_print(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: Any,
) -> Any:
    """Print values when the program runs: `debug.print("x = {x}, y = {}", y, x=x)`.

    Not with f-strings: they format what is traced, and not its value. `debug.print(ordered=True)(fmt, ...)` is another
    way to call it, for values by the name of an option.

    Args:
      fmt: as `str.format` takes it. Arrays are formatted as NumPy does, with its print options of now.
      args, kwargs: pytrees of arrays or anything else.
      ordered: whether lines come in the order of the program, that of ordered callbacks of any kind.
      partitioned: accepted for compatibility; there are no sharded arrays.
      skip_format_check: do not check that `fmt` and the values go together.
    Raises: when it is traced, ValueError naming values that `fmt` does not use; IndexError or KeyError for one that
      it uses and that is not there.

    >>> from tapeless import jit
    >>> jit(lambda x: debug_print("x = {}", 2 * x))(1.5)
    x = 3.0
    """
    return _formatting("print", _printed, fmt, args, kwargs, ordered, skip_format_check)


def debug_log(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: Any,
) -> Any:
    """Log values when the program runs, as `debug.print` prints them.

    They go to the logger "tapeless" at the level `logging.INFO`, in records with the user's file and line.

    Args, Raises: as of `debug.print`.
    """
    return _formatting("log", _to_log(source.current()), fmt, args, kwargs, ordered, skip_format_check)


def _printed(message: str) -> None:
    sys.stdout.write(message + "\n")


def _to_log(place: source.Source | None) -> Callable[[str], None]:
    """Make a function that logs a message as one of a place in the user's program."""
    file, line = (place.file, place.line) if place else ("", 0)

    def logged(message: str) -> None:
        logging = importlib.import_module("logging")  # loaded when there is something to log
        logger = logging.getLogger("tapeless")
        if logger.isEnabledFor(logging.INFO):
            logger.handle(logger.makeRecord("tapeless", logging.INFO, file, line, message, (), None))

    return logged


def debug_callback(
    callback: Callable[..., Any] | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a Python function with values when the program runs, and ignore its result.

    `debug.callback(ordered=True)(callback, ...)` is another way to call it, for arguments by the name of an option.

    Args:
      callback: is given arrays on the CPU, and what is no array as it is.
      args, kwargs: its arguments, pytrees of arrays or anything else.
      ordered: whether it runs after all ordered callbacks before it in the program, and before those after it.
      partitioned: accepted for compatibility; there are no sharded arrays.
    Raises: TypeError if `callback` is no function.

    >>> from tapeless import jit
    >>> seen = []
    >>> jit(lambda x: debug_callback(seen.append, x + 1))(1)
    >>> seen
    [Array(2, dtype=int32)]
    """
    if callback is None:
        _check_no_values("callback", args, kwargs)
        return lambda callback, *args, **kwargs: _call(callback, args, kwargs, ordered)
    return _call(callback, args, kwargs, ordered)


def _check_no_values(who: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    if args or kwargs:
        raise TypeError(
            f"debug.{who}: without its first argument it takes options only, not {[*args, *kwargs.values()]}: values "
            f"go into the second call, debug.{who}(ordered=True)(...)."
        )


def _call(callback: Any, args: Any, kwargs: Any, ordered: bool) -> None:
    check_callable("debug.callback", callback)
    _bind(callback, getattr(callback, "__name__", type(callback).__name__), args, kwargs, ordered)


def _formatting(
    who: str, tell: Callable[[str], None], fmt: Any, args: Any, kwargs: Any, ordered: bool, skip_check: bool
) -> Any:
    """Format and tell values; without a format, return a function that takes it and the values."""
    if fmt is None:
        _check_no_values(who, args, kwargs)
        return lambda fmt, *args, **kwargs: _tell(who, tell, fmt, args, kwargs, ordered, skip_check)
    return _tell(who, tell, fmt, args, kwargs, ordered, skip_check)


def _tell(
    who: str, tell: Callable[[str], None], fmt: Any, args: Any, kwargs: Any, ordered: bool, skip_check: bool
) -> None:
    if not isinstance(fmt, str):
        raise TypeError(f"debug.{who}: expected a format string, not {fmt!r} of type {type(fmt).__name__}.")
    if not skip_check:
        _check_format(who, fmt, args, kwargs)
    options: Any = np.get_printoptions()

    def write(*args: Any, **kwargs: Any) -> None:
        with np.printoptions(**options):
            tell(_formatted(who, fmt, args, kwargs))

    _bind(write, f"{who}({fmt!r})", args, kwargs, ordered)


def _check_format(who: str, fmt: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    try:
        _FormatCheck(who, fmt).format(fmt, *args, **kwargs)
    except Exception as error:
        is_ours = not isinstance(error, ValueError) or str(error).startswith(f"debug.{who}: ")
        told = error if is_ours else ValueError(f"debug.{who}: {fmt!r} is not a format string: {error}.")
        raise told.with_traceback(None) from None  # without frames of Python's module string


def _formatted(who: str, fmt: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    try:
        return fmt.format(*args, **kwargs)
    except (TypeError, ValueError) as error:
        raise type(error)(f"debug.{who}: {fmt!r} does not fit its values: {error}.") from None


def _bind(function: Callable[..., Any], name: str, args: Any, kwargs: Any, ordered: bool) -> None:
    leaves, tree = pytree.flatten((args, kwargs))
    arrays = [_is_array(x) for x in leaves]
    observer = _Observer(
        function, name, tree, [_ArrayPlace(key_impl_of(x)) if yes else x for x, yes in zip(leaves, arrays)]
    )
    operands = [send_array(x) for x, yes in zip(leaves, arrays) if yes]
    primitives.debug_callback(observer, *operands, ordered=bool(ordered))


class _ArrayPlace(NamedTuple):
    """A mark in the place of an array, which must not live as long as the program: the generator of keys, else ""."""

    impl: str


class _Observer:
    """A user's function as the primitive calls it: with flat NumPy arrays, for nothing."""

    def __init__(self, function: Callable[..., Any], name: str, tree: Any, leaves: Sequence[Any]) -> None:
        self.__name__, self.__wrapped__ = name, function
        self._tree, self._leaves = tree, leaves

    def __call__(self, avals: Sequence[ShapedArray], *arrays: Any) -> list[Any]:
        given = iter(arrays)
        leaves = [receive_array(next(given), x.impl) if isinstance(x, _ArrayPlace) else x for x in self._leaves]
        args, kwargs = pytree.unflatten(self._tree, leaves)
        self.__wrapped__(*args, **kwargs)
        return []


def _is_array(x: Any) -> bool:
    try:
        aval_of(x)
    except TypeError:
        return False
    return True


class _FormatCheck(string.Formatter):
    """Finds out whether a format string and values go together, and formats nothing."""

    def __init__(self, who: str, fmt: str) -> None:
        self._who, self._fmt = f"debug.{who}", fmt

    def format_field(self, value: Any, format_spec: str) -> str:
        return ""

    def convert_field(self, value: Any, conversion: Any) -> Any:
        return value

    def get_value(self, key: int | str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        try:
            return super().get_value(key, args, kwargs)
        except IndexError:
            n = len(args)
            raise IndexError(
                f"{self._who}: {self._fmt!r} prints value {key}, counted from 0, but {n} {'is' if n == 1 else 'are'} "
                f"given."
            ) from None
        except KeyError:
            names = ", ".join(kwargs) or "none"
            raise KeyError(f"{self._who}: {self._fmt!r} prints {key!r}, but the values by name are: {names}.") from None

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Find a field, and say of a part of a value, `{x.name}` or `{x[0]}`, that it is not there."""
        try:
            return super().get_field(field_name, args, kwargs)
        except (AttributeError, LookupError) as error:
            if str(error).lstrip('"').startswith(f"{self._who}: "):
                raise
            raise type(error)(
                f"{self._who}: {self._fmt!r} prints {field_name!r}, which is not there: {error.args[0]}."
            ) from None

    def check_unused_args(self, used_args: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        unused = [f"{i}" for i in range(len(args)) if i not in used_args]
        unused += [name for name in kwargs if name not in used_args]
        if unused:
            raise ValueError(
                f"{self._who}: {self._fmt!r} does not print the values {', '.join(unused)}.\n"
                "  Every value needs its place, {} or {name}. In an f-string these places are filled when tracing: "
                "pass a plain string."
            )
