"""Functions of `lax` that are made of others: shapes, patches, groups, upper halves, extremes, alternatives."""

import functools
import itertools

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests.close import long_programs as close
from tests.messages import raises

pytestmark = pytest.mark.usefixtures("eager_by_steps")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 3))


# ---- shapes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_stacks(axis):
    given = [X, 2 * X, X + 1]
    found = lax.stack(given, axis)
    np.testing.assert_array_equal(found, np.stack(given, axis))
    for x, y in zip(lax.unstack(found, axis), given, strict=True):
        np.testing.assert_array_equal(x, y)


def test_shapes_that_do_not_fit():
    with pytest.raises(ValueError, match=r"stack: operands differ in shape: float64\[2,3\], float64\[3\]"):
        lax.stack([X, X[0]])
    with pytest.raises(ValueError, match="stack: there are no arrays"):
        lax.stack([])
    with pytest.raises(TypeError, match="differ in dtype"):
        lax.stack([X, X.astype(np.float32)])
    with pytest.raises(ValueError, match=r"unstack: float64\[\] has no axis"):
        lax.unstack(np.float64(1)[()])
    with pytest.raises(ValueError, match=r"broadcast_to_rank: float64\[2,3\] has more than 1 axes"):
        lax.broadcast_to_rank(X, 1)


def test_small_functions_of_shapes():
    assert lax.broadcast_shapes((3, 1), (1, 4), (5, 1, 1)) == (5, 3, 4)
    with pytest.raises(ValueError, match="broadcast"):
        lax.broadcast_shapes((3, 1), (4, 1))
    assert lax.broadcast_to_rank(X, 4).shape == (1, 1, 2, 3)
    np.testing.assert_array_equal(lax.broadcast_like(np.arange(3), X), [[0, 1, 2]] * 2)
    empty = lax.empty((2, 0), np.int8)
    assert (empty.shape, empty.dtype) == ((2, 0), np.int8)
    assert [np.asarray(lax.shape_as_value(s)).tolist() for s in ((2, 3), ())] == [[2, 3], []]
    assert lax.shape_as_value((2**40,)).dtype == np.int64
    assert [lax.dtype(x) for x in (X, np.int8, "bfloat16", 1.0)] == [X.dtype, np.int8, tl.numpy.bfloat16, np.float32]


# ---- patches -------------------------------------------------------------------------------------------------

WORDS = [None, ("NHWC", "HWIO", "NHWC"), ("NWHC", "WOIH", "CHWN"), ("HNCW", "IWOH", "NWCH")]


