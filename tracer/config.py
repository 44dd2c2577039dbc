"""Settings. Each is a field of `config`: set it for the process, or scope it with `config.scope(...)`."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_FIELDS: dict[str, Any] = {
    "default_bits": 32,  # width of Python scalars, of creation functions and of random numbers: 32 or 64
    "debug_nans": False,  # check every result for nan and name the equation that made it
    "default_device": None,  # where arrays are put that depend on none
}


class Config:
    """The settings. Reading a scoped field gives the innermost scope's value, else the process's."""

    def __init__(self) -> None:
        self.__dict__["_values"] = dict(_FIELDS)
        self.__dict__["_scoped"] = ContextVar("config", default={})

    def __getattr__(self, name: str) -> Any:
        scoped = self._scoped.get()
        if name in scoped:
            return scoped[name]
        if name in self._values:
            return self._values[name]
        raise AttributeError(_unknown(name))

    def __setattr__(self, name: str, value: Any) -> None:
        self.update(name, value)

    def update(self, name: str, value: Any) -> None:
        """Set a field for the process. Raises: AttributeError if there is no such field, ValueError for a bad value."""
        _check(name, value)
        self._values[name] = value

    @contextmanager
    def scope(self, **fields: Any) -> Generator[None]:
        """Set fields inside a `with` statement, in this thread or task only."""
        for name, value in fields.items():
            _check(name, value)
        token = self._scoped.set({**self._scoped.get(), **fields})
        try:
            yield
        finally:
            self._scoped.reset(token)


def _check(name: str, value: Any) -> None:
    if name not in _FIELDS:
        raise AttributeError(_unknown(name))
    if name == "default_bits" and value not in (32, 64):
        raise ValueError(f"config.default_bits must be 32 or 64, not {value!r}.")


def _unknown(name: str) -> str:
    return f"there is no setting {name!r}. Settings are {', '.join(_FIELDS)}."


config = Config()


class enable_x64:
    """Make 64 bits the default width: called plainly for the process, in a `with` statement for its body."""

    def __init__(self, on: bool = True) -> None:
        self._before, self._bits = config.default_bits, 64 if on else 32
        config.update("default_bits", self._bits)

    def __enter__(self) -> None:
        config.update("default_bits", self._before)
        self._scope = config.scope(default_bits=self._bits)
        self._scope.__enter__()

    def __exit__(self, *exc: Any) -> None:
        self._scope.__exit__(*exc)
