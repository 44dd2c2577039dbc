"""`python -m tests.fuzzing --minutes 30 --seed 7`: random programs, and a count of what they met."""

import argparse
import importlib
import sys

import tapeless as tl
from tests.fuzzing import crashes, runner
from tests.fuzzing.profiles import PROFILES


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0, help="of the first program; the next has the next number")
    parser.add_argument("--profile", choices=sorted(PROFILES), default="all")
    parser.add_argument("--every", action="store_true", help="run every program in every mode")
    parser.add_argument("--jax", action="store_true", help="compare with JAX, too, which must be installed")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--count", type=int, default=1, help="programs of a worker")
    parser.add_argument("--replay", help="a pickled program to run in the modes `--only`")
    parser.add_argument("--only", nargs="*", default=[], help="names of modes")
    given = parser.parse_args()
    if given.worker or given.replay:
        tl.config.update("default_bits", PROFILES[given.profile].bits)
        tl.config.update("check_programs", True)
    if given.replay:
        crashes.replay(given.replay, given.seed, given.only)
        return 0
    if given.worker:
        outside = importlib.import_module("tests.fuzzing.jax_side").reference if given.jax else None
        runner.work(given.profile, range(given.seed, given.seed + given.count), given.every, outside)
        return 0
    tally = runner.run(given.profile, given.seed, given.minutes, given.every, given.jax, _write)
    for line in tally.lines():
        _write(line)
    return 1 if tally.disagreements else 0


def _write(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
