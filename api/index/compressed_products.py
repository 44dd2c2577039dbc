"""Compressed products of a derivative, and its entries read from them."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tapeless.differentiate.autodiff import FlatFunction
from tapeless.differentiate.jacobians import apply_to_batch, check_kind
from tapeless.differentiate.linear_maps import weak_as
from tapeless.index.sparse import SparseArray
from tapeless.index.sparse_structure import Structure
from tapeless.interpreters import jvp as forward
from tapeless.interpreters.analysis.acyclic_coloring import SubstitutionSteps
from tapeless.interpreters.analysis.coloring import Grids, SparsityPattern
from tapeless.interpreters.analysis.dependence import dependence
from tapeless.interpreters.zero import instantiate
from tapeless.tracer import leaks, pytree, source
from tapeless.tracer import numpy as tnp
from tapeless.tracer.jaxpr import Jaxpr, eval_jaxpr
from tapeless.tracer.primitives.checkpoint import optimization_barrier
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.terms.term_limits import collect_stops
from tapeless.tracer.types import ShapedArray, aval_of


class TangentProgram(NamedTuple):
    """The program of tangents of a function, at arguments that it takes: constants, primals, tangents -> tangents.

    ins, outs: the types of tangents. values: the structure of the function's result, with types as leaves.
    """

    jaxpr: Jaxpr
    consts: Sequence[Any]
    ins: Sequence[ShapedArray]
    outs: Sequence[ShapedArray]
    values: Any

    def pattern(self, who: str) -> SparsityPattern:
        """Find the entries of the derivative, as one matrix. Limits that make more of them are warnings of `who`."""
        n = len(self.ins)
        with collect_stops() as stops:
            rows, columns = dependence(self.jaxpr, self.consts, range(len(self.consts) + n, len(self.consts) + 2 * n))
        for stop in dict.fromkeys(stops):
            source.warn(f"{who}: the pattern may have more entries than needed: {stop}.")
            stop.limit.stop(stop.source)
        return SparsityPattern(rows, columns, (_total(self.outs), _total(self.ins)))

    @property
    def grids(self) -> Grids:
        """The axes along which rows, and columns, of the matrix are numbered, if leaves are alike."""
        return _grid(self.outs), _grid(self.ins)

    def push(self, primals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        """Push tangents forwards."""
        return list(eval_jaxpr(self.jaxpr, [*self.consts, *primals, *tangents]))


def tangent_program(who: str, fun: Callable[..., Any], primals: Sequence[Any], tree: Any, of: Any) -> TangentProgram:
    """Trace the forward mode of a function of pytrees; messages name `who` and the function `of`.

    Raises: TypeError if a result is not floating point.
    """
    f, avals, results = FlatFunction(who, fun, tree, False, of), list(map(aval_of, primals)), list[ShapedArray]()

    def pushed(*given: Any) -> list[Any]:
        values, tangents = forward.jvp(f, given[: len(avals)], given[len(avals) :], of, who)
        results.extend(map(aval_of, values))
        check_kind(who, "result", "", f.unflatten(values), of, None)
        return list(map(instantiate, tangents))

    types = [*avals, *[aval.tangent() for aval in avals]]
    jaxpr, consts = leaks.check_leaks(lambda: trace_to_jaxpr(pushed, types, what=who, function=of))
    outs = [aval.tangent() for aval in results]
    return TangentProgram(jaxpr, consts, types[len(avals) :], outs, pytree.unflatten(f.out_tree, results))


def products_forwards(program: TangentProgram, primals: Sequence[Any], structure: Structure) -> list[Any]:
    """Compute all products forwards at once: [elements, products] for each result."""
    if not structure.forward:
        return [tnp.zeros((t.size, 1), t.dtype) for t in program.outs]
    seeds = _seeds(program.ins, structure.column_colors, structure.forward)
    return _products(lambda *tangents: program.push(primals, tangents), seeds)


def products_backwards(pull: Any, program: TangentProgram, structure: Structure) -> list[Any]:
    """Compute all products backwards at once: [elements, products] for each argument."""
    seeds = _seeds(program.outs, structure.row_colors, structure.reverse)
    tree = pytree.structure(program.values)
    return _products(lambda *cts: pytree.leaves(pull(pytree.unflatten(tree, cts))), seeds)


def _products(linear: Callable[..., Any], seeds: Sequence[Any]) -> list[Any]:
    """Apply a linear function to seeds along their last axis, where what they share is computed once for all colors.

    Behind a barrier: else the compiler computes products again, one by one, where entries are read from them.
    """
    found = [tnp.reshape(x, (-1, x.shape[-1])) for x in apply_to_batch(linear, seeds)]
    return list(optimization_barrier(*found))


def _seeds(avals: Sequence[ShapedArray], colors: Any, number: int) -> list[Any]:
    """Make the seed of each leaf, [shape.., colors]: one at the elements of a color."""
    found, start = list[Any](), 0
    for t in avals:
        own = colors[start : start + t.size].astype(np.int32).reshape(*t.shape, 1)
        found.append(weak_as((own == tnp.arange(number, dtype=np.int32)).astype(t.dtype), t))
        start += t.size
    return found


class _Leaf(NamedTuple):
    """A leaf among the rows or columns of the matrix: its type, and the number of its first element."""

    aval: ShapedArray
    start: int

    def holds(self, indices: Any) -> Any:
        """Tell which rows or columns are of this leaf."""
        return (indices >= self.start) & (indices < self.start + self.aval.size)

    def coordinates(self, indices: Any) -> tuple[Any, ...]:
        """Return the index along each axis of rows or columns of this leaf."""
        return np.unravel_index(indices - self.start, self.aval.shape) if self.aval.shape else ()


def _leaves(avals: Sequence[ShapedArray]) -> list[_Leaf]:
    starts = np.cumsum([0, *[t.size for t in avals]])
    return [_Leaf(t, int(start)) for t, start in zip(avals, starts)]


def entries(
    program: TangentProgram, structure: Structure, forwards: Sequence[Any], backwards: Sequence[Any]
) -> list[list[Any]]:
    """Read the entries of each block from products: a row of blocks for each result, in it one for each argument.

    Args:
      forwards, backwards: the products, as above; none of the latter if there are none.
    """
    outs, ins = _leaves(program.outs), _leaves(program.ins)
    if structure.substitution is not None:
        found = _substituted(structure, structure.substitution, forwards)
        return [[_read(structure, out, i, lambda kept, t=out.aval: found[kept].astype(t.dtype)) for i in ins]
                for out in outs]  # fmt: skip
    return [[_block(structure, out, i, x, backwards[k : k + 1]) for k, i in enumerate(ins)]
            for out, x in zip(outs, forwards)]  # fmt: skip


def _block(structure: Structure, out: _Leaf, given: _Leaf, forwards: Any, backwards: Sequence[Any]) -> Any:
    def values(kept: Any) -> Any:
        product, element = (x[kept] for x in structure.sources)
        back = structure.is_backward[kept]
        is_own = bool(backwards) and backwards[0] is forwards  # as of a diagonal block of a Hessian
        read = ~back | is_own
        found = _at(forwards, np.where(read, product, 0), np.where(read, element - out.start, 0))
        if not backwards or not back.any() or is_own:
            return found
        pulled = _at(backwards[0], np.where(back, product, 0), np.where(back, element - given.start, 0))
        pulled = pulled.astype(found.dtype)
        return pulled if back.all() else tnp.where(back, pulled, found)

    return _read(structure, out, given, values)


def _read(structure: Structure, out: _Leaf, given: _Leaf, values: Callable[[Any], Any]) -> Any:
    """Make the block of two leaves, whose values are a function of the numbers of its entries."""
    kept = np.flatnonzero(out.holds(structure.rows) & given.holds(structure.columns))
    shape = (*out.aval.shape, *given.aval.shape)
    if not shape:
        return tnp.sum(values(kept))
    places = (*out.coordinates(structure.rows[kept]), *given.coordinates(structure.columns[kept]))
    return SparseArray(places, values(kept), shape)


def _substituted(structure: Structure, steps: SubstitutionSteps, products: Sequence[Any]) -> Any:
    """Compute all entries of a symmetric matrix from sums of them: those of a level from those of the levels before."""
    found = {x.dtype for x in products}
    dtype = found.pop() if len(found) == 1 else np.dtype("float64" if np.dtype("float64") in found else "float32")
    joined = tnp.concatenate([x.astype(dtype) for x in products])
    off_diagonal = _at(joined, steps.product, steps.lower)
    known, sums, start = list[Any](), tnp.zeros(steps.places, dtype), 0
    for end in steps.levels:
        own, below, above = (x[start:end] for x in (off_diagonal, steps.below, steps.above))
        known.append(own - sums[below] if start else own)
        sums = sums.at[above].add(known[-1], mode="promise_in_bounds")
        start = end
    on_diagonal = np.flatnonzero(steps.pairs < 0)
    at = steps.pairs.copy()
    at[on_diagonal] = start + np.arange(len(on_diagonal))
    rows = structure.rows[on_diagonal]
    return tnp.concatenate([*known, _at(joined, structure.column_colors[rows], rows)])[at]


def _at(products: Any, product: Any, element: Any) -> Any:
    """Read elements of products, at known places inside of them."""
    flat = element * products.shape[1] + product
    if len(flat) == products.size and (flat == np.arange(len(flat))).all():
        return tnp.ravel(products)
    small = flat.astype(np.int32) if products.size < 2**31 else flat
    return tnp.ravel(products).at[small].get(mode="promise_in_bounds")


def _grid(avals: Sequence[ShapedArray]) -> tuple[int, ...] | None:
    shapes = {t.shape for t in avals}
    return (len(avals), *shapes.pop()) if len(shapes) == 1 else None


def _total(avals: Sequence[ShapedArray]) -> int:
    return sum(t.size for t in avals)
