"""The GPU tier: what runs on the CPU, run on a GPU and compared with it. `tests/gpu/run.sh` runs all of it.

Every test is skipped where there is no GPU. `TAPELESS_TIER=cpu python -m pytest tests/gpu` runs the tests with the CPU
in the GPU's place, which shows that the tests themselves work.
"""

import os

TIER = os.environ.get("TAPELESS_TIER", "gpu")  # the platform under test
IS_GPU = TIER != "cpu"
