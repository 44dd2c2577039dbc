"""Compiling, calling, donating, and what is said when it goes wrong."""

import gc
import re
import threading

import numpy as np
import pytest

from tapeless.lowering import compile as compiling
from tapeless.lowering import devices
from tapeless.lowering.array import DeviceArray, device_put
from tapeless.lowering.compile import DEFAULTS, Executable, clean_message, compile_module, compile_options
from tapeless.lowering.xla_workarounds import uninterrupted
from tapeless.tracer.settings.config import config
from tapeless.tracer.types import ShapedArray

F64 = ShapedArray((3,), "float64")


def unary(op: str, aval: ShapedArray = F64, argument: str = "") -> str:
    element = {"float64": "f64", "float32": "f32", "int32": "i32"}[aval.dtype.name]
    kind = f"tensor<{'x'.join([*map(str, aval.shape), element])}>"
    return f"func.func public @main(%a: {kind} {argument}) -> {kind} {{\n %0 = {op} : {kind}\n return %0 : {kind} }}"


def compiled(text: str, *avals: ShapedArray, **keywords: object) -> Executable:
    avals = avals or (F64,)
    device = devices.devices("cpu")[0]
    return compile_module(text, in_avals=avals, out_avals=avals[:1], device=device, use_cache=False, **keywords)


@pytest.fixture(scope="module")
def double() -> Executable:
    return compiled(unary("stablehlo.add %a, %a"))


def test_call(double: Executable):
    x = device_put(np.arange(3.0))
    for (y,) in (double.call([x.buf]), double(x)):
        assert type(y) is DeviceArray and y.aval is F64 and y.device is double.device
        assert y.tolist() == [0, 2, 4]


def test_results_carry_weak_types():
    aval = ShapedArray((), "float32", True)
    program = compiled(unary("stablehlo.negate %a", aval), aval)
    assert program(device_put(np.float32(2)))[0].aval is aval


def test_no_arguments_and_no_results():
    device = devices.devices("cpu")[0]
    program = compile_module("func.func public @main() { return }", out_avals=[], device=device)
    assert program() == program.call([]) == []


