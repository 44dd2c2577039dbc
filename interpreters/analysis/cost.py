"""Cost model: count the scalar operations (work) of a program.

A nonlinear operation, a linear addition and a scaling cost 1 for each scalar of the result; dropping a linear scalar
costs 1; everything else, moving and sharing values, is free. A primitive that does more than one operation for a scalar
costs all of them: a contraction its multiplications and additions. A mask is a coefficient: a select among linear
values scales them by 0 or 1 and adds.
Knowingly simple: readers of parts of a value are assumed to read different parts; indices are assumed to be distinct as
far as possible; adding to zeros that an array holds counts; a complex number is one scalar; the most expensive branch
counts, and one step of a `while`; of one that reverses a loop of a known number of steps, those that are planned.
Source: Radul et al. 2023, section 7.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import reduce
from itertools import combinations
from math import prod
from operator import add as plus
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from tapeless.interpreters.analysis import strict_form
from tapeless.tracer import core
from tapeless.tracer.bodies import CONST, Bodies, bodies_of
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, subjaxprs
from tapeless.tracer.linear_vars import mark_linear
from tapeless.tracer.primitives import (
    bits,
    checkpoint,
    collective,
    contraction,
    custom,
    factorization,
    fourier,
    linalg,
    random,
    spectral,
    windows,
)
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives import indexing as i
from tapeless.tracer.primitives import reduction as r
from tapeless.tracer.primitives import shape as s
from tapeless.tracer.primitives.ein import ein_p
from tapeless.tracer.rules import Table
from tapeless.tracer.terms.evaluate import products_of
from tapeless.tracer.terms.solve import write_apart
from tapeless.tracer.terms.term import Term, Use, variables_in
from tapeless.tracer.types import ShapedArray


@dataclass(frozen=True)
class Cost:
    """Scalar operations of a program, by kind; scalars and bytes that it moves; its size (`program_size`)."""

    nonlinear: int = 0
    adds: int = 0
    multiplies: int = 0
    drops: int = 0
    moved: int = 0
    moved_bytes: int = 0
    size: int = 0

    @property
    def work(self) -> int:
        """Count all operations; moves are free."""
        return self.nonlinear + self.adds + self.multiplies + self.drops

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(*map(plus, _numbers(self), _numbers(other)))

    def times(self, n: int) -> "Cost":
        """Multiply all counts but the size by the number of steps of a loop."""
        repeated = {f.name: n * getattr(self, f.name) for f in fields(Cost)}
        return Cost(**{**repeated, "size": self.size})

    def __str__(self) -> str:
        kinds = [f"{f.name} {getattr(self, f.name)}" for f in fields(Cost)]
        return f"work {self.work}: {', '.join(kinds[:4])}; {kinds[4]}, {kinds[6]}"


_numbers = attrgetter(*[f.name for f in fields(Cost)])


@core.memoize_by_program
def cost(jaxpr: Jaxpr) -> Cost:
    """Count the cost of running a program once. Remembered for as long as it lives."""
    parts = [equation_cost(eqn) for eqn in jaxpr.eqns]
    start = Cost(adds=-_first_additions(jaxpr), drops=_dropped(jaxpr))
    return replace(reduce(plus, parts, start), size=program_size(jaxpr))


def work(jaxpr: Jaxpr) -> int:
    """Count the scalar operations of a program."""
    return cost(jaxpr).work


def program_size(jaxpr: Jaxpr) -> int:
    """Count equations and references to variables and literals, also in bodies; a body that is shared counts once."""
    return sum(map(_own_size, _programs(jaxpr, {})))


def _programs(jaxpr: Jaxpr, found: dict[Jaxpr, None]) -> dict[Jaxpr, None]:
    if jaxpr not in found:
        found[jaxpr] = None
        for eqn in jaxpr.eqns:
            for inner in subjaxprs(eqn.params):
                _programs(inner, found)
    return found


def _own_size(jaxpr: Jaxpr) -> int:
    return len(jaxpr.outvars) + sum(1 + len(eqn.invars) for eqn in jaxpr.eqns)


def _first_additions(jaxpr: Jaxpr) -> int:
    """Count the updates that a program in strict form scatters into zeros of `lzero` first: they are no additions.

    As many as there are elements, if there are as many updates: a gather, of which this is the transpose, counts as
    reading distinct ones.
    """
    zeros = {v for eqn in jaxpr.eqns if eqn.primitive is strict_form.lzero for v in eqn.outvars}
    into = [eqn for eqn in jaxpr.eqns if eqn.primitive is i.scatter_add_p and eqn.invars[0] in zeros]
    return sum(min(_operand(eqn), _operand(eqn, 2)) for eqn in into)


def _dropped(jaxpr: Jaxpr) -> int:
    """Count the dropped scalars: unread scalars of linear values, and all of nonlinear values without a reader.

    Zeros that `lzero` makes are not there to be dropped: as an array that is overwritten, they are only a place. What
    `dup` makes is the same value twice: only the scalars that both readers read are copied.
    """
    same = dict[Any, Any]()
    for eqn in jaxpr.eqns:
        if eqn.primitive is strict_form.dup:
            same.update([(v, same.get(eqn.invars[0], eqn.invars[0])) for v in eqn.outvars])
    made = [v for eqn in jaxpr.eqns if eqn.primitive is not strict_form.lzero for v in eqn.outvars if v not in same]
    left: dict[Any, int] = {v: v.aval.size for v in (*jaxpr.invars, *made)}
    for eqn in [eqn for eqn in jaxpr.eqns if eqn.primitive is not strict_form.dup]:
        for k, v in enumerate(eqn.invars):
            if (v := same.get(v, v)) in left:
                left[v] -= _reads(eqn, k) if v.linear else v.aval.size
    for v in [same.get(v, v) for v in jaxpr.outvars]:
        if v in left:
            left[v] -= v.aval.size
    return sum(max(n, 0) for n in left.values())


# ---- equations -----------------------------------------------------------------------------------------------


class Arithmetic(NamedTuple):
    """Scalar operations of a linear map."""

    adds: int = 0
    multiplies: int = 0


Row = Callable[[Equation], Arithmetic]


class Price(NamedTuple):
    """The operations of a primitive.

    linear: if it is applied to linear values; None: it cannot be. nonlinear: otherwise; None: 1 for each scalar of the
    results. moves: it only moves or names its operands.
    """

    linear: Row | None = None
    nonlinear: Callable[[Equation], int] | None = None
    moves: bool = False

    def of_linear(self, eqn: Equation) -> Arithmetic:
        """Count the operations of an equation that is applied to linear values."""
        return self.linear(eqn) if self.linear else Arithmetic()


prices: Table[Price] = Table(
    "cost",
    "a `Price`: row(eqn) -> operations applied to linear values, and to others; whether it only moves its operands",
    absent="1 for each scalar of its results; it cannot be applied to linear values",
)
elements_read: Table[Callable[[Equation, int], int]] = Table(
    "cost of reading", "row(eqn, k) -> scalars of operand k that it reads", absent="all of them"
)


def _number_of_steps(eqn: Equation) -> int:
    """Return how often the programs of a loop that goes back run; 1 if that is computed, or if it is no loop."""
    saving = eqn.params.get("saving")
    return eqn.params.get("length", 1) if saving is None else saving.trips or 1


def equation_cost(eqn: Equation) -> Cost:
    """Count the operations of one equation and of its bodies, without dropped results."""
    bodies = bodies_of(eqn)
    if bodies is not None:
        return _with_bodies(eqn, bodies)
    programs = list(subjaxprs(eqn.params))
    if programs:
        return reduce(plus, map(cost, programs)).times(_number_of_steps(eqn))
    if eqn.primitive is strict_form.drop:
        return Cost(drops=eqn.invars[0].aval.size)
    if eqn.linear:
        adds, multiplies = price_of(eqn).of_linear(eqn)
        return count_moved(eqn) + Cost(adds=adds, multiplies=multiplies)
    row = price_of(eqn).nonlinear
    return count_moved(eqn) + Cost(nonlinear=row(eqn) if row else sum(_sizes(eqn.outvars)))


def _with_bodies(eqn: Equation, bodies: Bodies) -> Cost:
    """Count all steps of a loop, those that are assumed if their number is not known, and the dearest of branches.

    The linear constants of a loop are dropped after the last step.
    """
    each = [cost(body.jaxpr) for body in bodies.each]
    if bodies.selector is not None:
        return max(each, key=lambda found: found.work)
    total = reduce(plus, each).times(bodies.assumed if bodies.steps is None else len(bodies.steps))
    constants = bodies.operands(CONST) if bodies.loops else ()
    return total + Cost(drops=sum(_sizes([eqn.invars[at] for at in constants if eqn.invars[at].linear])))


def price_of(eqn: Equation) -> Price:
    """Look up the price of an equation's primitive."""
    return prices.get(eqn.primitive, _PRICE)


