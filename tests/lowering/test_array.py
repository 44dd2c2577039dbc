"""DeviceArray: what goes in, what comes out, and what it refuses."""

import copy
import gc
import math
import pickle
import sys
import threading
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tapeless as tl
from tapeless.lowering import array, devices
from tapeless.lowering.array import DeviceArray, device_get, device_put, from_dlpack, scalar_constant, to_device
from tapeless.lowering.xla_workarounds import compat
from tapeless.tracer.types import ShapedArray, aval_of
from tests.messages import raises

NUMPY_DTYPES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()
)
SMALL_DTYPES = (
    "bfloat16 float8_e4m3fn float8_e5m2 float8_e4m3 float8_e3m4 float8_e4m3b11fnuz float8_e4m3fnuz float8_e5m2fnuz "
    "float8_e8m0fnu float4_e2m1fn int2 int4 uint2 uint4"
).split()


def weak(value: complex, dtype: str) -> DeviceArray:
    return to_device(value, ShapedArray((), dtype, True), devices.current_device())


# ---- in and out


@pytest.mark.parametrize("name", [*NUMPY_DTYPES, *SMALL_DTYPES])
def test_every_dtype_arrives(name: str):
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    host = np.array([[0, 1], [1, 0]], np.int8).astype(dtype)
    if name.startswith("float8_e8m0"):  # it has no zero
        host = np.array([[1, 2], [4, 1]], np.float32).astype(dtype)
    x = device_put(host)
    assert x.dtype == dtype and x.shape == (2, 2)
    assert np.asarray(x).dtype == dtype
    assert np.asarray(x).tobytes() == host.tobytes()


@pytest.mark.parametrize("value", [2**62 + 1, 0.1, 1e300, complex(0.1, 2)])
def test_64_bits_stay(value: complex):
    assert device_put(np.asarray([value])).item() == value


def transposed(a: np.ndarray) -> np.ndarray:
    return a.T


def read_only(a: np.ndarray) -> np.ndarray:
    a.flags.writeable = False
    return a


def big_endian(a: np.ndarray) -> np.ndarray:
    return a.astype(a.dtype.newbyteorder(">"))


LAYOUTS = {
    "C order": lambda a: a,
    "Fortran order": np.asfortranarray,
    "transposed": transposed,
    "every other": lambda a: a[:, ::2],
    "reversed": lambda a: a[::-1, ::-1],
    "broadcast": lambda a: np.broadcast_to(a[0], (5, a.shape[1])),
    "read-only": read_only,
    "big-endian": big_endian,
    "big-endian Fortran": lambda a: np.asfortranarray(big_endian(a)),
    "empty": lambda a: a[:0],
    "0-d": lambda a: a[1, 2, ...],
    "unaligned": lambda a: np.frombuffer(b"\0" + a.tobytes(), a.dtype, offset=1).reshape(a.shape),
    "matrix": np.matrix,
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "int64", "complex128", "int16"])
@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_every_layout_arrives(layout: str, dtype: str):
    host = LAYOUTS[layout](np.arange(24).reshape(4, 6).astype(dtype))
    x = device_put(host)
    assert x.shape == host.shape and x.dtype == np.dtype(dtype)
    assert np.array_equal(np.asarray(x), np.asarray(host))


def test_changing_what_it_was_made_from_does_not_show():
    base = np.zeros(2**18 + 16)
    start = -base.ctypes.data % 64 // 8
    for host in (base[start : start + 2**18], base[start + 1 : start + 2**18]):  # aligned memory is what gets aliased
        host[:] = 1
        x = device_put(host)
        host[:] = 2
        assert np.asarray(x).min() == np.asarray(x).max() == 1


@pytest.mark.parametrize(
    "value", [True, 3, 2.5, 2j, np.float32(2), np.float64(0.1), np.int8(-3), ml_dtypes.bfloat16(1.5)]
)
def test_scalars(value: complex):
    x = device_put(value)
    assert x.aval is aval_of(value) and x.ndim == 0
    assert np.asarray(x)[()] == np.asarray(value, x.dtype)


def test_a_number_that_does_not_fit():
    with pytest.raises(OverflowError):
        weak(300, "int8")


@pytest.mark.parametrize(
    "value", [np.array(["a"]), np.array([None]), np.array(["2020-01-01"], "datetime64[D]"), "a", None]
)
def test_what_is_no_array(value: object):
    with pytest.raises(TypeError):
        device_put(value)


