"""A disagreement as a program that runs on its own."""

from typing import Any

from tests.fuzzing.modes import NAMED, Case, direction
from tests.fuzzing.program import Var, recipe
from tests.fuzzing.sizes import ELEMENTS

HEADER = """import ml_dtypes
import numpy as np

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax

tl.config.update("default_bits", 64)
"""


def literal(x: Any, v: Var, text: str = "") -> str:
    """An array as text, that of a large one is given."""
    if v.size > ELEMENTS:
        return f"tnp.array({text}, '{v.dtype}')"
    return f"tnp.array({x.tolist()!r}, '{v.dtype}')" + (f".reshape{v.shape}" if 0 in v.shape else "")


def call(mode: str) -> str | None:
    """The expression that a mode evaluates."""
    if mode.startswith("trace "):
        return f"tl.make_jaxpr(lambda xs: {mode[6:]})(xs)"
    how = NAMED[mode].how if mode in NAMED else None
    return how if isinstance(how, str) else None


def script(case: Case, modes: list[str]) -> str:
    """The program with its arguments, and a line for each mode that disagreed."""
    program = case.program
    lines = [HEADER, program.source(), ""]
    lines += [
        f"{v.name} = {literal(x, v, recipe(v, case.seed, program.among))}" for v, x in zip(program.args, case.args)
    ]
    names = [v.name for v in program.args]
    smooth = [program.args[i] for i in case.smooth]
    inexact = [i for i, v in enumerate(program.results) if v.kind in "fc"]
    lines.append(f"args = [{', '.join(names)}]")
    lines.append("print('eager', f(*args))")
    if any(m not in ("eager", "jit", "vmap") for m in modes):
        lines.append(f"xs = [{', '.join(v.name for v in smooth)}]")
        lines.append(f"ts = [{', '.join(literal(t, v, direction(v, case.seed + 1)) for t, v in zip(case.ts, smooth))}]")
        results = [v for v in program.results if v.kind in "fc"]
        lines.append(
            f"cts = [{', '.join(literal(t, v, direction(v, case.seed + 2)) for t, v in zip(case.cts, results))}]"
        )
        given = ", ".join(f"xs[{case.smooth.index(i)}]" if i in case.smooth else names[i] for i in range(len(names)))
        lines.append(f"g = lambda xs: [f({given})[i] for i in {inexact}]")
    lines += [f"print({m!r}, {how})" for m in dict.fromkeys(modes) if m != "eager" and (how := call(m))]
    return "\n".join(lines)
