"""Types of values that libraries define, by the names of `jax.experimental.hijax`: they can be declared, not used.

Flax declares some when it is imported, for variables that are passed to transformations as they are; by default it does
not make any. Values are arrays here, in pytrees: a primitive on others raises when it is applied.
"""

from collections.abc import Callable
from typing import Any, Final, NoReturn


class Effect:
    """An effect of primitives that a library defines: a class to derive from."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))


class EffectTypes:
    """A set of classes of effects."""

    def __init__(self) -> None:
        self._types: set[type] = set()

    def add_type(self, effect_type: type) -> None:
        """Add a class."""
        self._types.add(effect_type)

    def contains(self, effect: Any) -> bool:
        """Tell whether an effect is of one of the classes."""
        return isinstance(effect, tuple(self._types))


control_flow_allowed_effects: Final = EffectTypes()


class HiPrimitive:
    """A primitive on values of a library's own types."""

    def __init__(self, name: str) -> None:
        self.name: Final = name

    def bind(self, /, *args: Any, **params: Any) -> NoReturn:
        """Refuse to apply the primitive. Raises: NotImplementedError."""
        _refuse(self.name)


class VJPHiPrimitive:
    """A primitive on values of a library's own types, whose rules are methods: a class to derive from."""

    def __call__(self, *args: Any) -> NoReturn:
        """Refuse to apply the primitive. Raises: NotImplementedError."""
        _refuse(type(self).__name__)


def _refuse(name: str) -> NoReturn:
    raise NotImplementedError(
        f"{name}: values are arrays, or pytrees of arrays. Types of a library's own (jax.experimental.hijax) "
        "are not supported."
    )


class HiType:
    """A type of values that a library defines: a class to derive from."""


class MutableHiType:
    """A library's type of values that change in place: a class to derive from."""


class aval_method:
    """A method that values have by their type."""

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun: Final = fun


class aval_property:
    """A property that values have by their type."""

    def __init__(self, fget: Callable[..., Any]) -> None:
        self.fget: Final = fget


hitypes: dict[type, Callable[[Any], Any]] = {}


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], Any]) -> None:
    """Note the type of objects of a class. They are refused where arrays are asked for, all the same."""
    hitypes[val_cls] = typeof_fn
