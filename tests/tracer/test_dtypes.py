"""Element types: what they are called and classed as, what is refused, and the whole promotion table against JAX's."""

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapeless.tracer import dtypes
from tapeless.tracer.primitives.shape import full
from tapeless.tracer.settings.config import config, enable_x64

NAMES = """
bool int2 int4 int8 int16 int32 int64 uint2 uint4 uint8 uint16 uint32 uint64 float4_e2m1fn float8_e3m4 float8_e4m3
float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu bfloat16 float16 float32
float64 complex64 complex128
""".split()
STRONG = [np.dtype(getattr(ml_dtypes, name, name)) for name in NAMES]
WEAK = [int, float, complex]
SHORT = """
bool i2 i4 i8 i16 i32 i64 u2 u4 u8 u16 u32 u64 f4_e2m1fn f8_e3m4 f8_e4m3 f8_e4m3b11fnuz f8_e4m3fn f8_e4m3fnuz f8_e5m2
f8_e5m2fnuz f8_e8m0fnu bf16 f16 f32 f64 c64 c128
""".split()


def dtype(name: str) -> np.dtype[Any]:
    return STRONG[NAMES.index(name)]


def array(name: str) -> np.ndarray[Any, Any]:
    return np.zeros(3, dtype(name))


def joined(*operands: Any) -> tuple[str, bool]:
    found, weak = dtypes.result_type(*operands)
    return found.name, weak


def raises(error: type[Exception], message: str, action) -> None:
    with pytest.raises(error) as caught:
        action()
    assert str(caught.value) == message


# ---- classes and names


def test_short_names():
    assert [dtypes.short_name(d) for d in STRONG] == SHORT
    assert dtypes.short_name(dtypes.float0) == "float0"


@pytest.mark.parametrize("name", NAMES)
def test_predicates(name: str):
    d = dtype(name)
    kind = "b" if name == "bool" else {"i": "i", "u": "u", "f": "f", "b": "f", "c": "c"}[name[0]]
    assert dtypes.kind(d) == kind
    tests = dtypes.is_bool, dtypes.is_integer, dtypes.is_signed, dtypes.is_float, dtypes.is_complex, dtypes.is_inexact
    assert [test(d) for test in tests] == [kind in kinds for kinds in ("b", "iu", "ifc", "f", "c", "fc")]


def test_predicates_of_unsupported_types_name_them():
    with pytest.raises(TypeError, match="object"):
        dtypes.is_float(np.dtype(object))
    assert dtypes.is_float(np.dtype(">f4"))


def test_bits():
    assert [dtypes.bits_of(dtype(n)) for n in ("bool", "int4", "bfloat16", "float8_e5m2", "complex64")] == [
        8,
        4,
        16,
        8,
        64,
    ]


@pytest.mark.parametrize("name", NAMES)
def test_tangents_are_float0_unless_inexact(name: str):
    expected = dtype(name) if dtypes.is_inexact(dtype(name)) else dtypes.float0
    assert dtypes.tangent_dtype(dtype(name)) == expected
    assert dtypes.tangent_dtype(dtypes.float0) == dtypes.float0


def test_parts_of_complex_numbers():
    assert dtypes.real_part_dtype(dtype("complex128")) == np.float64
    assert dtypes.real_part_dtype(dtype("bfloat16")) == ml_dtypes.bfloat16
    of = {n: dtypes.complex_of(dtype(n)).name for n in ("bfloat16", "float32", "float64", "complex128", "int64")}
    assert list(of.values()) == ["complex64", "complex64", "complex128", "complex128", "complex128"]
    assert dtypes.complex_of(dtype("int32")) == np.complex64


def test_defaults_follow_the_width():
    assert [dtypes.default_dtype(k).name for k in "biufc"] == ["bool", "int32", "uint32", "float32", "complex64"]
    with enable_x64():
        assert [dtypes.default_dtype(k).name for k in "biufc"] == ["bool", "int64", "uint64", "float64", "complex128"]
        assert [dtypes.scalar_dtype(c).name for c in (bool, int, float, complex)] == [
            "bool",
            "int64",
            "float64",
            "complex128",
        ]
        assert dtypes.inexact_of(dtype("int8")) == np.float32
        assert dtypes.inexact_of(dtype("int64")) == np.float64
    assert dtypes.inexact_of(dtype("int64")) == np.float64
    assert dtypes.inexact_of(dtype("bfloat16")) == ml_dtypes.bfloat16


