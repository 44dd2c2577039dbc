"""Calling Python from compiled programs: `pure_callback`, `io_callback`, and waiting for effects."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapeless.arguments.argument_checks import CLOSE_OVER, check_call, check_callable
from tapeless.lowering import devices
from tapeless.lowering.array import to_device
from tapeless.lowering.host import effects_barrier
from tapeless.tracer import core, dtypes, pytree
from tapeless.tracer.core import describe_function
from tapeless.tracer.primitives import callback as primitives
from tapeless.tracer.primitives.random import random_unwrap, random_wrap
from tapeless.tracer.types import ShapedArray, aval_of, check_unmasked, holds_keys, key_dtype_of

__all__ = ["effects_barrier", "io_callback", "pure_callback"]

VMAP_METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized")


def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    vmap_method: str | None = None,
    **kwargs: Any,
) -> Any:
    """Call a Python function when the program runs, and return its result.

    It is taken for pure: it may be called more than once, or not at all if nothing needs its result. It has no
    derivative: call it in a function that has one of its own (`tl.custom_jvp`).

    Args:
      callback: a function of pytrees of arrays. It is given arrays on the CPU, and may compute with NumPy or with us.
      result_shape_dtypes: a pytree like its result, whose leaves have `shape` and `dtype`.
      args, kwargs: its arguments, pytrees of arrays.
      sharding: accepted only as None.
      vmap_method: how it is called under vmap. "sequential" and "sequential_unrolled": for one example after the
        other. Once for all, with the axis of examples first in arguments and results: "expand_dims", arguments that
        are the same for all having one of size 1; "broadcast_all", these being repeated; "legacy_vectorized", these
        being as they are. None: vmap is an error.
    Returns: arrays in the structure of `result_shape_dtypes`.
    Raises: TypeError if `callback` is no function, an argument is no array, or `result_shape_dtypes` has a leaf without
      shape and dtype; NotImplementedError for a sharding, and under vmap if no `vmap_method` is given; ValueError for
      another `vmap_method`, and where it is differentiated; when it is called, whatever `callback` raises, and
      TypeError if what it returns is not of `result_shape_dtypes`. Results of 64 bits are converted if 32 are wanted,
      as NumPy computes in 64, unless they do not fit.

    >>> import numpy as np
    >>> from tapeless import ShapeDtypeStruct, jit
    >>> jit(lambda x: pure_callback(np.sin, ShapeDtypeStruct(x.shape, x.dtype), x))(np.zeros(2, np.float32))
    Array([0., 0.], dtype=float32)
    """
    _check_sharding("pure_callback", sharding)
    if vmap_method is not None and vmap_method not in VMAP_METHODS:
        allowed = ", ".join(map(repr, VMAP_METHODS))
        raise ValueError(f"pure_callback: vmap_method must be one of {allowed} or None, not {vmap_method!r}.")
    operands, in_tree = _operands("pure_callback", callback, args, kwargs)
    host = _HostFunction("pure_callback", callback, operands, in_tree, result_shape_dtypes)
    return host.unflatten(
        primitives.pure_callback(host, host.avals, *map(send_array, operands), vmap_method=vmap_method)
    )


def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    ordered: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a Python function with side effects once whenever the program gets there, and return its result.

    Arguments, result and errors are as in `pure_callback`; under vmap it is called for each example.

    Args:
      ordered: whether it runs after all ordered callbacks before it in the program, and before those after it. Such a
        call cannot be mapped by vmap.
    Returns: arrays in the structure of `result_shape_dtypes`.
    Raises: what `pure_callback` raises; ValueError under vmap only if it is `ordered`.
    """
    _check_sharding("io_callback", sharding)
    operands, in_tree = _operands("io_callback", callback, args, kwargs)
    host = _HostFunction("io_callback", callback, operands, in_tree, result_shape_dtypes)
    return host.unflatten(primitives.io_callback(host, host.avals, *map(send_array, operands), ordered=bool(ordered)))


def _check_sharding(who: str, sharding: Any) -> None:
    if sharding is not None:
        raise NotImplementedError(f"{who}: sharding={sharding!r} is not supported, only None.")


def _operands(who: str, callback: Any, args: Any, kwargs: Any) -> tuple[list[Any], Any]:
    check_callable(who, callback)
    check_call(who, callback, core.describe_function(callback), args, kwargs, CLOSE_OVER)
    return pytree.flatten((args, kwargs))


