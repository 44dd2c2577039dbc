"""Kernels of a program: predict the values that a compiler stores; the others are computed by their readers.

Search terms: operator fusion, loop fusion, rematerialization of cheap values. Equal equations are merged. A value is
stored if a reader needs the whole array, as a product of matrices, a loop or a barrier does; if several kernels read it
and it is not cheap; or if it is a result. As XLA does for the CPU, operands of contractions with their axes in
another order are copied, and values pass barriers as bits. A cheap value of several arrays is not computed again for
another such value.
The rules were chosen by what XLA allots for the programs of `benchmarks`, so these are no held-out set.
Dtypes of 16 bits are counted as such, which XLA for the CPU stores in 32 too.
Left out: what the simplifications of a compiler change.
Source: He & Yu 2023, for the fusion of elementwise operations; XLA's instruction fusion.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

from tapeless.interpreters.index_rows import Combination, rows
from tapeless.interpreters.simplifications.common_subexpressions import FENCES, key_of
from tapeless.interpreters.simplifications.fusion.licence import find_summed
from tapeless.tracer import dtypes
from tapeless.tracer.bodies import Body, bodies_of
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Literal, effects
from tapeless.tracer.primitives import contraction as c
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives import factorization, linalg
from tapeless.tracer.primitives.checkpoint import dce_sink_p, move_p, name_p, optimization_barrier_p
from tapeless.tracer.primitives.shape import reshape_p, transpose_p
from tapeless.tracer.primitives.windows import select_and_scatter_add_p


def _primitives(*modules: Any) -> frozenset[Primitive]:
    return frozenset([p for module in modules for p in vars(module).values() if isinstance(p, Primitive)])


_RENAMES: Final = frozenset((name_p, move_p, e.stop_gradient_p))
_ELEMENTWISE: Final = _primitives(e)
_ROUTINES: Final = _primitives(factorization, linalg)
_CHEAP: Final = frozenset((e.integer_pow_p, e.max_p, e.min_p, e.abs_p, e.sign_p))


class KernelValue:
    """A value: its bytes, the kernel that computes it, or None for inputs, and the kernels that read it.

    begin, end: the first and the last time at which it is live, if it is stored, in a schedule.
    """

    __slots__ = ("begin", "end", "maker", "nbytes", "readers")

    def __init__(self, nbytes: int, maker: "FusedKernel | None" = None) -> None:
        self.nbytes: Final = nbytes
        self.maker: Final = maker
        self.readers: list[FusedKernel] = []
        self.begin: int = 0
        self.end: int = 0

    @property
    def source(self) -> "KernelValue":
        """The value before it was reshaped, or itself."""
        return self.maker.reads[0].source if self.maker and self.maker.how == "reshape" else self


class FusedKernel:
    """An equation, or a copy, and what is computed where it is read.

    how: "whole" if it needs whole operands, "fold" if it combines many elements, "move" if each element is one of few
    others, "map" if it is a function of those at its position, "reshape" if all are the same. cheap: whether it is done
    again rather than stored. kept: whether it is stored in any case. inner: bytes that it needs while it runs. paired:
    operands and results that have one buffer, if nothing else reads the operand later. stored: whether its results are.
    repeats: whether several kernels repeat it, and what it joins. root: the kernel that it is part of; None if it is
    part of several. leaves: the stored values that it reads, and whether element by element. time: its place in a
    schedule.
    """

    __slots__ = (
        "cheap",
        "how",
        "inner",
        "kept",
        "leaves",
        "paired",
        "reads",
        "repeats",
        "root",
        "stored",
        "time",
        "writes",
    )

    def __init__(self, how: str, reads: Sequence[KernelValue], cheap: bool = False, kept: bool = False) -> None:
        self.how: Final = how
        self.reads: Final[Sequence[KernelValue]] = reads
        self.cheap: Final = cheap
        self.kept: Final = kept
        self.writes: list[KernelValue] = []
        self.paired: list[tuple[KernelValue, KernelValue]] = []
        self.leaves: dict[KernelValue, bool] = {}
        self.inner: int = 0
        self.time: int = 0
        self.stored: bool = True
        self.repeats: bool = False
        self.root: FusedKernel | None = self

    @property
    def may_be_fused(self) -> bool:
        """True if its results may be computed by their readers."""
        return self.how in ("map", "move", "reshape") and not self.kept

    @property
    def needs_whole(self) -> bool:
        """True if it needs whole operands; a reshape does if a reader does."""
        if self.how == "reshape":
            return any(reader.needs_whole for reader in self.writes[0].readers)
        return self.how == "whole"

    @property
    def joins(self) -> bool:
        """True if it reads several arrays as large as its result, but for repeated elements of smaller ones."""
        size = self.writes[0].nbytes
        return len([x for x in dict.fromkeys(self.reads) if x.nbytes >= size and not _repeats_elements(x)]) > 1


def _repeats_elements(x: KernelValue) -> bool:
    return x.maker is not None and x.maker.may_be_fused and all(read.nbytes < x.nbytes for read in x.maker.reads)


class KernelGraph:
    """The kernels of a program, in program order.

    bytes_of_body: predicts what a body of a loop or a branch needs while it runs.
    """

    def __init__(self, bytes_of_body: Callable[[Body], int]) -> None:
        self.kernels: list[FusedKernel] = []
        self._bytes_of_body = bytes_of_body
        self._known: dict[Any, list[KernelValue]] = {}
        # Matrices -> what they are transposes of, which products can read.
        self._transposed: dict[KernelValue, KernelValue] = {}

    def add(self, jaxpr: Jaxpr, inputs: Sequence[KernelValue]) -> list[KernelValue]:
        """Add the equations of a program; return its results."""
        env: dict[Atom, KernelValue] = dict(zip(jaxpr.invars, inputs, strict=True))
        for eqn in jaxpr.eqns:
            env.update(zip(eqn.outvars, self._results(eqn, [env.get(v) or KernelValue(0) for v in eqn.invars])))
        return [env.get(v) or KernelValue(0) for v in jaxpr.outvars]

    def emit(self, kernel: FusedKernel, *sizes: int) -> list[KernelValue]:
        """Add a kernel; return its results, of so many bytes."""
        kernel.writes = [KernelValue(n, kernel) for n in sizes]
        self.kernels.append(kernel)
        return kernel.writes

    def fuse(self, results: Collection[KernelValue]) -> list[FusedKernel]:
        """Decide which kernels store their results; return these, without those that nobody reads."""
        kept: list[FusedKernel] = []
        for kernel in reversed(self.kernels):
            if kernel.writes and not any(v.readers or v in results for v in kernel.writes):
                continue
            kept.append(kernel)
            for v in dict.fromkeys(kernel.reads):
                v.readers.append(kernel)
            if kernel.may_be_fused and not any(v in results for v in kernel.writes):
                _fuse_into_readers(kernel)
        for kernel in reversed(kept):
            for v in kernel.reads:
                found = {v: True} if v.maker is None or v.maker.stored else v.maker.leaves
                for leaf, same in found.items():
                    kernel.leaves[leaf] = same and kernel.how == "map" and kernel.leaves.get(leaf, True)
        return [kernel for kernel in reversed(kept) if kernel.stored]

    # ---- equations

    def _results(self, eqn: Equation, reads: list[KernelValue]) -> list[KernelValue]:
        if eqn.primitive in _RENAMES:
            return reads[:1]
        if eqn.primitive is dce_sink_p:
            return []
        if eqn.primitive is optimization_barrier_p:
            return self._behind_barrier(reads)
        bodies = bodies_of(eqn)
        if bodies is not None and bodies.selector is None and not bodies.loops and len(bodies.each) == 1:
            (body,) = bodies.each
            found = self.add(body.jaxpr, [reads[k] for k in body.operands])
            return [found[body.results.index(k)] for k in range(len(eqn.outvars))]
        sizes = [v.aval.nbytes for v in eqn.outvars]
        if bodies is not None:
            return self._with_bodies(FusedKernel("whole", reads), bodies.each, sizes)
        if effects(eqn) or eqn.primitive in FENCES:
            return self.emit(FusedKernel("whole", reads), *sizes)
        names: list[Any] = [v if isinstance(v, Literal) else x for v, x in zip(eqn.invars, reads)]
        key = key_of(eqn.primitive, names, eqn.params)
        if key not in self._known:
            self._known[key] = self._equation(eqn, reads, sizes)
        return self._known[key]

    def _with_bodies(self, kernel: FusedKernel, bodies: Sequence[Body], sizes: Sequence[int]) -> list[KernelValue]:
        outs = self.emit(kernel, *sizes)
        kernel.inner = max(map(self._bytes_of_body, bodies), default=0)
        kernel.paired = [(kernel.reads[i], outs[o]) for body in bodies for i, o in body.carries() if o >= 0]
        return outs

    def _behind_barrier(self, reads: list[KernelValue]) -> list[KernelValue]:
        """Copy what passes a barrier, but inputs: see lowering/rules/checkpoint.py."""
        is_computed = [x.source.maker is not None for x in reads]
        before = [
            self.emit(FusedKernel("map", [x], kept=True), x.nbytes)[0] if yes else x
            for x, yes in zip(reads, is_computed)
        ]
        kernel = FusedKernel("whole", before)
        behind = self.emit(kernel, *[x.nbytes for x in before])
        kernel.paired = list(zip(before, behind))
        return [
            self.emit(FusedKernel("map", [x], cheap=True), x.nbytes)[0] if yes else x
            for x, yes in zip(behind, is_computed)
        ]

    def _equation(self, eqn: Equation, reads: list[KernelValue], sizes: Sequence[int]) -> list[KernelValue]:
        if eqn.primitive is c.dot_general_p:
            return self._matrix_product(eqn, reads)
        if eqn.primitive is c.conv_general_dilated_p:
            return self.emit(FusedKernel("whole", self._images(eqn, reads)), *sizes)
        if eqn.primitive is select_and_scatter_add_p:
            return self.emit(FusedKernel("whole", [*reads, *self._indices(eqn)]), *sizes)
        kernel = _kernel_of(eqn, reads)
        if eqn.primitive in _ROUTINES:  # of LAPACK, which are given a copy, by columns
            kernel.inner = max([x.nbytes for x in reads], default=0)
        outs = self.emit(kernel, *sizes)
        if eqn.primitive is transpose_p and eqn.outvars[0].aval.ndim == 2:
            self._transposed[outs[0]] = reads[0]
        return outs

    def _matrix_product(self, eqn: Equation, reads: list[KernelValue]) -> list[KernelValue]:
        """Copy operands whose axes are not a batch of rows and columns; without a batch all are made matrices."""
        over, batch = eqn.params["dimension_numbers"]
        operands: list[KernelValue] = []
        for x, v, contracted, batched in zip(reads, eqn.invars, over, batch, strict=True):
            x = self._transposed.get(x, x)
            y = x if _are_matrices(v.aval.ndim, contracted, batched) else self._copied(x, (contracted, batched))
            operands.append(self._reshaped(y) if v.aval.ndim > 2 and not batched else y)
        (product,) = self.emit(FusedKernel("whole", operands), eqn.outvars[0].aval.nbytes)
        return [self._reshaped(product) if eqn.outvars[0].aval.ndim > 2 and not batch[0] else product]

    def _images(self, eqn: Equation, reads: list[KernelValue]) -> list[KernelValue]:
        """Copy images with axes in another order than batch, space, features, and filters than space, features."""
        numbers = eqn.params["dimension_numbers"]
        n = len(numbers.lhs_spec)
        orders = ((0, n - 1, *range(1, n - 1)), (n - 1, n - 2, *range(n - 2)))
        given = (numbers.lhs_spec, numbers.rhs_spec)
        return [x if a == b else self._copied(x, a) for x, a, b in zip(reads, given, orders, strict=True)]

    def _indices(self, eqn: Equation) -> list[KernelValue]:
        """Make the indices along each axis of an array, which XLA stores to find the extremes of windows."""
        x = eqn.invars[1].aval
        return [self.emit(FusedKernel("move", [], kept=True), 4 * x.size)[0] for _ in x.shape]

    def _copied(self, x: KernelValue, order: Any) -> KernelValue:
        key = x.source, order
        if key not in self._known:
            self._known[key] = self.emit(FusedKernel("move", [x], kept=True), x.nbytes)
        return self._known[key][0]

    def _reshaped(self, x: KernelValue) -> KernelValue:
        return self.emit(FusedKernel("reshape", [x], cheap=True), x.nbytes)[0]


def _kernel_of(eqn: Equation, reads: list[KernelValue]) -> FusedKernel:
    """Say by the index row of an equation how it reads its operands, and whether it is cheap."""
    if eqn.primitive is reshape_p:
        return FusedKernel("reshape", reads, cheap=True)
    row = rows.get(eqn.primitive)
    if row is not None and not reads:
        return FusedKernel("move", reads, cheap=True)
    found = None if row is None else row(eqn.params, [v.aval for v in eqn.invars])
    if found is None or len(eqn.outvars) != 1 or found.combination is Combination.CORE:
        return FusedKernel("whole", reads)
    if found.combination is Combination.POINTWISE:
        is_cheap = eqn.primitive in _CHEAP or not dtypes.is_inexact(eqn.outvars[0].aval.dtype)
        return FusedKernel("map", reads, cheap=is_cheap)
    if found.combination is Combination.MONOID:
        return FusedKernel("fold", reads)
    terms = found.results[0]
    if any(t.sizes[v] > 1 for t in terms for v in find_summed(t)):
        return FusedKernel("whole" if any(len(t.factors) > 1 for t in terms) else "fold", reads)
    return FusedKernel("map" if eqn.primitive in _ELEMENTWISE else "move", reads, cheap=True)


def _are_matrices(ndim: int, over: tuple[int, ...], batch: tuple[int, ...]) -> bool:
    """Tell whether axes are a batch, and then those contracted and the others, in one or the other order."""
    free = tuple([k for k in range(ndim) if k not in over and k not in batch])
    return tuple(range(ndim)) in ((*batch, *over, *free), (*batch, *free, *over))


def _fuse_into_readers(kernel: FusedKernel) -> None:
    """Compute a result where it is read, unless it must be stored; its readers are known, and what they are part of."""
    readers = kernel.writes[0].readers
    roots = {reader.root for reader in readers}
    is_read_once = len(roots) == 1 and None not in roots
    repeats = any(reader.repeats for reader in readers)
    if kernel.how != "reshape":
        if any(reader.needs_whole for reader in readers):
            return
        if not is_read_once:
            if not kernel.cheap or (kernel.joins and repeats):
                return
            repeats = repeats or kernel.joins
        else:
            repeats = False
    kernel.stored, kernel.repeats = False, repeats
    kernel.root = roots.pop() if is_read_once else None
