"""Torch's tensors through dlpack, without a copy in both directions. Skipped where torch is not installed."""

import gc

import numpy as np
import pytest

from tapeless.lowering.array import device_put, from_dlpack

torch = pytest.importorskip("torch")

DTYPES = """bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64
    complex128 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu""".split()


def tensor(name: str, *shape: int):
    return torch.arange(float(np.prod(shape))).reshape(shape).to(getattr(torch, name))


@pytest.mark.parametrize("name", DTYPES)
def test_memory_is_shared_both_ways(name: str):
    t = tensor(name, 32, 4)  # torch aligns to 64 bytes
    x = from_dlpack(t, copy=False)
    assert x.dtype.name == name and x.unsafe_buffer_pointer() == t.data_ptr()
    back = torch.from_dlpack(x)
    assert (
        back.dtype == t.dtype
        and back.data_ptr() == t.data_ptr()
        and torch.equal(back.to(torch.complex128), t.to(torch.complex128))
    )


@pytest.mark.parametrize("change", ["t.T", "t[1:]", "t[::2, ::2]", "t[0, :1].expand(3)", "t[:0]", "t[0, 0]"])
def test_views(change: str):
    t = tensor("float32", 4, 3)
    view = eval(change, {"t": t})
    for x in (from_dlpack(view), from_dlpack(view, copy=True), device_put(view)):
        assert torch.equal(torch.from_dlpack(x), view)


def test_either_may_go_first():
    t = tensor("float64", 1000)
    x, wanted = from_dlpack(t), np.arange(1000.0)
    del t
    gc.collect()
    np.testing.assert_array_equal(x, wanted)
    back = torch.from_dlpack(x)
    x.delete()
    np.testing.assert_array_equal(back.numpy(), wanted)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda t: t.requires_grad_(), "require gradient"),
        (lambda t: t.to(torch.complex64).conj(), "the conjugate bit set"),
        (lambda t: torch.eye(3).to_sparse(), "layout other than torch.strided"),
        (lambda t: (t + 1j).conj().imag, "its elements are to be negated, which dlpack cannot say"),
    ],
)
def test_tensors_that_cannot_be_read(make, why: str):
    for copy in (None, True):
        with pytest.raises(BufferError, match=rf"from_dlpack: this Tensor cannot be read: .*{why}"):
            from_dlpack(make(tensor("float32", 3)), copy=copy)


def test_dtypes_that_xla_has_not():
    with pytest.raises(BufferError, match=r"cannot be read: .*complex width: 32 bits"), pytest.warns(UserWarning):
        from_dlpack(torch.zeros(2, dtype=torch.complex32))
