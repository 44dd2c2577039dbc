"""Where an operand is read follows from the index row: against what changes a result that a choice leaves, by NumPy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.interpreters.simplifications.masks.mask_analysis import Sinking
from tapeless.interpreters.simplifications.masks.sink import sink_into_bodies
from tapeless.interpreters.writer import in_order
from tapeless.tracer.linear_vars import mark_linear
from tests.stepping import by_steps

pytestmark = pytest.mark.usefixtures("eager_by_steps")

KERNEL = np.arange(1.0, 13.0).reshape(2, 3, 2)
LOWER = np.tril(np.ones((2, 3, 3)))

# A linear function of [2, 3, 4], and whether a region is exact: it may be larger along axes that are read whole.
READ: dict[str, tuple[Callable[[Any], Any], bool]] = {
    "neg": (lambda x: -x, True),
    "transpose": (lambda x: tnp.transpose(x, (2, 0, 1)), True),
    "reverse": (lambda x: tnp.flip(x, 1), True),
    "sum": (lambda x: x.sum(1), True),
    "broadcast": (lambda x: tnp.broadcast_to(x[:, None], (2, 2, 3, 4)), True),
    "sliced": (lambda x: x[:, 1:, ::2], True),
    "padded and cut": (lambda x: lax.pad(x, 0.0, [(1, 0, 0), (0, 0, 1), (-1, 2, 0)]), True),
    "joined": (lambda x: tnp.concatenate([x, 2 * x[:, :1]], 1), True),
    "taken apart": (lambda x: lax.split(x, [1, 3], axis=2)[1], True),
    "reshaped": (lambda x: x.reshape(6, 4), True),
    "reshaped without common digits": (lambda x: x.reshape(3, 8).sum(0), True),
    "cumulative": (lambda x: lax.cumsum(x, axis=1), True),
    "cumulative from the end": (lambda x: lax.cumsum(x, axis=2, reverse=True), True),
    "product": (lambda x: x @ KERNEL.reshape(4, 3), True),
    "one window": (lambda x: lax.dynamic_slice(x, (0, tnp.argmax(KERNEL[0, 0]), 1), (2, 2, 3)), True),
    "updated": (lambda x: lax.dynamic_update_slice(x, x[:1, :1], (1, tnp.argmax(KERNEL[0, 0]), 0)), False),
    "gathered": (lambda x: x[:, tnp.argsort(-KERNEL[0, :, 0])[:2]], True),
    "windows gathered": (
        lambda x: tl.vmap(lambda i: lax.dynamic_slice(x, (0, i, 0), (2, 2, 4)))(np.array([1, 0])),
        True,
    ),
    "scattered": (lambda x: tnp.zeros((2, 3, 4)).at[:, tnp.argsort(KERNEL[0, :, 0])].add(x), True),
    "two readers": (lambda x: x[:, :2] + tnp.flip(x, 1)[:, :2], True),
    "windows side by side": (lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 1, 2), (1, 1, 2), "VALID"), True),
    "windows that overlap": (lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 1, 2), (1, 1, 1), "SAME"), False),
    "a convolution": (lambda x: lax.conv_general_dilated(x, KERNEL[:, :3], (1,), "SAME"), False),
    "a Fourier transform": (lambda x: tnp.fft.fft(x).real, False),
    "a triangular system": (lambda x: lax.linalg.triangular_solve(LOWER, x, left_side=True, lower=True), False),
    "a recurrence": (lambda x: lax.associative_scan(tnp.add, x, axis=1), False),
}


def region(f: Callable[[Any], Any], x: Any, mask: Any) -> Any:
    """The elements of x that are read where a mask of f(x) holds, as the program says."""

    def chosen(x: Any, mask: Any) -> Any:
        return tnp.where(mask, f(x), 0)

    closed = tl.make_jaxpr(chosen)(x, mask)
    n = len(closed.consts)
    jaxpr = mark_linear(closed.jaxpr, (*[False] * n, True, False))
    sinking = Sinking(jaxpr, [None], (), sink_into_bodies)
    sinking.run()
    where = sinking.where[jaxpr.invars[n]]
    array = None if where is None else sinking.coefficients.array(where)
    if array is None:
        return np.ones(x.shape, bool)
    known = in_order(jaxpr.replace(invars=[v for v in jaxpr.invars if not v.linear]), sinking.w.eqns, [array])
    return np.asarray(by_steps(known, [*closed.consts, mask])[0])


@pytest.mark.parametrize("name", READ)
def test_what_is_read_is_in_the_region(name: str):
    f, is_exact = READ[name]
    x = np.random.default_rng(0).uniform(1, 2, (2, 3, 4))
    basis = np.eye(x.size).reshape(-1, *x.shape)
    jacobian = np.asarray(tl.jit(tl.vmap(f))(basis))
    shape = jacobian.shape[1:]
    for mask in (np.random.default_rng(1).random(shape) < 0.3, np.indices(shape)[0] == 1):
        read = (np.where(mask, jacobian, 0) != 0).reshape(x.size, -1).any(1).reshape(x.shape)
        found = region(f, x, mask)
        assert (found >= read).all()
        assert not is_exact or (found == read).all()


# What works on each example of a batch by itself: [2, 3, 4], of which the first axis is the batch.
OF_EXAMPLES: dict[str, Callable[[Any], Any]] = {
    "a Fourier transform": lambda x: tnp.fft.fft(x).real,
    "a triangular system": lambda x: lax.linalg.triangular_solve(LOWER, x, left_side=True, lower=True),
    "a sort": lambda x: tnp.sort(x, axis=1),
    "windows": lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2, 2), (1, 1, 1), "SAME"),
    "greatest of windows": lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 1, 2), (1, 1, 1), "SAME"),
    "a convolution": lambda x: lax.conv_general_dilated(x, KERNEL[:, :3], (1,), "SAME"),
    "a running product": lambda x: lax.cumprod(x, axis=2),
    "columns": lambda x: lax.split(x, [1, 3], axis=2)[1],
}


@pytest.mark.parametrize("name", OF_EXAMPLES)
def test_examples_that_are_left_out_have_no_gradient(name: str):
    """The square root is infinite in reverse at 0, which only the example that is left out has."""
    x = np.random.default_rng(0).uniform(1, 2, (2, 3, 4))
    x[1] = 0

    def f(x: Any) -> Any:
        y = OF_EXAMPLES[name](tnp.sqrt(x))
        return tnp.sum(tnp.where(np.array([True, False]).reshape(2, *[1] * (y.ndim - 1)), y, 0))

    gradient = np.asarray(tl.grad(f)(x))
    alone = np.asarray(tl.grad(lambda x: tnp.sum(OF_EXAMPLES[name](tnp.sqrt(x))[:1]))(x[[0, 0]]))
    np.testing.assert_allclose(gradient[0], alone[0])
    np.testing.assert_array_equal(gradient[1], 0)


@pytest.mark.parametrize("transformed", [lambda f: f, tl.jit])
def test_examples_that_are_left_out_of_every_part(transformed: Callable[..., Any]):
    """The parts are more than a region has alternatives: the mask of the examples joins them along the whole axis."""
    chosen, x = np.array([True, False, True]), np.where(np.arange(3)[:, None] == 1, 0.0, np.ones((3, 12)))

    def loss(x: Any, chosen: Any) -> Any:
        mask = tnp.broadcast_to(chosen[:, None], (3, 2))
        parts = lax.split(tnp.sqrt(x), (2,) * 6, axis=1)
        return sum(k * tnp.sum(tnp.where(mask, part, 0.0)) for k, part in enumerate(parts))

    expected = np.where(chosen[:, None], np.repeat(np.arange(6), 2) / 2, 0.0)
    np.testing.assert_allclose(transformed(tl.grad(loss))(x, chosen), expected)


def test_masks_that_hold_somewhere_but_never_together():
    """The first element is read in no column, though each of two masks holds in one of its columns."""
    p, q = np.array([[True, False], [True, True]]), np.array([[False, True], [True, False]])

    def loss(x: Any, p: Any, q: Any) -> Any:
        y = tnp.broadcast_to(tnp.sqrt(x)[:, None], (2, 2))
        return tnp.sum(tnp.where(p, tnp.where(q, y, 0.0), 0.0))

    np.testing.assert_allclose(tl.jit(tl.grad(loss))(np.array([0.0, 1.0]), p, q), [0, 0.5])


@pytest.mark.parametrize("layers", [1, 6])
def test_choices_between_sums_stay_one_mask(layers: int):
    """Each sum reduces one array of all choices after it; conditions of several sums would be as many masks."""

    def f(x: Any, mask: Any) -> Any:
        for _ in range(layers):
            x = tnp.where(mask, tnp.broadcast_to(x[:, None], (3, 4)), 0.0).sum(1)
        return x

    jaxpr = mark_linear(tl.make_jaxpr(f)(np.ones(3), np.ones((3, 4), bool)).jaxpr, (True, False))
    sinking = Sinking(jaxpr, [None], (), sink_into_bodies)
    sinking.run()
    where = sinking.where[jaxpr.invars[0]]
    assert where is not None and [len(masks) for masks in where] == [1]
    assert sum(not eqn.linear for eqn in sinking.w.eqns) <= 3 * layers
