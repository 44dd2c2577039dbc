"""Names of the leaves of arguments, as the function's signature has them: `params['w']`; names of derived functions."""

import functools
import inspect
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType, MethodType
from typing import Any, Final

from tapeless.tracer import core, pytree


def shown_attributes(fun: Any, names: Sequence[str] = functools.WRAPPER_ASSIGNMENTS) -> list[str]:
    """List those attributes of `names` that a wrapper of `fun` can take from it.

    Callable objects may have a name that is no text, or answer for every attribute.
    """
    return [name for name in names if isinstance(getattr(fun, name, None), _OF_FUNCTIONS.get(name, object))]


_OF_FUNCTIONS = {"__name__": str, "__qualname__": str, "__annotations__": dict, "__type_params__": tuple}


def describe_inputs(fun: Any, tree: Any, removed: Sequence[int], inputs: Sequence[int]) -> str:
    """Describe the arguments that inputs of a program belong to: `n, argument 1 of f`.

    Args:
      tree: the structure of (args, kwargs), without the arguments at positions `removed`.
      inputs: numbers of leaves; greater ones are references from outside, which are left out.
    Returns: nothing if no input is left.
    """
    inputs = [i for i in inputs if i < tree.num_leaves]
    if not inputs:
        return ""
    args, kwargs = pytree.unflatten(tree, range(tree.num_leaves))
    names = leaf_names(fun, args, kwargs, removed)
    paths = [path for path, _ in pytree.leaves_with_path((args, kwargs))]
    tops = [(paths[i][0].idx, paths[i][1]) for i in inputs]
    found = dict.fromkeys([key.key if named else place(key.idx, removed) for named, key in tops])
    heads = [names[inputs[0]]] if len(inputs) == 1 else [argument_name(fun, head) for head in found]
    positions = [str(head) for head in found if isinstance(head, int)]
    s = "s" * (len(found) > 1)
    which = f"argument{s} {_listed(positions)}" if len(positions) == len(found) <= _MOST else f"argument{s}"
    inside = ("in " if positions else "in an ") if len(inputs) == 1 and len(paths[inputs[0]]) > 2 else ""
    return f"{_listed(heads)}, {inside}{which} of {core.describe_function(fun).partition(' at ')[0]}"


def _listed(words: Sequence[str]) -> str:
    """Join words: `x, y and z`; of many the first."""
    shown = [*words[:_MOST], *([f"{len(words) - _MOST} more"] if len(words) > _MOST else [])]
    return " and ".join(part for part in (", ".join(shown[:-1]), shown[-1]) if part)


_MOST = 4  # arguments that a message lists


def leaf_names(fun: Any, args: Any, kwargs: Any, removed: Sequence[int] = ()) -> list[str]:
    """Name every leaf of the arguments: `x['w']`. At positions that are `removed` were static arguments."""
    return [*map(naming(fun, removed), [path for path, _ in pytree.leaves_with_path((args, kwargs))])]


def naming(fun: Any, removed: Sequence[int] = ()) -> Callable[[pytree.KeyPath], str]:
    """Make a function that names what is at a path in (args, kwargs); at positions `removed` were static arguments."""
    positional, rest = _positional(fun)

    def name(path: pytree.KeyPath) -> str:
        head = path[1].key if path[0].idx else position_name(place(path[1].idx, removed), positional, rest)
        return f"{head}{pytree.keystr(path[2:])}"

    return name


def place(i: int, removed: Sequence[int]) -> int:
    """Return the position of argument `i` of those that are left when the ones at positions `removed` are taken out."""
    for taken in sorted(removed):
        i += taken <= i
    return i


def argument_name(fun: Any, where: int | str, path: pytree.KeyPath = ()) -> str:
    """Name the argument at a position, or of a name, or what is at a path in it: `params['w']`."""
    head = where if isinstance(where, str) else position_name(where, *_positional(fun))
    return f"{head}{pytree.keystr(path)}"


