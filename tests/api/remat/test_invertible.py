"""Invertible functions: derivatives are those of the function, and memory does not grow with depth."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests.messages import place, raises, text_of


def couple(x: Any, w: Any) -> Any:
    """Two additive couplings, as in a reversible residual network."""
    a, b = x
    a = a + tnp.tanh(b @ w)
    return a, b + tnp.tanh(a @ w)


def uncouple(y: Any, w: Any) -> Any:
    a, b = y
    b = b - tnp.tanh(a @ w)
    return a - tnp.tanh(b @ w), b


def flow(x: Any, w: Any) -> Any:
    """An affine coupling that swaps the halves, with the logarithm of its determinant."""
    a, b = x
    s = tnp.tanh(a @ w)
    return (b * tnp.exp(s) + a, a), s.sum()


def flow_back(y: Any, w: Any) -> Any:
    c, a = y
    return a, (c - a) * tnp.exp(-tnp.tanh(a @ w))


def stream(x: Any, other: Any, w: Any) -> Any:
    return x + tnp.sin(other @ w)


def stream_back(y: Any, other: Any, w: Any) -> Any:
    return y - tnp.sin(other @ w)


COUPLE = tl.invertible(couple, uncouple)
FLOW = tl.invertible(flow, flow_back, has_aux=True)
STREAM = tl.invertible(stream, stream_back)
N = 3
RNG = np.random.default_rng(0)
X, WS = RNG.standard_normal((2, 3)), 0.3 * RNG.standard_normal((N, 3, 3))  # float64


def layers(block: Any) -> Any:
    def f(x: Any, ws: Any) -> Any:
        x = x * 2.0, x * 3.0
        for w in ws:
            x = block(x, w)
        return (x[0] * x[1]).sum()

    return f


def scanned(block: Any) -> Any:
    def f(x: Any, ws: Any) -> Any:
        def step(carry: Any, w: Any) -> Any:
            return block(carry, w), carry[0].sum()

        y, sums = lax.scan(step, (x * 2.0, x * 3.0), ws, reverse=True)
        return (y[0] * y[1]).sum() + (sums**2).sum()

    return f


def counted(block: Any) -> Any:
    """The index is in the carry, and needed backwards; a part that is not inverted has its residuals stacked."""

    def f(x: Any, ws: Any) -> Any:
        def step(i: Any, carry: Any) -> Any:
            x, h = carry
            w = lax.dynamic_index_in_dim(ws, i, keepdims=False)
            return block(x, w * h), tnp.sin(h + x[0].mean())

        y, h = lax.fori_loop(0, ws.shape[0], step, ((x * 2.0, x * 3.0), 0.1 * x.sum()))
        return (y[0] * y[1]).sum() + h

    return f


def flowing(block: Any) -> Any:
    def f(x: Any, ws: Any) -> Any:
        z, total = (x, x * 0.5), 0.0
        for w in ws:
            z, logdet = block(z, w)
            total = total + logdet
        return (z[0] ** 2).sum() + (z[1] ** 2).sum() - total

    return f


def streaming(block: Any) -> Any:
    """Each stream is an argument of the other's function."""

    def f(x: Any, ws: Any) -> Any:
        a, b = x * 1.0, x * 0.5
        for w in ws:
            a = block(a, b, w)
            b = block(b, a, w)
        return (a * b).sum()

    return f


