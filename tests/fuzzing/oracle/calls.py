"""Calls of programs, of functions on the host, and of linear maps that are given by their transposes."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tests.fuzzing.oracle.interpreter import NotHolomorphicError, Run, is_stepped, meaning
from tests.fuzzing.oracle.values import Values, kind_of, widened, zeros


@meaning("jit", "checkpoint", "invertible", "custom_jvp", "custom_vjp", "custom_vmap")
def _call(run: Run, eqn: Any, *xs: Values) -> Any:
    """What the program computes; rules for derivatives and examples have no say in that."""
    return run.program(eqn.params["jaxpr"], xs)


@meaning("linear_solve")
def _linear_solve(run: Run, eqn: Any, *xs: Values) -> Any:
    """What the solver gives; to differentiate, the solution of the system itself, and what else the solver gives."""
    matvec, _, solve, _ = eqn.params["system"]
    of_matvec, of_vecmat, of_solve, of_other = eqn.params["counts"]
    b = xs[of_matvec + of_vecmat + of_solve + of_other :]
    first = of_matvec + of_vecmat
    if not run.differentiating:
        return run.program(solve, [*xs[first : first + of_solve], *b])
    avals = [v.aval for v in solve.invars]
    fixed = [x.real if kind_of(aval.dtype) == "f" else x for x, aval in zip([*xs[first : first + of_solve], *b], avals)]
    others = run.program(solve, fixed)
    return [*_solution(run, matvec, xs[:of_matvec], b), *others[len(b) :]]


def _solution(run: Run, matvec: Any, consts: Sequence[Values], b: Sequence[Values]) -> list[Values]:
    """The solution by the dense matrix of a linear jaxpr."""
    if not sum(x.size for x in b):
        return list(b)
    matrix = np.stack([_flat(run.program(matvec, [*consts, *one])) for one in _unit_vectors(b)], 1)
    try:
        solved = np.linalg.solve(matrix, _flat(b))
    except np.linalg.LinAlgError:
        solved = np.full(len(matrix), np.nan)
    ends = np.cumsum([x.size for x in b])[:-1]
    return [part.reshape(x.shape) for part, x in zip(np.split(solved, ends), b)]


def _flat(xs: Sequence[Values]) -> Values:
    return np.concatenate([x.reshape(-1) for x in xs])


def _unit_vectors(like: Sequence[Values]) -> Iterator[list[Values]]:
    """Zeros of these shapes but for a one, for each of their elements."""
    for k, x in enumerate(like):
        for at in np.ndindex(x.shape):
            vector = [np.zeros(y.shape, float) for y in like]
            vector[k][at] = 1
            yield vector


# ---- linear maps -----------------------------------------------------------------------------------------------


@meaning("custom_linear")
def _custom_linear(run: Run, eqn: Any, *xs: Values) -> Any:
    """The program applied, or the transpose of its matrix; a map without a program gives zeros."""
    pull, n = eqn.params["pull"], eqn.params["n"]
    jaxpr = getattr(pull, "jaxpr", None)
    if jaxpr is None:
        return [np.zeros(v.aval.shape) for v in eqn.outvars]
    if not pull.transposed:
        return run.program(jaxpr, xs)
    return _transposed(run, jaxpr, xs[:n], xs[n:])


MOST_TRANSPOSED = 5_000  # elements of a map: small programs have fewer


def _transposed(run: Run, jaxpr: Any, residuals: Sequence[Values], given: Sequence[Values]) -> list[Values]:
    """For every element of every input of the linear jaxpr, the result of a one there, paired with what is given."""
    avals = [v.aval for v in jaxpr.invars[len(residuals) :]]
    nothing = [zeros(aval.shape, aval.dtype) for aval in avals]
    if sum(x.size for x in nothing) > MOST_TRANSPOSED:
        raise NotImplementedError("to transpose a map of so many elements, each of them would be mapped.")
    outs: list[Values] = []
    for k, zero in enumerate(nothing):
        column = np.zeros(zero.shape, np.result_type(zero, *filter(np.iscomplexobj, (*residuals, *given))))
        for at in np.ndindex(zero.shape):
            one = zero.copy()
            one[at] = 1
            pulled = run.program(jaxpr, [*residuals, *nothing[:k], one, *nothing[k + 1 :]])
            column[at] = sum(np.sum(a * b) for a, b in zip(pulled, given))
        outs.append(column)
    return outs


# ---- the host --------------------------------------------------------------------------------------------------


@meaning("pure_callback", "io_callback")
def _callback(run: Run, eqn: Any, *xs: Values) -> Any:
    """The function called, once, with arrays of the declared dtypes."""
    if any(is_stepped(x) and kind_of(v.aval.dtype) != "c" for x, v in zip(xs, eqn.invars)):
        raise NotHolomorphicError(eqn.primitive.name)
    arrays = [np.asarray(x.astype(v.aval.dtype)) for x, v in zip(xs, eqn.invars)]
    return [widened(y) for y in eqn.params["callback"](eqn.params["result_avals"], *arrays)]


@meaning("debug_callback")
def _debug_callback(run: Run, eqn: Any, *xs: Values) -> Any:
    """Nothing: it is called to look, and not by an oracle."""
    return ()
