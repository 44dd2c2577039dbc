"""Calls of a jitted function whose code is written: they give what first calls give, and do no more than they must."""

import collections
import enum
import sys
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.compile import jit_cache
from tapeless.lowering import host_values, transfers
from tapeless.lowering.compile import Executable
from tapeless.lowering.xla_workarounds import compat
from tapeless.tracer import pytree
from tapeless.tracer.pytree.codegen import MISSED
from tapeless.tracer.types import ShapedArray

HOST = np.array([1.0, -2.0, 3.0], np.float32)


class Pair(NamedTuple):
    x: Any
    y: Any


class Derived(np.ndarray):
    """A NumPy array of a class of the user's own."""


@tl.tree_util.register_pytree_node_class
class Labelled:
    """A node whose auxiliary data are mutable."""

    def __init__(self, value: Any, labels: list[str]) -> None:
        self.value, self.labels = value, labels

    def tree_flatten(self) -> Any:
        return (self.value,), self.labels

    @classmethod
    def tree_unflatten(cls, labels: list[str], children: Any) -> Any:
        return cls(*children, labels)


# Arguments that are alike in one way or another.
VALUES: list[Any] = [
    *(0.0, -0.0, 1.0, float("nan"), 2.5, 1, 0, True, False, 2**31, 1j, complex(-0.0, 1.0), complex(0.0, 1.0)),
    *(np.float32(1), np.float32(0), np.float32(-0.0), np.float64(1), np.float16(1), np.bool(True)),
    *(np.int8(1), np.int32(1), np.int64(1), np.int64(2**40), np.uint32(1), np.uint32(2**31), np.complex64(1)),
    *(np.array(1.0), np.array(-0.0), np.array(1, np.int32), HOST, HOST.astype(np.float64), HOST.astype(">f4")),
    *(HOST[::-1], HOST[:2], np.stack([HOST, HOST]).T, HOST.reshape(3, 1), HOST.astype(np.int32), HOST > 0, HOST[:0]),
    *(HOST.view(Derived), HOST.astype(np.complex64), HOST.astype(tnp.bfloat16)),
    *(tnp.asarray(HOST), tnp.asarray(HOST[:2]), tnp.asarray(2.5), tnp.asarray(np.float32(2.5)), tl.random.key(0)),
    *(HOST.tolist(), [HOST], (HOST,), Pair(HOST, 1.0), Pair(1.0, HOST), {"a": HOST}, {"b": HOST}, {"a": 1.0}, [], None),
    *(collections.OrderedDict(a=HOST), Labelled(HOST, ["a"]), Labelled(HOST, ["b"]), Labelled(1.0, ["a"])),
]


def described(value: Any) -> Any:
    """Everything that can be seen of a result: structure, classes, types and bits."""
    leaves, tree = tl.tree.flatten(value)
    words = [tl.random.key_data(x) if tl.dtypes.issubdtype(x.dtype, tl.dtypes.prng_key) else x for x in leaves]
    kinds = [(type(x), x.shape, x.dtype, x.weak_type) for x in leaves]
    labels = value.labels if isinstance(value, Labelled) else None
    return str(tree), kinds, [np.asarray(x).tobytes() for x in words], labels


def outcome(call: Callable[[], Any]) -> Any:
    """Describe the result of a call, or its error."""
    try:
        return described(call())
    except (TypeError, OverflowError) as error:
        return type(error), str(error)


def called_with(x: Any) -> Any:
    return x


def outcome_of(known: Any, *args: Any, **kwargs: Any) -> Any:
    """Describe what code gives, or `MISSED`."""
    result = None

    def call() -> Any:
        nonlocal result
        result = known.call(args, kwargs)
        return None if result is MISSED else result

    found = outcome(call)
    return MISSED if result is MISSED else found


@pytest.mark.parametrize("settings", [{}, {"default_bits": 64}, {"numpy_bits": 32}], ids=str)
def test_code_for_one_argument_takes_no_other(settings):
    """Whatever code takes has the result, or the error, of a first call."""
    with tl.config.scope(**settings):
        f, known = tl.jit(lambda x: called_with(x)), []
        first = [outcome(lambda x=x: tl.jit(lambda x: called_with(x))(x)) for x in VALUES]
        for x, expected in zip(VALUES, first, strict=True):
            assert [outcome(lambda x=x: f(x)) for _ in range(4)] == [expected] * 4
            known += [call for call in f._programs.calls if call not in known]
        assert len(known) > 30
        for call in known:
            found = [outcome_of(call, x) for x in VALUES]
            assert not all(result is MISSED for result in found)
            assert all(result is MISSED or result == expected for result, expected in zip(found, first, strict=True))
            assert outcome_of(call) is outcome_of(call, 1.0, 1.0) is outcome_of(call, x=1.0) is MISSED