_PRICE = Price()


def count_moved(eqn: Equation) -> Cost:
    """Count the scalars and bytes of the results of an equation that only moves or names its operands."""
    if not price_of(eqn).moves:
        return Cost()
    return Cost(moved=sum(_sizes(eqn.outvars)), moved_bytes=sum(map(_bytes, eqn.outvars)))


def _bytes(v: Atom) -> int:
    return v.aval.size * v.aval.dtype.itemsize


def _reads(eqn: Equation, k: int) -> int:
    if eqn.outvars and not any(_sizes(eqn.outvars)):
        return 0
    return elements_read[eqn.primitive](eqn, k) if eqn.primitive in elements_read else _operand(eqn, k)


def _sizes(atoms: Sequence[Any]) -> list[int]:
    return [v.aval.size for v in atoms]


def _operand(eqn: Equation, k: int = 0) -> int:
    return eqn.invars[k].aval.size


def _result(eqn: Equation) -> int:
    return eqn.outvars[0].aval.size


# ---- moves ---------------------------------------------------------------------------------------------------


def _move(*primitives: Primitive) -> None:
    for p in primitives:
        prices[p] = Price(lambda eqn: Arithmetic(), lambda eqn: 0, moves=True)


_move(
    s.broadcast_in_dim_p, s.iota_p, s.reshape_p, s.transpose_p, s.rev_p, s.concatenate_p, s.pad_p, s.slice_p, s.split_p
)
_move(i.dynamic_slice_p, i.dynamic_update_slice_p, i.gather_p, i.scatter_p, windows.select_and_gather_add_p)
_move(e.copy_p, e.stop_gradient_p, e.convert_element_type_p, bits.reduce_precision_p, e.real_p, e.complex_p)
_move(checkpoint.name_p, checkpoint.move_p, checkpoint.materialize_p, checkpoint.optimization_barrier_p)
_move(random.random_wrap_p, random.random_unwrap_p)
_move(collective.all_gather_p, collective.all_to_all_p, collective.ppermute_p, collective.axis_index_p)
for _primitive in (strict_form.lit, strict_form.lzero, strict_form.dup, strict_form.drop):
    prices[_primitive] = Price(lambda eqn: Arithmetic(), lambda eqn: 0)


