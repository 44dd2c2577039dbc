"""Interrupts: exceptions that signal handlers raise, as Ctrl-C's does, at any moment.

That they arrive, end nothing but what was running, and leave everything as it was: the next call works.
"""

import contextvars
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.lowering.xla_workarounds.uninterrupted import call_uninterrupted
from tapeless.tracer import core
from tests.faults.moments import Interrupt, chosen, count, interrupt
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


LOADING_THE_SIMPLIFIER = """
import numpy as np
import tapeless as tl
from tapeless.interpreters import writer

entry, left = writer.Simplification, iter(range(20))

def interrupted(*args):
    if next(left, None) is None:
        raise KeyboardInterrupt
    return entry(*args)

writer.Simplification = interrupted
f, x = tl.jit(lambda x: x * 1), np.ones(2)
try:
    f(x)
except KeyboardInterrupt:
    print(len(writer.rules))
writer.Simplification = entry
assert "multiply" not in f.lower(x).as_text()
print(f(x))
"""


def test_an_interrupted_import_of_the_simplifier_is_begun_again():
    assert run(LOADING_THE_SIMPLIFIER) == "20\n[1. 1.]\n"


def test_a_call_that_is_not_interrupted_is_made_on_another_thread():
    here = threading.get_ident()
    assert call_uninterrupted(lambda x, y: (threading.get_ident() != here, x + y), 1, y=2) == (True, 3)


def test_what_such_a_call_raises_is_raised():
    def fails() -> None:
        raise LookupError("for a reason")

    with pytest.raises(LookupError, match="for a reason") as raised:
        call_uninterrupted(fails)
    assert "fails" in [entry.name for entry in raised.traceback]


def test_without_another_thread_the_call_is_made_here(monkeypatch: pytest.MonkeyPatch):
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", start)
    assert call_uninterrupted(threading.get_ident) == threading.get_ident()


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


# ---- at any moment


def _numbers() -> Any:
    return np.linspace(0.1, 1.0, 4, dtype=np.float32)


def _loss() -> Callable[[Any], Any]:
    """A new function each time, so that it is traced."""
    return lambda x: tnp.sum(tnp.sin(x) * tnp.cumsum(x) @ tnp.outer(x, x))


def _with_rule() -> Any:
    f = tl.custom_vjp(lambda x: tnp.sin(x))
    f.defvjp(lambda x: (tnp.sin(x), x), lambda x, ct: (ct * tnp.cos(x),))
    return lambda x: tnp.sum(f(x))


def _loop(x: Any) -> Any:
    return tnp.sum(lax.scan(lambda c, y: (c * tnp.sin(y), c + y), x, tnp.arange(3.0))[0])


def _branch(x: Any) -> Any:
    return lax.cond(x[0] > 0, lambda: tnp.sum(x * 2), lambda: tnp.sum(x))


def _calling(x: Any) -> Any:
    return tl.pure_callback(lambda v: np.asarray(v) * 2, tl.ShapeDtypeStruct((4,), np.float32), x)


def _traced(transform: Callable[[Any], Any]) -> Callable[[], str]:
    return lambda: str(tl.make_jaxpr(transform(_loss()))(_numbers()))


def _rows() -> np.ndarray[Any, Any]:
    return np.stack([_numbers(), -_numbers()])


PROGRAMS: dict[str, Callable[[], Any]] = {
    "eager": lambda: _loss()(tnp.asarray(_numbers())),
    "eager gradient": lambda: tl.grad(_loss())(_numbers()),
    "jit": lambda: tl.jit(_loss())(_numbers()),
    "lower": lambda: tl.jit(tl.grad(_loss())).lower(_numbers()).as_text(),
    "grad": _traced(tl.grad),
    "jvp": _traced(lambda f: lambda x: tl.jvp(f, (x,), (x,))),
    "hessian": _traced(tl.hessian),
    "checkpoint": _traced(lambda f: tl.grad(tl.checkpoint(f))),
    "vmap": lambda: str(tl.make_jaxpr(tl.vmap(tl.grad(_loss()), axis_name="i"))(_rows())),
    "collective": lambda: str(tl.make_jaxpr(tl.vmap(lambda x: lax.psum(x, "i"), axis_name="i"))(_rows())),
    "custom_vjp": lambda: str(tl.make_jaxpr(tl.grad(_with_rule()))(_numbers())),
    "scan": lambda: str(tl.make_jaxpr(tl.grad(lambda x: _loop(x)))(_numbers())),
    "vmap of cond": lambda: str(tl.make_jaxpr(tl.vmap(tl.grad(lambda x: _branch(x))))(_rows())),
    "callback": lambda: tl.jit(lambda x: _calling(x))(_numbers()),
    "linearize": lambda: tl.linearize(_loss(), _numbers())[1](_numbers()),
}


# What is raised in a destructor or a callback of weak references Python reports, and goes on.
ignore_unraisable = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@ignore_unraisable
@pytest.mark.parametrize("name", PROGRAMS)
def test_interrupted_at_any_moment(name: str):
    """While the exception is still there, which keeps every frame alive, all is as before and the same call works."""
    f = PROGRAMS[name]
    expected, before = np.asarray(f()).tolist(), _state()
    for moment in chosen(f, 6):
        try:
            interrupt(f, moment)
        except Interrupt as error:
            assert _state() == before, error.__traceback__
            assert np.asarray(f()).tolist() == expected
    assert np.asarray(f()).tolist() == expected


def _state() -> dict[str, Any]:
    """All that is set for this thread, but for what is set to what it would be."""
    return {var.name: value for var, value in contextvars.copy_context().items() if var.name not in _harmless(value)}


def _harmless(value: Any) -> tuple[str, ...]:
    """Variables that are as good as unset, if they have this value."""
    if value is core.bottom_trace():
        return ("trace",)
    return ("axes", "source", "mapped axis", "converting", "exploration") if not value else ()


@ignore_unraisable
def test_what_a_callback_is_interrupted_with_is_raised():
    """Also before it has begun, when jaxlib has of the exception no more than its text."""
    f, x = tl.jit(lambda x: _calling(x)), tnp.asarray(_numbers())
    for _ in range(3):  # the code of a call is written at the second, for those to come
        f(x)
    arrived, moments = 0, count(lambda: f(x))
    for moment in range(1, moments + 1):
        try:
            interrupt(lambda: f(x), moment, KeyboardInterrupt("now"))
        except KeyboardInterrupt:
            arrived += 1
    assert moments - 2 <= arrived  # a call may be shorter than the first
    assert f(x).tolist() == (2 * _numbers()).tolist()
