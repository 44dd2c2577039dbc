"""Calls of the host from programs: values, exceptions, order, and every transformation."""

import functools
import subprocess
import sys
import threading

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.interpreters import vmap as batching
from tapeless.lowering import dispatch, emit
from tapeless.lowering.compile import CallingExecutable
from tapeless.tracer.errors import LinearityError
from tapeless.tracer.jaxpr import Jaxpr
from tests.messages import place, raises

F32 = np.float32
X = np.arange(3, dtype=F32)
ways = pytest.mark.parametrize("way", [lambda f: f, tl.jit], ids=["eager", "jit"])
inner_jit = pytest.mark.parametrize("inner", [lambda f: f, tl.jit], ids=["plain", "called"])


def like(x):
    return tl.ShapeDtypeStruct(np.shape(x), x.dtype)


SCALAR = tl.ShapeDtypeStruct((), F32)


class Recorder:
    """A function with an effect: it notes what it is called with, and returns its number of calls."""

    def __init__(self):
        self.seen = []

    def __call__(self, *args):
        self.seen.append([np.asarray(x).tolist() for x in args])
        return F32(len(self.seen))

    def note(self, *args):
        self(*args)


# ---- values --------------------------------------------------------------------------------------------------


@ways
def test_a_tree_in_and_a_tree_out(way):
    def host(x, *, scale):
        return {"sum": x["a"] + x["b"][0], "scaled": (np.asarray(x["a"]) * np.asarray(scale),)}

    def f(x, scale):
        wanted = {"sum": like(x["a"]), "scaled": (like(x["a"]),)}
        return tl.pure_callback(host, wanted, x, scale=scale)

    out = way(f)({"a": X, "b": [2 * X]}, F32(10))
    assert list(out) == ["sum", "scaled"] or list(out) == ["scaled", "sum"]
    np.testing.assert_array_equal(out["sum"], 3 * X)
    np.testing.assert_array_equal(out["scaled"][0], 10 * X)


@ways
def test_the_function_gets_arrays_and_may_compute_with_them(way):
    def host(x, n):
        assert isinstance(x, tl.Array) and isinstance(n, tl.Array)
        return tl.jit(lambda x: tnp.cumsum(x) * 2)(x)[:: int(n)]

    out = way(lambda x: tl.pure_callback(host, tl.ShapeDtypeStruct((2,), F32), x, 2))(X)
    np.testing.assert_array_equal(out, [0, 6])


@ways
@pytest.mark.parametrize(
    "x",
    [
        np.zeros((0, 3), F32),
        np.array(True),
        np.arange(6.0).reshape(2, 3).astype(tnp.bfloat16),
        np.array([[1 + 2j]]),
        np.array([2**40], np.int64),
        np.arange(24, dtype=np.int8).reshape(2, 3, 4),
    ],
    ids=lambda x: f"{x.dtype}{list(x.shape)}",
)
def test_every_kind_of_array_passes_as_it_is(way, x):
    out = way(lambda x: tl.pure_callback(lambda y: y, like(x), x))(x)
    assert (out.dtype, out.shape) == (x.dtype, x.shape)
    np.testing.assert_array_equal(np.asarray(out), np.asarray(x))


@ways
def test_operands_in_an_order_of_the_compilers_choice_arrive_in_c_order(way):
    def f(x):
        seen = tl.pure_callback(lambda y: np.array(y), tl.ShapeDtypeStruct((3, 2), F32), x.T)
        return (x @ x.T).sum() + seen.T

    x = np.arange(6, dtype=F32).reshape(2, 3)
    np.testing.assert_array_equal(way(f)(x), (x @ x.T).sum() + x)


@ways
def test_results_of_64_bits_become_what_was_asked_for(way):
    f = way(lambda x: tl.pure_callback(lambda x: (np.float64(0.1), 7), (SCALAR, tl.ShapeDtypeStruct((), np.int32)), x))
    value, count = f(X)
    assert (value, value.dtype, count, count.dtype) == (F32(0.1), F32, 7, np.int32)


def test_a_program_without_arguments_and_one_without_results():
    calls = Recorder()
    assert tl.jit(lambda: tl.io_callback(calls, SCALAR))() == 1
    assert tl.jit(lambda: tl.io_callback(calls.note, None))() is None
    assert calls.seen == [[], []]


