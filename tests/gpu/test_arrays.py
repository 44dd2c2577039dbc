"""Arrays on the GPU: dtypes there and back, narrow products, random bits, donation, transfers."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests.gpu.comparing import assert_same_on, on

DTYPES = """bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float8_e4m3fn float8_e5m2 bfloat16 float16 float32
float64 complex64 complex128""".split()
FLOAT8 = [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]
RNG = np.random.default_rng(0)


def numbers(name: str, *shape: int) -> Any:
    return RNG.integers(0, 5, shape).astype(np.dtype(name) if name in np.sctypeDict else getattr(ml_dtypes, name))


@pytest.mark.parametrize("shape", [(), (0, 3), (7,), (2, 3, 5)])
@pytest.mark.parametrize("name", DTYPES)
def test_there_and_back(name: str, shape: tuple[int, ...], device: Any):
    x = numbers(name, *shape)
    y = tl.device_put(x, device)
    assert (y.dtype, y.shape, y.device) == (x.dtype, x.shape, device)
    assert np.asarray(y).tobytes() == x.tobytes()


@pytest.mark.parametrize("name", [d for d in DTYPES if not d.startswith("float8")])  # 8-bit products are below
def test_arithmetic(name: str, device: Any, cpu: Any):
    x, y = numbers(name, 64), numbers(name, 64)
    combine = tnp.logical_xor if name == "bool" else lambda x, y: x * y + x
    assert_same_on(device, cpu, combine, x, y)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_products_of_16_bits(dtype: str, device: Any, cpu: Any):
    x, y = (RNG.normal(size=(64, 64)).astype(numbers(dtype).dtype) for _ in range(2))
    f = lambda x, y: lax.dot_general(x, y, (((1,), (0,)), ((), ())), preferred_element_type=np.float32)  # noqa: E731
    assert_same_on(device, cpu, f, x, y)


@pytest.mark.parametrize("dtype", FLOAT8, ids=lambda d: d.__name__)
def test_products_of_8_bits(dtype: Any, device: Any):
    """Matrix units of an H100 take 8-bit factors: products are exact in float32, sums rounded as float32's."""
    x, y = (RNG.integers(-4, 5, (64, 64)).astype(dtype) for _ in range(2))
    f = lambda x, y: lax.dot_general(x, y, (((1,), (0,)), ((), ())), preferred_element_type=np.float32)  # noqa: E731
    (found,) = on(device, f, x, y)
    np.testing.assert_array_equal(found, x.astype(np.float32) @ y.astype(np.float32))


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "bfloat16", "float16"])
def test_conversions_to_narrow_types_round(name: str, device: Any, cpu: Any):
    """XLA leaves out a conversion there and back by default."""
    narrow = numbers(name).dtype
    x = RNG.normal(size=100).astype(np.float32)
    (found,) = on(device, lambda x: (x * 1.5).astype(narrow).astype(np.float32) * 2, x)
    np.testing.assert_array_equal(found, (x * np.float32(1.5)).astype(narrow).astype(np.float32) * 2)


def drawn(seed: Any) -> Any:
    key = tl.random.key(seed)
    return tl.random.bits(key, (100,)), tl.random.randint(key, (100,), 0, 1000), tl.random.permutation(key, 50)


def test_random_numbers_are_the_cpus(device: Any, cpu: Any):
    for found, wanted in zip(on(device, drawn, 7), on(cpu, drawn, 7), strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert_same_on(device, cpu, lambda seed: tl.random.normal(tl.random.key(seed), (1000,)), 3)


def test_donated_memory_is_used_again(device: Any):
    x = tl.device_put(np.ones((1024, 1024), np.float32), device)
    double = tl.jit(lambda x: 2 * x, donate_argnums=0)
    assert double.lower(x).compile().memory_analysis().alias_size_in_bytes == x.nbytes
    y = double(x)
    assert x.is_deleted()
    np.testing.assert_array_equal(np.asarray(y), 2)
    with pytest.raises(RuntimeError, match="deleted"):
        np.asarray(x)


def test_transfers_between_devices(device: Any, cpu: Any):
    x = np.arange(12.0).reshape(3, 4)
    there = tl.device_put(tl.device_put(x, cpu), device)
    assert there.device is device
    np.testing.assert_array_equal(np.asarray(tl.device_put(there, cpu)), x)


OPERATIONS: list[tuple[Any, Any]] = [
    (lambda x, y: x + y, np.add),
    (lambda x, y: x * y - 3, lambda x, y: x * y - 3),
    (lambda x, y: tnp.sin(x) / (y * y + 1), lambda x, y: np.sin(x) / (y * y + 1)),
    (lambda x, y: tnp.where(x > y, x, -y), lambda x, y: np.where(x > y, x, -y)),
    (lambda x, y: tnp.maximum(x, y)[::-1], lambda x, y: np.maximum(x, y)[::-1]),
    (lambda x, y: x.at[1].set(y[0]), lambda x, y: np.concatenate([x[:1], y[:1], x[2:]])),
    (lambda x, y: tnp.concatenate([x, y])[:4], lambda x, y: np.concatenate([x, y])[:4]),
    (lambda x, y: tnp.cumsum(x), lambda x, y: np.cumsum(x)),
    (lambda x, y: tnp.sort(x), lambda x, y: np.sort(x)),
    (lambda x, y: x.sum() + y.mean(), lambda x, y: x.sum() + y.mean()),
]


def test_two_thousand_eager_operations(device: Any):
    """Ten expressions of some operations each, at two sizes, on new data every time."""
    with tl.default_device(device):
        for k in range(50):
            for n in (4, 33):
                x, y = RNG.normal(size=(2, n))
                ours = tl.device_put(x, device), tl.device_put(y, device)
                for f, g in OPERATIONS:
                    found = f(*ours)
                    assert found.device is device
                    np.testing.assert_allclose(np.asarray(found), g(x, y), rtol=1e-12, atol=1e-12, err_msg=str(k))
