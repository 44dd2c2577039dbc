"""Arguments of a function chosen by position or name: static ones and donated ones."""

import inspect
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from tapeless.arguments.argument_checks import describe_value
from tapeless.arguments.names import argument_name
from tapeless.tracer import core
from tapeless.tracer.array import Array
from tapeless.tracer.caches import exact_key
from tapeless.tracer.pytree.codegen import StaticCode


class Arguments:
    """Some arguments of a function, by position or name."""

    def __init__(self, numbers: tuple[int, ...], names: tuple[str, ...], who: str = "jit") -> None:
        self.numbers: Final = numbers
        self.names: Final = names
        self._who = who

    @classmethod
    def of(cls, fun: Any, numbers: Any, names: Any, what: str, who: str = "jit", completed: bool = True) -> "Arguments":
        """Collect argnums and argnames of `who`; if `completed`, the signature of `fun` completes each by the other.

        Raises: ValueError for an argument that the function does not have, or not under a name; TypeError for what is
          neither number nor name.
        """
        given, named = _numbers(numbers, f"{who}: {what}"), _names(names, f"{who}: {what}")
        parameters = _parameters(fun)
        if parameters is None:
            return cls(given, named, who)
        positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
        exact = tuple(_in_range(i, len(positional), variadic, f"{who}: {what}", fun) for i in given)
        _check_names(named, parameters, f"{who}: {what}", fun)
        if not completed:
            return cls(tuple(sorted({*exact})), named, who)
        implied = {positional[i] for i in exact if i < len(positional)}
        numbers = {*exact, *(positional.index(n) for n in named if n in positional)}
        return cls(tuple(sorted(numbers)), tuple(sorted({*named, *implied})), who)

    @property
    def key(self) -> Any:
        """Return the positions and names: equal if the same arguments are chosen."""
        return self.numbers, self.names

    def __bool__(self) -> bool:
        return bool(self.numbers or self.names)

    def check_apart(self, other: "Arguments", fun: Any) -> None:
        """Raise ValueError if an argument is both one of these, which are static, and of the donated `other`."""
        shared = [*sorted({*self.names} & {*other.names}), *sorted({*self.numbers} & {*other.numbers})]
        if shared:
            raise ValueError(
                f"{self._who}: argument {argument_name(fun, shared[0])} of {core.describe_function(fun)} is static and "
                "donated: a static argument is compiled in, and has no memory to give."
            )

    def take_out(
        self, args: Any, kwargs: Any, fun: Any, hashed: bool = True
    ) -> tuple[tuple[Any, ...], dict[str, Any], Any]:
        """Split arguments into the others, and these as one value, which has a hash if `hashed`.

        Raises: ValueError naming an argument that is to have a hash and has none.
        """
        taken = tuple((i, args[i]) for i in self.numbers if i < len(args))
        named = tuple((n, kwargs[n]) for n in self.names if n in kwargs)
        for where, value in (*taken, *named):
            if hashed and not has_hash(value):
                raise _not_hashable(where, value, fun, self._who)
        skip = {i for i, _ in taken}
        rest = tuple(x for i, x in enumerate(args) if i not in skip)
        return rest, {k: v for k, v in kwargs.items() if k not in self.names}, Statics((taken, named))

    def put_back(self, args: Any, kwargs: Any, statics: Any) -> tuple[list[Any], dict[str, Any]]:
        """Return all arguments, the removed ones in their places."""
        if not statics:
            return list(args), kwargs
        full = list(args)
        for i, value in statics.items[0]:
            full.insert(i, value)
        return full, {**kwargs, **dict(statics.items[1])}

    def positions(self, statics: Any) -> tuple[int, ...]:
        """List the positions of the arguments that were given."""
        return tuple(i for i, _ in statics.items[0]) if statics else ()

    def leaves(self, tree: Any, removed: Sequence[int]) -> tuple[int, ...]:
        """Number the leaves of these arguments in a structure of (args, kwargs) without the arguments `removed`."""
        if not self:
            return ()
        args, kwargs = tree.children
        before = [i for i in range(len(args.children) + len(removed)) if i not in removed]
        chosen = [n in self.numbers for n, c in zip(before, args.children) for _ in range(c.num_leaves)]
        chosen += [k in self.names for k, c in zip(kwargs.aux, kwargs.children) for _ in range(c.num_leaves)]
        return tuple(i for i, yes in enumerate(chosen) if yes)


