"""Functions with transformations wrapped around them, which libraries trace.

A transformation is `around(f, *static, *args, **kwargs)`, which calls `f`, the function inside of it. One with
auxiliary output has a `Store` behind `f`, and puts this output into it when it runs.
"""

from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any, Final

Function = Callable[..., Any]
_EMPTY = object()


class StoreException(Exception):
    """A store was read before anything was put into it, or written twice."""


class Store:
    """One value, written once."""

    __slots__ = ("_val",)

    def __init__(self) -> None:
        self._val: Any = _EMPTY

    def store(self, val: Any) -> None:
        """Keep a value. Raises: StoreException if there is one."""
        if self:
            raise StoreException("Store occupied")
        self._val = val

    @property
    def val(self) -> Any:
        """The value. Raises: StoreException if there is none yet."""
        if not self:
            raise StoreException("Store empty")
        return self._val

    def __bool__(self) -> bool:
        return self._val is not _EMPTY


class WrappedFun:
    """A function and the transformations around it, outermost first; `call_wrapped` calls the outermost.

    f: the function. transforms: pairs of a transformation and its static arguments. params: pairs of a name and a
    value, keyword arguments of `f`. debug_info: as `api_util.debug_info` makes it. Equal if all of these are.
    """

    def __init__(
        self,
        f: Function,
        f_transformed: Function,
        transforms: tuple[Any, ...],
        params: tuple[Any, ...],
        debug_info: Any,
    ) -> None:
        self.f: Final = f
        self.f_transformed: Final = f_transformed
        self.transforms: Final = transforms
        self.params: Final = params
        self.debug_info: Final = debug_info

    @property
    def __name__(self) -> str:
        return getattr(self.f, "__name__", "<unnamed wrapped function>")

    def wrap(self, gen: Function, gen_static_args: Sequence[Any], out_store: Store | None) -> "WrappedFun":
        """Put a transformation around; `out_store`, if there is one, is its argument after the function."""
        given = gen_static_args if out_store is None else (out_store, *gen_static_args)
        transforms = ((gen, tuple(gen_static_args)), *self.transforms)
        return WrappedFun(self.f, partial(gen, self.f_transformed, *given), transforms, self.params, self.debug_info)

    def call_wrapped(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the function with all that is around it."""
        return self.f_transformed(*args, **kwargs)

    def _parts(self) -> tuple[Any, ...]:
        return self.f, self.transforms, self.params, self.debug_info

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WrappedFun) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def __repr__(self) -> str:
        return (
            f"WrappedFun({' of '.join(getattr(f, '__name__', repr(f)) for f, _ in (*self.transforms, (self.f, ())))})"
        )


def wrap_init(f: Function, params: dict[str, Any] | None = None, *, debug_info: Any = None) -> WrappedFun:
    """Make a `WrappedFun` with nothing around `f`, which is given `params` by name."""
    called = partial(f, **params) if params else f
    return WrappedFun(f, called, (), tuple(sorted((params or {}).items())), debug_info)


def transformation2(gen: Function) -> Callable[..., WrappedFun]:
    """Make `wrap(fun, *static)`, which puts `gen(f, *static, *args, **kwargs)` around a `WrappedFun`.

    >>> times = transformation2(lambda f, factor, x: factor * f(x))
    >>> times(wrap_init(lambda x: x + 1), 10).call_wrapped(3)
    40
    """
    return lambda fun, *gen_static_args: fun.wrap(gen, gen_static_args, None)


def transformation_with_aux2(gen: Function) -> Callable[..., tuple[WrappedFun, Callable[[], Any]]]:
    """Make `wrap(fun, *static)`, which puts `gen(f, store, *static, *args, **kwargs)` around a `WrappedFun`.

    It gives the function, and one that reads what was put into the store, once the function has run.

    >>> @transformation_with_aux2
    ... def keeping(f, store, x):
    ...     store.store(f"x was {x}")
    ...     return f(x)
    >>> fun, aux = keeping(wrap_init(lambda x: x + 1))
    >>> fun.call_wrapped(3), aux()
    (4, 'x was 3')
    """

    def wrap(fun: WrappedFun, *gen_static_args: Any) -> tuple[WrappedFun, Callable[[], Any]]:
        out_store = Store()
        return fun.wrap(gen, gen_static_args, out_store), lambda: out_store.val

    return wrap


def transformation(gen: Callable[..., Generator[Any, Any, Any]]) -> Callable[..., WrappedFun]:
    """Make a transformation of a generator, `gen(*static, *args, **kwargs)`: it yields the arguments, positional and by
    name, is sent the result, and yields what is to be returned.

    >>> @transformation
    ... def times(factor, x):
    ...     result = yield (x,), {}
    ...     yield factor * result
    >>> times(wrap_init(lambda x: x + 1), 10).call_wrapped(3)
    40
    """

    def around(f: Function, /, *args: Any, **kwargs: Any) -> Any:
        return _called_inside(gen(*args, **kwargs), f)

    return transformation2(around)


def _called_inside(running: Generator[Any, Any, Any], f: Function) -> Any:
    """Call `f` with what a generator yields first, and send it the result. What `f` raises ends its with blocks."""
    args, kwargs = next(running)
    try:
        result = f(*args, **kwargs)
    except BaseException as error:
        running.throw(error)
        raise
    return running.send(result)


def transformation_with_aux(
    gen: Callable[..., Generator[Any, Any, Any]],
) -> Callable[..., tuple[WrappedFun, Callable[[], Any]]]:
    """Make a transformation with auxiliary output of a generator, which yields the result and that output last.

    >>> @transformation_with_aux
    ... def keeping(x):
    ...     result = yield (x,), {}
    ...     yield result, f"x was {x}"
    >>> fun, aux = keeping(wrap_init(lambda x: x + 1))
    >>> fun.call_wrapped(3), aux()
    (4, 'x was 3')
    """

    def around(f: Function, store: Store, /, *args: Any, **kwargs: Any) -> Any:
        result, aux = _called_inside(gen(*args, **kwargs), f)
        store.store(aux)
        return result

    return transformation_with_aux2(around)


def merge_linear_aux(aux1: Callable[[], Any], aux2: Callable[[], Any]) -> tuple[bool, Any]:
    """Return the auxiliary output of whichever of two functions ran, and whether it was the first.

    Raises: StoreException if neither or both did.

    >>> keeping = transformation_with_aux2(lambda f, store, x: store.store("kept") or f(x))
    >>> (fun, aux), (_, other) = (keeping(wrap_init(lambda x: x + 1)) for _ in range(2))
    >>> fun.call_wrapped(3), merge_linear_aux(aux, other)
    (4, (True, 'kept'))
    """
    outs = [_read(aux1), _read(aux2)]
    ran = [out is not _EMPTY for out in outs]
    if sum(ran) != 1:
        raise StoreException("neither store occupied" if not any(ran) else "both stores occupied")
    return ran[0], outs[0] if ran[0] else outs[1]


def _read(aux: Callable[[], Any]) -> Any:
    try:
        return aux()
    except StoreException:
        return _EMPTY
