"""`nn`, `scipy.special` and `scipy.stats.norm`: values, dtypes and derivatives are JAX's."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import tapeless as tl
from tapeless import nn
from tapeless.scipy import special
from tapeless.scipy.stats import norm
from tests.messages import raises

pytestmark = pytest.mark.usefixtures("eager_by_steps")

jax = pytest.importorskip("jax")

X = np.array([-30.0, -2.5, -1.0, -0.3, 0.0, 0.7, 1.0, 3.0, 30.0], np.float32)
TABLE = np.array([[1.0, -2.0, 0.5], [80.0, 100.0, -100.0]], np.float32)
MASK = np.array([[True, False, True], [True, True, True]])
POSITIVE = np.array([0.2, 0.9, 1.5, 4.0], np.float32)
PROBABILITIES = np.array([0.01, 0.4, 0.9], np.float32)

THEIR: dict[Any, Any] = {nn: jax.nn, special: jax.scipy.special, norm: jax.scipy.stats.norm}
CASES: list[tuple[Any, str, tuple[Any, ...], dict[str, Any]]] = [
    *[
        (nn, name, (X,), {})
        for name in (
            "relu sigmoid softplus log_sigmoid silu swish tanh sparse_plus identity relu6 elu celu selu leaky_relu "
            "hard_tanh hard_sigmoid hard_silu hard_swish mish soft_sign squareplus sparse_sigmoid"
        ).split()
    ],
    *[(nn, "gelu", (X,), {"approximate": yes}) for yes in (True, False)],
    (nn, "log1mexp", (POSITIVE,), {}),
    *[(nn, name, (X,), {"alpha": 0.5}) for name in ("elu", "celu")],
    *[(nn, "glu", (TABLE[:, :2],), more) for more in ({}, {"axis": 0})],
    *[(nn, "logmeanexp", (TABLE,), more) for more in ({}, {"axis": 1, "where": MASK}, {"axis": 0, "keepdims": True})],
    *[
        (nn, "standardize", (TABLE / 10,), more)
        for more in ({}, {"algorithm": "stable"}, {"axis": 0, "where": MASK[:, ::-1]}, {"mean": 0.5, "variance": 2.0})
    ],
    *[(nn, name, (TABLE,), more) for name in ("softmax", "log_softmax") for more in ({}, {"axis": 0}, {"where": MASK})],
    *[(special, f, (TABLE,), more) for f in ("softmax", "log_softmax") for more in ({}, {"axis": 0}, {"axis": (0, 1)})],
    *[
        (nn, "logsumexp", (TABLE,), more)
        for more in (
            {},
            {"axis": 1},
            {"axis": (0, 1), "keepdims": True},
            {"axis": 1, "where": MASK},
            {"axis": 1, "b": np.array([1.0, 0, 2], np.float32)},
        )
    ],
    *[(special, name, (X,), {}) for name in ("erf", "erfc", "expit", "i0e", "i1e")],
    (special, "gammaln", (POSITIVE + 3,), {}),  # JAX's is off by 8e-6 of its value near the zeros at 1 and 2
    (special, "digamma", (POSITIVE,), {}),
    *[(special, name, (POSITIVE, POSITIVE[::-1].copy()), {}) for name in ("gammainc", "gammaincc")],
    (special, "zeta", (POSITIVE + 1, POSITIVE), {}),
    *[(special, name, (PROBABILITIES,), {}) for name in ("logit", "erfinv")],
    *[(norm, name, (X[1:-1], np.float32(0.5), np.float32(2)), {}) for name in ("logpdf", "pdf", "cdf")],
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[1]}-{list(case[3])}")
def test_values_and_derivatives(case: Any):
    namespace, name, args, more = case
    ours, theirs = getattr(namespace, name), getattr(THEIR[namespace], name)
    expected = theirs(*args, **more)
    found = ours(*args, **more)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-7)
    k = len(args) - 1 if name != "zeta" else 1
    np.testing.assert_allclose(
        gradient(tl, ours, args, k, more), gradient(jax, theirs, args, k, more), rtol=2e-5, atol=1e-6
    )


def gradient(library: Any, f: Callable[..., Any], args: Any, k: int, more: Any) -> Any:
    """The derivative of the sum of the finite results in argument k."""

    def total(x: Any) -> Any:
        out = f(*args[:k], x, *args[k + 1 :], **more)
        return library.numpy.sum(library.numpy.where(library.numpy.isfinite(out), out, 0))

    return library.jit(library.grad(total))(args[k])


def test_derivatives_at_kinks():
    assert float(tl.grad(nn.relu)(0.0)) == 0 and np.isnan(float(nn.relu(np.nan)))


def test_dtypes():
    """Integers are floats of the default width, numbers weak, narrow and wide types stay."""
    for dtype in ("bfloat16", "float16", "float64"):
        x = tl.numpy.ones(3, dtype)
        for f in (nn.relu, nn.sigmoid, nn.gelu, nn.softmax, nn.logsumexp, special.erf, norm.logpdf):
            assert str(f(x).dtype) == dtype, f
    for f in (nn.sigmoid, nn.softplus, nn.softmax, nn.gelu, special.erf, norm.logpdf):
        assert str(f(np.arange(3, dtype=np.int32)).dtype) == "float32", f
    assert nn.relu(np.arange(3)).dtype == np.int64 and norm.logpdf(0.0).weak_type


def test_one_hot():
    for more in ({}, {"axis": 0}, {"dtype": np.int32}):
        expected = jax.nn.one_hot(np.array([[0, 2], [3, -1]], np.int32), 3, **more)
        found = nn.one_hot(np.array([[0, 2], [3, -1]], np.int32), 3, **more)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(nn.one_hot([[0], [2]], 3), np.eye(3)[[[0], [2]]])


def test_numbers_of_classes_that_are_none():
    with pytest.raises(ValueError, match="one_hot: there are no -1 classes"):
        nn.one_hot(np.arange(3), -1)
    with pytest.raises(TypeError, match="one_hot: num_classes must be an integer"):
        nn.one_hot(np.arange(3), 2.0)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("axis", [0, -1, (0, 1)])
def test_nothing_counts_in_some_rows(name: str, axis: Any):
    x, where = np.arange(8, dtype=np.float32).reshape(2, 4), np.array([[True, False, True, True], [False] * 4])

    def gradient_of(library: Any, f: Any) -> Any:
        counted, f = library.numpy.where, partial(f, axis=axis, where=where)
        return library.grad(lambda x: library.numpy.sum(counted(where, f(x), 0) * np.arange(8.0).reshape(2, 4)))(x)

    ours, theirs = getattr(nn, name), getattr(jax.nn, name)
    np.testing.assert_allclose(ours(x, axis=axis, where=where), theirs(x, axis=axis, where=where), rtol=1e-6)
    np.testing.assert_allclose(gradient_of(tl, ours), gradient_of(jax, theirs), rtol=1e-5, atol=1e-5)


def test_squareplus_of_complex_numbers():
    x = np.array([1e30j, -1e30 + 1e30j, 3 - 4j, 1e30], np.complex64)
    wanted = [1e30j, 0, (x[2] + np.sqrt(x[2] ** 2 + 4)) / 2, 1e30]
    with tl.numpy_dtype_promotion("strict"):
        np.testing.assert_allclose(nn.squareplus(x), wanted, rtol=1e-6)  # of float32


def test_operands_of_squareplus_and_hard_tanh():
    assert float(nn.squareplus(tl.numpy.asarray(1000.0, "bfloat16"), np.float32([4.0]))[0]) == np.float32(1000.001)
    assert nn.hard_tanh(np.uint8([0, 1, 5])).tolist() == [0, 1, 1]


def test_choices_that_are_no_truth_values_are_refused():
    """PyTorch's gelu names its approximation: 'none' would be taken for True."""
    for given in ("none", "tanh", None):
        with raises(TypeError, f"gelu: approximate (by tanh) must be True or False, not {given!r}."):
            nn.gelu(X, given)  # pyright: ignore[reportArgumentType]  # which is the test
    with raises(TypeError, "logmeanexp: keepdims must be True or False, not 'yes'."):
        nn.logmeanexp(X, keepdims="yes")  # pyright: ignore[reportArgumentType]
    with raises(TypeError, "logsumexp: return_sign must be True or False, not 'yes'."):
        nn.logsumexp(X, return_sign="yes")  # pyright: ignore[reportArgumentType]
    assert not nn.gelu(0.5).weak_type  # as in JAX
    for exact in (False, np.bool_(False), 0):
        np.testing.assert_array_equal(nn.gelu(X, exact), nn.gelu(X, False))