def test_a_pure_callback_that_nothing_needs_is_not_called():
    calls = Recorder()
    tl.jit(lambda x: (tl.pure_callback(calls, SCALAR, x), x)[1])(X)
    assert calls.seen == []


def test_an_io_callback_that_nothing_needs_is_called_every_time():
    calls = Recorder()
    f = tl.jit(lambda x: (tl.io_callback(calls, SCALAR, x), x)[1])
    f(X), f(X)
    assert calls.seen == [[[0, 1, 2]]] * 2


def test_equal_io_callbacks_are_not_one():
    calls = Recorder()
    f = tl.jit(lambda x: tl.io_callback(calls, SCALAR, x) + tl.io_callback(calls, SCALAR, x))
    assert f(X) == 3


@ways
def test_a_callback_inside_a_callback(way):
    def outer(x):
        return way(lambda x: tl.pure_callback(lambda y: y + 1, like(x), x))(x) * 2

    np.testing.assert_array_equal(way(lambda x: tl.pure_callback(outer, like(x), x))(X), (X + 1) * 2)


def test_inside_of_a_callback_nothing_is_traced_or_differentiated():
    def host(x):
        return np.asarray(tl.grad(lambda y: (y * y).sum())(x)) if x.sum() > 0 else x

    def loss(x):
        return (x * tl.pure_callback(host, like(x), tl.stop_gradient(x))).sum()

    np.testing.assert_array_equal(tl.grad(loss)(X), 2 * X)
    np.testing.assert_array_equal(tl.linearize(loss, X)[1](tnp.ones(3)), 2 * X.sum())


def test_the_program_shows_the_function():
    def host(x):
        return x

    text = str(tl.make_jaxpr(lambda x: tl.io_callback(host, like(x), x, ordered=True))(X))
    assert text == (
        "{ lambda a:f32[3]. let\n    b:f32[3] = io_callback[callback=host result_avals=(f32[3],) ordered=True] a\n"
        "  in b }"
    )


def test_the_module_depends_on_the_program_only():
    def text(k):
        return tl.jit(lambda x: tl.pure_callback(lambda y: y * k, like(x), x)).lower(X).as_text()

    assert text(1) == text(2)


# ---- what is wrong -------------------------------------------------------------------------------------------


def host_wrong(x):
    return {"a": np.zeros((3, 2), F32)}


@ways
def test_a_result_of_another_shape(way):
    wanted = {"a": tl.ShapeDtypeStruct((3,), F32)}
    with raises(
        TypeError,
        f"pure_callback: {place(host_wrong)} returned float32[3,2] as result['a'], but result_shape_dtypes says "
        "float32[3].",
    ):
        way(lambda x: tl.pure_callback(host_wrong, wanted, x))(X)


@ways
def test_a_result_of_another_dtype(way):
    wanted = {"a": tl.ShapeDtypeStruct((3, 2), np.int32)}
    with raises(
        TypeError,
        f"io_callback: {place(host_wrong)} returned float32[3,2] as result['a'], but result_shape_dtypes says "
        "int32[3,2].",
    ):
        way(lambda x: tl.io_callback(host_wrong, wanted, x))(X)


@ways
def test_a_result_of_another_structure(way):
    with raises(
        TypeError,
        f"pure_callback: {place(host_wrong)} returned 1 arrays, but result_shape_dtypes has 2.\n"
        "  The root is a tuple of 2 in result_shape_dtypes, a dict with 'a' in the result.",
    ):
        way(lambda x: tl.pure_callback(host_wrong, (SCALAR, SCALAR), x))(X)


def host_big(x):
    return 2**40


@ways
def test_a_masked_result(way):
    masked = np.ma.masked_array(X, [False, True, False])
    with pytest.raises(TypeError, match=r"what it returned as result\[1\] is a masked array\.\n  A masked array would"):
        way(lambda x: tl.pure_callback(lambda x: (x, masked), (like(X), like(X)), x))(X)


@ways
def test_a_result_that_does_not_fit(way):
    with raises(
        OverflowError, f"pure_callback: {place(host_big)} returned 1099511627776, which does not fit into int32[]."
    ):
        way(lambda x: tl.pure_callback(host_big, tl.ShapeDtypeStruct((), np.int32), x))(X)


