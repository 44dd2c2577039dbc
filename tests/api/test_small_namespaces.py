"""`flatten_util`, `sharding`, `typing` and `core`: a few names each."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.flatten_util import ravel_pytree
from tapeless.like_jax.jax_src import placement
from tapeless.like_jax.jax_src.distributed import reached_preemption_sync_point
from tapeless.lowering.compile import compile_module
from tests.messages import raises


def test_ravel_pytree():
    tree = {"w": tnp.arange(6.0).reshape(2, 3), "n": tnp.array(7), "none": None, "b": [np.ones(2, np.float16)]}
    flat, unravel = ravel_pytree(tree)
    assert flat.shape == (9,) and flat.dtype == np.float32
    back = unravel(flat * 2)
    assert tl.tree.structure(back) == tl.tree.structure(tree)
    for x, y in zip(tl.tree.leaves(back), tl.tree.leaves(tree), strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        np.testing.assert_array_equal(x, 2 * np.asarray(y))
    for wrong in (flat[1:], flat.astype("float16"), 1.0):
        with pytest.raises(TypeError, match=r"the inverse of ravel_pytree takes float32\[9\], not float"):
            unravel(wrong)
    empty, unravel = ravel_pytree({"nothing": ()})
    assert empty.shape == (0,) and unravel(empty) == {"nothing": ()}
    with raises(TypeError, "ravel_pytree: pytree['x'] is 'a' of type str, which is not an array."):
        ravel_pytree({"x": "a"})


def test_vectors_of_another_width_and_what_to_do():
    """SciPy's optimizers pass float64."""
    x = np.ones(2)
    _, unravel = ravel_pytree({"a": 1.0, "b": tnp.zeros(())})
    message = """the inverse of ravel_pytree takes float32[2], not float64[2].
  Python numbers in the tree have the default width, float32.
  Begin the program with tl.config.update("default_bits", 64), or make the tree of arrays of float64."""
    with raises(TypeError, message):
        unravel(x)
    _, unravel = ravel_pytree(tnp.zeros(2))
    message = """the inverse of ravel_pytree takes float32[2], not float64[2].
  Convert the vector, x.astype(float32), or make the tree of arrays of float64."""
    with raises(TypeError, message):
        tl.jit(unravel)(x)
    with raises(TypeError, "the inverse of ravel_pytree takes float32[2], not float32[1]."):
        unravel(tnp.ones(1))


def test_functions_that_unravel_are_equal():
    """So a function that takes one is not traced again."""
    traced = []

    def run(vector, unravel):
        traced.append(vector)
        return unravel(vector + 1)

    as_leafless, as_static = tl.jit(run), tl.jit(run, static_argnums=1)
    for k in (1, 2):
        vector, unravel = ravel_pytree((np.arange(2) * k, np.ones((1, 2)) * k))
        for f in (as_leafless, as_static):
            np.testing.assert_array_equal(f(vector, unravel)[1], [[k + 1, k + 1]])
    assert len(traced) == 2
    assert unravel != ravel_pytree((np.arange(2), np.ones((2, 1))))[1]


def test_unraveling_is_differentiated_and_compiled():
    tree = {"w": tnp.ones((2, 2)), "b": tnp.zeros(2)}
    flat, unravel = ravel_pytree(tree)

    def loss(v):
        p = unravel(v)
        return (p["w"] ** 2).sum() + p["b"].sum()

    _, flat_of = ravel_pytree({"w": 2 * tree["w"], "b": tree["b"] + 1})
    gradient = tl.jit(tl.grad(loss))(flat)
    np.testing.assert_array_equal(flat_of(gradient)["w"], 2 * np.ones((2, 2)))
    np.testing.assert_array_equal(flat_of(gradient)["b"], np.ones(2))