def test_where_it_is():
    x = device_put(np.ones((2, 3), np.float32))
    (cpu,) = devices.devices("cpu")
    assert x.device is cpu and x.devices() == {cpu}
    assert (x.nbytes, x.on_device_size_in_bytes(), x.size, x.itemsize) == (24, 24, 6, 4)
    there = device_put(x, cpu)
    assert device_put(x) is x and device_put(there, cpu) is there and there.committed and not x.committed
    assert there.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    (shard,) = x.addressable_shards
    assert (shard.device, shard.index, shard.replica_id) == (cpu, (slice(None), slice(None)), 0)
    assert shard.data is x.addressable_data(0) is x.global_shards[0].data is x
    for placed in (x, x.sharding):
        assert placed.is_fully_addressable and placed.is_fully_replicated
    with raises(IndexError, f"addressable_data: an array of float32[2,3] has one shard, on {cpu}, not number 1."):
        x.addressable_data(1)
    assert x.block_until_ready() is x and x.is_ready()


def test_to_device_changes_weakness_and_shares():
    x = weak(2.0, "float32")
    strong = to_device(x, x.aval.strong(), x.device)
    assert x.weak_type and not strong.weak_type and strong.buf is x.buf


# ---- numpy


def test_numpy_sees_the_memory_and_cannot_write():
    x = device_put(np.arange(3.0))
    view = np.asarray(x)
    assert view.ctypes.data == np.asarray(x).ctypes.data == x.unsafe_buffer_pointer()
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1
    assert np.array(x).flags.writeable and device_get(x) is not None
    assert np.array(x).ctypes.data != view.ctypes.data


def test_array_protocol():
    x = device_put(np.arange(3, dtype=np.int32))
    assert np.asarray(x, np.float64).dtype == np.float64
    assert x.__array__(np.int32).ctypes.data == x.unsafe_buffer_pointer()
    assert x.__array__(copy=True).flags.writeable
    with pytest.raises(ValueError, match=r"int32\[3\] cannot become float64 uncopied"):
        x.__array__(np.float64, copy=False)


def test_a_view_outlives_the_array():
    x = device_put(np.arange(1000.0))
    view = np.asarray(x)
    x.delete()
    del x
    gc.collect()
    assert np.array_equal(view, np.arange(1000.0))


# ---- Python


# The texts are what JAX 0.10.2 prints.
@pytest.mark.parametrize(
    "value, text",
    [
        (np.array([1.0, 2.0], np.float32), "Array([1., 2.], dtype=float32)"),
        (np.zeros((0, 3)), "Array([], shape=(0, 3), dtype=float64)"),
        (np.ones((2, 2), ml_dtypes.bfloat16), "Array([[1, 1],\n       [1, 1]], dtype=bfloat16)"),
        (np.array(True), "Array(True, dtype=bool)"),
        (np.array([1 + 2j]), "Array([1.+2.j], dtype=complex128)"),
        (np.array([1, 2], ml_dtypes.int4), "Array([1, 2], dtype=int4)"),
        (np.array(3, np.float32), "Array(3., dtype=float32)"),
        (np.array(1.5, ml_dtypes.bfloat16), "Array(1.5, dtype=bfloat16)"),
        (
            np.arange(5000.0),
            "Array([0.000e+00, 1.000e+00, 2.000e+00, ..., 4.997e+03, 4.998e+03,\n       4.999e+03], dtype=float64)",
        ),
        (
            np.ones((2, 3, 4), np.float32),
            "Array([[[1., 1., 1., 1.],\n        [1., 1., 1., 1.],\n        [1., 1., 1., 1.]],\n\n"
            "       [[1., 1., 1., 1.],\n        [1., 1., 1., 1.],\n        [1., 1., 1., 1.]]], dtype=float32)",
        ),
    ],
)
def test_repr(value: np.ndarray, text: str):
    assert repr(device_put(value)) == text


def test_repr_of_weak_types():
    assert repr(weak(2.0, "float64")) == "Array(2., dtype=float64, weak_type=True)"
    many = to_device(np.arange(40) * 1.5, ShapedArray((40,), "float64", True), devices.current_device())
    assert repr(many).endswith("57. , 58.5],      dtype=float64, weak_type=True)")


