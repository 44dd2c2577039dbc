"""Types of results of weakly typed operands, weak or strong, of every public function that has an example; and JAX's.

`python -m tests.weak_results` asks JAX, and writes its answers to weak_results.json, which the test reads: there are
only programs traced, nothing is computed. Each example of the reference is called with all of its arrays weakly typed,
and with all but the first.
"""

import ast
import contextlib
import importlib
import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

import tapeless as tl
import tapeless.numpy as tnp
from tests.pages import hook

ANSWERS = Path(__file__).with_suffix(".json")
VARIANTS: dict[str, Callable[[int], bool]] = {"weak": lambda i: True, "first strong": lambda i: i > 0}
_SUBMODULES = """scipy.sparse.linalg scipy.cluster.vq scipy.fft scipy.integrate scipy.interpolate scipy.ndimage
    scipy.optimize scipy.signal scipy.spatial.transform scipy.stats image ops nn.initializers experimental.ode"""
_WIDE = {"f": "float32", "i": "int32", "c": "complex64"}
_LEFT = ("tree", "tree_util", "optimizers", "extend", "symbolic", "random", "checkpoint_policies", "dtypes")


class Library(NamedTuple):
    """A library: its module, what the examples call its namespaces, and how it makes an array weak."""

    module: ModuleType
    names: dict[str, Any]
    weakly: Callable[[Any, str], Any]


def ours() -> Library:
    """Tapeless."""
    names = {"np": np, "tl": tl, "tnp": tnp, "lax": tl.lax}
    return Library(tl, names, lambda x, dtype: tl.lax.convert_element_type(x, dtype, weak_type=True))


def theirs() -> Library:
    """JAX, under the names of ours."""
    jax = importlib.import_module("jax")
    for name in _SUBMODULES.split():
        importlib.import_module(f"jax.{name}")
    convert = importlib.import_module("jax._src.lax.lax")._convert_element_type
    names = {"np": np, "tl": jax, "tnp": jax.numpy, "lax": jax.lax}
    return Library(jax, names, lambda x, dtype: convert(x, np.dtype(dtype), weak_type=True))


def calls() -> Iterator[tuple[str, str]]:
    """Yield the public names that have examples, with these, without those that take no arrays."""
    examples = hook("example_calls")
    for namespace in dict.fromkeys([*examples.TEXTS, *examples.library_examples.TEXTS]):
        if not namespace.removeprefix("tapeless.").startswith(_LEFT):
            for name, text in examples.calls(namespace).items():
                yield f"{namespace}.{name}", text


def types(library: Library, text: str, variant: str, eager: bool = False) -> str:
    """Return the types of a call's results, `~` before those that are weak; "" if it is refused, or has none.

    Only examples whose arrays the variant makes weak are called.
    """
    lib = library.module
    with contextlib.suppress(Exception):
        call = _call(ast.parse(text, mode="eval").body)
        function, args, keywords = (_value(x, text, library.names) for x in (call.func, *_arguments(call)))
        leaves, tree = lib.tree.flatten((args, keywords))
        places = [i for i, x in enumerate(leaves) if isinstance(x, lib.Array)]
        given = [_given(library, leaves[i], VARIANTS[variant](k)) for k, i in enumerate(places)]
        if len(places) < (2 if variant == "first strong" else 1):
            return ""

        def run(*xs: Any) -> Any:
            changed = dict(zip(places, xs, strict=True))
            args, keywords = lib.tree.unflatten(tree, [changed.get(i, x) for i, x in enumerate(leaves)])
            return function(*args, **keywords)

        found = run(*given) if eager else lib.eval_shape(run, *given)
        return " ".join(map(_written, lib.tree.leaves(found)))
    return ""


def _call(tree: ast.expr) -> ast.Call:
    """Return the call in an expression such as `f(x)[0].round(3)`."""
    while not isinstance(tree, ast.Call) or (
        isinstance(tree.func, ast.Attribute) and isinstance(tree.func.value, ast.Subscript)
    ):
        tree = tree.func if isinstance(tree, ast.Call) else tree.value  # type: ignore[attr-defined]
    return tree


def _arguments(call: ast.Call) -> tuple[ast.expr, ast.expr]:
    keys: list[ast.expr | None] = [ast.Constant(k.arg) for k in call.keywords]
    return ast.Tuple(call.args, ast.Load()), ast.Dict(keys, [k.value for k in call.keywords])


def _value(tree: ast.expr, text: str, names: dict[str, Any]) -> Any:
    return eval(compile(ast.fix_missing_locations(ast.Expression(tree)), "<example>", "eval"), dict(names))


def _given(library: Library, x: Any, weak: bool) -> Any:
    wide = _WIDE.get(getattr(x.dtype, "kind", ""), "")
    return library.weakly(x, wide) if weak and wide else x


def _written(x: Any) -> str:
    return "~" * (x.weak_type and x.dtype != "bool") + str(x.dtype)


def read() -> dict[str, dict[str, str]]:
    """Return JAX's answers: of each variant, of each name."""
    grouped = json.loads(ANSWERS.read_text())
    return {v: {name: kind for kind, names in kinds.items() for name in names.split()} for v, kinds in grouped.items()}


def _record() -> None:
    grouped: dict[str, dict[str, list[str]]] = {variant: {} for variant in VARIANTS}
    library = theirs()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for (name, text), variant in ((call, v) for call in calls() for v in VARIANTS):
            if answer := types(library, text, variant):
                grouped[variant].setdefault(answer, []).append(name.removeprefix("tapeless."))
    joined = {v: {kind: " ".join(names) for kind, names in sorted(kinds.items())} for v, kinds in grouped.items()}
    ANSWERS.write_text(json.dumps(joined, indent=0) + "\n")


if __name__ == "__main__":
    _record()
