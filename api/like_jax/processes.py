"""Older names of `process_count`, `process_index` and `process_indices`, which warn that they are."""

import warnings
from collections.abc import Callable
from typing import TypeVar

from tapeless.lowering.devices import process_count, process_index, process_indices

T = TypeVar("T")


def host_count(backend: str | None = None) -> int:
    """Return `process_count()`, with a warning: the old name.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as found:
    ...     warnings.simplefilter("always")
    ...     host_count()
    1
    >>> print(found[0].message)
    host_count is an older name of process_count: use that.
    """
    return _warned("host_count", process_count)(backend)


def host_id(backend: str | None = None) -> int:
    """Return `process_index()`, with a warning: the old name.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as found:
    ...     warnings.simplefilter("always")
    ...     host_id()
    0
    >>> print(found[0].message)
    host_id is an older name of process_index: use that.
    """
    return _warned("host_id", process_index)(backend)


def host_ids(backend: str | None = None) -> list[int]:
    """Return `process_indices()`, with a warning: the old name.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as found:
    ...     warnings.simplefilter("always")
    ...     host_ids()
    [0]
    >>> print(found[0].message)
    host_ids is an older name of process_indices: use that.
    """
    return _warned("host_ids", process_indices)(backend)


def _warned(old: str, new: Callable[[str | None], T]) -> Callable[[str | None], T]:
    warnings.warn(f"{old} is an older name of {new.__name__}: use that.", DeprecationWarning, stacklevel=3)
    return new
