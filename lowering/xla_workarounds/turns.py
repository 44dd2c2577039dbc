"""Operations that hand parts of themselves to XLA's pool of threads take turns, so that these threads never all wait.

On the CPU a thread of the pool that computes a batch of factorizations, or a Fourier transform, hands parts of it to
the pool and waits for them. If all threads wait, none computes the parts, and the program never ends: so do twelve
batches of Cholesky factorizations on two cores (jaxlib 0.10.2 to 0.12.0). Therefore the pool has more threads than
there are such operations of a program at the same time: each waits for the one that is `MOST` turns before it.
"""

from typing import Generic, TypeVar

Result = TypeVar("Result")

MOST = 16
THREADS = 4 * MOST  # of the pool, at least: several programs may run at the same time


class Turns(list[Result], Generic[Result]):
    """The results of the operations so far, once for each of their turns."""

    def before(self, n: int) -> list[Result]:
        """List the results that an operation of n turns waits for, each once."""
        last = self[-MOST:]
        return list(dict.fromkeys(last[: max(0, len(last) + min(n, MOST) - MOST)]))

    def take(self, result: Result, n: int) -> None:
        """Note an operation of n turns."""
        self += [result] * min(n, MOST)
