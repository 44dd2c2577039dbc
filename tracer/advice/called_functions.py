"""Name the public function that a user's line called, in errors of inner functions.

`tnp.hypot(x, y)` divides; an error about its operands says `hypot`, not `div`. Only errors pay for this: when one is
raised, the stack is walked from the user's frame inwards, to the first frame of a function of a public namespace.
"""

import functools
import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import CodeType, FrameType, ModuleType
from typing import Any

from tapeless.tracer import source

_ROOT = __name__.rpartition(".tracer.")[0]
# Namespaces of functions of arrays, with those in them; methods of their classes are called functions, too. What
# transforms functions, or runs them, is not renamed.
_PUBLIC = tuple(f"{_ROOT}.{name}" for name in ("numpy", "lax", "nn", "random", "scipy", "image", "ops"))
_DEFINED = (*_PUBLIC, f"{_ROOT}.tracer", f"{_ROOT}.batch.user_reductions")


def find_called(name: str) -> str:
    """Return the public name of the function that the user's line called; `name` if none is found, as of an operator.

    Of several names of one function, the one in the user's program.

    Args:
      name: what the function that raises an error is called; "" if it is a helper without a name.
    """
    users, ours = _frames()
    for frame in ours:
        if _is_operator(frame.f_code.co_name):
            return name
        names = _public_names(frame, name) if frame.f_globals.get("__name__", "").startswith(_DEFINED) else ()
        if name.rpartition(".")[2] in names and "." in name:  # the name of a distribution is said, too: gamma.cdf
            return name
        if names:
            written = [each for each in names if users is not None and each in users.f_code.co_names]
            return written[0] if len(written) == 1 else name if name in names else names[0]
    return name


def prefix_called(what: str) -> str:
    """Begin a message with the called function: "axis" becomes "argmax: axis", "flip: axis" may "flipud: axis"."""
    named = re.match(r"([\w.]+): ", what)
    found = find_called(named[1] if named else "")
    return f"{found}: {what[named.end() :] if named else what}" if found else what


def given_arrays(name: str, *shapes: tuple[int, ...]) -> bool:
    """Tell whether the public function that the user's line called was given arrays of all these shapes.

    True if no such function is found, as of an operator. Functions compute with arrays of their own, too: settings
    about operands of the user, such as `numpy_rank_promotion`, leave these alone.

    Args:
      name: what the function that asks is called.
    """
    for frame in _frames()[1]:
        if _is_operator(frame.f_code.co_name):
            return True
        module = frame.f_globals.get("__name__", "")
        of_class = module.startswith(_PUBLIC) and frame.f_code.co_varnames[:1] == ("self",)
        if of_class or (module.startswith(_DEFINED) and _public_names(frame, name)):
            return {*shapes} <= {*_shapes([*_arguments(frame)])}
    return True


def name_called(error: Exception, name: str) -> None:
    """Replace `name`, if an error's message begins with it, by the function that was called."""
    if [*map(type, error.args)] == [str] and re.match(rf"{re.escape(name)}(: | is not defined)", error.args[0]):
        error.args = (find_called(name) + error.args[0][len(name) :],)


def _frames() -> tuple[FrameType | None, list[FrameType]]:
    """Return the running frame of the user, and our frames below it, the outermost first."""
    ours, frame = list[FrameType](), sys._getframe(2)  # pyright: ignore[reportPrivateUsage]  # as in source.py
    while frame is not None and not source.is_users(frame.f_code):
        ours.append(frame)
        frame = frame.f_back
    return frame, ours[::-1]


def _arguments(frame: FrameType) -> Iterator[Any]:
    """Yield the arguments of the function that a frame runs."""
    names, rest, keywords, values = inspect.getargvalues(frame)
    yield from [values.get(name) for name in (*names, rest, keywords) if name]


def _shapes(values: Iterable[Any]) -> Iterator[tuple[int, ...]]:
    """Yield the shapes of arrays, also of those in sequences and dictionaries."""
    for value in values:
        if isinstance(value, list | tuple | dict):
            yield from _shapes(value.values() if isinstance(value, dict) else value)
        elif isinstance(shape := getattr(value, "shape", None), tuple):
            yield shape


def _is_operator(name: str) -> bool:
    return name.startswith("__") and name.endswith("__") and name != "__call__"


def _public_names(frame: FrameType, name: str) -> tuple[str, ...]:
    """List the public names of the function that a frame runs, its own first; none if it is private, or not unique.

    Functions that one factory made share their code: of these, the one called `name`.
    """
    found = dict[int, list[str]]()
    for public, function in _public_functions().get(id(frame.f_code), ()):
        found.setdefault(id(function), []).append(public)
    groups = [names for names in found.values() if len(found) == 1 or name in names]
    own = frame.f_code.co_name
    return tuple(sorted(set(groups[0]), key=lambda each: (each != own, each))) if len(groups) == 1 else ()


def _public_functions() -> Mapping[int, Sequence[tuple[str, Any]]]:
    """Map codes, by identity, to the functions that run them, with their names in the public namespaces.

    It searches some thousands of names, again only when a namespace or a name is added, as those imported late are.
    """
    modules = _public_modules()
    return _functions_by_code(len(modules), sum(len(vars(module)) for module in modules))


def _public_modules() -> list[ModuleType]:
    return [module for path, module in sys.modules.items() if path.startswith(_PUBLIC)]


@functools.lru_cache(maxsize=1)
def _functions_by_code(_modules: int, _names: int) -> Mapping[int, Sequence[tuple[str, Any]]]:
    found = dict[int, list[tuple[str, Any]]]()
    for module in _public_modules():
        names = vars(module)
        for name in names.get("__all__", ()):
            if callable(names.get(name)) and (code := _code_of(names[name])) is not None:
                found.setdefault(id(code), []).append((name, names[name]))
    return found


def _code_of(function: Any) -> CodeType | None:
    return getattr(inspect.unwrap(function), "__code__", None)
