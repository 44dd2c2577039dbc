"""Settings that tell what happens, or forbid it: logs, refusals, guards of transfers, infinities, forms of keys."""

import logging

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests.messages import raises


def triple(x, n=0):
    return x * 3


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING, "tapeless")
    return caplog


def test_infinities_are_errors():
    zeros, x = tnp.zeros(3), tnp.asarray(1000.0)
    with tl.debug_infs():
        with pytest.raises(FloatingPointError, match="inf in the result of 'div'"):
            _ = 1 / zeros
        with pytest.raises(FloatingPointError, match="inf in the result of 'exp'"):
            tl.jit(lambda x: tnp.exp(x) * 2)(x)
        assert np.isnan(tl.jit(lambda x: x * np.nan)(x))
    assert np.isinf(tl.jit(lambda x: tnp.exp(x) * 2)(x))
    with tl.debug_nans(), pytest.raises(FloatingPointError, match="nan in the result of 'mul'"):
        tl.jit(lambda x: x * np.nan)(x)


def test_tracing_and_running_are_refused():
    f, x = tl.jit(triple), tnp.ones(3)
    f(x)
    with tl.no_tracing():
        np.testing.assert_array_equal(f(x), [3, 3, 3])
        with pytest.raises(RuntimeError, match=r"jit: triple at .* would be traced, which config.no_tracing forbids"):
            f(tnp.ones(4))
        tl.make_jaxpr(triple)(x)
    with tl.no_execution():
        assert f.trace(x).out_info.shape == (3,)
        for run in (lambda: f(x), lambda: x + x, lambda: tl.nn.relu(x)):
            with pytest.raises(RuntimeError, match=r"would be run, which config.no_execution forbids"):
                run()
    np.testing.assert_array_equal(f(x), [3, 3, 3])


def test_scopes_that_only_tell_trace_nothing_anew():
    count = []

    @tl.jit
    def f(x):
        count.append(x)
        return x

    f(tnp.ones(3))
    for scope in (tl.log_compiles(), tl.explain_cache_misses(), tl.no_tracing(), tl.transfer_guard("log")):
        with scope:
            f(tnp.ones(3))
    assert len(count) == 1


def test_compilations_are_logged(told):
    with tl.log_compiles():
        tl.jit(lambda x: x / 7)(tnp.ones(3))
    first, second = [record.getMessage() for record in told.records if record.name == "tapeless"][-2:]
    assert first.startswith("Traced <lambda> at ") and " for jit in " in first
    assert first.endswith(" ms: f(float32[3]) -> float32[3]")
    assert second.startswith("Compiled f for CpuDevice(id=0) in ")
    assert second.endswith(": (f32[3]) -> (f32[3])")


def test_cache_misses_are_explained(told):
    f, x, y = tl.jit(triple, static_argnames="n"), np.ones(3, np.float32), np.ones(4, np.float32)
    with tl.explain_cache_misses():
        f(x)
        f(y)
        f(y)
        f(y, n=2)
        f(y, n=3)
        with tl.enable_x64():
            f(y, n=3)
        f(y.astype(np.int32), n=3)
        f({"a": [x]}["a"][0], 3)
    messages = [record.getMessage() for record in told.records]
    assert messages[0].startswith("jit traces triple at ") and " for the first time. Called at " in messages[0]
    assert " New since the most similar of its 3 earlier traces:\n" in messages[3]
    assert [message.partition("\n  ")[2] for message in messages[1:]] == [
        "Argument x is float32[4], and was float32[3]: another shape.",
        "Static argument n is 2, and was not given.",
        "Static argument n is 3, and was not given.",
        "config.default_bits is 64, and was 32.",
        "Argument x is int32[4], and was float32[4]: another dtype.",
        "Static argument n is 3, and was not given.",
    ]


class Options:
    pass


def test_objects_without_equality_are_named(told):
    f = tl.jit(lambda x, options, g=None: x, static_argnames=("options", "g"))
    with tl.explain_cache_misses():
        f(1.0, Options())
        f(1.0, Options())
        f(1.0, None, lambda: 0)
        f(1.0, None, lambda: 0)
    second, _, fourth = [record.getMessage() for record in told.records[1:]]
    assert second.endswith(
        " Objects of Options are equal only to themselves: define __eq__ and __hash__, or pass the same one."
    )
    assert fourth.endswith(" Functions are equal only to themselves: define it once, not each time.")