def test_str_and_format():
    x = device_put(np.float32(2))
    assert f"{x} {x:.3f}" == "2.0 2.000"
    assert f"{device_put(np.array([1.0, 2.0]))}" == "[1. 2.]"
    assert str(device_put(np.array([1.0, 2.0]))) == "[1. 2.]"
    with pytest.raises(TypeError, match="unsupported format string"):
        format(device_put(np.ones(2)), ".2f")


@pytest.mark.parametrize("dtype", ["int32", "float64", "float16", "bfloat16", "uint8"])
def test_numbers(dtype: str):
    x = device_put(np.array(3, np.float32).astype(getattr(ml_dtypes, dtype, dtype)))
    assert int(x) == 3 and float(x) == 3.0 and complex(x) == 3 and bool(x)
    assert type(x.item()) is type(x.tolist()) is (int if "int" in dtype else float)
    assert math.sqrt(x) == math.sqrt(3)


def test_index():
    assert "abc"[device_put(np.int32(1))] == "b" and list(range(device_put(np.int64(3)))) == [0, 1, 2]
    for not_an_index in (np.array(1.5), np.array([1, 2])):
        with pytest.raises(TypeError, match="only integer scalar arrays can be converted to a scalar index"):
            "abc"[device_put(not_an_index)]


def test_truth():
    assert bool(device_put(np.array([[2]]))) and not device_put(np.zeros(1))
    message = (
        "The truth value of an array with more than one element is ambiguous: float64[2]. Use x.any() or x.all().\n"
        "  In the place of 'and' and 'or' write & and | with parentheses: (0 < x) & (x < 2)."
    )
    empty = "The truth value of an empty array is ambiguous: float64[0]. Use x.size > 0."
    for given, told in ((device_put(np.ones(2)), message), (device_put(np.ones(0)), empty)):
        for truth in (bool, tl.jit(lambda x: 1 if x else 2)):  # a traced array has none either, known or not
            with raises(ValueError, told):
                truth(given)


@pytest.mark.parametrize("convert", [int, float, complex])
@pytest.mark.parametrize("shape", [(1,), (2,), (0,), (1, 1)])
def test_only_scalars_are_numbers(convert: type, shape: tuple[int, ...]):
    with pytest.raises(TypeError, match="only 0-dimensional arrays can be converted to Python scalars"):
        convert(device_put(np.ones(shape)))


def test_items():
    x = device_put(np.arange(6).reshape(2, 3))
    assert x.item(1, 2) == 5 and x.tolist() == [[0, 1, 2], [3, 4, 5]] and device_put(np.ones((1, 1))).item() == 1
    with pytest.raises(ValueError, match="can only convert an array of size 1"):
        x.item()


def test_iteration():
    x = device_put(np.arange(6, dtype=np.int16).reshape(3, 2))
    rows = list(x)
    assert len(x) == 3 and all(type(row) is DeviceArray and row.dtype == np.int16 for row in rows)
    assert [row.tolist() for row in rows] == [[0, 1], [2, 3], [4, 5]]
    assert [item.ndim for item in rows[0]] == [0, 0]
    assert list(device_put(np.zeros((0, 2)))) == []
    for no_axes in (iter, len, list):
        with pytest.raises(TypeError):
            no_axes(device_put(1.0))


def test_not_hashable():
    with pytest.raises(TypeError, match=r"an array is not hashable: float64\[3\]"):
        hash(device_put(np.ones(3)))


@pytest.mark.parametrize(
    "value", [np.arange(3.0), np.ones((0, 2)), np.ones((2, 2), ml_dtypes.bfloat16), np.array([1, 2], ">i4")]
)
def test_pickle_and_copies(value: np.ndarray):
    x = device_put(value)
    for other in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x), copy.deepcopy([x])[0]):
        assert other.aval is x.aval and np.array_equal(np.asarray(other), np.asarray(x))
        assert other.buf is not x.buf
    copied = copy.copy(x)
    x.delete()
    assert np.array_equal(np.asarray(copied), value)


def test_pickle_keeps_weak_types():
    x = weak(2.0, "float32")
    assert pickle.loads(pickle.dumps(x)).aval is copy.copy(x).aval is x.aval


def test_waiting_takes_few_calls_of_ours_however_many_arrays_there_are():
    """A program of a few numbers runs for as long as ten calls take; people wait for each, to time it."""

    def entered(tree: Any) -> list[str]:
        found = list[str]()
        sys.setprofile(lambda frame, event, _: found.append(frame.f_code.co_name) if event == "call" else None)
        try:
            tl.block_until_ready(tree)
        finally:
            sys.setprofile(None)
        return found

    arrays = [device_put(np.array(1.5)) for _ in range(20)]
    assert {"block_until_ready", "wait", "raising"} <= set(entered(arrays[0])) and len(entered(arrays[0])) <= 4
    assert [entered(arrays).count(name) for name in ("block_until_ready", "wait", "raising")] == [1, 1, 1]


