"""Rows of reductions, cumulative functions, statistics and positions of extremes."""

import numpy as np

from tests.numpy_agreement.cases import SHAPES, Case, Row, call, numbers, of_kinds, sampled

LARGE = (2, 3, 4)
AXES = [None, 0, -1, (0, 2), (1,), (2, 1, 0)]
MASK = numbers("bool", LARGE)
WITH_NAN = np.where(MASK, np.nan, numbers("float32", LARGE)).astype(np.float32)


COMPLEX = numbers("complex64", LARGE)


def operands(kinds: str, low: float = -9, high: float = 9) -> list[np.ndarray]:
    return [numbers(d, LARGE, low, high) for d in of_kinds(kinds)]


def reduction(
    kinds: str = "biufc", low: float = -9, high: float = 9, one_axis: bool = False, extra=(), **options
) -> Row:
    """Every dtype, axis and shape, and calls of their own."""
    x = numbers("float32" if "f" in kinds else of_kinds(kinds)[-1], LARGE, low, high)
    axes = [a for a in AXES if not one_axis or not isinstance(a, tuple)]
    cases = [call(y) for y in operands(kinds, low, high)]
    cases += [call(y, axis=axes[1 + i % (len(axes) - 1)]) for i, y in enumerate(operands(kinds, low, high))]
    cases += [call(x, axis=a) for a in axes] + ([] if one_axis else [call(x, axis=())])
    shaped = [numbers(x.dtype, s, low, high) for s in sampled(SHAPES, 5, kinds + str(one_axis))]
    cases += [call(y) for y in shaped] + [call(y, axis=-1) for y in shaped if y.ndim]
    return Row([*cases, *extra], **options)


def kept(x: np.ndarray, *axes: object) -> list[Case]:
    return [call(x, axis=a, keepdims=True) for a in (*axes, None)]


def sums(neutral: int, kinds: str = "biufc", low: float = -9, high: float = 9, **options) -> Row:
    """Functions that have all the options that sums have."""
    x, ints = numbers("float32", LARGE, low, high), numbers("int8", LARGE, low, high)
    extra = [
        *kept(x, 1, (0, 2)),
        call(x, where=MASK),
        call(x, 1, where=MASK[:, :1], keepdims=True),
        call(x, 0, initial=2.5),
        call(ints, initial=3, where=MASK),
        call(ints, dtype=np.float32),
        call(ints, 0, dtype=np.int16),
        call(x, (0, 1), np.float64),
        call(ints, 0, bool),
        call(x[:0], 0),
        call(x[:0], initial=neutral + 1),
    ]
    return reduction(kinds, low, high, extra=extra, **options)


def extremes(**options) -> Row:
    x = numbers("float32", LARGE)
    extra = [
        *kept(x, 1, (0, 2)),
        call(x, where=MASK, initial=-2),
        call(x, 1, where=MASK, initial=-20),
        call(x, 1, where=MASK[:1], initial=20.0, keepdims=True),
        call(x[:0], 0, initial=7),
        call(x[:0], 1),
        call(numbers("int8", LARGE), initial=3),
        call(WITH_NAN, 0),
    ]
    return reduction("biuf", extra=extra, **options)


def averages(kinds: str = "biufc", extra=(), **options) -> Row:
    x, ints = numbers("float32", LARGE), numbers("int32", LARGE)
    shared = [
        *kept(x, 1, (0, 2)),
        call(x, where=MASK),
        call(x, (0, 1), where=MASK[:, :, :1]),
        call(x, axis=(), keepdims=True),
        *(call(y, 1, where=MASK, keepdims=True) for y in (x, ints, COMPLEX, WITH_NAN)),
        call(WITH_NAN, 0),
        call(x, -1, where=MASK, dtype=np.complex64),
        call(ints, dtype=np.complex64),
        call(ints, dtype=np.float64),
        call(x, -1, dtype=np.complex64),
        call(numbers("float16", (300,), 1, 9)),
    ]
    return reduction(kinds, extra=[*shared, *extra], inexact=True, tolerance=30, **options)


def deviations(*extra: Case, **options) -> Row:
    x = numbers("float32", LARGE)
    own = [call(x, ddof=1), call(x, None, ddof=2, where=MASK), call(x, 1, ddof=2)]  # no less: NumPy says inf, JAX nan
    return averages(extra=[*own, *extra], **options)


