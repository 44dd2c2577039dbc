"""The array API standard, 2024.12: what it asks of the namespace and of arrays, beside array_api_strict if there."""

import inspect
import itertools
import math

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tests.messages import raises

pytestmark = pytest.mark.usefixtures("eager_by_steps")

ZEROS = np.array([0.0, -0.0, 1.0, -1.0, 2.5, -2.5, np.inf, -np.inf, np.nan])
PAIRS = np.array(list(itertools.product(ZEROS, ZEROS)))


def test_arrays_name_their_namespace():
    x = tnp.ones(3)
    assert x.__array_namespace__() is tnp and x.__array_namespace__(api_version="2024.12") is tnp
    assert tl.jit(lambda x: x.__array_namespace__().sum(x))(x) == 3.0
    with raises(ValueError, "api_version must be one of 2021.12, 2022.12, 2023.12, 2024.12, not '1999.12'."):
        x.__array_namespace__(api_version="1999.12")


def test_inspection():
    info = tnp.__array_namespace_info__()
    assert info.capabilities() == {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}
    assert info.devices() == tl.devices() and info.default_device() in tl.devices()
    kinds = {"real floating": np.float32, "complex floating": np.complex64, "integral": np.int32, "indexing": np.int32}
    assert info.default_dtypes(device=tl.devices()[0]) == kinds
    with tl.enable_x64():
        assert info.default_dtypes()["indexing"] == np.int64
        for found in (tnp.argmax(np.ones(3)), tnp.searchsorted(np.ones(3), 1.0), tnp.nonzero(np.ones(2))[0]):
            assert found.dtype == np.int64
    assert len(info.dtypes()) == 13 and info.dtypes(kind="bool") == {"bool": np.dtype(bool)}
    assert sorted(info.dtypes(kind=("real floating", "unsigned integer"))) == sorted(
        "float32 float64 uint8 uint16 uint32 uint64".split()
    )
    with pytest.raises(ValueError, match="'floats' is no kind"):
        info.dtypes(kind="floats")


MAKERS = {
    "arange": lambda **kw: tnp.arange(3, **kw),
    "array": lambda **kw: tnp.array([1.0], **kw),
    "asarray": lambda **kw: tnp.asarray([1.0], **kw),
    "astype": lambda **kw: tnp.astype(np.ones(2), np.float32, **kw),
    "empty": lambda **kw: tnp.empty(2, **kw),
    "empty_like": lambda **kw: tnp.empty_like(np.ones(2), **kw),
    "eye": lambda **kw: tnp.eye(2, **kw),
    "fftfreq": lambda **kw: tnp.fft.fftfreq(4, **kw),
    "from_dlpack": lambda **kw: tnp.from_dlpack(np.ones(2), **kw),
    "full": lambda **kw: tnp.full(2, 3.0, **kw),
    "full_like": lambda **kw: tnp.full_like(np.ones(2), 3, **kw),
    "linspace": lambda **kw: tnp.linspace(0, 1, 3, **kw),
    "ones": lambda **kw: tnp.ones(2, **kw),
    "ones_like": lambda **kw: tnp.ones_like(np.ones(2), **kw),
    "to_device": lambda device: tnp.ones(2).to_device(device),
    "zeros": lambda **kw: tnp.zeros(2, **kw),
    "zeros_like": lambda **kw: tnp.zeros_like(np.ones(2), **kw),
}


@pytest.mark.parametrize("name", MAKERS)
def test_devices(name):
    make, device = MAKERS[name], tl.devices()[-1]
    assert make(device=device).device is device
    assert make(device=tnp.ones(1, device=device).sharding).device is device
    with pytest.raises(TypeError, match=r"the device must be one of tl.devices\(\), not 'cpu:7'"):
        make(device="cpu:7")
    if name != "from_dlpack":
        assert tl.jit(lambda: make(device=device))().device is tl.devices()[0]


def test_copies():
    x = tnp.ones(3)
    committed = tnp.asarray(x, device=x.device, copy=False)
    assert tnp.asarray(x, copy=False) is x and committed.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    assert tnp.asarray(x, copy=True) is not x and tnp.astype(x, np.float32, copy=True) is not x
    assert x.astype(np.float32) is x and tnp.asarray(x, np.float32) is x and tnp.array(x, np.float32) is not x
    assert not tnp.asarray(tnp.asarray(1.0), np.float32).weak_type
    with pytest.raises(ValueError, match="copy=False forbids"):
        tnp.asarray(np.ones(3), copy=False)
    with pytest.raises(NotImplementedError, match="no streams to choose from"):
        x.to_device(x.device, stream=1)
    shared = tnp.from_dlpack(x, copy=False)
    assert (
        shared.unsafe_buffer_pointer()
        == x.unsafe_buffer_pointer()
        != tnp.from_dlpack(x, copy=True).unsafe_buffer_pointer()
    )


