"""x[index] and x.at[index] against NumPy, with indices drawn at random."""

import re
from functools import partial

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tapeless as tl
import tapeless.numpy as tnp
from tests.messages import raises

pytestmark = pytest.mark.usefixtures("eager_by_steps")

EXAMPLES = settings(max_examples=40, deadline=None)
SHAPES = hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=5)


def numbered(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


@st.composite
def basic_indices(draw):
    shape = draw(SHAPES)
    index = draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True))
    return numbered(shape), index


@st.composite
def mixed_indices(draw):
    """For each axis an integer, a slice, or an array of integers; with new axes and an ellipsis."""
    shape = draw(SHAPES)
    block = draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=1, max_side=3))
    items = []
    for n in shape[: draw(st.integers(1, len(shape)))]:
        integers = st.integers(-n, n - 1)
        sub = draw(st.sampled_from([block, (1,), ()]))
        kinds = [integers, st.slices(n), hnp.arrays(np.int32, sub, elements=integers)]
        items.append(draw(st.one_of(kinds)))
    if draw(st.booleans()):
        items.insert(draw(st.integers(0, len(items))), None)
    if len(items) < len(shape) and draw(st.booleans()):
        items.append(Ellipsis)
    return numbered(shape), tuple(items)


def traced(index):
    """The index with its arrays as operands of the program, and what builds it again."""
    items = index if isinstance(index, tuple) else (index,)
    arrays = [x for x in items if isinstance(x, np.ndarray)]

    def rebuilt(values):
        given = iter(values)
        return tuple(next(given) if isinstance(x, np.ndarray) else x for x in items)

    return arrays, rebuilt


@given(basic_indices())
@EXAMPLES
def test_basic_indices(case):
    x, index = case
    np.testing.assert_array_equal(tnp.asarray(x)[index], x[index])


@given(basic_indices())
@EXAMPLES
def test_basic_indices_of_a_traced_array(case):
    x, index = case
    program = tl.make_jaxpr(lambda x: x[index])(x)
    assert program.out_avals[0].shape == x[index].shape
    assert len(program.eqns) <= 3  # slice, rev, reshape
    np.testing.assert_array_equal(tl.jit(lambda x: x[index])(x), x[index])


@given(mixed_indices())
@EXAMPLES
def test_arrays_of_positions(case):
    x, index = case
    np.testing.assert_array_equal(tnp.asarray(x)[index], x[index])


@given(mixed_indices())
@EXAMPLES
def test_traced_positions(case):
    x, index = case
    arrays, rebuilt = traced(index)
    found = tl.jit(lambda x, *values: x[rebuilt(values)])(x, *arrays)
    np.testing.assert_array_equal(found, x[index])


@given(mixed_indices(), st.booleans())
@EXAMPLES
def test_writing(case, scalar):
    x, index = case
    y = np.float32(-1) if scalar else -numbered(x[index].shape) - 1
    changed = np.asarray(tnp.asarray(x).at[index].set(y))
    expected = x.copy()
    expected[index] = y
    positions = np.zeros(x.shape, int)
    np.add.at(positions, index, 1)
    once = positions <= 1  # where positions repeat, any of the values may win
    np.testing.assert_array_equal(changed[once], expected[once])
    assert set(changed[~once]) <= set(np.ravel(y))


@given(mixed_indices())
@EXAMPLES
def test_adding(case):
    x, index = case
    y = numbered(x[index].shape)
    expected = x.copy()
    np.add.at(expected, index, y)
    np.testing.assert_array_equal(tnp.asarray(x).at[index].add(y), expected)
    arrays, rebuilt = traced(index)
    found = tl.jit(lambda x, *values: x.at[rebuilt(values)].add(y))(x, *arrays)
    np.testing.assert_array_equal(found, expected)


@given(basic_indices())
@EXAMPLES
def test_writing_basic(case):
    x, index = case
    expected = x.copy()
    expected[index] = -1
    np.testing.assert_array_equal(tnp.asarray(x).at[index].set(-1), expected)
    np.testing.assert_array_equal(tl.jit(lambda x: x.at[index].set(-1))(x), expected)
    expected = x.copy()
    expected[index] *= 3
    np.testing.assert_array_equal(tnp.asarray(x).at[index].multiply(3), expected)


