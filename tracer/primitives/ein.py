"""Sums of products of arrays at affine indices, with brackets: `ein[c[i,j] += Σ k. [i >= k] a[i,k] b[k,j]] a b`.

Search terms: einsum, tensor comprehension, Iverson bracket. The param is a sum of terms (tracer/terms/term.py), which
index the operands: factors, masks and cases in brackets, index arrays, and scalars that are symbols of indices. Where
the brackets of a product fail it is not evaluated: [false]·inf is 0. Elements without a product are 0. Booleans are
multiplied by `and` and added by `or`. `terms/lower_ein.py` rewrites it to other operations before compilation.
Source: Bernstein et al. 2020, section 5.
"""

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np

from tapeless.tracer import dtypes, printing
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import Primitive
from tapeless.tracer.primitives.contraction import Precisions, canonical_precision
from tapeless.tracer.primitives.shape import full
from tapeless.tracer.terms.solve import inside, is_inside, merge_terms, solve_term
from tapeless.tracer.terms.term import Lookup, Read, Sum, Term, Use, looked_up, term
from tapeless.tracer.terms.term_printing import affine_text, read_text, term_text
from tapeless.tracer.types import ShapedArray, aval_of


def ein(
    operands: Sequence[ArrayLike],
    terms: Sequence[Term],
    shape: Sequence[int],
    *,
    dtype: Any = None,
    precision: Any = None,
) -> Array:
    """Compute a sum of products: `out[O(v)] += c · Π [brackets(v)] · Π factor[A(v)]` for all v in the box of a term.

    Products that would read or write outside of an array are left out. Terms are solved and merged, and operands that
    no term reads are dropped.

    Args:
      operands: arrays, to which terms refer by number: factors of one dtype, boolean and integer arrays in brackets,
        integer scalars for symbols.
      terms: over operands of these ranks, to a result of this rank.
      shape: of the result.
      dtype: of the result if there is a term without factors; that of the factors if None.
      precision: of contractions, as in `dot_general`.
    Returns: [shape] in the dtype of the factors.
    Raises: TypeError if factors differ in dtype, or brackets look up an array of other numbers; ValueError if an access
      and its array differ in rank; each names the operand.
    """
    avals, shape = [aval_of(x) for x in operands], tuple(shape)
    for t in terms:
        _check_ranks(t, avals, shape)
    joint = _joint_dtype(terms, avals, dtype)
    for t in terms:
        _check_dtypes(t, avals, joint)
    first = _first_of_each(operands)
    terms = [_with_whole_numbers(t, operands) for t in terms] if dtypes.is_inexact(joint) else terms
    found = reduce_terms([t.with_operands(first.__getitem__) for t in terms], avals, shape, joint)
    if not found.terms:
        return full(shape, 0, joint)
    params = found.params(shape, joint, canonical_precision(precision))
    return ein_p.bind(*[operands[k] for k in found.operands], **params)[0]


def _with_whole_numbers(t: Term, operands: Sequence[Any]) -> Term:
    """Multiply known integers among the scalar factors into the coefficient, as the 1 that gradients begin with."""
    numbers = [f for f in t.factors if not f.access and f.use is Use.PLAIN and _is_whole(operands[f.operand])]
    if not numbers:
        return t
    factors = [f for f in t.factors if f not in numbers]
    return term(t.out, t.sizes, factors, t.brackets, t.coefficient * prod([int(operands[f.operand]) for f in numbers]))


def _is_whole(x: Any) -> bool:
    """Tell whether a scalar is a known, small whole number, by which multiplying is exact in any order."""
    if isinstance(x, Array) or np.ndim(x) or dtypes.kind(aval_of(x).dtype) not in "fiu":
        return False
    value = float(np.asarray(x))
    return abs(value) <= _MOST_WHOLE and value.is_integer()


_MOST_WHOLE = 1024