# ---- what users write


@pytest.mark.parametrize("name", NAMES)
def test_canonical_spellings(name: str):
    d = dtype(name)
    assert {dtypes.canonical(spelling) for spelling in (d, d.type, name, d.type(1))} == {d}
    assert dtypes.of_elements(np.zeros(2, d)) == d


@pytest.mark.parametrize("x", [np.zeros(2), full((2,), 0, np.float64)])
def test_arrays_are_no_dtypes(x: Any):
    with pytest.raises(TypeError, match="an array of float64 was given as a dtype"):
        dtypes.canonical(x)
    assert dtypes.issubdtype(x, np.floating) and dtypes.finfo(x).bits == 64


@pytest.mark.parametrize(("spelling", "narrow", "wide"), [
    (float, "float32", "float64"), ("int", "int32", "int64"), (complex, "complex64", "complex128"),
    (bool, "bool", "bool"),
    (np.float64, "float64", "float64"), ("f8", "float64", "float64"), ("<i8", "int64", "int64"),
])  # fmt: skip
def test_python_types_have_the_default_width_and_explicit_ones_their_own(spelling: Any, narrow: str, wide: str):
    assert dtypes.canonical(spelling).name == narrow
    with enable_x64():
        assert dtypes.canonical(spelling).name == wide


def test_canonical_is_native():
    assert dtypes.canonical(">f4").isnative
    assert dtypes.canonical(np.longlong).type is np.int64


def test_float0_is_canonical():
    assert dtypes.canonical(dtypes.float0) is dtypes.float0


USE = (
    "is not a dtype of arrays: "
    "use bool, an integer, a float or a complex type, for example 'float32', np.int8 or float."
)


@pytest.mark.parametrize(("bad", "start"), [
    (None, "None"), ("nonsense", "'nonsense'"), ([1], "[1]"),
    (object, "<class 'object'>, which NumPy reads as object,"),
    ("U3", "'U3', which NumPy reads as <U3,"),
    ("datetime64[s]", "'datetime64[s]', which NumPy reads as datetime64[s],"),
    (np.longdouble, f"<class 'numpy.longdouble'>, which NumPy reads as {np.dtype(np.longdouble)},"),
    (np.dtype([("a", "f4")]), "dtype([('a', '<f4')]), which NumPy reads as [('a', '<f4')],"),
])  # fmt: skip
def test_refused_dtypes_are_named(bad: Any, start: str):
    raises(TypeError, f"{start} {USE}", lambda: dtypes.canonical(bad))


def test_what_is_no_dtype_but_another_argument_is_taken_for_it():
    raises(
        TypeError,
        f"3 {USE}\n  If it is a size, write the shape as one tuple: (2, 3).",
        lambda: dtypes.canonical(3),
    )
    raises(
        TypeError,
        f"True {USE}\n  If it says whether axes stay, name it: keepdims=True.",
        lambda: dtypes.canonical(True),
    )


def test_limits():
    assert (dtypes.iinfo("int4").min, dtypes.iinfo(np.uint8).max) == (-8, 255)
    assert float(dtypes.finfo("bfloat16").eps) == 2**-7
    assert dtypes.finfo(complex).bits == 32
    raises(TypeError, "finfo: int8 is not a floating point type; use iinfo.", lambda: dtypes.finfo("int8"))
    raises(TypeError, "iinfo: bfloat16 is not an integer type; use finfo.", lambda: dtypes.iinfo("bfloat16"))
    raises(TypeError, "iinfo: bool is not an integer type.", lambda: dtypes.iinfo(bool))


@pytest.mark.parametrize("name", [n for n in NAMES if "int" in n])
def test_integers_that_fit(name: str):
    limits = dtypes.iinfo(name)
    for value in (limits.min, limits.max):
        dtypes.check_fits(int(value), dtype(name))
    for value in (int(limits.min) - 1, int(limits.max) + 1):
        with pytest.raises(OverflowError):
            dtypes.check_fits(value, dtype(name))


def test_integers_that_do_not_fit_are_named():
    for value, name, text in (
        (300, "uint8", "uint8, which holds 0 to 255: use an array of a wider dtype, such as int16."),
        (-(2**31), "int16", "int16, which holds -32768 to 32767: use an array of a wider dtype, such as int32."),
        (2**64, "int8", "int8, which holds -128 to 127: no integer dtype holds it, so use a float."),
    ):
        message = f"the integer {value} does not fit {text}"
        raises(OverflowError, message, lambda value=value, name=name: dtypes.check_fits(value, dtype(name)))


