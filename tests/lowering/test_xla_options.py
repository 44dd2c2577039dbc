"""XLA's options that are on by default, by release of jaxlib, and what was checked of those that change values.

A test fails when jaxlib turns on an option that is not in the table, turns one off, or changes a default. Then find out
whether the option changes what programs on the CPU compute. If it does, compare random programs of many sizes with it
on and off (`python -m tests.fuzzing`), and write the row. Options of GPUs, TPUs and of dumping are left out: the first
two are not checked on the CPU, the last changes nothing.
"""

import os
import re
from typing import NamedTuple

from tapeless.lowering.compile import DEFAULTS
from tapeless.lowering.xla_workarounds.compat import jaxlib_version, xc
from tests.jaxlib_release import RELEASE

OFF = ("false", "0", "-1", '""')


class Option(NamedTuple):
    """A default, what was checked of its effect on values, and the releases that have it, from `since` to `until`."""

    default: str
    checked: str
    since: tuple[int, ...] = (0, 10)
    until: tuple[int, ...] = (99,)


YNN = "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT, LIBRARY_FUSION_TYPE_INDIVIDUAL_CONVOLUTION, LIBRARY_FUSION_TYPE_REDUCE"

# Options that change values. Ours where they are in DEFAULTS of lowering/compile.py.
VALUES = {
    "xla_allow_excess_precision": Option("true", "we turn it off: conversions round (test_narrow_formats.py)"),
    "xla_cpu_experimental_ynn_fusion_type": Option(
        YNN, "we turn it off for reductions: wrong values and crashes (test_xla_defects.py, test_large_reductions.py)"
    ),
    "xla_backend_optimization_level": Option(
        "3", "a * b + c may round once (docs/xla_defects.md); tests of `optimized`"
    ),
    "xla_cpu_use_fusion_emitters": Option(
        "true", "as the level; the tests of `optimized` and random programs (tests/fuzzing)", until=(0, 11)
    ),
    "xla_cpu_experimental_enable_tiling_propagation": Option(
        "true",
        "900 random sums and extremes of up to 1,000,003 elements, and 220 products and windows of up to 40,001 rows,"
        " compiled by 0.11.2 and 0.12.0, against NumPy",
        since=(0, 11),
    ),
    "xla_cpu_use_new_xtile_lowering": Option("true", "the same with 0.12.0: 360 sums, 100 others", since=(0, 12)),
    "xla_cpu_use_xnnpack": Option(
        "true",
        "a hundred random products of matrices of eight dtypes, of up to 513 rows, against NumPy, by each release",
    ),
    "xla_cpu_multi_thread_eigen": Option("true", "the same random products: the order of sums"),
    "xla_cpu_prefer_vector_width": Option("256", "random sums against NumPy: the order of sums"),
    "xla_reduce_window_rewrite_base_length": Option(
        "16", "cumulative sums against NumPy; window_over_one_padded_element"
    ),
    "xla_cpu_enable_platform_dependent_math": Option(
        "true", "values of functions against SciPy (tests/numpy_agreement)"
    ),
    "xla_cpu_ftz": Option("true", "subnormal numbers are taken for 0 (docs/xla_defects.md)"),
    "xla_cpu_fast_math_honor_division": Option("true", "limits fast math, which is off"),
    "xla_cpu_fast_math_honor_functions": Option("true", "limits fast math, which is off"),
    "xla_cpu_fast_math_honor_infs": Option("true", "limits fast math, which is off"),
    "xla_cpu_fast_math_honor_nans": Option("true", "limits fast math, which is off"),
    "xla_llvm_enable_alias_scope_metadata": Option("true", "promises to LLVM about buffers: random programs in loops"),
    "xla_llvm_enable_invariant_load_metadata": Option("true", "promises to LLVM about buffers: the same"),
    "xla_llvm_enable_noalias_metadata": Option("true", "promises to LLVM about buffers: the same"),
}

# Options that change how programs are compiled, started, distributed or logged.
OTHERS = {
    "xla_autotuner_preferred_backend": Option("UNSPECIFIED_BACKEND", "", since=(0, 12)),
    "xla_cmd_buffer_trace_cache_size": Option("16", ""),
    "xla_cpu_collective_call_terminate_timeout_seconds": Option("40", ""),
    "xla_cpu_collective_call_warn_stuck_seconds": Option("20", ""),
    "xla_cpu_collective_timeout_seconds": Option("1800", ""),
    "xla_cpu_experimental_xnn_graph_fusion_mode": Option("XNN_GRAPH_FUSION_MODE_DISABLED", ""),
    "xla_cpu_parallel_codegen_split_count": Option("32", ""),
    "xla_cpu_scheduler_type": Option("CPU_SCHEDULER_TYPE_DEFAULT", ""),
    "xla_debug_buffer_assignment_show_max": Option("15", ""),
    "xla_deduplicate_backend_configs_min_size": Option("9223372036854775807", "", since=(0, 11)),
    "xla_detailed_logging": Option("true", ""),
    "xla_detect_unstable_reductions": Option("DETECTION_MODE_NONE", ""),
    "xla_detect_unstable_reductions_post_optimizations": Option("DETECTION_MODE_NONE", ""),
    "xla_eliminate_hlo_implicit_broadcast": Option("true", ""),
    "xla_enable_hlo_modules_upload": Option("true", "", since=(0, 11)),
    "xla_enable_hlo_sharding_v3": Option("true", "", since=(0, 11)),
    "xla_enable_rgv3_materialization": Option("true", ""),
    "xla_enable_scoped_logging_timers": Option("true", ""),
    "xla_force_host_platform_device_count": Option("1", ""),
    "xla_llvm_force_inline_before_split": Option("true", "", until=(0, 11)),
    "xla_partitioning_algorithm": Option("PARTITIONING_ALGORITHM_NOOP", ""),
    "xla_while_loop_all_reduce_dus_code_motion_max_size_bytes": Option("10240", "", since=(0, 11)),
}


def defaults_of_this_jaxlib() -> dict[str, str]:
    """Parse the options that are on by default; the values of a repeated option are joined."""
    options = xc.CompileOptions()  # which owns what is printed
    built = options.executable_build_options
    found: dict[str, list[str]] = {}
    for name, value in re.findall(r"^(xla_\w+): (\S+)$", str(built.debug_options), re.MULTILINE):
        if not re.match("xla_(gpu|tpu|dump|enable_dumping)", name) and value not in OFF:
            found.setdefault(name, []).append(value)
    return {name: ", ".join(values) for name, values in found.items()}


def test_every_option_that_is_on_was_looked_at():
    known = {name: o.default for name, o in {**VALUES, **OTHERS}.items() if o.since <= RELEASE < o.until}
    found = defaults_of_this_jaxlib()
    names = {name for name in known | found if name not in os.environ.get("XLA_FLAGS", "")}  # which our tests set
    news = sorted(name for name in names if known.get(name) != found.get(name))
    lines = [f"  {name}: {found.get(name, 'off')}, in our table {known.get(name, 'off')}" for name in news]
    assert not news, "\n".join(
        [f"jaxlib {jaxlib_version()} has other options of XLA on by default. Read this module's first lines.", *lines]
    )


def test_options_that_we_turn_off_are_on_by_default():
    """Once XLA has them off, we need not name them."""
    ours = {name for name in DEFAULTS["cpu"] if name != "xla_disable_hlo_passes"}
    assert ours == {name for name, option in VALUES.items() if option.checked.startswith("we turn it off")}


def test_values_are_checked_and_no_option_stands_twice():
    assert all(option.checked for option in VALUES.values())
    assert not VALUES.keys() & OTHERS.keys()
