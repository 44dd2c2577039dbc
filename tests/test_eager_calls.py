"""Calls of library functions outside of `jit`: one program each; what cannot be one is computed by operations."""

import functools
import gc
import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from benchmarks import eager
from tapeless.lowering import dispatch
from tapeless.tracer import core
from tapeless.tracer.settings.config import config
from tests.typed_steps import by_types

X = np.array([0.5, 1, 2], np.float32)
A = np.array([[4, 1, 0], [1, 3, 1], [0, 1, 2]], np.float32)


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Collect the names of the programs that are run; types are all that is computed."""
    run: list[str] = []
    with by_types():
        evaluator = core._bottom.evaluator
        assert evaluator is not None
        for name in ("_evaluated", "evaluate_function"):
            monkeypatch.setattr(evaluator, name, functools.partial(_counted, run, getattr(evaluator, name)))
        yield run


def _counted(run: list[str], compute: Any, of: Any, args: Any, params: Any) -> Any:
    if of not in dispatch.inline:
        run.append(getattr(of, "name", None) or of.__name__)
    return compute(of, args, params)


# Rows of the benchmark that are not one program: they write several operations, or none.
_SEVERAL = {
    **dict.fromkeys(("np.asarray(x) again", "tree.map", "device_put"), 0),
    **dict.fromkeys(("where(x > 0, x, 0.)", "nn.one_hot", "special.logit"), 2),
    "stats.zscore": 4,
}
_OTHERS = {"float(x[0])", "random.split", "grad(sum(sin(x) * x))", "vmap(lambda v: v * v + 1)"}


def test_calls_are_one_program_each(programs: list[str]) -> None:
    x, a = tnp.asarray(X), tnp.asarray(A)
    found = {}
    for name in eager.ROWS.keys() - _OTHERS:
        programs.clear()
        eager.ROWS[name](tl, x, a)
        found[name] = len(programs)
    assert found == {name: _SEVERAL.get(name, 1) for name in found}


def test_new_numbers_are_operands_and_new_static_arguments_are_programs(programs: list[str]) -> None:
    evaluator: Any = core._bottom.evaluator
    x = tnp.asarray(X)
    programs.clear()
    for i in range(5):
        tnp.clip(x, 0.1 * i, i)
        tl.nn.leaky_relu(x, 0.1 * i)
    assert programs == ["clip", "leaky_relu"] * 5 and len(evaluator._types) == 2
    for axis, keepdims in itertools.product((0, (0,), -1, None), (False, True)):
        tnp.mean(x, axis, keepdims=keepdims)
    assert len(evaluator._types) == 10
    for fill in (0.0, -0.0, *[float("nan") for _ in range(3)]):  # no two of which are one object
        tnp.take(x, np.array([1, 9]), mode="fill", fill_value=fill)
    assert len(evaluator._types) == 13


# ---- results are those of the plain function -----------------------------------------------------------------

_CALLS: dict[str, Callable[[Any], Any]] = {
    "clip": lambda x: tnp.clip(x, 0, 1),
    "clip, float": lambda x: tnp.clip(x, 0.5, max=1.5),
    "where": lambda x: tnp.where(tnp.sign(x) != 0, x, 0),
    "where, float": lambda x: tnp.where(x != 0, 0.5, x),
    "where, numbers": lambda x: tnp.where(x != 0, 1, 2.5),
    "leaky_relu": lambda x: tl.nn.leaky_relu(x, negative_slope=0.25),
    "elu": lambda x: tl.nn.elu(x, 2),
    "softmax": tl.nn.softmax,
    "logsumexp": lambda x: tl.nn.logsumexp(x, b=2.0, return_sign=True),
    "one_hot": lambda x: tl.nn.one_hot(x, 3),
    "mean": tnp.mean,
    "var": lambda x: tnp.var(x, ddof=1),
    "median": tnp.median,
    "quantile": lambda x: tnp.quantile(x, 0.25),
    "sum": lambda x: tnp.sum(x, initial=1),
    "max": lambda x: tnp.max(x, initial=0, where=x != 0),
    "norm": tnp.linalg.norm,
    "isclose": lambda x: tnp.isclose(x, 1),
    "nan_to_num": lambda x: tnp.nan_to_num(x, nan=7),
    "interp": lambda x: tnp.interp(x, x, x, left=0.5),
    "heaviside": lambda x: tnp.heaviside(x, 0.5),
    "diff": lambda x: tnp.diff(x, prepend=0),
    "trapezoid": lambda x: tnp.trapezoid(x, dx=0.5),
    "matmul, NumPy": lambda x: tnp.matmul(x, np.ones(3, np.float32)),
    "matmul, wide": lambda x: tnp.matmul(np.ones((2, 3)), x),
    "matmul": lambda x: tnp.matmul(x, x),
    "split": lambda x: tnp.split(x, 3),
    "frexp": tnp.frexp,
    "fft": tnp.fft.fft,
    "take": lambda x: tnp.take(x, np.array([2, 0])),
    "cumsum": lambda x: tnp.cumsum(x, dtype=np.float64),
    "sign": tnp.sign,
}
_DTYPES = ("float32", "float16", "bfloat16", "float64", "int32", "uint8", "int64", "bool", "complex64")


def _answer(f: Callable[..., Any], *args: Any) -> Any:
    """Return the structure and the types of the results, or the error."""
    try:
        found = f(*args)
    except (TypeError, ValueError, OverflowError) as error:
        return type(error), str(error)
    leaves, structure = tl.tree.flatten(found)
    return structure, [(x.shape, x.dtype, x.weak_type) for x in leaves]


def _traced(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: tl.make_jaxpr(f, return_shape=True)(x)[1]


@pytest.mark.parametrize("bits", [32, 64])
def test_types_and_errors_are_those_of_jit_and_of_operations(bits: int) -> None:
    """Also for numbers that do not fit, for weak types, and for operands that are NumPy's."""
    wrong = []
    with by_types(), config.scope(default_bits=bits):
        xs = [*[tnp.ones(3, dtype) for dtype in _DTYPES], *[np.ones(3, dtype) for dtype in ("float32", "int64")]]
        weak = [tnp.broadcast_to(tnp.asarray(1) * 2, 3), tnp.broadcast_to(tnp.asarray(1.0) * 2, 3)]
        assert all(x.weak_type for x in weak)
        xs += weak
        for (name, f), x in itertools.product(_CALLS.items(), xs):
            with config.scope(disable_jit=True):  # a setting under which functions are computed by operations
                by_operations = _answer(f, x)
            answers = [_answer(f, x), _answer(f, x), _answer(_traced(f), x)]
            if isinstance(by_operations[0], type):
                answers.pop()  # its message names a traced array
            if any(answer != by_operations for answer in answers):
                wrong.append((name, x.dtype, by_operations, answers))
    assert not wrong


