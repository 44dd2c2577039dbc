"""Reports about integers that wrap, small floating point, promotion, and what is not a number."""

import ml_dtypes
import numpy as np

import tapeless.numpy as tnp
from tapeless import lax
from tests.public_reports.report import Report, f64, i32

BYTES, SHORT, NAN = np.uint8, np.int8, np.nan
SMALL, BRAIN = np.float32, ml_dtypes.bfloat16
HOLES = f64(0, 1, NAN, NAN, 1)


def rounded_sum(x):
    """A sum in 32 bits, rounded once."""
    return np.sum(x.astype(SMALL)).astype(BRAIN)


ROWS = [
    Report(
        "jax-ml/jax#1933",
        "unsigned integers divided",
        lambda x: x // x.dtype.type(2),
        (np.array([1, 5, 2**32 - 1], np.uint32),),
        lambda x: x // np.uint32(2),
    ),
    Report(
        "jax-ml/jax#37819",
        "integers divided by 0",
        lambda x, y: x // y,
        (i32(0, 1, -1, 2**31 - 1, -(2**31)), i32(0, 0, 0, 0, 0)),
        i32(0, 0, 0, 0, 0),
    ),
    Report(
        "jax-ml/jax#31698",
        "an integer that is a constant divided by 0",
        lambda x: (7 * tnp.ones_like(x)) // (x - x),
        (i32(5),),
        i32(0),
    ),
    Report(
        "jax-ml/jax#12728",
        "a common multiple that wraps",
        tnp.lcm,
        (np.array([5, 100], SHORT), np.array([26, 3], SHORT)),
        np.lcm,
    ),
    Report(
        "jax-ml/jax#8604",
        "powers of integers that wrap",
        lambda n: np.int32(256) ** n,
        (i32(1, 2, 3, 4),),
        i32(256, 65536, 16777216, 0),
    ),
    Report(
        "numpy/numpy#19045",
        "bytes divided by a number",
        lambda x: (x // BYTES(9), x // BYTES(13)),
        (np.full(64, 233, BYTES),),
        lambda x: (x * 0 + BYTES(25), x * 0 + BYTES(17)),
    ),
    Report(
        "jax-ml/jax#3154",
        "a carry of integers and their product",
        lambda y: lax.scan(lambda c, x: (c + tnp.prod(x, -1, dtype=c.dtype), None), tnp.zeros(2, "int32"), y)[0],
        (np.ones((3, 2, 0), np.int32),),
        i32(3, 3),
    ),
    Report(
        "jax-ml/jax#18387",
        "sums of booleans in 16 bits",
        lambda x: tnp.sum((x > 100).astype(BRAIN)),
        (np.arange(1000, dtype=np.int32),),
        np.asarray(BRAIN(899)).astype(SMALL),
    ),
    Report(
        "jax-ml/ml_dtypes#63",
        "sums of many numbers of 16 bits",
        tnp.sum,
        ((np.arange(4000) % 7 / 8).astype(BRAIN),),
        lambda x: rounded_sum(x).astype(SMALL),
        slopes=None,
        rtol=2.0**-8,  # one rounding
    ),
    Report(
        "jax-ml/jax#26365",
        "a mean in the dtype that is asked for",
        lambda x: tnp.mean(x, -1, dtype=x.dtype).dtype == x.dtype,
        (np.zeros((2, 5), BRAIN),),
        np.array(True),
        None,
    ),
    Report(
        "jax-ml/jax#2349",
        "largest integers that are numbers",
        lambda x: (tnp.nanmax(x, (1, 2)), tnp.nanargmin(x)),
        (np.arange(27, dtype=np.int32).reshape(3, 3, 3),),
        lambda x: (x.max((1, 2)), np.int32(0)),
    ),
    Report(
        "jax-ml/jax#3193",
        "where the extreme is, beside nan",
        lambda x: tnp.stack([tnp.argmax(x), tnp.argmin(x)]).astype("int32"),
        (HOLES,),
        i32(2, 2),
        None,
        mapped=False,
    ),
    Report(
        "jax-ml/jax#1072",
        "nan clipped",
        lambda x: tnp.clip(x, -1, 1),
        (f64(NAN, 3, -3),),
        f64(NAN, 1, -1),
        (f64(0, 0, 0),),
        mapped=False,
    ),
    Report(
        "jax-ml/jax#4022",
        "integers clipped between fractions",
        lambda x: tnp.clip(x, -0.5, 0.5),
        (i32(-3, 0, 2),),
        np.array([-0.5, 0, 0.5], SMALL),
    ),
    Report(
        "jax-ml/jax#9182",
        "distinct numbers, one of them nan",
        lambda x: tnp.unique(x, size=4, fill_value=-1),
        (HOLES,),
        f64(0, 1, NAN, -1),
        None,
        mapped=False,
    ),
    Report(
        "jax-ml/jax#38106",
        "a step of nan",
        lambda x, y: tnp.heaviside(x, y),
        (f64(NAN, 0, -1, NAN), f64(0.5, NAN, NAN, NAN)),
        np.heaviside,
        None,
    ),
    Report(
        "jax-ml/jax#732",
        "a number and an array of 32 bits, in jit",
        lambda x, c: (x * 0.1, (x * 0.1).dtype == x.dtype),
        (np.array([1, 2, 3], SMALL), i32(1)),
        lambda x, c: (x * SMALL(0.1), np.array(True)),
        rtol=1e-6,
        slopes=None,
    ),
    Report(
        "jax-ml/jax#6160",
        "complex and real of two widths",
        lambda x, y: (x * y).dtype == np.complex128,
        (np.ones(2, np.complex64), f64(1, 2)),
        np.array(True),
        None,
    ),
    Report(
        "jax-ml/jax#9046",
        "weak numbers in a carry, each of which the next one makes strong",
        lambda x: lax.scan(lambda c, x: ([c[0] + x, c[1] + c[0], c[2] + c[1]], None), [0.0, 0.0, 0.0], x)[0][2],
        (np.array([1, 2, 3, 4, 5], np.float16),),
        np.array(15.0, np.float16),
        slopes=None,
        mapped=False,
    ),
    Report(
        "jax-ml/jax#6059",
        "a carry of 64 bits in steps of a fraction",
        lambda t: lax.scan(lambda x, t: (x + 0.1, t + 0.1), 0.0, t)[1],
        (f64([0], [0.5]),),
        lambda t: t + 0.1,
        bits=64,
    ),
    Report(
        "jax-ml/jax#29323",
        "a number of 16 bits too small to be added",
        lambda x, y: (x + y) - x,
        (np.array(1048576, BRAIN), np.array(2032, BRAIN)),
        np.array(0, SMALL),
        None,
        mapped=False,
    ),
]