def _kept(eqn: Equation, k: int) -> int:
    """Count the elements of operand `k` that a pad reads: of the array, those not cut off; of the filler, 1 if used."""
    if k:
        return min(_operand(eqn, k), _result(eqn) - _kept(eqn, 0))
    config = zip(eqn.invars[0].aval.shape, eqn.params["padding_config"])
    return prod([_kept_along(n, low, high, gap) for n, (low, high, gap) in config])


def _kept_along(n: int, low: int, high: int, gap: int) -> int:
    places = np.arange(n) * (gap + 1)
    last = max((n - 1) * (gap + 1), 0)
    return int(np.sum((places >= -low) & (places <= last + min(high, 0))))


def _not_written(eqn: Equation, k: int, updates: int) -> int:
    """Count the elements of operand `k` that an update reads: of the array, those that it does not overwrite."""
    return max(_operand(eqn) - _operand(eqn, updates), 0) if k == 0 else _operand(eqn, k)


def _as_many_as_results(eqn: Equation, k: int) -> int:
    return min(_operand(eqn, k), _result(eqn)) if k == 0 else _operand(eqn, k)


for _primitive in (s.slice_p, i.dynamic_slice_p, i.gather_p, windows.select_and_gather_add_p):
    elements_read[_primitive] = _as_many_as_results
elements_read[s.pad_p] = _kept
elements_read[i.dynamic_update_slice_p] = lambda eqn, k: _not_written(eqn, k, 1)
elements_read[i.scatter_p] = lambda eqn, k: _not_written(eqn, k, 2)

# ---- elementwise arithmetic ------------------------------------------------------------------------------------


def _choice(eqn: Equation) -> Arithmetic:
    cases = sum(v.linear for v in eqn.invars[1:])
    return Arithmetic((cases - 1) * _result(eqn), cases * _result(eqn))


def _difference(eqn: Equation) -> Arithmetic:
    """Count x - y as x + (-1) y."""
    return Arithmetic(_result(eqn), _operand(eqn, 1) * eqn.invars[1].linear)


