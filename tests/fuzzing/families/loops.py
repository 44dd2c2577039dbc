"""Control flow: loops and branches, whose bodies are programs that read what is around them and write carries."""

from collections.abc import Sequence

from tests.fuzzing.builder import Builder, Unfit
from tests.fuzzing.program import Block, Statement, Var
from tests.fuzzing.sizes import MOST, STEPS

CHECKPOINTS = ("", "", ", checkpoint=2", ', checkpoint="sqrt"', ', checkpoint="log"')  # how reverse mode keeps states
SLOTS = ("", "", ", checkpoints=1", ", checkpoints=2")  # of which fewer than there are steps


def carries(b: Builder) -> list[Var]:
    """One to three values to carry; rather arrays, which bodies write into."""
    around = [v for v in b.locals if v.kind == "f" and v.name.startswith("p")]
    first = b.choice(around) if around and b.chance(0.7) else b.pick("f", least=b.choice((0, 1, 1)))
    more = [b.pick("ffi") for _ in range(b.choice((0, 1, 1, 2)))]
    return list({v.name: v for v in (first, *more)}.values())


def inside(b: Builder, params: Sequence[Var], closed: bool = False, times: int = 1) -> Builder:
    if b.depth >= b.session.profile.depth:
        raise Unfit
    child = b.nested(params, closed, times)
    child.body()
    return child


COUPLED = ("{0} + {1}", "{0} + .3 * {1}", "{0} - {1} * {1}", "{1} - {0}", "tnp.where({1} > .0173, {0}, {1})")
COUPLED_PARTS = (
    "{0}.at[0].add({1}[-1])",
    "{0}.at[-1].set({1}[0])",
    "lax.dynamic_update_slice({0}, {1}, ({2},) + (0,) * ({0}.ndim - 1))",
)


def coupled(child: Builder) -> None:
    """Read what the body around carries, into what this one carries: loops in loops that share buffers."""
    outer = child.sees
    mine = [v for v in child.locals if v.kind == "f" and v.name.startswith("p")]
    theirs = [v for v in outer.locals if v.kind == "f" and v.name.startswith("p")] if outer else []
    pairs = [(p, v) for p in mine for v in theirs if p.dtype == v.dtype and v.shape in (p.shape, ())]
    if not pairs or child.chance(0.4):
        return
    p, v = child.choice(pairs)
    if v.shape and child.chance(0.4):
        child.emit(child.choice(COUPLED_PARTS), p, v, child.pick("i", ndim=0), feature="coupled.part")
    else:
        child.emit(child.choice(COUPLED), p, v, bound=p.bound + v.bound * max(1.0, v.bound), feature="coupled")


def steps(b: Builder) -> int:
    """The most that a loop takes along an axis."""
    return STEPS if b.session.extent.is_large else 5


def finished(child: Builder, targets: Sequence[Var]) -> list[Var]:
    """New values for what is carried."""
    coupled(child)
    return [child.like(p, least_bound=2.0) for p in targets]


def names(variables: Sequence[Var]) -> str:
    return "(" + "".join(f"{v.name}, " for v in variables).rstrip() + ")"


def holes(n: int, first: int = 0) -> str:
    return "(" + "".join(f"{{{first + k}}}, " for k in range(n)).rstrip() + ")"


def targets(n: int, first: int = 0) -> str:
    return "(" + "".join(f"{{o{first + k}}}, " for k in range(n)).rstrip() + ")"


def assigned(b: Builder, variables: Sequence[Var]) -> tuple[tuple[Var, ...], str]:
    """New variables of these types, and the holes that they are assigned by."""
    outs = tuple(Var(b.session.name("v"), v.shape, v.dtype, max(v.bound, 2.0)) for v in variables)
    return outs, ", ".join(f"{{o{k}}}" for k in range(len(outs))) + ","


def close(b: Builder, feature: str, text: str, outs: tuple[Var, ...], operands: Sequence[Var], *blocks: Block) -> None:
    depth = 1 + max((height(block) for block in blocks), default=0)
    b.append(Statement(outs, text, tuple(operands), blocks, f"{feature}" + ("" if depth == 1 else f".depth{depth}")))