class Statics:
    """Static arguments as part of a key: equal only if they look the same to the function.

    So 1, 1.0 and True differ, inside tuples and frozen sets too, and 0.0 and -0.0, also NumPy's; nan equals itself.
    """

    __slots__ = ("items", "key")

    def __init__(self, items: Any) -> None:
        self.items: Final = items
        self.key: Final = tuple((where, _exactly(value)) for group in items for where, value in group)

    def codes(self) -> dict[int | str, StaticCode]:
        """Return what writes the condition that an argument is another one, by position or name."""
        return {where: static_code(value) for group in self.items for where, value in group}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Statics) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


_BASES: tuple[type[Any], ...] = (tuple, frozenset, float, complex)  # of named tuples and the like


def _exactly(value: Any) -> Any:
    return exact_key(value, _key_of_other)


def _key_of_other(value: Any) -> Any:
    """Return the key of an object: as exact as its equality, for named tuples and the like as exact as their values."""
    for base in _BASES:
        if isinstance(value, base):
            return type(value), _exactly(base(value))
    return type(value), value


_CONSTANTS = (int, str, bool, bytes, type(None))  # types whose equal instances cannot be told apart


def static_code(value: Any) -> StaticCode:
    """Return what writes the condition that a static argument is another one than `value`, as part of a key."""
    kind = type(value)
    if kind in _CONSTANTS:
        return lambda name, constant: f"type({name}) is not {constant(kind)} or {name} != {constant(value)}"
    if kind.__eq__ is object.__eq__:
        return lambda name, constant: f"{name} is not {constant(value)}"
    same = _comparison(value)
    if _is_constant(value):
        return lambda name, constant: f"{name} is not {constant(value)} and not {constant(same)}({name})"
    return lambda name, constant: f"not {constant(same)}({name})"  # it may have changed, as the other may


def _is_constant(value: Any) -> bool:
    """Tell whether a value can never change."""
    if type(value) is tuple:
        return all(map(_is_constant, value))
    return type(value) in (*_CONSTANTS, float, complex)


def _comparison(value: Any) -> Callable[[Any], bool]:
    """Return a function that tells whether an object is the same key as `value` is now."""
    exact, known = _exactly(value), hash(_exactly(value))

    def same(other: Any) -> bool:
        if type(other) is not type(value) or not has_hash(other):
            return False
        key = _exactly(other)
        return hash(key) == known and key == exact

    return same


def _numbers(numbers: Any, what: str) -> tuple[int, ...]:
    items = () if numbers is None else numbers if isinstance(numbers, Iterable) else (numbers,)
    try:
        return tuple(operator.index(i) for i in items)
    except TypeError:
        raise TypeError(f"{what}_argnums must be an integer or several, not {numbers!r}.") from None


def _names(names: Any, what: str) -> tuple[str, ...]:
    items = () if names is None else (names,) if isinstance(names, str) or not isinstance(names, Iterable) else names
    items = tuple(items)
    if not all(isinstance(name, str) for name in items):
        raise TypeError(f"{what}_argnames must be a name or several, not {names!r}.")
    return items


def _parameters(fun: Any) -> list[inspect.Parameter] | None:
    try:
        return list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        return None


def _in_range(i: int, n: int, variadic: bool, what: str, fun: Any) -> int:
    if not -n <= i < n and not (variadic and i >= 0):
        raise ValueError(
            f"{what}_argnums names argument {i}, but {core.describe_function(fun)} has "
            f"{n} positional argument{'s' * (n != 1)}."
        )
    return i % n if i < 0 else i


def _check_names(names: Sequence[str], parameters: Sequence[inspect.Parameter], what: str, fun: Any) -> None:
    kinds = {p.name: p.kind for p in parameters}
    by_place = [name for name in names if kinds.get(name) in _BY_PLACE]
    if by_place:
        raise ValueError(
            f"{what}_argnames names {by_place[0]!r}, which {core.describe_function(fun)} takes by position only. "
            "Give its number: argnums."
        )
    if inspect.Parameter.VAR_KEYWORD in kinds.values():
        return
    for name in names:
        if name not in kinds:
            has = ", ".join(kinds) or "no parameters"
            raise ValueError(f"{what}_argnames names {name!r}, but {core.describe_function(fun)} has {has}.")


_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)


def has_hash(value: Any) -> bool:
    """Tell whether a value can be a key; one that cannot may change."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _not_hashable(where: Any, value: Any, fun: Any, who: str) -> ValueError:
    kind = "" if isinstance(value, Array) else f" of type {type(value).__name__}"
    return ValueError(
        f"{who}: static argument {argument_name(fun, where)} of {core.describe_function(fun)} is not hashable: "
        f"{describe_value(value)}{kind}.\n"
        "  Static arguments are compiled in. Pass a tuple instead of a list, "
        "or do not make it static if it is an array."
    )
