"""Platforms, devices, the default device, and living beside jax and fork."""

import importlib.util
import pickle
import threading

import pytest

from tapeless.lowering import devices
from tapeless.tracer.settings.config import config
from tests.lowering.processes import run_python
from tests.messages import raises

needs_jax = pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="jax is not installed")

COMPUTE = """
import numpy as np
from tapeless.lowering import devices
from tapeless.lowering.array import device_put
from tapeless.lowering.compile import compile_module
from tapeless.tracer.types import ShapedArray
def double(x, device=None):
    text = "func.func public @main(%a: tensor<3xf64>) -> tensor<3xf64> {" \
           " %0 = stablehlo.add %a, %a : tensor<3xf64>\\n return %0 : tensor<3xf64> }"
    device = device or devices.current_device()
    program = compile_module(text, out_avals=[ShapedArray((3,), "float64")], device=device)
    return program(device_put(x, device))[0]
"""


def test_the_cpu_is_one_device():
    (device,) = devices.devices("cpu")
    assert repr(device) == "CpuDevice(id=0)"
    assert (device.id, device.platform, device.device_kind, device.process_index) == (0, "cpu", "cpu", 0)
    assert devices.devices("cpu") == devices.local_devices(backend="cpu") == devices.local_devices(0, "cpu")
    assert devices.devices(backend="cpu") == [device] and devices.device_count(backend="cpu") == 1
    with raises(ValueError, "local_devices: no device of 'cpu' belongs to process_index=7."):
        devices.local_devices(7, "cpu")
    assert devices.device_count("cpu") == 1


def test_a_device_is_one_object():
    (device,) = devices.devices("cpu")
    assert devices.devices("cpu")[0] is device
    assert devices.device_of_handle(device.handle) is device
    assert pickle.loads(pickle.dumps(device)) is device


def test_an_unknown_platform():
    with pytest.raises(RuntimeError, match="there is no platform 'abacus'; there are cpu, cuda, tpu, gpu"):
        devices.devices("abacus")


def test_a_platform_that_is_not_here():
    if devices._has_tpu():
        pytest.skip("there is a TPU")
    with pytest.raises(RuntimeError, match="there is no TPU here"):
        devices.devices("tpu")


def test_many_cpu_devices_and_the_default_one():
    printed = run_python(
        COMPUTE
        + """
from tapeless.lowering.devices import default_device, set_default_device, current_device
one, two, three, four = devices.devices()
assert devices.device_count() == 4 and not devices.only_one() and current_device() is one
with default_device(three) as used:
    assert used is current_device() is three
    assert double(np.ones(3)).device is three
    with default_device("cpu"):
        assert current_device() is one
    with default_device(None):
        assert current_device() is one
set_default_device(two)
assert current_device() is two and device_put(1.0).devices() == {two}
with default_device(four):
    assert double(np.ones(3), two).device is two
set_default_device(None)
assert current_device() is one
x = device_put(np.arange(3.0), two)
y = device_put(x, four)
assert y.device is four and x.device is two and y.tolist() == x.tolist() == [0, 1, 2]
program = compile_module(
    "func.func public @main(%a: tensor<3xf64>) -> tensor<3xf64> { return %a : tensor<3xf64> }",
    out_avals=[x.aval], device=four)
try:
    program(x)
except ValueError as error:
    print(error)
""",
        TAPELESS_NUM_CPU_DEVICES="4",
    )
    assert printed == "argument 0 is on CpuDevice(id=1), the program was compiled for CpuDevice(id=3)."


def test_the_default_device_of_a_block_is_that_threads_own():
    (device,) = devices.devices("cpu")
    seen = []
    with devices.default_device(device):
        thread = threading.Thread(target=lambda: seen.append(devices._default.__get__(None)))
        thread.start()
        thread.join()
        assert devices._default.__get__(None) is device
    assert seen == [None]


def test_the_default_device_must_be_a_device():
    with pytest.raises(TypeError, match="a device or the name of a platform is expected, not 3 of type int"):
        devices.set_default_device(3)