PROGRAMS = {
    "layers": (layers, COUPLE, couple),
    "scanned": (scanned, COUPLE, couple),
    "counted": (counted, COUPLE, couple),
    "flowing": (flowing, FLOW, flow),
    "streaming": (streaming, STREAM, stream),
}
BOTH = (0, 1)
MODES = {
    "value": lambda f: f,
    "grad": lambda f: tl.grad(f, BOTH),
    "grad of weights": lambda f: tl.grad(f, 1),
    "jvp": lambda f: lambda x, ws: tl.jvp(f, (x, ws), (x, 0.5 * ws)),
    "vmap of grad": lambda f: lambda x, ws: tl.vmap(tl.grad(f, BOTH), (0, None))(tnp.stack([x, -x]), ws),
    "grad of vmap": lambda f: tl.grad(lambda x, ws: tl.vmap(f, (None, 0))(x, tnp.stack([ws, -ws])).sum(), BOTH),
    "forward over reverse": lambda f: lambda x, ws: tl.jvp(tl.grad(f, BOTH), (x, ws), (x, 0.5 * ws)),
    "reverse over reverse": lambda f: tl.grad(lambda x, ws: sum((g**2).sum() for g in tl.grad(f, BOTH)(x, ws)), BOTH),
    "linearize": lambda f: lambda x, ws: tl.linearize(f, x, ws)[1](x, 0.5 * ws),
    "jit": lambda f: tl.grad(tl.jit(f), BOTH),
    "checkpoint": lambda f: tl.grad(tl.checkpoint(f), BOTH),
    "budget": lambda f: tl.grad(f, BOTH, memory_budget=0),
    "cond": lambda f: tl.grad(lambda x, ws: lax.cond(x.sum() > 9, lambda x, ws: x.sum(), f, x, ws), BOTH),
}


def assert_same(found: Any, wanted: Any) -> None:
    for a, b in zip(tl.tree.leaves(found), tl.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)  # float64; an input comes back rounded a few times


@pytest.mark.parametrize("mode", MODES)
def test_derivatives_are_those_of_the_function(mode: str):
    for program, block, function in PROGRAMS.values():
        wanted = tl.jit(MODES[mode](program(function)))(X, WS)
        assert_same(tl.jit(MODES[mode](program(block)))(X, WS), wanted)


def test_derivatives_without_jit():
    for program, block, function in PROGRAMS.values():
        assert_same(tl.grad(program(block), BOTH)(X, WS), tl.grad(program(function), BOTH)(X, WS))


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("csfop"), st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=7))
def test_random_compositions(steps: list[tuple[str, int, int]]):
    """Three values that invertible and other functions replace in any order, so that some inputs must be saved."""

    def program(c: Any, f: Any, s: Any) -> Any:
        def run(x: Any, ws: Any) -> Any:
            v = [x, x + 1.0, 0.5 * x]
            total = 0.0
            for kind, i, j in steps:
                k = (i + 1) % 3
                if kind == "c":
                    v[i], v[k] = c((v[i], v[k]), ws[j])
                elif kind == "f":
                    (v[i], v[k]), more = f((v[i], v[k]), ws[j])
                    total = total + more
                elif kind == "s":
                    v[i] = s(v[i], v[j], ws[0]) if i != j else v[i]
                elif kind == "p":
                    v[i] = s(v[j], v[k], ws[1])
                else:
                    v[i] = tnp.cos(v[j])
            return total + sum(((n + 1) * (y * y).mean() for n, y in enumerate(v)), 0.0)

        return tl.grad(run, BOTH)

    assert_same(program(COUPLE, FLOW, STREAM)(X, WS), program(couple, flow, stream)(X, WS))


@pytest.mark.parametrize("dtype, rtol", [("bfloat16", 0.03), ("complex64", 1e-5)])
def test_dtypes(dtype: str, rtol: float):
    """The tolerance is a few units in the last place of the dtype, over three layers there and back."""
    x, ws = tnp.asarray(X).astype(dtype), tnp.asarray(WS).astype(dtype)
    found, wanted = (
        tl.grad(lambda x, ws, b=b: tnp.real(layers(b)(x, ws)).astype("float32"), BOTH)(x, ws) for b in (COUPLE, couple)
    )
    for a, b in zip(found, wanted):
        assert a.dtype == dtype
        a, b = (np.asarray(y.astype("complex64")) for y in (a, b))
        np.testing.assert_allclose(a, b, rtol=0, atol=rtol * np.abs(b).max())


