"""What derivatives cost beside their functions, in the model that knows of zeros: what tests/test_theorems.py asserts.

python -m tests.cost_ratios [part of a name]     prints the ratios, the highest first
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import tapeless as tl
from tapeless.interpreters.analysis import sparse_cost
from tapeless.interpreters.simplify import simplify_program
from tapeless.tracer import dtypes
from tapeless.tracer.jaxpr import ClosedJaxpr, Jaxpr, subjaxprs
from tapeless.tracer.types import aval_of
from tests import test_compositions, test_growth, test_primitives, test_structured_growth
from tests.index_language import test_random_bodies, test_sparsity_examples, test_work_of_relations
from tests.interpreters import numpy_operations, structured_programs, test_properties, test_random_programs
from tests.samples import SAMPLES
from tests.samples.sample import Sample

Function = Callable[..., Any]  # arrays -> one or several arrays


class Ratio(NamedTuple):
    """Work of a function, of its derivative in both modes, the function's own work included, and scalars in and out.

    None: of a mode that was not asked for.
    """

    function: int
    forward: int | None
    reverse: int | None
    ends: int

    def of_forward(self, ends: int = 0) -> float:
        """The least c with cost(D) <= c cost + ends (in + out)."""
        return max((self.forward or 0) - ends * self.ends, 0) / max(self.function, 1)

    def of_reverse(self, ends: int = 1) -> float:
        """The least c with cost(D*) <= c cost + ends (in + out)."""
        return max((self.reverse or 0) - ends * self.ends, 0) / max(self.function, 1)


def ratio(f: Function, args: Sequence[Any], reverse: bool = True, forward: bool = True) -> Ratio:
    """Of a function of floating point arrays; its results that are not are left out."""

    def smooth(*xs: Any) -> list[Any]:
        outs = f(*xs)
        flat = outs if isinstance(outs, (list, tuple)) else [outs]
        return [y for y in flat if dtypes.is_inexact(aval_of(y).dtype)]

    def pulled(xs: Any, cts: Any) -> Any:
        outs, pull = tl.vjp(smooth, *xs)
        return outs, pull(cts)

    args = [spec(x) for x in args]
    outs = tl.eval_shape(smooth, *args)
    return Ratio(
        work(tl.make_jaxpr(smooth)(*args)),
        work(tl.make_jaxpr(lambda xs, ts: tl.jvp(smooth, xs, ts))(args, args), simplify_program) if forward else None,
        work(tl.make_jaxpr(pulled)(args, outs), simplify_program) if reverse else None,
        sum(x.size for x in (*args, *outs)),
    )


def work(closed: ClosedJaxpr, transform: Callable[[Jaxpr], Jaxpr] = lambda jaxpr: jaxpr) -> int:
    """Of a program: a function's as it is traced, a derivative's as it is compiled, which is simplified."""
    return sparse_cost.cost(transform(closed.jaxpr), closed.consts).work


def spec(x: Any) -> Any:
    """The type of an argument, or of what is one."""
    if isinstance(x, tl.ShapeDtypeStruct):
        return x
    aval = aval_of(x)
    return tl.ShapeDtypeStruct(aval.shape, aval.dtype)


def primitives(f: Function, args: Sequence[Any]) -> set[str]:
    """Names of the primitives of a function, those of programs that it carries too."""
    return _primitives(tl.make_jaxpr(f)(*[spec(x) for x in args]).jaxpr)


def _primitives(jaxpr: Jaxpr) -> set[str]:
    inner = [_primitives(program) for eqn in jaxpr.eqns for program in subjaxprs(eqn.params)]
    return {eqn.primitive.name for eqn in jaxpr.eqns}.union(*inner)


# ---- the suite -----------------------------------------------------------------------------------------------


class Case(NamedTuple):
    """A program of the suite."""

    function: Function
    args: Sequence[Any]
    reverse: bool = True

    def ratio(self) -> Ratio:
        """What its derivatives cost."""
        return ratio(*self)


def of_primitive(row: Sample) -> Case:
    """A primitive, as a function of the operands that it has a derivative by."""
    f, args = test_primitives.differentiable_part(row)
    return Case(f, args, row.primitive.name != "while")


PRIMITIVES = {
    str(row): row for row in SAMPLES if row.linear_in or (test_primitives.differentiable_at(row) and row.axis is None)
}
COMPOSITIONS = {
    f"composition {name}": Case(pair.staged, (test_compositions.X,), pair.reverse)
    for name, pair in test_compositions.PROGRAMS.items()
}
LOOPS = {f"loop {name}": Case(f, (np.ones(12, np.float32),)) for name, f in test_growth.LOOPS.items()}
VECTORS = {f"vector {name}": Case(f, (np.ones(12),)) for name, (f, _) in test_structured_growth.VECTORS.items()}
MATRICES = {f"matrices {name}": Case(f, (np.ones((5, 5)),) * 2) for name, f in test_structured_growth.MATRICES.items()}


def structured(seeds: range) -> Iterator[tuple[str, Case]]:
    """Random programs of structured values."""
    for seed in seeds:
        yield f"structured {seed}", Case(structured_programs.program(seed), structured_programs.arguments())


def small(seeds: range) -> Iterator[tuple[str, Case]]:
    """Random programs of a few operations, calls and derivatives among them."""
    names = sorted(test_properties.OPERATIONS)
    for seed in seeds:
        random = np.random.default_rng(seed)
        program = [
            test_properties.Instruction(names[random.integers(len(names))], *map(int, random.integers(13, size=2)))
            for _ in range(random.integers(1, 9))
        ]
        yield f"small {seed}", Case(partial(test_properties.run, program), test_properties.drawn(0))


def of_numpy() -> Iterator[tuple[str, Case]]:
    """Every function of NumPy's that random programs are made of, in some program."""
    for k, program in enumerate(test_random_programs.dealt(0)):
        names = "-".join(step.name for step in program.steps)
        f = partial(program, tl.numpy)
        yield f"numpy {k} {names}", Case(f, (np.ones(numpy_operations.SHAPE),) * 2)


