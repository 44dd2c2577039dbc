"""Samplers: the bits of jax.random, the distributions they claim, what is refused."""

import importlib.util
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import random
from tapeless.random.samplers import _fraction

ROOT = Path(__file__).resolve().parents[3]
F32 = np.float32
PROBABILITIES = np.array([0.1, 0.2, 0.3, 0.05, 0.35], F32)
LOGITS = np.log(np.random.default_rng(0).uniform(size=(3, 4))).astype(F32)
TABLE = np.arange(24, dtype=F32).reshape(4, 6)

# ---- agreement with jax.random: the same call of either

EXACT = {
    "split": lambda r, k: r.key_data(r.split(k, (2, 3))),
    "fold_in": lambda r, k: r.key_data(r.fold_in(k, 7)),
    "fold_in-int32": lambda r, k: r.key_data(r.fold_in(k, np.int32(-7))),
    "seed": lambda r, k: r.key_data(r.key(-(2**40) - 3)),
    "bits": lambda r, k: r.bits(k, (5, 7)),
    "bits-scalar": lambda r, k: r.bits(k),
    "bits-u8": lambda r, k: r.bits(k, (9,), "uint8"),
    "bits-u16": lambda r, k: r.bits(k, (9,), "uint16"),
    "uniform": lambda r, k: r.uniform(k, (5, 7)),
    "uniform-int-shape": lambda r, k: r.uniform(k, 3),
    "uniform-empty": lambda r, k: r.uniform(k, (3, 0)),
    "uniform-f16": lambda r, k: r.uniform(k, (100,), "float16"),
    "uniform-bf16": lambda r, k: r.uniform(k, (100,), "bfloat16"),
    "uniform-bounds": lambda r, k: r.uniform(k, (4, 3), minval=np.arange(3, dtype=F32), maxval=7.5),
    "randint": lambda r, k: r.randint(k, (100,), -5, 12),
    "randint-arrays": lambda r, k: r.randint(k, (4, 3), np.array([0, 5, -3], np.int32), np.array([[9]], np.int32)),
    "randint-whole-floats": lambda r, k: r.randint(k, (4, 3), -2.0, np.array([0, 5, 300], np.float32)),
    "randint-nothing-between": lambda r, k: r.randint(k, (4,), 5, 2),
    "randint-u8": lambda r, k: r.randint(k, (100,), 0, 256, "uint8"),
    "randint-i8-clipped": lambda r, k: r.randint(k, (100,), -1000, 1000, "int8"),
    "randint-u16": lambda r, k: r.randint(k, (100,), 3, 60000, "uint16"),
    "randint-u32": lambda r, k: r.randint(k, (100,), 0, 2**31 - 1, "uint32"),
    "bernoulli": lambda r, k: r.bernoulli(k, shape=(100,)),
    "bernoulli-array": lambda r, k: r.bernoulli(k, PROBABILITIES),
    "bernoulli-high": lambda r, k: r.bernoulli(k, 0.3, (100,), "high"),
    "rademacher": lambda r, k: r.rademacher(k, (100,)),
    "permutation": lambda r, k: r.permutation(k, 100),
    "permutation-two-rounds": lambda r, k: r.permutation(k, 3000),
    "permutation-of-one": lambda r, k: r.permutation(k, 1),
    "permutation-rows": lambda r, k: r.permutation(k, TABLE),
    "permutation-columns": lambda r, k: r.permutation(k, TABLE, axis=-1),
    "permutation-independent": lambda r, k: r.permutation(k, TABLE, axis=1, independent=True),
    "choice": lambda r, k: r.choice(k, 5, (3, 2)),
    "choice-distinct": lambda r, k: r.choice(k, 5, (2, 2), replace=False),
    "choice-array": lambda r, k: r.choice(k, TABLE, (2, 2), axis=1),
    "choice-array-distinct": lambda r, k: r.choice(k, TABLE, (3,), replace=False),
    "choice-weighted": lambda r, k: r.choice(k, 5, (50,), p=PROBABILITIES),
    "choice-weighted-distinct": lambda r, k: r.choice(k, 5, (3,), replace=False, p=PROBABILITIES),
    "choice-weighted-high": lambda r, k: r.choice(k, 5, (3,), replace=False, p=PROBABILITIES, mode="high"),
    "categorical": lambda r, k: r.categorical(k, LOGITS),
    "categorical-axis": lambda r, k: r.categorical(k, LOGITS, axis=0, shape=(5, 2, 4)),
    "categorical-broadcast": lambda r, k: r.categorical(k, LOGITS[:1], shape=(6, 5)),
    "categorical-high": lambda r, k: r.categorical(k, LOGITS, mode="high"),
    "categorical-highest": lambda r, k: r.categorical(k, LOGITS, mode="highest"),
    "categorical-distinct": lambda r, k: r.categorical(k, LOGITS, axis=-2, shape=(2, 4), replace=False),
}
# Made with log, tan or erf_inv, whose last bits are up to what XLA fuses them with.
CLOSE = {
    **{
        name + suffix: lambda r, k, name=name, dtype=dtype: getattr(r, name)(k, (200,), dtype)
        for name in ("normal", "exponential", "gumbel", "laplace", "logistic", "cauchy")
        for suffix, dtype in (("", None), ("-f16", "float16"))
    },
    "normal-complex": lambda r, k: r.normal(k, (100,), "complex64"),
    "gumbel-high": lambda r, k: r.gumbel(k, (200,), mode="high"),
    "gumbel-highest": lambda r, k: r.gumbel(k, (2000,), mode="highest"),
    "truncated_normal": lambda r, k: r.truncated_normal(k, -1.5, np.array([1.0, 2.0], F32), (100, 2)),
    "truncated_normal-shape": lambda r, k: r.truncated_normal(k, np.zeros((3, 1), F32), np.ones(2, F32)),
}
ULPS = 2

