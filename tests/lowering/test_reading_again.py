"""Elements that were read once are NumPy's at once, until the array is deleted or donated; values that come again."""

import gc
import sys
import weakref
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.lowering import host_values

DTYPES = [*"?bhilBHILefdFD", ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, ml_dtypes.int4]


def functions_called(call: Callable[[], Any]) -> list[str]:
    """Name the functions of Python that a call of it calls."""
    found: list[str] = []
    sys.setprofile(lambda frame, event, arg: found.append(frame.f_code.co_name) if event == "call" else None)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found[1:]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda t: np.dtype(t).name)
def test_what_was_read_is_read_again(dtype):
    for host in (np.array([[0, 1, 1], [1, 0, 1]], dtype), np.array(1, dtype), np.zeros((0, 3), dtype)):
        x = tl.device_put(host)
        for _ in range(3):
            found = np.asarray(x)
            assert (found.dtype, found.shape, found.tobytes()) == (host.dtype, host.shape, host.tobytes())
            assert not found.flags.writeable and np.array(x).flags.writeable
            np.testing.assert_array_equal(np.asarray(x, np.complex128), host.astype(np.complex128))


def test_reading_again_calls_nothing():
    x = tl.device_put(np.ones(3))
    first = np.asarray(x)
    assert functions_called(lambda: np.asarray(x)) == []
    assert np.shares_memory(first, np.asarray(x))


def test_a_view_lives_as_long_as_it_is_held_and_no_array_longer():
    x = tl.device_put(np.arange(3.0))
    view, gone = np.asarray(x), weakref.ref(x)
    again = np.asarray(x)
    gc.disable()  # nothing is to be collected
    try:
        x.delete()
        assert view.tolist() == again.tolist() == [0, 1, 2]
        with pytest.raises(RuntimeError, match="deleted"):
            np.asarray(x)
        del again, x
        assert gone() is None and view.tolist() == [0, 1, 2]
        other = tl.device_put(np.arange(3.0))
        np.asarray(other), np.asarray(other)
        buffer = weakref.ref(other.buf)
        del other
        assert buffer() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("how", ["jit", "compiled", "many"])
def test_an_array_that_was_read_is_donated(how):
    n = 120 if how == "many" else 1
    made = lambda: [tl.device_put(np.full(64, float(i), np.float32)) for i in range(n)]  # noqa: E731
    f: Any = tl.jit(lambda xs: [x + 1 for x in xs], donate_argnums=0)
    f = f.lower(made()).compile() if how == "compiled" else f
    for _ in range(4):
        xs = made()
        [(np.asarray(x), np.asarray(x)) for x in xs]
        addresses = {x.unsafe_buffer_pointer() for x in xs}
        ys = f(xs)
        assert all(x.is_deleted() for x in xs)
        assert {y.unsafe_buffer_pointer() for y in ys} == addresses
        assert [float(y[0]) for y in ys] == [i + 1.0 for i in range(n)]
        with pytest.raises(RuntimeError, match="donated"):
            np.asarray(xs[0])


@pytest.mark.filterwarnings("ignore:Some donated buffers were not usable")
def test_a_view_that_is_held_keeps_its_elements():
    f = tl.jit(lambda x: x + 1, donate_argnums=0)
    for _ in range(4):
        x = tl.device_put(np.arange(64.0))
        view = np.asarray(x)
        assert f(x)[0] == 1 and view[0] == 0


# ---- in --------------------------------------------------------------------------------------------------------


BITS = [
    np.array([0.0, 1.0]),
    np.array([-0.0, 1.0]),
    np.array([np.nan, 1.0]),
    np.array([np.nan, 1.0]) * -1,
    np.array([0.0, 1.0], np.float32),
    np.array([[0.0], [1.0]]),
    np.array([[0, 1], [2, 3]], np.int8),
    np.array([[0, 1], [2, 3]], np.int8, order="F"),
    np.array([[0, 1], [2, 3]], np.uint8),
    np.arange(6.0)[::2],
    np.arange(6.0)[::-2],
    np.broadcast_to(np.float64(2), (3,)),
    np.zeros((0, 2)),
    np.zeros((2, 0)),
    np.arange(3.0).astype(">f8"),
    np.arange(3, dtype=np.int16).astype(">i2"),
    np.array([1, 2], ml_dtypes.bfloat16),
    np.ones(2, bool),
]