def test_waiting_for_a_tree_names_an_array_that_was_deleted():
    x, y = device_put(np.array(1.5)), device_put(np.arange(3))
    y.delete()
    with pytest.raises(RuntimeError, match=r"this array has been deleted or donated: int64\[3\]\."):
        tl.block_until_ready([x, {"y": y}])


# ---- deletion

USES = {
    "numpy": np.asarray,
    "number": float,
    "truth": bool,
    "item": lambda x: x.item(),
    "ready": lambda x: x.is_ready(),
    "wait": lambda x: x.block_until_ready(),
    "device": lambda x: x.device,
    "size": lambda x: x.on_device_size_in_bytes(),
    "pointer": lambda x: x.unsafe_buffer_pointer(),
    "copy": copy.copy,
    "pickle": pickle.dumps,
    "dlpack": lambda x: x.__dlpack__(),
    "put": lambda x: to_device(x, x.aval, devices.current_device()),
}


@pytest.mark.parametrize("how", ["deleted", "donated"])
@pytest.mark.parametrize("use", USES)
def test_using_a_deleted_array(use: str, how: str):
    x = device_put(np.array(1.5))
    x.delete() if how == "deleted" else x.buf.delete()
    assert x.is_deleted() and repr(x) == str(x) == "<deleted Array: float64[]>"
    assert x.shape == () and x.dtype == np.float64
    with pytest.raises(RuntimeError, match=r"this array has been deleted or donated: float64\[\]\."):
        USES[use](x)


def test_deleting_twice():
    x = device_put(np.ones(3))
    x.delete()
    x.delete()
    assert x.is_deleted()


# ---- constants


def test_scalar_constants_are_kept():
    cpu, aval = devices.current_device(), ShapedArray((), "float32", True)
    two = scalar_constant(2.0, aval, cpu)
    assert scalar_constant(2.0, aval, cpu) is two and scalar_constant(2, aval, cpu) is two
    assert scalar_constant(2, aval.update(dtype=np.dtype("int32")), cpu) is not two
    two.delete()
    assert scalar_constant(2.0, aval, cpu).item() == 2.0


@pytest.mark.parametrize(
    "one, other", [(0.0, -0.0), (0j, complex(0.0, -0.0)), (1 + 0j, complex(1, -0.0)), (1, True), (0, False)]
)
def test_equal_numbers_that_differ(one: complex, other: complex):
    cpu = devices.current_device()
    bits = [np.asarray(scalar_constant(x, aval_of(x), cpu)).tobytes() for x in (one, other, one)]
    assert bits == [np.asarray(x, aval_of(x).dtype).tobytes() for x in (one, other, one)]


def test_constants_are_bounded():
    cpu, aval = devices.current_device(), ShapedArray((), "float32", True)
    kept = scalar_constant(-1.0, aval, cpu)
    for i in range(1000):
        scalar_constant(float(i), aval, cpu)
        assert scalar_constant(-1.0, aval, cpu) is kept
    assert len(array.scalars) <= 512 and array.scalars.get((1.0, aval, cpu)) is None


def test_constants_in_many_threads():
    cpu, aval = devices.current_device(), ShapedArray((), "float32", True)
    wrong: list[float] = []

    def work() -> None:
        wrong.extend(i for i in range(1500) if scalar_constant(float(i), aval, cpu).item() != i)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# ---- dlpack


