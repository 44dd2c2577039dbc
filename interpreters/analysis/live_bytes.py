"""Peak of live bytes: predict how many bytes of temporaries a compiled program needs, beyond arguments and results.

Liveness analysis of the kernels of a program (`kernels`). They run in breadth-first order, each as soon as its operands
are there, as XLA has them on the CPU. What is stored lives from its kernel to the last one that reads it. A kernel
writes in place of an operand that it reads last, element by element; values that are done before a result is computed
lie in the result's buffer, if they fit. A loop keeps its carry in place, unless something reads the old one that need
not run before, and has the peak of its body beside all else.
Left out: alignment and gaps between buffers, and the orders in which other compilers run kernels.
Source: Aho, Lam, Sethi & Ullman 2006, "Compilers", section 9.2.5 (live variables).
"""

from collections import deque
from collections.abc import Collection, Sequence
from itertools import accumulate

from tapeless.interpreters.analysis.kernels import FusedKernel, KernelGraph, KernelValue
from tapeless.tracer import core
from tapeless.tracer.bodies import CARRY, EACH, Body
from tapeless.tracer.jaxpr import Jaxpr


def temporary_bytes(primal: Jaxpr, backward: Jaxpr) -> int:
    """Predict the bytes of temporaries of two halves that run one after the other, as one program.

    Args:
      primal: its last results are the inputs of `backward` that are not linear.
    """
    graph = KernelGraph(_bytes_of_body)
    outs = graph.add(primal, _inputs(primal))
    n = len(outs) - len([v for v in backward.invars if not v.linear])
    gradients = graph.add(backward, [*outs[n:], *_inputs(backward)[len(outs) - n :]])
    return _peak(graph, [*outs[:n], *gradients])


def _inputs(jaxpr: Jaxpr) -> list[KernelValue]:
    return [KernelValue(v.aval.nbytes) for v in jaxpr.invars]


def _bytes_of_body(body: Body) -> int:
    return _body_bytes(body.jaxpr, body.ins, body.outs)


@core.memoize_by_program
def _body_bytes(jaxpr: Jaxpr, ins: tuple[str, ...], outs: tuple[str, ...]) -> int:
    """Predict the bytes of temporaries of one run of a body. Its results lie in the buffers of the equation's."""
    graph, inputs = KernelGraph(_bytes_of_body), _inputs(jaxpr)
    for k, role in enumerate(ins):
        if role is EACH:  # a part of the stack, copied if it is needed whole
            inputs[k] = graph.emit(FusedKernel("move", [], cheap=True), inputs[k].nbytes)[0]
    results = graph.add(jaxpr, inputs)
    for value, role in zip(results, outs, strict=True):
        if role is not CARRY:  # written to the stack or the result
            graph.emit(FusedKernel("fold", [value]))
    new = [value for value, role in zip(results, outs) if role is CARRY]
    old = [value for value, role in zip(inputs, ins) if role is CARRY]
    return _peak(graph, new, old)


def _peak(graph: KernelGraph, results: Sequence[KernelValue], replaced: Sequence[KernelValue] | None = None) -> int:
    """Count the most bytes that are live at once, beyond inputs and results.

    Args:
      replaced: the inputs of a body whose buffers its results take; None: results have buffers of their own.
    """
    results = list(dict.fromkeys([v.source for v in results])) if replaced is None else [v.source for v in results]
    order = _scheduled(graph.fuse(set(results)))
    joined = _join_buffers(order, set(results))
    values = [v for kernel in order for v in kernel.writes if v.nbytes and v not in joined]
    if replaced is None:
        elsewhere = {*results, *_placed_in([v for v in results if v.maker], [v for v in values if v not in results])}
    else:
        pairs = [(old, new, new.maker) for old, new in zip(replaced, results)]
        elsewhere = {new for old, new, maker in pairs if maker and _is_done_before(old, maker, order)}
    stored = [v for v in values if v not in elsewhere]
    steps = [0] * (len(order) + 2)
    for v in stored:
        steps[v.begin] += v.nbytes
        steps[v.end + 1] -= v.nbytes
    return max([live + kernel.inner for live, kernel in zip(accumulate(steps), order)], default=0)


def _scheduled(kernels: Sequence[FusedKernel]) -> list[FusedKernel]:
    """Order kernels breadth-first."""
    users: dict[FusedKernel, list[FusedKernel]] = {kernel: [] for kernel in kernels}
    waits: dict[FusedKernel, int] = {}
    for kernel in kernels:
        makers = dict.fromkeys([v.maker for v in kernel.leaves if v.maker])
        waits[kernel] = len(makers)
        for maker in makers:
            users[maker].append(kernel)
    ready = deque([kernel for kernel in kernels if not waits[kernel]])
    order: list[FusedKernel] = []
    while ready:
        kernel = ready.popleft()
        kernel.time = len(order)
        order.append(kernel)
        for user in users[kernel]:
            waits[user] -= 1
            if not waits[user]:
                ready.append(user)
    return order


def _join_buffers(order: Sequence[FusedKernel], results: Collection[KernelValue]) -> set[KernelValue]:
    """Set when values begin and end; return those that give their buffers to a later value, which begins with them.

    Results have buffers of their own.
    """
    for kernel in order:
        for v in kernel.writes:
            v.begin = v.end = kernel.time
        for v in kernel.leaves:
            v.end = kernel.time
    for v in results:
        v.end = len(order)
    found: set[KernelValue] = set()
    for kernel in order:
        pairs = kernel.paired or _in_place(kernel, results)
        for old, new in [(old.source, new) for old, new in pairs]:
            is_free = old.maker is not None and old.maker.stored and old not in found and old not in results
            if is_free and (not kernel.paired or _is_done_before(old, kernel, order)):
                new.begin = old.begin
                found.add(old)
    return found


def _in_place(kernel: FusedKernel, apart: Collection[KernelValue]) -> list[tuple[KernelValue, KernelValue]]:
    """Pair what a kernel reads last with what it writes, element by element; what is only reshaped is written apart."""
    free = [v for v, same in kernel.leaves.items() if same and v.maker and v.end == kernel.time]
    found: list[tuple[KernelValue, KernelValue]] = []
    for y in kernel.writes:
        if y not in apart and not (y.readers and all(reader.how == "reshape" for reader in y.readers)):
            x = next((x for x in free if x.nbytes == y.nbytes), None)
            if x is not None:
                free.remove(x)
                found.append((x, y))
    return found


def _is_done_before(v: KernelValue, kernel: FusedKernel, order: Sequence[FusedKernel]) -> bool:
    """Tell whether all kernels that read a value must run before another one, or are it."""
    before, left = {kernel}, [kernel]
    while left:
        for x in left.pop().leaves:
            if x.maker and x.maker not in before:
                before.add(x.maker)
                left.append(x.maker)
    return all(other in before for other in order if v in other.leaves)


def _placed_in(results: Sequence[KernelValue], values: Sequence[KernelValue]) -> set[KernelValue]:
    """Place values in the buffers of results that are computed after they are done, the largest first."""
    taken = {r: [r] for r in sorted(results, key=lambda r: -r.nbytes)}
    found: set[KernelValue] = set()
    for v in sorted(values, key=lambda v: -v.nbytes):
        for r, there in taken.items():
            if r.nbytes < v.nbytes:
                break
            if all(v.end < other.begin or other.end < v.begin for other in there):
                there.append(v)
                found.add(v)
                break
    return found