@pytest.mark.parametrize(
    ("method", "ufunc"),
    [("add", np.add), ("subtract", np.subtract), ("multiply", np.multiply), ("min", np.minimum), ("max", np.maximum)],
)
def test_repeated_positions_accumulate(method, ufunc):
    x, index, y = numbered((4,)), np.array([1, 1, -1]), np.array([2, 3, 5], np.float32)
    expected = x.copy()
    ufunc.at(expected, index, y)
    np.testing.assert_array_equal(getattr(tnp.asarray(x).at[index], method)(y), expected)


def test_divide_power_apply():
    x = tnp.asarray(numbered((4,)) + 1)
    np.testing.assert_array_equal(x.at[1:3].divide(2), [1, 1, 1.5, 4])
    np.testing.assert_array_equal(x.at[1:3].power(2), [1, 4, 9, 4])
    np.testing.assert_array_equal(x.at[1:3].apply(lambda v: -v), [1, -2, -3, 4])


def test_divide_and_power_convert_as_the_operators_do():
    x = tnp.arange(3)
    np.testing.assert_array_equal(x.at[1:].divide(4.0), [0, 0.25, 0.5])
    with raises(
        TypeError, "at[...].power: float32[] cannot be written into int32[3]. Convert one of them with astype."
    ):
        x.at[1:].power(0.5)


@pytest.mark.parametrize("method", ["set", "add", "multiply", "min", "max", "divide", "power", "subtract"])
@pytest.mark.parametrize("index", [0, np.array([0, 1]), slice(0, 3, 2), np.array([True, False, True])], ids=repr)
def test_weak_arrays_stay_weak(method, index):
    """Whatever is written; what is written into strong ones does not make them weak."""
    for weak in (True, False):
        x = tnp.broadcast_to(2.0, (3,)) if weak else tnp.ones(3)
        found = [
            getattr(x.at[index], method)(y) for y in (3.0, 3, np.float32(3), np.ones((), np.float32), tnp.ones(()))
        ]
        assert [y.weak_type for y in found] == [weak] * len(found)


REPEATED = [
    np.array([0, 0, 2]),
    np.array([[-1, 2], [2, 1]]),
    (np.array([0, 0, 2]), slice(1, 3)),
    (slice(1, 3), None, np.array([[3], [3], [0]])),
    (np.array([0, 0, 2]), None, 1),
    (np.array([0, 0, 2]), np.array([1, 1, 3])),
    (np.array([2]), np.zeros(11, int)),
]


@pytest.mark.parametrize("index", REPEATED, ids=repr)
def test_apply_applies_once_for_each_time_that_an_element_is_named(index):
    x = numbered((3, 4)) + 1
    expected = x.copy()
    np.sqrt.at(expected, index)
    arrays, rebuilt = traced(index)
    same = partial(np.testing.assert_allclose, desired=expected, rtol=1e-6)
    same(tnp.asarray(x).at[index].apply(tnp.sqrt))
    same(tnp.asarray(x).at[rebuilt([tnp.asarray(a) for a in arrays])].apply(tnp.sqrt))
    same(tl.jit(lambda x: x.at[index].apply(tnp.sqrt))(x))
    same(tl.jit(lambda x, *arrays: x.at[rebuilt(arrays)].apply(tnp.sqrt))(x, *arrays))


def test_derivatives_of_apply():
    x = tnp.asarray([1.0, 2.0, 3.0])
    twice = np.cos(np.sin(1)) * np.cos(1)

    def f(x, index, **options):
        return x.at[index].apply(tnp.sin, **options)[0]

    np.testing.assert_allclose(tl.grad(f)(x, np.array([0, 0, 1])), [twice, 0, 0], rtol=1e-6)
    np.testing.assert_allclose(tl.grad(f)(x, tnp.array([0, 0, 1])), [twice, 0, 0], rtol=1e-6)
    np.testing.assert_allclose(tl.jit(tl.jacfwd(f))(x, np.array([0, 0, 1])), [twice, 0, 0], rtol=1e-6)
    once = tl.jit(tl.grad(lambda x, i: f(x, i, unique_indices=True)))
    np.testing.assert_allclose(once(x, np.array([0, 1])), [np.cos(1), 0, 0], rtol=1e-6)
    np.testing.assert_allclose(tl.jit(tl.grad(f))(x, np.array([0, 0, 1])), [twice, 0, 0], rtol=1e-6)


