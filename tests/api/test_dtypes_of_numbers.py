"""Numbers of every kind have one dtype, eagerly, as arguments of `jit` and as its constants, in all settings of widths.

Nothing is compiled: eager operations give results by their types (`tests.typed_steps`), programs are only traced.
"""

import itertools
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.tracer.types import aval_of
from tests.typed_steps import by_types

NAMES = "bool int8 int32 int64 uint8 uint32 uint64 float16 float32 float64 complex64 complex128".split()
NUMBERS: dict[str, Any] = {
    "int": 1, "float": 1.0, "complex": 1j, "True": True, "bfloat16": ml_dtypes.bfloat16(1),
    **{name: np.dtype(name).type(1) for name in NAMES},
}  # fmt: skip
ARRAYS = {f"array of {name}": np.array(1, name) for name in NAMES if name.endswith(("32", "64", "128"))}
HALF = tnp.ones(2, "float16")
ELEMENTWISE = (
    "sin sqrt abs exp2 negative sign floor square logaddexp add multiply true_divide floor_divide power maximum"
)
FUNCTIONS = {
    **{name: getattr(tnp, name) for name in ELEMENTWISE.split()},
    **{name: getattr(tnp, name) for name in "sum mean cumsum array zeros_like gcd hypot where".split()},
    "softplus": tl.nn.softplus,
    "erf": tl.scipy.special.erf,
    "lax.add": lax.add,
    "lax.mul": lax.mul,
    "list": lambda x: tnp.array([x, x]),
    "full": lambda x: tnp.full(2, x),
    "in fori_loop": lambda x: lax.fori_loop(0, 2, lambda i, c: c, x),
    "in while_loop": lambda x: lax.while_loop(lambda c: c != c, lambda c: c, x),
    "in scan": lambda x: lax.scan(lambda c, _: (c, c), x, None, length=2),
    "in cond": lambda x: lax.cond(True, lambda y: y, lambda y: y, x),
    "in jit": lambda x: tl.jit(lambda y: y)(x),
    "in vmap": lambda x: tl.vmap(lambda y: y * x)(HALF),
    "jvp": lambda x: tl.jvp(tnp.sin, (x,), (x,)),
    "linearize": lambda x: tl.linearize(tnp.sin, x)[0],
    "grad": lambda x: tl.grad(tnp.sin)(x),
    "beside an array": lambda x: x * HALF,
    "at": lambda x: tnp.zeros(2, "float16").at[0].add(x),
    "optimization_barrier": lambda x: lax.optimization_barrier(x) * 1,
}
OF_TWO = {
    "add",
    "multiply",
    "true_divide",
    "floor_divide",
    "power",
    "maximum",
    "gcd",
    "hypot",
    "where",
    "logaddexp",
} | {
    "lax.add",
    "lax.mul",
}


@pytest.fixture(autouse=True, scope="module")
def nothing_is_compiled() -> Iterator[None]:
    with by_types():
        yield


def types(outs: Any) -> Any:
    return [(str(x.dtype), x.weak_type) for x in map(aval_of, tl.tree.leaves(outs))]


def traced(f: Any, *args: Any) -> Any:
    return [(str(x.dtype), x.weak_type) for x in tl.tree.leaves(tl.jit(f).eval_shape(*args))]


def attempt(run: Any, *args: Any) -> Any:
    """The types of results, or the type of the error."""
    try:
        return run(*args)
    except (TypeError, ValueError) as error:
        return type(error)


def operands(name: str, first: Any, second: Any) -> tuple[Any, ...]:
    return (True, first, second) if name == "where" else (first, second) if name in OF_TWO else (first,)


def check(name: str, args: tuple[Any, ...]) -> str:
    f = FUNCTIONS[name]
    eager = attempt(lambda: types(f(*args)))
    others = attempt(traced, f, *args), attempt(traced, lambda: f(*args))
    told = {"jit": others[0], "a constant in jit": others[1]}
    wrong = {k: v for k, v in told.items() if v != eager and not (isinstance(v, type) or isinstance(eager, type))}
    return f"{name}{args}: eager {eager}, {wrong}" if wrong else ""


SHARE = 0.25  # of the combinations, drawn
WIDTHS = [*itertools.product((32, 64), (32, 64))]


@pytest.mark.parametrize("default_bits, numpy_bits", WIDTHS)
def test_functions_of_one_number(default_bits, numpy_bits):
    rng = np.random.default_rng(0)
    others = [*NUMBERS.values(), *ARRAYS.values()]
    with tl.config.scope(default_bits=default_bits, numpy_bits=numpy_bits):
        found = [
            check(name, operands(name, x, others[int(rng.integers(len(others)))]))
            for x in (*NUMBERS.values(), *ARRAYS.values())
            for name in FUNCTIONS
            if rng.random() < SHARE
        ]
    assert [*filter(None, found)] == []


def test_numbers_of_64_bits_are_taken_as_32():
    for f in (tnp.sin, lambda x: lax.fori_loop(0, 2, lambda i, c: c, x), lambda x: tl.jvp(tnp.sin, (x,), (x,))[1]):
        with tl.config.scope(numpy_bits=32):
            assert f(np.float64(2)).dtype == np.float32
        assert f(np.float64(2)).dtype == np.float64


def test_our_own_numbers_keep_their_width():
    """`default_bits` is that of Python's numbers, whatever NumPy's are taken as."""
    with tl.config.scope(default_bits=64, numpy_bits=32):
        assert tnp.sin(0.1).dtype == tnp.asarray(np.float64(0.1), np.float64).dtype == np.float64
        assert tnp.sin(np.float64(0.1)).dtype == np.float32


def test_lengths_of_ranges_do_not_wrap():
    assert tnp.arange(3, np.uint32(1)).size == 0 == tl.jit(lambda: tnp.arange(np.uint8(3), np.uint8(1)))().size