def test_integers_keys_and_closures():
    """Integers pass through, the same numbers are drawn again, and what functions close over is differentiated."""
    key = tl.random.key(0)

    def loss(wrap: Any) -> Any:
        def f(x: Any, scale: Any) -> Any:
            def there(x: Any, key: Any) -> Any:
                (x, n), noise = x, tl.random.normal(key, X.shape, X.dtype)
                return x * tnp.exp(scale * noise) * n, n + 1

            def back(y: Any, key: Any) -> Any:
                (y, n), noise = y, tl.random.normal(key, X.shape, X.dtype)
                return y / (tnp.exp(scale * noise) * (n - 1)), n - 1

            block, x = wrap(there, back), (x, 1)
            for k in tl.random.split(key, 3):
                x = block(x, k)
            return tnp.sin(x[0]).sum() * x[1]

        return tl.grad(f, BOTH)(X, np.float64(0.5))

    assert_same(loss(tl.invertible), loss(lambda there, back: there))


# ---- memory --------------------------------------------------------------------------------------------------


def temporaries(f: Any, *args: Any) -> float:
    """Bytes of temporaries over those of the first argument."""
    return tl.jit(tl.grad(f, BOTH)).lower(*args).compile().memory_analysis().temp_size_in_bytes / args[0].nbytes


WIDE = RNG.standard_normal((1024, 3)).astype(np.float32)


def small_weights(n: int) -> Any:
    return (0.1 * RNG.standard_normal((n, 3, 3))).astype(np.float32)


@pytest.mark.parametrize("name", ["layers", "flowing", "streaming"])
def test_temporaries_of_layers_do_not_grow(name: str):
    """Each layer adds the pointers of barriers and the gradient of its weights, some hundred bytes."""
    program, block, _ = PROGRAMS[name]
    few, many = (temporaries(program(block), WIDE, list(small_weights(n))) for n in (8, 32))
    assert few <= 11
    assert many - few < 24 * 400 / WIDE.nbytes


@pytest.mark.parametrize("name", ["scanned", "counted"])
def test_temporaries_of_loops_do_not_grow(name: str):
    """Stacked are the sums of `scanned`, one number for each step, and what `counted` does not invert."""
    program, block, function = PROGRAMS[name]
    found = [temporaries(program(block), WIDE, small_weights(n)) for n in (10, 1000)]
    assert found[1] - found[0] < 1000 * 100 / WIDE.nbytes
    assert found[0] < 13
    assert temporaries(program(function), WIDE, small_weights(100)) > 100


def test_what_is_computed():
    """The function, its inverse, the function again, and its derivative, of two operations for each: 5 for 3."""
    ws = list(small_weights(8))
    found, plain = (tl.work(tl.make_jaxpr(tl.grad(layers(b), BOTH))(WIDE, ws).jaxpr) for b in (COUPLE, couple))
    assert 1.5 < found / plain <= 5 / 3


def test_residuals_are_the_last_results():
    ws = list(WS)
    assert tl.memory(layers(COUPLE), X, ws).residuals and tl.memory(layers(COUPLE), X, ws * 3).peak <= 1.01 * (
        tl.memory(layers(COUPLE), X, ws).peak
    )


# ---- errors --------------------------------------------------------------------------------------------------


def scale(x: Any, by: Any) -> Any:
    return {"a": x["a"] * by, "b": x["b"]}


def narrow(y: Any, by: Any) -> Any:
    return {"a": (y["a"] / by).astype(np.float16), "b": y["b"][0]}


def lose(y: Any, by: Any) -> Any:
    return {"a": y["a"] / by}


def show(x: Any) -> Any:
    tl.debug.print("{}", x)
    return x


def same(x: Any) -> Any:
    return x


