"""Interrupts: exceptions that signal handlers raise, as Ctrl-C's does, at any moment.

That they arrive, end nothing but what was running, and leave everything as it was: the next call works.
"""

import threading

import pytest

from tapeless.lowering.uninterrupted import uninterrupted
from tests.faults.processes import run

# With one thread to compile on, the second compilation waits for the first, though nobody waits for either.
COMPILING = """
import signal, sys, threading
from tapeless.lowering import devices
from tapeless.lowering.array import device_put
from tapeless.lowering.compile import compile_module
from tapeless.tracer.types import ShapedArray

def module(n):
    head = "func.func public @main(%0: tensor<f32>) -> tensor<f32> {"
    lines = [f"%{i + 1} = stablehlo.{'sine' if i % 2 else 'tanh'} %{i} : tensor<f32>" for i in range(n)]
    return "\\n".join([head, *lines, f"return %{n} : tensor<f32> }}"])

def interrupt(*_):
    raise KeyboardInterrupt

def compiled(n):
    return compile_module(module(n), out_avals=[aval], device=device, use_cache=False)

aval, device, interrupted = ShapedArray((), "float32"), devices.devices("cpu")[0], 0
signal.signal(signal.SIGALRM, interrupt)
compiled(1)
for _ in range(6):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        compiled(300)
    except KeyboardInterrupt:
        interrupted += 1
assert compiled(1)(device_put(0.0))[0].tolist() == 0
print(interrupted)
"""


def test_interrupted_compilations_end_the_wait_and_not_the_process():
    """jaxlib 0.10.2 crashes here if it is the main thread that compiles: each time, on an idle machine as well."""
    assert run(COMPILING, PJRT_NPROC="1") == "6\n"


def test_a_call_that_is_not_interrupted_is_made_on_another_thread():
    here = threading.get_ident()
    assert uninterrupted(lambda x, y: (threading.get_ident() != here, x + y), 1, y=2) == (True, 3)


def test_what_such_a_call_raises_is_raised():
    def fails() -> None:
        raise LookupError("for a reason")

    with pytest.raises(LookupError, match="for a reason") as raised:
        uninterrupted(fails)
    assert "fails" in [entry.name for entry in raised.traceback]


def test_without_another_thread_the_call_is_made_here(monkeypatch: pytest.MonkeyPatch):
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", start)
    assert uninterrupted(threading.get_ident) == threading.get_ident()


# Almost all of the time garbage is collected: so that is when the interrupt comes.
COLLECTING = """
import gc, signal
import tapeless as tl

def interrupt(*_):
    raise KeyboardInterrupt

tl.numpy.ones(3) + 1
garbage = [[] for _ in range(10**6)]
signal.signal(signal.SIGALRM, interrupt)
arrived = 0
for _ in range(5):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.002)
        gc.collect()
        gc.collect()
    except KeyboardInterrupt:
        arrived += 1
print(arrived)
"""


def test_interrupts_while_garbage_is_collected_arrive():
    assert run(COLLECTING) == "5\n"
