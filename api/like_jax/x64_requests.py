"""Requests for 64 bits inside of `as_jax`: they give 32, with a warning, unless `jax_enable_x64` is set, as in JAX.

Only what a program asks for is truncated. Functions of ours call each other past these wrappers, and so compute in 64
bits where accuracy needs them.
"""

import inspect
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache, wraps
from types import FunctionType
from typing import Any

import numpy as np

from tapeless.tracer import dtypes, source
from tapeless.tracer.array import Array
from tapeless.tracer.numpy.creation import asarray
from tapeless.tracer.numpy.scalar_types import ScalarType
from tapeless.tracer.types import incoming

_PARAMETERS = ("dtype", "new_dtype", "out_dtype", "index_dtype", "preferred_element_type")
_NAMESPACES = tuple(f"tapeless.{name}" for name in ("image", "lax", "nn", "numpy", "random", "scipy"))
_OTHERS = frozenset(("finfo", "iinfo", "isdtype", "issubdtype", "key", "wrap_key_data"))  # no dtype of elements to make
_FILES = frozenset(("frombuffer", "fromfile", "fromiter", "fromstring"))  # their dtype says what the bytes are


def taken(dtype: Any, who: str) -> Any:
    """Return the dtype that a program gets for its argument `dtype` of `who`; warn at its line if it is another."""
    if dtype is None:
        return None
    try:
        wide = dtypes.canonical(dtype)
    except TypeError:
        return dtype  # the function says what is wrong with it
    narrow = dtypes.numpy_dtype(wide)
    if narrow == wide:
        return dtype
    source.warn(
        f"Explicitly requested dtype {wide} in {who} is truncated to {narrow}, as in JAX without jax_enable_x64.\n"
        '  Set jax.config.update("jax_enable_x64", True) at the beginning of the program, or ask for 32 bits.'
    )
    return narrow


def asking(namespace: str, name: str, function: Any) -> Any:
    """Return a function of a namespace as a program in `as_jax` sees it: truncating the dtypes that it is given.

    It is pickled by the name that the program has for it.
    """
    if not isinstance(function, FunctionType) or name in _OTHERS or not namespace.startswith(_NAMESPACES):
        return function
    return _remembered(function, f"jax{namespace.removeprefix('tapeless')}", name)


def _truncating(function: FunctionType, module: str, name: str) -> Callable[..., Any]:
    places = _places(function)
    if not places:
        return function
    convert = _truncated_result if function.__name__ in _FILES else _with_taken

    @wraps(function)
    def ask(*args: Any, **kwargs: Any) -> Any:
        found = convert(function, places, args, kwargs)
        if isinstance(found, FunctionType):  # an initializer, which takes a dtype, too
            return _truncating(found, found.__module__, found.__qualname__)
        return found

    ask.__module__, ask.__qualname__ = module, name
    return ask


_remembered = cache(_truncating)


def _places(function: Callable[..., Any]) -> dict[str, int]:
    """Find the parameters of a function that are requests, and their positions."""
    names = list(inspect.signature(function).parameters)
    return {name: names.index(name) for name in _PARAMETERS if name in names}


def _with_taken(f: Callable[..., Any], places: dict[str, int], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call `f` with the dtypes that the program gets in the place of the given ones.

    Raises: OverflowError if an element of a NumPy array does not fit one; converted by `f`, it would wrap.
    """
    given = dict(enumerate(args)) | kwargs
    keys = [i if i < len(args) else name for name, i in places.items()]
    asked = {key: taken(given[key], f.__name__) for key in keys if key in given}
    if any(given[key] is not dtype for key, dtype in asked.items()):
        given = {key: incoming(x) for key, x in given.items()} | asked
    return f(*[given[i] for i in range(len(args))], **{name: given[name] for name in kwargs})


def _truncated_result(
    f: Callable[..., Any], places: dict[str, int], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Call `f` to read elements of a given dtype; convert what it read.

    Raises: OverflowError if an element does not fit.
    """
    found = f(*args, **kwargs)
    return found if taken(found.dtype, f.__name__) is found.dtype else asarray(np.asarray(found))


# ---- methods, and element types that are called --------------------------------------------------------------


@contextmanager
def truncate_requests() -> Generator[None]:
    """Truncate what programs ask for by methods of arrays, and by calls of element types, within a with block."""
    methods = [(kind, name, method) for kind in _derived(Array) for name, method in vars(kind).items() if _asks(method)]
    call = ScalarType.__call__
    for kind, name, method in methods:
        setattr(kind, name, _method(method))
    ScalarType.__call__ = _called  # type: ignore[method-assign]
    try:
        yield
    finally:
        ScalarType.__call__ = call  # type: ignore[method-assign]
        for kind, name, method in methods:
            setattr(kind, name, method)


def _derived(kind: type) -> list[type]:
    return [kind, *(other for sub in kind.__subclasses__() for other in _derived(sub))]


def _asks(method: Any) -> bool:
    """Tell whether a method makes an array of ours of a dtype; by `__array__` NumPy makes one of its own."""
    return isinstance(method, FunctionType) and not method.__name__.startswith("__") and bool(_places(method))


def _method(method: FunctionType) -> Callable[..., Any]:
    places = _places(method)

    @wraps(method)
    def ask(*args: Any, **kwargs: Any) -> Any:
        return method(*args, **kwargs) if _called_by_us() else _with_taken(method, places, args, kwargs)

    return ask


def _called(cls: ScalarType, x: Any = 0) -> Array:
    return asarray(x, cls.dtype) if _called_by_us() else asarray(incoming(x), taken(cls.dtype, cls.__name__))


def _called_by_us() -> bool:
    """Tell whether the caller of the caller is a function of ours."""
    frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]  # the documented cheap way to a frame
    return str(frame.f_globals.get("__name__", "")).startswith("tapeless.")
