"""Implicit differentiation: custom_linear_solve and custom_root, whose solvers are not differentiated."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tapeless.arguments.argument_checks import check_arrays, check_callable, structure
from tapeless.control_flow.body_tracing import as_type, trace
from tapeless.custom.closures import alive_in
from tapeless.custom.jvp import custom_jvp
from tapeless.custom.symbolic_zeros import zero_from_primal
from tapeless.differentiate.autodiff import jvp
from tapeless.differentiate.tangents import convert_tangent
from tapeless.interpreters import transpose
from tapeless.interpreters.analysis.linearity import check_linear
from tapeless.tracer import core, linear_vars, pytree
from tapeless.tracer.jaxpr import Jaxpr, eval_jaxpr
from tapeless.tracer.primitives.elementwise import neg
from tapeless.tracer.primitives.linear_solve import System, linear_solve
from tapeless.tracer.types import ShapedArray, aval_of, is_arraylike

Flat = Callable[..., Any]


def custom_linear_solve(
    matvec: Callable[[Any], Any],
    b: Any,
    solve: Callable[[Callable[[Any], Any], Any], Any],
    transpose_solve: Callable[[Callable[[Any], Any], Any], Any] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """Solve `matvec(x) = b` for x by `solve`; derivatives solve again, and do not differentiate `solve`.

    Args:
      matvec: a linear function of pytrees like `b`; it may close over the arrays to differentiate by.
      b: a pytree of floating point or complex arrays.
      solve: `solve(matvec, b)` gives x, or (x, aux) if `has_aux`; aux has no derivative.
      transpose_solve: `transpose_solve(vecmat, b)` solves the transposed system, for reverse mode.
      symmetric: promise that the matrix is, so that `solve` serves for both.
    Returns: x, of the structure and types of `b`; or (x, aux).
    Raises: LinearityError if `matvec` is not linear; TypeError if it, or a solver, gives another structure or other
      types than `b`; NotImplementedError in reverse mode if there is no solver for the transposed system.
    Source: Giles 2008, "An extended collection of matrix derivative results", section 2.3.
    """
    for name, f in (("matvec", matvec), ("solve", solve)):
        check_callable("custom_linear_solve", f, name)
    check_arrays("custom_linear_solve: b{}", b)
    return _linear_solve(_Given("custom_linear_solve", "b"), matvec, b, solve, transpose_solve, symmetric, has_aux)


def _linear_solve(
    given: "_Given",
    matvec: Any,
    b: Any,
    solve: Any,
    transpose_solve: Any,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """Solve as `custom_linear_solve` does; messages describe the argument like b by `given`."""
    leaves, tree = pytree.flatten(b)
    avals = _types(given, b, (matvec, matvec), (solve, _found_by(given, solve, matvec, has_aux)))
    program, consts = _program(given, matvec, lambda *xs: matvec(pytree.unflatten(tree, xs)), avals, b)
    linear = linear_vars.mark_linear_cached(program, (*[False] * len(consts), *[True] * len(avals)))
    check_linear(linear)
    solved, of_solve, aux = _solver(given, solve, program, consts, avals, b, has_aux)
    groups: list[Sequence[Any]] = [consts, (), of_solve, ()]
    vecmat = transpose_solved = None
    if symmetric:
        vecmat, transpose_solved, groups[1], groups[3] = program, solved, consts, of_solve
    elif transpose_solve is not None:
        every = (True,) * len(avals)
        vecmat, _ = transpose.transpose_jaxpr(linear, every, wanted=every)
        transpose_solved, groups[3], _ = _solver(given, transpose_solve, vecmat, consts, avals, b, has_aux)
        groups[1] = consts
    outs = linear_solve(
        System(program, vecmat, solved, transpose_solved), groups, [as_type(x, a) for x, a in zip(leaves, avals)]
    )
    x = pytree.unflatten(tree, outs[: len(avals)])
    return (x, pytree.unflatten(aux, outs[len(avals) :])) if has_aux else x


class _Given(NamedTuple):
    """An argument of a function of this module, for messages: the structure that a solution must have."""

    who: str
    name: str


_OF_GUESS = _Given("custom_root", "initial_guess")


def _types(given: _Given, b: Any, *functions: tuple[Any, Any]) -> list[ShapedArray]:
    """Infer the types of the leaves of a solution: weak where `b` is weak, if each function keeps it weak.

    Args:
      given: what `b` is.
      functions: the user's function, for messages, and what is called.
    """
    leaves, tree = pytree.flatten(b)
    avals = [aval_of(x) for x in leaves]
    while any(aval.weak_type for aval in avals):
        bodies = [trace(given.who, fun, lambda *xs, f=f: f(pytree.unflatten(tree, xs)), avals) for fun, f in functions]
        outs = [body.jaxpr.out_avals for body in bodies]
        found = [a if all(len(o) > i and o[i] == a for o in outs) else a.strong() for i, a in enumerate(avals)]
        if found == avals:
            break
        avals = found
    return avals


def _program(
    given: _Given, fun: Any, flat: Flat, avals: Sequence[ShapedArray], b: Any
) -> tuple[Jaxpr, tuple[Any, ...]]:
    """Trace a function whose result must be like `b`. Raises: TypeError if it is not."""
    body = trace(given.who, fun, flat, avals)
    _check_like(given, fun, body.result, b, avals)
    return body.giving(avals).jaxpr, body.consts


def _solver(
    given: _Given, solve: Any, matvec: Jaxpr, consts: Any, avals: Sequence[ShapedArray], b: Any, has_aux: bool
) -> tuple[Jaxpr, tuple[Any, ...], Any]:
    """Trace a solver; return its program, its constants, and the structure of its auxiliary result."""
    tree, n, aux = pytree.structure(b), len(consts), None

    def of_flat(*xs: Any) -> Any:
        nonlocal aux

        def apply(x: Any) -> Any:
            return pytree.unflatten(tree, eval_jaxpr(matvec, [*xs[:n], *_operands(given.who, x, b, avals)]))

        found = solve(apply, pytree.unflatten(tree, xs[n:]))
        x, others = _split(given, solve, found) if has_aux else (found, ())
        _check_like(given, solve, x, b, avals)
        aux = pytree.structure(others)
        return [as_type(leaf, aval) for leaf, aval in zip(pytree.leaves(x), avals)], others

    body = trace(given.who, solve, of_flat, [*map(aval_of, consts), *avals])
    return body.jaxpr, (*body.consts, *consts), aux


def _operands(who: str, x: Any, b: Any, avals: Sequence[ShapedArray]) -> list[Any]:
    """Flatten the argument with which a solver calls its function. Raises: TypeError if it is not like `b`."""
    if pytree.structure(x) != pytree.structure(b):
        told = pytree.compare(pytree.structure(b), pytree.structure(x), ("its arguments", "those given"))
        raise TypeError(f"{who}: the function of a solver was called with another structure than it takes.{told}")
    leaves = [
        (f"{who}: what a solver calls its function with{pytree.keystr(p)}", v) for p, v in pytree.leaves_with_path(x)
    ]
    return [convert_tangent(v, aval, what, "the function") for (what, v), aval in zip(leaves, avals)]


def _check_like(given: _Given, fun: Any, found: Any, b: Any, avals: Sequence[ShapedArray]) -> None:
    """Raise TypeError if the result `found` of `fun` has not the structure and types of `b`."""
    who, want = f"{given.who}: {core.describe_function(fun)}", pytree.structure(b)
    if pytree.structure(found) != want:
        told = pytree.compare(want, pytree.structure(found), (given.name, "the result"))
        raise TypeError(f"{who} gives another structure than that of {given.name}.{told}")
    for (path, x), aval in zip(pytree.leaves_with_path(found), avals):
        where = f"{given.name}{pytree.keystr(path)} is {aval}"
        if not is_arraylike(x):
            raise TypeError(f"{who} gives {x!r} of type {type(x).__name__} where {where}.")
        have = aval_of(x)
        if have.shape != aval.shape or (have.dtype != aval.dtype and not have.weak_type):
            raise TypeError(f"{who} gives {have} where {where}.")


def _found_by(given: _Given, solve: Any, fun: Any, has_aux: bool) -> Flat:
    """Make the function that solves the equation of `fun` by a solver, without its auxiliary result."""

    def found(x: Any) -> Any:
        found = solve(fun, x)
        return _split(given, solve, found)[0] if has_aux else found

    return found


def _split(given: _Given, solve: Any, found: Any) -> tuple[Any, Any]:
    """Split into (x, aux). Raises: TypeError if the solver gives something else."""
    if isinstance(found, tuple) and len(found) == 2:
        return found
    leaves, tree = pytree.flatten(found)
    raise TypeError(
        f"{given.who}: with has_aux=True {core.describe_function(solve)} must return (x, aux), but returned "
        f"{structure(tree, leaves)}."
    )


def custom_root(
    f: Callable[[Any], Any],
    initial_guess: Any,
    solve: Callable[[Callable[[Any], Any], Any], Any],
    tangent_solve: Callable[[Callable[[Any], Any], Any], Any],
    has_aux: bool = False,
) -> Any:
    """Solve `f(x) = 0` for x by `solve`, and differentiate the equation, not `solve`.

    Both modes work, of any order, whatever `solve` and `tangent_solve` do: reverse mode asks `tangent_solve` for the
    solution of the transposed system.

    Args:
      f: a function of pytrees like `initial_guess`; it may close over the arrays to differentiate by.
      initial_guess: a pytree of floating point arrays, which the result does not depend on.
      solve: `solve(f, initial_guess)` gives x, or (x, aux) if `has_aux`; aux has no derivative.
      tangent_solve: `tangent_solve(g, y)` gives z such that `g(z)` is y, for a linear g.
    Returns: x, or (x, aux).
    Raises: TypeError if `f` or the solvers give another structure or other types than `initial_guess`.
    Source: the implicit function theorem; Blondel et al. 2022, "Efficient and modular implicit differentiation".
    """
    for name, fun in (("f", f), ("solve", solve), ("tangent_solve", tangent_solve)):
        check_callable("custom_root", fun, name)
    check_arrays("custom_root: initial_guess{}", initial_guess)
    leaves, tree = pytree.flatten(initial_guess)
    found = _found_by(_OF_GUESS, solve, f, has_aux)
    avals = _types(_OF_GUESS, initial_guess, (f, f), (solve, found))
    program, consts = _program(_OF_GUESS, f, lambda *xs: f(pytree.unflatten(tree, xs)), avals, initial_guess)

    def applied(consts: Sequence[Any], x: Any) -> Any:
        return pytree.unflatten(
            tree, eval_jaxpr(program, [*consts, *_operands("custom_root", x, initial_guess, avals)])
        )

    @custom_jvp
    def root(consts: Sequence[Any], guess: Any, of_solve: Sequence[Any], _: Sequence[Any]) -> Any:
        if solved is not None:
            outs = eval_jaxpr(solved, [*of_solve, *consts, *pytree.leaves(guess)])
            x = pytree.unflatten(tree, outs[: len(avals)])
            return (x, pytree.unflatten(aux, outs[len(avals) :])) if has_aux else x
        found = solve(lambda x: applied(consts, x), guess)
        x = _split(_OF_GUESS, solve, found)[0] if has_aux else found
        _check_like(_OF_GUESS, solve, x, initial_guess, avals)
        return found

    solved: Jaxpr | None = None
    of_solve: Sequence[Any] = ()
    aux: Any = None
    if alive_in(solve):  # what the solver reads has no derivative: its program takes it as operands
        solved, every, aux = _solver(_OF_GUESS, solve, program, consts, avals, initial_guess, has_aux)
        of_solve = every[: len(every) - len(consts)]
    tangent, of_tangent = _tangent_solver(applied, tangent_solve, consts, pytree.unflatten(tree, avals))
    root.defjvp(_root_jvp(root, applied, tangent, has_aux))
    guess = pytree.unflatten(tree, [as_type(x, a) for x, a in zip(leaves, avals)])
    return root(list(consts), guess, list(of_solve), list(of_tangent))


def _tangent_solver(
    applied: Callable[[Sequence[Any], Any], Any], tangent_solve: Any, consts: Sequence[Any], like: Any
) -> tuple[Callable[..., Any], Sequence[Any]]:
    """Make the function of (what the solver closes over, consts, x, right side) that solves for the tangent of a root.

    A solver that closes over traced arrays becomes a program here: the rule that calls it runs in other traces.

    Args:
      like: the types of x, in its structure.
    Returns: the function, and the traced arrays that it takes; these have no derivative.
    """

    def solved(_: Any, consts: Sequence[Any], x: Any, right: Any) -> Any:
        return _linear_solve(
            _OF_GUESS,
            lambda v: jvp(lambda y: applied(consts, y), (x,), (v,))[1],
            right,
            tangent_solve,
            tangent_solve,
        )

    if not alive_in(tangent_solve):
        return solved, ()
    types, tree = pytree.flatten((list(map(aval_of, consts)), like, pytree.tree_map(ShapedArray.tangent, like)))
    body = trace("custom_root", tangent_solve, lambda *xs: solved((), *pytree.unflatten(tree, xs)), types)

    def by_program(held: Sequence[Any], *args: Any) -> Any:
        given = [as_type(x, aval) for x, aval in zip(pytree.leaves(args), types)]
        return pytree.unflatten(pytree.structure(like), eval_jaxpr(body.jaxpr, [*held, *given]))

    return by_program, body.consts


def _root_jvp(
    root: Any, applied: Callable[[Sequence[Any], Any], Any], tangent: Callable[..., Any], has_aux: bool
) -> Any:
    """Differentiate a root: f(c, x(c)) = 0 for every c, so that ∂f/∂x ẋ = -∂f/∂c ċ."""

    def derivative(primals: Any, tangents: Any) -> Any:
        found = root(*primals)
        (consts, _, _, held), (moved, *_) = primals, tangents
        x, others = found if has_aux else (found, None)
        _, right = jvp(lambda *cs: applied(cs, x), tuple(consts), tuple(moved))
        t = tangent(held, consts, x, pytree.tree_map(neg, right))
        t = pytree.tree_map(lambda v, y: as_type(v, aval_of(y).tangent()), t, x)
        return found, ((t, zero_from_primal(others)) if has_aux else t)

    return derivative