def test_config_cpu_devices():
    program = """
import tapeless as tl
tl.config_cpu_devices(3)
assert len(tl.devices("cpu")) == 3
tl.config_cpu_devices(3)
try:
    tl.config_cpu_devices(2)
except RuntimeError as error:
    print(error)
"""
    assert run_python(program).startswith("config_cpu_devices(2): the CPU is in use, as 3 device(s).")
    program = """
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
import tapeless as tl
found = [len(tl.devices("cpu"))] if tl.config.num_cpu_devices == -1 else []
print(*found, tl.config.jax_num_cpu_devices)
"""
    assert run_python(program).split() == ["2", "-1"]
    for n in (0, "2", 1.5, True):
        with pytest.raises(ValueError, match=r"config\.num_cpu_devices must be a positive integer"):
            config.update("num_cpu_devices", n)
    with pytest.raises(ValueError, match="at least one device, not 0"):
        devices.config_cpu_devices(0)


def test_the_platform_can_be_asked_for():
    program = "from tapeless.lowering import devices; print(devices.default_backend())"
    assert run_python(program, TAPELESS_PLATFORM="cpu") == "cpu"


def test_importing_makes_no_client():
    assert (
        run_python("import tapeless.lowering.compile; from tapeless.lowering import devices; print(devices._found)")
        == "{}"
    )


# ---- fork


def test_fork_warns_once_there_are_threads_to_lose():
    program = """
import os, sys, warnings
from tapeless.lowering import devices
def fork():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
    return [f"{w.filename}:{w.lineno}: {w.message}" for w in caught if w.category is RuntimeWarning]
assert fork() == []
devices.devices()
print(*fork())
"""
    assert "<string>:7: os.fork() after Tapeless was used" in run_python(program)


def test_fork_before_first_use_works():
    program = (
        COMPUTE
        + """
import os
pid = os.fork()
if pid == 0:
    print(double(np.arange(3.0)).tolist(), flush=True)
    os._exit(0)
print(os.waitpid(pid, 0)[1], double(np.arange(3.0)).tolist())
"""
    )
    assert run_python(program).splitlines() == ["[0.0, 2.0, 4.0]", "0 [0.0, 2.0, 4.0]"]


# ---- jax in the same process


@needs_jax
def test_jax_is_never_imported():
    program = """
import copy, sys
y = double(np.arange(3.0))
copy.copy(y), list(y), repr(y), np.from_dlpack(y), y.unsafe_buffer_pointer()
y.block_until_ready(), y.is_ready(), y.delete()
print("jax" in sys.modules)
"""
    assert run_python(COMPUTE + program) == "False"


@needs_jax
@pytest.mark.parametrize("first", ["jax", "tapeless"])
def test_jax_in_the_same_process(first: str):
    ours = COMPUTE + "assert double(np.array([0.1, 1, 2])).tolist() == [0.2, 2, 4]\n"
    jaxs = """
import numpy as np, jax, jax.numpy as jnp, warnings
warnings.simplefilter("ignore")
assert jax.jit(lambda x: x + 1)(np.ones(3)).dtype == np.float32
assert jnp.asarray(np.ones(3)).dtype == np.float32
"""
    halves = [jaxs, ours] if first == "jax" else [ours, jaxs]
    print_both = (
        "print(device_put(np.float64(0.1)).dtype, device_put(2**40 + np.arange(1)).tolist(), jnp.ones(2).dtype)"
    )
    both = "".join([*halves, *halves, print_both])
    assert run_python(both, JAX_PLATFORMS="cpu") == f"float64 [{2**40}] float32"


def test_a_plugin_without_a_driver_is_refused_before_it_is_loaded(monkeypatch: pytest.MonkeyPatch):
    """Loading it would print the plugin's own lines on stderr; without it being asked for, the CPU is used."""
    monkeypatch.setattr(devices, "_cuda_plugin", lambda: object())
    monkeypatch.setattr(devices, "_DRIVER_NODES", ("/dev/no_such_node",))
    assert not devices._has_cuda()
    with pytest.raises(RuntimeError) as raised:
        devices._cuda_client()
    assert str(raised.value) == "there is a CUDA plugin and no GPU: none of /dev/no_such_node is there."