# ---- what is no program --------------------------------------------------------------------------------------


def test_calls_that_depend_on_elements_are_computed_by_operations() -> None:
    x, small = tnp.asarray(X), tnp.asarray(np.array([1, 2], np.uint8))
    for _ in range(2):  # also when it is known
        with pytest.raises(OverflowError):
            tnp.where(small > 1, small, 300)
        with pytest.raises(ValueError, match="from 0 to 1"):
            tnp.quantile(x, 1.5)
        with pytest.raises(ValueError, match="axis"):
            tnp.sum(x, axis=1)
        with pytest.raises(IndexError):
            x[7]
        assert tl.nn.one_hot(np.array([0, 2]), 3).tolist() == [[1, 0, 0], [0, 0, 1]]
        assert tnp.clip(x, 0.1, 2**40).tolist() == X.tolist()


def test_numbers_are_rounded_once_and_told_apart() -> None:
    """Those that float32 does not hold stay out of programs where arrays have another dtype; -0.0 is not 0.0."""
    x, mask = tnp.asarray(X), tnp.asarray([True, False, True])
    assert tnp.where(mask, tnp.zeros(3, "float64"), 0.1).tolist() == [0, 0.1, 0]
    tie = float(np.float32(1)) + 2**-9 + 2**-30  # above the tie of two bfloat16, but not as float32
    assert tnp.where(mask, tnp.zeros(3, "bfloat16"), tie)[1] == np.asarray(tie).astype(tnp.bfloat16)
    for zero in (0.0, -0.0, 0, 0.0):
        assert np.signbit(tnp.where(mask, x, zero)[1]) == np.signbit(float(zero))
    for k, wanted in ((1, 3.5), (True, 3.5), (1.0, 3.5)):
        assert tnp.sum(x, initial=0, where=mask, axis=(0,), keepdims=False) + k == wanted
    assert [tnp.sum(x, keepdims=k).ndim for k in (False, True, False)] == [0, 1, 0]


def test_an_array_that_comes_back_is_the_same() -> None:
    x = tnp.asarray(X)
    assert tnp.ravel(x) is x and tnp.moveaxis(x, 0, 0).tolist() == X.tolist()


# ---- settings, transformations, threads ----------------------------------------------------------------------


