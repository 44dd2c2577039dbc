"""Run the examples in JAX's docstrings with Tapeless in its place: `python -m tests.ecosystem.jax_docstrings [PREFIX]`.

It prints the examples that raise, or print something else, of the names that begin with PREFIX ("jax." if none is
given), and how many there are. Numbers agree to three digits; what JAX prints in its own way, such as equations and
tracers, counts as a disagreement.
"""

import contextlib
import doctest
import functools
import importlib
import inspect
import io
import re
import signal
import sys
import tempfile
from collections.abc import Iterator
from types import FrameType, ModuleType
from typing import Any

import numpy as np

import tapeless as tl

NAMESPACES = """
    jax numpy numpy.linalg numpy.fft lax lax.linalg random nn nn.initializers tree tree_util
    scipy.special scipy.linalg scipy.stats scipy.signal scipy.optimize scipy.ndimage scipy.interpolate
    scipy.sparse.linalg scipy.spatial.transform scipy.cluster.vq scipy.fft scipy.integrate image ops
    dtypes errors custom_batching custom_derivatives experimental.jet experimental.ode
    experimental.checkify flatten_util debug dlpack stages ref ad_checkpoint
""".split()
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+|inf|nan)")
SECONDS = 30  # for one example
Examples = dict[str, list[doctest.Example]]


def collected() -> Examples:
    """The examples of JAX's public names."""
    found, seen = Examples(), set[int]()
    for name, value in public_values():
        text = inspect.getdoc(value) if id(value) not in seen else None
        seen.add(id(value))
        if text and ">>>" in text:
            with contextlib.suppress(ValueError):  # an example that is not one
                found[name] = doctest.DocTestParser().get_examples(text)
    return found


def public_values() -> Iterator[tuple[str, Any]]:
    """Yield public names with their values, and the methods of classes."""
    for path in NAMESPACES:
        path = path if path == "jax" else f"jax.{path}"
        module = importlib.import_module(path)
        for name in public_names(module):
            value = getattr(module, name, None)
            if not isinstance(value, ModuleType):
                yield f"{path}.{name}", value
            if inspect.isclass(value):
                yield from ((f"{path}.{name}.{k}", v) for k, v in vars(value).items() if not k.startswith("_"))


def public_names(module: ModuleType) -> list[str]:
    """The names that `from module import *` would bind."""
    return [name for name in getattr(module, "__all__", None) or dir(module) if not name.startswith("_")]


def globals_of(name: str) -> dict[str, Any]:
    """What the examples of a name may use without importing it: what is public beside it, and the usual short names."""
    jax, found = importlib.import_module("jax"), dict[str, Any]()
    with contextlib.suppress(ImportError, AttributeError):
        module = importlib.import_module(name.rpartition(".")[0])
        found = {k: getattr(module, k) for k in public_names(module) if hasattr(module, k)}
    usual = {"jax": jax, "jnp": jax.numpy, "lax": jax.lax, "np": np, "nan": np.nan}
    return found | usual | {"vmap": jax.vmap, "jit": jax.jit, "partial": functools.partial}


def disagreement(example: doctest.Example, scope: dict[str, Any]) -> str | None:
    """What is wrong with an example, run in a scope that it may add to."""
    printed, wants_error = io.StringIO(), "Traceback (most" in example.want
    signal.alarm(SECONDS)
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(example.source, "<example>", "single"), scope)
    except Exception as error:
        return None if wants_error else f"{type(error).__name__}: {error}"
    finally:
        signal.alarm(0)
    if wants_error:
        return "raises nothing"
    return None if not example.want or agree(example.want, printed.getvalue()) else f"prints\n{printed.getvalue()}"


def agree(wanted: str, printed: str) -> bool:
    """Whether two texts are equal but for spaces and the last digits of numbers."""
    if doctest.OutputChecker().check_output(wanted, printed, FLAGS):
        return True
    words = [re.sub(r"\s", "", NUMBER.sub("#", text)) for text in (wanted, printed)]
    numbers = [[float(x) for x in NUMBER.findall(text)] for text in (wanted, printed)]
    near = all(x == y or abs(x - y) <= 1e-3 * max(1, abs(x)) for x, y in zip(*numbers, strict=False))
    return words[0] == words[1] and len(numbers[0]) == len(numbers[1]) and near


def stop(number: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"more than {SECONDS} s")


def main(prefix: str) -> None:
    """Run the examples, and print what disagrees."""
    examples = {name: found for name, found in collected().items() if name.startswith(prefix)}
    signal.signal(signal.SIGALRM, stop)
    right = total = 0
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), tl.as_jax():
        for name, found in examples.items():
            scope = globals_of(name)
            for example in (e for e in found if "+SKIP" not in e.source):
                wrong = disagreement(example, scope)
                total, right = total + 1, right + (wrong is None)
                if wrong is not None:
                    sys.stdout.write(f"{name}\n    >>> {example.source.strip()}\n    {example.want}    {wrong}\n\n")
    sys.stdout.write(f"{right} of {total} examples agree\n")


if __name__ == "__main__":
    main(*sys.argv[1:] or ["jax."])
