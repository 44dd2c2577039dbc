"""debug.print and debug.callback: what is printed, how often, and that nothing else changes. The texts are JAX's."""

import threading

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests.messages import raises

F32 = np.float32
X = np.arange(3, dtype=F32)
ways = pytest.mark.parametrize("way", [lambda f: f, tl.jit], ids=["eager", "jit"])


@pytest.fixture
def printed(capsys):
    """The lines printed since it was called last."""

    def lines():
        tl.effects_barrier()
        captured = capsys.readouterr()
        assert captured.err == ""
        return captured.out.splitlines()

    return lines


def square(x):
    tl.debug.print("x = {}", x)
    return x * x


# ---- what is printed -----------------------------------------------------------------------------------------


@ways
def test_formats(way, printed):
    def f(x, y):
        show = tl.debug.print(ordered=True)
        show("{0} {y:.3f} {0!r} {x[b]}", x["a"], y=y, x=x)
        show("{{}} {}|{:6.2f}|{:d}", True, y, 3)
        show("no values")
        show("{:.2g} {} {who}", 0.1, x["b"].dtype, who="me")

    way(f)({"a": X, "b": X > 1}, F32(2.5))
    assert printed() == [
        "[0. 1. 2.] 2.500 Array([0., 1., 2.], dtype=float32) [False False  True]",
        "{} True|  2.50|3",
        "no values",
        "0.1 bool me",
    ]


def test_an_empty_format_prints_an_empty_line(printed):
    tl.jit(lambda: tl.debug.print(""))()
    assert printed() == [""]


@ways
def test_keys_are_printed_as_keys(way, printed):
    key = tl.random.key(1)
    way(lambda key: tl.debug.print("{}", key))(key)
    assert printed() == str(key).splitlines()


def test_print_options_are_those_of_the_trace(printed):
    with np.printoptions(precision=2):
        f = tl.jit(lambda x: tl.debug.print("{}", x)).lower(X).compile()
    f(np.array([0, 1 / 3, 2 / 3], F32))
    assert printed() == ["[0.   0.33 0.67]"]


@pytest.mark.parametrize("options", [{}, {"ordered": True}, {"partitioned": True}])
def test_options_first(options, printed):
    @tl.jit
    def f(x):
        tl.debug.print(**options)("{x} {ordered}", x=x, ordered="a value")
        tl.debug.callback(**options)(print, "called")

    f(1)
    assert sorted(printed()) == ["1 a value", "called"]


# ---- what is wrong -------------------------------------------------------------------------------------------


def test_formats_that_python_refuses():
    with raises(ValueError, "debug.print: '{' is not a format string: Single '{' encountered in format string."):
        tl.debug.print("{", 1.0)
    for call in (tl.debug.print, tl.jit(lambda fmt, x: tl.debug.print(fmt, x), static_argnums=0)):
        with pytest.raises(
            ValueError, match=r"^debug.print: '{:d}' does not fit its values: Unknown format code 'd' for"
        ):
            call("{:d}", 1.0)


def test_formats_that_do_not_fit():
    with raises(
        ValueError,
        "debug.print: 'x' does not print the values 0, y.\n  Every value needs its place, {} or {name}. In an f-string "
        "these places are filled when tracing: pass a plain string.",
    ):
        tl.jit(lambda x: tl.debug.print("x", x, y=x))(1)
    with raises(IndexError, "debug.print: '{} {}' prints value 1, counted from 0, but 1 is given."):
        tl.debug.print("{} {}", 1)
    with raises(IndexError, "debug.print: '{2}' prints value 2, counted from 0, but 0 are given."):
        tl.debug.print("{2}")
    with raises(
        AttributeError,
        "debug.print: '{x.y}' prints 'x.y', which is not there: 'float' object has no attribute 'y'.",
    ):
        tl.debug.print("{x.y}", x=1.5)
    with raises(KeyError, "\"debug.print: '{x}' prints 'x', but the values by name are: y, z.\""):
        tl.debug.print("{x}", y=1, z=2)
    with raises(TypeError, "debug.print: expected a format string, not 3 of type int."):
        tl.debug.print(3)
    with raises(TypeError, "debug.callback: expected a function, not 3."):
        tl.debug.callback(3)
    with raises(
        TypeError,
        "debug.print: without its first argument it takes options only, not [1]: values go into the "
        "second call, debug.print(ordered=True)(...).",
    ):
        tl.debug.print(x=1)


def test_a_format_that_is_not_checked(printed):
    tl.debug.print("x", 1, skip_format_check=True)
    assert printed() == ["x"]


# ---- the program ---------------------------------------------------------------------------------------------


def test_the_program():
    def f(x):
        tl.debug.print("x = {}", x)
        tl.debug.callback(print, x, ordered=True)
        return x

    assert str(tl.make_jaxpr(f)(X)) == (
        "{ lambda a:f32[3]. let\n"
        "    debug_callback[callback=print('x = {}') ordered=False] a\n"
        "    debug_callback[callback=print ordered=True] a\n"
        "  in a }"
    )


