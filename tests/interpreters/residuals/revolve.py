"""The binomial formulas of optimal reversals with a number of states: Griewank & Walther 2000, Algorithm 799."""

from math import comb


def most_repetitions(length: int, states: int) -> int:
    """The least r for which binomial(states + r, states) is at least the number of steps."""
    if states == 1:
        return max(length - 1, 0)
    r = 0
    while comb(states + r, states) < length:
        r += 1
    return r


def fewest_repetitions(length: int, states: int) -> int:
    """How many steps are computed before their own backward step, at least; the first time counts."""
    r = most_repetitions(length, states)
    return r * length - comb(states + r, r - 1) if r else 0


def steps_to_next_state(length: int, states: int) -> int:
    """How many steps behind the first state the next one is saved, of 2 steps and 2 states or more: one of the best."""
    r = most_repetitions(length, states)
    return min(comb(states + r - 1, states), length - comb(states + r - 2, states - 1))