class Foreign:
    """An array of another library, as far as dlpack goes: older libraries know no keywords."""

    def __init__(self, host: np.ndarray) -> None:
        self.host = host

    def __dlpack__(self) -> object:
        return self.host.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def aligned(host: np.ndarray) -> np.ndarray:
    memory = np.zeros(host.nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    view = memory[start : start + host.nbytes].view(host.dtype).reshape(host.shape)
    view[...] = host
    return view


@pytest.mark.parametrize("name", NUMPY_DTYPES)
def test_dlpack_there_and_back(name: str):
    x = device_put(np.array([[0, 1, 1], [1, 0, 1]]).astype(name))
    shared = np.from_dlpack(x)
    assert shared.dtype == x.dtype and np.array_equal(shared, np.asarray(x)) and not shared.flags.writeable
    assert shared.ctypes.data == x.unsafe_buffer_pointer()
    back = from_dlpack(Foreign(np.array(x)))
    assert back.aval is x.aval and np.array_equal(np.asarray(back), shared)


def test_deleting_what_another_library_shares():
    x = device_put(np.arange(1000.0))
    shared = np.from_dlpack(x)
    x.delete()
    gc.collect()
    assert x.is_deleted() and np.array_equal(shared, np.arange(1000.0))


def test_import_shares_aligned_memory():
    host = aligned(np.arange(6.0).reshape(2, 3))
    for x in (from_dlpack(Foreign(host)), from_dlpack(Foreign(host), copy=False)):
        assert x.unsafe_buffer_pointer() == host.ctypes.data
    copied = from_dlpack(Foreign(host), copy=True)
    host[:] = 7
    assert copied.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("layout", ["Fortran order", "transposed", "every other", "reversed", "empty", "0-d"])
def test_import_of_other_layouts(layout: str):
    host = LAYOUTS[layout](aligned(np.arange(24.0).reshape(4, 6)))
    for copied in (None, True):
        x = from_dlpack(Foreign(host), copy=copied)
        assert x.shape == host.shape and np.array_equal(np.asarray(x), host)


@pytest.mark.parametrize("layout", ["Fortran order", "every other"])
def test_import_that_would_have_to_copy(layout: str):
    host = LAYOUTS[layout](aligned(np.arange(24.0).reshape(4, 6)))
    with pytest.raises(BufferError, match="from_dlpack: this Foreign cannot be shared"):
        from_dlpack(Foreign(host), copy=False)


def test_import_of_unaligned_memory():
    host = aligned(np.arange(9.0))[1:]
    x = from_dlpack(Foreign(host))
    assert x.tolist() == list(range(1, 9)) and x.unsafe_buffer_pointer() != host.ctypes.data
    with pytest.raises(BufferError, match="cannot be shared"):
        from_dlpack(Foreign(host), copy=False)


def test_import_of_numpy_and_our_own():
    host = read_only(np.arange(3.0))
    assert from_dlpack(host).tolist() == from_dlpack(host, copy=True).tolist() == [0, 1, 2]
    x = device_put(host)
    assert from_dlpack(x) is x and from_dlpack(x, copy=True).buf is not x.buf


def test_device_put_of_foreign_arrays_copies():
    host = aligned(np.arange(3.0))
    x = device_put(Foreign(host))
    host[:] = 7
    assert x.tolist() == [0, 1, 2]


def test_import_of_what_has_no_dlpack():
    wanted = "from_dlpack: x must have __dlpack__ and __dlpack_device__, but {} has no __dlpack__."
    for x in ([1, 2], np.ones(3).__dlpack__()):
        with pytest.raises(TypeError, match=f"^{wanted.format(type(x).__name__)}$"):
            from_dlpack(x)


def test_export_keywords():
    x = device_put(np.arange(3.0))
    assert x.__dlpack_device__() == (1, 0)
    for keywords in (
        {},
        {"max_version": (1, 0)},
        {"dl_device": (1, 0)},
        {"copy": True},
        {"stream": None, "copy": False},
    ):
        assert "dltensor" in str(x.__dlpack__(**keywords))
    with pytest.raises(BufferError, match="move it with device_put first"):
        x.__dlpack__(dl_device=(2, 0))


def test_exporting_a_copy():
    class Copying(Foreign):
        def __dlpack__(self, **keywords: object) -> object:
            return self.host.__dlpack__(copy=True)

    x = device_put(np.arange(3.0))
    assert np.from_dlpack(Copying(x)).ctypes.data != x.unsafe_buffer_pointer()


def test_dtypes_without_dlpack():
    with pytest.raises(BufferError, match=r"dlpack has no form for int4\[2\]"):
        device_put(np.array([1, 2], ml_dtypes.int4)).__dlpack__()


def test_unknown_dlpack_devices():
    class Elsewhere(Foreign):
        def __dlpack_device__(self) -> tuple[int, int]:
            return (15, 0)

    with pytest.raises(BufferError, match="dlpack device type 15 cannot be read"):
        from_dlpack(Elsewhere(np.ones(3)))


# ---- what jaxlib leaves to us


def test_jaxlib_identity_tells_builds_apart():
    assert compat.jaxlib_version() in compat.jaxlib_identity()
