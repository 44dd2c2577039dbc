"""Weak types of results, compared with JAX's: a number must not widen an array, whatever is computed of it before."""

import itertools
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp

BINARY = """
add subtract multiply divide floor_divide remainder mod divmod fmod power float_power maximum minimum fmax fmin arctan2
logaddexp hypot copysign nextafter heaviside gcd lcm bitwise_and bitwise_or bitwise_xor left_shift right_shift dot vdot
inner outer kron append full_like where select polyadd
""".split()
UNARY = "angle imag real conj diag tril triu gradient sign rint square nan_to_num diff cumsum flip ravel".split()
OPERANDS = ("float", "int", "weak float", "weak int", "float32", "bfloat16", "int8", "int32", "NumPy int32")
# A NumPy array of integers and a float are strong there in these, and weak in all others.
STRONG_IN_JAX = ("hypot", "heaviside", "power", "logaddexp2")


def operand(lib: ModuleType, kind: str) -> Any:
    array = lib.numpy.asarray
    made = {"float": 2.5, "int": 3, "weak float": array(2.5), "weak int": array(3), "NumPy int32": np.int32([3])}
    return made[kind] if kind in made else array(2.5 if "float" in kind else 3, dtype=kind)


def function(lib: ModuleType, name: str) -> Any:
    np_ = lib.numpy
    special = {
        "where": lambda x, y: np_.where(True, x, y),
        "select": lambda x, y: np_.select([np_.asarray(True)], [x], y),
        "polyadd": lambda x, y: np_.polyadd(np_.ravel(x), np_.ravel(y)),
    }
    return special.get(name) or getattr(np_, name)


def types(lib: ModuleType, f: Any, *args: Any) -> list[tuple[str, bool]] | str:
    try:
        found = lib.eval_shape(lambda: f(*args))
    except (TypeError, ValueError, OverflowError):
        return "refused"
    return [(str(x.dtype), x.weak_type) for x in lib.tree.leaves(found)]


def is_otherwise_in_jax(name: str, kinds: tuple[str, ...]) -> bool:
    """Powers of integers have the type of the base there, as NumPy's have not."""
    integers = all("int" in kind for kind in kinds)
    return (name == "power" and integers) or (name in STRONG_IN_JAX and "NumPy int32" in kinds)


@pytest.mark.parametrize("name", BINARY)
def test_results_of_two_operands_are_weak_where_they_are_in_jax(name: str) -> None:
    jax = pytest.importorskip("jax")
    different: list[Any] = []
    for kinds in itertools.product(OPERANDS, repeat=2):
        theirs = types(jax, function(jax, name), *[operand(jax, kind) for kind in kinds])
        ours = types(tl, function(tl, name), *[operand(tl, kind) for kind in kinds])
        if "refused" not in (theirs, ours) and ours != theirs and not is_otherwise_in_jax(name, kinds):
            different.append((kinds, ours, theirs))
    assert different == []


@pytest.mark.parametrize("name", UNARY)
def test_results_of_one_operand_are_weak_where_they_are_in_jax(name: str) -> None:
    jax = pytest.importorskip("jax")
    for dtype in ("float", "int"):
        x = operand(jax, f"weak {dtype}"), operand(tl, f"weak {dtype}")
        shape = (2, 2) if name in ("tril", "triu") else (3,) if name in ("diag", "gradient", "diff", "cumsum") else ()
        theirs = types(jax, function(jax, name), jax.numpy.broadcast_to(x[0], shape))
        ours = types(tl, function(tl, name), tnp.broadcast_to(x[1], shape))
        assert [d for d, _ in ours] == [d for d, _ in theirs] and [w for _, w in ours] >= [w for _, w in theirs]


def test_remainders_of_numbers_do_not_widen_arrays() -> None:
    half = tnp.ones(1, tnp.bfloat16)
    for number in (tnp.mod(2.5, 2.0), tnp.remainder(2.5, 2.0), tnp.fmod(2.5, 2.0), *tnp.divmod(7.5, 2.0)):
        assert (number * half).dtype == tnp.bfloat16
    assert tl.jit(lambda x, y: (x % 2.0) * y)(3.0, half).dtype == tnp.bfloat16
    assert (tnp.gcd(6, 4) * tnp.ones(1, tnp.int8)).dtype == np.int8


def test_a_numpy_array_of_integers_and_a_number_make_a_weak_array() -> None:
    """As an array of ours does."""
    for x in (np.arange(3), tnp.arange(3)):
        y = tnp.multiply(x, 2.0)
        assert y.weak_type and (y * tnp.ones(3, tnp.bfloat16)).dtype == tnp.bfloat16


WEAKLY = {
    **{f"pad {mode}": lambda x, mode=mode: tnp.pad(x, 1, mode=mode) for mode in "constant edge wrap".split()},
    "gmres": lambda x: tl.scipy.sparse.linalg.gmres(lambda v: 2 * v, x)[0],
    **{
        name: lambda x, name=name: getattr(tnp, name)(tnp.full(3, 1), tnp.full(3, 2))
        for name in ("setdiff1d", "union1d", "intersect1d", "setxor1d")
    },
    "unique": lambda x: tnp.unique(tnp.full(3, 1)),
}


@pytest.mark.parametrize("name", WEAKLY)
def test_results_of_weak_arrays_give_way(name):
    x = tnp.full(3, 1.0)
    found = WEAKLY[name](x)
    assert found.weak_type
    assert (found[:0] * tnp.ones(0, "bfloat16")).dtype == "bfloat16"