class ReducedSum(NamedTuple):
    """A sum of terms in normal form, and the numbers of those given operands that it reads, in order."""

    terms: Sum
    operands: tuple[int, ...]

    def params(self, shape: tuple[int, ...], dtype: Any, precision: Precisions) -> dict[str, Any]:
        """Make the params of `ein`."""
        has_factors = any(t.factors for t in self.terms)
        return {
            "terms": self.terms,
            "shape": shape,
            "dtype": None if has_factors else dtype,
            "precision": precision,
        }


def reduce_terms(terms: Sequence[Term], avals: Sequence[ShapedArray], shape: tuple[int, ...], dtype: Any) -> ReducedSum:
    """Solve and merge terms, with accesses restricted to operands and result; drop operands that no term reads."""
    shapes = [x.shape for x in avals]
    solutions = [_counted(s, dtype) for t in terms if 0 not in shape and (s := _solved_inside(t, shapes, shape))]
    found = merge_terms(solutions)
    found = tuple([_counted(t, dtype) for t in found])
    used = sorted({k for t in found for k in operands_of(t)})
    return ReducedSum(tuple([t.with_operands(used.index) for t in found]), tuple(used))


def _solved_inside(t: Term, shapes: Sequence[Sequence[int]], shape: Sequence[int]) -> Term | None:
    """Restrict a term to accesses inside of its arrays, and solve it, up to a fixed point; None if it is 0."""
    for _ in range(_ROUNDS):
        after = solve_term(inside(t, shapes, shape))
        if after is None or after is t:
            return after
        t = after
    return t


_ROUNDS = 8  # most terms take two, of which the second changes nothing


def operands_of(t: Term) -> frozenset[int]:
    """Find the operands that a term reads."""
    return looked_up(t) | {f.operand for f in t.factors}


def _first_of_each(operands: Sequence[Any]) -> list[int]:
    """Map each operand to the number of the first operand that is the same object."""
    first: dict[int, int] = {}
    return [first.setdefault(id(x), k) for k, x in enumerate(operands)]


def _joint_dtype(terms: Sequence[Term], avals: Sequence[ShapedArray], dtype: Any) -> Any:
    """Return the given dtype, or that of the factors if it is None. Raises: TypeError if there is neither."""
    factors = [f for t in terms for f in t.factors]
    if dtype is None and not factors:
        raise TypeError("ein: no term has a factor, so the dtype of the result must be given.")
    return dtypes.canonical(dtype) if dtype is not None else avals[factors[0].operand].dtype


def _counted(t: Term, dtype: Any) -> Term:
    """Set the coefficient of a term of booleans to 1: `or` with the same term again changes nothing."""
    return t.unit if dtypes.is_bool(dtype) else t


# ---- type ----------------------------------------------------------------------------------------------------


def _ein_type(
    *avals: ShapedArray, terms: Sum, shape: tuple[int, ...], dtype: Any, precision: Precisions
) -> tuple[ShapedArray, ...]:
    joint = _joint_dtype(terms, avals, dtype)
    out = ShapedArray(shape, joint)
    for t in terms:
        _check_ranks(t, avals, shape)
        _check_dtypes(t, avals, joint)
        _check_bounds(t, avals, shape)
    return (out,)


def _reads(t: Term) -> Iterator[tuple[Read, str]]:
    """Yield the reads of a term, each with its role: factor or bracket."""
    for f in t.factors:
        yield f, "factor"
    for b in t.brackets:
        if isinstance(b, Lookup):
            yield Read(b.operand, b.access), "bracket"


def _named(read: Read, avals: Sequence[ShapedArray], what: str) -> str:
    return f"{what} {read_text(read)}, operand {read.operand} of type {avals[read.operand]},"


def _check_ranks(t: Term, avals: Sequence[ShapedArray], shape: tuple[int, ...]) -> None:
    given = ", ".join(map(str, avals))
    for k in operands_of(t):
        if k >= len(avals):
            raise ValueError(f"ein: {term_text(t)} reads operand {k} of {len(avals)}: {given}.")
    for read, what in _reads(t):
        if len(read.access) != avals[read.operand].ndim:
            raise ValueError(
                f"ein: {_named(read, avals, what)} has {len(read.access)} indices for {avals[read.operand].ndim} axes."
            )
    if len(t.out) != len(shape):
        raise ValueError(f"ein: {term_text(t)} has {len(t.out)} indices for a result of shape {shape}, of {given}.")


