"""Compile every primitive's samples and the GPU tier's programs for a device that is not there.

    python -m tests.compile_only gpu|tpu [NAME ..]

Needs the two packages of the CUDA plugin, or libtpu; no driver and no device. Shows that the compiler accepts the
modules that we emit; not that they run, nor what they compute. A program that we refuse for the platform is counted
apart.
"""

import functools
import importlib
import itertools
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import tapeless as tl
from tapeless.lowering import compile, devices, emit
from tapeless.lowering.xla_workarounds.compat import xc
from tapeless.tracer.check import check
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import aval_of
from tests.gpu import test_primitives, test_programs
from tests.lowering.xla_workarounds import test_memories
from tests.test_primitives import rows_by_primitive

H200 = """gpu_device_info { cuda_compute_capability { major: 9 } threads_per_block_limit: 1024 threads_per_warp: 32
shared_memory_per_block: 49152 shared_memory_per_core: 233472 threads_per_core_limit: 2048 core_count: 132
fpus_per_core: 128 block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
memory_bandwidth: 4800000000000 l2_cache_size: 52428800 clock_rate_ghz: 1.98 device_memory_size: 150000000000
shared_memory_per_block_optin: 232448 registers_per_core_limit: 65536 registers_per_block_limit: 65536 }
platform_name: "CUDA" dnn_version_info { major: 9 minor: 12 } runtime_version { major: 13 }
device_description_str: "NVIDIA H200" """
OPTIONS: dict[str, dict[str, Any]] = {"gpu": {"xla_gpu_autotune_level": 0}, "tpu": {}}  # there is nothing to tune on
FOR_TPU = {
    "TPU_SKIP_MDS_QUERY": "1",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_WORKER_HOSTNAMES": "localhost",
}


@functools.cache
def device(platform: str) -> Any:
    """A device that programs can be compiled for, and not run on."""
    topology = {"gpu": _h200, "tpu": _tpu_v5e}[platform]()
    return topology._make_compile_only_devices()[0]


def _h200() -> Any:
    plugin = devices._cuda_plugin()
    api = xc.load_pjrt_plugin_dynamically("cuda", str(devices._folder(plugin) / "xla_cuda_plugin.so"))
    xc.initialize_pjrt_plugin("cuda")
    major = plugin.name[-2:]
    devices._register_cuda_kernels(api, importlib.import_module(f"jax_cuda{major}_plugin.cuda_plugin_extension"))
    return xc.make_c_api_device_topology(api, "", target_config=H200, topology="1x1x1")


def _tpu_v5e() -> Any:
    os.environ.update(FOR_TPU)
    api = xc.load_pjrt_plugin_dynamically("tpu", importlib.import_module("libtpu").get_library_path())
    xc.initialize_pjrt_plugin("tpu")
    return xc.make_c_api_device_topology(api, "v5e:2x2")


def compile_for(platform: str, f: Callable[..., Any], args: list[Any]) -> Any:
    """Compile a function, with the options that users' programs have. Raises whatever lowering or compiling raises."""
    jaxpr, _ = trace_to_jaxpr(lambda *xs: tl.tree.leaves(f(*xs)), [aval_of(x) for x in args])
    options = xc.CompileOptions()
    options.env_option_overrides = list({**compile.DEFAULTS[platform], **OPTIONS[platform]}.items())
    module = compile.parse(emit.module(check(jaxpr), platform=platform).text)
    target = device(platform)
    return target.client.compile(module, xc.DeviceList((target,)), options)


def programs() -> Iterator[tuple[str, Callable[..., Any], list[Any]]]:
    for name, rows in rows_by_primitive().items():
        yield (name, *test_primitives.program(rows))
    for f in test_programs.PROGRAMS:
        for how, transform in test_programs.TRANSFORMATIONS.items():
            yield f"{f.__name__}, {how}", transform(f), [test_programs.W, test_programs.X]
    for f, how in itertools.product(test_memories.PROGRAMS, test_memories.TRANSFORMATIONS):
        yield f"offloading, {f.__name__}, {how}", test_memories.TRANSFORMATIONS[how](f), [test_memories.W] * 2


def outcome(platform: str, name: str, f: Callable[..., Any], args: list[Any]) -> str:
    """Compile a program; print the compiler's error, if there is one."""
    try:
        compile_for(platform, f, args)
    except NotImplementedError as error:
        print(f"{name}: refused: {str(error).splitlines()[0]}", flush=True)
        return "refused"
    except Exception as error:
        print(f"{name}: {type(error).__name__}: {str(error)[:600]}", flush=True)
        return "failed"
    return "compiled"


def main() -> None:
    platform, *chosen = sys.argv[1:]
    found = [outcome(platform, *each) for each in programs() if not chosen or each[0] in chosen]
    counts = Counter(found)
    print(f"{counts['compiled']} of {len(found)} programs compile for a {platform}, {counts['refused']} are refused")
    sys.exit(counts["failed"] > 0)


if __name__ == "__main__":
    main()