def patches(x, kernel, strides, padding):
    """Of an image [n, c, h, w]."""
    x = np.pad(x, [(0, 0), (0, 0), *padding])
    sizes = [(n - k) // s + 1 for n, k, s in zip(x.shape[2:], kernel, strides)]
    out = np.zeros((*x.shape[:2], *kernel, *sizes))
    for i, j in itertools.product(*map(range, sizes)):
        a, b = i * strides[0], j * strides[1]
        out[..., i, j] = x[:, :, a : a + kernel[0], b : b + kernel[1]]
    return out.reshape(x.shape[0], -1, *sizes)


@pytest.mark.parametrize("words", WORDS, ids=str)
def test_patches(words, rng: np.random.Generator):
    """Elements are moved, so that others are as they were beside infinite ones."""
    lhs, rhs, out = words or ("NCHW", "OIHW", "NCHW")
    image = rng.normal(size=(2, 3, 7, 5))
    image[0, 0, 3, 2] = np.inf
    kernel, strides, padding = {"H": 3, "W": 2}, {"H": 2, "W": 1}, {"H": (1, 2), "W": (0, 1)}
    space = [c for c in rhs if c in "HW"]
    x = np.transpose(image, ["NCHW".index(c) for c in lhs])
    arguments = [kernel[c] for c in space], [strides[c] for c in space], [padding[c] for c in space]
    found = lax.conv_general_dilated_patches(x, *arguments, dimension_numbers=words)
    plain = patches(image, (3, 2), (2, 1), ((1, 2), (0, 1)))
    if space != ["H", "W"]:  # the kernel's indices are in the order of its word
        plain = plain.reshape(2, 3, 3, 2, *plain.shape[2:]).swapaxes(2, 3).reshape(plain.shape)
    np.testing.assert_array_equal(found, np.transpose(plain, ["NCHW".index(c) for c in out]))
    sizes = [{"O": 4, "I": 3, **kernel}[c] for c in rhs]
    shape = lax.conv_general_shape_tuple(x.shape, sizes, *arguments[1:], words or (lhs, rhs, out))
    assert shape == lax.conv_general_dilated(x, np.ones(sizes), *arguments[1:], dimension_numbers=words).shape


@pytest.mark.parametrize("words", WORDS, ids=str)
def test_kernels_that_are_the_same_everywhere(words, rng: np.random.Generator):
    """The local convolution is the other one then; it has its derivatives."""
    lhs, rhs, out = words or ("NCHW", "OIHW", "NCHW")
    x = rng.normal(size=[{"N": 2, "C": 3, "H": 5, "W": 4}[c] for c in lhs])
    kernel = rng.normal(size=[{"O": 4, "I": 3, "H": 3, "W": 2}[c] for c in rhs])
    wanted = lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=words)
    space = [c for c in rhs if c in "HW"]
    # [o, c, kernel..] -> features c * kernel, at each place
    flat = np.moveaxis(kernel, [rhs.index(c) for c in ("O", "I", *space)], range(4)).reshape(4, -1)
    size = dict(zip(out, wanted.shape))
    everywhere = np.broadcast_to(flat[(...,) + (None,) * 2], (*flat.shape, *[size[c] for c in space]))
    local = np.moveaxis(everywhere, range(4), [rhs.index(c) for c in ("O", "I", *space)])
    filter_shape = [kernel.shape[rhs.index(c)] for c in space]
    close(lax.conv_general_dilated_local(x, local, (1, 1), "SAME", filter_shape, dimension_numbers=words), wanted)


def test_derivatives_of_local_convolutions(rng: np.random.Generator):
    x, kernel = rng.normal(size=(1, 2, 4)), rng.normal(size=(3, 4, 3))
    tl.testing.check_grads(lambda x, k: lax.conv_general_dilated_local(x, k, (1,), "VALID", (2,)), (x, kernel), 2)


def test_sizes_of_results():
    lhs, rhs = (2, 3, 7, 5), (4, 3, 3, 2)
    for padding in ("SAME", "VALID", ((1, 0), (0, 2))):
        found = lax.conv_transpose(
            np.ones(lhs), np.ones(rhs), (2, 1), padding, dimension_numbers=("NCHW", "OIHW", "NCHW")
        )
        assert lax.conv_transpose_shape_tuple(lhs, rhs, (2, 1), padding, ("NCHW", "OIHW", "NCHW")) == found.shape
    assert lax.conv_shape_tuple((4, 3, 7), (4, 3, 3), (2,), "VALID", 2) == (2, 4, 3)
    window = ((3, 2), (2, 1), ((1, 1), (0, 2)), (2, 1), (1, 2))
    shape = lax.reduce_window_shape_tuple((7, 5), *window)
    assert lax.reduce_window(np.ones((7, 5)), 0.0, lax.add, *window).shape == shape
    assert lax.conv_general_permutations(("NHWC", "HWIO", "NHWC")) == ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))


# ---- groups of rows ------------------------------------------------------------------------------------------


def grouped(x, y, sizes):
    out, ends = np.zeros((len(x), y.shape[-1])), np.cumsum(sizes)
    for k, (a, b) in enumerate(zip(ends - sizes, ends)):
        out[a:b] = x[a:b] @ y[k]
    return out


