"""Try all sizes: print the rows whose backward error is more than ten times the reference's."""

import sys

from tests.backward_errors.judge import DTYPES, excess
from tests.backward_errors.matrices import KINDS

SIZES = (5, 10, 20, 50, 100, 200)

if __name__ == "__main__":
    for n in SIZES:
        for kind in KINDS:
            for dtype in DTYPES:
                lines = excess(kind, n, dtype)
                sys.stdout.write("".join(f"{line}\n" for line in lines) or f"{kind} {dtype} {n}: none\n")
                sys.stdout.flush()
