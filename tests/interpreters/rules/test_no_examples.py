"""vmap over no examples: reads and writes at indices of each example."""

from typing import Any

import numpy as np
import pytest

import tapeless as tl
from tapeless import lax

NO_EXAMPLES: dict[str, Any] = {
    "read": lambda x, i: x[i] * x[i],
    "read, or filled": lambda x, i: x.at[i].get(mode="fill", fill_value=3.0),
    "slice": lambda x, i: lax.dynamic_slice(x, (i,), (2,)),
    "write": lambda x, i: x.at[i].set(x[0]),
    "write a slice": lambda x, i: lax.dynamic_update_slice(x, x[:2], (i,)),
    "add": lambda x, i: x.at[i].add(x[1]),
    "multiply": lambda x, i: x.at[i].mul(2.0),
    "maximum": lambda x, i: x.at[i].max(1.0),
}


@pytest.mark.parametrize("name", NO_EXAMPLES)
def test_indices_of_no_examples(name: str):
    """The batching axes have no elements, and a window of one does not fit into them."""
    f = tl.vmap(NO_EXAMPLES[name])
    x, i = np.zeros((0, 5)), np.zeros(0, np.int32)
    value, pushed = tl.jvp(lambda x: f(x, i), (x,), (x,))
    assert value.shape == pushed.shape == tl.jit(f)(x, i).shape and value.shape[0] == 0
    assert tl.jit(tl.grad(lambda x: f(x, i).sum()))(x).shape == (0, 5)
