"""Solutions of equations, differentiated by what they solve and not by how they were found."""

from collections.abc import Callable, Sequence
from typing import Any

from tapeless.autodiff import jvp
from tapeless.bodies import as_type, check_arrays, check_function, trace
from tapeless.custom_rules import custom_jvp
from tapeless.interpreters import transpose
from tapeless.interpreters.linearity import check_linear
from tapeless.interpreters.zero import Zero, instantiate
from tapeless.tracer import core, marking, pytree
from tapeless.tracer.jaxpr import Jaxpr, eval_jaxpr
from tapeless.tracer.primitives.elementwise import neg
from tapeless.tracer.primitives.linear_solve import System, linear_solve
from tapeless.tracer.types import ShapedArray, aval_of

Flat = Callable[..., Any]


def custom_linear_solve(
    matvec: Callable[[Any], Any],
    b: Any,
    solve: Callable[[Callable[[Any], Any], Any], Any],
    transpose_solve: Callable[[Callable[[Any], Any], Any], Any] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """x such that `matvec(x)` is `b`, found by `solve`, which is not differentiated: derivatives solve again.

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
        check_function("custom_linear_solve", name, f)
    check_arrays("custom_linear_solve: b{}", b)
    leaves, tree = pytree.flatten(b)
    avals = [aval_of(x).strong() for x in leaves]
    program, consts = _program(matvec, lambda *xs: matvec(pytree.unflatten(tree, xs)), avals, b)
    linear = marking.marked(program, (*[False] * len(consts), *[True] * len(avals)))
    check_linear(linear)
    solved, of_solve, aux = _solver(solve, program, consts, avals, b, has_aux)
    groups: list[Sequence[Any]] = [consts, (), of_solve, ()]
    vecmat = transpose_solved = None
    if symmetric:
        vecmat, transpose_solved, groups[1], groups[3] = program, solved, consts, of_solve
    elif transpose_solve is not None:
        every = (True,) * len(avals)
        vecmat, _ = transpose.transpose_jaxpr(linear, every, wanted=every)
        transpose_solved, groups[3], _ = _solver(transpose_solve, vecmat, consts, avals, b, has_aux)
        groups[1] = consts
    outs = linear_solve(
        System(program, vecmat, solved, transpose_solved), groups, [as_type(x, a) for x, a in zip(leaves, avals)]
    )
    x = pytree.unflatten(tree, outs[: len(avals)])
    return (x, pytree.unflatten(aux, outs[len(avals) :])) if has_aux else x


def _program(fun: Any, flat: Flat, avals: Sequence[ShapedArray], b: Any) -> tuple[Jaxpr, tuple[Any, ...]]:
    """The program of a function that gives what `b` is like. Raises: TypeError if it does not."""
    body = trace("custom_linear_solve", fun, flat, avals)
    _check_like(fun, body.result, b, avals)
    return body.giving(avals).jaxpr, body.consts


def _solver(
    solve: Any, matvec: Jaxpr, consts: Sequence[Any], avals: Sequence[ShapedArray], b: Any, has_aux: bool
) -> tuple[Jaxpr, tuple[Any, ...], Any]:
    """The program of a solver, its constants, and the structure of what it gives besides."""
    tree, n, aux = pytree.structure(b), len(consts), None

    def of_flat(*xs: Any) -> Any:
        nonlocal aux

        def apply(x: Any) -> Any:
            return pytree.unflatten(tree, eval_jaxpr(matvec, [*xs[:n], *pytree.leaves(x)]))

        found = solve(apply, pytree.unflatten(tree, xs[n:]))
        x, others = found if has_aux else (found, ())
        _check_like(solve, x, b, avals)
        aux = pytree.structure(others)
        return [as_type(leaf, aval) for leaf, aval in zip(pytree.leaves(x), avals)], others

    body = trace("custom_linear_solve", solve, of_flat, [*map(aval_of, consts), *avals])
    return body.jaxpr, (*body.consts, *consts), aux


def _check_like(fun: Any, given: Any, b: Any, avals: Sequence[ShapedArray]) -> None:
    """Raises: TypeError if what `fun` gives is not of the structure and types of `b`."""
    who = f"custom_linear_solve: {core.describe_function(fun)}"
    if pytree.structure(given) != pytree.structure(b):
        raise TypeError(f"{who} gives {pytree.structure(given)}, but b has the structure {pytree.structure(b)}.")
    for (path, x), aval in zip(pytree.leaves_with_path(given), avals):
        have = aval_of(x)
        if have.shape != aval.shape or (have.dtype != aval.dtype and not have.weak_type):
            raise TypeError(f"{who} gives {have} where b{pytree.keystr(path)} is {aval}.")


def custom_root(
    f: Callable[[Any], Any],
    initial_guess: Any,
    solve: Callable[[Callable[[Any], Any], Any], Any],
    tangent_solve: Callable[[Callable[[Any], Any], Any], Any],
    has_aux: bool = False,
) -> Any:
    """x such that `f(x)` is 0, found by `solve`, which is not differentiated: derivatives are those of the equation.

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
        check_function("custom_root", name, fun)
    check_arrays("custom_root: initial_guess{}", initial_guess)
    leaves, tree = pytree.flatten(initial_guess)
    avals = [aval_of(x).strong() for x in leaves]
    program, consts = _program(f, lambda *xs: f(pytree.unflatten(tree, xs)), avals, initial_guess)

    def applied(consts: Sequence[Any], x: Any) -> Any:
        return pytree.unflatten(tree, eval_jaxpr(program, [*consts, *pytree.leaves(x)]))

    @custom_jvp
    def root(consts: Sequence[Any], guess: Any) -> Any:
        return solve(lambda x: applied(consts, x), guess)

    def derivative(primals: Any, tangents: Any) -> Any:
        found = root(*primals)
        (consts, _), (moved, _) = primals, tangents
        x, others = found if has_aux else (found, None)
        _, right = jvp(lambda *cs: applied(cs, x), tuple(consts), tuple(moved))
        t = custom_linear_solve(
            lambda v: jvp(lambda y: applied(consts, y), (x,), (v,))[1],
            pytree.tree_map(neg, right),
            tangent_solve,
            transpose_solve=tangent_solve,
        )
        return found, ((t, pytree.tree_map(_zero, others)) if has_aux else t)

    root.defjvp(derivative)
    guess = pytree.unflatten(tree, [as_type(x, a) for x, a in zip(leaves, avals)])
    return root(list(consts), guess)


def _zero(x: Any) -> Any:
    return instantiate(Zero(aval_of(x).tangent()))