def test_apply_drops_what_is_outside():
    found = tl.jit(lambda x, i: x.at[i].apply(lambda y: 2 * y))(numbered((4,)), np.array([1, 9, 1]))
    np.testing.assert_array_equal(found, [0, 4, 2, 3])


def test_masks():
    x, mask = numbered((3, 4)), numbered((3, 4)) % 3 == 0
    np.testing.assert_array_equal(tnp.asarray(x)[mask], x[mask])
    np.testing.assert_array_equal(tnp.asarray(x)[np.array([True, False, True]), 1:], x[[True, False, True], 1:])
    np.testing.assert_array_equal(tl.jit(lambda x, m: x.at[m].set(0))(x, mask), np.where(mask, 0, x))
    np.testing.assert_array_equal(tl.jit(lambda x, m: x.at[m].add(1))(x, mask), np.where(mask, x + 1, x))
    with pytest.raises(TypeError, match=r"tnp.where\(mask, x, other\)"):
        tl.jit(lambda x, m: x[m])(x, mask)


def test_traced_positions_outside():
    """Reading moves them to the ends, writing drops them."""
    x = numbered((5,))
    np.testing.assert_array_equal(tl.jit(lambda x, i: x[i])(x, np.array([7, -9, 1])), [4, 0, 1])
    assert tl.jit(lambda x, i: x[i])(x, 7) == 4
    np.testing.assert_array_equal(tl.jit(lambda x, i: x.at[i].set(-1))(x, 7), x)
    np.testing.assert_array_equal(tl.jit(lambda x, i: x.at[i].add(1))(x, np.array([7, 0])), x + np.eye(5)[0])


def test_modes():
    x = tnp.asarray(numbered((5,)))
    np.testing.assert_array_equal(x.at[np.array([7, 1])].get(mode="fill"), [np.nan, 1])
    np.testing.assert_array_equal(x.at[np.array([7, 1])].get(mode="fill", fill_value=-1), [-1, 1])
    np.testing.assert_array_equal(x.at[np.array([7, 1])].get(mode="clip"), [4, 1])
    np.testing.assert_array_equal(x.at[7].set(0, mode="drop"), x)
    np.testing.assert_array_equal(x.at[7].set(0, mode="clip"), [0, 1, 2, 3, 0])
    np.testing.assert_array_equal(tnp.take(x, np.array([7, 1])), [np.nan, 1])
    np.testing.assert_array_equal(tnp.take(x, np.array([7, -1]), mode="wrap"), [2, 4])


def test_one_cheap_primitive():
    program = tl.make_jaxpr(lambda x: x[1])(np.zeros((3, 4), np.float32))
    assert [str(eqn.primitive) for eqn in program.eqns] == ["slice", "reshape"]
    program = tl.make_jaxpr(lambda x: x.at[1].set(0))(np.zeros((3, 4), np.float32))
    assert str(program.eqns[-1].primitive) == "dynamic_update_slice"


@pytest.mark.parametrize(
    ("index", "error", "message"),
    [
        (7, IndexError, "index 7 is out of bounds for axis 0 with size 3, of an array of shape (3,4)."),
        ((0, -5), IndexError, "index -5 is out of bounds for axis 1 with size 4, of an array of shape (3,4)."),
        ((0, 0, 0), IndexError, "too many indices: 3 for the 2 axes of an array of shape (3,4)."),
        ((..., ...), IndexError, "an index has at most one ellipsis (...), not 2."),
        (0.5, TypeError, "an index must be an integer, a slice, None, ... or an array of them, not 0.5 of type float."),
        ("a", TypeError, "an index must be an integer, a slice, None, ... or an array of them, not 'a' of type str."),
        (np.zeros(2, np.float32), TypeError, "an index must be integer or boolean, not float32[2]."),
        (np.array([0, 9]), IndexError, "index 9 is out of bounds for axis 0 with size 3, of an array of shape (3,4)."),
        (np.ones(2, bool), IndexError, "a mask of shape (2,) does not fit an array of shape (3,4): axis 0 has size 3."),
    ],
    ids=str,
)
def test_errors(index, error, message):
    x = tnp.zeros((3, 4))
    with pytest.raises(error, match=re.escape(message)):
        x[index]
    with pytest.raises(error, match=re.escape(message)):
        tl.jit(lambda x: x[index])(x)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 0), (0, 4)])
