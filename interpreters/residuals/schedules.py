"""Schedules of loops in checkpoints, for a number of states that are live at once.

A state is a carry that is saved. Scans of checkpoints in scans of checkpoints, of k1, k2, ..., kd steps each, save
k1 + k2 + ... + kd states at once, reverse k1 k2 ... kd steps, and evaluate each step 1 + d times. Any other number of
steps is written with its digits: of so many of the outermost scans, of the next ones, and so on, each in the place of
those before, whose states are more. The fewest levels are taken that the states allow.
Left out: chunks of unequal lengths, with which s states and r repetitions reverse binomial(s + r, s) steps. Each chunk
is another program then, and compiled programs do not drop the states of one before they save those of the next.
Source: Griewank & Walther 2000, "Algorithm 799: revolve", for the bound; Griewank & Walther 2008, section 12.2.
"""

from collections.abc import Iterator
from functools import lru_cache
from math import isqrt, prod
from typing import Final

from tapeless.interpreters.residuals.chunks import STEP, Schedule, in_chunks

_TRIED: Final = 256  # plans of one number of levels
_REMEMBERED: Final = 512


def square_root(length: int, stacked: bool = False) -> Schedule:
    """Plan checkpoints of about the root of the number of steps, each of which is evaluated twice.

    The carries that they save and the steps of one of them are together at most 2 sqrt(length), rounded up. Checkpoints
    of equal lengths are taken within that, whether or not the loop has `stacked` results.
    """
    root, most = isqrt(length), isqrt(4 * length - 1) + 1
    even = [k for k in range(1, root + 1) if length % k == 0 and k + length // k <= most + 1]
    if even:
        return in_chunks(length, even[-1])
    return in_chunks(length, min((root, root + 1), key=lambda k: length // k + k))


def logarithmic(length: int, stacked: bool = False) -> Schedule:
    """Plan at most 2 log2(length) states, rounded up, and at most 2 + log2(length) / 2 evaluations of a step."""
    return of_states(length, 2 * (length - 1).bit_length(), stacked)


@lru_cache(_REMEMBERED)
def of_states(length: int, states: int, stacked: bool = False) -> Schedule:
    """Plan at most so many states live at once, with the fewest levels, so the fewest evaluations, of equal chunks.

    stacked: the loop stacks results. Then up to half as many evaluations more are taken, and one more level, for a
      schedule of one part, which concatenates none, and slices none of their cotangents.
    Raises: ValueError with the fewest states if these are more.
    """
    for levels in range(1, length.bit_length() + 1):
        plans = _plans(length, levels, states)
        if plans:
            least = min([plan.evaluations for plan in plans])
            whole = [_digits(length, inner) for inner in _factors(length, levels + 1, states)] if stacked else []
            good = [plan for plan in plans if 20 * plan.evaluations <= 21 * least]
            good += [plan for plan in whole if 2 * plan.evaluations <= 3 * least]
            # each part is one more copy of the step's program
            return min(good, key=lambda plan: (len(plan.parts), plan.evaluations, plan.states))
    raise ValueError(f"a loop of {length} steps needs at least {fewest_states(length)} states")


@lru_cache(_REMEMBERED)
def fewest_states(length: int) -> int:
    """Return the fewest states of equal chunks."""
    return min(
        [_digits(length, [*inner]).states for n in range(length.bit_length()) for inner in _radices(length, n, 4 * n)]
    )


def _plans(length: int, levels: int, states: int) -> list[Schedule]:
    """Plan so many levels within so many states, evenly among the sizes of the inner ones."""
    fitting = [
        inner for inner in _radices(length, levels - 1, states - 1) if length // prod(inner) + sum(inner) <= states
    ]
    plans = [_digits(length, inner) for inner in fitting[:: 1 + len(fitting) // _TRIED]]
    return [plan for plan in plans if plan.states <= states]


def _radices(length: int, levels: int, most: int) -> Iterator[list[int]]:
    """List numbers of steps of the inner levels, as equal as can be, with sums up to `most`."""
    for total in range(2 * levels, most + 1):
        each, more = divmod(total, max(levels, 1))
        inner = [each + 1] * more + [each] * (levels - more)
        if prod(inner) > length or total > 2 * levels == 0:
            return
        yield inner


def _factors(length: int, levels: int, most: int) -> Iterator[list[int]]:
    """List inner levels, the largest first, of up to so many levels whose numbers of steps have the loop's as product.

    The sum of all levels is at most `most`.
    """
    return (factors[1:] for factors in _products(length, levels, length, most))


def _products(product: int, n: int, largest: int, most: int) -> Iterator[list[int]]:
    """List up to n descending factors of a product, of sum up to `most`."""
    if product <= min(largest, most):
        yield [product]
    if n > 1:
        for k in range(2, min(largest, most, product // 2) + 1):
            if product % k == 0:
                yield from ([k, *inner] for inner in _products(product // k, n - 1, k, most - k))


def _digits(length: int, inner: list[int]) -> Schedule:
    """Write a number of steps with nested checkpoints of these numbers of steps, the outermost first."""
    nests = [STEP]
    for times in reversed(inner):
        nests.append(Schedule(((times, nests[-1]),)))
    parts: list[tuple[int, Schedule]] = []
    for nest in reversed(nests):
        times, length = divmod(length, nest.length)
        parts.extend([(times, nest)] if times else [])
    return Schedule(tuple(parts))
