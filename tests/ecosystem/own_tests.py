"""Libraries' own tests, which their wheels carry, through `as_jax`: `python -m tests.ecosystem.own_tests chex optax`.

    python -m tests.ecosystem.own_tests distrax --files normal,gamma     # a part, by names of files

Prints how many of the tests that pass with JAX pass with Tapeless, and why others do not, by own_reasons.py: of all, of
those for one device, and of those that no decision excludes, `DECIDED`. It fails if one has no reason, or if fewer than
98 % pass of those for one device. JAX runs only the files with a test that does not pass with Tapeless. What the tests
need must be installed: absl-py, mock, dill, flax, scikit-learn.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.ecosystem.own_reasons import DECIDED, DEVICES, reason

LIBRARIES = ("chex", "distrax", "haiku", "optax")
LEAST = 0.98  # of what passes with JAX and is for one device
_ROOT = Path(__file__).parents[2]
_JAX = [sys.executable, "-m", "pytest"]
_TAPELESS = [sys.executable, "-m", "tapeless.as_jax", "-m", "pytest"]


class Outcome(NamedTuple):
    """How a test ended: "passed", "failed" or "skipped", and its message."""

    outcome: str
    message: str


class Comparison(NamedTuple):
    """Tests of a library: how many pass with Tapeless, and those that pass with JAX only, with their messages."""

    passed: int
    lost: dict[str, str]


def folder(library: str) -> Path | None:
    """Find an installed library; None if it is not installed."""
    found = importlib.util.find_spec(library)
    return Path(str(found.origin)).parent if found else None


def compare(library: str, names: Sequence[str] = ()) -> Comparison:
    """Run a library's tests by both; `names` choose among its files."""
    where = folder(library)
    assert where is not None, f"{library} is not installed"
    files = [path for path in sorted(where.rglob("*_test.py")) if _is_chosen(path, names)]
    assert files, f"{library} carries no tests of these names"
    site = where.parent
    ours = outcomes(_TAPELESS, [str(path.relative_to(site)) for path in files], site)
    bad = [test for test, found in ours.items() if found.outcome == "failed"]
    theirs = outcomes(_JAX, sorted({test.partition("::")[0] for test in bad}), site) if bad else {}
    # A file that cannot be imported has failed as one, and passes as its tests.
    of = {test: next((one for one in bad if test == one or test.startswith(f"{one}::")), "") for test in theirs}
    lost = {test: ours[one].message for test, one in of.items() if one and theirs[test].outcome == "passed"}
    return Comparison(sum(found.outcome == "passed" for found in ours.values()), lost)


def _is_chosen(path: Path, names: Sequence[str]) -> bool:
    return not names or path.name.removesuffix("_test.py").strip("_") in names


def outcomes(command: list[str], tests: Sequence[str], site: Path) -> dict[str, Outcome]:
    """Run tests in a process of their own; return how each ended. A test with parts has failed if one of them has."""
    with tempfile.TemporaryDirectory() as work:
        chosen, written = Path(work, "tests"), Path(work, "outcomes")
        chosen.write_text("\n".join(tests))
        written.touch()
        flags = ["-q", f"--rootdir={site}", "--continue-on-collection-errors"]
        plugins = ["-p", "no:cacheprovider", "-p", "no:xdist", "-p", "tests.ecosystem.own_outcomes"]
        environment = {**os.environ, "OWN_OUTCOMES": str(written), "PYTHONPATH": str(_ROOT), "JAX_PLATFORMS": "cpu"}
        done = subprocess.run(
            [*command, *flags, *plugins, f"@{chosen}"], cwd=site, env=environment, capture_output=True, text=True
        )
        found: dict[str, Outcome] = {}
        for line in written.read_text().splitlines():
            test, outcome, message = json.loads(line)
            if test not in found or outcome == "failed":
                found[test] = Outcome(outcome, message)
        assert found and done.returncode in (0, 1), done.stdout[-3000:] + done.stderr[-3000:]
    return found


def report(library: str, found: Comparison) -> bool:
    """Print what was found. Returns: whether enough tests pass, and each that does not has its reason."""
    reasons = {test: reason(library, test, message) for test, message in found.lost.items()}
    lost = list(reasons.values())
    on_one = _share(found.passed, [why for why in lost if why != DEVICES])
    undecided = _share(found.passed, [why for why in lost if why not in DECIDED])
    lines = [f"{library}: {found.passed} of {found.passed + len(lost)} pass, {_share(found.passed, lost):.1%}"]
    lines += [f"  {on_one:.1%} of those for one device, {undecided:.1%} of those that no decision excludes"]
    lines += [f"  {n} {why}" for why, n in Counter(filter(None, lost)).items()]
    for test, why in reasons.items():
        if not why:
            lines += [f"  {test}", f"    NO REASON: {found.lost[test].partition(chr(10))[0]}"]
    sys.stdout.write("\n".join([*lines, ""]))
    sys.stdout.flush()
    return on_one >= LEAST and all(lost)


def _share(passed: int, lost: Sequence[str]) -> float:
    return passed / max(1, passed + len(lost))


def main() -> None:
    parser = argparse.ArgumentParser(description="Run libraries' own tests through as_jax.")
    parser.add_argument("libraries", nargs="*", default=LIBRARIES)
    parser.add_argument("--files", default="", help="names of files without _test.py, separated by commas")
    given = parser.parse_args()
    names = given.files.split(",") if given.files else ()
    good = [report(name, compare(name, names)) for name in given.libraries]
    sys.exit(not all(good))


if __name__ == "__main__":
    main()