def test_masks_without_elements_choose_nothing(shape):
    """NumPy takes them for arrays of any length, as the array API standard does."""
    x, mask = numbered((3, 4)), np.ones(shape, bool)
    for found in (tnp.asarray(x)[mask], tl.jit(lambda x: x[mask])(x)):
        assert found.shape == x[mask].shape
    np.testing.assert_array_equal(tnp.asarray(x).at[mask].set(1), x)
    with pytest.raises(IndexError, match=re.escape("axis 1 has size 4")):
        tnp.asarray(x)[np.ones((0, 5), bool)]


def test_axes_without_elements_are_not_read():
    message = "an index is out of bounds for axis 1 of float32[2,0], which has no element to read."
    for read in (tl.jit(lambda i: tnp.ones((2, 0))[0, i]), lambda i: tnp.take(tnp.ones((2, 0)), np.array([i]), 1)):
        with pytest.raises(IndexError, match=re.escape(message)):
            read(0)
    assert tnp.take(tnp.ones((2, 0)), np.zeros(0, int), 1).shape == (2, 0)


def test_item_assignment_is_refused():
    with pytest.raises(TypeError, match=re.escape("x = x.at[i].set(y)")):
        tnp.zeros(3)[0] = 1


def test_traced_bounds_are_refused():
    with pytest.raises(TypeError, match=r"lax.dynamic_slice"):
        tl.jit(lambda x, n: x[:n])(tnp.zeros(3), 2)


def test_values_must_fit():
    with pytest.raises(ValueError, match=re.escape("values of shape (3,) do not broadcast to the part of shape (2,)")):
        tnp.zeros(4).at[:2].set(np.zeros(3, np.float32))
    with pytest.raises(TypeError, match=r"cannot be written"):
        tnp.zeros(4, int).at[0].set(tnp.ones(()))


