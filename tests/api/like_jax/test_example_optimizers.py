"""Optimizers of JAX's examples: against those, and on a quadratic function."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.like_jax.jax_src import example_optimizers as ours
from tests.messages import raises

MADE = {
    "sgd": (0.1,),
    "momentum": (0.05, 0.9),
    "nesterov": (0.05, 0.9),
    "adagrad": (0.3,),
    "sm3": (0.3,),
    "rmsprop": (0.1,),
    "rmsprop_momentum": (0.02,),
    "adam": (0.1,),
    "adamax": (0.1,),
}
SCHEDULES = {
    "exponential_decay": (0.1, 2, 0.5),
    "inverse_time_decay": (0.1, 2, 0.5, True),
    "polynomial_decay": (0.1, 3, 0.01, 2.0),
    "piecewise_constant": ([1, 3], [0.1, 0.05, 0.01]),
}
START = {"a": np.array([1.0, -2.0], np.float32), "b": [np.float32(0.5), np.array([[1, -2], [3, 0.5]], np.float32)]}


def states(lib, name, args, grads_of, steps=6):
    """Parameters after each step."""
    init, update, params_of = getattr(lib, name)(*args)
    state, found = init(START), []
    for i in range(steps):
        state = update(i, grads_of(params_of(state)), state)
        found.append([np.asarray(x) for x in tl.tree.leaves(params_of(state))])
    return found


@pytest.mark.parametrize("name", MADE)
def test_optimizers(name):
    """The same parameters as JAX's; and the sum of squares gets less, under jit too."""
    grads = lambda params: tl.tree.map(lambda x: 2 * x, params)  # noqa: E731
    found = states(ours, name, MADE[name], grads, 20)
    assert sum((x**2).sum() for x in found[-1]) < sum((x**2).sum() for x in found[0])
    init, update, params_of = getattr(ours, name)(*MADE[name])
    state = tl.jit(lambda state: update(0, grads(params_of(state)), state))(init(tl.tree.map(tnp.asarray, START)))
    for x, expected in zip(tl.tree.leaves(params_of(state)), found[0], strict=True):
        np.testing.assert_allclose(x, expected, rtol=1e-6)
    theirs = pytest.importorskip("jax.example_libraries.optimizers")
    for mine, expected in zip(found, states(theirs, name, MADE[name], grads, 20), strict=True):
        for x, y in zip(mine, expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)


def test_schedules():
    theirs = pytest.importorskip("jax.example_libraries.optimizers")
    for name, args in SCHEDULES.items():
        mine, expected = (
            getattr(lib, name)(*map(lib_args, args)) for lib, lib_args in ((ours, _same), (theirs, _array))
        )
        for i in range(6):
            np.testing.assert_allclose(mine(i), expected(i), rtol=1e-6, err_msg=name)


def _same(x):
    return x


def _array(x):
    return np.array(x) if isinstance(x, list) else x


def test_gradients_and_errors():
    assert float(ours.l2_norm({"x": np.array([3.0, 0.0]), "y": 4.0})) == 5
    assert ours.clip_grads([np.array([3.0, 4.0])], 1.0)[0].tolist() == pytest.approx([0.6, 0.8])
    assert ours.clip_grads([np.array([3.0, 4.0])], 6.0)[0].tolist() == [3, 4]
    with raises(TypeError, "make_schedule: a number or a function of the step, not [1.0]."):
        ours.sgd([1.0])
    with raises(ValueError, "piecewise_constant: (1,) boundaries need one value more, not (1,)."):
        ours.piecewise_constant([1], [2.0])
    init, update, _ = ours.sgd(0.1)
    with pytest.raises(ValueError, match=r"gradients must have the structure of the parameters\.\n  "):
        update(0, [1.0], init({"x": 1.0}))