def test_leaves_are_named_as_arguments(told):
    @tl.jit
    def f(params, *rest, key=1.0):
        return params["w"][0] + sum(rest) + key

    one, weak = tnp.ones(1), 1.0
    with tl.explain_cache_misses():
        f({"w": [one]}, one, one, key=one)
        f({"w": [one]}, one, tnp.ones(()), key=weak)
        f({"w": [tnp.zeros(1, "int32")]}, one, one, key=one)
        f({"w": [one, one]}, one, one, key=one)
    messages = [record.getMessage().partition("\n  ")[2] for record in told.records[1:]]
    assert messages == [
        "Argument rest[1] is float32[], and was float32[1]: another shape.\n"
        "  Argument key is weak float32[], and was float32[1]: another shape and weak type (of Python numbers).",
        "Argument params['w'][0] is int32[1], and was float32[1]: another dtype.",
        "Argument params['w'] is a list of 2, and was a list of 1.",
    ]


def test_other_structures_are_named_by_what_is_new(told):
    f = tl.jit(lambda n, params, *rest, **more: params["w"], static_argnums=0)
    calls = [
        ((0, {"w": 1.0, "b": 2.0}), {}),
        ((0, {"w": 1.0, "c": None}), {}),
        ((0, {"w": (1.0,), "c": None}), {}),
        ((0, {"w": (1.0,), "c": None}, 1), {}),
        ((0, {"w": (1.0,), "c": None}, 1), {"k": 1.0}),
        ((0, {"w": (1.0,), "c": None}, 1), {"k": 1.0, "m": 1.0}),
    ]
    with tl.explain_cache_misses():
        for args, kwargs in calls:
            f.clear_cache()
            for each in (calls[max(calls.index((args, kwargs)) - 1, 0)], (args, kwargs)):
                f(*each[0], **each[1])
    messages = [record.getMessage().partition("\n  ")[2] for record in told.records]
    assert [*filter(None, messages)] == [
        "Argument params['c'] is None, and was nothing.\n  Argument params['b'] is nothing, and was a leaf.",
        "Argument params['w'] is a tuple of 1, and was a leaf.",
        "The positional arguments are a tuple of 2, and were a tuple of 1.",
        "The keyword arguments are a dict with 'k', and were a dict with no keys.",
        "Argument m is a leaf, and was nothing.",
    ]


def test_messages_of_many_differences_are_short(told):
    f = tl.jit(lambda params: 0)
    with tl.explain_cache_misses():
        f([1.0] * 50)
        f([1] * 50)
    assert told.records[1].getMessage().count("\n") == 7
    assert told.records[1].getMessage().endswith("\n  There are 44 more.")


def test_functions_that_are_made_anew_are_told_of(told):
    with tl.explain_cache_misses():
        for _ in range(2):
            tl.jit(lambda x: x + 1)(1.0)
    first, second = [record.getMessage() for record in told.records]
    assert " for the first time. Called at " in first
    assert second.endswith(
        "\n  It traced another function of the same code: define and jit one function once, not for each call."
    )


def test_transfers_are_guarded(told):
    x, y = tnp.ones(3), np.ones(3, np.float32)
    message = (
        "transfer: float32[3] is moved from host to device, which config.transfer_guard_host_to_device forbids.\n"
        "  Move it with tl.device_put, or allow it with tl.transfer_guard."
    )
    with tl.transfer_guard("disallow"):
        for move in (lambda: x + y, lambda: tl.jit(tnp.sin)(y), lambda: tnp.asarray(y)):
            with raises(RuntimeError, message):
                move()
        np.testing.assert_array_equal(tl.device_put(y) + x, [2, 2, 2])
        assert tnp.arange(3).shape == (3,)
    with tl.transfer_guard_host_to_device("disallow_explicit"), raises(RuntimeError, message.partition("\n")[0]):
        tl.device_put(y)
    with tl.transfer_guard("log"):
        _ = x + y
    assert told.records[-1].getMessage() == "transfer: float32[3] is moved from host to device."
    tl.config.update("jax_transfer_guard", "log")
    assert tl.config.transfer_guard_device_to_host == tl.config.jax_transfer_guard == "log"
    tl.config.transfer_guard = "allow"
    with raises(
        ValueError,
        "config.transfer_guard_host_to_device must be 'allow' or 'log' or 'disallow' or 'log_explicit' or "
        "'disallow_explicit', not 'never'.",
    ):
        tl.config.transfer_guard = "never"


