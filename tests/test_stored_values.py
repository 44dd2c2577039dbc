"""A value that is compared with what is made of it is stored: XLA computes cheap values again in each kernel that reads
them, and contracts products and sums to one rounding in some of them, so that an element need not equal itself.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.ad_checkpoint import checkpoint_name
from tests.stepping import in_steps

pytestmark = pytest.mark.usefixtures("optimized")
Function = Callable[[Any], Any]
INDICES = np.array([1, 2, -1, 5, 1, 0, 3])


def cheap(x: Any) -> Any:
    """Elements that are computed again by whoever reads them: products and sums, some of which have other readers."""
    return (1.31 * x + 0.0317) * x


def beside(extreme: Function) -> Function:
    """A number made of an extreme of cheap elements and of the elements themselves."""
    return lambda x: tnp.sum(tnp.sin(extreme(cheap(x)))) + tnp.sum(cheap(x))


def larger_of_two(x: Any) -> Any:
    return tnp.sin(checkpoint_name(tnp.maximum(cheap(x), 0.5), "larger")) * cheap(x)


save_named = tl.checkpoint_policies.save_only_these_names("larger")


def larger_of_mapped(r: Any) -> Any:
    return tnp.sin(lax.pmax(cheap(r), "i")) * cheap(r)


PROGRAMS: dict[str, Function] = {
    "max": beside(lambda x: tnp.max(x + x, axis=0)),
    "min": beside(lambda x: tnp.min(x + x, axis=1)),
    "of all": beside(lambda x: tnp.max(x + x)),
    "mapped": beside(lambda x: tl.vmap(lambda r: tnp.max(r + r))(x)),
    "of two": lambda x: tnp.sum(tnp.sin(tnp.maximum(cheap(x), cheap(1.1 * x)))) + tnp.sum(cheap(x)),
    "of two, saved": lambda x: tnp.sum(tl.checkpoint(larger_of_two, policy=save_named)(x)),
    "of ranks 2 and 0": lambda x: tnp.sum(tnp.sin(tnp.minimum(cheap(x), cheap(1.3 * x[0, 0])))) + tnp.sum(cheap(x)),
    "over a mapped axis": lambda x: tnp.sum(tnp.sin(tl.vmap(larger_of_mapped, axis_name="i")(x))),
    "in a loop": beside(lambda x: lax.scan(lambda c, r: (c + tnp.max(r + r), None), 0.0, x)[0]),
    "checkpointed": beside(lambda x: tl.checkpoint(lambda x: tnp.max(cheap(x), axis=0))(x)),
    "written, max": lambda x: tnp.sum(tnp.sin(tnp.broadcast_to(x[:, :1], x.shape).at[INDICES].max(cheap(x)))),
    "written, min": lambda x: tnp.sum(tnp.sin((x + x[:, :1] * x).at[INDICES].min(cheap(x)))),
    "written once": lambda x: tnp.sum(tnp.sin((x + x[:1] * x).at[np.arange(7)].max(cheap(x), unique_indices=True))),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_elements_equal_themselves(name: str, dtype: str):
    """Step by step every value is stored, so the derivatives there are right."""
    f = PROGRAMS[name]
    gradient, push = tl.grad(f), lambda x, t: tl.jvp(f, (x,), (t,))[1]
    compiled_gradient, compiled_push, zeros = tl.jit(gradient), tl.jit(push), np.zeros((7, 9), dtype)
    gradient_in_steps, push_in_steps = in_steps(gradient, zeros), in_steps(push, zeros, zeros)
    for seed in range(5):
        x, t = np.random.default_rng(seed).normal(size=(2, 7, 9)).astype(dtype)
        some = {
            "rtol": 1e-4 if dtype == "float32" else 1e-12,
            "atol": 1e-5 if dtype == "float32" else 1e-12,
        }  # rounding
        np.testing.assert_allclose(compiled_gradient(x), gradient_in_steps(x), **some)
        np.testing.assert_allclose(compiled_push(x, t), push_in_steps(x, t), **some)
