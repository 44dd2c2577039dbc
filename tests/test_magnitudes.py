"""Derivatives at all magnitudes: no square of a large or small number inside of them overflows or vanishes.

Values that are expected are computed with the exponents of the greatest numbers of Python, which have no end.
"""

from decimal import Decimal, localcontext

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax, nn
from tapeless.scipy import special

ONE = Decimal(1)
SLOPES = {
    "arcsinh": (tnp.arcsinh, lambda x: 1 / (1 + x * x).sqrt()),
    "arctan": (tnp.arctan, lambda x: 1 / (1 + x * x)),
    "arctan2 of 1 and x": (lambda x: tnp.arctan2(1.0, x), lambda x: -1 / (1 + x * x)),
    "arctan2 of x and 2 x": (lambda x: tnp.arctan2(x, lax.stop_gradient(2 * x)), lambda x: 2 / (5 * x)),
    "angle": (lambda x: tnp.arctan2(lax.stop_gradient(x), x), lambda x: -1 / (2 * x)),
    "hypot": (lambda x: tnp.hypot(x, x), lambda x: Decimal(2).sqrt()),
    "rsqrt": (lax.rsqrt, lambda x: -1 / (2 * x * x.sqrt())),
    "reciprocal": (lambda x: 1 / x, lambda x: -1 / (x * x)),
    "soft_sign": (nn.soft_sign, lambda x: 1 / (1 + x) ** 2),
    "squareplus": (nn.squareplus, lambda x: (1 + x / (x * x + 4).sqrt()) / 2),
    "rel_entr": (lambda x: special.rel_entr(2.0, x), lambda x: -2 / x),
    "gammainc": (lambda x: special.gammainc(2.0, x), lambda x: x * (-x).exp()),
    "betainc": (lambda x: special.betainc(2.0, 3.0, x), lambda x: 12 * x * (1 - x) ** 2 if x < 1 else None),
    "cauchy": (tl.scipy.stats.cauchy.logpdf, lambda x: -2 * x / (1 + x * x)),
}
LAST = {"float16": 4, "float32": 37, "float64": 300}  # exponents of 10
ALLOWED = 1e4  # units in the last place: exponents of 700 in exponential functions take a thousand


@pytest.mark.parametrize("dtype", LAST)
def test_slopes_at_all_magnitudes(dtype):
    """One program per dtype and mode."""
    x = (10.0 ** np.linspace(-LAST[dtype], LAST[dtype], 25)).astype(dtype)
    functions = [f for name, (f, _) in SLOPES.items() if dtype != "float16" or "inc" not in name]

    def values(x):
        return [f(x) for f in functions]

    forwards = tl.jit(lambda x: tl.jvp(values, (x,), (tnp.ones_like(x),))[1])(x)
    backwards = tl.jit(lambda x: [tl.vjp(f, x)[1](tnp.ones_like(x))[0] for f in functions])(x)
    with localcontext(prec=40):
        for f, *found in zip(functions, forwards, backwards):
            name, slope = next((name, slope) for name, (g, slope) in SLOPES.items() if g is f)
            expected = [slope(Decimal(float(v))) for v in x]
            for each in found:
                bad = [(v, g, w) for v, g, w in zip(x, each, expected) if w is not None and not is_near(g, w, dtype)]
                assert not bad, (name, [(float(v), float(g), float(w)) for v, g, w in bad[:3]])


def is_near(found, expected, dtype):
    """Tell whether a number is right to rounding, or as large or small as one that the dtype does not have."""
    finfo, size = np.finfo(dtype), abs(expected)
    if size > Decimal(float(finfo.max)) / 2:
        return abs(float(found)) > float(finfo.max) / 4
    if size < Decimal(float(finfo.tiny)) * 4:
        return abs(float(found)) < float(finfo.tiny) * 8
    units = Decimal(30 if dtype == "float16" else ALLOWED) * Decimal(float(finfo.eps))
    return bool(np.isfinite(found)) and abs(Decimal(float(found)) - expected) <= size * units


NARROW = {
    "logsumexp": (nn.logsumexp, np.ones(100_000)),
    "logsumexp where": (lambda x: nn.logsumexp(x, where=x > 0), np.ones(100_000)),
    "logsumexp b": (lambda x: nn.logsumexp(x, b=x), np.ones(100_000)),
    "logmeanexp": (nn.logmeanexp, np.ones(100_000)),
    "softmax": (nn.softmax, np.ones(100_000)),
    "log_softmax": (nn.log_softmax, np.ones(100_000)),
    "average": (lambda x: tnp.average(x, weights=x), np.linspace(300, 400, 500)),
    "std": (tnp.std, np.linspace(-6e4, 6e4, 500)),
    "std where": (lambda x: tnp.std(x, where=x > -1e9), np.linspace(-6e4, 6e4, 500)),
    "nanstd": (tnp.nanstd, np.linspace(-6e4, 6e4, 500)),
    "corrcoef": (lambda x: tnp.corrcoef(tnp.stack([x, x[::-1] * x])), np.linspace(-200, 200, 500)),
    "cov": (lambda x: tnp.cov(tnp.stack([x, x[::-1]])), np.linspace(-200, 200, 500)),
    "cov weighted": (lambda x: tnp.cov(x, aweights=tnp.abs(x)), np.linspace(-200, 200, 500)),
    "norm": (tnp.linalg.norm, np.linspace(300, 400, 500)),
    "norm 3": (lambda x: tnp.linalg.norm(x, 3), np.linspace(300, 400, 500)),
    "trapezoid": (lambda x: tnp.trapezoid(x, dx=1e-3), np.linspace(3e4, 6e4, 50)),
    "squareplus": (nn.squareplus, np.linspace(1, 6e4, 50)),
    "hypot": (lambda x: tnp.hypot(x, x / 2), np.linspace(1, 5e4, 50)),
}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_not_lost_inside(dtype):
    """Results and gradients of statistics of 16-bit numbers are those of the same numbers in float64, rounded."""
    eps = float(tl.dtypes.finfo(dtype).eps)
    dropped = {"logsumexp", "softmax", "norm"}  # 100,000 steps of bfloat16 are summed to 8 bits
    cases = {k: v for k, v in NARROW.items() if dtype == "float16" or not any(k.endswith(d) for d in dropped)}
    cases = {k: v for k, v in cases.items() if dtype == "float16" or len(v[1]) < 1000}
    xs = [tnp.asarray(x, dtype) for _, x in cases.values()]
    fs = [f for f, _ in cases.values()]

    def computed(xs):
        values = [f(x) for f, x in zip(fs, xs)]
        return values, tl.grad(lambda xs: sum(tnp.sum(f(x).astype("float32")) for f, x in zip(fs, xs)))(xs)

    narrow, wide = tl.jit(computed)(xs), tl.jit(computed)([x.astype("float64") for x in xs])
    for name, *found in zip(cases, narrow[0], wide[0], narrow[1], wide[1]):
        value, expected, slope, expected_slope = (np.asarray(x, float) for x in found)
        np.testing.assert_allclose(value, expected, rtol=8 * eps, atol=1e-7, err_msg=name)
        scale = abs(expected_slope).max()
        if 1e-3 < scale < 1e4:  # gradients that the dtype can hold
            np.testing.assert_allclose(slope / scale, expected_slope / scale, atol=16 * eps, err_msg=name)