def test_keys():
    with tl.enable_custom_prng():
        assert tl.random.PRNGKey(3).shape == ()
        np.testing.assert_array_equal(tl.random.key_data(tl.random.PRNGKey(3)), [0, 3])
    words = tl.random.PRNGKey(3)
    assert words.shape == (2,)
    message = (
        "normal: the key is bare words, which config.legacy_prng_key objects to.\n  Make it with random.key(seed)."
    )
    with tl.legacy_prng_key("error"):
        with raises(ValueError, message):
            tl.random.normal(words)
        tl.random.normal(tl.random.key(3))
    with tl.legacy_prng_key("warn"), pytest.warns(UserWarning, match="split: the key is bare words"):
        tl.random.split(words)
    with tl.default_prng_impl("threefry2x32"), tl.threefry_partitionable(True):
        tl.random.key(0)
    with raises(ValueError, "config.default_prng_impl must be 'threefry2x32' or 'rbg' or 'unsafe_rbg', not 'philox'."):
        tl.config.update("jax_default_prng_impl", "philox")
    with raises(ValueError, "config.threefry_partitionable must be False or True, not 2."):
        tl.config.update("jax_threefry_partitionable", 2)


def test_settings_of_users():
    context, traced = tl.make_user_context(default_value=2), []

    @tl.jit
    def f(x):
        traced.append(context.value)
        return x * context.value

    def under(value):
        with context(value):
            return float(f(1.0))

    assert [float(f(1.0)), under(3), under(5), under(3), float(f(1.0))] == [2, 3, 5, 3, 2]
    assert traced == [2, 3, 5] and context.value == 2
    other = tl.make_user_context()
    with other("a"), context(7):
        assert (other.value, context.value) == ("a", 7)
    with pytest.raises(TypeError, match="unhashable"), context([1]):
        pass


def test_checks_of_programs():
    before = tl.config.check_programs
    with tl.enable_checks(False):
        assert tl.config.jax_enable_checks is False
    assert tl.config.jax_enable_checks is before


def test_sums_in_16_bits_are_refused_if_asked_for():
    x = tnp.ones((2, 1), "bfloat16")
    with tl.allow_f16_reductions(False):
        with raises(ValueError, NARROW):
            lax.reduce_sum(x, (0,))
        assert lax.reduce_sum(x, (1,)).shape == (2,) and float(tnp.sum(x)) == 2
        with pytest.raises(ValueError, match="reduce_sum: bfloat16"):
            tl.jit(lambda x: lax.reduce_sum(x, (0, 1)))(x)
    assert float(lax.reduce_sum(x, (0,))[0]) == 2


NARROW = """reduce_sum: bfloat16[2,1] has 16 bits, which config.allow_f16_reductions forbids to add.
  Convert it with astype(float32), or use numpy.sum, which converts it."""


def test_settings_with_one_value():
    with tl.softmax_custom_jvp(True), tl.array_garbage_collection_guard("allow"):
        pass
    with raises(ValueError, "config.softmax_custom_jvp must be True, not False."), tl.softmax_custom_jvp(False):
        pass
    with pytest.raises(ValueError, match="must be 'allow', not 'log'"), tl.array_garbage_collection_guard("log"):
        pass


@pytest.mark.parametrize(
    "f",
    [
        lambda x, m: tnp.std(x, where=m),
        lambda x, m: tnp.var(x, where=m),
        lambda x, m: tnp.mean(x, where=m),
        lambda x, m: tl.nn.softmax(x, where=m),
        lambda x, m: tl.nn.logsumexp(x, where=m),
        lambda x, m: tnp.lexsort((x,)),
        lambda x, m: tnp.argsort(x),
        lambda x, m: tnp.argmax(x),
        lambda x, m: tnp.histogram(x, bins=2, range=(0, 4)),
        lambda x, m: tnp.nanquantile(x, 0.5),
        lambda x, m: tnp.nanvar(x),
    ],
)
def test_nan_in_operands_is_no_result(f):
    """Neither where it does not count, nor where results are positions."""
    with tl.debug_nans():
        f(np.array([1.0, np.nan, 3.0], "float32"), np.array([True, False, True]))
