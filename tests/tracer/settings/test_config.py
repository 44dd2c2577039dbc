"""Settings: values for the process, for a scope, for a thread; and what is refused."""

import re
import threading
from collections.abc import Iterator

import pytest

from tapeless.tracer import axes
from tapeless.tracer.settings.config import Field, config, enable_x64


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    before = config.default_bits, config.debug_nans, config.numpy_bits
    yield
    config.default_bits, config.debug_nans, config.numpy_bits = before


def test_defaults():
    assert (config.default_bits, config.debug_nans) == (32, False)
    assert repr(config).startswith("config(default_bits=32, numpy_bits=64, debug_nans=False")


def test_update_and_assignment_are_for_the_process():
    config.update("default_bits", 64)
    assert config.default_bits == 64
    config.default_bits = 32
    assert config.default_bits == 32


def test_names_of_jax():
    config.update("jax_enable_x64", True)
    config.update("jax_debug_nans", True)
    assert (config.default_bits, config.debug_nans) == (64, True)
    assert config.x64_enabled is config.read("jax_enable_x64") is True and config.read("default_bits") == 64
    with pytest.raises(AttributeError, match="update"):
        config.read("update")


def test_scopes_nest_and_end_with_an_exception():
    with pytest.raises(KeyError), config.scope(default_bits=64, debug_nans=True):
        with config.scope(default_bits=32):
            assert (config.default_bits, config.debug_nans) == (32, True)
        assert config.default_bits == 64
        raise KeyError
    assert (config.default_bits, config.debug_nans) == (32, False)


def test_a_scope_goes_before_the_process():
    with config.scope(default_bits=32):
        config.update("default_bits", 64)
        assert config.default_bits == 32
    assert config.default_bits == 64


def seen_in_another_thread() -> int:
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.append(config.default_bits))
    thread.start()
    thread.join()
    return seen[0]


def test_a_scope_is_for_one_thread_and_update_for_all():
    with config.scope(default_bits=64):
        assert seen_in_another_thread() == 32
    config.update("default_bits", 64)
    assert seen_in_another_thread() == 64


def test_a_scope_that_never_begins_is_warned_about():
    message = "default_bits=64 was set for a with block that never began; config.update sets it for the whole process."
    with pytest.warns(RuntimeWarning, match=f"^{re.escape(message)}$") as warned:
        enable_x64()
    assert (warned[0].filename, config.default_bits) == (__file__, 32)


def test_a_scope_decorates_functions_that_call_themselves():
    @enable_x64()
    def widths(n: int) -> list[int]:
        return [config.default_bits, *widths(n - 1)] if n else []

    assert (widths(3), config.default_bits) == ([64, 64, 64], 32)


def test_a_scope_with_an_unknown_name_leaves_nothing_set():
    with pytest.raises(AttributeError), config.scope(default_bits=64, defualt_bits=64):
        pass
    assert config.default_bits == 32


def test_enable_x64_scopes():
    with enable_x64():
        assert (config.default_bits, seen_in_another_thread()) == (64, 32)
        with enable_x64(False):
            assert config.default_bits == 32
        assert config.default_bits == 64
    assert config.default_bits == 32


def test_trace_key_follows_scopes():
    outside = config.trace_key()
    with enable_x64():
        assert config.trace_key() != outside
    assert config.trace_key() == outside


def raises(error: type[Exception], message: str, action) -> None:
    with pytest.raises(error) as caught:
        action()
    assert str(caught.value) == message


FIELDS = ", ".join(name for name, value in vars(type(config)).items() if isinstance(value, Field))
UNKNOWN = f"config has no field 'defualt_bits'; it has {FIELDS}."


def test_unknown_names():
    raises(AttributeError, UNKNOWN, lambda: config.defualt_bits)
    raises(AttributeError, UNKNOWN, lambda: setattr(config, "defualt_bits", 64))
    raises(AttributeError, UNKNOWN, lambda: config.update("defualt_bits", 64))
    raises(AttributeError, UNKNOWN, lambda: config.scope(defualt_bits=64).__enter__())


def test_bad_values():
    raises(ValueError, "config.default_bits must be 32 or 64, not 16.", lambda: config.update("default_bits", 16))
    raises(ValueError, "config.debug_nans must be False or True, not 1.", lambda: config.update("debug_nans", 1))
    raises(ValueError, "config.default_bits must be 32 or 64, not '64'.", lambda: setattr(config, "default_bits", "64"))


def test_a_bad_scope_changes_nothing():
    with pytest.raises(ValueError), config.scope(debug_nans=True, default_bits=8):
        pass
    assert config.debug_nans is False


def test_trace_key_is_one_object_for_equal_settings():
    """Also when the process's are changed inside of a scope, whose own count only there."""
    before = config.trace_key()
    with config.scope(default_bits=64):
        wide = config.trace_key()
        config.debug_nans = True
        assert config.trace_key() not in (before, wide)
        inside = config.trace_key()
        config.debug_nans = False
        assert config.trace_key() is wide
    assert config.trace_key() is before and before is not wide
    config.debug_nans = True
    assert config.trace_key() not in (before, wide, inside)


def test_trace_key_has_the_named_axes():
    before = config.trace_key()
    three = axes.binding("i", 3, config.trace_key)
    assert three != before
    assert axes.binding("i", 3, axes.binding, "i", 4, config.trace_key) not in (before, three)
    assert axes.binding("i", 3, config.trace_key) == three
    assert axes.binding(None, 3, config.trace_key) is before and config.trace_key() is before