def test_signs_of_sums():
    b = np.array([1.0, -1.0, -3.0], np.float32)
    for found, expected in zip(
        nn.logsumexp(TABLE, 1, b, return_sign=True), jax.nn.logsumexp(TABLE, 1, b, return_sign=True), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert np.isnan(nn.logsumexp(TABLE[0], b=-np.ones(3)))
    z = np.array([1 + 2j, -3 + 3j, 2 + 0.5j, 3 + 2.9j], np.complex64)  # against NumPy: phases take no part in the scale
    total = np.exp(z).sum()
    modulus, sign = nn.logsumexp(z, return_sign=True)
    assert modulus.dtype == np.float32
    np.testing.assert_allclose(
        [modulus, sign, nn.logsumexp(z)], [np.log(abs(total)), total / abs(total), np.log(total)]
    )


def test_signs_and_logarithms_of_sums_of_infinite_terms():
    """As the sums: of zeros 0, whatever the weights are; of opposed infinities nan."""
    inf = np.inf
    rows = [  # a, b, the logarithm of the modulus, the sign
        ([-inf, -inf], [1, 1], -inf, 0),
        ([-inf, -inf], [-1, 2], -inf, 0),
        ([-inf, -inf], [-1, -1], -inf, 0),
        ([-inf, 1], [1, 0], -inf, 0),
        ([inf, inf], [-1, 2], np.nan, np.nan),
        ([inf, inf], [1, -1], np.nan, np.nan),
        ([inf, inf], [0, -1], inf, -1),
        ([inf, -inf], [-2, 1], inf, -1),
    ]
    a, b, modulus, sign = (np.array(column, np.float64) for column in zip(*rows))
    both = tl.jit(lambda a, b: (*nn.logsumexp(a, 1, b, return_sign=True), nn.logsumexp(a, 1, b)))(a, b)
    for found, expected in zip(both, (modulus, sign, np.where(sign < 0, np.nan, modulus)), strict=True):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(nn.logsumexp(a[0], return_sign=True), [-inf, 0])
    np.testing.assert_array_equal(tl.grad(nn.logsumexp)(a[0]), [0.5, 0.5])


def test_polygamma():
    n = np.array([1, 2, 3, 1], np.int32)
    np.testing.assert_allclose(special.polygamma(n, POSITIVE), jax.scipy.special.polygamma(n, POSITIVE), rtol=1e-5)


def test_the_derivative_of_logsumexp_by_a_weight_of_0_is_that_of_its_term():
    """Elements of weight 0 do not count for the maximum, but for the derivative by the weight, up to its greatest."""
    a, b = np.array([0.0, 1.0, np.inf, np.nan, 800.0, -np.inf]), np.array([1.0, 0, 0, 0, 0, 0])
    for f in (tl.nn.logsumexp, tl.scipy.special.logsumexp):

        def of(a, b, f=f):
            return f(a, b=b)

        both = tl.jit(lambda a, b, of=of: (of(a, b), tl.grad(of, (0, 1))(a, b), tl.jacfwd(of, (0, 1))(a, b)))
        value, *gradients = both(a, b)
        assert value == 0
        for by_a, by_b in gradients:
            np.testing.assert_array_equal(by_a, [1, 0, 0, 0, 0, 0])
            np.testing.assert_allclose(by_b[[0, 1, 5]], [1, np.e, 0], rtol=1e-15)
            assert np.isfinite(by_b).all() and (by_b[2:5] > 1e300).all()
    mixed = tl.jacfwd(tl.grad(lambda a, b: tl.nn.logsumexp(a, b=b), 1))(a[:2], b[:2])
    np.testing.assert_allclose(mixed, [[0, 0], [-np.e, np.e]], rtol=1e-15)
    signed = tl.grad(lambda b: tl.nn.logsumexp(a[:2], b=b, return_sign=True)[0])(-b[:2])
    np.testing.assert_allclose(signed, [-1, -np.e], rtol=1e-15)
    assert (tl.grad(lambda b: tl.nn.logsumexp(a[:2], b=b))(np.zeros(2)) == np.inf).all()
