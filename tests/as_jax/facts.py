"""Facts, looked at in a process of their own: `python -m tests.as_jax.facts [--flag ...] module ...` prints rows.

A module has `facts`, a generator of (name, found, wanted). With `--inside`, each module is imported inside of `as_jax`,
so that it imports jax as programs do; its `facts_afterwards` are looked at behind the block. A fact that does not hold
hides no other.
"""

import json
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LACKING = "Tapeless stands for JAX here, and does not have it; see 'Coverage' in its documentation."
Fact = tuple[str, Any, Any]


def check(*arguments: str) -> None:
    """Run the program above, and name the facts that do not hold, with what was found."""
    command = [sys.executable, "-W", "error", "-m", "tests.as_jax.facts", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    rows: dict[str, str] = json.loads(done.stdout)
    modules = [argument for argument in arguments if not argument.startswith("--")]
    assert {name.partition(":")[0] for name in rows} == set(modules), rows
    wrong = [f"{name}: {text}" for name, text in rows.items() if text]
    assert wrong == [], "\n".join(wrong)


def refusal(kind: type[Exception], call: Callable[..., Any] | str, *args: Any) -> str | None:
    """Call a function, or run a statement, and return the text of the error; None if there is none of this kind."""
    try:
        exec(call, {}) if isinstance(call, str) else call(*args)
    except kind as error:
        return str(error)
    return None


def judged(found: Any, wanted: Any) -> str:
    """Say how two values differ, nothing if they are equal or one object; 1 is not True."""
    if found is wanted or (found == wanted and (type(found) is bool) == (type(wanted) is bool)):
        return ""
    return f"found {found!r}, wanted {wanted!r}"


def rows_of(module: str, facts: Iterable[Fact]) -> dict[str, str]:
    """Look at the facts of a module; an error on the way is a row, too."""
    rows: dict[str, str] = {}
    try:
        for name, found, wanted in facts:
            assert f"{module}: {name}" not in rows, f"two facts are named {name!r}"
            rows[f"{module}: {name}"] = judged(found, wanted)
    except Exception:
        rows[f"{module}: raises"] = traceback.format_exc()
    return rows


def inside(modules: list[str]) -> dict[str, str]:
    """Look at modules inside of `as_jax`, one after another, where no JAX is installed as far as `import` knows."""
    sys.modules["jax"] = None  # type: ignore[assignment]
    as_jax = import_module("tapeless").as_jax
    rows: dict[str, str] = {}
    for name in modules:
        with as_jax() as given:
            rows[f"{name}: as_jax()"] = judged(given is sys.modules["jax"], True)
            module = import_module(f"tests.as_jax.{name}")
            rows |= rows_of(name, module.facts())
        rows |= rows_of(name, getattr(module, "facts_afterwards", list)())
    return rows


def main(arguments: list[str]) -> None:
    """Print the rows of modules as JSON; `--after=NAME` imports another module before them."""
    modules = [argument for argument in arguments if not argument.startswith("--")]
    for argument in arguments:
        if argument.startswith("--after="):
            import_module(argument.removeprefix("--after="))
    if "--inside" in arguments:
        rows = inside(modules)
    else:
        facts = {name: import_module(f"tests.as_jax.{name}").facts for name in modules}
        rows = {key: text for name in modules for key, text in rows_of(name, facts[name]()).items()}
    json.dump(rows, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