prices[e.add_p] = Price(lambda eqn: Arithmetic(_result(eqn)))
prices[e.sub_p] = Price(_difference)
prices[e.select_n_p] = Price(_choice)
for _primitive in (e.neg_p, e.mul_p, e.div_p, e.conj_p, e.imag_p):
    prices[_primitive] = Price(lambda eqn: Arithmetic(0, _result(eqn)))

# ---- sums ----------------------------------------------------------------------------------------------------


def _computes(primitive: Primitive, row: Row) -> None:
    """Register the same operations for linear and for nonlinear operands."""
    prices[primitive] = Price(row, lambda eqn: sum(row(eqn)))


def _steps(eqn: Equation) -> int:
    """Count the steps of a cumulative operation: all elements along its axis but the first."""
    shape = eqn.outvars[0].aval.shape
    return _result(eqn) - _result(eqn) // max(shape[eqn.params["axis"]], 1)


def _reduced(eqn: Equation) -> int:
    return max(_operand(eqn) - _result(eqn), 0)


def _scattered(eqn: Equation) -> Arithmetic:
    """Count the additions of a scatter; if linear updates go into zeros, the first of each element is none."""
    operand, updates = eqn.invars[0], eqn.invars[2]
    added = updates.aval.size if operand.linear or not eqn.linear else max(updates.aval.size - operand.aval.size, 0)
    return Arithmetic(added if updates.linear or not eqn.linear else 0)


_computes(r.reduce_sum_p, lambda eqn: Arithmetic(_reduced(eqn)))
_computes(r.cumsum_p, lambda eqn: Arithmetic(_steps(eqn)))
_computes(r.linear_recurrence_p, lambda eqn: Arithmetic(_steps(eqn), _steps(eqn)))
_computes(i.scatter_add_p, _scattered)
_computes(i.scatter_mul_p, lambda eqn: Arithmetic(0, _operand(eqn, 2)))
_computes(collective.psum_p, lambda eqn: Arithmetic())
_computes(collective.psum_scatter_p, lambda eqn: Arithmetic())
_computes(windows.select_and_scatter_add_p, lambda eqn: Arithmetic(max(_operand(eqn) - _result(eqn), 0)))
for _primitive in (r.reduce_prod_p, r.reduce_max_p, r.reduce_min_p, r.reduce_and_p, r.reduce_or_p, r.reduce_xor_p):
    prices[_primitive] = Price(nonlinear=_reduced)
for _primitive in (r.argmax_p, r.argmin_p):
    prices[_primitive] = Price(nonlinear=_reduced)
for _primitive in (r.cumprod_p, r.cummax_p, r.cummin_p, r.cumlogsumexp_p):
    prices[_primitive] = Price(nonlinear=_steps)

# ---- windows and contractions --------------------------------------------------------------------------------


class Hits(NamedTuple):
    """Counts of the overlaps of a moving window and an axis.

    pairs: of a position and a window element that is on an element of the axis. positions, elements, window: positions,
    elements of the axis and elements of the window that are in some pair.
    """

    pairs: int
    positions: int
    elements: int
    window: int


def _hits(n: int, positions: int, window: int, stride: int, low: int, dilation: int, window_dilation: int) -> Hits:
    places = np.arange(positions)[:, None] * stride + np.arange(window)[None, :] * window_dilation - low
    inside = (places >= 0) & (places < windows.dilate_size(n, dilation)) & (places % dilation == 0)
    seen = len(np.unique(places[inside]))
    return Hits(int(inside.sum()), int(inside.any(1).sum()), seen, int(inside.any(0).sum()))


def _product(axes: Sequence[Hits]) -> Hits:
    return Hits(*[prod(column) for column in zip(*axes)]) if axes else Hits(1, 1, 1, 1)


def _window_hits(eqn: Equation) -> Hits:
    p = eqn.params
    each = zip(
        eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape, p["window_dimensions"], p["window_strides"],
        [low for low, _ in p["padding"]], p["base_dilation"], p["window_dilation"],
    )  # fmt: skip
    return _product([_hits(*axis) for axis in each])


def _window_sum(eqn: Equation) -> Arithmetic:
    hits = _window_hits(eqn)
    return Arithmetic(hits.pairs - hits.positions)


_computes(windows.reduce_window_sum_p, _window_sum)
elements_read[windows.reduce_window_sum_p] = lambda eqn, k: _window_hits(eqn).elements
for _primitive in (windows.reduce_window_prod_p, windows.reduce_window_max_p, windows.reduce_window_min_p):
    prices[_primitive] = Price(nonlinear=lambda eqn: sum(_window_sum(eqn)))


