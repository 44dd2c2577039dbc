"""Calls of programs, of functions on the host, and of linear maps that are given by their transposes."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.fuzzing.oracle.interpreter import NotHolomorphicError, Run, is_stepped, meaning
from tests.fuzzing.oracle.values import Values, kind_of, widened


@meaning("jit", "checkpoint", "custom_jvp", "custom_vjp", "custom_vmap")
def _call(run: Run, eqn: Any, *xs: Values) -> Any:
    """What the program computes; rules for derivatives and examples have no say in that."""
    return run.program(eqn.params["jaxpr"], xs)


@meaning("linear_solve")
def _linear_solve(run: Run, eqn: Any, *xs: Values) -> Any:
    """The solution of the system whatever the solver does, as its derivative is; what else the solver gives."""
    counts, system = eqn.params["counts"], eqn.params["system"]
    first = sum(counts[:2])
    consts, b = xs[first : first + counts[2]], list(xs[sum(counts) :])
    others = run.program(system[2], [*consts, *b])[len(b) :]
    matrix = _matrix(lambda x: run.program(system[0], [*xs[: counts[0]], *x]), b)
    try:
        x = np.linalg.solve(matrix, _flat(b))
    except np.linalg.LinAlgError:
        x = np.full(len(matrix), np.nan)
    return [*_like(x, b), *others]


def _matrix(matvec: Any, b: Sequence[Values]) -> Values:
    """The matrix of a linear function of arrays like b, by its columns."""
    n = sum(y.size for y in b)
    zeros = [np.zeros(y.shape, y.dtype) for y in b]
    columns = [_flat(matvec(_like(row, zeros))) for row in np.eye(n)]
    return np.stack(columns, -1) if columns else np.zeros((0, 0))


def _flat(xs: Sequence[Values]) -> Values:
    return np.concatenate([x.ravel() for x in xs])


def _like(x: Values, ys: Sequence[Values]) -> list[Values]:
    """A vector cut into arrays of the shapes of ys."""
    ends = np.cumsum([y.size for y in ys])[:-1]
    return [part.reshape(y.shape) for part, y in zip(np.split(x, ends), ys)]


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


def _transposed(run: Run, jaxpr: Any, residuals: Sequence[Values], given: Sequence[Values]) -> list[Values]:
    """For every element of every input of the linear program, the result of a one there, paired with what is given."""
    avals = [v.aval for v in jaxpr.invars[len(residuals) :]]
    zeros = [widened(np.zeros(aval.shape, aval.dtype)) for aval in avals]
    outs: list[Values] = []
    for k, zero in enumerate(zeros):
        column = np.zeros(zero.shape, np.result_type(zero, *[x for x in given if np.iscomplexobj(x)]))
        for at in np.ndindex(zero.shape):
            one = zero.copy()
            one[at] = 1
            pulled = run.program(jaxpr, [*residuals, *zeros[:k], one, *zeros[k + 1 :]])
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
