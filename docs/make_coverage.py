"""Write docs/coverage.md, the public names of JAX and NumPy that are here, or why not: `python docs/make_coverage.py`.

It reads the names from JAX 0.10.2, NumPy and array-api-strict 2.3 (the standard of 2024.12), which have to be
installed. tests/test_coverage.py checks without them that the page tells the truth about Tapeless.
"""

import importlib
import types
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from coverage_reasons import OTHER_MEANINGS, REASONS

PAGE = Path(__file__).parent / "coverage.md"
HEAD = """# Coverage

This page lists the public names of JAX 0.10.2, of NumPy and of the array API standard 2024.12 that Tapeless has, and
those that it lacks, with the reasons; `python docs/make_coverage.py` writes it. A name means the same as in the other
library, except for the differences that [coming_from_jax.md](coming_from_jax.md) lists. A function of SciPy that is
missing, such as a Bessel function, can be called from compiled programs and be given a derivative:
[callbacks.md](callbacks.md#a-function-that-tapeless-lacks).
"""


class Namespace(NamedTuple):
    """A namespace of another library, and the one of Tapeless that has its names."""

    theirs: str
    ours: str


JAX = """
    numpy numpy.linalg numpy.fft lax lax.linalg random nn nn.initializers scipy.cluster.vq scipy.fft
    scipy.integrate scipy.interpolate scipy.linalg scipy.ndimage scipy.optimize scipy.signal
    scipy.sparse.linalg scipy.spatial.transform scipy.special scipy.stats tree tree_util dtypes errors
    core stages debug image ops flatten_util dlpack profiler custom_batching custom_derivatives
    ad_checkpoint typing
""".split()
NAMESPACES = (
    Namespace("jax", "tapeless"),
    *(Namespace(f"jax.{name}", f"tapeless.{name}") for name in JAX),
    Namespace("numpy", "tapeless.numpy"),
    Namespace("array_api_strict", "tapeless.numpy"),
    Namespace("array_api_strict.fft", "tapeless.numpy.fft"),
    Namespace("array_api_strict.linalg", "tapeless.numpy.linalg"),
)
LIBRARIES = ("jax==0.10.2", "array_api_strict==2.3")  # with NumPy, which is installed anyway
OFTEN_MODULES = {"jax.scipy.stats"}  # its distributions are modules, and public


def public_names(namespace: str) -> list[str]:
    """List the names that a namespace of another library offers, without modules and what is deprecated or private."""
    module = found(namespace)
    names = [name for name in getattr(module, "__all__", None) or dir(module) if not name.startswith("_")]
    return sorted(name for name in names if is_public(module, namespace, name))


def found(namespace: str) -> types.ModuleType:
    """Import a namespace, which is a module, or an attribute of one. Raises: SystemExit if its library is missing."""
    try:
        return importlib.import_module(namespace)
    except ModuleNotFoundError as error:
        parent, _, name = namespace.rpartition(".")
        if not parent:
            raise SystemExit(f"{error}: the page reads its names. pip install {' '.join(LIBRARIES)}") from None
        return getattr(found(parent), name)


def is_public(module: types.ModuleType, namespace: str, name: str) -> bool:
    """Tell whether a name can be used, and is not a module that was merely imported."""
    value = getattr(module, name, None)
    return value is not None and (namespace in OFTEN_MODULES or not isinstance(value, types.ModuleType))


def has(namespace: str, name: str) -> bool:
    """Tell whether Tapeless has a name, and means by it what the other library does."""
    if (namespace, name) in OTHER_MEANINGS:
        return False
    try:
        getattr(found(namespace), name)
    except (ImportError, AttributeError):
        return False
    return True


def section(namespace: Namespace) -> str:
    """Write the names of a namespace that are here, and a table of the others with their reasons."""
    names = public_names(namespace.theirs)
    there = [name for name in names if has(namespace.ours, name)]
    absent = [name for name in names if name not in there]
    share = 100 * len(there) / len(names)
    head = f"## {namespace.theirs}\n\nin `{namespace.ours}`: {len(there)} of {len(names)}, {share:.1f} %"
    return "\n\n".join(part for part in [head, ticked(there), table(namespace.theirs, absent)] if part) + "\n"


def ticked(names: Sequence[str]) -> str:
    """Write the names that are here, in one paragraph."""
    return "✓ " + " ".join(f"`{name}`" for name in names) if names else ""


def table(namespace: str, absent: Iterable[str]) -> str:
    """Write the missing names, grouped by their reason."""
    by_reason = dict[str, list[str]]()
    for name in absent:
        by_reason.setdefault(reason(namespace, name, REASONS), []).append(f"`{name}`")
    rows = [f"| {' '.join(names)} | {why} |" for why, names in by_reason.items()]
    return "\n".join(["| missing | reason |", "| --- | --- |", *rows]) if rows else ""


def reason(namespace: str, name: str, reasons: Mapping[str, Mapping[str, str]]) -> str:
    """Say why Tapeless does not have a name."""
    for why, names in reasons.get(namespace, {}).items():
        if name in names.split():
            return why
    raise KeyError(f"say in coverage_reasons.py why {namespace}.{name} is not here")


def page() -> str:
    """Write the whole page."""
    return "\n".join([HEAD, *map(section, NAMESPACES)])


if __name__ == "__main__":
    PAGE.write_text(page())