def test_masks_without_axes():
    """Against NumPy, beside every other kind of index; also under a transformation, where they are known."""
    x, items = np.arange(24.0).reshape(2, 3, 4), [True, np.False_, 0, slice(1, 2), None, ..., np.array([True, False])]
    t = tnp.asarray(x)
    for index in [*itertools.product(items, repeat=2), (True,), (False,), (True, True, 1)]:
        if any(isinstance(i, (bool, np.bool_)) for i in index):
            outcomes = [taken(a, index) for a in (x, t)]
            assert np.shape(outcomes[0]) == np.shape(outcomes[1])
            np.testing.assert_array_equal(*outcomes)
    scalar = tnp.asarray(3.0)
    assert scalar[tnp.asarray(True)].tolist() == [3.0] and scalar[scalar > 5].shape == (0,)
    assert tl.grad(lambda x: x[True, 0].sum())(t).sum() == 12.0
    with pytest.raises(TypeError, match="traced"):
        tl.jit(lambda x, m: x[m])(t, True)
    with pytest.raises(TypeError, match=r"a single boolean is not an index for writing. Use tnp.where."):
        t.at[True].set(0.0)


def taken(x, index):
    try:
        return np.asarray(x[index])
    except IndexError:
        return np.array("refused")


def test_sets_of_arrays_without_axes():
    found = tnp.unique_all(tnp.asarray(3))
    assert [v.shape for v in found] == [(1,), (1,), (), (1,)]
    assert tnp.unique_inverse(tnp.asarray(2.0)).inverse_indices.shape == ()
    counts = tnp.unique_counts(np.array([np.nan, 1.0, np.nan]))
    assert counts.values.shape == (3,) and counts.counts.tolist() == [1, 1, 1]


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "sign", "divide", "atan2", "hypot", "copysign", "pow"])
def test_signs_of_zero_are_numpys(name):
    args = (ZEROS,) if name == "sign" else (PAIRS[:, 0].copy(), PAIRS[:, 1].copy())
    with np.errstate(all="ignore"):
        wanted = getattr(np, name)(*args)
    for found in (getattr(tnp, name)(*args), tl.jit(getattr(tnp, name))(*args)):
        np.testing.assert_allclose(found, wanted, rtol=1e-14)
        zero = wanted == 0
        np.testing.assert_array_equal(np.signbit(found)[zero], np.signbit(wanted)[zero])


def test_derivatives_of_remainders_that_are_zero():
    for y in (2.0, -2.0):
        assert tl.grad(tnp.remainder)(4.0, y) == 1.0
        assert tl.grad(tnp.remainder, 1)(4.0, y) == -4.0 / y
        assert tl.jvp(lambda x, y=y: tnp.remainder(x, y), (4.0,), (3.0,))[1] == 3.0


def test_cumulative_products_begin_with_one():
    x = np.array([[1, 2, 3], [4, 5, 6]], np.int8)
    found = tnp.cumulative_prod(x, axis=1, include_initial=True)
    np.testing.assert_array_equal(found, np.cumulative_prod(x, axis=1, include_initial=True))


def test_names_and_parameters_are_the_standards():
    strict = pytest.importorskip("array_api_strict")
    for ours, theirs in ((tnp, strict), (tnp.linalg, strict.linalg), (tnp.fft, strict.fft)):
        for name in theirs.__all__:
            function = getattr(theirs, name)
            if inspect.isfunction(function) and not name.endswith("_strict_flags"):
                assert missing_parameters(getattr(ours, name), function) == [], name


def missing_parameters(ours, theirs):
    mine = inspect.signature(ours).parameters.values()
    if any(p.kind is p.VAR_POSITIONAL for p in mine):
        return []
    by_place = [p.name for p in mine if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    by_name = {p.name for p in mine if p.kind is not p.POSITIONAL_ONLY}
    wanted = inspect.signature(theirs).parameters.values()
    placed = [p.name for p in wanted if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [p.name for p in wanted if p.kind is p.KEYWORD_ONLY and p.name not in by_name] + placed[len(by_place) :]


def test_numbers_of_arrays_without_axes():
    assert (bool(tnp.asarray(2)), int(tnp.asarray(2.5)), float(tnp.asarray(3)), complex(tnp.asarray(1.5))) == (
        True,
        2,
        3.0,
        1.5,
    )
    assert math.prod(tnp.asarray([[1, 2]]).shape) == 2 and [0, 1, 2][tnp.asarray(1)] == 1