def test_products_of_groups(rng: np.random.Generator):
    x, y = rng.normal(size=(7, 3)), rng.normal(size=(4, 3, 5))
    product = tl.jit(lax.ragged_dot)
    for sizes in ([2, 0, 3, 2], [1, 1, 1, 1], [0, 0, 0, 0], [7, 0, 0, 0], [5, 5, 0, 0]):
        close(product(x, y, np.array(sizes)), grouped(x, y, np.array(sizes)))
    spoilt = np.concatenate([y[:3], np.full_like(y[:1], np.nan)])
    close(product(x, spoilt, np.array([2, 2, 3, 0])), grouped(x, y, np.array([2, 2, 3, 0])))  # nobody's matrix
    sizes = np.array([2, 0, 3, 1])
    tl.testing.check_grads(lambda x, y: lax.ragged_dot(x, y, sizes), (x, y), 1)
    found = tl.vmap(lax.ragged_dot, (0, None, 0))(np.stack([x, 2 * x]), y, np.stack([sizes, sizes[::-1]]))
    close(found[1], grouped(2 * x, y, sizes[::-1]))


def numbers(contracted, batch, ragged, groups):
    return lax.RaggedDotDimensionNumbers((contracted, batch), [ragged], groups)


def test_groups_of_other_axes(rng: np.random.Generator):
    x, y, sizes = rng.normal(size=(2, 6, 4)), rng.normal(size=(2, 3, 4, 5)), np.array([[2, 1, 3], [0, 4, 1]])
    found = lax.ragged_dot_general(x, y, sizes, numbers(([2], [2]), ([0], [0]), 1, [1]))
    close(found, [grouped(*each) for each in zip(x, y, sizes)])
    x, y = rng.normal(size=(2, 6, 4)), rng.normal(size=(6, 2, 5))
    found = np.asarray(lax.ragged_dot_general(x, y, sizes, numbers(([1], [0]), ([0], [1]), 1, [])))
    for i, of_batch in enumerate(sizes):
        ends = np.cumsum(of_batch)
        for k, (a, b) in enumerate(zip(ends - of_batch, ends)):
            close(found[k, i], x[i, a:b].T @ y[a:b, i])
    x, y = rng.normal(size=(4, 6, 3)), rng.normal(size=(4, 3, 5))
    close(lax.ragged_dot_general(x, y, sizes[0], numbers(([2], [1]), ([0], [0]), 0, [])), x @ y)


def test_groups_that_do_not_fit():
    x, y = np.ones((7, 3)), np.ones((4, 3, 5))
    with pytest.raises(TypeError, match=r"axis 0 of rhs must have 3 elements: float64\[7,3\], float64\[4,3,5\]"):
        lax.ragged_dot(x, y, np.array([1, 2, 3]))
    with pytest.raises(TypeError, match=r"group sizes must be integers \[g\]: "):
        lax.ragged_dot(x, y, np.ones(4))
    with pytest.raises(NotImplementedError, match="group_offset and out_sharding are not supported"):
        lax.ragged_dot(x, y, np.array([1, 2, 3, 1]), group_offset=np.array([1]))


