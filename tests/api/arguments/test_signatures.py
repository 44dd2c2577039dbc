"""Weak integers that a program wants to fit a narrower dtype: what is found in programs, and what calls say of it."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.arguments.signatures import narrowings
from tests.messages import place, raises

BYTES = tnp.ones(3, np.int8)


def shifted(x, n):
    return x + n


def called(x, n):
    return tl.jit(shifted)(x, n)


def written(x, n):
    return x.at[1].set(n)


def chosen(x, n):
    return tnp.where(x > 0, x, n)


def stretched(x, n):
    return tnp.concatenate([x, tnp.broadcast_to(n[None], (2,))])


FUNCTIONS = [shifted, called, written, chosen, stretched]


def refusal(f, line):
    where = place(shifted, "return") if f is called else place(f, line)
    return (
        f"jit: argument n of {place(f)} is 300, but must fit int8, which holds -128 to 127.\n"
        f"  It meets int8 at {where}.\n"
        "  Use an array of a wider dtype, or convert the number with astype, which wraps."
    )


@pytest.mark.parametrize("f", FUNCTIONS)
@pytest.mark.parametrize("number", [int, np.int64, tnp.asarray])
def test_numbers_as_arguments(f, number):
    jitted = tl.jit(f)
    for _ in range(2):
        assert jitted(BYTES, number(3)).dtype == np.int8
        with raises(OverflowError, refusal(f, "return")):
            jitted(BYTES, number(300))


@pytest.mark.parametrize("under", [
    lambda f: lambda x: f(x, 300),
    lambda f: lambda x: f(x, tnp.asarray(300)),
    lambda f: lambda x: tl.jit(lambda x, n: f(x, n))(x, 300),
    lambda f: tl.vmap(lambda x: f(x[None], 300)),
    lambda f: lambda x: tl.vmap(lambda x, n: f(x[None], n), in_axes=(0, None))(x, 300),
    lambda f: lambda x: tl.grad(lambda y: (y * f(x, 300)).sum())(1.0),
    lambda f: lambda x: tl.jit(tl.grad(lambda y, n: (y * f(x, n)).sum()))(1.0, 300),
    lambda f: lambda x: f.lower(x, 3).compile()(x, 300),
    lambda f: tl.jit(lambda x: f(x, 300)),
    lambda f: tl.jit(lambda x: f(x, tnp.asarray(300))),
])  # fmt: skip
def test_under_transformations(under):
    with pytest.raises(OverflowError, match="is 300, but must fit int8, which holds -128 to 127"):
        under(tl.jit(shifted))(BYTES)


def test_what_is_closed_over():
    n = tnp.asarray(300)
    with pytest.raises(OverflowError, match="the integer 300 does not fit int8"):
        tl.jit(lambda x: x + n)(BYTES)


def test_what_programs_show():
    def found(f, n=3):
        return [(x.what, x.dtype.name) for x in narrowings(tl.make_jaxpr(f)(np.ones(3, np.int8), n).jaxpr)]

    assert [found(f) for f in FUNCTIONS] == [[(1, "int8")]] * len(FUNCTIONS)
    assert found(lambda x, n: x + n.astype(np.int8)) == []
    assert found(lambda x, n: x.astype(np.int32) + n) == []
    assert found(shifted, np.array(3)) == found(shifted, np.int64(2**40)) == []
    assert found(lambda x, n: n < x.astype(np.uint32)) == [(1, "uint32")]


def test_computed_numbers_are_converted_as_they_are():
    np.testing.assert_array_equal(tl.jit(lambda x, n: x + 2 * n)(BYTES, 3), [7, 7, 7])


def test_other_calls_stay_fast():
    """Only programs that want something to fit are kept from the shortest way."""
    jitted = tl.jit(shifted)
    jitted(BYTES, BYTES), jitted(BYTES, BYTES)
    assert len(jitted._programs.calls) == 1
    jitted.clear_cache()
    jitted(BYTES, tnp.asarray(3)), jitted(BYTES, tnp.asarray(3))
    assert not jitted._programs.calls