def test_what_is_no_type():
    with raises(
        TypeError,
        f"pure_callback: {place(host_big)}: result_shape_dtypes[1] is 3, which has no shape and dtype.\n"
        "  Use tl.ShapeDtypeStruct(shape, dtype).",
    ):
        tl.pure_callback(host_big, (SCALAR, 3), X)


def test_what_is_no_function():
    with raises(TypeError, "io_callback: expected a function, not 3."):
        tl.io_callback(3, SCALAR, X)


def test_options_that_are_not_there():
    with raises(
        ValueError,
        "pure_callback: vmap_method must be one of 'sequential', 'sequential_unrolled', 'expand_dims', "
        "'broadcast_all', 'legacy_vectorized' or None, not 'loop'.",
    ):
        tl.pure_callback(host_big, SCALAR, X, vmap_method="loop")
    with raises(NotImplementedError, "io_callback: sharding='x' is not supported, only None."):
        tl.io_callback(host_big, SCALAR, X, sharding="x")


# ---- exceptions ----------------------------------------------------------------------------------------------


class HostError(Exception):
    """An exception with more in it than its text."""

    def __init__(self, code):
        super().__init__(f"code {code}")
        self.code = code


def host_raises(x):
    raise HostError(int(x[0])) from KeyError("cause")


@ways
@pytest.mark.parametrize("call", [tl.pure_callback, tl.io_callback, lambda f, _, x: (tl.debug.callback(f, x), x)[1]])
def test_an_exception_reaches_the_caller_as_it_was_raised(way, call):
    f = way(lambda x: call(host_raises, SCALAR, x))
    for code in (3, 4):
        with pytest.raises(HostError) as caught:
            f(np.full(2, code, F32))
        assert caught.value.code == code
        assert isinstance(caught.value.__cause__, KeyError)
        assert caught.value.__context__ is None
        assert caught.traceback[-1].name == "host_raises"


def test_after_an_exception_the_program_runs_again():
    def host(x):
        return x if x[0] >= 0 else host_raises(x)

    f = tl.jit(lambda x: tl.pure_callback(host, like(x), x) * 2)
    for _ in range(3):
        with pytest.raises(HostError):
            f(-X - 1)
        np.testing.assert_array_equal(f(X), 2 * X)


