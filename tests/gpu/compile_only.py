"""Compile every primitive's samples and the tier's programs for a GPU that is not there.

    python -m tests.gpu.compile_only [NAME ..]

Needs the two packages of the CUDA plugin, no driver and no device. Shows that the compiler accepts the modules that we
emit for a GPU; not that they run, nor what they compute.
"""

import functools
import importlib
import itertools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import tapeless as tl
from tapeless.lowering import compile, devices, emit
from tapeless.lowering.compat import xc
from tapeless.tracer.check import check
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import aval_of
from tests.gpu import test_primitives, test_programs
from tests.lowering import test_memories
from tests.test_primitives import rows_by_primitive

H200 = """gpu_device_info { cuda_compute_capability { major: 9 } threads_per_block_limit: 1024 threads_per_warp: 32
shared_memory_per_block: 49152 shared_memory_per_core: 233472 threads_per_core_limit: 2048 core_count: 132
fpus_per_core: 128 block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
memory_bandwidth: 4800000000000 l2_cache_size: 52428800 clock_rate_ghz: 1.98 device_memory_size: 150000000000
shared_memory_per_block_optin: 232448 registers_per_core_limit: 65536 registers_per_block_limit: 65536 }
platform_name: "CUDA" dnn_version_info { major: 9 minor: 12 } runtime_version { major: 13 }
device_description_str: "NVIDIA H200" """


@functools.cache
def device() -> Any:
    """A device that programs can be compiled for, and not run on."""
    plugin = devices._cuda_plugin()
    api = xc.load_pjrt_plugin_dynamically("cuda", str(devices._folder(plugin) / "xla_cuda_plugin.so"))
    xc.initialize_pjrt_plugin("cuda")
    major = plugin.name[-2:]
    devices._register_cuda_kernels(api, importlib.import_module(f"jax_cuda{major}_plugin.cuda_plugin_extension"))
    topology = xc.make_c_api_device_topology(api, "", target_config=H200, topology="1x1x1")
    return topology._make_compile_only_devices()[0]


def compile_for_gpu(f: Callable[..., Any], args: list[Any]) -> None:
    """Raise whatever the lowering or the compiler finds wrong."""
    jaxpr, _ = trace_to_jaxpr(lambda *xs: tl.tree.leaves(f(*xs)), [aval_of(x) for x in args])
    options = xc.CompileOptions()
    ours = {**compile.DEFAULTS["gpu"], "xla_gpu_autotune_level": 0}  # there is nothing to tune on
    options.env_option_overrides = list(ours.items())
    module = compile.parse(emit.module(check(jaxpr), platform="gpu").text)
    device().client.compile(module, xc.DeviceList((device(),)), options)


def programs() -> Iterator[tuple[str, Callable[..., Any], list[Any]]]:
    for name, rows in rows_by_primitive().items():
        if name not in test_primitives.CPU_ONLY:
            yield (name, *test_primitives.program(rows))
    for f in test_programs.PROGRAMS:
        for how, transform in test_programs.TRANSFORMATIONS.items():
            yield f"{f.__name__}, {how}", transform(f), [test_programs.W, test_programs.X]
    for f, how in itertools.product(test_memories.PROGRAMS, test_memories.TRANSFORMATIONS):
        yield f"offloading, {f.__name__}, {how}", test_memories.TRANSFORMATIONS[how](f), [test_memories.W] * 2


def main() -> None:
    chosen, failed, count = sys.argv[1:], 0, 0
    for name, f, args in programs():
        if chosen and name not in chosen:
            continue
        count += 1
        try:
            compile_for_gpu(f, args)
        except Exception as error:
            failed += 1
            print(f"{name}: {type(error).__name__}: {str(error)[:600]}", flush=True)
    print(f"{count - failed} of {count} programs compile for an H200")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
