"""XLA's figures of memory, beside the growth of a process: which of them hold, as their docstring says."""

import json
import os

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tests.lowering.processes import run_python

GROWTH = """
import gc, json
import tapeless as tl, tapeless.numpy as tnp

def kilobytes(field):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(field))

def loop(x):
    return tl.lax.scan(lambda c, _: (tnp.sin(c @ x), tnp.cos(c)), x, None, length=3)

x = tnp.full((1200, 1200), 1e-3)
PROGRAMS = {
    "products": (lambda x: x @ tnp.sin(x @ tnp.sin(x @ x)), ()),
    "fused": (lambda x: tnp.tanh(tnp.sin(x) * 2), ()),
    "stacked": (loop, ()),
    "branches": (lambda x: tl.lax.cond(x[0, 0] > 0, lambda x: x @ tnp.sin(x @ x), lambda x: x, x), ()),
    "donated": (lambda x: x + 1, (0,)),
}
found = {}
for name, (f, donated) in PROGRAMS.items():
    compiled = tl.jit(f, donate_argnums=donated).lower(x).compile()
    for _ in range(2):  # the second time, when threads have their stacks
        given = (x + 0).block_until_ready()
        gc.collect()
        open("/proc/self/clear_refs", "w").write("5")  # the peak starts anew
        before = kilobytes("VmRSS")
        results = tl.block_until_ready(compiled(given))
        grown = 1024 * (kilobytes("VmHWM") - before)
        del given, results
    memory = compiled.memory_analysis()
    found[name] = grown, memory.total_size_in_bytes - memory.argument_size_in_bytes, memory.peak_memory_in_bytes
print(json.dumps(found))
"""


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="needs Linux's /proc")
def test_the_total_is_what_the_process_grows_by():
    freed_at_once = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    found = json.loads(run_python(GROWTH, **freed_at_once))
    array = 4 * 1200**2
    wrong = {name: row for name, row in found.items() if abs(row[0] - row[1]) > 0.75 * array}  # threads pack matrices
    assert wrong == {}
    assert found["products"][1] == 2 * array and found["fused"][1] == array and found["donated"][1] == 0


def test_the_printed_form_says_what_holds():
    memory = tl.jit(lambda x: tnp.sum(x @ tnp.sin(x @ x))).lower(np.ones((100, 100), np.float32)).compile()
    analysis = memory.memory_analysis()
    lines = str(analysis).splitlines()
    assert lines[0] == "memory of a run on cpu"
    marked = {line.split()[0] for line in lines if "does not hold" in line}
    assert marked == {"generated_code_size_in_bytes", "peak_memory_in_bytes"}
    parts = analysis.argument_size_in_bytes + analysis.output_size_in_bytes + analysis.temp_size_in_bytes
    assert analysis.total_size_in_bytes == parts > 40_000 and f"{parts:,}" in str(analysis)