METHODS = ["set", "add", "subtract", "multiply", "min", "max"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("array", [np.array, lambda v: tnp.asarray(np.array(v))])
@pytest.mark.parametrize("index", [0, slice(0, 1), np.array([0]), np.array([True, False, False])])
def test_integers_that_do_not_fit_are_not_written(method, array, index):
    x, far, near = tnp.zeros(3, np.int32), array(2**40), array(7)
    message = (
        f"at[...].{method}: int64[] cannot be written into int32[3]: the integer 1099511627776 does not fit int32, "
        "which holds -2147483648 to 2147483647: use an array of a wider dtype, such as int64, or make 64 bits the "
        'default: tl.config.update("default_bits", 64).'
    )
    for under in (lambda f: f, tl.jit):
        with raises(OverflowError, message):
            under(lambda x: getattr(x.at[index], method)(far))(x)
        assert under(lambda x: getattr(x.at[index], method)(near))(x).dtype == np.int32


def test_traced_integers_are_not_narrowed_by_writing():
    x, values = tnp.zeros(3, np.int32), np.array([7])
    message = (
        "at[...].add: int64[1] is traced, and its elements may not fit int32[3].\n"
        "  Convert one of them: x.astype('int64').at[...].add(values), or values.astype('int32'), which wraps."
    )
    with raises(TypeError, message):
        tl.jit(lambda x, values: x.at[:1].add(values))(x, values)
    assert tl.jit(lambda x, values: x.at[:1].add(values.astype(x.dtype)))(x, values)[0] == 7
    assert tl.jit(lambda x, values: x.at[:1].add(values))(x, values.astype(np.uint8))[0] == 7
    assert tl.grad(lambda y: (x.at[:1].add(values) * y).sum())(1.0) == 7.0


def test_products_have_derivatives_in_values():
    x, values = np.array([2.0, 3.0, 4.0]), np.array([5.0, 7.0])

    def total(values, index, method):
        return getattr(tnp.asarray(x).at[index], method)(values).sum()

    for index in (np.array([2, 0]), np.array([True, False, True]), slice(None, None, 2)):
        expected = x[index]
        np.testing.assert_allclose(tl.grad(total)(values, index, "multiply"), expected)
        np.testing.assert_allclose(tl.grad(total)(values, index, "divide"), -expected / values**2)
        np.testing.assert_allclose(tl.grad(total)(values, index, "power"), expected**values * np.log(expected))
    np.testing.assert_allclose(tl.grad(total)(values, np.array([1, 1]), "multiply"), 3 * values[::-1])
    np.testing.assert_allclose(tl.grad(total)(values, np.array([1, 1]), "divide"), -3 / values / values.prod())
    assert tnp.asarray(x).at[np.zeros(0, int)].multiply(np.zeros(0)).shape == (3,)


def test_positions_far_outside():
    """Modulo 2³² they would be inside."""
    x = tnp.array([5, 6, 7])
    assert tnp.take(x, 2**40, mode="clip") == 7 and tnp.take(x, -(2**40), mode="clip") == 5
    assert tnp.take(x, np.array(2**63, np.uint64), fill_value=-1) == -1
    assert x[tnp.asarray(np.int64(2**40))] == 7
    assert tl.jit(lambda x, i: x[i])(x, np.uint64(2**63)) == 7
    np.testing.assert_array_equal(x.at[np.array([2**40, 0])].set(1, mode="drop"), [1, 6, 7])


@pytest.mark.parametrize("jitted", [False, True])
def test_take_clips_negative_positions(jitted):
    """As NumPy and JAX do; other ways of reading count them from the end first."""
    x, positions = np.array([5.0, 6.0, 7.0]), np.array([5, -1, -4, 1])
    take = lambda x, p: tnp.take(x, p, mode="clip")  # noqa: E731
    np.testing.assert_array_equal((tl.jit(take) if jitted else take)(x, positions), np.take(x, positions, mode="clip"))
    assert tnp.take(x, -1, mode="clip") == 5 and tnp.take(x, 2**40, mode="clip") == 7
    np.testing.assert_array_equal(tnp.take_along_axis(x, positions, 0, mode="clip"), [7, 7, 5, 6])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
@pytest.mark.parametrize("mode", ["clip", "wrap", "fill"])
def test_positions_of_a_dtype_too_narrow_for_the_size(dtype, mode):
    x, positions = np.arange(300.0), np.array([5, 200, 100]).astype(dtype)
    expected = np.take(x, positions, mode="raise" if mode == "fill" else mode)
    np.testing.assert_array_equal(tnp.take(x, positions, mode=mode), expected)
    np.testing.assert_array_equal(tl.jit(lambda x, p: tnp.take(x, p, mode=mode))(x, positions), expected)
    np.testing.assert_array_equal(tnp.asarray(x)[positions], x[positions])


@given(SHAPES, st.data())
@EXAMPLES
def test_take_along_axis(shape, data):
    x, axis = numbered(shape), data.draw(st.integers(-len(shape), len(shape) - 1))
    n = shape[axis]
    places = data.draw(hnp.arrays(np.int32, shape, elements=st.integers(-n, n - 1)))
    expected = np.take_along_axis(x, places, axis)
    np.testing.assert_array_equal(tnp.take_along_axis(tnp.asarray(x), places, axis), expected)
    np.testing.assert_array_equal(tnp.take_along_axis(x, places, axis, mode="one_hot"), expected)
    assert not tnp.take_along_axis(x, places + x.shape[axis] * 2, axis, mode="one_hot").any()
    np.testing.assert_array_equal(tnp.take(x, places, axis), np.take(x, places, axis))


def test_lists_are_written_as_arrays_of_the_dtype():
    x = tnp.zeros(3, np.float64)
    assert x.at[:2].set([0.1, 2]).tolist() == [0.1, 2, 0] and x.at[np.array([2, 0])].add((1, 2)).tolist() == [2, 0, 1]
    assert tl.jit(lambda y: x.at[1:].set([y, 2 * y]))(3.0).tolist() == [0, 3, 6]
    with pytest.raises(TypeError, match=r"at\[...\].set: float32\[2\] cannot be written into int32\[3\]."):
        tnp.zeros(3, np.int32).at[:2].set([0.5, 1])
    with pytest.raises(OverflowError, match="the integer 300 does not fit int8"):
        tnp.zeros(3, np.int8).at[:2].set([300, 1])
