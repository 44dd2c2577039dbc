"""Costs of a program: counted in two models on jaxprs, and by XLA on the compiled program."""

from collections.abc import Sequence
from functools import cached_property, reduce
from operator import add as plus
from typing import NamedTuple

from tapeless.differentiate import residuals
from tapeless.interpreters import partial_eval
from tapeless.interpreters.analysis import cost as counting
from tapeless.interpreters.analysis import sparse_cost
from tapeless.interpreters.analysis.cost import Cost
from tapeless.interpreters.jvp import jvp_jaxpr
from tapeless.lowering import dispatch
from tapeless.tracer.jaxpr import ClosedJaxpr, Jaxpr

OPERATIONS = ("nonlinear", "adds", "multiplies", "drops", "work")


class XLACost(NamedTuple):
    """XLA's figures for compiled programs, whose operations are not ours: it fuses and it counts zeros."""

    flops: float
    transcendentals: float
    bytes_accessed: float

    def __str__(self) -> str:
        return f"{self.flops:g} flops, {self.transcendentals:g} transcendentals, {self.bytes_accessed:g} bytes accessed"


class CostBound(Cost):
    """An upper bound of a cost, which is printed as one."""

    def __str__(self) -> str:
        return f"at most {super().__str__()}"


class ProgramCost:
    """The cost of a program, or of several that run one after the other. Prints as a table.

    nonlinear, adds, multiplies, drops: scalar operations, those on linear values by kind; `work` is their sum.
    moved, moved_bytes: scalars that are moved or repeated, and their bytes. program_size: equations and references.
    strict, sparse: all of these in the strict scalar model, and in that which knows of zeros. sparse_is_bound: whether
    the latter is an upper bound only, because an array has more than 65,536 elements.
    """

    def __init__(self, programs: Sequence[ClosedJaxpr]) -> None:
        self._programs = tuple(programs)

    @cached_property
    def strict(self) -> Cost:
        """Cost in the strict scalar model, in which an array is so many scalars."""
        return reduce(plus, [counting.cost(p.jaxpr) for p in self._programs])

    @cached_property
    def sparse(self) -> Cost:
        """Cost in the sparse model: operations on static zeros do not count, and dropping is free.

        An upper bound if `sparse_is_bound`, which prints as `<=`.
        """
        first = self._programs[0]
        found = reduce(plus, sparse_cost.through([p.jaxpr for p in self._programs], first.consts))
        return CostBound(**vars(found)) if self.sparse_is_bound else found

    @property
    def sparse_is_bound(self) -> bool:
        """Tell whether `sparse` is an upper bound only: arrays of more than 65,536 elements count as nonzero.

        The compiled program may do less. Ask for the cost at smaller sizes, or for a formula: `index.cost`.
        """
        return any(sparse_cost.is_bound(p.jaxpr) for p in self._programs)

    @cached_property
    def residual_bytes(self) -> int:
        """Count the bytes of the residuals that a linear jaxpr reads, or that reverse mode of a function saves."""
        last = self._programs[-1]
        linear = last.jaxpr if any(last.jaxpr.linear_in) else _linear_half(last)
        return sum(v.aval.nbytes for v in linear.invars if not v.linear)

    @cached_property
    def xla(self) -> XLACost:
        """Return XLA's figures. The programs are compiled when they are first asked for.

        Raises: NotImplementedError for programs in strict form, which are not run.
        """
        return XLACost(*map(sum, zip(*[_compiled_cost(p.jaxpr) for p in self._programs])))

    @property
    def nonlinear(self) -> int:
        """Operations on values that are not linear, in the strict model."""
        return self.strict.nonlinear

    @property
    def adds(self) -> int:
        """Additions of linear values, in the strict model."""
        return self.strict.adds

    @property
    def multiplies(self) -> int:
        """Scalings of linear values, in the strict model."""
        return self.strict.multiplies

    @property
    def drops(self) -> int:
        """Scalars of linear values that are dropped, and of other values without a reader, in the strict model."""
        return self.strict.drops

    @property
    def work(self) -> int:
        """All operations, in the strict model."""
        return self.strict.work

    @property
    def moved(self) -> int:
        """Scalars that are moved or repeated."""
        return self.strict.moved

    @property
    def moved_bytes(self) -> int:
        """Bytes of the scalars that are moved or repeated."""
        return self.strict.moved_bytes

    @property
    def program_size(self) -> int:
        """Size of the program: equations and references to variables, inner jaxprs included, each counted once."""
        return self.strict.size

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ProgramCost):
            return NotImplemented
        return (self.strict, self.sparse) == (other.strict, other.sparse)

    def __hash__(self) -> int:
        return hash((self.strict, self.sparse))

    def __str__(self) -> str:
        rows = [("", "strict", "sparse")]
        most = "<= " if self.sparse_is_bound else ""
        rows += [(k, f"{getattr(self.strict, k):,}", f"{most}{getattr(self.sparse, k):,}") for k in OPERATIONS]
        widths = [max(map(len, column)) for column in zip(*rows)]
        table = [f"{name:{widths[0]}}  {a:>{widths[1]}}  {b:>{widths[2]}}" for name, a, b in rows]
        moved = f"moved {self.moved:,} scalars, {self.moved_bytes:,} bytes"
        size = f"program size {self.program_size:,}, residuals {self.residual_bytes:,} bytes"
        compiled = [f"XLA {self.xla}"] if "xla" in self.__dict__ else []
        return "\n".join([*table, moved, size, *compiled])

    __repr__ = __str__


def _linear_half(closed: ClosedJaxpr) -> Jaxpr:
    program, _, _ = jvp_jaxpr(closed.jaxpr, residuals.flag_differentiated(closed))
    return partial_eval.unzip_jaxpr(program, program.linear_in).linear


def _compiled_cost(jaxpr: Jaxpr) -> tuple[float, ...]:
    found = dispatch.executable(jaxpr, dispatch.device_of(())).cost_analysis()
    return tuple([found.get(name, 0.0) for name in ("flops", "transcendentals", "bytes accessed")])