def _check_dtypes(t: Term, avals: Sequence[ShapedArray], joint: Any) -> None:
    for f in t.factors:
        if avals[f.operand].dtype != joint:
            raise TypeError(
                f"ein: {_named(f, avals, 'factor')} is not of the dtype of the result, {joint}: convert it."
            )
        if f.use is Use.DIVIDED and not dtypes.is_inexact(joint):
            raise TypeError(f"ein: {_named(f, avals, 'factor')} divides, which integers and booleans do not.")
    for k in looked_up(t):
        dtype = avals[k].dtype
        if not dtypes.is_integer(dtype) and not dtypes.is_bool(dtype):
            raise TypeError(f"ein: operand {k} of type {avals[k]} is looked up by {term_text(t)}: it must be integer.")
    for s in {s.operand for a in t.indices for s, _ in a.symbols}:
        if avals[s].shape:
            raise TypeError(f"ein: operand {s} of type {avals[s]} is a symbol in {term_text(t)}: it must be a scalar.")
    if not _is_number_of(t.coefficient, joint):
        given = ", ".join(map(str, avals))
        raise TypeError(f"ein: the number {t.coefficient} in {term_text(t)}, of {given}, is none of {joint}.")


def _is_number_of(number: Any, dtype: Any) -> bool:
    if dtypes.is_bool(dtype):
        return number == 1
    if dtypes.is_integer(dtype):
        return isinstance(number, (int, np.integer))
    return dtypes.is_complex(dtype) or not isinstance(number, (complex, np.complexfloating))


def _check_bounds(t: Term, avals: Sequence[ShapedArray], shape: tuple[int, ...]) -> None:
    """Check that accesses are inside of their arrays where the brackets hold. Raises: IndexError."""
    found = [(read.access, avals[read.operand].shape, _named(read, avals, what)) for read, what in _reads(t)]
    given = ", ".join(map(str, avals))
    for access, sizes, name in [*found, (t.out, shape, f"the result of shape {shape}, of {given},")]:
        for axis, (a, n) in enumerate(zip(access, sizes)):
            if not is_inside(t, a, n):
                low, high = a.bounds(t.sizes)
                raise IndexError(
                    f"ein: {name} is out of range along axis {axis} of {n}: {affine_text(a)} is {low} to {high}, "
                    f"and no bracket keeps it inside.\n  {term_text(t)}"
                )


ein_p: Final = Primitive("ein", _ein_type)


def _ein_text(eqn: Any, result: str, operands: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """Print the terms with the names of result and operands; also return the params that are printed besides."""
    given, shapes = _names_in_terms(eqn.invars, operands), [v.aval.shape for v in eqn.invars]
    terms, shape = eqn.params["terms"], eqn.params["shape"]
    text = "; ".join([term_text(t, result, given, shapes, shape) for t in terms])
    dtype = None if eqn.params["dtype"] == expected_dtype(terms, eqn.outvars[0].aval) else eqn.params["dtype"]
    return text, {"dtype": dtype, "precision": eqn.params["precision"]}


def _names_in_terms(operands: Sequence[Any], names: Sequence[str]) -> list[str]:
    """Name operands in terms by their names, or by number, `#1`, if they are literals or repeated."""
    return [
        f"#{k}" if hasattr(x, "value") or x in operands[:k] else name
        for k, (x, name) in enumerate(zip(operands, names, strict=True))
    ]


def expected_dtype(terms: Sequence[Term], result: ShapedArray) -> Any:
    """Return the param `dtype` if none is written: None, or the dtype of the result if there are no factors."""
    return None if any(t.factors for t in terms) else result.dtype


printing.texts[ein_p] = _ein_text