def test_an_inverse_must_give_back_what_the_function_takes():
    x, advice = {"a": np.float32([1, 2]), "b": np.float32([1, 2])}, "  Return from the inverse all of x, of the same "
    with raises(
        TypeError,
        f"invertible: what {place(narrow)} gives back is not the x that {place(scale)} takes.\n"
        "  x['a'] goes in as float32[2], comes back as float16[2].\n"
        f"  x['b'] goes in as float32[2], comes back as float32[].\n{advice}shapes and dtypes.",
    ):
        tl.invertible(scale, narrow)(x, 2.0)
    with raises(
        TypeError,
        f"invertible: what {place(lose)} gives back is not the x that {place(scale)} takes.\n"
        f"  ['b'] is a leaf in x, nothing in what comes back.\n{advice}shapes and dtypes.",
    ):
        tl.invertible(scale, lose)(x, 2.0)


def test_effects_are_refused():
    for f, g in ((show, same), (same, show)):
        with raises(
            ValueError,
            f"invertible: {place(show)} has an effect, debug_callback at {place(show, 'debug.print')}, which would "
            "happen again in the backward pass.\n  Do it outside of the function.",
        ):
            tl.invertible(f, g)(1.0)


def test_what_is_not_a_function_or_an_array():
    with raises(TypeError, "invertible: inverse must be a function, not 3."):
        tl.invertible(same, 3)
    with raises(TypeError, "invertible: expected a function, not 3."):
        tl.invertible(3, same)
    with raises(
        TypeError,
        f"invertible: {place(same)} was called without an argument by position, but the first one is what the inverse "
        "gives back.",
    ):
        tl.invertible(same, same)(x=1.0)
    with raises(
        TypeError,
        f"invertible: argument x of {place(same)} is 'train' of type str, which is not an array.\n"
        "  Close over it, as functools.partial does.",
    ):
        tl.invertible(same, same)("train")
    with raises(
        TypeError,
        f"invertible: {place(same)} must return a pair (y, aux), as has_aux=True, but returned one array.",
    ):
        tl.invertible(same, same, has_aux=True)(1.0)


# ---- the check -----------------------------------------------------------------------------------------------


def halve_wrong(y: Any, by: Any) -> Any:
    return {"a": y["a"] / 3.0, "b": y["b"]}


def fixed(y: Any, by: Any) -> Any:
    return {"a": lax.stop_gradient(y["a"] / by), "b": y["b"]}


def test_check_inverse():
    from_ints = tl.invertible(lambda x: (x[0] + 1.0, x[1]), lambda y: (y[0] - 1.0, y[1]))
    for f, args in ((COUPLE, ((X, X), WS[0])), (FLOW, ((X, X), WS[0])), (from_ints, ((1.0, 3),))):
        tl.testing.check_inverse(f, args)
    x = {"a": np.array([1.0, 3.0]), "b": np.array(2)}
    with raises(
        AssertionError,
        f"check_inverse: {place(halve_wrong)} does not invert {place(scale)}: x['a'][0] is 1.0, comes back as "
        "0.6666666666666666, and the largest error is 1 (rtol=1e-09, atol=1e-09).",
    ):
        tl.testing.check_inverse(tl.invertible(scale, halve_wrong), (x, 2.0))
    with pytest.raises(AssertionError) as caught:
        tl.testing.check_inverse(tl.invertible(scale, fixed), (x, 2.0))
    assert "does not invert" in text_of(caught.value)
    assert "the tangent of x['a'][0]" in text_of(caught.value)
    tl.testing.check_inverse(tl.invertible(scale, halve_wrong), (x, 2.9), rtol=1.0)
    with raises(TypeError, f"check_inverse: {same!r} has no inverse; tl.invertible makes functions that have one."):
        tl.testing.check_inverse(same, (1.0,))
    with raises(
        TypeError,
        "check_inverse: args must be a tuple or list of arguments, not float.\n  Write check_inverse(f, (x, *args)).",
    ):
        tl.testing.check_inverse(COUPLE, 1.0)