def _dot(eqn: Equation) -> Arithmetic:
    (contracted, _), _ = eqn.params["dimension_numbers"]
    k = prod([eqn.invars[0].aval.shape[axis] for axis in contracted])
    return Arithmetic(_result(eqn) * max(k - 1, 0), _result(eqn) * k)


def _conv_hits(eqn: Equation) -> Hits:
    p, shapes = eqn.params, [v.aval.shape for v in (*eqn.invars, *eqn.outvars)]
    x, kernel, out = [[shape[a] for a in spec[2:]] for shape, spec in zip(shapes, p["dimension_numbers"], strict=True)]
    low = [before for before, _ in p["padding"]]
    each = zip(x, out, kernel, p["window_strides"], low, p["lhs_dilation"], p["rhs_dilation"])
    return _product([_hits(*axis) for axis in each])


def _features(aval: ShapedArray, spec: tuple[int, ...]) -> int:
    """Count the scalars at one spatial position: batch times features."""
    return aval.shape[spec[0]] * aval.shape[spec[1]]


def _conv(eqn: Equation) -> Arithmetic:
    hits, (_, of_kernel, of_out) = _conv_hits(eqn), eqn.params["dimension_numbers"]
    inputs = eqn.invars[1].aval.shape[of_kernel[1]]
    results = _features(eqn.outvars[0].aval, of_out)
    multiplies = results * inputs * hits.pairs
    return Arithmetic(multiplies - results * hits.positions if inputs else 0, multiplies)


def _conv_reads(eqn: Equation, k: int) -> int:
    hits = _conv_hits(eqn)
    return _features(eqn.invars[k].aval, eqn.params["dimension_numbers"][k]) * (hits.window if k else hits.elements)


def _ein(eqn: Equation) -> Arithmetic:
    """Count all products of terms, whether brackets hold or not; the first product of an element is not added."""
    terms, products = eqn.params["terms"], [products_of(t) for t in eqn.params["terms"]]
    multiplies = sum([n * multiplied_by(t) for t, n in zip(terms, products)])
    written = [_written(t) for t in terms]
    first = sum(written) if all(write_apart(t, u) for t, u in combinations(terms, 2)) else max(written, default=0)
    return Arithmetic(max(sum(products) - first, 0), multiplies)


def _nonlinear_ein(eqn: Equation) -> int:
    """Count the operations of an `ein` of nonlinear values, where a term that is subtracted is one, as in `sub`."""
    adds, multiplies = _ein(eqn)
    negative = sum([products_of(t) for t in eqn.params["terms"] if t.coefficient == -1 and t.factors])
    return adds + multiplies - min(negative, adds)


def _written(t: Term) -> int:
    """Bound the elements that a term writes, by its products and by the range of its indices along each axis."""
    if 0 in t.sizes:
        return 0
    ends = [a.bounds(t.sizes) for a in t.out]
    return min(prod([t.sizes[v] for v in variables_in(t.out)]), prod([b - a + 1 for a, b in ends]))


def multiplied_by(t: Term, factors: int | None = None) -> int:
    """Count the multiplications of one product: by other factors and the coefficient; conjugates count, too."""
    n = len(t.factors) if factors is None else factors
    return max(n - 1, 0) + (t.coefficient != 1 and n > 0) + sum(f.use is Use.CONJUGATED for f in t.factors)


def _ein_reads(eqn: Equation, k: int) -> int:
    reads = [(t, f) for t in eqn.params["terms"] for f in t.factors if f.operand == k]
    found = [prod([t.sizes[v] for v in variables_in(f.access)]) for t, f in reads]
    return min(sum(found), _operand(eqn, k)) if found else _operand(eqn, k)


def _substitution(eqn: Equation) -> Arithmetic:
    """Count forward substitution: for each unknown, a product with each one before it, and a division."""
    below = _result(eqn) * max(eqn.invars[0].aval.shape[-1] - 1, 0) // 2
    return Arithmetic(below, below + _result(eqn))


def _tridiagonal(eqn: Equation) -> Arithmetic:
    """Count the forward and backward substitution of each column: two additions and three products for a scalar."""
    size = eqn.outvars[0].aval.size
    return Arithmetic(2 * size, 3 * size)


def _cholesky(eqn: Equation) -> int:
    """Count a Cholesky decomposition: n³ / 3 for an n x n matrix."""
    n = eqn.invars[0].aval.shape[-1]
    return _operand(eqn) * (n + 2) // 3 if n else 0