def test_categories():
    assert dtypes.issubdtype(ml_dtypes.bfloat16, np.floating)
    assert dtypes.issubdtype("int4", np.signedinteger)
    assert not dtypes.issubdtype("uint4", np.signedinteger)
    assert dtypes.issubdtype(bool, np.generic) and not dtypes.issubdtype(bool, np.number)
    assert dtypes.issubdtype("float32", np.float32) and not dtypes.issubdtype("float32", np.float64)
    assert dtypes.issubdtype(None, np.floating) and not dtypes.issubdtype(None, np.integer)  # as NumPy reads None


def test_casts():
    assert dtypes.can_cast("bfloat16", "float32") and not dtypes.can_cast("float32", "bfloat16")
    assert dtypes.can_cast("float64", "float32", "same_kind")


# ---- promotion


OPERANDS = [*STRONG, *WEAK]


@pytest.mark.parametrize("x", OPERANDS, ids=str)
def test_promotion_is_that_of_jax(x: Any):
    """With 64 bits as its default, since only then JAX truncates nothing."""
    jax = pytest.importorskip("jax")
    theirs_of = pytest.importorskip("jax._src.dtypes")
    with jax.enable_x64(True), enable_x64():
        for y in OPERANDS:
            try:
                expected = theirs_of.result_type(x, y, return_weak_type_flag=True)
            except theirs_of.TypePromotionError:
                with pytest.raises(TypeError, match="have no common dtype"):
                    dtypes.result_type(x, y)
            else:
                assert dtypes.result_type(x, y) == expected, (x, y)


def test_promotion_of_three_is_that_of_jax():
    jax = pytest.importorskip("jax")
    theirs_of = pytest.importorskip("jax._src.dtypes")
    names = "bool uint8 int8 uint32 int32 uint64 int64 bfloat16 float16 float32 float64 complex64".split()
    with jax.enable_x64(True), enable_x64():
        for operands in itertools.combinations_with_replacement([*map(dtype, names), *WEAK], 3):
            assert dtypes.result_type(*operands) == theirs_of.result_type(*operands, return_weak_type_flag=True), (
                operands
            )


@pytest.mark.parametrize(("operands", "expected"), [
    ((array("float32"), np.float64(0.1)), ("float32", False)),
    ((np.float64(0.1),), ("float64", True)),
    ((np.float64(0.1), 2.0), ("float64", True)),
    ((array("int32"), 2.0), ("float32", True)),
    ((array("int64"), 2.0), ("float64", True)),
    ((array("uint64"), np.float32(2.0)), ("float64", True)),
    ((array("int64"), 2j), ("complex128", True)),
    ((array("int64"), array("int32"), 2.0), ("float64", True)),
    ((array("int64"), array("float32"), 2.0), ("float32", False)),
    ((array("int64"), array("bfloat16"), 1j), ("complex64", False)),
    ((np.int64(3), 2.0), ("float64", True)),
    ((np.uint64(3), np.float32(2), 1j), ("complex128", True)),
    ((array("int32"), np.int64(3), 2.0), ("float32", True)),
    ((np.int32(3), 2.0), ("float32", True)),
    ((array("int32"), np.float64(2.0)), ("float32", True)),
    ((array("float32"), 3), ("float32", False)),
    ((array("int64"), array("float32")), ("float32", False)),
    ((array("bfloat16"), np.float32(2)), ("bfloat16", False)),
    ((array("bfloat16"), 1j), ("complex64", False)),
    ((array("int8"), np.int64(3)), ("int8", False)),
    ((array("uint32"), array("int32")), ("int64", False)),
    ((array("uint64"), array("int64")), ("float64", True)),
    ((array("uint64"), array("int8"), array("float32")), ("float32", False)),
    ((True, 1), ("int32", True)),
    ((True, np.bool_(False)), ("bool", False)),
    ((array("bool"), 2.0), ("float32", True)),
    ((np.uint64(3), 1), ("uint64", True)),
    ((ml_dtypes.float8_e5m2(1), 2.0), ("float32", True)),
    ((np.int8(1), np.uint8(1)), ("int16", True)),
    ((np.longlong(3),), ("int64", True)),
    ((array("float32").astype(">f4"), 1), ("float32", False)),
    ((int,), ("int32", True)), ((np.float64,), ("float64", False)), (("bfloat16", float), ("bfloat16", False)),
])  # fmt: skip
def test_promotion_of_values(operands: tuple[Any, ...], expected: tuple[str, bool]):
    assert joined(*operands) == expected


