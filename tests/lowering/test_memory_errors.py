"""Errors of programs that run out of memory: they name the largest values and their lines."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.lowering import free_memory
from tests.messages import place

HUGE = 1 << 22, 1 << 22  # 64 TiB of float32, more than any address space that a process gets


def copies(x):
    return tnp.sin(tnp.broadcast_to(x, HUGE))


def twice(x):
    return tl.lax.scan(lambda c, _: (c + 1, tnp.broadcast_to(c, HUGE)), x, None, 2)[1]


def with_gradient(x):
    return tl.value_and_grad(lambda x: (copies(x)[0, 0], copies(x)), has_aux=True)(x)


@pytest.mark.parametrize("f", [copies, twice, with_gradient])
@pytest.mark.parametrize("ahead", [False, True])
def test_the_largest_values_are_named(f, ahead):
    run = tl.jit(f)
    x = tnp.float32(1)
    if ahead:
        run = run.lower(x).compile()
    with pytest.raises(tl.errors.JaxRuntimeError, match=r"^RESOURCE_EXHAUSTED: Out of memory") as error:
        run(x)
    first, heading, value, *_, advice, _ = str(error.value).splitlines()
    assert first.endswith(" bytes.")
    assert heading.startswith("  The largest values of ") and heading.endswith("not all of which are there at once:")
    assert "float32[4194304,4194304] from " in value and int(value.split()[0].replace(",", "")) % (1 << 46) == 0
    assert (place(copies) if f is not twice else place(twice)).split(" at ")[1].split(":")[0] in value
    assert "tl.frontier(f, *args)" in advice


def test_other_errors_say_nothing_of_memory():
    def fails(x):
        raise ValueError("no")

    run = tl.jit(lambda x: tl.pure_callback(fails, x, x))
    with pytest.raises(Exception, match="no") as error:
        run(tnp.float32(1)).block_until_ready()
    assert "largest values" not in str(error.value)


# ---- budgets that would fit


WIDE = 1 << 28, 64  # 64 GiB of float32


def deep(w, key=None, depth=32):
    y = tnp.cos(tnp.arange(WIDE[0], dtype="float32"))[:, None] * w[0]
    for _ in range(depth):
        y = tnp.tanh(y @ w)
    return tnp.sum(y) if key is None else tnp.sum(y * tl.random.bernoulli(key, 0.5, (64,)))


def failing(run, *args, **kwargs):
    with pytest.raises(tl.errors.JaxRuntimeError, match=r"^RESOURCE_EXHAUSTED: Out of memory") as error:
        run(*args, **kwargs).block_until_ready()  # where it fails if it runs asynchronously
    return str(error.value)


def suggestion(text):
    return re.search(r"tl\.jit\((\w+), memory_budget=(.*)\) is predicted to need ([\d,]+) bytes", text)


@pytest.mark.parametrize("free", [None, 1 << 40, 1 << 30])
def test_a_budget_that_would_fit_is_named(free, monkeypatch):
    """It is what the frontier of the function says, for what is free when the program fails."""
    monkeypatch.setattr(free_memory, "free_bytes", lambda device: free)
    x, key = tnp.eye(64), tl.random.key(0)
    jitted = tl.jit(tl.grad(deep), static_argnames="depth")
    text = failing(jitted, x, key, depth=32)
    found = suggestion(text)
    name, budget, needed = found[1], found[2].strip("'"), int(found[3].replace(",", ""))
    frontier = tl.frontier(lambda x: deep(x, key), x)
    assert name == "gradient_of_deep" and frontier.least <= needed < 0.7 * frontier.rows[0].peak
    assert (needed <= 0.9 * free if free else True) or budget == "0"
    assert ("the least that a budget can reach" in text) is (budget == "0") is (free == 1 << 30)
    assert (f"and {free:,} are free" in text) if free else ("are free" not in text)
    # the gradient within it is what it says, and has no better advice
    within = tl.jit(tl.grad(deep), static_argnames="depth", memory_budget=int(budget) if budget == "0" else budget)
    sizes = within.lower(x, key, depth=32).compile().memory_analysis()
    assert sizes.temp_size_in_bytes <= 1.1 * needed
    if budget == "0":
        assert suggestion(failing(within, x, key, depth=32)) is None


def test_no_budget_is_named_where_none_is_known():
    x = tnp.eye(64)
    for f in (deep, tl.grad(deep, memory_budget=0.5)):
        assert suggestion(failing(tl.jit(f), x)) is None
    compiled = tl.jit(tl.grad(deep)).lower(x).compile()
    assert suggestion(failing(compiled, x))[1] == "gradient_of_deep"  # it keeps the function, which nobody else does


READ = """
import resource
from pathlib import Path
import numpy as np
import tapeless as tl, tapeless.numpy as tnp

def loss(ws, x):
    for w in ws:
        x = tnp.tanh(x @ w)
    return tnp.sum(x)

ws, x = [tnp.eye(64)] * 40, tnp.ones((16384, 64))
step = tl.jit(tl.value_and_grad(loss))
step.lower(ws, x).compile()
(line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmData")]
most = 1024 * int(line.split()[1]) + 96 * 2**20
resource.setrlimit(resource.RLIMIT_DATA, (most, most))
value, gradients = step(ws, x)
for read in (np.asarray, np.from_dlpack, float, repr, lambda x: x.block_until_ready()):
    try:
        read(value)
    except tl.errors.JaxRuntimeError as error:
        print(str(error).replace(chr(10), "|"), flush=True)
import os
os._exit(0)  # threads of XLA cannot end without memory
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="limits of Linux")
def test_reading_a_result_raises_the_same_error(tmp_path):
    """The runtime fails after the call has returned, and says no more than how many bytes it asked for."""
    program = tmp_path / "program.py"  # a file, so that the text of its lines is known
    program.write_text(READ)
    environment = {**os.environ, "TAPELESS_CACHE": "0"}
    done = subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, timeout=120)
    errors = done.stdout.splitlines()
    assert len(errors) == 5, done.stderr
    for text in errors:
        first, heading, value, *_, advice, _ = text.split("|")
        assert first.startswith("RESOURCE_EXHAUSTED: Out of memory allocating 1719")
        assert heading.startswith("  The largest values of value_and_gradient_of_loss")
        assert value.endswith("x = tnp.tanh(x @ w)") and "tl.frontier(f, *args)" in advice
        needed = int(suggestion(text)[3].replace(",", ""))
        assert 40_000_000 < needed < int(re.search(r"and ([\d,]+) are free", text)[1].replace(",", ""))