def test_settings_are_read_at_every_call() -> None:
    x, counts = tnp.asarray(np.array([1.0, -1.0], np.float32)), tnp.asarray(np.array([1, 2], np.int8))
    assert np.isnan(tl.nn.logsumexp(x, b=-1.0)) and tnp.sum(counts).dtype == np.int32
    with (
        config.scope(debug_nans=True),
        pytest.raises(FloatingPointError, match=r"'log', at tests.test_eager_calls.py:\d+"),
    ):
        tl.nn.logsumexp(x, b=-1.0)
    with config.scope(no_execution=True), pytest.raises(RuntimeError, match="forbids"):
        tnp.sum(counts)
    with config.scope(default_bits=64):
        assert tnp.sum(counts).dtype == np.int64
    with config.scope(numpy_dtype_promotion="strict"), pytest.raises(tl.errors.TypePromotionError):
        tnp.where(x > 0, x, tnp.ones(2, "float64"))
    with config.scope(numpy_rank_promotion="raise"), pytest.raises(ValueError, match="numbers of axes"):
        tnp.isclose(tnp.ones((2, 2)), x)
    with config.scope(numpy_bits=32):
        assert tnp.mean(np.ones(3)).dtype == np.float32
    assert tnp.mean(np.ones(3)).dtype == np.float64


@pytest.mark.parametrize("name", ["nn.softmax(x)", "linalg.norm(x)", "mean", "clip", "median", "stats.norm.logpdf"])
def test_guards_hold_for_calls_that_are_one_program(name: str) -> None:
    """Before the program is compiled, and after; arrays of NumPy are moved at every call, numbers once."""
    call, x, host = eager.ROWS[name], tnp.asarray(A), A + 0
    for _ in range(2):
        with config.scope(no_execution=True), pytest.raises(RuntimeError, match="no_execution forbids"):
            call(tl, x, x)
        with tl.transfer_guard_host_to_device("disallow"), pytest.raises(RuntimeError, match="host to device"):
            call(tl, host, host)
        for _ in range(4):
            expected = call(tl, x, x), call(tl, host, host)
        with tl.transfer_guard_host_to_device("disallow"):
            assert np.array_equal(call(tl, x, x), expected[0])
    assert np.array_equal(*expected)


def test_programs_are_those_of_the_plain_function() -> None:
    """Also after an eager call: what is traced has no calls where there are operations."""
    for f in (tl.nn.softmax, tnp.var, tnp.linalg.norm, tl.nn.elu):
        before = tl.grad(lambda x, f=f: tnp.sum(f(x)))(X)
        f(tnp.asarray(X))
        assert str(tl.make_jaxpr(f)(X)) == str(tl.make_jaxpr(f.__wrapped__)(X))
        np.testing.assert_array_equal(tl.grad(lambda x, f=f: tnp.sum(f(x)))(X), before)
    primal, tangent = tl.jvp(tl.nn.softmax, (X,), (X,))
    np.testing.assert_allclose(primal, tl.nn.softmax(X), rtol=1e-6)  # the same operations, in other programs
    np.testing.assert_allclose(tl.vmap(tl.nn.softmax)(A), tl.nn.softmax(A), rtol=1e-6)
    assert tangent.shape == (3,)


def test_errors_of_operands_name_the_function() -> None:
    x = tnp.asarray(X) + 1
    tl.nn.softmax(x)
    x.delete()
    with pytest.raises(RuntimeError, match="operand 0 of 'softmax' has been deleted"):
        tl.nn.softmax(x)
    with pytest.raises(TypeError, match="softmax"):
        tl.nn.softmax("x")


def test_threads_share_programs() -> None:
    x = tnp.asarray(np.linspace(0, 1, 7, dtype=np.float32))
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda i: tl.nn.softmax(x, axis=-1 - i % 2 * 0).tolist(), range(64)))
    assert found == [tl.nn.softmax(x).tolist()] * 64


# ---- np.asarray ----------------------------------------------------------------------------------------------


def test_numpy_reads_the_memory_and_keeps_nothing_alive() -> None:
    """A view that the array kept would refer back to it, and keep it from being donated."""
    x = tnp.asarray(X) + 0
    view, again = np.asarray(x), np.asarray(x)
    assert np.shares_memory(view, again) and not view.flags.writeable
    assert np.asarray(x, np.float64).dtype == np.float64
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        np.asarray(x)
    assert view.tolist() == [0.5, 1, 2]
    before = len(gc.get_objects())
    for _ in range(50):
        np.asarray(tnp.asarray(X))
    gc.collect()
    assert len(gc.get_objects()) - before < 25  # of 50 arrays none is left


def test_arrays_that_were_read_can_be_donated() -> None:
    double = tl.jit(lambda x: x * 2, donate_argnums=0)
    for n in (3, 10_000):
        x = tnp.ones(n) + 0
        where = x.unsafe_buffer_pointer()
        assert np.asarray(x)[0] == 1
        doubled = double(x)
        assert doubled[0] == 2 and doubled.unsafe_buffer_pointer() == where
        with pytest.raises(RuntimeError, match="donated"):
            np.asarray(x)
