"""Jacobians and Hessians as sparse arrays, in time and memory proportional to their entries.

The pattern is found from the program (interpreters/analysis/dependence.py), colored, and the entries are read from one
product for each color, of all colors at once. Pattern and coloring are found when a type of arguments is new.
Source: Griewank & Walther 2008, chapters 7 and 8; Curtis, Powell & Reid 1974.
"""

import enum
import functools
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

import numpy as np

from tapeless.arguments.argument_checks import check_callable
from tapeless.arguments.names import argument_name, name_derived
from tapeless.arguments.static import has_hash
from tapeless.arguments.untraced import hide, reveal
from tapeless.compile.jit import jit
from tapeless.compile.make_jaxpr import eval_shape
from tapeless.compile.stages import ShapeDtypeStruct
from tapeless.differentiate.argnums import canonical_argnums, check_argnums
from tapeless.differentiate.autodiff import check_scalar, split_aux, vjp_of
from tapeless.differentiate.jacobians import assemble_blocks, check_kind, differentiated_arguments
from tapeless.differentiate.tangents import own_array
from tapeless.index import compressed_products, sparse_structure
from tapeless.interpreters.analysis.coloring import ORDERINGS, Ordering
from tapeless.tracer import numpy as tnp
from tapeless.tracer import pytree
from tapeless.tracer.caches import exact_key
from tapeless.tracer.core import describe_function, function_name
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace
from tapeless.tracer.types import aval_of, is_arraylike

__all__ = ["SparseDerivative", "hessian", "jacobian"]

MODES: Final = ("auto", "forward", "reverse", "both")


def jacobian(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    mode: Literal["auto", "forward", "reverse", "both"] = "auto",
    ordering: Ordering | None = None,
) -> "SparseDerivative":
    """Make a function that computes the Jacobian of a function as sparse arrays, by as few products as colors suffice.

    An entry is where the program of derivatives adds something up, whatever its value: for a predicate, an index or a
    branch that data decide, wherever it may be. Zeros of arrays that the function captures are no entries.

    Args:
      fun: maps pytrees of arrays to a pytree of floating-point arrays, or to (that, aux) if `has_aux`.
      argnums: which positional arguments to differentiate, floating point; several give a tuple in the place of each.
      mode: "forward" computes sums of columns, "reverse" sums of rows, "both" rows where they are dense and columns
        elsewhere; "auto" chooses the fewest products.
      ordering: the order in which columns or rows get colors; that of the fewest colors if None.
    Returns: a function of the same arguments; its result is structured like that of `fun`, each leaf like the argument,
      each leaf of these a `tl.index.SparseArray` [shape of the result.., shape of the argument..], or an array if it
      has no axes. With `has_aux` also aux. It is compiled as `jit` does, once for each type of its arguments, whose
      patterns are known then.
    Raises: TypeError if `fun` is no function, ValueError for another mode or ordering; when called, TypeError if an
      argument or result is not real floating point.

    >>> import tapeless.numpy as tnp
    >>> jacobian(lambda x: x[1:] * x[:-1])(tnp.array([1.0, 2.0, 3.0])).todense()
    Array([[2., 1., 0.],
           [0., 3., 2.]], dtype=float32)
    """
    return SparseDerivative("sparse.jacobian", fun, argnums, has_aux, mode, ordering)


def hessian(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    coloring: Literal["star", "acyclic"] = "star",
    ordering: Ordering | None = None,
) -> "SparseDerivative":
    """Make a function that computes the second derivatives of a scalar function as sparse arrays.

    The pattern is that of the gradient's Jacobian. The colorings make use of its symmetry; where rules of derivatives
    that the user wrote make a pattern that is not symmetric, columns are colored.

    Args:
      coloring: "star" reads each entry from one product; "acyclic" needs about half as many products where the pattern
        is irregular, and subtracts entries from their sums, with an error relative to the greatest of these. It is
        taken where it needs fewer, and at most 64 steps of subtraction.
      others: as for `jacobian`; the result of `fun` is a scalar.
    Returns: a function of the same arguments; its result is structured like the argument, each leaf like the argument
      again, each leaf of these a `tl.index.SparseArray`, or an array if it has no axes. With `has_aux` also aux.
    Raises: as `jacobian`; when called, TypeError if the result is no scalar.

    >>> import tapeless.numpy as tnp
    >>> hessian(lambda x: (x[1:] * x[:-1]).sum())(tnp.array([1.0, 2.0, 3.0])).todense()
    Array([[0., 1., 0.],
           [1., 0., 1.],
           [0., 1., 0.]], dtype=float32)
    """
    return SparseDerivative("sparse.hessian", fun, argnums, has_aux, coloring, ordering)


