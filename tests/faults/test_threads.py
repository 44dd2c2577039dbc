"""Sixteen threads at once: what they share are the tables in which programs, types and structures are remembered."""

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.tracer.rules import Rules
from tapeless.tracer.types import ShapedArray
from tests.faults.processes import run

THREADS = 16


@pytest.fixture(autouse=True)
def switching() -> Iterator[None]:
    """Threads take turns a hundred times as often as usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(before / 100)
    yield
    sys.setswitchinterval(before)


def together(work: Callable[[int], None], threads: int = THREADS) -> None:
    """Call `work` with its number in every thread at the same time. Raises: what the first thread to fail raises."""
    errors: list[BaseException] = []
    start = threading.Barrier(threads)

    def begin(i: int) -> None:
        start.wait()
        try:
            work(i)
        except BaseException as error:
            errors.append(error)

    started = [threading.Thread(target=begin, args=(i,)) for i in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    if errors:
        raise errors[0]


def _doubled_sine(decorate: Callable[[Any], Any]) -> Any:
    return decorate(lambda x: tnp.sin(x) * 2)


def _ruled() -> tuple[Any, Any]:
    """The function under rules of its own, which each thread is the first to use."""
    reverse, forward = _doubled_sine(tl.custom_vjp), _doubled_sine(tl.custom_jvp)
    reverse.defvjp(lambda x: (tnp.sin(x) * 2, x), lambda x, ct: (2 * ct * tnp.cos(x),))
    forward.defjvp(lambda p, t: (tnp.sin(p[0]) * 2, 2 * t[0] * tnp.cos(p[0])))
    return reverse, forward


def _in_64_bits(x: Any) -> Any:
    with tl.enable_x64():
        assert tnp.ones(3).dtype == np.float64
    assert tnp.ones(3).dtype == np.float32
    return 2 * np.cos(x)


def _shared() -> list[Callable[[Any], Any]]:
    """Derivatives of 2 sin(x) by objects that all threads share."""
    reverse, forward = _ruled()
    jitted = tl.jit(tl.grad(lambda x: tnp.sum(tnp.sin(x) * 2)))
    checkpointed = tl.checkpoint(lambda x: tnp.sum(tnp.sin(x) * 2))
    return [
        jitted,
        tl.grad(lambda x: tnp.sum(reverse(x))),
        tl.grad(lambda x: tnp.sum(forward(x))),
        tl.grad(checkpointed),
        lambda x: tl.vmap(tl.grad(_doubled_sine(lambda f: f)))(x),
        lambda x: tl.jit(tl.grad(lambda x: lax.scan(lambda c, y: (c + 2 * tnp.sin(y), None), 0.0, x)[0]))(x),
        lambda x: tl.linearize(lambda x: tnp.sin(x) * 2, x)[1](np.ones_like(x)),
        lambda x: tl.grad(lambda tree: tnp.sum(2 * tnp.sin(tree["a"][0])))({"a": [x], f"b{len(x)}": ()})["a"][0],
        _in_64_bits,
    ]


def test_tracing_compiling_and_differentiating_at_once():
    """Functions, shapes and structures are new to all threads at the same moments."""
    derivatives = _shared()

    def work(i: int) -> None:
        for n in range(1, 5):
            for k in range(len(derivatives)):
                x = np.linspace(0.1, 1.0, n, dtype=np.float32)
                found = derivatives[(i + k) % len(derivatives)](x)
                np.testing.assert_allclose(np.asarray(found), 2 * np.cos(x), rtol=1e-5)

    together(work)


def test_one_type_is_one_object_in_all_threads():
    made: list[list[Any]] = [[] for _ in range(THREADS)]

    def work(i: int) -> None:
        made[i] += [ShapedArray((n, 7, 1), np.dtype(np.int8)) for n in range(2000)]

    together(work)
    assert all(x is each[0] for each in zip(*made) for x in each)


def test_forgetting_while_others_compute():
    def work(i: int) -> None:
        for k in range(30):
            if i == 0:
                tl.clear_caches()
            else:
                assert tl.jit(lambda x: x + i)(np.float32(k)) == k + i
                assert float(tnp.asarray(np.float32(k)) * 2) == 2 * k

    together(work, 4)


# The platform is found, its client made and LAPACK loaded by whoever comes first.
FIRST_USE = """
import threading
import numpy as np
import tapeless as tl, tapeless.numpy as tnp

start, right = threading.Barrier(16), []

def work(i):
    start.wait()
    a = np.eye(3, dtype=np.float32) * (i + 1)
    right.append(bool(np.allclose(tnp.linalg.solve(a, np.ones(3, np.float32)), 1 / (i + 1))))
    right.append(len(tl.devices()) == 1)

threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sum(right))
"""


def test_first_use_in_all_threads():
    assert run(FIRST_USE) == "32\n"


def test_reading_tables_while_others_add_to_them():
    """Explanations of traces, settings of programs and tables of rules list what other threads add."""
    jitted, rules = tl.jit(lambda x: x + 1), Rules("listed", "rule()", absent="nothing")

    def work(i: int) -> None:
        for n in range(40):
            with tl.config.scope(default_bits=64 if n % 2 else 32, explain_cache_misses=True):
                jitted.trace(np.zeros((i + 1, n), np.float32))
            for each in range(50):
                rules[f"{i} {n} {each}"] = str
            assert sum(1 for _ in rules) >= 50 * n

    together(work, 6)