class Size(enum.Enum):
    """A static argument of an enumeration."""

    SMALL = 1


class Equal:
    """A static argument that may change."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equal) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)


STATICS: list[Any] = [
    *(1, 1.0, True, 0, 0.0, -0.0, False, float("nan"), 1j, "a", b"a", None, (), (1,), (1.0,), (True,), (0.0,), (-0.0,)),
    *(("a", (1,)), ("a", (True,)), frozenset([1]), Size.SMALL, np.float32, np.dtype("float32"), np.float32(1), len, tl),
    *(Equal(1), Equal(1), Equal(2), object(), range(3), (Equal(1),), tuple(iter([1])), np.int64(1)),
]


def test_code_for_one_static_argument_takes_no_other():
    """Only static arguments that are one key are served by the same code, and changed ones by none."""
    met: list[Any] = []

    def f(x: Any, how: Any) -> Any:
        met.append(how)
        return x + len(met)

    jitted, x = tl.jit(f, static_argnums=1), tl.device_put(HOST)
    by_name = tl.jit(f, static_argnames="how")
    expected = [described((jitted(x, how), jitted(x, how))[0]) for how in STATICS]
    for how, result in zip(STATICS, expected, strict=True):
        assert described(jitted(x, how)) == described(jitted(x, how)) == result
        (known,) = [call for call in jitted._programs.calls if outcome_of(call, x, how) is not MISSED]
        for other, wanted in zip(STATICS, expected, strict=True):
            assert outcome_of(known, x, other) in (MISSED, wanted)
        assert outcome_of(known, x, how) == result
        assert outcome_of(known, x) is outcome_of(known, x, [1]) is outcome_of(known, x, how=how) is MISSED
        named = [described(by_name(x, how=how)) for _ in range(4)]
        assert named == named[:1] * 4
    changing, n = Equal(7), len(met)
    jitted(x, changing), jitted(x, changing), jitted(x, changing)
    changing.value = 8
    jitted(x, changing)
    assert len(met) == n + 2


LARGE = 150  # leaves, for which code is written in another way


def test_code_for_many_leaves_takes_no_others():
    x = tl.device_put(HOST)
    f = tl.jit(lambda xs: [2 * x for x in xs])
    given = [*[x] * LARGE, HOST, 0.5]
    for _ in range(3):
        assert [described(y) for y in f(given)] == [*[described(2 * x)] * (LARGE + 1), described(2 * tnp.asarray(0.5))]
    (known,) = f._programs.calls
    assert known.call((given,), {}) is not MISSED
    for i, other in [
        (0, x[:2]),
        (LARGE - 1, x.astype("int32")),
        (3, [x]),
        (3, HOST),
        (LARGE, x),
        (LARGE + 1, 1),
        (9, None),
    ]:
        assert known.call(([*given[:i], other, *given[i + 1 :]],), {}) is MISSED
    assert known.call((given[1:],), {}) is MISSED


# ---- settings, deleted arrays, threads -------------------------------------------------------------------------


def scaled(x: Any, by: Any) -> Any:
    return x * by


def remembered(*args: Any) -> Any:
    """A jitted function with code for these arguments."""
    f = tl.jit(lambda x, by: scaled(x, by))
    for _ in range(3):
        f(*args)
    assert len(f._programs.calls) == 1
    return f


def test_settings_are_read_at_each_call():
    f = remembered(HOST, 2.0)
    infinite = np.full(3, np.nan, np.float32)
    with tl.config.scope(debug_nans=True), pytest.raises(FloatingPointError):
        f(infinite, 2.0)
    with tl.config.scope(no_execution=True), pytest.raises(RuntimeError):
        f(HOST, 2.0)
    with tl.transfer_guard_host_to_device("disallow"):
        with pytest.raises(RuntimeError):
            f(HOST, 2.0)
        with pytest.raises(RuntimeError):
            f(tl.device_put(HOST), 0.123)
    with tl.config.scope(default_bits=64):
        assert f(2.0, 2.0).dtype == np.float64
    with tl.config.scope(disable_jit=True):
        assert f(HOST, 2.0).shape == (3,)
    assert f(2.0, 2.0).dtype == np.float32 and np.isnan(f(infinite, 2.0)).any()
    tl.clear_caches()
    assert not f._programs.calls


def test_tracers_are_traced():
    f, x = remembered(HOST, 2.0), tl.device_put(HOST)
    assert float(tl.grad(lambda x: f(x, 2.0).sum())(x)[0]) == 2.0
    np.testing.assert_array_equal(tl.vmap(lambda y: f(x, y))(x), HOST[:, None] * HOST)
    assert "jit" in str(tl.make_jaxpr(lambda x: f(x, 2.0))(x))


def test_arrays_of_numpy_are_copied():
    f = remembered(np.ones(2**18, np.float32), 2.0)
    for n in range(8):
        x = np.full(2**18, n, np.float32)
        y = f(x, 2.0)
        x[:] = -1
        assert (np.asarray(y) == 2 * n).all()


def test_donated_arguments_are_given_up_and_no_others():
    x = lambda: tl.device_put(HOST)  # noqa: E731
    f, given = tl.jit(lambda x, by: scaled(x, by), donate_argnums=0), [x() for _ in range(4)]
    for y in given:
        np.testing.assert_array_equal(f(y, 2.0), 2 * HOST)
    assert len(f._programs.calls) == 1 and all(y.is_deleted() for y in given)
    with pytest.raises(RuntimeError, match=r"x, argument 0 of .* has been deleted or donated"):
        f(given[0], 2.0)
    shared = tl.jit(lambda x, by: scaled(x, by), donate_argnums=0)
    for _ in range(3):
        shared(x(), x())
    with pytest.raises(ValueError, match="are one array"):
        shared(*[x()] * 2)
    numbers = tl.jit(scaled, donate_argnums=0)  # equal numbers share their memory
    assert [float(numbers(2.0, 2.0)) for _ in range(5)] == [4.0] * 5
    hosts = tl.jit(scaled, donate_argnums=0)
    assert [hosts(HOST, 2.0).tolist() for _ in range(5)] == [(2 * HOST).tolist()] * 5
    both = tl.jit(lambda x, y: (x * y, x + y), donate_argnums=(0, 1))
    assert [[*map(float, both(3.0, 3.0))] for _ in range(5)] == [[9.0, 6.0]] * 5


def test_deleted_arrays_are_named():
    weight = tnp.ones(3)
    f, x = tl.jit(lambda x, y: (x * weight, y)), tl.device_put(HOST)
    for _ in range(3):
        f(x, {"a": HOST})
    gone = tl.device_put(HOST)
    gone.delete()
    with pytest.raises(RuntimeError, match=r"x, argument 0 of .* deleted"):
        f(gone, {"a": HOST})


def test_values_that_were_deleted_are_put_again(puts):
    f = remembered(HOST, 2.0)
    for _ in range(3):
        f(HOST, 2.0)
    aval = ShapedArray((), np.dtype(np.float32), True)
    host_values.number_reader(float, aval, tl.devices()[0])(2.0).delete()
    host_values.array_reader(aval.update(shape=(3,), weak_type=False), tl.devices()[0])(HOST).delete()
    puts.clear()
    assert f(HOST, 2.0).tolist() == (2 * HOST).tolist()
    assert len(puts) == 2


def test_threads_call_with_arguments_in_turn():
    f, wrong = tl.jit(scaled), []
    arguments = [(HOST, 2.0), (HOST[:2], 2), (HOST[0], 2.0), (tl.device_put(HOST), True), (HOST, HOST)]

    def call(start: int) -> None:
        for i in range(start, start + 200):
            x, by = arguments[i % len(arguments)]
            wrong.extend([i] * (f(x, by).tolist() != (x * by).tolist()))

    threads = [threading.Thread(target=call, args=(i,)) for i in range(4)]
    [thread.start() for thread in threads], [thread.join() for thread in threads]
    assert not wrong


def test_results_of_every_structure():
    labels = ["a"]

    def f(x: Any) -> Any:
        return (
            x,
            (),
            [None, {"b": x + 1, "a": 2 * x}],
            Pair(x, x),
            Labelled(x, labels),
            tl.random.key(0),
            collections.deque([x]),
        )

    jitted, x = tl.jit(f), tl.device_put(HOST)
    first, *others = [jitted(x) for _ in range(4)]
    assert len(jitted._programs.calls) == 1
    assert all(described(y) == described(first) for y in others)
    others[-1][4].labels.append("changed")
    assert jitted(x)[4].labels == ["a"] and others[-1][2] is not others[-2][2]
    integers = tl.jit(lambda n: tl.grad(lambda n: 1.0 * n, allow_int=True)(n))  # float0
    assert len({str(described_float0(integers(3))) for _ in range(4)}) == 1


def described_float0(x: Any) -> Any:
    return type(x), x.shape, x.dtype


# ---- what a call does ------------------------------------------------------------------------------------------


def training_step(params: Any, state: Any, batch: Any, rate: Any, decay: bool) -> Any:
    gradient = tl.grad(lambda p: ((batch @ p["w"] + p["b"]) ** 2).sum())(params)
    params = tl.tree.map(lambda p, g: p - rate * g, params, gradient)
    return params, [0.9 * s if decay else s for s in state]


STEP = ({"w": tnp.ones((3, 3)), "b": tnp.ones(3)}, [tnp.ones(3)] * 50, np.ones((4, 3), np.float32), 1e-3)


@pytest.fixture
def puts(monkeypatch):
    """A list that grows with each value of the host that is put."""
    found: list[Any] = []
    put, copied = compat.put_and_semantics()
    counting = lambda *args, **kw: (found.append(args[2][0]), put(*args, **kw))[1]  # noqa: E731
    monkeypatch.setattr(compat, "put_and_semantics", lambda: (counting, copied))
    monkeypatch.setattr(transfers.to_device_guard, "was_set", False)  # as in most processes
    host_values.array_reader.cache_clear(), host_values.number_reader.cache_clear()
    yield found
    host_values.array_reader.cache_clear(), host_values.number_reader.cache_clear()


@pytest.mark.parametrize(
    "f, args, kwargs, new, functions",
    [
        (lambda x: x + 1, (tnp.ones(3),), {}, 0, 4),
        (lambda *xs: [*xs], tuple([tnp.ones(3)] * 60), {}, 0, 4),
        (lambda x: x + 1, (2.5,), {}, 0, 5),
        (lambda x: x + 1, (0.0,), {}, 0, 5),
        (lambda x: x + 1, (3,), {}, 0, 5),
        (lambda x: x + 1, (np.float32(2.5),), {}, 0, 5),
        (lambda x: x + 1, (HOST,), {}, 1, 5),
        (lambda x: x + 1, (HOST > 0,), {}, 1, 5),
        (lambda x: x + 1, (np.ones((9, 9), np.float32),), {}, 1, 5),
        (lambda x, y: x + y, (HOST, HOST), {}, 2, 6),
        (lambda x, y: x + y, ({"a": tnp.ones(3)}["a"],), {"y": 2.5}, 0, 5),
        (lambda x, decay: x + 1, (tnp.ones(3),), {"decay": ("a", 0.5)}, 0, 4),
        (training_step, STEP, {"decay": True}, 1, 6),
    ],
    ids=lambda x: None if callable(x) else str(x)[:24],
)
def test_puts_and_calls_of_one_dispatch(f, args, kwargs, new, functions, puts):
    """One put for each new NumPy array, none for small values that came before; one execution, few Python functions."""
    jitted = tl.jit(lambda *args, **kwargs: f(*args, **kwargs), static_argnames="decay")
    for _ in range(4):
        jitted(*args, **kwargs)
    puts.clear()
    calls: list[str] = []
    sys.setprofile(lambda frame, event, arg: calls.append(frame.f_code.co_name) if event == "call" else None)
    try:
        jitted(*args, **kwargs)
    finally:
        sys.setprofile(None)
    assert puts == [] or all(x.nbytes > 256 for x in puts)
    assert calls.count(Executable.run.__name__) == 1
    assert len([name for name in calls if name != "<lambda>"]) <= functions, calls  # of the test
    puts.clear()
    jitted(*[np.bitwise_xor(x.view(np.uint8), 1).view(x.dtype) if type(x) is np.ndarray else x for x in args], **kwargs)
    assert len(puts) == new


def test_code_is_written_once_for_each_kind_of_arguments(monkeypatch):
    """At the second call: few functions are called again with arguments of a kind."""
    written: list[Any] = []
    write = pytree.caller_of
    monkeypatch.setattr(pytree, "caller_of", lambda parts: (written.append(parts), write(parts))[1])
    f = tl.jit(lambda x, by: scaled(x, by))
    f(HOST, 2.0)
    assert not written
    for by in [2.0, 3.0, 3, 3, 3] * 3:
        f(HOST, by)
    assert len(written) == 2
    for n in range(12):  # more shapes than are tried one after the other
        for _ in range(3):
            f(np.ones(n, np.float32), 2.0)
    count = len(written)
    jit_cache.forget_calls()
    monkeypatch.setattr(jit_cache, "_CALLS_LIMIT", 3)
    for n in [*range(12)] * 2:
        assert f(np.ones(n, np.float32), 2.0).shape == (n,)
    assert len(written) == count and len(f._programs.calls) == 3