needs_jax = pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="compared with jax")


def within(x, y, ulps):
    """Whether arrays are equal up to some units in the last place of their parts."""
    if not ulps:
        return np.array_equal(x, y)
    pairs = [(x.real, y.real), (x.imag, y.imag)] if x.dtype.kind == "c" else [(x, y)]
    return all(np.all(np.abs(a - b) <= ulps * np.spacing(np.abs(b))) for a, b in pairs)


def difference(name):
    """What a case gives that jax.random does not; empty if they agree."""
    jax_random = importlib.import_module("jax.random")
    case = {**EXACT, **CLOSE}[name]
    ours, theirs = np.asarray(case(random, random.key(42))), np.asarray(case(jax_random, jax_random.key(42)))
    if (ours.shape, ours.dtype) != (theirs.shape, theirs.dtype):
        return f"{name}: {ours.dtype}{ours.shape} for {theirs.dtype}{theirs.shape}"
    same = within(ours, theirs, ULPS if name in CLOSE else 0)
    return "" if same else f"{name}: {ours} for {theirs}"


@needs_jax
@pytest.mark.parametrize("name", [*EXACT, *CLOSE])
def test_agrees_with_jax(name):
    assert not difference(name)


@needs_jax
def test_agrees_with_jax_in_64_bits():
    """Each function once, in a process of its own: the width is a setting of jax's for the whole process."""
    program = (
        "import tapeless as tl; tl.config.update('default_bits', 64)\n"
        "from tests.api.random.test_samplers import CLOSE, EXACT, difference\n"
        "found = [difference(name) for name in [*EXACT, *CLOSE] if '-' not in name]\n"
        "assert not any(found), found"
    )
    environment = {**os.environ, "JAX_ENABLE_X64": "1"}
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


# ---- without jax


def test_bits_as_published():
    """The values that jax.random has given since its threefry is "partitionable"."""
    assert np.asarray(random.bits(random.key(0), (3,))).tolist() == [4070199207, 4202968722, 1427181096]
    assert np.asarray(random.uniform(random.key(0), (3,))).tolist() == UNIFORM