def _decomposition(count: Callable[..., int]) -> Callable[[Equation], int]:
    """Make the row of a decomposition from `count(m, n)` for an m x n matrix, m >= n (Golub and Van Loan 2013)."""

    def cost(eqn: Equation) -> int:
        *batch, m, n = eqn.invars[0].aval.shape
        return prod(batch) * count(max(m, n), min(m, n), **eqn.params)

    return cost


def _singular_values(m: int, n: int, *, compute_uv: bool = True, **_: Any) -> int:
    return 6 * m * n * n + 20 * n**3 if compute_uv else 4 * m * n * n - 4 * n**3 // 3


prices[linalg.cholesky_p] = Price(nonlinear=_cholesky)
for _primitive in (factorization.lu_p, factorization.det_p):
    prices[_primitive] = Price(nonlinear=_decomposition(lambda m, n: m * n * n - n**3 // 3))
prices[factorization.qr_p] = Price(nonlinear=_decomposition(lambda m, n, **_: 4 * (m * n * n - n**3 // 3)))
prices[factorization.geqrf_p] = Price(nonlinear=_decomposition(lambda m, n: 2 * (m * n * n - n**3 // 3)))
prices[spectral.eigh_p] = Price(
    nonlinear=_decomposition(lambda _, n, compute_v, **__: 9 * n**3 if compute_v else 4 * n**3 // 3)
)
prices[spectral.eig_p] = Price(
    nonlinear=_decomposition(lambda _, n, left, right, **__: 25 * n**3 if left or right else 10 * n**3)
)
prices[spectral.svd_p] = Price(nonlinear=_decomposition(_singular_values))
# The right side counts as no more than the pseudoinverse, which is computed beside the solution.
for _primitive in (factorization.pinv_p, factorization.least_squares_p):
    prices[_primitive] = Price(nonlinear=_decomposition(lambda m, n, **_: _singular_values(m, n) + 2 * m * n * n))
for _primitive, _multiple in (
    (spectral.hessenberg_p, 10 / 3),
    (spectral.tridiagonal_p, 4 / 3),
    (spectral.schur_p, 25),
):
    prices[_primitive] = Price(nonlinear=_decomposition(lambda _, n, by=_multiple, **__: int(by * n**3)))
# For regular matrices: a singular one takes more.
prices[factorization.adjugate_p] = Price(nonlinear=_decomposition(lambda _, n: 2 * n**3))
_computes(linalg.triangular_solve_p, _substitution)
_computes(linalg.tridiagonal_solve_p, _tridiagonal)
_computes(contraction.dot_general_p, _dot)
_computes(contraction.conv_general_dilated_p, _conv)
prices[ein_p] = Price(_ein, _nonlinear_ein)
elements_read[contraction.conv_general_dilated_p] = _conv_reads
elements_read[ein_p] = _ein_reads

# ---- Fourier transforms --------------------------------------------------------------------------------------


def _fourier(eqn: Equation) -> Arithmetic:
    """Count butterflies, two additions and a product each: of n numbers n / 2 in each of log2 n stages.

    Of real numbers half as many (Cooley and Tukey 1965; Sorensen et al. 1987).
    """
    n = prod(eqn.params["fft_lengths"])
    reals = eqn.params["fft_type"] in (fourier.FftType.RFFT, fourier.FftType.IRFFT)
    batch = prod(eqn.invars[0].aval.shape[: -len(eqn.params["fft_lengths"])])
    butterflies = batch * n * (n - 1).bit_length() // (4 if reals else 2)
    return Arithmetic(2 * butterflies, butterflies)


_computes(fourier.fft_p, _fourier)

# ---- programs ------------------------------------------------------------------------------------------------


def _custom_linear(eqn: Equation) -> Arithmetic:
    """Count a user's linear map; a transposed one costs less by the number of results that it has more than inputs."""
    n, pull = eqn.params["n"], eqn.params["pull"]
    jaxpr = getattr(pull, "jaxpr", None)
    if jaxpr is None:  # the zero map
        return Arithmetic()
    found = cost(mark_linear(jaxpr, [i >= n for i in range(len(jaxpr.invars))])).work
    more = sum(_sizes(eqn.outvars)) - sum(_sizes(eqn.invars[n:])) if pull.transposed else 0
    return Arithmetic(max(found - more, 0))


_computes(custom.custom_linear_p, _custom_linear)