class SparseDerivative:
    """A function that computes a derivative as sparse arrays. Made by `jacobian` and `hessian`."""

    def __init__(
        self, who: str, fun: Callable[..., Any], argnums: Any, has_aux: bool, mode: str, ordering: Ordering | None
    ) -> None:
        self._is_second = who == "sparse.hessian"
        check_callable(who, fun)
        check_argnums(who, argnums)
        name, modes = ("coloring", sparse_structure.SYMMETRIC) if self._is_second else ("mode", MODES)
        if mode not in modes:
            raise ValueError(f"{who}: {name}={mode!r} is none of {', '.join(map(repr, modes))}.")
        if ordering is not None and ordering not in ORDERINGS:
            raise ValueError(f"{who}: ordering={ordering!r} is none of {', '.join(map(repr, ORDERINGS))}.")
        self._who, self._fun, self._argnums, self._has_aux, self._mode = who, fun, argnums, has_aux, mode
        self._ordering: Final[Ordering | None] = ordering
        self._compiled: dict[Any, Any] = {}
        name_derived(who.replace(".", "_"), fun, same_arguments=True)(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the derivative, and aux if there is any."""
        arrays, static, tree = _split((args, kwargs))
        key = tree, tuple([exact_key(x, self._key_of_object) for x in static])
        if key not in self._compiled:
            self._compiled[key] = jit(functools.wraps(self._fun)(_of_arrays(self._computed, tree, static)))
        found = self._compiled[key](*arrays)
        return (found[0], reveal(found[1])) if self._has_aux else found

    def _key_of_object(self, x: Any) -> Any:
        if not has_hash(x):
            raise TypeError(
                f"{self._who}: an argument of {describe_function(self._fun)} is {x!r} of type {type(x).__name__}, "
                "which has no hash.\n  Arguments that are no arrays are static, as those of jit: give one that has."
            )
        return type(x), x

    def structure(self, *args: Any, **kwargs: Any) -> sparse_structure.Structure:
        """Find the entries, and the products that give them, for arguments or their types. Nothing is computed."""
        arrays, static, tree = _split((args, kwargs))
        found = list[sparse_structure.Structure]()

        def noting(args: Any, kwargs: Any) -> tuple[()]:
            chosen, rest = self._differentiated(args, kwargs)
            found.append(self._structure(self._program(chosen, rest)))
            return ()

        eval_shape(_of_arrays(noting, tree, static), *arrays)
        return found[0]

    def _computed(self, args: Any, kwargs: Any) -> Any:
        chosen, rest = self._differentiated(args, kwargs)
        program, primals = self._program(chosen, rest), pytree.leaves(chosen)
        structure = self._structure(program)
        forwards = compressed_products.products_forwards(program, primals, structure)
        backwards = forwards if structure.is_symmetric else []
        if structure.reverse:
            _, pull, *_ = vjp_of(self._who, rest, chosen, self._has_aux)
            backwards = compressed_products.products_backwards(pull, program, structure)
        blocks = compressed_products.entries(program, structure, forwards, backwards)
        aux = [hide(self._parts(rest, *chosen)[1])] if self._has_aux else []
        return assemble_blocks(blocks, program.values, chosen, self._argnums, aux)

    def _differentiated(self, args: Any, kwargs: Any) -> tuple[tuple[Any, ...], Any]:
        chosen, rest = differentiated_arguments(
            self._who, self._fun, self._argnums, args, kwargs, False, None, self._fun
        )
        for i, x in zip(canonical_argnums(self._who, self._argnums, args, self._fun), chosen):
            check_kind(self._who, "argument", argument_name(self._fun, i), x, self._fun, None)
        return pytree.tree_map(own_array, chosen), rest

    def _program(self, chosen: tuple[Any, ...], rest: Any) -> compressed_products.TangentProgram:
        primals, tree = pytree.flatten(chosen)
        f = self._gradient(rest) if self._is_second else self._result(rest)
        return compressed_products.tangent_program(self._who, f, primals, tree, self._fun)

    def _result(self, rest: Any) -> Any:
        return (lambda *given: self._parts(rest, *given)[0]) if self._has_aux else rest

    def _parts(self, rest: Any, *given: Any) -> tuple[Any, Any]:
        return split_aux(self._who, rest(*given), function_name(self._fun))

    def _gradient(self, rest: Any) -> Any:
        """Make the gradient of the function in the differentiated arguments."""

        def gradient(*chosen: Any) -> Any:
            value, pull, *_ = vjp_of(self._who, rest, chosen, self._has_aux)
            check_scalar(self._who, *pytree.flatten(value), self._fun, None)
            one = tnp.ones((), aval_of(pytree.leaves(value)[0]).dtype)
            found = pull(pytree.unflatten(pytree.structure(value), [one]))
            return found if isinstance(self._argnums, Sequence) else found[0]

        return gradient

    def _structure(self, program: compressed_products.TangentProgram) -> sparse_structure.Structure:
        return sparse_structure.Structure(program.pattern(self._who), self._mode, self._ordering, program.grids)


def _split(tree: Any) -> tuple[list[Any], tuple[Any, ...], Any]:
    """Split a pytree into arrays that are traced, the other leaves, with `_ARRAY` in the places of these, and its form.

    Integers and members of enumerations are as they are: a function may branch on them, as when `jacfwd` calls it.
    """
    leaves, structure = pytree.flatten(tree)
    static = tuple([_ARRAY if _is_traced(x) else x for x in leaves])
    return [x for x, other in zip(leaves, static) if other is _ARRAY], static, structure


def _is_traced(x: Any) -> bool:
    is_array = is_arraylike(x) or isinstance(x, ShapeDtypeStruct)
    return is_array and not isinstance(x, (int, np.integer, np.bool_, enum.Enum))


_ARRAY: Final = object()  # in the place of an array


def _of_arrays(f: Callable[[Any, Any], Any], tree: Any, static: tuple[Any, ...]) -> Callable[..., Any]:
    """Make a function of (args, kwargs) one of the arrays among their leaves."""

    def of_arrays(*arrays: Any) -> Any:
        given = iter(arrays)
        return f(*pytree.unflatten(tree, [next(given) if x is _ARRAY else x for x in static]))

    return of_arrays


_complete_namespace(globals())