def quantiles(scale: float) -> Row:
    """`scale` is 1 where the whole is 1, 100 where it is 100."""
    x, q = numbers("float32", (3, 5)), np.array([0, 0.3, 0.5, 1], np.float32) * np.float32(scale)
    methods = ["linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf", "averaged_inverted_cdf"]
    methods += ["closest_observation", "interpolated_inverted_cdf", "hazen", "weibull", "median_unbiased"]
    methods += ["normal_unbiased"]
    cases = [call(numbers(d, (3, 5)), 0.3 * scale, 1) for d in of_kinds("iuf")]
    cases += [
        call(x, q, axis=a, keepdims=bool(i % 2), method=m) for i, m in enumerate(methods) for a in (None, 0, (0, 1))
    ]
    cases += [call(numbers("float32", s), 0.5 * scale) for s in SHAPES if 0 not in s]
    cases += [call(WITH_NAN, 0.25 * scale, axis=-1), call(WITH_NAN, q, axis=(0, 2))]
    weigh = [np.array([1, 0, 2, 0.5, 3], np.float32), np.abs(x), -np.ones(5), np.ones(3), np.array([0, 0, 1, 0, 0])]
    cases += [call(x, q, axis=1, weights=w, method="inverted_cdf") for w in weigh]
    cases += [call(x, 0.4 * scale, weights=np.abs(x), method="inverted_cdf"), call(x, q, method="no")]
    cases += [call(WITH_NAN, q, axis=-1, weights=np.ones(WITH_NAN.shape[-1]), method="inverted_cdf")]
    cases += [call(x, q, axis=1, weights=weigh[0])]
    negative = {"traced weights that are negative make nan": lambda case: np.any(case.kwargs.get("weights", 0) < 0)}
    several = {"NumPy's index fails for several q with weights if nan are skipped": _is_weighted}
    return Row(cases, inexact=True, tolerance=30, accepts=negative | several)


def _is_weighted(case):
    return "weights" in case.kwargs and case.kwargs["method"] == "inverted_cdf"


def medians() -> Row:
    x = numbers("float32", (3, 5))
    cases = [call(numbers(d, (3, 5)), 1) for d in of_kinds("iuf")] + kept(x, 0, (0, 1))
    cases += [call(numbers("float32", s)) for s in SHAPES] + [call(WITH_NAN, axis=-1), call(WITH_NAN, axis=(0, 2))]
    return Row(cases, inexact=True, tolerance=30)


def cumulative(low: float, high: float, why: str = "", **options) -> Row:
    x = numbers("float32", LARGE, low, high)
    extra = [call(numbers("int8", LARGE, low, high), 1, dtype=np.int32), call(x, axis=-1, dtype=np.float64)]
    extra += [call(x.astype(np.int16), 0, np.int16)]
    return reduction("biufc", low, high, one_axis=True, extra=extra, tolerance=100, **options)


KEEPS_NARROW = "cumsum and cumprod keep narrow integers, as in JAX; cumulative_sum does not"


def running(low: float, high: float, **options) -> Row:
    x = numbers("float32", LARGE, low, high)
    cases = [call(numbers(d, (5,), low, high)) for d in of_kinds("biufc")]
    cases += [call(numbers(d, LARGE, low, high), axis=1) for d in of_kinds("biufc")]
    cases += [call(x, axis=a, include_initial=True) for a in (0, -1)] + [
        call(x),
        call(x[:0], axis=0, include_initial=True),
    ]
    cases += [call(x, axis=2, dtype=np.float64), call(numbers("int8", (4,), low, high), dtype=np.int8)]
    return Row(cases, tolerance=100, **options)


def skipping(row: Row, **options) -> Row:
    """The row of a function that has no nan to skip, and calls with nan."""
    extra = [
        call(WITH_NAN),
        call(WITH_NAN, axis=(0, 2)),
        call(WITH_NAN, axis=1),
        call(WITH_NAN, axis=-1),
        call(WITH_NAN.astype(np.float16), axis=0),
    ]
    extra += [call(np.where(MASK, np.nan, numbers("complex64", LARGE)).astype(np.complex64), axis=0)]
    return Row(**{**vars(row), "cases": [*row.cases, *extra], **options})


COUNTS = "positions and counts are of the default integer"
IN_FLOAT64 = "NumPy computes in float64 at least"
ALL_NAN = "NumPy refuses what is nan only, of which we say -1, as JAX does"

OF_KNOWN_MEAN = call(numbers("float32", LARGE), 1, mean=numbers("float32", LARGE).mean(1, keepdims=True))

