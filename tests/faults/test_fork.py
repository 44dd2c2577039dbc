"""A process that is forked after something was computed says so, reads what is there, and ends in good order."""

import pytest

from tests.faults.processes import run

FORKING = """
import os, sys, time, warnings
import numpy as np
import tapeless as tl, tapeless.numpy as tnp

x = tnp.arange(3.0)
f = tl.jit(lambda x: x * 2)
f(x).block_until_ready()
warnings.simplefilter("ignore")

def in_child():
    %s

sys.stdout.flush()
pid = os.fork()
if pid == 0:
    try:
        print(in_child(), flush=True)
    except RuntimeError as error:
        print("refused" if "was forked after Tapeless was used" in str(error) else error, flush=True)
    sys.exit(3)
print("ended with", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), f(x).tolist())
"""


def forked(action: str) -> str:
    """What a child prints; if it hangs or crashes, or its parent cannot go on, the test fails."""
    printed, ended = run(FORKING % action, timeout=60).splitlines()
    assert ended == "ended with 3 [0.0, 2.0, 4.0]"
    return printed


@pytest.mark.parametrize(
    "action",
    [
        "return f(x)",
        "return x + x",
        "return tl.jit(lambda x: x + 3)(x)",
        "return tl.grad(lambda x: tnp.sum(x))(x)",
        "return tnp.asarray(np.ones(7))",
    ],
)
def test_computing_is_refused(action: str):
    assert forked(action) == "refused"


def test_arrays_are_read():
    assert forked("return x.tolist(), repr(x), x.item(2)") == (
        "([0.0, 1.0, 2.0], 'Array([0., 1., 2.], dtype=float32)', 2.0)"
    )


def test_functions_are_traced():
    assert forked("return tl.eval_shape(tl.grad(lambda x: tnp.sum(x)), np.ones(4, np.float32)).shape") == "(4,)"