@ways
def test_callbacks_get_arrays_and_what_else_is_given(way):
    seen = []

    def look(*args, **kwargs):
        seen.append((args, kwargs))
        return "dropped"

    assert way(lambda x: tl.debug.callback(look, {"x": x, "n": 2}, "text", None, flag=lax.add))(X) is None
    [((tree, text, none), kwargs)] = seen
    assert isinstance(tree["x"], tl.Array) and tree["n"] == 2
    assert (text, none, kwargs) == ("text", None, {"flag": lax.add})


def test_callbacks_keep_no_tracers():
    """Tracers hold the whole trace; a program may live for long."""
    program = tl.make_jaxpr(lambda x: tl.debug.print("{}", x))(X)
    (eqn,) = program.eqns
    assert not any(isinstance(x, tl.Array) for x in vars(eqn.params["callback"])["_leaves"])


@ways
def test_a_callback_may_compute(way, printed):
    def look(x):
        tl.debug.print("{}", tl.jit(tl.grad(lambda x: (x * x).sum()))(x))

    way(tl.grad(lambda x: (tl.debug.callback(look, x), x.sum())[1]))(X)
    assert printed() == ["[0. 2. 4.]"]


# ---- transformations -----------------------------------------------------------------------------------------


@ways
def test_derivatives_print_primal_values_once(way, printed):
    def check(run, *lines):
        run()
        assert printed() == list(lines)

    called = tl.jit(square)
    for f in (square, called):
        check(lambda f=f: way(tl.grad(f))(F32(3)), "x = 3.0")
        check(lambda f=f: way(lambda x: tl.jvp(f, (x,), (x,)))(F32(3)), "x = 3.0")
        check(lambda f=f: way(lambda x: tl.vjp(f, x)[1](x))(F32(3)), "x = 3.0")
        check(lambda f=f: way(tl.grad(tl.grad(f)))(F32(3)), "x = 3.0")
        check(lambda f=f: way(tl.hessian(f))(F32(3)), "x = 3.0")


def test_a_linearized_function_prints_when_it_is_linearized(printed):
    _, push = tl.linearize(square, F32(3))
    assert printed() == ["x = 3.0"]
    push(F32(1)), push(F32(2))
    assert printed() == []


@tl.custom_jvp
def watched(x):
    return x * x


@watched.defjvp
def watched_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    tl.debug.print("t = {}", t)
    tl.debug.print("x = {}", x)
    return x * x, 2 * x * t


@ways
@pytest.mark.parametrize("f", [watched, tl.jit(watched)], ids=["plain", "called"])
def test_tangents_are_printed_when_there_are_some(way, f, printed):
    way(lambda x, t: tl.jvp(f, (x,), (t,)))(F32(3), F32(5))
    assert sorted(printed()) == ["t = 5.0", "x = 3.0"]
    assert way(tl.grad(f))(F32(3)) == 6
    assert printed() == ["x = 3.0"]
    _, push = tl.linearize(f, F32(3))
    assert printed() == ["x = 3.0"]
    assert way(push)(F32(7)) == 42
    assert printed() == ["t = 7.0"]


@ways
def test_vmap_prints_each_example_in_order(way, printed):
    way(tl.vmap(square))(X)
    assert printed() == ["x = 0.0", "x = 1.0", "x = 2.0"]
    way(tl.vmap(tl.vmap(square)))(X[:2, None] * X[1:])
    assert printed() == ["x = 0.0", "x = 0.0", "x = 1.0", "x = 2.0"]
    way(tl.vmap(tl.grad(square)))(X[1:])
    assert printed() == ["x = 1.0", "x = 2.0"]
    way(tl.grad(lambda x: tl.vmap(square)(x).sum()))(X[1:])
    assert printed() == ["x = 1.0", "x = 2.0"]
    way(tl.vmap(lambda x, y: tl.debug.print("{x} {} {y}", "same", x=x, y=y), (1, None)))(X[:2, None] * X[1:], 5)
    assert printed() == ["[0. 1.] same 5", "[0. 2.] same 5"]


@ways
def test_vmap_prints_once_what_is_the_same_for_all(way, printed):
    way(tl.vmap(lambda x: (tl.debug.print("hello {}", 1), x)[1]))(X)
    assert printed() == ["hello 1"]


@ways
def test_loops_print_at_every_step(way, printed):
    def step(c, k):
        tl.debug.print("{k}: {c}", k=k, c=c, ordered=True)
        return c * 2, None

    def loop(x):
        return lax.scan(step, x, tnp.arange(3))[0]

    lines = ["0: 1.0", "1: 2.0", "2: 4.0"]
    way(loop)(F32(1))
    assert printed() == lines
    assert way(tl.grad(loop))(F32(1)) == 8
    assert printed() == lines
    way(lambda x: tl.jvp(loop, (x,), (x,)))(F32(1))
    assert printed() == lines