# ---- elements ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
def test_upper_halves_of_products(dtype, rng: np.random.Generator):
    info = np.iinfo(dtype)
    edges = np.array([info.min, info.max, 0, 1, info.max // 2, info.max - 1, info.min + 1], dtype)
    more = rng.integers(info.min, info.max, 100, dtype, endpoint=True)
    x, y = (np.concatenate([a, more[::step]]) for a, step in ((np.repeat(edges, 7), 1), (np.tile(edges, 7), -1)))
    wanted = np.array([(int(a) * int(b)) >> info.bits for a, b in zip(x, y)], dtype)
    found = lax.mulhi(x, y)
    np.testing.assert_array_equal(found, wanted)
    assert found.dtype == dtype
    assert lax.mulhi(2, 2).aval.weak_type
    with pytest.raises(TypeError, match="mulhi: the operand must be an integer"):
        lax.mulhi(1.0, 2.0)


@pytest.mark.parametrize("mode", ["fill", "clip"])
def test_functions_at_indices(mode):
    dims = lax.ScatterDimensionNumbers((), (0,), (0,))
    indices = np.array([[0], [2], [0], [9]])
    wanted = np.arange(5.0)
    for i in (0, 2, 0, *([4] if mode == "clip" else [])):
        wanted[i] = 2 * wanted[i] + 1

    def f(x, indices):
        return lax.scatter_apply(x, indices, lambda v: 2 * v + 1, dims, update_shape=(4,), mode=mode)

    for call in (f, tl.jit(f)):
        np.testing.assert_array_equal(call(np.arange(5.0), indices), wanted)
    with pytest.raises(TypeError, match=r"scatter_apply: func gives bool\[5\] for 5 scalars of float64"):
        lax.scatter_apply(np.arange(5.0), indices, lambda v: v > 0, dims, update_shape=(4,))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_extremes(axis, rng: np.random.Generator):
    x = rng.permutation(21).astype(float).reshape(3, 7)
    x[0, 2] = np.nan
    for k in (0, 1, 3):
        least, places = lax.approx_min_k(x, k, axis)
        np.testing.assert_array_equal(least, np.take(np.sort(x, axis), range(k), axis))
        np.testing.assert_array_equal(places, np.take(np.argsort(x, axis), range(k), axis))
        greatest, places = lax.approx_max_k(x, k, axis, recall_target=0.5)
        np.testing.assert_array_equal(greatest, np.take(np.flip(np.sort(x, axis), axis), range(k), axis))
        np.testing.assert_array_equal(np.take_along_axis(x, np.asarray(places), axis), greatest)
    tl.testing.check_grads(lambda x: lax.approx_min_k(x, 2)[0], (x[1:],), 1)


def test_searches_that_are_refused():
    with pytest.raises(TypeError, match=r"approx_max_k: the operand must be of floating point, not int64\[3\]"):
        lax.approx_max_k(np.arange(3), 1)
    with pytest.raises(ValueError, match=r"recall_target must be above 0 and at most 1, not 2\.0"):
        lax.approx_min_k(X, 1, recall_target=2.0)
    with pytest.raises(ValueError, match=r"there are no 4 elements along axis 1 of float64\[2,3\]"):
        lax.approx_min_k(X, 4)
    with pytest.raises(NotImplementedError, match="aggregate_to_topk=False"):
        lax.approx_max_k(X, 1, aggregate_to_topk=False)


# ---- alternatives --------------------------------------------------------------------------------------------


def test_functions_of_platforms():
    """The CPU's is called, compiled alone, and differentiated."""

    def f(x):
        return lax.platform_dependent(x, cuda=lax.sin, cpu=lambda x: x**2, default=lax.cos)

    assert float(f(3.0)) == 9 == float(tl.jit(f)(3.0))
    assert float(tl.grad(f)(3.0)) == 6 == float(tl.jit(tl.grad(f))(3.0))
    np.testing.assert_array_equal(tl.jit(tl.vmap(f))(np.arange(3.0)), [0, 1, 4])
    text = tl.jit(f).lower(3.0).as_text()
    assert "sine" not in text and "case" not in text
    other = tl.jit(lambda x: lax.platform_dependent(x, tpu=lax.sin, default=lambda x: x + 1))
    assert float(other(1.0)) == 2


def test_platforms_without_function():
    message = r"there is no function for cpu, only for cuda, tpu\.\n  Add cpu=, or default=\."
    with pytest.raises(NotImplementedError, match=message):
        tl.jit(lambda x: lax.platform_dependent(x, cuda=lax.sin, tpu=lax.cos))(1.0)
    with pytest.raises(ValueError, match="gpu is no platform: pass cuda= or rocm="):
        lax.platform_dependent(1.0, gpu=lax.sin)
    with pytest.raises(ValueError, match="there are no functions"):
        lax.platform_dependent(1.0)


def test_composites():
    power = lax.composite(lambda x, *, n: x**n, "my.power", 1)
    assert float(power(2.0, n=3)) == 8
    assert float(tl.grad(lambda x: power(x, n=3))(2.0)) == 12
    assert "@my.power" in str(tl.make_jaxpr(lambda x: power(x, n=2))(3.0))


# ---- keywords ------------------------------------------------------------------------------------------------


def test_dtype_of_products():
    """Operands are converted before they are multiplied, as in JAX."""
    x, n = np.array([300.0, 1.5], np.float32), np.array([100, 3], np.int8)
    wide = lax.mul(n, n, out_dtype=np.int32)
    assert (wide.dtype, wide.tolist()) == (np.int32, [10000, 9])
    narrow = lax.mul(x, n, out_dtype="float16")
    assert (narrow.dtype, narrow.tolist()) == (np.float16, [30000, 4.5])
    slope = tl.grad(lambda x: tnp.sum(lax.mul(x, n, out_dtype=np.float16)))(x)
    assert (slope.dtype, slope.tolist()) == (np.float32, [100, 3])


def test_keywords_that_have_one_value():
    """JAX's, for what is not there; they are refused rather than ignored."""
    cases = [
        (lambda: lax.sin(X, accuracy=1), "sin: accuracy=1 is not supported, only None"),
        (lambda: lax.reduce_sum(X, (0,), out_sharding=1), "reduce_sum: out_sharding=1 is not supported"),
        (lambda: lax.reshape(X, (6,), out_sharding=1), "reshape: out_sharding=1 is not supported"),
        (lambda: lax.full((2,), 1.0, sharding=1), "full: sharding=1 is not supported"),
        (lambda: lax.dot(X, X.T, out_sharding=1), "dot: out_sharding=1 is not supported"),
    ]
    for call, message in cases:
        with pytest.raises(NotImplementedError, match=message):
            call()


def test_transposed_convolutions_with_padding_of_the_convolution(rng: np.random.Generator):
    """They are its transpose, for pairs, too."""
    x, kernel, words = rng.normal(size=(1, 2, 6)), rng.normal(size=(3, 2, 3)), ("NCH", "OIH", "NCH")
    for padding in ([(1, 1)], [(0, 2)], "VALID"):
        how = {"padding": padding, "dimension_numbers": words}
        y, transposed = tl.vjp(functools.partial(lax.conv_general_dilated, rhs=kernel, window_strides=(1,), **how), x)
        how |= {"transpose_kernel": True, "use_consistent_padding": True}
        close(lax.conv_transpose(y, kernel, (1,), **how), transposed(y)[0])


def test_traced_masks_are_index_errors_too():
    for kind in (tl.errors.NonConcreteBooleanIndexError, tl.errors.JAXIndexError, tl.errors.ConcretizationTypeError):
        with pytest.raises(kind, match=r"x\[mask\]: the shape depends on values"):
            tl.jit(lambda x: x[x > 0])(X)
    assert issubclass(tl.errors.TracerBoolConversionError, tl.errors.JAXTypeError)


@pytest.mark.parametrize("way", [lambda f: f, tl.jit], ids=["eager", "jit"])
def test_broadcast_in_dim_transposes_where_dimensions_do_not_increase(way):
    x = np.arange(9.0).reshape(3, 3)
    np.testing.assert_array_equal(way(lambda x: lax.broadcast_in_dim(x, (3, 3), (1, 0)))(tl.numpy.asarray(x)), x.T)
    y = x[:, :1]
    found = way(lambda y: lax.broadcast_in_dim(y, (2, 2, 3), (2, 0)))(y)
    np.testing.assert_array_equal(found, np.broadcast_to(y.T[:, None], (2, 2, 3)))
    with pytest.raises(ValueError, match="must be different, one per axis"):
        lax.broadcast_in_dim(x, (3, 3), (1, 1))
    with pytest.raises(ValueError, match="must be different, one per axis"):
        lax.broadcast_in_dim(tl.numpy.asarray(x), (3, 3), (0,))


def test_values_of_the_program_that_is_traced():
    assert lax.stage(2.0) == 2.0 and isinstance(lax.stage(2.0), tl.Array)
    traced = []
    tl.make_jaxpr(lambda: traced.append(lax.stage(np.ones(3))))()
    assert isinstance(traced[0], tl.core.Tracer)


def test_a_use_keeps_equations():
    def f(x):
        lax.dce_sink({"y": lax.sin(x)})
        return x

    assert [str(eqn.primitive) for eqn in tl.make_jaxpr(f)(1.0).eqns] == ["sin", "dce_sink"]
    assert tl.jit(tl.grad(f))(1.0) == 1.0
    np.testing.assert_array_equal(tl.jit(tl.vmap(f))(np.arange(3.0)), np.arange(3.0))
    with pytest.raises(NotImplementedError, match="prevent_mlir_dce=True is not supported"):
        lax.dce_sink(1.0, prevent_mlir_dce=True)
    with raises(TypeError, "dce_sink: val['y'] is 's' of type str, not an array."):
        lax.dce_sink({"x": 1.0, "y": "s"})


def test_numbers_of_other_kinds_are_refused_not_cut_off():
    for f in (
        lambda: lax.full((2,), 1j, "float32"),
        lambda: lax.convert_element_type(1j, "float32"),
        lambda: tnp.array([1j], "float32"),
        lambda: lax.integer_pow(2.0, 2.5),
        lambda: lax.top_k(tnp.ones(3), 1.5),
        lambda: tnp.eye(2.5),
        lambda: tnp.tril(tnp.ones((2, 2)), 0.5),
        lambda: lax.eq(tnp.array([True]), 2),
        lambda: lax.conv(tnp.ones((1, 1, 4)), tnp.ones((1, 1, 2)), (1.5,), "VALID"),
    ):
        with pytest.raises(TypeError):
            f()
    for number, error in ((np.nan, ValueError), (np.inf, OverflowError), (300.0, OverflowError)):
        for f in (lambda v: lax.full((2,), v, "int8"), lambda v: tnp.array([v], "int8"), tnp.int8):
            with pytest.raises(error):
                f(number)
    assert bool(lax.full((), 1j, bool)) and int(tnp.array([2.7], int)[0]) == 2


def test_operands_of_contractions_meet_in_the_wider_of_their_dtypes():
    x, y = tnp.ones((2, 3), "bfloat16"), tnp.full((3, 2), 0.1)
    assert lax.dot(x, y).dtype == lax.dot(y, x).dtype == np.float32
    contracted = lax.dot_general(x, y, (((1,), (0,)), ((), ())))
    np.testing.assert_allclose(contracted, np.full((2, 2), 0.3), rtol=1e-6)
    with pytest.raises(TypeError, match="dot: operands differ in dtype: bfloat16"):
        lax.dot(x, tnp.ones((3, 2), "float16"))
    assert lax.batch_matmul(tnp.ones((1, 2, 3), "int8"), tnp.ones((1, 3, 2))).dtype == np.float32
    gradient = tl.grad(lambda x: lax.dot(x, y).sum())(x)
    assert gradient.dtype == x.dtype and float(gradient[0, 0]) == float(tnp.bfloat16(0.2))


def test_bounds_of_slices_are_inside():
    x = tnp.arange(6.0).reshape(3, 2)
    assert lax.slice_in_dim(x, -2, None).shape == (2, 2) and lax.slice_in_dim(x, 1, 1).shape == (0, 2)
    for bounds in ((0, 4), (None, -4), (2, 1), (-4, None)):
        with pytest.raises(IndexError):
            lax.slice_in_dim(x, *bounds)


def test_operands_that_jax_takes():
    x = tnp.ones((2, 3))
    assert lax.reshape(x, 6).shape == (6,) and lax.collapse(x, 1, 1).shape == (2, 1, 3)
    assert lax.conj(x).dtype == np.complex64 and lax.full_like(2.5, 1, shape=(2,)).aval.weak_type
    assert [v.tolist() for v in lax.top_k(tnp.array([False, True, True]), 2)] == [[True, True], [1, 2]]
    assert lax.select_n(np.array([0, 1, 2], np.int8), *[np.ones(3) * k for k in range(3)]).tolist() == [0, 1, 2]
    np.testing.assert_allclose(lax.pow(2.5, np.array([1, 2], np.int8)), [2.5, 6.25])


def test_windows_outside_are_moved_inside_unless_they_are_filled():
    numbers = lax.GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,))
    for options, outside in (
        ({}, 2.0),
        ({"mode": "clip"}, 2.0),
        ({"mode": "fill"}, np.nan),
        ({"fill_value": 7.0}, 7.0),
    ):
        found = lax.gather(tnp.arange(3.0), np.array([[0], [5]]), numbers, (1,), **options)
        np.testing.assert_array_equal(found, [0.0, outside])


