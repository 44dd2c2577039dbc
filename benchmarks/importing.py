"""What does the import cost?

Baselines: numpy, which everybody pays anyway, and JAX. Every sample is a fresh interpreter, the libraries taking turns;
the clock runs in it, around the import statement alone. The first round, which fills the disk cache, does not count.
"""

import os
import subprocess
import sys
from statistics import median

from benchmarks.harness import Row, arguments, report

QUESTION = "What does the import cost?"
TIMED = "from time import perf_counter as now; t = now(); import {module}; print(now() - t)"
TARGETS = {"numpy": 2.5, "jax": 0.45, "jaxlib.xla_client": None}  # the last comes with the first array


def import_seconds(module: str) -> float:
    command = [sys.executable, "-P", "-c", TIMED.format(module=module)]
    # Installed packages come with byte code; a checkout has it after the first import, unless that is forbidden.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return float(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout)


def main() -> None:
    options = arguments(QUESTION)
    ours = "numpy" if options.control else "tapeless"
    modules = dict.fromkeys((ours, *TARGETS))
    rounds = [{module: import_seconds(module) for module in modules} for _ in range(options.repeats + 1)][1:]
    cost = {module: median(times[module] for times in rounds) for module in modules}
    rows = [
        Row(f"import {ours}, next to {other}", cost[ours], cost[other], target) for other, target in TARGETS.items()
    ]
    cannot_show = "the first import after installing (byte code, cold disk), nor the start of the device runtime."
    report(QUESTION, rows, names=(ours, "the other"), cannot_show=cannot_show)


if __name__ == "__main__":
    main()
