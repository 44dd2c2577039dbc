"""`as_jax`: what `import jax` means inside of it and outside, what is missing by name, and scripts as main programs.

The facts are in tests/as_jax/, each with a name; a test compares those of one process.
"""

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tapeless.like_jax.jax_src import version
from tests.as_jax import facts


def run(*arguments: str) -> Any:
    """What a Python process prints."""
    done = subprocess.run([sys.executable, "-W", "error", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_inside():
    """Names are ours, by every way of importing them; what we lack is an error that names it."""
    facts.check("--inside", "own_names", "imported_names", "doors", "library_names", "wide_requests")


@pytest.mark.parametrize(
    "process", ["beside", "extension_modules", "shown_classes", "shown_classes --after=jax"], ids=lambda text: text
)
def test_beside_the_real_one(process: str):
    """Each library is bound to the one that it was imported with, and there is no trace of us outside."""
    pytest.importorskip("jax")
    facts.check(*process.split())


def test_settings_by_text():
    pytest.importorskip("absl")
    facts.check("settings_by_text")


def test_a_fact_that_does_not_hold_hides_no_other():
    def three() -> Any:
        yield "same", [1], [1]
        yield "one", 1, True
        yield "other", 2, 2
        yield "last", int("x"), 0

    rows = facts.rows_of("module", three())
    assert {name: text for name, text in rows.items() if text and "raises" not in name} == {
        "module: one": "found 1, wanted True"
    }
    assert "invalid literal for int()" in rows["module: raises"] and len(rows) == 4


def test_scripts_and_modules(tmp_path: Path):
    script = tmp_path / "script.py"
    script.write_text("import sys, jax\nprint(sys.argv[1:], jax.jit.__module__, __name__)")
    expected = "['a', '-b'] tapeless.compile.jit __main__\n"
    assert run("-m", "tapeless.as_jax", str(script), "a", "-b") == expected
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import tapeless as tl, tapeless.as_jax as cli; "
        "cli.main(['-m', 'script', 'a', '-b']); print(tl.as_jax is cli); tl.as_jax().__enter__()"
    )
    assert run("-c", code) == expected + "True\n"


def test_usage():
    usage = "usage: python -m tapeless.as_jax [-m module | script.py] [arguments ...]\n"
    done = subprocess.run([sys.executable, "-m", "tapeless.as_jax"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, usage)
    lines = ["import tapeless.as_jax as cli", "for wrong in ['-m'], ['--help']:"]
    lines += [" try: cli.main(wrong)", " except SystemExit as exit: print(exit)"]
    assert run("-c", "\n".join(lines)) == usage * 2


def test_the_version_is_that_of_the_oldest_jaxlib():
    """Names and meanings are of one JAX, whichever jaxlib is installed."""
    needed = tomllib.loads((facts.ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    assert f"jaxlib>={version.__version__},<" in " ".join(needed)