def test_functions_at_some_indices_leave_the_others():
    numbers = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    x = tnp.arange(6.0).reshape(3, 2)
    for rows in ([0, 1], [0, 0], [1, 2], [2, 1]):
        want = np.array(x)
        np.multiply.at(want, rows, 2.0)
        for way in (lambda f: f, tl.jit):
            found = way(lambda i: lax.scatter_apply(x, i, lambda v: v * 2, numbers, update_shape=(2, 2)))(
                np.array(rows)[:, None]
            )
            np.testing.assert_array_equal(found, want)


def test_axes_and_starts_that_are_no_sequences_are_named():
    x, y = np.ones((2, 3)), np.ones((3, 2))
    for wrong in (((1,), (0,)), ((1, 0), ((), ())), 1):
        with raises(
            TypeError,
            "dot_general: dimension_numbers must be ((contracted axes of lhs, of rhs), (batch axes of lhs, of rhs)), "
            f"not {wrong!r}.\n  Those of a product of two matrices are (((1,), (0,)), ((), ())).",
        ):
            lax.dot_general(x, y, wrong)
    with raises(TypeError, "start indices must be a sequence, one for each axis, not 0."):
        lax.dynamic_slice(x, 0, (1, 1))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "complex64"])
def test_long_integers_of_python_become_floats(dtype):
    for n in (2**31 - 1, -(2**31), 2**31, -(2**40), 3**50):
        for convert in (lax.convert_element_type, tl.jit(lax.convert_element_type, static_argnums=(0, 1))):
            found = convert(n, dtype)
            assert (found.dtype.name, found.weak_type) == (dtype, False)
            assert np.asarray(found) == np.asarray(float(n)).astype(found.dtype)


