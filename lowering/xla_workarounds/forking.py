"""Behaviour after os.fork: a child process reads existing arrays, and computing raises a clear error.

The threads of XLA's client do not exist in the child. Compiling and computing would wait for them forever, and freeing
the client would join them: the child would end with a segmentation fault at exit. So the child refuses to compute, and
keeps its clients for good. Arrays that were computed before the fork can be read. A process that forks before anything
is computed may compute in both.
"""

import ctypes
import functools
import os
import weakref
from typing import Any, NoReturn, Protocol

from tapeless.tracer import source


class Refusing(Protocol):
    """An object that can be told to raise an error whenever it is used, as in a forked child."""

    def refuse(self) -> None:
        """Raise `refusal()` from now on, whenever it is used."""
        ...


forked: bool = False  # whether this process was forked after a client was made
_clients: list[Any] = []
_refusing: set["weakref.ref[Refusing]"] = set()


def prepare(client: Any) -> None:
    """Have processes that are forked from now on keep `client` without using it; warn at a fork."""
    _clients.append(client)
    _install_hooks()


def refuse_in_children(used: Refusing) -> None:
    """Have `used.refuse()` called in every process that is forked."""
    _refusing.add(weakref.ref(used, _refusing.discard))


def check() -> None:
    """Raise RuntimeError in a forked child."""
    if forked:
        raise refusal()


def refusal() -> RuntimeError:
    """Return the error for computing in a forked child."""
    return RuntimeError(
        "this process was forked after Tapeless was used: XLA's threads do not exist in it, and computing would hang.\n"
        "  Start processes with multiprocessing's 'spawn' or 'forkserver', or fork before anything is computed."
    )


def refuse(*_: Any) -> NoReturn:
    """Raise RuntimeError: a child's replacement of functions that compute."""
    raise refusal()


@functools.cache
def _install_hooks() -> None:
    os.register_at_fork(before=_warn, after_in_child=_become_a_child)


def _warn() -> None:
    source.warn(
        "os.fork() after Tapeless was used: the child can read arrays and not compute. "
        "Start processes with multiprocessing's 'spawn' or 'forkserver'.",
        RuntimeWarning,
    )


def _become_a_child() -> None:
    global forked
    forked = True
    for client in _clients:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(client))  # one reference that nobody gives up
    for used in [ref() for ref in list(_refusing)]:
        if used is not None:
            used.refuse()