def height(block: Block) -> int:
    """How deep loops are nested in it."""
    inner = [1 + height(c) for s in block.statements for c in s.blocks]
    return max(inner, default=0)


def scan(b: Builder) -> None:
    inits = carries(b)
    xs = b.find(lambda v: v.kind in "fi" and v.ndim > 0 and 0 < v.shape[0] <= steps(b)) if b.chance(0.7) else None
    length = b.integer(0, 4) if xs is None and b.chance(0.3) else b.integer(1, 4)
    params = [b.param(v, bound=max(v.bound, 2.0)) for v in inits]
    row = None if xs is None else b.param(xs, xs.shape[1:])
    child = inside(b, params if row is None else [*params, row], times=1 if xs is None else xs.shape[0])
    ys = [child.last()] if b.chance(0.6) else []
    results = finished(child, params)
    unpack = f"{names(params)} = c"
    block = child.block(
        "step",
        f"c, {row.name if row else '_'}",
        unpack,
        f"{holes(len(results))}, {holes(len(ys), len(results))}",
        [*results, *ys],
    )
    n = length if xs is None else xs.shape[0]
    stacked = [Var("", (n, *y.shape), y.dtype, y.bound) for y in ys]
    outs, _ = assigned(b, [*inits, *stacked])
    left = f"{targets(len(inits))}, {targets(len(ys), len(inits))}"
    more = b.choice(("", "", ", reverse=True", f", unroll={b.integer(1, 3)}")) + b.choice(CHECKPOINTS)
    operand = f"None, length={length}" if xs is None else f"{{{len(inits)}}}"
    text = f"{left} = lax.scan({{b0}}, {holes(len(inits))}, {operand}{more})"
    close(b, "lax.scan", text, outs, inits if xs is None else [*inits, xs], block)


def fori(b: Builder) -> None:
    inits = carries(b)
    params = [b.param(v, bound=max(v.bound, 2.0)) for v in inits]
    counter = Var(b.session.name("p"), (), "int64", 4.0)
    child = inside(b, [*params, counter])
    results = finished(child, params)
    block = child.block("body", f"{counter.name}, c", f"{names(params)} = c", holes(len(results)), results)
    outs, left = assigned(b, inits)
    low = b.integer(0, 1)
    traced = b.find(lambda v: v.kind == "i" and v.ndim == 0) if b.chance(0.06) else None
    if traced is not None:
        b.session.forward_only = True
        end = f"{{b0}}, {holes(len(inits))}{b.choice(SLOTS)}"
        text = f"{left} = lax.fori_loop({low}, tnp.clip({{{len(inits)}}}, 0, 4), {end})"
        close(b, "lax.fori_loop.traced", text, outs, [*inits, traced], block)
        return
    more = b.choice((*CHECKPOINTS, *SLOTS))
    text = f"{left} = lax.fori_loop({low}, {low + b.integer(0, 4)}, {{b0}}, {holes(len(inits))}{more})"
    close(b, "lax.fori_loop", text, outs, inits, block)


def while_loop(b: Builder) -> None:
    """At most five steps, perhaps fewer for what is computed."""
    b.session.forward_only = True
    inits = carries(b)
    params = [b.param(v, bound=max(v.bound, 2.0)) for v in inits]
    counter = Var(b.session.name("p"), (), "int64", 5.0)
    child = inside(b, [*params, counter])
    results = finished(child, params)
    pattern = f"{counter.name}, {names(params)} = c"
    block = child.block("body", "c", pattern, f"{counter.name} + 1, {holes(len(results))}", results)
    data = f" & (tnp.sum(c[1][0]) < {b.number(1, 3)}131)" if b.chance(0.4) else ""
    outs, left = assigned(b, inits)
    test = f"lambda c: (c[0] < {b.integer(0, 4)}){data}"
    text = f"_, ({left}) = lax.while_loop({test}, {{b0}}, (0, {holes(len(inits))}){b.choice(SLOTS)})"
    close(b, "lax.while_loop", text, outs, inits, block)