def test_operands_of_two_dtypes_that_the_result_holds():
    x, y = RNG.normal(size=(4, 3)).astype(tnp.float8_e4m3fn), RNG.normal(size=(3, 2)).astype(tnp.float8_e5m2)
    found = lax.dot(x, y, preferred_element_type=np.float32)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, x.astype(np.float32) @ y.astype(np.float32), rtol=1e-6)
    i, u = RNG.integers(-9, 9, (4, 3)).astype(np.int8), RNG.integers(200, 255, (3, 2)).astype(np.uint8)
    np.testing.assert_array_equal(lax.dot(i, u, preferred_element_type=np.int32), i.astype(int) @ u.astype(int))
    for narrow in (None, np.int8):
        with raises(TypeError, "dot: operands differ in dtype: int8[4,3] and uint8[3,2]. Convert with astype."):
            lax.dot(i, u, preferred_element_type=narrow)


def test_one_case():
    np.testing.assert_array_equal(lax.select_n(np.array([True, False]), np.arange(2.0)), [0.0, 1.0])
    with pytest.raises(TypeError, match=r"select_n: a bool, bool\[2\], chooses between 2 cases, not 3: float64"):
        lax.select_n(np.array([True, False]), *[np.arange(2.0)] * 3)


def test_positions_that_int32_does_not_hold():
    axis = "top_k: positions are int32, and the axis of float32[2147483648] that is searched"
    with raises(ValueError, f"{axis} is longer than 2147483647."):
        tl.eval_shape(lambda x: lax.top_k(x, 1), tl.ShapeDtypeStruct((2**31,), np.float32))