UNIFORM = [float(F32(x)) for x in (0.947667, 0.9785799, 0.33229148)]


def test_same_key_same_numbers():
    key = random.key(1)
    assert np.array_equal(random.normal(key, (5,)), random.normal(key, (5,)))
    assert not np.array_equal(random.normal(key, (5,)), random.normal(random.key(2), (5,)))


def test_both_forms_of_a_key():
    assert np.array_equal(random.normal(random.key(1), (5,)), random.normal(random.PRNGKey(1), (5,)))
    raw = np.array([0, 1], np.uint32)
    assert np.array_equal(random.normal(random.key(1), (5,)), random.normal(raw, (5,)))


def test_explicit_width_does_not_depend_on_the_default():
    narrow = random.uniform(random.key(1), (5,), "float64", minval=0.1)
    with tl.enable_x64():
        assert np.array_equal(narrow, random.uniform(random.key(1), (5,), minval=0.1))
    assert narrow.dtype == np.float64


@pytest.mark.parametrize("name", [*EXACT, *CLOSE])
def test_jit_gives_what_eager_gives(name):
    """Exactly, but for CLOSE: bounds are constants here, and XLA folds their erf with a rounding of its own."""
    case, key = {**EXACT, **CLOSE}[name], random.key(1)
    eager, jitted = np.asarray(case(random, key)), np.asarray(tl.jit(lambda key: case(random, key))(key))
    error = 4 * np.finfo(eager.dtype).eps if name in CLOSE else 0
    assert np.allclose(eager, jitted, error, error)


def test_whole_range_of_integers():
    drawn = np.asarray(random.randint(random.key(0), (1000,), -(2**31), 2**31, "int32"))
    assert drawn.min() < -(2**30) and drawn.max() > 2**30
    drawn = np.asarray(random.randint(random.key(0), (1000,), 0, 2**64 - 1, "uint64"))
    assert drawn.max() > 2**63


def test_permutation_keeps_what_it_permutes():
    assert sorted(np.asarray(random.permutation(random.key(0), 1000)).tolist()) == list(range(1000))
    independent = np.asarray(random.permutation(random.key(0), TABLE, 1, independent=True))
    assert np.array_equal(np.sort(independent, 1), TABLE)
    assert not np.array_equal(independent, independent[:1] + TABLE[:, :1])


def test_truncated_normal_stays_inside():
    drawn = np.asarray(random.truncated_normal(random.key(0), 4.0, 4.5, (10000,)))
    assert drawn.min() > 4.0 and drawn.max() < 4.5


def test_gradient_of_bounds():
    key = random.key(0)
    unit = np.asarray(random.uniform(key, (4,)))
    gradient = tl.grad(lambda high: random.uniform(key, (4,), minval=-1.0, maxval=high).sum())(F32(2.0))
    assert np.allclose(gradient, unit.sum(), rtol=1e-6)  # a sum of four float32


# ---- distributions: the largest distance of the empirical from the exact distribution function