ROWS = {
    "sum": sums(0, tolerance=30),
    "prod": sums(1, low=-2, high=2, tolerance=100),
    "nansum": skipping(sums(0, tolerance=30)),
    "nanprod": skipping(sums(1, low=-2, high=2, tolerance=100)),
    **dict.fromkeys(["max", "amax", "min", "amin"], extremes()),
    **dict.fromkeys(["nanmax", "nanmin"], skipping(extremes())),
    "ptp": reduction("iuf", extra=kept(numbers("float32", LARGE), 1, (0, 2))),
    **dict.fromkeys(
        ["any", "all"],
        reduction(
            low=-1,
            high=1,
            extra=[
                *kept(numbers("int8", LARGE, 0, 1), 1, (0, 2)),
                call(numbers("float32", LARGE, -1, 1), 0, where=MASK),
                call(numbers("int8", LARGE, 0, 1), 1, where=MASK),
            ],
        ),
    ),
    "count_nonzero": reduction(low=-1, high=1, extra=kept(numbers("int8", LARGE, 0, 1), 1, (0, 2)), dtypes=COUNTS),
    **dict.fromkeys(
        ["argmax", "argmin"],
        reduction("biuf", -2, 2, True, extra=kept(numbers("float32", LARGE), 1), dtypes=COUNTS),
    ),
    **dict.fromkeys(
        ["nanargmax", "nanargmin"],
        skipping(
            reduction("biuf", -2, 2, True, extra=kept(numbers("float32", LARGE), 1), dtypes=COUNTS),
            accepts={ALL_NAN: lambda case: bool(np.isnan(case.args[0]).any())},
        ),
    ),
    "cumsum": cumulative(-9, 9, dtypes=KEEPS_NARROW),
    "cumprod": cumulative(-1, 1, dtypes=KEEPS_NARROW),
    "nancumsum": skipping(cumulative(-9, 9, dtypes=KEEPS_NARROW)),
    "nancumprod": skipping(cumulative(-1, 1, dtypes=KEEPS_NARROW)),
    "cumulative_sum": running(-9, 9),
    "cumulative_prod": running(
        -2, 2, jax={"JAX's keeps narrow integers, which overflow": lambda case: case.args[0].dtype.kind in "iu"}
    ),
    "mean": averages(),
    "nanmean": skipping(averages()),
    **dict.fromkeys(
        ["var", "std"],
        deviations(
            call(numbers("float32", LARGE), 1, correction=1.5),
            call(numbers("float32", LARGE), 1, mean=numbers("float32", (2, 1, 4))),
        ),
    ),
    **dict.fromkeys(["nanvar", "nanstd"], skipping(deviations(OF_KNOWN_MEAN))),
    "average": Row(
        [call(x, axis=i % 3) for i, x in enumerate(operands("biufc"))]
        + [call(x, 1, numbers(x.dtype, LARGE, 1, 5)) for x in operands("iufc")]
        + [call(numbers("float32", LARGE), axis=1, weights=np.arange(3, dtype=np.float32), returned=True)]
        + [call(numbers("float32", LARGE), axis=(0, 1), weights=numbers("float32", (2, 3), 1, 2), keepdims=True)]
        + [call(numbers("float32", LARGE), returned=True), call(numbers("int8", LARGE), None, MASK, True)]
        + [call(numbers("float32", s)) for s in SHAPES],
        inexact=True,
        tolerance=100,
    ),
    "quantile": quantiles(1),
    "nanquantile": quantiles(1),
    "percentile": quantiles(100),
    "nanpercentile": quantiles(100),
    "median": medians(),
    "nanmedian": medians(),
    "cov": Row(
        jax={"of no variables": lambda case: case.args[0].shape == (0, 3)},
        cases=[call(numbers(d, (3, 5))) for d in of_kinds("biufc")]
        + [call(numbers("float32", s)) for s in [(), (4,), (1, 4), (4, 1), (0, 3)]]
        + [
            call(numbers("float32", (3, 5)), numbers("float32", (2, 5)), bias=True),
            call(numbers("float32", (3, 5)), rowvar=False),
        ]
        + [
            call(
                numbers("float32", (2, 4)), ddof=0, fweights=np.array([1, 3, 0, 2]), aweights=np.array([1.0, 2, 3, 0.5])
            )
        ]
        + [call(numbers("float32", (2, 4)), dtype=np.float64)],
        inexact=True,
        tolerance=100,
        dtypes=IN_FLOAT64,
    ),
    "corrcoef": Row(
        [call(numbers(d, (3, 5))) for d in of_kinds("iufc")]
        + [call(numbers("float32", (3, 5)), numbers("float32", (2, 5)))]
        + [call(numbers("float32", (3, 5)), rowvar=False, dtype=np.float64), call(numbers("float32", (5,)))],
        inexact=True,
        tolerance=100,
        dtypes=IN_FLOAT64,
    ),
}