class _HostFunction:
    """A user's function of pytrees as the primitives call it: with flat NumPy arrays, for flat NumPy arrays."""

    def __init__(
        self, who: str, function: Callable[..., Any], operands: Sequence[Any], in_tree: Any, result_shape_dtypes: Any
    ) -> None:
        self.__name__ = getattr(function, "__name__", type(function).__name__)
        self.__wrapped__ = function
        self._who, self._in_tree = who, in_tree
        self._keys = [key_impl_of(x) for x in operands]
        leaves, self._out_tree = pytree.flatten(result_shape_dtypes)
        self._paths = [pytree.keystr(path) for path, _ in pytree.leaves_with_path(result_shape_dtypes)]
        self.avals = [self._wanted(x, path) for x, path in zip(leaves, self._paths)]

    def __call__(self, avals: Sequence[ShapedArray], *arrays: Any) -> list[np.ndarray[Any, Any]]:
        args, kwargs = pytree.unflatten(self._in_tree, map(receive_array, arrays, self._keys))
        result = self.__wrapped__(*args, **kwargs)
        leaves, tree = pytree.flatten(result)
        if len(leaves) != len(avals):
            raise TypeError(
                f"{self._described()} returned {len(leaves)} arrays, but result_shape_dtypes has {len(avals)}."
                f"{pytree.compare(self._out_tree, tree, ('result_shape_dtypes', 'the result'))}"
            )
        return [self._checked(*each) for each in zip(leaves, avals, self._paths, strict=True)]

    def unflatten(self, results: Sequence[Any]) -> Any:
        """Return results in the structure of `result_shape_dtypes`."""
        return pytree.unflatten(self._out_tree, results)

    def _described(self) -> str:
        return f"{self._who}: {describe_function(self.__wrapped__)}"

    def _wanted(self, x: Any, path: str) -> ShapedArray:
        try:
            wanted = ShapedArray(tuple(x.shape), dtypes.canonical(x.dtype))
        except AttributeError:
            raise TypeError(
                f"{self._described()}: result_shape_dtypes{path} is {x!r}, which has no shape and dtype.\n"
                "  Use tl.ShapeDtypeStruct(shape, dtype)."
            ) from None
        if holds_keys(wanted):
            raise TypeError(
                f"{self._described()}: result_shape_dtypes{path} is {wanted}: a function on the host gives no keys.\n"
                "  Let it give their words, and use random.wrap_key_data."
            )
        return wanted

    def _checked(self, x: Any, wanted: ShapedArray, path: str) -> np.ndarray[Any, Any]:
        """Check that a result has the wanted type. Raises: TypeError if it has another."""
        where = f" as result{path}" if path else ""
        check_unmasked(x, f"{self._described()}: what it returned{where}")
        y = np.asarray(x)
        if y.shape != wanted.shape or y.dtype not in (wanted.dtype, _WIDER.get(wanted.dtype)):
            shape = ",".join(map(str, y.shape))
            raise TypeError(
                f"{self._described()} returned {y.dtype}[{shape}]{where}, but result_shape_dtypes says {wanted}."
            )
        with np.errstate(over="ignore"):
            narrow = y.astype(wanted.dtype, copy=False)
        if wanted.dtype.kind in "iu" and not np.array_equal(narrow, y):
            raise OverflowError(f"{self._described()} returned {y}, which does not fit into {wanted}.")
        return narrow


_WIDER = {np.dtype(n): np.dtype(w) for n, w in (("i4", "i8"), ("u4", "u8"), ("f4", "f8"), ("c8", "c16"))}


def send_array(x: Any) -> Any:
    """Return an array as it goes to the host: keys as their words."""
    return random_unwrap(x) if holds_keys(aval_of(x)) else x


def key_impl_of(x: Any) -> str:
    """Name the generator of keys; of other arrays nothing."""
    aval = aval_of(x)
    return key_dtype_of(aval).impl if holds_keys(aval) else ""


def receive_array(x: np.ndarray[Any, Any], impl: str) -> Any:
    """Convert a NumPy array to an array of ours; `impl` says whose keys it holds the words of, if it does."""
    there = to_device(x, ShapedArray(x.shape, x.dtype), devices.devices("cpu")[0])
    return random_wrap(there, impl) if impl else there
