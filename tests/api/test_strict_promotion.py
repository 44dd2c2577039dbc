"""`numpy_dtype_promotion="strict"`: what a function mixes inside is no mixing of the caller's, who gives one dtype.

Every example of the reference runs, of arrays of several dtypes, by types alone (`tests.typed_steps`).
"""

import contextlib
import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.errors import TypePromotionError
from tapeless.experimental import checkify
from tapeless.experimental.ode import odeint
from tapeless.scipy import signal
from tapeless.scipy.sparse import linalg as iterative
from tests.pages import hook
from tests.typed_steps import by_types

EXAMPLES = hook("example_calls")
DTYPES = (None, "bfloat16", "float64", "complex64")
MIXED_BY_THE_CALL = {"promote_types", "relation"}  # int32 with float32; a boolean with a float


@pytest.fixture(autouse=True)
def strict() -> Iterator[None]:
    with tl.config.scope(numpy_dtype_promotion="strict"):
        yield


class OfDtype:
    """The namespace `tapeless.numpy`, whose new arrays of float32 are made ones of another dtype."""

    def __init__(self, dtype: str | None) -> None:
        self.dtype = dtype

    def __getattr__(self, name: str) -> Any:
        function = getattr(tnp, name)
        return self.made_by(function) if name in ("array", "ones", "zeros", "eye") and self.dtype else function

    def made_by(self, function: Any) -> Any:
        def make(*args: Any, **kwargs: Any) -> Any:
            made = function(*args, **kwargs)
            stated = len(args) > 1 or kwargs
            return made.astype(self.dtype) if made.dtype == np.float32 and not stated else made

        return make


def refusal(call: str, dtype: str | None) -> str:
    """Run a call; what is refused of its promotion, if anything. Other errors are those of dtypes that it lacks."""
    names = {"np": np, "tl": tl, "tnp": OfDtype(dtype), "lax": lax}
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            eval(call, names)
    except TypePromotionError as error:
        return f"{call} of {dtype}: {error}"
    except Exception:
        return ""
    return ""


@pytest.mark.filterwarnings("ignore")
def test_every_example_and_dtypes():
    rng, namespaces = np.random.default_rng(0), {**EXAMPLES.TEXTS, **EXAMPLES.library_examples.TEXTS}
    refused = list[str]()
    with by_types():
        for name, call in [row for namespace in namespaces for row in EXAMPLES.calls(namespace).items()]:
            if name not in MIXED_BY_THE_CALL:
                refused += [refusal(call, dtype) for dtype in rng.choice(np.array(DTYPES, object), 2, replace=False)]
    assert [*filter(None, refused)] == []


X, Z, H, COUNTS = tnp.ones(4), tnp.ones(4, "complex64"), tnp.ones(4, "bfloat16"), tnp.arange(4)
TIMES = tnp.asarray(np.linspace(0, 1, 3, dtype="float32"))
CALLS = {
    "odeint": lambda: odeint(lambda y, t: -y, X, TIMES),
    "grad of odeint": lambda: tl.grad(lambda x: odeint(lambda y, t: -y, x, TIMES).sum())(X),
    "index checks": lambda: checkify.checkify(lambda x, i: x[i], errors=checkify.index_checks)(X, COUNTS),
    "histogram": lambda: [tnp.histogram(x, 3) for x in (X, H, COUNTS)],
    "histogram2d": lambda: [tnp.histogram2d(x, x, 3) for x in (X, COUNTS)],
    "histogram of weights": lambda: tnp.histogram(COUNTS, 3, weights=X, density=True),
    "var": lambda: [tnp.var(x, mean=tnp.mean(x)) for x in (X, Z, H, COUNTS)],
    "std": lambda: [tnp.std(x, mean=tnp.mean(x)) for x in (X, Z, H, COUNTS)],
    "mgrid": lambda: (tnp.mgrid[0:3, 0:2], tnp.mgrid[0:1:3j, 0:2]),
    "ravel_multi_index": lambda: tnp.ravel_multi_index((COUNTS, COUNTS), (5, 5), mode="wrap"),
    "bincount": lambda: (tnp.bincount(COUNTS, length=4), tnp.bincount(COUNTS, X, length=4)),
    "trapezoid": lambda: [tnp.trapezoid(x, x) for x in (X, Z, H, COUNTS)],
    "iterative": lambda: [f(tnp.eye(4, dtype=Z.dtype), Z) for f in (iterative.cg, iterative.bicgstab, iterative.gmres)],
    "logsumexp": lambda: [tl.nn.logsumexp(x, b=x, return_sign=True) for x in (X, Z, H)],
    "istft": lambda: signal.istft(tnp.ones((3, 4), "complex64"), nperseg=4),
    "discrete distribution": lambda: tl.scipy.stats.binom.logpmf(COUNTS, 5, 0.5),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_functions_and_dtypes(name):
    tl.jit(CALLS[name]).eval_shape()


def test_operands_of_two_dtypes_are_refused():
    for f in (lambda: tnp.trapezoid(X, H), lambda: tl.nn.logsumexp(X, b=H), lambda: X + H, lambda: iterative.cg(X, Z)):
        with pytest.raises(TypePromotionError, match=r"promotion of (float32|bfloat16|complex64) and"):
            f()