def suite() -> Iterator[tuple[str, Case]]:
    """All programs but the samples of primitives."""
    for some in (COMPOSITIONS, LOOPS, VECTORS, MATRICES):
        yield from some.items()
    yield from structured(range(40))
    yield from small(range(100))
    yield from of_numpy()


def indexed(seeds: range) -> Iterator[tuple[str, Case]]:
    """Random bodies of the index language, its examples, and some that read relations and sparse arrays."""
    for seed in seeds:
        text, f = test_random_bodies.random_program(seed)
        yield f"index {seed} {text}", Case(f, (np.ones(5, np.float32), np.ones((4, 6), np.float32)))
    for f, args in test_sparsity_examples.EXAMPLES.items():
        yield f"index {f.__name__}", Case(f, args)
    entries, n = test_work_of_relations.ENTRIES, 30
    for name in ("squares", "either", "two steps", "softmax", "max", "values where related", "differences"):
        f = test_work_of_relations.value_of(test_work_of_relations.PROGRAMS[name], test_work_of_relations.sparse, n)
        yield f"index, sparse, {name}", Case(f, (np.ones(n, np.float32), np.ones(entries, np.float32)))


def main() -> None:
    part = sys.argv[1] if len(sys.argv) > 1 else ""
    cases = [*[(f"primitive {name}", of_primitive(row)) for name, row in PRIMITIVES.items()], *suite()]
    cases += indexed(range(100))
    found = [(name, case.ratio()) for name, case in cases if part in name]
    lines = ["  D    D*   work   of D  of D*  in + out"]
    for name, r in sorted(found, key=lambda item: -max(item[1].of_reverse(), item[1].of_forward())):
        works = f"{r.function:6} {r.forward or '':6} {r.reverse or '':6} {r.ends:6}"
        lines.append(f"{r.of_forward():4.2f} {r.of_reverse():5.2f} {works}  {name}")
    sys.stdout.write("\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