def names_by_position(fun: Any, count: int, removed: Sequence[int] = ()) -> tuple[str, ...]:
    """Name the arguments that are given by position, without those at positions `removed`."""
    positional, rest = _positional(fun)
    return tuple([position_name(place(i, removed), positional, rest) for i in range(count)])


def name_of_leaf(names: Sequence[str], tree: Any, i: int) -> str:
    """Name leaf i of (args, kwargs), a structure whose arguments by position have `names`."""
    path = pytree.leaves_with_path(pytree.unflatten(tree, range(tree.num_leaves)))[i][0]
    head = path[1].key if path[0].idx else names[path[1].idx]
    return f"{head}{pytree.keystr(path[2:])}"


def position_name(i: int, positional: Sequence[str], rest: str) -> str:
    """Name the argument at position `i`: `args[1]` where it has no name of its own."""
    return positional[i] if i < len(positional) else f"{rest}[{i - len(positional)}]"


def positional_names(fun: Any) -> list[str]:
    """List the names of the parameters that are given by position."""
    return _positional(fun)[0]


def _positional(fun: Any) -> tuple[list[str], str]:
    """List the names of the positional parameters, and name the variadic one."""
    plain = inspect.unwrap(fun, stop=_is_last)
    if type(plain) is FunctionType and not _is_last(plain):
        return _of_code(plain.__code__)
    try:
        parameters = inspect.signature(fun).parameters.values()
    except (TypeError, ValueError):
        return [], "args"
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "args")
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)], rest


def _is_last(f: Any) -> bool:
    """Tell whether a function's signature differs from the wrapped function's: a method lacks `self`."""
    return isinstance(f, MethodType) or "__signature__" in getattr(f, "__dict__", ())


def _of_code(code: CodeType) -> tuple[list[str], str]:
    """List the names that a signature would: making one takes longer than tracing a small function."""
    by_name = code.co_argcount + code.co_kwonlyargcount
    rest = code.co_varnames[by_name] if code.co_flags & inspect.CO_VARARGS else "args"
    return [*code.co_varnames[: code.co_argcount]], rest


# ---- functions that are derived from a user's ----------------------------------------------------------------


_SHOWN = "__module__", "__name__", "__qualname__", "__doc__"


def with_result(derived: Any, function: Any, result: Any = inspect.Signature.empty) -> Any:
    """Name, document and annotate a derived function as the function it is derived from, but for the result."""
    functools.update_wrapper(derived, function, shown_attributes(function, _SHOWN), updated=())
    derived.__wrapped__ = WithResult(function, result)
    return derived


def bind_instance(function: Callable[..., Any], instance: Any) -> Callable[..., Any]:
    """Bind the first argument of a method that is no function but a callable object, as what `jit` returns is.

    It keeps the name and the documentation.
    """
    method = functools.partial(function, instance)
    method.__dict__.update({name: getattr(function, name) for name in _SHOWN if hasattr(function, name)})
    return method


def name_derived(kind: str, fun: Any, same_arguments: bool = False) -> Callable[[Any], Any]:
    """Name a derived function after `fun`, keeping its documentation, and its signature if it is the same."""

    def decorate(derived: Any) -> Any:
        name = core.function_name(fun)
        derived.__name__ = derived.__qualname__ = f"{kind}_of_{name}"
        derived.__doc__ = f"The {kind.replace('_', ' ')} of {name}.\n\n{getattr(fun, '__doc__', None) or ''}"
        derived.__module__ = getattr(fun, "__module__", None) or derived.__module__
        if same_arguments:
            derived.__wrapped__ = WithResult(fun)
        return derived

    return decorate


class WithResult:
    """Stand before a function in the chain that `inspect.unwrap` follows, with its signature but for the result.

    The signature is made when it is asked for: making gradients costs no more for it.
    """

    __slots__ = ("__wrapped__", "_result")

    def __init__(self, function: Callable[..., Any], result: Any = inspect.Signature.empty) -> None:
        self.__wrapped__: Final = function
        self._result: Final = result

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self.__wrapped__).replace(return_annotation=self._result)
