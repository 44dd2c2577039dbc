"""Making a program shorter that disagrees: as long as it does so in the same way, parts of it go.

Tried in turn, until nothing helps: leave out results, or take what they are made of; replace a statement's results by
arguments; put nested functions' bodies one level up; leave out arguments that are not read; make sizes smaller.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from tests.fuzzing.program import Block, Program, Statement, Var, walk

Disagrees = Callable[[Program], bool]


def shrink(program: Program, disagrees: Disagrees, attempts: int = 150) -> Program:
    """The shortest program that was found; `disagrees` is asked at most `attempts` times."""
    left = attempts
    better = True
    while better and left > 0:
        better = False
        for candidate in candidates(program):
            left -= 1
            if left < 0:
                break
            if disagrees(candidate):
                program, better = candidate, True
                break
    return program


def candidates(program: Program) -> Iterator[Program]:
    """Programs that are a little shorter, the boldest first."""
    yield from fewer_results(program)
    yield from earlier_results(program)
    for pieces in (4, 2):
        yield from fewer_statements(program, pieces)
    yield from (without(program, {k}) for k in range(program.size()))
    yield from unnested(program)
    yield from smaller(program)


def fewer_results(program: Program) -> Iterator[Program]:
    if len(program.results) > 1:
        yield from (cleaned(replace(program, results=(v,))) for v in program.results)
        n = len(program.results)
        if n > 2:
            yield from (
                cleaned(replace(program, results=program.results[:k] + program.results[k + 1 :])) for k in range(n)
            )


def earlier_results(program: Program) -> Iterator[Program]:
    """What a result is made of, in its place."""
    made = {v: s for s in program.statements for v in s.outs}
    for k, v in enumerate(program.results):
        for operand in made[v].operands if v in made else ():
            if operand in made:
                yield cleaned(replace(program, results=(*program.results[:k], operand, *program.results[k + 1 :])))


def fewer_statements(program: Program, pieces: int) -> Iterator[Program]:
    """A half or a quarter of all statements at once."""
    n = program.size()
    step = -(-n // pieces)
    if step > 1:
        for start in range(0, n, step):
            yield without(program, set(range(start, min(start + step, n))))


def without(program: Program, gone: set[int]) -> Program:
    """The program in which these statements (numbered as `walk` goes) are arguments."""
    statements = list(walk(program.statements))
    lost = {v for k, s in enumerate(statements) if k in gone for v in s.outs}
    read = {v for s in statements for v in s.operands} | {v for s in statements for b in s.blocks for v in b.results}
    replaced = {v: substitute(program, v) for v in lost if v in read or v in program.results}
    made = edited(program, {id(s) for k, s in enumerate(statements) if k in gone}, replaced)
    fresh = [v for v in dict.fromkeys(replaced.values()) if v not in program.args]
    return cleaned(replace(made, args=(*made.args, *fresh)))


def substitute(program: Program, v: Var) -> Var:
    """An argument of this type: one that there is, or a new one."""
    for arg in program.args:
        if arg.same_type(v):
            return arg
    return Var("y" + v.name, v.shape, v.dtype, min(v.bound, 4.0) if v.kind in "fc" else 3.0)


def edited(program: Program, gone: set[int], replaced: dict[Var, Var]) -> Program:
    def variables(vs: Sequence[Var]) -> tuple[Var, ...]:
        return tuple(replaced.get(v, v) for v in vs)

    def block(b: Block) -> Block:
        return replace(b, statements=all_of(b.statements), results=variables(b.results))

    def all_of(statements: Sequence[Statement]) -> tuple[Statement, ...]:
        return tuple(
            replace(s, operands=variables(s.operands), blocks=tuple(map(block, s.blocks)))
            for s in statements
            if id(s) not in gone
        )

    return replace(program, statements=all_of(program.statements), results=variables(program.results))


def cleaned(program: Program) -> Program:
    """Without statements whose results nobody reads, and arguments nobody reads."""
    while True:
        statements = list(walk(program.statements))
        read = {v for s in statements for v in s.operands} | {
            v for s in statements for b in s.blocks for v in b.results
        }
        read |= set(program.results)
        dead = {id(s) for s in statements if not read.intersection(s.outs)}
        if not dead:
            kept = tuple(v for v in program.args if v in read)
            return replace(program, args=kept or program.args[:1])
        program = edited(program, dead, {})


def unnested(program: Program) -> Iterator[Program]:
    """A statement with nested functions replaced by the statements of one of them, its parameters by arguments."""
    for statement in walk(program.statements):
        for block in statement.blocks:
            yield from lifted(program, statement, block)


def lifted(program: Program, statement: Statement, block: Block) -> Iterator[Program]:
    params = {v: substitute(program, v) for v in block.params}
    results = {o: r for o, r in zip(statement.outs, block.results) if o.same_type(r)}
    others = {o: substitute(program, o) for o in statement.outs if o not in results}

    def spliced(statements: Sequence[Statement]) -> tuple[Statement, ...]:
        made: list[Statement] = []
        for s in statements:
            if s is statement:
                made += block.statements
            else:
                made.append(replace(s, blocks=tuple(replace(b, statements=spliced(b.statements)) for b in s.blocks)))
        return tuple(made)

    opened = replace(program, statements=spliced(program.statements))
    made = edited(edited(opened, set(), {**results, **others}), set(), params)
    fresh = [v for v in dict.fromkeys((*params.values(), *others.values())) if v not in program.args]
    yield cleaned(replace(made, args=(*made.args, *fresh)))


def smaller(program: Program) -> Iterator[Program]:
    """One size replaced by a smaller one, wherever the number stands; some of what comes out cannot be traced."""
    sizes = sorted({n for v in program.args for n in v.shape if n > 1}, reverse=True)
    for n in sizes:
        yield from (resized(program, n, m) for m in dict.fromkeys((1, 2, *parts(n), n - 1)) if m < n)


def parts(n: int) -> tuple[int, ...]:
    """Sizes between, of a long axis, in whose neighbourhood a fault may begin: a bisection is made of them."""
    return (n // 2, n - n // 4, n - n // 16, n - n // 64) if n > 16 else ()


def resized(program: Program, n: int, m: int) -> Program:
    pattern = re.compile(rf"(?<![\w.{{]){n}(?![\w.}}])")
    changed: dict[Var, Var] = {}

    def variable(v: Var) -> Var:
        if v not in changed:
            changed[v] = replace(v, shape=tuple(m if k == n else k for k in v.shape))
        return changed[v]

    def block(b: Block) -> Block:
        return replace(
            b,
            params=tuple(map(variable, b.params)),
            statements=tuple(map(statement, b.statements)),
            results=tuple(map(variable, b.results)),
        )

    def statement(s: Statement) -> Statement:
        return replace(
            s,
            outs=tuple(map(variable, s.outs)),
            text=pattern.sub(str(m), s.text),
            operands=tuple(map(variable, s.operands)),
            blocks=tuple(map(block, s.blocks)),
        )

    return replace(
        program,
        args=tuple(map(variable, program.args)),
        statements=tuple(map(statement, program.statements)),
        results=tuple(map(variable, program.results)),
    )


def same_way(judged: Callable[[Program], Any], kind: tuple[str, str, str], program: Program) -> Disagrees:
    """Whether a program disagrees in this way, and in none that `program` does not."""
    kinds = {d.kind() for d in judged(program).disagreements}

    def disagrees(candidate: Program) -> bool:
        try:
            found = {d.kind() for d in judged(candidate).disagreements}
        except Exception:
            return False
        return kind in found and found <= kinds

    return disagrees
