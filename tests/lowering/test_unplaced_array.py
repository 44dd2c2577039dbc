"""Numbers and NumPy arrays as arrays that are on no device yet."""

import copy
import pickle

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.lowering.array import DeviceArray
from tapeless.lowering.dispatch import UnplacedArray, unplaced
from tests.lowering.processes import run_python


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.5, "Array(1.5, dtype=float32, weak_type=True)"),
        (2, "Array(2, dtype=int32, weak_type=True)"),
        (2j, "Array(0.+2.j, dtype=complex64, weak_type=True)"),
        (np.float64(0.1), "Array(0.1, dtype=float64, weak_type=True)"),
        (np.bool_(True), "Array(True, dtype=bool)"),
        (np.ones((), np.float16), "Array(1., dtype=float16)"),
        (np.arange(3, dtype=">i2"), "Array([0, 1, 2], dtype=int16)"),
    ],
)
def test_the_type_is_that_of_the_value(value: object, text: str) -> None:
    x = unplaced(value)
    assert repr(x) == text and isinstance(x, tl.Array)
    assert repr(tl.jit(lambda y: y)(x)) == repr(x + 0 if x.dtype != bool else x | False) == text


def test_an_integer_must_fit() -> None:
    with pytest.raises(OverflowError, match="4294967296 does not fit int32"):
        unplaced(2**32)


def test_it_holds_a_copy_that_nobody_can_write_to() -> None:
    given = np.ones(3, np.float32)
    x = unplaced(given)
    given[:] = 7
    assert x.tolist() == [1, 1, 1] and not np.asarray(x).flags.writeable


def test_it_behaves_as_arrays_do() -> None:
    x = unplaced(np.float32(2.0))
    assert (float(x), int(x), x.item(), x.devices(), x.is_ready()) == (2.0, 2, 2.0, {tl.devices()[0]}, True)
    assert [type(y) for y in (copy.copy(x), pickle.loads(pickle.dumps(x)))] == [DeviceArray, DeviceArray]
    assert isinstance(x.at[...].add(1), tl.Array) and float(x.block_until_ready() / np.sqrt(4.0)) == 1.0
    assert range(5)[unplaced(3)] == 3


def test_it_can_be_donated_and_deleted() -> None:
    x, y = unplaced(2.0), unplaced(2.0)
    x.delete()
    with pytest.raises(RuntimeError, match="this array has been deleted or donated"):
        float(x)
    tl.jit(lambda x: x + 1, donate_argnums=0)(y)
    assert float(unplaced(2.0)) == float(tnp.asarray(2.0)) == 2.0


def test_a_number_is_a_literal_of_programs_and_an_array_a_constant() -> None:
    number, vector = unplaced(2.0), unplaced(np.ones(3, np.float32))
    assert (
        str(tl.make_jaxpr(lambda x: x * number + vector)(tnp.ones(3)))
        == """\
{ lambda [a:f32[3]] b:f32[3]. let
    c:f32[3] = mul b 2.0:~f32
    d:f32[3] = add c a
  in d }"""
    )
    assert "residual" not in str(tl.linearize(lambda x: x * number, 1.0)[1])
    assert type(number) is UnplacedArray


def test_it_is_computed_with_on_the_device_of_the_others() -> None:
    program = """
import numpy as np, tapeless as tl, tapeless.numpy as tnp
x = tl.device_put(np.ones(3, np.float32), tl.devices()[1])
@tl.custom_vjp
def f(x):
    return tnp.sum(x)
f.defvjp(lambda x: (tnp.sum(x), (x, 1)), lambda held, ct: (ct * held[1] * held[0],))
for gradient in (tl.grad(f), tl.jit(tl.grad(f)), lambda x: tl.grad(lambda x: 2 * f(x))(x)):
    print(gradient(x), gradient(x).device)
"""
    lines = run_python(program, TAPELESS_NUM_CPU_DEVICES="2").splitlines()
    assert lines == ["[1. 1. 1.] CpuDevice(id=1)"] * 2 + ["[2. 2. 2.] CpuDevice(id=1)"]
