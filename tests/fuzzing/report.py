"""A disagreement as a program that runs on its own."""

from typing import Any

from tests.fuzzing.modes import Case
from tests.fuzzing.program import Var

HEADER = """import ml_dtypes
import numpy as np

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax

tl.enable_x64(True)
"""
CALLS = {
    "eager": "f(*args)",
    "jit": "tl.jit(f)(*args)",
    "jvp jit": "tl.jit(lambda xs, ts: tl.jvp(g, (xs,), (ts,))[1])(xs, ts)",
    "jvp eager": "tl.jvp(g, (xs,), (ts,))[1]",
    "linearize jit": "tl.jit(lambda xs, ts: tl.linearize(g, xs)[1](ts))(xs, ts)",
    "linearize eager": "tl.linearize(g, xs)[1](ts)",
    "vjp jit": "tl.jit(lambda xs, cts: tl.vjp(g, xs)[1](cts)[0])(xs, cts)",
    "vjp eager": "tl.vjp(g, xs)[1](cts)[0]",
}


def literal(x: Any, v: Var) -> str:
    """An array as text."""
    return f"tnp.array({x.tolist()!r}, '{v.dtype}')" + (f".reshape{v.shape}" if 0 in v.shape else "")


def script(case: Case, modes: list[str]) -> str:
    """The program with its arguments, and a line for each mode that disagreed."""
    program = case.program
    lines = [HEADER, program.source(), ""]
    lines += [f"{v.name} = {literal(x, v)}" for v, x in zip(program.args, case.args)]
    names = [v.name for v in program.args]
    smooth = [program.args[i] for i in case.smooth]
    inexact = [i for i, v in enumerate(program.results) if v.kind in "fc"]
    lines.append(f"args = [{', '.join(names)}]")
    lines.append("print('eager', f(*args))")
    if any(m not in ("eager", "jit", "vmap") for m in modes):
        lines.append(f"xs = [{', '.join(v.name for v in smooth)}]")
        lines.append(f"ts = [{', '.join(literal(t, v) for t, v in zip(case.ts, smooth))}]")
        results = [v for v in program.results if v.kind in "fc"]
        lines.append(f"cts = [{', '.join(literal(t, v) for t, v in zip(case.cts, results))}]")
        given = ", ".join(f"xs[{case.smooth.index(i)}]" if i in case.smooth else names[i] for i in range(len(names)))
        lines.append(f"g = lambda xs: [f({given})[i] for i in {inexact}]")
    lines += [f"print({m!r}, {CALLS[m]})" for m in dict.fromkeys(modes) if m in CALLS and m != "eager"]
    return "\n".join(lines)
