"""The settings that have JAX's names do what JAX's do: for the process, in with blocks, on decorated functions."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests.messages import place, raises

V, M = np.ones(3, np.float32), np.ones((2, 3), np.float32)
NAMES = (
    "debug_nans disable_jit numpy_dtype_promotion numpy_rank_promotion default_matmul_precision platform_name".split()
)


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    before = {name: getattr(tl.config, name) for name in NAMES}
    yield
    for name, value in before.items():
        setattr(tl.config, name, value)


def test_names_of_jax_are_read_and_set():
    assert [getattr(tl.config, f"jax_{name}") for name in NAMES] == [False, False, "standard", "allow", None, ""]
    tl.config.jax_numpy_rank_promotion = "raise"
    tl.config.update("jax_default_matmul_precision", "highest")
    assert (tl.config.numpy_rank_promotion, tl.config.jax_default_matmul_precision) == ("raise", "highest")
    with tl.config.scope(default_matmul_precision=None):
        assert tl.config.default_matmul_precision is None
    with raises(ValueError, "config.numpy_rank_promotion must be 'allow' or 'warn' or 'raise', not 'no'."):
        tl.config.update("jax_numpy_rank_promotion", "no")
    with raises(ValueError, "config.platform_name must be a string, not 3."):
        tl.config.platform_name = 3
    with pytest.raises(AttributeError, match="config has no field 'jax_nothing'"):
        tl.config.jax_nothing = 3


def test_rank_promotion():
    def add(x, y):
        return tnp.asarray(x) + tnp.asarray(y)

    message = (
        "operands of shapes (2,3) and (3,) differ in their numbers of axes, and config.numpy_rank_promotion is "
        "'raise'.\n"
        "  Reshape them to one number of axes, or set it to 'allow'."
    )
    with tl.numpy_rank_promotion("raise"):
        with raises(ValueError, f"+: {message}"):
            add(M, V)
        with raises(ValueError, f"add: {message}"):
            tl.jit(tnp.add)(M, V)
        assert add(M, 1.0).shape == add(M, np.float32(1)).shape == add(M, V[None]).shape == (2, 3)
        assert (tl.nn.softmax(M).shape, tnp.var(M, 1).shape) == ((2, 3), (2,))
        with raises(ValueError, f"hypot: {message}"):
            tnp.hypot(M, V)
        # Functions may broadcast arrays of their own.
        assert (tl.scipy.fft.dct(M).shape, tl.image.resize(M, (4, 6), "linear").shape) == ((2, 3), (4, 6))
        assert tl.scipy.stats.gaussian_kde(tnp.arange(5.0)).pdf(V).shape == (3,)
        assert tl.scipy.linalg.solve_sylvester(tnp.eye(2), tnp.eye(3), M).shape == (2, 3)
    with tl.numpy_rank_promotion("warn"):
        for _ in range(2):  # not only when it is compiled
            with pytest.warns(UserWarning, match="differ in their numbers of axes") as told:
                add(M, V)
            assert told[0].filename == __file__ and f":{told[0].lineno} " in place(add, "return")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        add(M, V)


def test_functions_convert_arrays_of_their_own():
    with tl.numpy_dtype_promotion("strict"):
        x = np.ones(16, np.float32)
        assert tl.scipy.signal.stft(x, nperseg=8)[2].dtype == np.complex64
        assert tl.scipy.fft.idct(x, 2).dtype == tl.scipy.fft.dct(x, 3).dtype == np.float32
        assert tl.scipy.fft.dct(x.astype(np.complex64)).dtype == np.complex64
        assert tl.scipy.linalg.solve(np.eye(2, dtype=np.int32), np.ones(2, np.int32), assume_a="pos").tolist() == [1, 1]
        assert tl.scipy.signal.welch(x, nperseg=8)[1].dtype == np.float32


def test_dtype_promotion():
    @tl.numpy_dtype_promotion("strict")
    def strict(f, *args):
        return f(*args)

    message = (
        "implicit promotion of {}, which config.numpy_dtype_promotion forbids: it is 'strict'.\n"
        "  Convert them with astype, or set it to 'standard'."
    )
    v, i = tnp.asarray(V), tnp.arange(3)
    for x, y, named in [
        (v, i, "float32 and int32"),
        (v, tnp.ones(3, tnp.float16), "float32 and float16"),
        (i, 1.0, "int32 and float"),
        (v, 1j, "float32 and complex"),
        (v > 0, v, "bool and float32"),
    ]:
        for add in (tnp.add, tl.jit(tnp.add, static_argnums=1) if isinstance(y, (float, complex)) else tl.jit(tnp.add)):
            with raises(tl.errors.TypePromotionError, message.format(named)):
                strict(add, x, y)
        tnp.add(x, y)
    for f in (
        lambda: v + 1,
        lambda: v * 2.0,
        lambda: i + 1,
        lambda: i / 2,
        lambda: v**2,
        lambda: tnp.mean(i),
        lambda: tnp.cumsum(v > 0),
        lambda: tl.random.normal(tl.random.key(0), (3,)),
        lambda: tl.grad(lambda x: tl.nn.gelu(x).sum())(v),
    ):
        strict(f)


def test_matmul_precision():
    def products(x):
        w = tnp.ones((1, 1, 2), tnp.float32)
        convolved = lax.conv_general_dilated(x[None, :1], w, (1,), "VALID")
        return convolved, x @ x.T, tnp.einsum("ij,kj->ik", x, x), lax.dot(x, x.T, precision="high")

    def precisions():
        programs = tl.make_jaxpr(products)(M).eqns
        return [p.name for eqn in programs for p in eqn.params.get("precision", ())[:1]]

    assert precisions() == ["DEFAULT", "DEFAULT", "DEFAULT", "HIGH"]
    with tl.default_matmul_precision("highest"):
        assert precisions() == ["HIGHEST", "HIGHEST", "HIGHEST", "HIGH"]
        assert "precision HIGHEST" in tl.jit(products).lower(M).as_text()
    assert "precision HIGHEST" not in tl.jit(products).lower(M).as_text()


def test_without_jit_values_are_known():
    seen, known = [], [True]

    def noted(x):
        if known[0]:
            seen.append(float(tl.stop_gradient(x)))
        return x

    @tl.jit
    def f(x):
        y = lax.cond(noted(x) > 0, noted, lambda x: -x, x)
        z = lax.switch(1, [lambda y: y, lambda y: noted(y) + 1], y)
        total, rows = lax.scan(lambda c, r: (c + noted(r), {"c": c}), z, tnp.arange(2.0))
        total = lax.fori_loop(0, 2, lambda i, c: c + noted(i), total)
        return lax.while_loop(lambda c: noted(c) < 5, lambda c: c + 2, total), rows, lax.map(noted, tnp.ones(1))

    with tl.disable_jit():
        out = f(tnp.asarray(2.0))
        assert seen == [2, 2, 2, 0, 1, 0, 1, 5, 1]
        assert float(tl.grad(lambda x: f(x)[0])(2.0)) == 1.0
        assert lax.scan(lambda c, x: (c, c), 1.0, tnp.ones(0))[1].shape == (0,)
        reverse = lax.scan(lambda c, x: (c + x, c), 0.0, tnp.arange(3.0), reverse=True)[1]
    with pytest.raises(tl.errors.ConcretizationTypeError):
        f(2.0)
    known[0] = False
    for a, b in zip(tl.tree.leaves(out), tl.tree.leaves(f(tnp.asarray(2.0))), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(reverse, [3, 2, 0])


def test_compile_time_evaluation():
    @tl.jit
    def f(x):
        with tl.ensure_compile_time_eval():
            n = int(tnp.arange(3).sum())
        return x * n

    assert float(f(2.0)) == 6.0 and [str(e.primitive) for e in tl.make_jaxpr(f)(2.0).eqns] == ["jit"]
    assert float(tl.grad(lambda x: x * tl.ensure_compile_time_eval()(lambda: tnp.exp(0.0))())(3.0)) == 1.0
    mixed = tl.ensure_compile_time_eval()(lambda x: x * tnp.exp(0.0) + tl.jit(tnp.cos)(0.0))
    assert [str(e.primitive) for e in tl.make_jaxpr(mixed)(2.0).eqns] == ["mul", "add"]
    np.testing.assert_array_equal(tl.vmap(tl.grad(mixed))(V), V)
    named = tl.ensure_compile_time_eval()(lambda x: x + lax.axis_index("i"))
    np.testing.assert_array_equal(tl.vmap(named, axis_name="i")(V), [1, 2, 3])
    assert mixed(1.0) == 2.0


def test_debug_nans_decorates():
    @tl.debug_nans(True)
    def f(x):
        return tl.jit(tnp.log)(x)

    with pytest.raises(FloatingPointError, match="nan in the result of 'log'"):
        f(-1.0)
    assert np.isnan(tl.jit(tnp.log)(-1.0))


def test_platform():
    tl.config.update("jax_platform_name", "cpu")
    assert tl.default_backend() == tnp.ones(1).device.platform == "cpu"
    with pytest.raises(RuntimeError, match="there is no platform 'abacus'"):
        tl.config.jax_platform_name = "abacus"
    assert tl.config.platform_name == "cpu"


def test_the_default_device():
    device = tl.devices()[0]
    assert tl.config.jax_default_device is None
    tl.config.update("jax_default_device", device)
    try:
        assert tl.config.default_device is device
        with tl.default_device("cpu") as found:
            assert tl.config.jax_default_device is found
    finally:
        tl.config.update("jax_default_device", None)
    assert tl.config.jax_default_device is None
    with pytest.raises(TypeError), tl.config.scope(jax_default_device=3):
        pass


def test_platforms_is_the_platform():
    with tl.config.scope(jax_platforms="cpu"):
        assert tl.config.jax_platforms == tl.config.jax_platform_name == "cpu"
    with tl.config.scope(jax_platforms=None):
        assert tl.config.platform_name == ""
    with pytest.raises(RuntimeError, match="abacus"), tl.config.scope(jax_platforms="abacus"):
        pass


def test_programs_are_written_to_a_directory(tmp_path: Path):
    with tl.config.scope(jax_dump_ir_to=str(tmp_path / "ir")):
        tl.jit(lambda x: 3 * x - 17)(np.arange(3))
    texts = [file.read_text() for file in (tmp_path / "ir").iterdir()]
    assert any(text.startswith("module @") and "stablehlo" in text for text in texts)


def test_the_directory_of_compiled_programs(tmp_path: Path):
    def is_kept(**settings: Any) -> bool:
        with tl.config.scope(jax_compilation_cache_dir=str(tmp_path), **settings):
            offset = next(numbers)
            tl.jit(lambda x: x + offset)(np.arange(3))
        return any((tmp_path / "programs").glob("*")) if (tmp_path / "programs").exists() else False

    numbers = iter((1234567, 7654321))
    assert not is_kept(jax_enable_compilation_cache=False)
    assert is_kept()


def test_high_dynamic_range_gumbel():
    """As in JAX, where only numbers of the two modes differ."""
    jax = pytest.importorskip("jax")
    key, logits = tl.random.key(4), np.zeros(5, np.float32)
    with tl.config.scope(jax_high_dynamic_range_gumbel=True):
        found = tl.random.gumbel(key, (6,)), tl.random.categorical(key, logits, shape=(9,))
    jax.config.update("jax_high_dynamic_range_gumbel", True)
    try:
        theirs = jax.random.key(4)
        expected = jax.random.gumbel(theirs, (6,)), jax.random.categorical(theirs, logits, shape=(9,))
    finally:
        jax.config.update("jax_high_dynamic_range_gumbel", False)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(found[1], expected[1])
    assert (np.asarray(found[0]) != np.asarray(tl.random.gumbel(key, (6,)))).all()