@pytest.mark.parametrize("bits", [64, 32])
def test_equal_arrays_have_their_own_bits(bits):
    """Arrays alike in values, bytes or shapes, taken in turn by a program, an operation and a gradient."""
    with tl.config.scope(numpy_bits=bits):
        copied, x = tl.jit(lambda h: h), tnp.float32(1)
        for _ in range(4):
            for host in BITS:
                expected = tnp.asarray(host)
                found = copied(host)
                assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
                assert np.asarray(found).tobytes() == np.asarray(expected).tobytes()
                assert np.asarray(x * host).tobytes() == np.asarray(x * expected).tobytes()


def test_who_writes_to_an_array_has_another_value():
    jitted, x, host = tl.jit(lambda x, h: x + h), tnp.ones(3), np.zeros(3, np.float32)
    by = {
        "jit": lambda: jitted(x, host),
        "eager": lambda: x + host,
        "grad": lambda: tl.grad(lambda x: ((x + host) ** 2).sum() / 2)(x),
        "value_and_grad": lambda: tl.value_and_grad(lambda x, h: ((x + h) ** 2).sum() / 2)(x, host)[1],
        "vmap": lambda: tl.vmap(lambda h: 1 + h)(host),
    }
    for name, call in by.items():
        results = []
        for i in range(8):
            host[:] = i // 2
            results.append(call())
            host[:] = -1  # while the result may be pending
        assert [y.tolist() for y in results] == [[1.0 + i // 2] * 3 for i in range(8)], name


def test_values_that_never_come_again_are_not_kept():
    x, f = tnp.ones(3), tl.jit(lambda x, t: x * t)
    for i in range(3000):
        f(x, i / 7)
    before = len(tl.live_arrays())
    for i in range(3000, 6000):
        f(x, i / 7)
    assert len(tl.live_arrays()) <= before + 2
    assert [float(f(x, 0.5)[0]) for _ in range(3)] == [0.5] * 3


def test_arrays_that_are_kept_count_as_transfers():
    x, host = tnp.ones(3), np.ones(3, np.float32)
    f = tl.jit(lambda x, h: x + h)
    for _ in range(5):
        f(x, host), x + host
    with tl.transfer_guard_host_to_device("disallow"):
        for call in (lambda: f(x, host), lambda: x + host):
            with pytest.raises(RuntimeError, match="host to device"):
                call()
    assert (x + host).tolist() == [2.0] * 3


def test_a_kept_buffer_is_never_donated():
    f, host = tl.jit(lambda x: x + 1, donate_argnums=0), np.zeros(3, np.float32)
    g = tl.jit(lambda x: x + 1)
    for _ in range(6):
        assert f(host).tolist() == g(host).tolist() == f(2.5 * host).tolist() == [1.0] * 3
        assert float(f(2.5)) == float(g(2.5)) == 3.5


def test_float0_is_taken_at_each_call():
    zero, f = np.zeros(3, tl.dtypes.float0), tl.jit(lambda t, x: (t, x))
    for _ in range(4):
        t, x = f(zero, 1.0)
        assert t.dtype == tl.dtypes.float0 and float(x) == 1


def test_a_reader_that_found_nothing_seeks_again_later(monkeypatch):
    monkeypatch.setattr(host_values, "_UNSOUGHT", 5)
    aval = tnp.asarray(1.5).aval
    host_values.number_reader.cache_clear()
    read = host_values.number_reader(float, aval, tl.devices()[0])
    [read(i / 7) for i in range(65)]
    bufs = [read(0.25) for _ in range(9)]
    assert len({id(b) for b in bufs[:7]}) == 7 and bufs[6] is bufs[7] is bufs[8]
