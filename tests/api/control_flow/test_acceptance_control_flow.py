"""The stated numbers of the acceptance examples with long programs, loops and branches: DA11, DA12, DA15, PB8."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.interpreters.simplify import simplify_program
from tests.close import long_programs_of_float64 as close

# ---- DA11 ----------------------------------------------------------------------------------------------------

V = np.array([2.0, 3.0])
FACTOR = np.float64(0.499999985)
STEPS = pytest.mark.parametrize(
    "steps, c, gradient",
    [
        (2000, 1.0, [0.3333133339329949, -0.22220888928866325]),
        (7000, 0.0, [0.3332633406816766, -0.22217556045445108]),
    ],
)


def unrolled(v, steps, c):
    y = v[0] / v[1]
    for _ in range(steps):
        y = FACTOR * (y + y - c)
    return y - c


def scanned(v, steps, c):
    y, _ = lax.scan(lambda y, _: (FACTOR * (y + y - c), None), v[0] / v[1], None, length=steps)
    return y - c


@STEPS
def test_da11_unrolled(steps, c, gradient):
    close(tl.grad(unrolled)(V, steps, np.float64(c)), gradient)


@STEPS
def test_da11_as_a_scan(steps, c, gradient):
    close(tl.grad(scanned)(V, steps, np.float64(c)), gradient)
    close(tl.jit(tl.grad(scanned), static_argnums=1)(V, steps, np.float64(c)), gradient)
    close(tl.jacfwd(scanned)(V, steps, np.float64(c)), gradient)


def test_da11_in_many_copies():
    def copies(v):
        return tnp.sum(tl.vmap(lambda _: scanned(v, 2000, np.float64(1)))(np.arange(1000)))

    close(tl.jit(tl.grad(copies))(V), 1000 * np.array([0.3333133339329949, -0.22220888928866325]), rtol=1e-11)


def size(f, *args):
    """Equations of a program, to the line."""
    return len(str(tl.make_jaxpr(f)(*args)).splitlines())


def test_da11_the_gradient_program_grows_with_the_steps_of_python_and_not_of_a_scan():
    def of(f, steps):
        return size(tl.grad(lambda v: f(v, steps, np.float64(1))), V)

    assert of(unrolled, 2000) - of(unrolled, 1000) == of(unrolled, 1000) - of(unrolled, 0) + 1  # the first is times 1
    assert of(unrolled, 2000) < 4 * 3 * 2000  # four times the function's operations, of which a step has three
    assert of(scanned, 2000) == of(scanned, 1000)


# ---- DA12 ----------------------------------------------------------------------------------------------------


def chosen(x):
    return lax.cond(x > 0, lambda: 2 * x, lambda: 5 * x)


@pytest.mark.parametrize("way", [lambda f: f, tl.jit], ids=["eager", "jit"])
def test_da12_gradient_of_a_choice(way):
    assert [float(way(tl.grad(chosen))(np.float32(x))) for x in (42, -42)] == [2, 5]
    np.testing.assert_array_equal(tl.vmap(tl.grad(chosen))(np.float32([42, -42])), [2, 5])


def test_da12_the_gradient_is_one_choice_of_constants():
    lines = str(simplify_program(tl.make_jaxpr(tl.grad(chosen))(np.float32(42)).jaxpr)).splitlines()
    assert [line.split("=", 1)[1].split() for line in lines[1:-1]] == [
        ["gt", "a", "0.0"],
        ["select_n", "b", "5.0", "2.0"],
    ]


# ---- DA15 ----------------------------------------------------------------------------------------------------


def folded(w, xs):
    """A fold whose function is closed over w, and over another fold."""
    start = lax.scan(lambda s, x: (s + tnp.sin(w * x), None), np.float64(0), xs)[0]
    return lax.scan(lambda s, x: (tnp.sin(s * w) + x * start, s * x), start, xs)


def folded_unrolled(w, xs):
    start = sum(tnp.sin(w * x) for x in xs)
    s, ys = start, []
    for x in xs:
        ys.append(s * x)
        s = tnp.sin(s * w) + x * start
    return s, tnp.stack(ys)


def built(fold, w, xs):
    """Folds inside of what is built of elements, nested: element i is a fold over folds."""
    rows = tl.vmap(lambda k: fold(w + k, xs)[1])(xs)
    return tnp.sum(tl.vmap(lambda row: fold(w, row)[0])(rows))


W, XS = np.float64(0.7), np.array([0.3, -0.5, 0.9])


@pytest.mark.parametrize("program", [lambda f, w, xs: f(w, xs)[0], built], ids=["fold", "built"])
def test_da15_folds_are_what_they_are_written_out(program):
    def staged(w, xs):
        return program(folded, w, xs)

    def written_out(w, xs):
        return program(folded_unrolled, w, [xs[k] for k in range(3)] if program is not built else xs)

    close(tl.jit(staged)(W, XS), np.asarray(written_out(W, XS)))
    for actual, expected in zip(tl.jit(tl.grad(staged, (0, 1)))(W, XS), tl.grad(written_out, (0, 1))(W, XS)):
        close(actual, np.asarray(expected), rtol=1e-11)


def test_da15_second_order():
    def second(fold):
        return tl.grad(lambda w: tl.grad(lambda w: fold(w, XS)[0])(w) * w)

    close(tl.jit(second(folded))(W), np.asarray(second(folded_unrolled)(W)), rtol=1e-11)


# ---- PB8 -----------------------------------------------------------------------------------------------------


def iterated(y, n):
    for _ in range(n):
        y = y * y + y
    return y


def test_pb8_the_pullback_grows_with_the_steps():
    sizes = [size(tl.grad(lambda y, n=n: iterated(y, n)), np.float64(1e-4)) for n in (0, 10, 100, 1000)]
    per_step = (sizes[3] - sizes[2]) / 900
    assert sizes[2] - sizes[1] == 90 * per_step
    assert per_step <= 8  # two operations in the function
    slopes = np.prod([2 * float(iterated(1e-4, k)) + 1 for k in range(100)])
    close(tl.grad(lambda y: iterated(y, 100))(np.float64(1e-4)), slopes)