def test_an_interrupt_is_an_interrupt():
    def host(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tl.jit(lambda x: tl.pure_callback(host, like(x), x))(X)


def test_an_exception_from_two_programs_deep():
    inner = tl.jit(lambda x: tl.pure_callback(host_raises, SCALAR, x))
    with pytest.raises(HostError, match="code 0"):
        tl.jit(lambda x: tl.pure_callback(inner, SCALAR, x))(X)


def test_programs_of_several_threads_get_their_own_exceptions():
    f, found = tl.jit(lambda x: tl.pure_callback(host_raises, SCALAR, x)), {}

    def run(k):
        for _ in range(20):
            try:
                f(np.full(1, k, F32))
            except HostError as error:
                found.setdefault(k, set()).add(error.code)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == {k: {k} for k in range(4)}


def test_nothing_is_written_to_the_terminal():
    code = """
import numpy as np, tapeless as tl
def host(x):
    raise ValueError("mine")
try:
    tl.jit(lambda x: tl.pure_callback(host, tl.ShapeDtypeStruct((), np.float32), x))(1.0)
except ValueError as error:
    print(error)
tl.effects_barrier()
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "mine\n")
    assert "tapeless-callback" not in done.stderr


# ---- derivatives ---------------------------------------------------------------------------------------------


def host_sine(x):
    return np.sin(x)


def opaque(call, *args):
    return call(host_sine, like(args[0]), *args)


@pytest.mark.parametrize("call", [tl.pure_callback, tl.io_callback])
@inner_jit
def test_there_is_no_derivative(call, inner):
    line = f"{place(opaque, 'call(host_sine')}"
    message = (
        f"{call.__name__}: {place(host_sine)} is opaque, it has no derivative. It was called at {line}.\n"
        "  Call it in a function with a derivative of its own (tl.custom_jvp or tl.custom_vjp), or of "
        "tl.stop_gradient(x)."
    )
    f = inner(lambda x: opaque(call, x).sum())
    for transform in (tl.grad(f), lambda x: tl.jvp(f, (x,), (x,)), lambda x: tl.linearize(f, x)):
        with raises(ValueError, message):
            transform(X)


@ways
@inner_jit
def test_values_that_are_not_differentiated_may_be_used(way, inner):
    f = inner(lambda x: (x * opaque(tl.pure_callback, tl.stop_gradient(x)) + opaque(tl.io_callback, X)).sum())
    np.testing.assert_allclose(way(tl.grad(f))(X), np.sin(X), rtol=1e-6)


@ways
def test_a_rule_of_its_own_makes_it_differentiable(way):
    @tl.custom_jvp
    def sine(x):
        return tl.pure_callback(host_sine, like(x), x, vmap_method="expand_dims")

    @sine.defjvp
    def sine_jvp(primals, tangents):
        return sine(primals[0]), tnp.cos(primals[0]) * tangents[0]

    np.testing.assert_allclose(way(tl.grad(lambda x: sine(x).sum()))(X), np.cos(X), rtol=1e-6)
    np.testing.assert_allclose(way(tl.vmap(tl.grad(sine)))(X), np.cos(X), rtol=1e-6)
    np.testing.assert_allclose(way(tl.hessian(lambda x: sine(x[0])))(X), np.zeros((3, 3)), atol=1e-7)


def test_a_linear_function_has_no_callbacks_in_it():
    with pytest.raises(LinearityError, match="pure_callback is applied to a linear value"):
        tl.linear_transpose(lambda x: opaque(tl.pure_callback, x), X)


# ---- vmap ----------------------------------------------------------------------------------------------------


def shapes_seen(method, x, y, dims, way):
    seen = []

    def host(x, y):
        seen.append((x.shape, y.shape))
        return np.asarray(x) + np.asarray(y)

    def f(x, y):
        shape = np.broadcast_shapes(x.shape, y.shape)
        return tl.pure_callback(host, tl.ShapeDtypeStruct(shape, F32), x, y, vmap_method=method)

    out = way(tl.vmap(f, dims))(x, y)
    return seen, np.asarray(out)


@ways
@pytest.mark.parametrize(
    ("method", "seen"),
    [
        ("sequential", [((), ())] * 4),
        ("sequential_unrolled", [((), ())] * 4),
        ("expand_dims", [((4,), (1,))]),
        ("broadcast_all", [((4,), (4,))]),
        ("legacy_vectorized", [((4,), ())]),
    ],
)
def test_vmap_methods_are_those_of_jax(method, seen, way):
    x = np.arange(4, dtype=F32)
    found, out = shapes_seen(method, x, F32(1), (0, None), way)
    assert found == seen
    np.testing.assert_array_equal(out, x + 1)


@ways
@pytest.mark.parametrize("method", ["sequential", "expand_dims", "broadcast_all"])
def test_vmap_of_vmap(method, way):
    def f(x, y):
        return tl.pure_callback(lambda x, y: np.asarray(x) * np.asarray(y), SCALAR, x, y, vmap_method=method)

    x, y = np.arange(6, dtype=F32).reshape(2, 3), np.arange(2, dtype=F32)
    out = way(tl.vmap(tl.vmap(f, (0, None)), (0, 0)))(x, y)
    np.testing.assert_array_equal(out, x * y[:, None])
    out = way(tl.vmap(tl.vmap(f, (0, None)), (1, None)))(x, F32(2))
    np.testing.assert_array_equal(out, 2 * x.T)


def test_vmap_over_no_example():
    f = tl.vmap(lambda x: tl.pure_callback(host_raises, like(x), x, vmap_method="sequential"))
    assert f(np.zeros((0, 3), F32)).shape == (0, 3)


def test_vmap_without_a_method():
    with raises(
        NotImplementedError,
        f"pure_callback: nothing says how vmap calls {place(host_sine)}.\n"
        '  Set vmap_method: "sequential" calls it for each example, "expand_dims" and "broadcast_all" once for all.',
    ):
        tl.vmap(lambda x: opaque(tl.pure_callback, x))(X)


def test_vmap_where_all_examples_share_the_call():
    calls = Recorder()
    out = tl.vmap(lambda x: x + tl.io_callback(calls, SCALAR, 3.0, ordered=True))(X)
    np.testing.assert_array_equal(out, X + 1)
    assert calls.seen == [[3.0]]


@ways
def test_io_under_vmap_is_done_for_each_example(way):
    calls = Recorder()
    out = way(tl.vmap(lambda x, y: tl.io_callback(calls, SCALAR, x, y), (0, None)))(X, F32(5))
    assert calls.seen == [[0, 5], [1, 5], [2, 5]]
    np.testing.assert_array_equal(out, [1, 2, 3])


def test_io_in_order_is_not_mapped():
    with raises(
        ValueError,
        f"io_callback: {place(host_sine)} cannot be called in order under vmap, where all examples are computed at "
        "once.\n  Use ordered=False, or a loop (lax.map, lax.scan) instead of vmap.",
    ):
        tl.vmap(lambda x: tl.io_callback(host_sine, like(x), x, ordered=True))(X)


# ---- order ---------------------------------------------------------------------------------------------------


def slow(x, n):
    """x times 1, after n products of matrices."""
    one = tnp.eye(200, dtype=F32)
    for _ in range(n):
        one = one @ tnp.eye(200, dtype=F32)
    return x * one[0, 0]


def assert_in_order(f, *args, times=4):
    """Run `f(note, *args)`, whose notes are 0, 1, 2, ..., several times."""
    seen = []
    program = tl.jit(functools.partial(f, lambda x: tl.debug.callback(seen.append, x, ordered=True)))
    for _ in range(times):
        program(*args)
        tl.effects_barrier()
        assert [int(x) for x in seen] == list(range(len(seen))) and len(seen) > 2
        seen.clear()


def test_ordered_effects_wait_for_those_before():
    """The first to be ready is the last of the program; without the order it comes first."""

    def f(note, x):
        for i in range(6):
            note(slow(x, 6 - i) + i)

    assert_in_order(f, F32(0))


def test_order_through_calls_branches_and_loops():
    @functools.partial(tl.jit, static_argnums=0)
    def called(note, x):
        note(slow(x, 2))
        note(x + 1)

    def f(note, x):
        note(slow(x, 3))
        called(note, x + 1)
        called(note, x + 3)
        lax.cond(x < 1, lambda: note(slow(x, 2) + 5), lambda: None)
        lax.cond(x > 1, lambda: note(x), lambda: None)
        lax.scan(lambda c, i: (note(slow(c, 2)), (c + 1, i))[1], x + 6, None, length=3)
        lax.while_loop(lambda c: c < 12, lambda c: (note(slow(c, 1)), c + 1)[1], x + 9)
        lax.fori_loop(12, 14, lambda i, c: (note(c + i), c)[1], x)
        note(x + 14)

    assert_in_order(f, F32(0))


def test_order_in_loops_in_loops():
    def f(note, n):
        def row(carry, k):
            note(slow(carry, 1))
            carry, _ = lax.scan(lambda c, _: (note(c), (c + 1, None))[1], carry + 1, None, length=2)
            return lax.cond(k % 2 == 0, lambda c: (note(slow(c, 1)), c + 1)[1], lambda c: c, carry), None

        lax.scan(row, n, tnp.arange(4))

    assert_in_order(f, F32(0), times=2)


def test_kinds_share_one_order():
    seen = []

    def f(x):
        tl.debug.callback(seen.append, slow(x, 4), ordered=True)
        y = tl.io_callback(lambda x: (seen.append(x), F32(x + 1))[1], SCALAR, slow(x, 2) + 1, ordered=True)
        tl.debug.callback(seen.append, x + 2, ordered=True)
        return y

    assert tl.jit(f)(F32(0)) == 2
    assert [int(x) for x in seen] == [0, 1, 2]


def test_ordered_calls_of_one_function_stand_once_in_the_module():
    called = tl.jit(lambda x: (tl.debug.callback(print, x, ordered=True), x)[1])
    text = tl.jit(lambda x: called(called(x))).lower(X).as_text()
    assert text.count("xla_ffi_python_cpu_callback") == 1
    assert text.count("func.call") == 2


def test_order_in_what_decides_about_a_loop():
    def more(c):
        tl.debug.callback(print, c, ordered=True)
        return c < 3

    with raises(
        NotImplementedError,
        "while_loop: an ordered callback in more, which decides whether the loop goes on.\n"
        "  Call it in the body of the loop, or with ordered=False.",
    ):
        lax.while_loop(more, lambda c: c + 1, 0)


# ---- control flow --------------------------------------------------------------------------------------------


@ways
def test_values_in_loops_and_branches(way):
    def double(x):
        return tl.pure_callback(lambda x: 2 * np.asarray(x), like(x), x)

    def f(x):
        x, _ = lax.scan(lambda c, _: (double(c), None), x, None, length=3)
        x = lax.while_loop(
            lambda c: tl.pure_callback(lambda c: bool(c < 30), tl.ShapeDtypeStruct((), bool), c), double, x
        )
        return lax.cond(x > 1, double, lambda x: x, x)

    assert way(f)(F32(1)) == 64


@ways
def test_effects_in_loops_happen_at_every_step_that_is_run(way):
    calls = Recorder()

    def f(x):
        def step(c, k):
            tl.io_callback(calls.note, None, k)
            return lax.cond(k == 1, lambda c: c + tl.io_callback(calls, SCALAR, -k), lambda c: c, c), None

        return lax.scan(step, x, tnp.arange(3))[0]

    assert way(f)(F32(0)) in (2, 3)  # unordered: the calls of one step may change places
    assert sorted(calls.seen) == [[-1], [0], [1], [2]]


@ways
def test_effects_in_a_differentiated_loop_happen_once(way):
    calls = Recorder()

    def f(x):
        def step(c, k):
            count = tl.io_callback(calls, SCALAR, k)
            return c * x * count, None

        return lax.scan(step, 1.0, tnp.arange(3))[0]

    assert way(tl.grad(f))(F32(2)) == 6 * 3 * 4
    assert calls.seen == [[0], [1], [2]]


def test_an_effect_in_a_checkpoint_happens_once():
    calls = Recorder()

    @tl.checkpoint
    def f(x):
        return tnp.sin(x * tl.io_callback(calls, SCALAR, 0.0))

    np.testing.assert_allclose(tl.jit(tl.grad(f))(F32(2)), np.cos(2), rtol=1e-6)
    assert calls.seen == [[0.0]]


def test_mapped_branches_and_loops():
    f = tl.vmap(
        lambda x: lax.scan(
            lambda c, _: (tl.pure_callback(host_sine, SCALAR, c, vmap_method="expand_dims"), None), x, None, length=2
        )[0]
    )
    np.testing.assert_allclose(f(X), np.sin(np.sin(X)), rtol=1e-6)


def test_mapped_branches_do_what_their_examples_take():
    calls = Recorder()

    def f(x):
        return lax.cond(x > 0, lambda x: tl.io_callback(calls, SCALAR, x), lambda x: x, x)

    for n, how in enumerate(("auto", "select", "loop")):
        token = batching.control_flow.set(how)
        np.testing.assert_array_equal(tl.vmap(f)(X - 1), [-1, 0, n + 1])
        batching.control_flow.reset(token)
    assert calls.seen == [[1]] * 3


# ---- caches --------------------------------------------------------------------------------------------------


def test_programs_with_callbacks_are_not_kept_by_their_text(monkeypatch):
    calls = []
    monkeypatch.setattr(dispatch, "_compiled", lambda *args: calls.append(args))
    for k in (1, 2):
        f = tl.jit(lambda x, k=k: tl.pure_callback(lambda y: np.asarray(y) + k, like(x), x))
        np.testing.assert_array_equal(f(X), np.asarray(X) + k)
    assert calls == []


def test_the_executable_says_what_it_is():
    program: Jaxpr = tl.make_jaxpr(lambda x: tl.pure_callback(host_sine, like(x), x))(X).jaxpr
    assert isinstance(dispatch.executable(program, dispatch.device_of(())), CallingExecutable)


def test_programs_for_other_devices():
    program: Jaxpr = tl.make_jaxpr(lambda x: tl.pure_callback(host_sine, like(x), x))(X).jaxpr
    assert 'call_target_name = "xla_ffi_python_gpu_callback"' in emit.module(program, platform="gpu").text
    with pytest.raises(NotImplementedError) as raised:
        emit.module(program, platform="tpu")
    what, place = str(raised.value).split("\n  ")
    assert what == ("host_sine: functions on the host are called from the CPU and from GPUs; the program is for tpu.")
    assert place.startswith("At tests/api/host/test_callbacks.py:") and "tl.pure_callback(host_sine" in place


def test_the_barrier_waits_for_nothing_when_nothing_runs():
    assert tl.effects_barrier() is None
