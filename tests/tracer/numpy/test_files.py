"""Arrays in files: written, read, and in NumPy's own format."""

import io

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp


@pytest.mark.parametrize("dtype", "float32 float64 int8 uint16 bool complex64 bfloat16 float16".split())
def test_round_trip(dtype: str):
    x = tnp.arange(6).reshape(2, 3).astype(dtype)
    file = io.BytesIO()
    tnp.save(file, x)
    file.seek(0)
    found = tnp.load(file)
    assert isinstance(found, tl.Array) and found.dtype == x.dtype
    np.testing.assert_array_equal(found, x)


def test_numpys_files(tmp_path):
    np.save(tmp_path / "one.npy", np.arange(3.0))
    np.savez(tmp_path / "several.npz", a=np.arange(3), b=np.ones(2))
    assert tnp.load(tmp_path / "one.npy").tolist() == [0.0, 1.0, 2.0]
    with tnp.load(tmp_path / "several.npz") as archive:
        assert archive["b"].tolist() == [1.0, 1.0]
    tnp.save(tmp_path / "two.npy", 2.5)
    assert np.load(tmp_path / "two.npy") == 2.5


def test_what_has_no_name_is_refused():
    with pytest.raises(TypeError, match="save: NumPy's format has no name for float8_e4m3fn"):
        tnp.save(io.BytesIO(), tnp.ones(2, tnp.float8_e4m3fn))
    with pytest.raises(TypeError):
        tnp.save(io.BytesIO(), tl.random.key(0))


def test_several(tmp_path):
    tnp.savez(tmp_path / "two.npz", tnp.arange(3), named=tnp.ones(2, tnp.bfloat16))
    with np.load(tmp_path / "two.npz") as found:
        assert found["arr_0"].tolist() == [0, 1, 2] and found["named"].dtype.itemsize == 2
    with pytest.raises(TypeError, match="savez: NumPy's format has no name for float8_e5m2"):
        tnp.savez(io.BytesIO(), tnp.ones(2, tnp.float8_e5m2))


def test_bytes_and_text(tmp_path):
    (tmp_path / "bytes").write_bytes(np.arange(4, dtype=np.int16).tobytes())
    assert tnp.fromfile(tmp_path / "bytes", np.int16, offset=2).tolist() == [1, 2, 3]
    (tmp_path / "text").write_text("1.5, 2, 3")
    text = tnp.fromfile(tmp_path / "text", sep=",", count=2)
    assert text.tolist() == [1.5, 2.0] and text.dtype == np.float32
    with pytest.raises(TypeError, match="fromfile: the file does not say what its bytes are: give the dtype"):
        tnp.fromfile(tmp_path / "bytes")
    assert tnp.fromiter((n * n for n in range(9)), np.int32, 3).tolist() == [0, 1, 4]
    numbers = tnp.fromstring("1 2 3", dtype=int, sep=" ")
    assert numbers.tolist() == [1, 2, 3] and numbers.dtype == np.int32