def test_calls_from_many_threads(double: Executable):
    wrong: list[float] = []

    def work(i: float) -> None:
        for _ in range(100):
            (y,) = double(device_put(np.full(3, i)))
            wrong.extend(v for v in y.tolist() if v != 2 * i)

    threads = [threading.Thread(target=work, args=(float(i),)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# ---- what calls are checked for


def test_arguments_of_the_same_size_and_another_dtype(double: Executable):
    with pytest.raises(TypeError, match=r"argument 0 is int64\[3\], the program was compiled for float64\[3\]"):
        double(device_put(np.arange(3)))


def test_arguments_of_another_shape(double: Executable):
    with pytest.raises(TypeError, match=r"argument 0 is float64\[3,1\], the program was compiled for float64\[3\]"):
        double(device_put(np.zeros((3, 1))))


def test_the_number_of_arguments(double: Executable):
    with pytest.raises(TypeError, match=r"a compiled program of 1 array\(s\) was called with 2"):
        double(device_put(np.ones(3)), device_put(np.ones(3)))


def test_arguments_that_are_no_arrays(double: Executable):
    with pytest.raises(TypeError, match="argument 0 of a compiled program is no array on a device, but ndarray"):
        double(np.ones(3))


@pytest.mark.parametrize("delete", [lambda x: x.delete(), lambda x: x.buf.delete()])
def test_deleted_arguments(double: Executable, delete: object):
    x = device_put(np.ones(3))
    delete(x)
    for call in (lambda: double(x), lambda: double.call([x.buf])):
        with pytest.raises(RuntimeError, match=r"argument 0 has been deleted or donated: float64\[3\]"):
            call()


# ---- donation

DONATING = unary("stablehlo.add %a, %a", argument="{jax.buffer_donor = true}")


def test_donation_reuses_the_memory():
    program = compiled(DONATING)
    assert program.memory_analysis().alias_size_in_bytes == 24
    x = device_put(np.arange(3.0))
    address = x.unsafe_buffer_pointer()
    (y,) = program(x)
    assert x.is_deleted() and y.unsafe_buffer_pointer() == address and y.tolist() == [0, 2, 4]
    with pytest.raises(RuntimeError, match="argument 0 has been deleted or donated"):
        program.call([x.buf])


def test_what_numpy_sees_is_not_reused():
    x = device_put(np.arange(3.0))
    view = np.asarray(x)
    (y,) = compiled(DONATING)(x)
    assert view.tolist() == [0, 1, 2] and y.tolist() == [0, 2, 4]


def test_what_another_library_shares_is_not_reused():
    x = device_put(np.arange(3.0))
    shared = np.from_dlpack(x)
    (y,) = compiled(DONATING)(x)
    x.delete()
    del x
    gc.collect()
    assert shared.tolist() == [0, 1, 2] and y.tolist() == [0, 2, 4]


# ---- what it is


def test_analyses(double: Executable):
    memory = double.memory_analysis()
    assert (memory.argument_size_in_bytes, memory.output_size_in_bytes, memory.alias_size_in_bytes) == (24, 24, 0)
    assert memory.temp_size_in_bytes == 0 and memory.generated_code_size_in_bytes >= 0
    assert memory.peak_memory_in_bytes is None or memory.peak_memory_in_bytes >= 0
    assert double.cost_analysis()["flops"] == 3
    assert double.as_text().startswith("HloModule") and len(double.serialize()) > 100


# ---- errors


def test_errors_say_what_and_where_and_no_more():
    text = '#loc0 = loc("model.py":42:7)\n' + unary("stablehlo.add %a, %a").replace(
        "f64>\n return", "f64> loc(#loc0)\n return"
    ).replace("-> tensor<3xf64>", "-> tensor<3xf32>", 1)
    with pytest.raises(RuntimeError) as caught:
        compiled(text)
    assert "type of return operand 0 ('tensor<3xf64>') doesn't match" in str(caught.value)
    assert "Failed to parse using StableHLO" not in str(caught.value)


def test_unknown_custom_calls():
    with pytest.raises(RuntimeError, match="No registered implementation for untyped custom call to nobody"):
        compiled(
            unary("stablehlo.custom_call @nobody(%a)").replace(
                ": tensor<3xf64>\n", ": (tensor<3xf64>) -> tensor<3xf64>\n"
            )
        )


def test_clean_message():
    noise = "<unknown>:0: error: Failed to parse using StableHLO v1.17.0, this could indicate anything.\n"
    assert clean_message(f"UNKNOWN: -:1:2: error: no\n{noise}") == "UNKNOWN: -:1:2: error: no"
    assert clean_message("no") == "no"


# ---- options


def overrides(options: object) -> dict[str, object]:
    return dict(options.env_option_overrides)


def test_options_arrive():
    plain, given = (
        compiled(unary("stablehlo.add %a, %a"), options=o) for o in ({}, {"xla_backend_optimization_level": 0})
    )
    x = device_put(np.ones(3))
    assert plain(x)[0].tolist() == given(x)[0].tolist() == [2, 2, 2]


@pytest.mark.parametrize("value", [True, "true", "True", False, "false"])
def test_booleans_may_be_words(value: object):
    compiled(unary("stablehlo.add %a, %a"), options={"xla_cpu_enable_fast_math": value})


def test_an_unknown_option():
    with pytest.raises(ValueError, match=r"compiler_options: XLA \(jaxlib .*\) has no option 'xla_make_it_fast'"):
        compiled(unary("stablehlo.add %a, %a"), options={"xla_make_it_fast": True})


def test_a_refused_value():
    with pytest.raises(ValueError, match="compiler_options: XLA refuses xla_cpu_enable_fast_math = 'perhaps'"):
        compiled(unary("stablehlo.add %a, %a"), options={"xla_cpu_enable_fast_math": "perhaps"})


def test_defaults_and_who_goes_before_them(monkeypatch: pytest.MonkeyPatch):
    cpu = devices.devices("cpu")[0]
    assert overrides(compile_options(cpu, {})) == DEFAULTS["cpu"]
    assert overrides(compile_options(cpu, {"xla_disable_hlo_passes": "dce"}))["xla_disable_hlo_passes"] == "dce"
    monkeypatch.setenv("XLA_FLAGS", "--xla_disable_hlo_passes=dce")
    assert "xla_disable_hlo_passes" not in overrides(compile_options(cpu, {}))


def test_a_default_that_this_jaxlib_does_not_know(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(DEFAULTS, "cpu", {**DEFAULTS["cpu"], "xla_of_days_gone_by": True})
    monkeypatch.setattr(compiling, "_unknown_defaults", set())
    assert compiled(unary("stablehlo.add %a, %a"))(device_put(np.ones(3)))[0].tolist() == [2, 2, 2]
    assert compiling._unknown_defaults == {"xla_of_days_gone_by"}


BARRIER = """
func.func public @main(%x: MATRIX) -> MATRIX {
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (MATRIX, MATRIX) -> MATRIX
  %1 = stablehlo.sine %0 : MATRIX
  %b = stablehlo.optimization_barrier %x : MATRIX
  %2 = stablehlo.dot_general %b, %b, contracting_dims = [1] x [0] : (MATRIX, MATRIX) -> MATRIX
  %3 = stablehlo.add %1, %2 : MATRIX
  return %3 : MATRIX
}""".replace("MATRIX", "tensor<64x64xf32>")


def test_recomputation_behind_a_barrier_stays():
    aval = ShapedArray((64, 64), "float32")
    assert compiled(BARRIER, aval).as_text().count(" dot(") == 2


LOOP = """
func.func public @main(%x: tensor<{n}xf32>) -> tensor<{n}xf32> {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %end = stablehlo.constant dense<{n}> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %b = %x) : tensor<i32>, tensor<{n}xf32>
  cond {{
    %p = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    %v = stablehlo.dynamic_slice %b, %i, sizes = [1] : (tensor<{n}xf32>, tensor<i32>) -> tensor<1xf32>
    %s = stablehlo.sine %v : tensor<1xf32>
    %u = stablehlo.dynamic_update_slice %b, %s, %i : (tensor<{n}xf32>, tensor<1xf32>, tensor<i32>) -> tensor<{n}xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %u : tensor<i32>, tensor<{n}xf32>
  }}
  return %r#1 : tensor<{n}xf32>
}}"""


def test_a_loop_that_writes_one_element_copies_none():
    aval = ShapedArray((1000,), "float32")
    text = compiled(LOOP.format(n=1000), aval).as_text()
    body = text[: text.index("ENTRY")]
    assert "f32[1000]{0} copy(" not in body


# ---- callbacks

CALLBACK = """
func.func public @main(%a: tensor<3xf64>) -> tensor<3xf64> {
  %0 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%a) {api_version = 4 : i32, has_side_effect = true,
       backend_config = {index = 0 : ui64}} : (tensor<3xf64>) -> tensor<3xf64>
  return %0 : tensor<3xf64>
}"""


def test_callbacks():
    program = compiled(CALLBACK, callbacks=[lambda x: (np.sin(x),)])
    assert np.allclose(np.asarray(program(device_put(np.arange(3.0)))[0]), np.sin(np.arange(3.0)))


def test_long_compilations_are_told_of(monkeypatch, caplog):
    monkeypatch.setattr(uninterrupted, "LATE", 0.0)
    compiled(unary("stablehlo.sine %a"))
    (told,) = caplog.messages
    text = (
        r"Compiling a module for CpuDevice\(id=0\) since \d\d:\d\d:\d\d\. \(config.progress = False silences this\.\)"
    )
    assert re.fullmatch(text, told)
    with config.scope(progress=False):
        compiled(unary("stablehlo.sine %a"))
    assert caplog.messages == [told]