@ways
def test_a_while_loop_prints_condition_and_body(way, printed):
    def more(c):
        tl.debug.print("more {}?", c)
        return c < 2

    def body(c):
        tl.debug.print("body {}", c)
        return c + 1

    way(lambda x: lax.while_loop(more, body, x))(0)
    assert sorted(printed()) == ["body 0", "body 1", "more 0?", "more 1?", "more 2?"]


@ways
def test_branches_print_when_they_are_taken(way, printed):
    def f(x):
        return lax.cond(x > 0, lambda x: (tl.debug.print("positive {}", x), x * x)[1], lambda x: -x, x)

    way(f)(F32(3)), way(f)(F32(-3))
    assert printed() == ["positive 3.0"]
    assert way(tl.grad(f))(F32(3)) == 6
    assert printed() == ["positive 3.0"]


@ways
def test_mapped_branches_and_loops_print_for_the_examples_that_run_them(way, printed):
    def branch(x):
        return lax.cond(x > 0, lambda x: (tl.debug.print("{}", x), x * x)[1], lambda x: -x, x)

    np.testing.assert_array_equal(way(tl.vmap(branch))(X - 1), [1, 0, 1])
    assert printed() == ["1.0"]
    np.testing.assert_array_equal(way(tl.vmap(tl.grad(branch)))(X - 1), [-1, -1, 2])
    assert printed() == ["1.0"]
    way(tl.vmap(lambda x: lax.while_loop(lambda c: c < 2, lambda c: (tl.debug.print("{}", c), c + 1)[1], x)))(X)
    assert printed() == ["0.0", "1.0", "1.0"]
    way(tl.vmap(lambda x: lax.cond(x > 0, lambda: tl.debug.print("{}", x), lambda: None)))(X)
    assert printed() == ["1.0", "2.0"]


@ways
def test_checkpoints_print_once(way, printed):
    f = tl.checkpoint(lambda x: tnp.sin(tnp.sin(square(x))))
    way(tl.grad(f))(F32(3))
    assert printed() == ["x = 3.0"]


def test_printing_changes_nothing_else():
    plain, printing = (lambda x: (x * x).sum()), (lambda x: square(x).sum())
    x = np.array([0.1, -3.7], F32)
    for transform in (lambda f: f, tl.grad, tl.hessian, lambda f: tl.vmap(tl.grad(f), -1)):
        given = np.stack([x, 2 * x]) if transform.__name__ == "<lambda>" else x
        np.testing.assert_array_equal(tl.jit(transform(plain))(given), tl.jit(transform(printing))(given))


@ways
def test_ordered_lines_are_in_order(way, printed):
    def f(x):
        for i in range(20):
            tl.debug.print("{}", (x @ x)[0, 0] * 0 + i, ordered=True)

    way(f)(np.eye(100, dtype=F32))
    assert printed() == [f"{i}.0" for i in range(20)]


def test_from_several_threads(printed):
    f = tl.jit(lambda x: tl.debug.print("{}", x))
    threads = [threading.Thread(target=lambda k=k: [f(k) for _ in range(10)]) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(printed()) == sorted(str(k) for k in range(4) for _ in range(10))


# ---- as JAX --------------------------------------------------------------------------------------------------

SHOWN = """
m.debug.print("x = {x} {}", x["a"], x=x["b"])
m.debug.print("{} {:.2f} {!s}", 0.1, y, True)
m.debug.print("{0} {0:>5} {1}", 3, "text")
m.debug.print("{}", y.astype("bfloat16"))
m.vmap(lambda z: m.debug.print("z = {}", z))(x["a"])
m.grad(lambda z: (m.debug.print("z = {}", z), z * z)[1])(y)
m.debug.print("{} {}", y.shape, (y, [x["b"]]))
"""


def test_the_lines_are_those_of_jax(printed):
    jax = pytest.importorskip("jax")

    def run(m):
        def f(x, y):
            exec(SHOWN, {"m": m, "x": x, "y": y})

        m.jit(f)({"a": m.numpy.arange(3.0) / 3, "b": m.numpy.array([True, False])}, m.numpy.float32(2.5))
        m.effects_barrier()
        return sorted(printed())

    assert run(tl) == run(jax)


# ---- logging -------------------------------------------------------------------------------------------------


def test_log(caplog):
    with caplog.at_level("INFO", logger="tapeless"):
        tl.jit(lambda x: tl.debug.log("x = {x}", x=x))(F32(2.5))
        tl.debug.log(ordered=True)("{:.1f}", 1.25)
        tl.effects_barrier()
    assert [(r.message, r.levelname, r.filename) for r in caplog.records] == [
        ("x = 2.5", "INFO", "test_debug.py"),
        ("1.2", "INFO", "test_debug.py"),
    ]
    assert [r.lineno for r in caplog.records] == [test_log.__code__.co_firstlineno + n for n in (2, 3)]
    with raises(IndexError, "debug.log: '{}' prints value 0, counted from 0, but 0 are given."):
        tl.debug.log("{}")
    with pytest.raises(IndexError) as caught:
        tl.debug.log("{}")
    assert [frame.path for frame in caught.traceback if frame.path.name == "string.py"] == []