def test_shardings():
    x = tnp.ones(3)
    assert isinstance(x.sharding, tl.sharding.SingleDeviceSharding) and isinstance(x.sharding, tl.sharding.Sharding)
    assert x.sharding == tl.sharding.SingleDeviceSharding(x.device) and x.sharding.device_set == {x.device}
    assert len({x.sharding, tnp.zeros(2).sharding}) == 1
    assert tl.device_put(np.ones(2), x.sharding).device is x.device
    assert tl.random.key(0).sharding == x.sharding and isinstance(x.device, tl.Device)
    assert x.sharding.shard_shape(x.shape) == (3,) and x.sharding.num_devices == 1
    assert x.sharding.devices_indices_map(x.shape) == {x.device: x.addressable_shards[0].index}
    assert x.sharding.memory_kind in [memory.kind for memory in x.device.addressable_memories()]
    assert tl.sharding.SingleDeviceSharding(x.device, memory_kind="device") == x.sharding
    assert tl.sharding.make_single_device_sharding(x.device) == x.sharding
    message = "SingleDeviceSharding: arrays are in a device's own memory, 'device', not 'pinned_host'."
    with raises(NotImplementedError, message):
        tl.sharding.make_single_device_sharding(x.device, memory_kind="pinned_host")


def test_parts_of_arrays_on_devices():
    """What Orbax puts arrays together by: there is one part, and XLA chooses its layout."""
    x, make = tnp.ones(3), placement.make_array_from_single_device_arrays
    form = placement.Format(None, x.sharding)
    assert tl.device_put(np.ones(2), form).sharding == form.sharding == x.sharding and form.layout is None
    assert make((3,), form, [x]) is make([3], x.sharding, [x], dtype="float32") is x
    assert not reached_preemption_sync_point(3)
    with raises(NotImplementedError, "Format: layouts are XLA's choice: give a sharding, and no layout (None)."):
        placement.Format()
    with raises(
        ValueError,
        f"make_array_from_single_device_arrays: parts are ['float32[3] on {x.device}'], not one array of shape (4,) on "
        f"{x.device}.",
    ):
        make((4,), x.sharding, [x])
    with raises(
        TypeError,
        "make_array_from_single_device_arrays: parts are arrays on devices, not ndarray: jax.device_put puts a value "
        "on a device.",
    ):
        make((3,), x.sharding, [np.ones(3, np.float32)])
    for parts, dtype in (([], None), ([x, x], None), ([x], "int32")):
        with pytest.raises(ValueError, match="make_array_from_single_device_arrays: parts are "):
            make((3,), x.sharding, parts, dtype=dtype)


def test_device_put_of_parts():
    x, device = tnp.ones(3), tl.devices()[0]
    parts = tl.device_put({"a": x, "b": (2.0, None, 3)}, {"a": device, "b": (x.sharding, None, None)})
    assert parts["a"].committed and parts["a"].unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    assert parts["b"][1] is None and parts["b"][0].device is parts["b"][2].device is device
    assert tl.device_put(x, donate=True) is x and tl.device_put(parts["a"], device, may_alias=True) is parts["a"]
    copied = tl.device_put(x, may_alias=False)
    assert copied.unsafe_buffer_pointer() != x.unsafe_buffer_pointer() and copied.tolist() == x.tolist()
    message = """device_put: the full tree does not match device.
  The root is a tuple of 1 in device, a tuple of 2 in the full tree.
  They must have the same nodes; only where device has a leaf may the full tree have anything."""
    with raises(ValueError, message):
        tl.device_put((x, x), (device,))


def test_types():
    assert isinstance(tnp.ones(2), tl.typing.ArrayLike) and isinstance(1.0, tl.typing.ArrayLike)
    assert not isinstance("x", tl.typing.ArrayLike) and isinstance(np.dtype("f4"), tl.typing.DTypeLike)
    assert tl.typeof(np.ones(2)) is tl.typeof(np.zeros(2)) and str(tl.typeof(1.0)) == "float32[]"
    assert isinstance(tl.typeof(1), tl.core.ShapedArray)


def test_programs_are_applied():
    closed = tl.make_jaxpr(lambda x: (x * np.arange(3.0, dtype=np.float32), isinstance(x, tl.core.Tracer)))(2.0)
    outs = tl.core.eval_jaxpr(closed.jaxpr, closed.consts, 3.0)
    assert outs[0].tolist() == [0, 3, 6] and bool(outs[1])


def test_errors_of_the_compiler():
    with pytest.raises(tl.errors.JaxRuntimeError):
        compile_module("nonsense", out_avals=[], device=tl.devices()[0], use_cache=False)


def test_the_class_of_jitted_functions():
    assert isinstance(tl.jit(lambda x: x), tl.stages.Wrapped)
