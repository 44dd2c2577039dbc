"""Every program built while tests run is type-checked; nothing is read from or left in the user's cache."""

import gc
import importlib
import os
from importlib.metadata import version

os.environ.setdefault("TAPELESS_PLATFORM", "cpu")  # where there is a GPU, too: tests/gpu asks for it
os.environ["TAPELESS_CACHE"] = "0"  # tests of the cache make their own
# Programs are compiled to run once, so without LLVM's dear passes and without the emitters of fusions, which take half
# of the time of compiling, and as one piece; but for tests that use the fixture `optimized`. `XLA_FLAGS= python -m
# pytest` compiles all of them as users do.
# From 0.11 on the emitters are not optional, and an unknown flag ends the process.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true "
    "--xla_cpu_parallel_codegen_split_count=1 "
    + "--xla_cpu_use_fusion_emitters=false"
    * version("jaxlib").startswith("0.10."),
)

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from tapeless.compile.jit import clear_caches, jit
from tapeless.interpreters import partial_eval, transpose
from tapeless.lowering import compile
from tapeless.tracer.jaxpr import Jaxpr
from tapeless.tracer.settings.config import config
from tests import dense_zeros, one_context, recent_programs

config.update("check_programs", True)


def pytest_collection_finish() -> None:
    """The tests themselves, of which there are thousands, are not searched for garbage again and again.

    What they compute is, but seldom: next to nothing of it is left in cycles.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)


@pytest.fixture(autouse=True, scope="module")
def frozen() -> None:
    """What the modules before have left, in caches most of it, is not searched again by whoever collects garbage.

    In a process that has run thousands of tests a search takes seconds, and tests of memory ask for a hundred.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module")
def optimized() -> Iterator[None]:
    """Programs are compiled as users compile them: what is promised bit for bit is promised of these."""
    jit(lambda x: x)(0.0)  # XLA reads the flags that other tests need once, when it compiles first
    full = {
        "xla_backend_optimization_level": 3,
        "xla_llvm_disable_expensive_passes": False,
        "xla_cpu_use_fusion_emitters": True,
        "xla_cpu_parallel_codegen_split_count": 32,
    }
    with pytest.MonkeyPatch.context() as patched:
        patched.delenv("XLA_FLAGS", raising=False)  # what it names is not set
        patched.setitem(compile.DEFAULTS, "cpu", {**compile.DEFAULTS["cpu"], **full})
        clear_caches()  # some programs would be taken again
        yield
    clear_caches()  # so would these by the tests to come


@pytest.fixture(scope="module")
def eager_by_steps() -> Iterator[None]:
    """Eager operations are computed by the oracle, and all of them by XLA after the last test: see `eager_steps`.

    It is imported here, as the oracle imports SciPy, which takes most tests' time to begin.
    """
    with importlib.import_module("tests.eager_steps").by_steps():
        yield


@pytest.fixture
def rng() -> np.random.Generator:
    """A test's own generator of random numbers, so that no test depends on which others ran before."""
    return np.random.default_rng(0)


@pytest.fixture(autouse=True, scope="session")
def no_dense_zeros() -> Iterator[None]:
    """Every linear jaxpr that is built while tests run, transposed ones among them, is given to `dense_zeros`."""
    with pytest.MonkeyPatch.context() as patched:
        for module in (transpose, partial_eval):
            patched.setattr(module, "checked_linear", partial(_without_faults, module.checked_linear))
        yield


@pytest.fixture(autouse=True, scope="session")
def one_mlir_context() -> Iterator[None]:
    """All modules of a process are parsed in one context: see `one_context`."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(compile, "call_uninterrupted", partial(one_context.compiling, compile.call_uninterrupted))
        yield


@pytest.fixture(autouse=True, scope="session")
def compiled_once() -> Iterator[None]:
    """Programs that were compiled a short while ago are taken again: see `recent_programs`."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(compile, "_compile", partial(recent_programs.compiling, compile._compile))
        yield


def _without_faults(checked_linear: Callable[..., Jaxpr], *args: Any) -> Jaxpr:
    return dense_zeros.check(checked_linear(*args))