def branches(b: Builder, n: int, operands: Sequence[Var], targets: Sequence[Var]) -> list[Block]:
    made = []
    for _ in range(n):
        params = [b.param(v) for v in operands]
        child = inside(b, params)
        results = [child.like(t, least_bound=2.0) for t in targets]
        made.append(child.block("branch", ", ".join(p.name for p in params), "", holes(len(results)), results))
    return made


def cond(b: Builder) -> None:
    operands = [b.pick("f"), *([b.pick("fi")] if b.chance(0.5) else [])]
    targets = [b.pick("f"), *([b.pick("f")] if b.chance(0.3) else [])]
    predicate = b.pick("fb", ndim=0)
    blocks = branches(b, 2, operands, targets)
    outs, left = assigned(b, targets)
    test = "{0}" if predicate.kind == "b" else f"{{0}} > {b.number(-0.5, 0.5)}171"
    if b.chance(0.2):
        test = f"tnp.sum({{1}}) < {b.number(-0.5, 0.5)}171"
    text = f"{left} = lax.cond({test}, {{b0}}, {{b1}}, {', '.join(f'{{{k + 1}}}' for k in range(len(operands)))})"
    close(b, "lax.cond", text, outs, [predicate, *operands], *blocks)


def switch(b: Builder) -> None:
    """By an index that may be out of range."""
    operands, targets = [b.pick("f")], [b.pick("f")]
    index = b.pick("i", ndim=0)
    n = b.integer(1, 3)
    blocks = branches(b, n, operands, targets)
    outs, left = assigned(b, targets)
    text = f"{left} = lax.switch({{0}}, [{', '.join(f'{{b{k}}}' for k in range(n))}], {{1}})"
    close(b, "lax.switch", text, outs, [index, *operands], *blocks)


def mapped(b: Builder) -> None:
    """lax.map or vmap over the first axis."""
    most = MOST if b.session.extent.is_large else 5
    xs = b.pick("f", least=1, where=lambda v: v.ndim > 0 and 0 < v.shape[0] <= most)
    row = b.param(xs, xs.shape[1:])
    child = inside(b, [row], times=xs.shape[0])
    y = child.last(most=3)
    if y.size > child.room:
        raise Unfit
    block = child.block("row", row.name, "", "{0}", [y])
    out = Var(b.session.name("v"), (xs.shape[0], *y.shape), y.dtype, y.bound)
    call = b.choice(("lax.map({b0}, {0})", "tl.vmap({b0})({0})", "lax.map({b0}, {0}, batch_size=2)"))
    if xs.shape[0] > steps(b):
        call = "tl.vmap({b0})({0})"
    close(b, call.split("(")[0], f"{{o0}} = {call}", (out,), [xs], block)


def called(b: Builder) -> None:
    """A body behind jit, checkpoint with a policy, or nothing."""
    operands = [b.pick("f"), *([b.pick("f")] if b.chance(0.5) else [])]
    params = [b.param(v) for v in operands]
    child = inside(b, params)
    y = child.last()
    block = child.block("part", ", ".join(p.name for p in params), "", "{0}", [y])
    out = Var(b.session.name("v"), y.shape, y.dtype, y.bound)
    policy = b.choice(("everything_saveable", "nothing_saveable", "dots_saveable", "dots_with_no_batch_dims_saveable"))
    wrap = b.choice(
        ("tl.jit({b0})", "tl.checkpoint({b0})", f"tl.checkpoint({{b0}}, policy=tl.checkpoint_policies.{policy})")
    )
    close(
        b,
        wrap.split("(")[0],
        f"{{o0}} = {wrap}({', '.join(f'{{{k}}}' for k in range(len(operands)))})",
        (out,),
        operands,
        block,
    )


FAMILIES = {
    "scan": scan,
    "fori": fori,
    "while": while_loop,
    "cond": cond,
    "switch": switch,
    "mapped": mapped,
    "called": called,
}