def test_where_numpys_64_bits_are_32_a_number_has_the_default_width():
    with config.scope(numpy_bits=32):
        assert dtypes.inexact_of(dtype("int64")) == dtypes.float_of(dtype("int64")) == np.float32
        for operands in ((array("int64"), 2.0), (dtype("int64"), 2.0), (np.int64(3), 2.0)):
            assert joined(*operands) == ("float32", True)
        assert joined(dtype("uint64"), 1j) == ("complex64", True)


def test_floats_of_the_default_width_are_as_wide_as_the_integers_beside_them():
    assert dtypes.float_of(dtype("int32"), dtype("bool")) == np.float32
    assert dtypes.float_of(dtype("int32"), dtype("uint64")) == np.float64
    assert dtypes.float_of(dtype("int64"), kind="c") == np.complex128
    with enable_x64():
        assert dtypes.float_of(dtype("int8")) == np.float64


class Typed:
    """What has a type, as arrays and tracers have."""

    def __init__(self, name: str, weak_type: bool) -> None:
        self.dtype, self.weak_type, self.aval = dtype(name), weak_type, self


def test_promotion_of_types():
    assert joined(Typed("float64", True), Typed("float32", False)) == ("float32", False)
    assert joined(Typed("float64", True), 2.0) == ("float64", True)
    assert joined(Typed("bool", False), 1) == ("int32", True)


def test_results_follow_the_default_width():
    assert joined(array("int8"), 2.0) == ("float32", True)
    with enable_x64():
        assert joined(array("int8"), 2.0) == ("float64", True)
    assert joined(array("int8"), 2.0) == ("float32", True)


def test_subclasses_of_numbers():
    class Count(int):
        pass

    assert joined(array("float32"), Count(3)) == ("float32", False)
    assert joined(Count(3)) == ("int32", True)


def test_no_common_dtype():
    have = "have no common dtype: convert one to the dtype of another with astype."
    raises(TypeError, f"int4 and int32 {have}", lambda: dtypes.result_type(array("int4"), array("int32")))
    raises(TypeError, f"float8_e5m2 and a weak complex number {have}", lambda: joined(array("float8_e5m2"), 1j))
    raises(TypeError, "promotion needs at least one operand.", dtypes.result_type)
    with pytest.raises(TypeError, match="longdouble"):
        joined(np.longdouble(1), 1)


# ---- laws

unhurried = settings(deadline=None)  # machines that run tests are shared
# Operands as JAX knows them: a weak type is that of a Python number, or a NumPy number of the default width.
as_in_jax = st.sampled_from([*STRONG, *WEAK, np.int32(1), np.float32(1), np.complex64(1)])
any_operand = st.sampled_from([*STRONG, *WEAK, *(d.type(1) for d in STRONG)])


def outcome(*operands: Any) -> tuple[str, bool] | None:
    try:
        return joined(*operands)
    except TypeError:
        return None


@unhurried
@given(any_operand, any_operand)
def test_promotion_is_commutative(x: Any, y: Any):
    assert outcome(x, y) == outcome(y, x)


@unhurried
@given(st.permutations([*STRONG, *WEAK]), st.integers(1, 4))
def test_promotion_does_not_depend_on_order(operands: list[Any], n: int):
    assert outcome(*operands[:n]) == outcome(*reversed(operands[:n]))


@unhurried
@given(any_operand)
def test_promotion_is_idempotent(x: Any):
    assert outcome(x, x) == outcome(x)


def typed(result: tuple[str, bool]) -> Typed:
    return Typed(*result)


@unhurried
@given(as_in_jax, as_in_jax, as_in_jax)
def test_promotion_is_associative(x: Any, y: Any, z: Any):
    """But for integers of 64 bits with numbers of no width, as int8 and uint64 make one: docs/decisions/0019."""
    left, right = outcome(x, y), outcome(y, z)
    strong = [v for v in (x, y, z) if isinstance(v, np.dtype)]
    is_wide = not {np.dtype("int64"), np.dtype("uint64")}.isdisjoint(strong)
    if left is not None and right is not None and not (is_wide and (len(strong) < 3 or left[1] or right[1])):
        assert outcome(typed(left), z) == outcome(x, typed(right))
