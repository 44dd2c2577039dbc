"""Errors as values: `check` conditions in programs that are compiled, and give the first error with the result.

The functions of `jax.experimental.checkify`. A check that no `checkify` makes a value raises its error when the program
runs, through a callback.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar

import numpy as np

from tapeless.arguments.argument_checks import check_callable
from tapeless.arguments.names import with_result
from tapeless.host.callbacks import key_impl_of, receive_array, send_array
from tapeless.interpreters.error_values import ErrorPlace, ErrorValues
from tapeless.interpreters.user_checks import UserCheck
from tapeless.tracer import numpy as tnp
from tapeless.tracer import pytree
from tapeless.tracer.core import Tracer
from tapeless.tracer.primitives.callback import debug_callback
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import aval_of, is_arraylike

P = ParamSpec("P")
R = TypeVar("R")


class JaxRuntimeError(ValueError):
    """An error in a program that `check` or `checkify` found."""

    __module__ = "tapeless.experimental.checkify"  # where users import it from: tracebacks print it


class ErrorCategory:
    """A kind of errors that are looked for; sets of kinds are the argument `errors` of `checkify`."""

    def __init__(self, kind: str) -> None:
        self.kind: Final = kind

    def __repr__(self) -> str:
        return f"<{self.kind} errors>"


_USER, _NAN, _DIV, _INDEX = map(ErrorCategory, ("user", "nan", "div", "index"))
user_checks: Final = frozenset({_USER})
nan_checks: Final = frozenset({_NAN})
div_checks: Final = frozenset({_DIV})
index_checks: Final = frozenset({_INDEX})
float_checks: Final = nan_checks | div_checks
automatic_checks: Final = float_checks | index_checks
all_checks: Final = automatic_checks | user_checks


@pytree.register_pytree_node_class
class Error:
    """The first error of a program, or none: a pytree of arrays, of several programs under `vmap`."""

    def __init__(self, state: Sequence[Any] = (), places: tuple[ErrorPlace, ...] = ()) -> None:
        self._state, self._places = tuple(state), places

    def get(self) -> str | None:
        """Return the message, or None if there was no error; under `vmap` a line for each index that has one."""
        messages = list(self._messages())
        if not messages:
            return None
        if len(messages) == 1 and messages[0][0] == ():
            return messages[0][1]
        return "\n".join(f"at mapped index {', '.join(map(str, index))}: {text}" for index, text in messages)

    def get_exception(self) -> JaxRuntimeError | None:
        """Return the exception that `throw` raises, or None if there was no error."""
        text = self.get()
        return None if text is None else JaxRuntimeError(text)

    def throw(self) -> None:
        """Raise JaxRuntimeError with the message if there was an error."""
        error = self.get_exception()
        if error is not None:
            raise error

    def _messages(self) -> Iterator[tuple[tuple[int, ...], str]]:
        if not self._state:
            return
        codes = np.asarray(self._state[0])
        for index in np.ndindex(codes.shape):
            if codes[index]:
                place = self._places[int(codes[index]) - 1]
                yield index, place.message([np.asarray(x)[index] for x in self._state[place.values]])

    def tree_flatten(self) -> tuple[tuple[Any, ...], Any]:
        """Return the arrays, and where errors may begin."""
        return self._state, self._places

    @classmethod
    def tree_unflatten(cls, aux_data: Any, children: Any) -> "Error":
        """Make an error of these arrays."""
        return cls(children, aux_data)

    def __repr__(self) -> str:
        return f"Error({'traced' if any(isinstance(x, Tracer) for x in self._state) else self.get()})"


init_error: Final = Error()


def checkify(f: Callable[P, R], errors: frozenset[ErrorCategory] = user_checks) -> Callable[P, tuple[Error, R]]:
    """Make a function that gives the first error, as a value, with the result of `f`; neither raises.

    It may be compiled, mapped and differentiated as `f` may; calls, branches, loops and functions with rules inside are
    checked, too. Under `vmap` of it, every example has an error of its own; of a `vmap` inside, it is that of the first
    example.

    Args:
      f: a function of pytrees of arrays to a pytree of arrays.
      errors: what is looked for: `user_checks`, those that `check` makes; `nan_checks`, results that are nan;
        `div_checks`, divisions by zero; `index_checks`, indices out of bounds; unions of these, such as `float_checks`,
        `automatic_checks` and `all_checks`. Operations whose results nobody uses are left out, with their errors; what
        `check` makes is not.
    Returns: a function of the same arguments to (error, result).
    Raises: TypeError if `errors` is no set of these.

    >>> import tapeless as tl, tapeless.numpy as tnp
    >>> def f(x):
    ...     check(x > 0, "{x} is not positive", x=x)
    ...     return tnp.log(x)
    >>> error, y = tl.jit(checkify(f))(-1.0)
    >>> error.get().splitlines()[0]
    '-1.0 is not positive (`check` failed)'
    """
    check_callable("checkify", f)
    wrong = [x for x in errors if type(x) is not ErrorCategory]
    if wrong:
        raise TypeError(f"checkify: errors must be a set such as checkify.all_checks, but has {wrong[0]!r}.")
    fun: Callable[..., Any] = f
    kinds = frozenset([category.kind for category in errors])

    def checked(*args: Any, **kwargs: Any) -> tuple[Error, Any]:
        leaves, tree = pytree.flatten((args, kwargs))
        arrays = [is_arraylike(x) for x in leaves]
        out_tree: Any = None

        def flat(*xs: Any) -> list[Any]:
            nonlocal out_tree
            given = iter(xs)
            merged = [next(given) if yes else x for x, yes in zip(leaves, arrays)]
            positional, named = pytree.unflatten(tree, merged)
            outs, out_tree = pytree.flatten(fun(*positional, **named))
            return outs

        operands = [x for x, yes in zip(leaves, arrays) if yes]
        program, consts = trace_to_jaxpr(flat, [aval_of(x) for x in operands], what="checkify", function=f)
        values = ErrorValues(program, kinds)
        state, outs = values.run(program, values.begin(), [*consts, *operands])
        return Error(state, tuple(values.places)), pytree.unflatten(out_tree, [tnp.asarray(x) for x in outs])

    return with_result(checked, f, tuple[Error, Any])


def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Note an error where a condition is false, to be given as a value by `checkify` around it.

    Without a `checkify` around it, it raises JaxRuntimeError when the program runs.

    Args:
      pred: boolean [].
      msg: the message, which `str.format` makes with the arguments.
      fmt_args, fmt_kwargs: pytrees of arrays and numbers.
      debug: a check that no `checkify` makes a value is left out.
    Raises: TypeError if `pred` is no boolean scalar or an argument no array.
    """
    leaves, tree = pytree.flatten((fmt_args, fmt_kwargs))
    wrong = [x for x in leaves if not is_arraylike(x)]
    if wrong:
        raise TypeError(f"check: the arguments of the message must be arrays, but {wrong[0]!r} is not.")
    if not is_arraylike(pred) or aval_of(pred).shape != () or aval_of(pred).dtype != np.dtype(bool):
        told = str(aval_of(pred)) if is_arraylike(pred) else repr(pred)
        raise TypeError(f"check: pred must be a boolean scalar, not {told}.")
    message = partial(_formatted, msg, tree, [*map(key_impl_of, leaves)])
    debug_callback(UserCheck(message, JaxRuntimeError, debug=debug), pred, *map(send_array, leaves))


def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """Check as `check` does, but only where `checkify` makes the error a value."""
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)


def check_error(error: Error) -> None:
    """Raise the error, if there was one, when the program runs, or let a `checkify` around this give it as a value.

    Raises: TypeError if `error` is no Error.
    """
    if type(error) is not Error:
        raise TypeError(f"check_error takes an Error, not {error!r}.")
    state, places = error.tree_flatten()
    if state:
        callback = UserCheck(partial(_told, places), JaxRuntimeError)
        debug_callback(callback, tnp.all(tnp.asarray(state[0]) == 0), *state)


def _told(places: tuple[ErrorPlace, ...], state: Sequence[Any]) -> str:
    return str(Error(state, places).get())


def _formatted(msg: str, tree: Any, impls: Sequence[str], values: Sequence[Any]) -> str:
    args, kwargs = pytree.unflatten(tree, [receive_array(np.asarray(x), impl) for x, impl in zip(values, impls)])
    return f"{msg.format(*args, **kwargs)} (`check` failed)"
