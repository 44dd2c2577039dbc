"""`config.numpy_bits`: NumPy's 64 bits kept, or taken as 32; and what errors say where the two widths meet."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.tracer import dtypes
from tapeless.tracer.types import aval_of
from tests.messages import WIDTHS, place, raises, text_of
from tests.samples import SAMPLES
from tests.samples.sample import Sample

V, M, N = np.array([0.5, 0.25, 0.75]), np.array([[4.0, 1, 0], [1, 3, 1], [0, 1, 2]]), np.array([2, 0, 1])
NARROW = {"float64": "float32", "int64": "int32", "uint64": "uint32", "complex128": "complex64"}


@pytest.fixture
def taken_as_32():
    with tl.config.scope(numpy_bits=32):
        yield


def narrow(x):
    return x.astype(NARROW.get(str(x.dtype), x.dtype))


def swapped(x):
    return x.astype(x.dtype.newbyteorder(">"))


WAYS_IN = {
    "asarray": tnp.asarray,
    "array": tnp.array,
    "device_put": tl.device_put,
    "lists": lambda x: tnp.array([x, 2 * x]),
    "numbers in lists": lambda x: tnp.array([*np.ravel(x)]),
    "eager": tnp.sin,
    "lax": lambda x: lax.add(x, x),
    "operators": lambda x: tnp.ones(3) * x + x * tnp.ones(3),
    "index": lambda x: tnp.asarray(x)[1:],
    "set": lambda x: tnp.zeros(3).at[:].set(x),
    "jit": lambda x: tl.jit(lambda x: 2 * x)(x),
    "constant": lambda x: tl.jit(lambda y: y * x)(tnp.ones(3)),
    "result": lambda x: tl.jit(lambda: x)(),
    "scalar constant": lambda x: tl.jit(lambda: np.asarray(x[0]))(),
    "scalar": lambda x: tl.jit(lambda: x[0])(),
    "grad": tl.grad(lambda x: tnp.sum(x * x)),
    "vjp": lambda x: tl.vjp(tnp.sin, x)[1](x),
    "jvp": lambda x: tl.jvp(tnp.sin, (x,), (x,)),
    "linearize": lambda x: tl.linearize(tnp.sin, x)[1](x),
    "vmap": tl.vmap(lambda x: x + 1),
    "vmapped constant": lambda x: tl.vmap(lambda y: y + x)(tnp.ones((2, 3))),
    "scan": lambda x: lax.scan(lambda c, y: (c + y, c), tnp.zeros(()), x),
    "carry": lambda x: lax.fori_loop(0, 2, lambda i, c: c * 2, x),
    "while": lambda x: lax.while_loop(tnp.any, lambda c: c - c, x),
    "cond": lambda x: lax.cond(True, lambda y: y, lambda y: y * 2, x),
    "branches": lambda x: lax.cond(True, lambda: x, lambda: tnp.ones(3)),
    "map": lambda x: lax.map(lambda y: y * 2, x),
    "checkpoint": tl.grad(lambda x: tnp.sum(tl.checkpoint(tnp.sin)(x))),
    "zeros_like": tnp.zeros_like,
    "full_like": lambda x: tnp.full_like(x, 2),
    "result_type": lambda x: tnp.zeros(1, tnp.result_type(x)),
    "compound": tnp.var,
    "einsum": lambda x: tnp.einsum("i,i->", x, x),
    "where": lambda x: tnp.where(x > 0, x, 0),
    "concatenate": lambda x: tnp.concatenate([x, tnp.ones(2)]),
    "clip": lambda x: tnp.clip(x, x, 1),
    "barrier": lambda x: lax.optimization_barrier(x) * 1,
    "big-endian": lambda x: tnp.asarray(swapped(x)),
    "number": lambda x: tnp.asarray(x[0]),
    "number in jit": lambda x: tl.jit(tnp.cos)(x[0]),
}


@pytest.mark.parametrize("way", WAYS_IN)
def test_ways_in(way, taken_as_32):
    expected, found = WAYS_IN[way](V.astype(np.float32)), WAYS_IN[way](V)
    assert tl.tree.structure(found) == tl.tree.structure(expected)
    for x, y in zip(tl.tree.leaves(found), tl.tree.leaves(expected), strict=True):
        assert x.dtype == y.dtype and str(x.dtype) not in NARROW
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


DTYPES = [V, N, V + 1j * V, N.astype(np.uint64), np.array(0.5), np.array([]), M.T, N > 1, N.astype(np.int8)]


@pytest.mark.parametrize("x", DTYPES, ids=lambda x: f"{x.dtype}{x.shape}")
def test_dtypes(x, taken_as_32):
    for f in (tnp.asarray, tl.jit(lambda x: x), lambda x: tl.jit(lambda: x)()):
        assert f(x).dtype == narrow(x).dtype and np.array_equal(np.asarray(f(x)), narrow(x))


def test_what_is_asked_for_keeps_its_width(taken_as_32):
    wide = tnp.asarray(V / 3, np.float64)
    assert wide.dtype == np.float64 and np.array_equal(np.asarray(wide), V / 3)
    assert (wide * 2).dtype == tl.jit(tnp.sin)(wide).dtype == (wide * V).dtype == np.float64
    assert tnp.asarray(np.array([2**40]), np.int64).tolist() == [2**40]
    assert pickle.loads(pickle.dumps(wide)).dtype == tl.from_dlpack(V).dtype == np.float64
    assert tl.grad(lambda x: tnp.sum(x**2))(wide).dtype == np.float64


def test_by_default_nothing_changes():
    assert tl.config.numpy_bits == 64
    for way in ("asarray", "jit", "constant", "grad", "vmap", "map", "number"):
        assert any(str(x.dtype) in NARROW for x in tl.tree.leaves(WAYS_IN[way](V))), way


def test_programs_keep_the_types_they_were_traced_with():
    def f(x):
        return x * V + np.array(0.5)

    with tl.config.scope(numpy_bits=32):
        narrow_program, jitted = tl.make_jaxpr(f)(V), tl.jit(f)
        _, pull_back = tl.vjp(f, V)
        assert jitted(V).dtype == np.float32
    wide_program = tl.make_jaxpr(f)(V)
    assert jitted(V).dtype == tl.jit(f)(V).dtype == np.float64
    assert pull_back(V.astype(np.float32))[0].dtype == narrow_program.out_avals[0].dtype == np.float32
    with tl.config.scope(numpy_bits=32):
        assert jitted(V).dtype == tl.jit(f)(V).dtype == np.float32
        assert wide_program.consts[0].dtype == wide_program.out_avals[0].dtype == np.float64


def unfit(array, dtype, element, name):
    return (
        f"config.numpy_bits is 32, so a NumPy array {array} is taken as {dtype}, which {element} does not fit.\n"
        f"  Keep its width with tnp.asarray(x, {name!r}), or by jax_enable_x64 inside of as_jax; or convert it where "
        "it is read."
    )


ENTRIES = {
    "asarray": tnp.asarray,
    "eager": tnp.sin,
    "operator": lambda x: x + tnp.zeros(2, np.int32),
    "argument": lambda x: tl.jit(lambda x: x)(x),
    "result": lambda x: tl.jit(lambda: x)(),
    "vmap": tl.vmap(tnp.cos),
}


@pytest.mark.parametrize("way", ENTRIES)
def test_numbers_that_do_not_fit(way, taken_as_32):
    with raises(OverflowError, unfit("int64[2]", "int32", 2**40, "int64")):
        ENTRIES[way](np.array([1, 2**40]))
    with raises(OverflowError, unfit("int64[2]", "int32", -(2**31) - 1, "int64")):
        ENTRIES[way](np.array([1, -(2**31) - 1]))
    with raises(OverflowError, unfit("float64[2]", "float32", "1e+300", "float64")):
        ENTRIES[way](np.array([1, 1e300]))


def test_infinities_and_small_numbers(taken_as_32):
    found = np.asarray(tnp.asarray(np.array([np.inf, -np.inf, np.nan, 1e-300])))
    np.testing.assert_array_equal(found, np.array([np.inf, -np.inf, np.nan, 0], np.float32))


def test_numbers_alone_that_do_not_fit(taken_as_32):
    for way in (tnp.asarray, tl.jit(lambda x: x), tl.device_put, lambda x: tnp.array([x, x])):
        with pytest.raises(OverflowError, match=str(2**40)):
            way(np.int64(2**40))


def test_the_environment():
    code = "import numpy as np, tapeless.numpy as tnp; print(tnp.asarray(np.ones(1)).dtype)"
    for bits, expected in (("32", "float32"), ("64", "float64"), ("16", "must be 32 or 64, not '16'.")):
        environment = {**os.environ, "TAPELESS_NUMPY_BITS": bits}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
        )
        assert (done.stdout or done.stderr).strip().endswith(expected)


# ---- programs of 64 bits do not change ------------------------------------------------------------------------

WIDE = {narrow: wide for wide, narrow in NARROW.items()}


def widened(row: Sample):
    """Programs of a primitive in 64 bits, and of its derivatives, as text with their constants."""
    args = [x.astype(WIDE.get(str(x.dtype), x.dtype)) for x in map(np.asarray, row.args)]
    params = {k: np.dtype(WIDE.get(str(v), v)) if k == "dtype" else v for k, v in row.params.items()}
    some = range(len(args)) if row.differentiable is None else row.differentiable
    places = [i for i in some if dtypes.is_inexact(args[i].dtype)]

    def values(*xs):
        return row.primitive.bind(*xs, **params)

    def derivatives(*xs):
        def f(*chosen):
            full = list(xs)
            for i, x in zip(places, chosen, strict=True):
                full[i] = x
            return [y for y in values(*full) if dtypes.is_inexact(aval_of(y).dtype)]

        chosen = tuple([xs[i] for i in places])
        ys, pull_back = tl.vjp(f, *chosen)
        return pull_back(ys), tl.jvp(f, chosen, chosen)

    types = [tl.ShapeDtypeStruct(x.shape, x.dtype) for x in args]
    programs = [tl.make_jaxpr(f)(*types) for f in ((values, derivatives) if places else (values,))]
    return [(str(p), [(x.dtype, np.asarray(x).tolist()) for x in p.consts]) for p in programs]


@pytest.mark.parametrize("name", sorted({str(row.primitive) for row in SAMPLES}))
def test_programs_of_64_bits_are_the_same(name):
    for row in [row for row in SAMPLES if str(row.primitive) == name and row.axis is None]:
        try:
            expected = widened(row)
        except (TypeError, NotImplementedError, ValueError):
            continue  # not of 64 bits, or it has no derivative
        with tl.config.scope(numpy_bits=32):
            assert repr(widened(row)) == repr(expected), row


# ---- errors ---------------------------------------------------------------------------------------------------

WHAT = (
    ": convert where data come in, set tl.config.numpy_bits = 32 for all of them, or make 64 bits the default: "
    'tl.config.update("default_bits", 64).'
)
NAMED = f"\n  {{}} is a NumPy array, and NumPy's width is kept{WHAT}"
ONES = tnp.ones(3)


@pytest.mark.parametrize(
    "f, array",
    [
        (lambda: lax.mul(ONES, V), "float64[3]"),
        (lambda: tl.jit(lambda x: lax.mul(x, V))(ONES), "float64[3]"),
        (lambda: tl.grad(lambda x: lax.mul(x, V).sum())(ONES), "float64[3]"),
        (lambda: lax.add(ONES, V), "float64[3]"),
        (lambda: lax.concatenate([ONES, V], 0), "float64[3]"),
        (lambda: lax.dynamic_update_slice(ONES, V[:1], (0,)), "float64[1]"),
        (lambda: lax.conv(tnp.ones((1, 1, 3, 3)), M[None, None], (1, 1), "SAME"), "float64[1,1,3,3]"),
        (lambda: lax.scan(lambda c, x: (c + x, None), ONES, M), "float64[3,3]"),
        (lambda: lax.scan(lambda c, x: (c * V, None), ONES, None, length=2), "float64[3]"),
        (lambda: lax.fori_loop(0, 2, lambda i, c: c * V, ONES), "float64[3]"),
        (lambda: lax.while_loop(lambda c: c.sum() > 2, lambda c: c * V, ONES), "float64[3]"),
        (lambda: lax.cond(True, lambda x: x, lambda x: x * V, ONES), "float64[3]"),
        (lambda: tl.vjp(tnp.sin, ONES)[1](V), "float64[3]"),
        (lambda: tl.jvp(tnp.sin, (ONES,), (V,)), "float64[3]"),
    ],
)
def test_errors_name_the_numpy_array(f, array):
    with pytest.raises(TypeError) as raised:
        f()
    assert text_of(raised.value).endswith(NAMED.format(array))
    with tl.config.scope(numpy_bits=32):
        f()


def test_errors_about_arguments_that_were_numpys():
    for f in (lambda x, w: lax.concatenate([x[None], w], 0), lambda x, w: lax.fori_loop(0, 2, lambda i, c: c @ w, x)):
        with pytest.raises(TypeError) as raised:
            tl.jit(f)(ONES, M)
        assert text_of(raised.value).endswith(WIDTHS)
        with tl.config.scope(numpy_bits=32):
            assert tl.jit(f)(ONES, M).dtype == np.float32


def test_other_errors_say_nothing_of_it():
    for f in (lambda: lax.add(ONES, ONES.astype(int)), lambda: lax.add(V, N), lambda: lax.add(ONES, V[:2] > 0)):
        with pytest.raises((TypeError, ValueError)) as raised:
            f()
        assert "numpy_bits" not in text_of(raised.value)


def same(x):
    return x


def test_a_compiled_program_that_is_given_wider_arrays():
    compiled = tl.jit(same).lower(ONES).compile()
    with raises(
        TypeError,
        f"{place(same)} was compiled for float32[3] as argument x, but called with float64[3]."
        + NAMED.format("float64[3]"),
    ):
        compiled(np.ones(3))