N = 20_000
DISTRIBUTIONS = {
    "uniform": lambda x: x,
    "normal": lambda x: 0.5 + 0.5 * np.vectorize(math.erf)(x / math.sqrt(2)),
    "exponential": lambda x: 1 - np.exp(-x),
    "gumbel": lambda x: np.exp(-np.exp(-x)),
    "laplace": lambda x: 0.5 + 0.5 * np.sign(x) * (1 - np.exp(-np.abs(x))),
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "cauchy": lambda x: 0.5 + np.arctan(x) / np.pi,
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distribution(name):
    """Kolmogorov-Smirnov: 1.63 / sqrt(N) is exceeded by one key in a hundred, not by this one."""
    drawn = np.sort(np.asarray(getattr(random, name)(random.key(0), (N,)), np.float64))
    distance = np.abs(DISTRIBUTIONS[name](drawn) - (np.arange(N) + 0.5) / N).max()
    assert distance < 1.63 / math.sqrt(N)


def frequencies(drawn, n):
    return np.bincount(np.asarray(drawn).ravel(), minlength=n) / np.size(drawn)


@pytest.mark.parametrize(
    ("drawn", "expected"),
    [
        (lambda k: random.randint(k, (N,), 0, 5), np.full(5, 0.2)),
        (lambda k: random.choice(k, 5, (N,)), np.full(5, 0.2)),
        (lambda k: random.choice(k, 5, (N,), p=PROBABILITIES), PROBABILITIES),
        (lambda k: random.categorical(k, np.log(PROBABILITIES), shape=(N,)), PROBABILITIES),
        (lambda k: random.categorical(k, np.log(PROBABILITIES), shape=(N,), mode="high"), PROBABILITIES),
        (lambda k: np.asarray(random.bernoulli(k, 0.3, (N,))).astype(int), [0.7, 0.3]),
        (lambda k: (np.asarray(random.rademacher(k, (N,))) + 1) // 2, [0.5, 0.5]),
    ],
    ids=["randint", "choice", "choice-weighted", "categorical", "categorical-high", "bernoulli", "rademacher"],
)
def test_frequencies(drawn, expected):
    """Within four standard deviations of the most uncertain frequency."""
    assert np.abs(frequencies(drawn(random.key(0)), len(expected)) - expected).max() < 4 * 0.5 / math.sqrt(N)


def test_fractions_of_64_bits():
    """Against Python's integers: 24 of the digits are kept, wherever they begin."""
    values = [1, 2**24 - 1, 2**25 + 1, 2**32 - 1, 2**32 + 1, 2**40 + 12345, 2**56 - 1, 2**63 - 1, 2**64 - 1]
    kept = [v >> max(v.bit_length() - 24, 0) << max(v.bit_length() - 24, 0) for v in values]
    high, low = (np.array([v >> shift & 0xFFFFFFFF for v in values], np.uint32) for shift in (32, 0))
    np.testing.assert_array_equal(_fraction(tnp.asarray(high), tnp.asarray(low)), [v / 2.0**64 for v in kept])


def test_moments_of_complex_normal():
    drawn = np.asarray(random.normal(random.key(0), (N,), "complex64"))
    assert abs(drawn.mean()) < 4 / math.sqrt(N)
    assert abs((np.abs(drawn) ** 2).mean() - 1) < 4 / math.sqrt(N)
    assert abs((drawn.real * drawn.imag).mean()) < 4 * 0.5 / math.sqrt(N)


# ---- errors

ONE = random.wrap_key_data(np.zeros(2, np.uint32))

REFUSED = [
    (lambda: random.normal(0), TypeError, "normal: 0 is not a key. Make one with random.key(seed)."),
    (
        lambda: random.normal((3,), 0),
        TypeError,
        "normal: (3,) is not a key. Make one with random.key(seed). The key comes before the shape.",
    ),
    (lambda: random.bits(np.zeros(2, np.int32)), TypeError, "bits: a key's words are uint32[2], not int32[2]."),
    (lambda: random.uniform(np.zeros((3, 2), np.uint32)), TypeError, "uniform takes one key, not (3,) of them"),
    (lambda: random.uniform(ONE, (2.0,)), TypeError, "uniform: shape must be a sequence of integers, not (2.0,)."),
    (lambda: random.uniform(ONE, (-1,)), ValueError, "uniform: shape (-1,) has a negative size."),
    (lambda: random.uniform(ONE, (2,), int), TypeError, "uniform: the dtype must be floating point, not int32."),
    (lambda: random.uniform(ONE, (2,), "float8_e8m0fnu"), TypeError, "the dtype must be floating point, not float8"),
    (lambda: random.normal(ONE, (), int), TypeError, "the dtype must be floating point or complex, not int32."),
    (lambda: random.bits(ONE, (), int), TypeError, "bits: the dtype must be an unsigned integer, not int32."),
    (lambda: random.randint(ONE, (), 0, 2, float), TypeError, "randint: the dtype must be an integer, not float32."),
    (lambda: random.randint(ONE, (), 0.5, 2), TypeError, "randint: minval must be an integer, not 0.5."),
    (lambda: random.randint(ONE, (), 0, 2**65), OverflowError, "randint: maxval 36893488147419103232 does not fit"),
    (
        lambda: random.uniform(ONE, (2, 3), maxval=np.ones(2, F32)),
        ValueError,
        "uniform: maxval, of shape (2,), does not broadcast to shape (2, 3).",
    ),
    (
        lambda: random.randint(ONE, (3,), 0, np.ones((1, 3), np.int32)),
        ValueError,
        "randint: maxval, of shape (1, 3), does not broadcast to shape (3,).",
    ),
    (lambda: random.bernoulli(ONE, 1), TypeError, "bernoulli: p must be floating point, not int32."),
    (lambda: random.bernoulli(ONE, 0.5, (), "mid"), ValueError, 'bernoulli: the mode must be "low" or "high", not'),
    (lambda: random.gumbel(ONE, mode="top"), ValueError, 'the mode must be "low", "high" or "highest", not \'top\''),
    (lambda: random.permutation(ONE, 2.0), TypeError, "permutation takes an array with axes or an integer, not 2.0."),
    (lambda: random.permutation(ONE, TABLE, 2), ValueError, "axis 2 is out of range for an array of 2 axes."),
    (lambda: random.categorical(ONE, np.arange(3)), TypeError, "categorical: logits must be floating point, not int64"),
    (lambda: random.choice(ONE, 3, (4,), False), ValueError, "choice: 4 cannot be drawn from 3 without replacement."),
    (lambda: random.choice(ONE, 0, (4,)), ValueError, "choice: 4 cannot be drawn from 0."),
    (lambda: random.choice(ONE, -1), ValueError, "choice: 1 cannot be drawn from -1."),
    (lambda: random.choice(ONE, 3, p=PROBABILITIES), ValueError, "choice: p must have shape (3,)"),
    (
        lambda: random.categorical(ONE, LOGITS, shape=(2,)),
        ValueError,
        "categorical: logits without their axis, of shape (3,), does not broadcast to shape (2,).",
    ),
    (
        lambda: random.categorical(ONE, LOGITS, shape=(5, 3), replace=False),
        ValueError,
        "categorical: 5 cannot be drawn from 4 without replacement.",
    ),
]


@pytest.mark.parametrize(("call", "error", "text"), REFUSED, ids=[text for *_, text in REFUSED])
def test_refused(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)


def test_traced_shape_is_refused():
    with pytest.raises(TypeError, match="static"):
        tl.jit(lambda n: random.uniform(ONE, (n,)))(3)


def test_bernoulli_takes_no_sharding_but_none():
    key = tl.random.key(0)
    assert (tl.random.bernoulli(key, 0.5, (8,), out_sharding=None) == tl.random.bernoulli(key, 0.5, (8,))).all()
    with pytest.raises(NotImplementedError, match=r"bernoulli: out_sharding=.x. is not supported, only None"):
        tl.random.bernoulli(key, out_sharding="x")


def test_uniform_keeps_axes_of_bounds_for_one_number():
    """As in JAX, which flashbax needs."""
    low, high = np.full((1, 1), 2, F32), np.full(1, 5, F32)
    one = random.uniform(ONE, (), minval=low, maxval=high)
    assert one.shape == (1, 1) and one.item() == random.uniform(ONE, (), minval=2, maxval=5)
    assert random.uniform(ONE, (), minval=2, maxval=high).shape == ()
    with pytest.raises(ValueError, match=r"uniform: minval, of shape \(2,\), does not broadcast to shape \(\)\."):
        random.uniform(ONE, (), minval=np.ones(2, F32))
