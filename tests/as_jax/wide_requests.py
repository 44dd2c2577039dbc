"""Requests for dtypes of 64 bits give 32 bits, and one warning at the line that asks, unless 64 are enabled.

Imported inside of `as_jax`; what we ask for ourselves, and what programs ask for outside, is of 64 bits.
"""

import pickle
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.tracer.array import Array
from tests.as_jax.facts import Fact, refusal

WIDE = {
    "i": ("int64", "int32"),
    "u": ("uint64", "uint32"),
    "f": ("float64", "float32"),
    "c": ("complex128", "complex64"),
}
KEPT = tnp.zeros(2, "float64")


def cases(x: Any) -> dict[str, tuple[Callable[[Any], Any], str]]:
    """Functions of a dtype, and the kinds that they are asked for."""
    key, init = random.key(0), jax.nn.initializers
    return {
        "zeros": (lambda d: jnp.zeros(3, d), "ifcu"),
        "full": (lambda d: jnp.full(3, 1, dtype=d), "ifcu"),
        "array": (lambda d: jnp.array([1], d), "ifcu"),
        "asarray": (lambda d: jnp.asarray(np.ones(3, d), d), "ifcu"),
        "frombuffer": (lambda d: jnp.frombuffer(bytes(16), d), "ifu"),
        "eye": (lambda d: jnp.eye(3, dtype=jnp.dtype(d)), "ifcu"),
        "scalar types": (lambda d: getattr(jnp, d)(3), "ifcu"),
        "astype": (lambda d: x.astype(d), "ifcu"),
        "view": (lambda d: x.view(getattr(np, d)), "iu"),
        "sum, a method": (lambda d: x.sum(dtype=d), "fc"),
        "convert_element_type": (lambda d: lax.convert_element_type(x, d), "ifcu"),
        "jit": (lambda d: jax.jit(lambda x: x.astype(dtype=d))(x), "fi"),
        "vmap": (lambda d: jax.vmap(lambda x: x.astype(d))(x), "fi"),
        "iota": (lambda d: lax.iota(d, 3), "ifu"),
        "argmax": (lambda d: lax.argmax(x, 0, index_dtype=d), "iu"),
        "dot": (lambda d: lax.dot(x, x, preferred_element_type=d), "f"),
        "matmul": (lambda d: jnp.matmul(x, x, preferred_element_type=d), "f"),
        "randint": (lambda d: random.randint(key, (2,), 0, 5, d), "iu"),
        "normal": (lambda d: random.normal(key, (2,), d), "f"),
        "initializers.normal": (lambda d: init.normal(1.0)(key, (2,), d), "f"),
        "initializers.zeros": (lambda d: init.zeros(key, (2,), d), "f"),
        **{f.__name__: (lambda d, f=f: f(x, dtype=d), "fc") for f in (jnp.sum, jnp.mean, jnp.cumsum, jnp.ones_like)},
    }


def facts() -> Iterator[Fact]:
    x = jnp.arange(4.0).reshape(2, 2)
    for name, (case, kinds) in cases(x).items():
        for asked, given in map(WIDE.__getitem__, kinds):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                found = case(asked)
                with jax.enable_x64():
                    wide = case(asked).dtype if asked == WIDE[kinds[0]][0] else asked
            yield f"{name}({asked})", str(found.dtype), given
            yield f"{name}({asked}) with 64 bits enabled", str(wide), asked
            told = [(w.category, w.filename == __file__, _is_told(str(w.message), asked, given)) for w in caught]
            yield f"{name}({asked}) warns", told, [(UserWarning, True, True)]
    unasked = (jnp.sum(x, dtype=float), jnp.sum(x, dtype="float32"), x.astype(jnp.float_))
    yield "default dtypes", [str(y.dtype) for y in unasked], ["float32"] * 3
    big = np.array([2**40, 1])
    for f, given in ((jnp.array, big), (jnp.frombuffer, big.tobytes()), (jnp.astype, big)):
        with warnings.catch_warnings(action="ignore"):
            told = refusal(OverflowError, f, given, "int64") or ""
        yield f"{f.__name__} of 2**40", "int32, which 1099511627776 does not fit" in told, True
        yield f"{f.__name__} of 2**40 says how", "jax_enable_x64" in told, True
    with warnings.catch_warnings(action="error"):
        host = x.__array__(np.float64), np.asarray(x, "float64"), np.array([x, x], np.complex128), np.asarray(x, int)
    yield "NumPy's own arrays", [str(y.dtype) for y in host], ["float64", "float64", "complex128", "int64"]
    yield "finfo", str(jnp.finfo("float64").dtype), "float64"
    yield "isdtype", jnp.isdtype(np.dtype("int64"), jnp.int64), True
    yield "one object", jnp.zeros is pickle.loads(pickle.dumps(jnp.zeros)), True
    yield "its name", jnp.zeros.__name__, "zeros"
    # computed in float64, without a word
    yield "ours", str(tl.scipy.special.hyp1f1(1.0, 2.0, 3.0).dtype), "float32"


def _is_told(text: str, asked: str, given: str) -> bool:
    return text.startswith(f"Explicitly requested dtype {asked} in ") and f" is truncated to {given}" in text


def facts_afterwards() -> Iterator[Fact]:
    outside = [str(x.dtype) for x in (KEPT, KEPT.astype("float64"), tnp.float64(3))]
    yield "outside", outside, ["float64"] * 3
    before = dict(vars(Array))
    with tl.as_jax():
        yield "methods inside", dict(vars(Array)) == before, False
    yield "methods", dict(vars(Array)) == before, True
    with tl.config.scope(numpy_bits=32):
        scoped = [str(x.dtype) for x in (tnp.zeros(2, "float64"), tnp.ones(2).astype("float64"))]
    yield "outside, with numpy_bits = 32", scoped, ["float64"] * 2
