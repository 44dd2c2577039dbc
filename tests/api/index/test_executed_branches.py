"""What is executed of a user's functions, on every Python: formulas for all sizes depend on it."""

import sys
import threading

import pytest

from tapeless.index.executed_branches import branch_between, with_executed

needs_monitoring = pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is of Python 3.12")


def make():
    """A function that has not run yet: an interpreter may prepare it at its first call."""

    def inner(x):
        return 1 if x > 3 else 2

    def outer(x):
        return inner(x) + sum(inner(y) for y in range(x))

    return outer


def executed(f, *args):
    return with_executed(lambda: f(*args))[1]


def test_the_first_run_is_recorded_as_later_ones_are():
    f = make()
    runs = [executed(f, 2) for _ in range(3)]
    assert runs[0] == runs[1] == runs[2]
    assert {code.co_name for code in runs[0]} == {"<lambda>", "outer", "inner", "<genexpr>"}
    assert all(len(offsets) > 3 for offsets in runs[0].values())
    assert branch_between(runs[0], runs[1]) is None


def test_other_branches_are_found():
    f = make()
    place = branch_between(executed(f, 2), executed(f, 4))
    assert place is not None and place.text == "return 1 if x > 3 else 2"


def test_errors_end_the_recording():
    for _ in range(10):  # more often than there are places for tools
        with pytest.raises(ZeroDivisionError):
            with_executed(lambda: 1 // 0)
    assert len(executed(make(), 2)) == 4


def test_other_threads_are_left_out():
    def wait():
        return threading.current_thread().name

    def f():
        thread = threading.Thread(target=wait)
        thread.start()
        thread.join()

    assert {code.co_name for code in executed(f)} == {"<lambda>", "f"}


def test_a_debugger_is_left_in_place():
    def tracer(frame, event, arg):
        return None

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        executed(make(), 2)
        assert sys.gettrace() is tracer
    finally:
        sys.settrace(before)


@needs_monitoring
def test_other_tools_may_take_all_places():
    free = [k for k in range(6) if sys.monitoring.get_tool(k) is None]
    for k in free:
        sys.monitoring.use_tool_id(k, "another")
    try:
        assert with_executed(lambda: 5) == (5, {})
    finally:
        for k in free:
            sys.monitoring.free_tool_id(k)
    assert executed(make(), 2) and [k for k in range(6) if sys.monitoring.get_tool(k) is None] == free
