"""Settings defined by users: values that functions read while they are traced, so that programs depend on them."""

import itertools
from contextlib import AbstractContextManager
from typing import Any

from tapeless.tracer.settings.config import Field, add_field, config


class UserContext:
    """A setting defined by a user. `value` is its present value; calling it sets another value in a with block.

    Jitted functions are traced anew for each value.
    """

    def __init__(self, field: Field[Any]) -> None:
        self._field = field

    @property
    def value(self) -> Any:
        """Return the present value."""
        return self._field.__get__(None)

    def __call__(self, new_val: Any) -> AbstractContextManager[None]:
        """Set the value in a with block, or a decorated function. Raises: TypeError if it is not hashable."""
        return config.scope(**{self._field.name: new_val})


def make_user_context(default_value: Any = None) -> UserContext:
    """Make a setting like those of `tl.config`: programs are traced again when it changes.

    Args:
      default_value: its value outside of any with block, hashable, as all of its values.
    Raises: TypeError if it is not hashable.

    >>> import tapeless as tl
    >>> factor = make_user_context(2.0)
    >>> f = tl.jit(lambda x: x * factor.value)
    >>> with factor(3.0):
    ...     f(1.0)
    Array(3., dtype=float32, weak_type=True)
    >>> f(1.0)
    Array(2., dtype=float32, weak_type=True)
    """
    return UserContext(add_field(f"user_context_{next(_numbers)}", _AnyField(default_value, None)))


class _AnyField(Field[Any]):
    """A field that allows any hashable value."""

    def checked(self, value: Any) -> Any:
        hash(value)
        return value


_numbers = itertools.count()
