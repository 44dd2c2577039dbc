"""Where values are computed with: on the device that a user put an operand on, else on the default device.

JAX's rules, tried with JAX 0.10.2 on two devices of the CPU.
"""

from tests.lowering.processes import run_python

PRELUDE = """
import numpy as np, tapeless as tl, tapeless.numpy as tnp
from tapeless import lax
from tapeless.lowering import devices
first, second = tl.devices()
with tl.default_device(second):
    lent = tnp.ones(3)  # on the second device, and not committed to it
free, there = tnp.arange(3.0), tl.device_put(np.ones(3, np.float32), second)
def place(x):
    return x.device.id, x.committed
"""


def run(body: str) -> str:
    return run_python(PRELUDE + body, TAPELESS_NUM_CPU_DEVICES="2")


def test_operands_go_where_a_committed_one_is():
    run(
        """
assert [place(x) for x in (lent, free, there)] == [(1, False), (0, False), (1, True)]
assert place(lent + 1) == place(lent + free) == place(free + lent) == place(tl.jit(lambda x: 2 * x)(lent)) == (0, False)
with tl.default_device(second):
    assert place(free * 2) == place(tnp.zeros(2)) == (1, False)
with tl.default_device(first):
    assert place(there * 2) == (1, True)
key = tl.random.key(0)
key_there = tl.device_put(key, second)
both = tl.jit(lambda x, y: (x * y, y))
values = [
    there + free, free - there, there + np.ones(3), there * 2.5, there + tnp.sin(1.0), tnp.where(there > 0, free, 1.0),
    free.at[0].set(there[1]), tnp.concatenate([free, there]), *both(free, there), *both(there, lent),
    tl.random.normal(key_there), tl.random.split(key_there), tl.random.key_data(key_there),
    tl.random.wrap_key_data(tl.random.key_data(key_there)), tl.grad(lambda x: (x * free).sum() * x[0])(there),
    tl.grad(lambda x: (x * there).sum())(free), tl.vmap(lambda x: x + free[0])(there),
    lax.scan(lambda c, _: (c + there[0], None), free[1], None, 3)[0], lax.cond(True, lambda x: x, lambda x: -x, there),
    lax.while_loop(lambda x: x[0] < 3, lambda x: x + 1, there), tl.device_put(there), tl.device_put(free, second),
    tl.device_put(there, may_alias=False), tnp.zeros(3, device=second), next(iter(there)), there.astype(tnp.int32),
    there.copy(), tnp.linalg.svd(tnp.outer(there, free))[1],
]
assert {place(x) for x in values} == {(1, True)}, [place(x) for x in values]
np.testing.assert_array_equal(there + free, [1, 2, 3])
np.testing.assert_array_equal(tl.random.normal(key_there, (5,)), tl.random.normal(key, (5,)))
"""
    )


def test_arrays_of_two_devices_are_refused():
    message = run(
        """
here = tl.device_put(free, first)
assert place(here) == (0, True) and place(free) == (0, False)
assert here.unsafe_buffer_pointer() == free.unsafe_buffer_pointer()
for f in (lambda x, y: x + y, tl.jit(lambda x, y: x + y), lambda x, y: tnp.stack([x, y])):
    try:
        f(here, there)
    except ValueError as error:
        print(str(error).splitlines()[0])
"""
    )
    assert set(message.splitlines()) == {
        "arrays are on different devices: CpuDevice(id=0), CpuDevice(id=1). Move them with tl.device_put(x, device)."
    }


def test_memory_that_a_program_takes():
    run(
        """
double = tl.jit(lambda x: 2 * x, donate_argnums=0)
again = tl.device_put(there, second)
assert again is there and place(double(there)) == (1, True) and there.is_deleted()
with tl.default_device(second):
    assert place(double(free)) == (1, False) and free.tolist() == [0, 1, 2]  # what was moved is what it took
"""
    )


def test_another_platform_after_calls_of_one():
    """Calls with arrays of known types go to the program at once, while there is one device."""
    run_python(
        """
import numpy as np, tapeless as tl, tapeless.numpy as tnp
from tapeless.lowering import devices
double = tl.jit(lambda x: 2 * x)
x = tnp.arange(3.0)
assert double(x).device is double(x).device is tl.devices()[0] and devices.only_one()
devices._clients["other"] = devices._cpu_client
(other,) = tl.devices("other")
y = tl.device_put(x, other)
assert double(y).device is other and double(y).committed and double(x).device is tl.devices()[0]
assert (x + y).device is other and (x + y).tolist() == [0, 2, 4]
"""
    )
