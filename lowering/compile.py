"""Compilation of StableHLO modules by XLA, and executables.

`compile_module` returns an `Executable`. Its `call` is the fast path, for callers who know the types of the buffers;
calling the object checks them first, because XLA compares sizes in bytes and nothing else.
"""

import importlib
import itertools
import os
import re
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np

from tapeless.lowering import host, memory_errors
from tapeless.lowering.argument_errors import DeletedArgument, SharedArgument
from tapeless.lowering.array import DeviceArray
from tapeless.lowering.compilation_cache import default_cache, program_key
from tapeless.lowering.devices import Device
from tapeless.lowering.key_array import KeyArray
from tapeless.lowering.xla_workarounds import compat, forking
from tapeless.lowering.xla_workarounds.barriers_in_loops import has_barrier_in_loop
from tapeless.lowering.xla_workarounds.compat import xc
from tapeless.lowering.xla_workarounds.uninterrupted import call_uninterrupted
from tapeless.tracer import dtypes
from tapeless.tracer.errors import InternalError
from tapeless.tracer.jaxpr import Jaxpr
from tapeless.tracer.settings import logs
from tapeless.tracer.settings.config import config
from tapeless.tracer.types import ShapedArray, holds_keys, physical

Options = Mapping[str, Any]

# XLA leaves out conversions to a narrower type and back by default; on the CPU, those that it has added itself. Then
# `x.astype(bfloat16).astype(float32)` does not round on GPUs, quantized values are not quantized, and programs of
# narrow types have other values compiled than step by step.
_ROUNDED: dict[str, Any] = {"xla_allow_excess_precision": False}
# Our defaults where they differ from XLA's. What the user sets, by `options` or in XLA_FLAGS, has precedence. Never add
# xla_cpu_copy_insertion_use_region_analysis, which miscompiles nested loops (docs/decisions/0008).
DEFAULTS: dict[str, dict[str, Any]] = {
    "cpu": {
        # This pass merges values that an optimization barrier keeps apart, and so the recomputation of `checkpoint`.
        # The other writes reductions as windows, which take two to five times as long as the steps of ours.
        "xla_disable_hlo_passes": "cse_barrier_expander,tree_reduction_rewriter",
        # XLA gives operations to a library (YNN): products and convolutions, and by default reductions, too, with what
        # is before them. With these, values are wrong, and jaxlib 0.10.2 ends the process: docs/xla_defects.md.
        "xla_cpu_experimental_ynn_fusion_type": "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT,"
        "LIBRARY_FUSION_TYPE_INDIVIDUAL_CONVOLUTION",
        **_ROUNDED,
    },
    "gpu": _ROUNDED,
    "tpu": _ROUNDED,
}
# Our defaults for modules with a barrier in a loop, or with one of the words below: XLA compiles a small loop to one
# kernel on the CPU. It ends the process if a barrier is in the loop (jaxlib 0.10.2 to 0.11.2), and errs in conversions
# to these formats: see docs/xla_defects.md.
SEPARATE_KERNELS: dict[str, dict[str, Any]] = {
    "cpu": {"xla_disable_hlo_passes": "cse_barrier_expander,tree_reduction_rewriter,small-while-loop-hoisting"}
}
_NEED_SEPARATE_KERNELS = ("f4E2M1FN", "FNUZ")
# Options of one backend, which XLA takes as texts and ignores if they are unknown.
EXTRA: dict[str, dict[str, str]] = {
    # Loops whose steps touch fewer bytes become one kernel. XLA's default is 1,024, which gradients and tangents of a
    # few elements exceed; then each of their operations is dispatched by itself. The gradient of 2,000 steps of a
    # double pendulum, which stacks a hundred residuals, takes 1.2 ms in place of 44. Loops with products of matrices,
    # or of more bytes, gain nothing and lose nothing by a larger number.
    "cpu": {"xla_cpu_small_while_loop_byte_threshold": "65536"}
}
_unknown_defaults: set[str] = set()  # options of DEFAULTS that this jaxlib does not have


def compile_module(
    text: str | bytes,
    *,
    out_avals: Sequence[ShapedArray],
    device: Device,
    in_avals: Sequence[ShapedArray] | None = None,
    options: Options | None = None,
    callbacks: Sequence[Callable[..., Any]] = (),
    use_cache: bool = True,
) -> "Executable":
    """Compile a StableHLO module for one device, or find it in the cache on disk.

    Args:
      text: the module, with a public `@main`.
      out_avals: types of the results.
      device: where the program will run.
      in_avals: types of the arguments, for calls that check them.
      options: XLA's compiler options by name, such as {"xla_cpu_enable_fast_math": True}.
      callbacks: functions on the host, which the module refers to by index.
      use_cache: whether to read the cache on disk, and to write the result to it.
    Raises: ValueError for an option unknown to XLA or a value that it refuses; XlaRuntimeError, a
      RuntimeError, for a module that it refuses.
    """
    forking.check()
    given = {} if options is None else {name: _option_value(value) for name, value in options.items()}
    loaded, restored = logs.time_work(
        lambda: ("compiled", _name_of(text), str(device)),
        lambda: _load_or_compile(text, device, given, callbacks, use_cache),
        lambda done: f" {'from the cache on disk' if done[1] else 'by XLA'}: {_types_of(text)}",
    )
    executable = (CallingExecutable if callbacks else Executable)(loaded, device, out_avals, in_avals)
    executable.restored = restored
    return executable


def _name_of(text: str | bytes) -> str:
    """Read the name of a module from its text."""
    found = re.search(r"module @(\S+)", (text if isinstance(text, str) else text.decode(errors="replace"))[:1000])
    return found[1] if found else "a module"


def _types_of(text: str | bytes) -> str:
    """Read the types of a module's arguments and results from its text: `(f32[3]) -> f32[3]`."""
    words = text if isinstance(text, str) else text.decode(errors="replace")
    found = re.search(r"public @main(\(.*?\) -> .*?) \{$", words, re.MULTILINE)
    if not found:
        return "a serialised module"
    types = re.sub(r"%\w+: | \{.*?\}", "", found[1])
    return _TENSOR.sub(lambda each: f"{each[2]}[{each[1].rstrip('x').replace('x', ',')}]", types)[:200]


_TENSOR = re.compile(r"tensor<((?:\d+x)*)(\w+)>")


class Executable:
    """A compiled program on one device. jaxlib cannot serialise it again if it was `restored` from bytes."""

    __slots__ = (
        "__weakref__",
        "_execute",
        "_handlers",
        "_raw_handlers",
        "budget",
        "device",
        "in_avals",
        "loaded",
        "out_avals",
        "program",
        "restored",
    )

    def __init__(
        self, loaded: Any, device: Device, out_avals: Sequence[ShapedArray], in_avals: Sequence[ShapedArray] | None
    ) -> None:
        self.loaded: Final = loaded
        self.device: Final = device
        self.out_avals: Final = tuple(out_avals)
        self.in_avals: Final = None if in_avals is None else tuple(in_avals)
        self.restored: bool = False
        self.program: weakref.ref[Jaxpr] | None = None  # for messages; see memory_errors
        self.budget: weakref.WeakMethod[Callable[[memory_errors.Exhausted], str]] | None = None
        self._execute = loaded.execute_sharded
        forking.refuse_in_children(self)
        memory_errors.programs.add(weakref.ref(self, memory_errors.programs.discard))
        self._raw_handlers = [_raw_handler(aval, device) for aval in self.out_avals]
        pairs = zip(self._raw_handlers, self.out_avals, strict=True)
        self._handlers = [handler.wrap(DeviceArray) if is_plain(aval) else handler for handler, aval in pairs]

    def refuse(self) -> None:
        """Make every later call raise RuntimeError: this process is a fork of the one that compiled the program."""
        self._execute = forking.refuse

    def call(self, bufs: Sequence[Any]) -> list[DeviceArray]:
        """Run on buffers, whose types are not checked: a wrong one of the same size gives nonsense."""
        if _donating and any(map(_is_deleted, bufs)):
            check_live(bufs)
        try:
            return self._execute(bufs).consume_with_handlers(self._handlers)
        except (xc.XlaRuntimeError, TypeError) as error:
            self._explain(bufs, error)

    def run(self, bufs: Sequence[Any]) -> Sequence[Any]:
        """Run on buffers, as `call` does; return those results that are plain as buffers, see `is_plain`."""
        if _donating and any(map(_is_deleted, bufs)):
            check_live(bufs)
        try:
            return self._execute(bufs).consume_with_handlers(self._raw_handlers)
        except (xc.XlaRuntimeError, TypeError) as error:
            self._explain(bufs, error)

    def __call__(self, *arrays: DeviceArray) -> list[DeviceArray]:
        """Run on arrays, after checks. Raises: TypeError or ValueError if the program was compiled for others."""
        self._check(arrays)
        return self.call([x.buf for x in arrays])

    def _check(self, arrays: Sequence[Any]) -> None:
        if self.in_avals is not None and len(arrays) != len(self.in_avals):
            raise TypeError(f"a compiled program of {len(self.in_avals)} array(s) was called with {len(arrays)}.")
        for i, x in enumerate(arrays):
            if not isinstance(x, DeviceArray):
                raise TypeError(f"argument {i} of a compiled program is no array on a device, but {type(x).__name__}.")
            if x.is_deleted():
                raise DeletedArgument(x.aval, i)
            if x.device is not self.device:
                raise ValueError(f"argument {i} is on {x.device}, the program was compiled for {self.device}.")
            if self.in_avals is not None and (x.shape, x.dtype) != (self.in_avals[i].shape, self.in_avals[i].dtype):
                raise TypeError(f"argument {i} is {x.aval}, the program was compiled for {self.in_avals[i]}.")

    def _explain(self, bufs: Sequence[Any], error: Exception) -> NoReturn:
        check_live(bufs)
        if "donated" in str(error):
            check_distinct(bufs, range(len(bufs)))
        told = memory_errors.describe_memory(self) if memory_errors.is_exhausted(error) else ""
        raise type(error)(clean_message(str(error)) + told) from None

    # ---- inspection

    def as_text(self) -> str:
        """Print the optimised HLO that XLA compiled the module to."""
        return self.loaded.hlo_modules()[0].to_string()

    def cost_analysis(self) -> dict[str, float]:
        """Return XLA's estimates by name: "flops", "bytes accessed", "transcendentals", ..."""
        return dict(self.loaded.cost_analysis())

    def memory_analysis(self) -> "MemoryAnalysis":
        """Return the memory that a run takes."""
        stats = self.loaded.get_compiled_memory_stats()
        return MemoryAnalysis(self.device.platform, *[compat.memory_field(stats, name) for name in MEMORY_FIELDS])

    def serialize(self) -> bytes:
        """Write the compiled program as bytes, for this build of jaxlib and this kind of device only.

        Raises: InternalError if it is `restored`: its bytes would lack the machine code (jaxlib 0.10.2, CPU).
        """
        if self.restored:
            raise InternalError("a compiled program that was restored from bytes cannot be serialised again")
        return self.loaded.serialize()


class CallingExecutable(Executable):
    """A compiled program with host callbacks; calling it raises the exceptions that these raise."""

    __slots__ = ()

    def __init__(self, loaded: Any, *args: Any) -> None:
        super().__init__(loaded, *args)
        self._execute = self._execute_noted

    def call(self, bufs: Sequence[Any]) -> list[DeviceArray]:
        return host.raising(super().call, bufs)

    def run(self, bufs: Sequence[Any]) -> Sequence[Any]:
        return host.raising(super().run, bufs)

    def _execute_noted(self, bufs: Sequence[Any]) -> Any:
        results = self.loaded.execute_sharded(bufs, with_tokens=True)
        host.await_later(self.device, results.consume_token())
        return results


_is_deleted = methodcaller("is_deleted")
_donating = False  # has a program taken the memory of its arguments? They may be used again by mistake.


def note_donation() -> None:
    """Check all arguments for donated buffers from now on, before jaxlib does, which prints a line on stderr."""
    global _donating
    _donating = True


def check_live(bufs: Sequence[Any]) -> None:
    """Raise RuntimeError if a buffer was deleted or donated. jaxlib does too, after a line on stderr."""
    if any(map(_is_deleted, bufs)):
        i = next(i for i, buf in enumerate(bufs) if buf.is_deleted())
        raise DeletedArgument(bufs[i].aval, i) from None


def check_distinct(bufs: Sequence[Any], donated: Sequence[int]) -> None:
    """Raise ValueError if a `donated` argument is the same buffer as another argument."""
    if len(set(map(id, bufs))) == len(bufs):
        return
    first: dict[int, int] = {}
    for i, buf in enumerate(bufs):
        j = first.setdefault(id(buf), i)
        if j < i and not {i, j}.isdisjoint(donated):
            raise SharedArgument(buf.aval, j, i) from None


def is_plain(aval: ShapedArray) -> bool:
    """Tell whether an array of this type is a `DeviceArray` around a buffer of the same type."""
    return aval.dtype != dtypes.float0 and not holds_keys(aval)


def _raw_handler(aval: ShapedArray, device: Device) -> Any:
    """Return the function that makes a buffer of a result, or an array if it is not plain.

    Keys wrap the buffer of their words; float0 results, which programs return as booleans, become NumPy zeros.
    """
    if aval.dtype == dtypes.float0:
        travelled = aval.update(dtype=np.dtype(bool))
        return compat.result_handler(travelled, device.sharding).wrap(lambda _: np.zeros(aval.shape, dtypes.float0))
    handler = compat.result_handler(physical(aval), device.sharding)
    return handler.wrap(partial(KeyArray, dtype=aval.dtype)) if holds_keys(aval) else handler


@dataclass(frozen=True)
class MemoryAnalysis:
    """The memory that a run takes, in bytes, by XLA's figures under JAX's names; printed with their reliability.

    Compared on CPU with the growth of the process (jaxlib 0.10.2): arguments, results, aliases (results in the memory
    of donated arguments) and temporaries are right to 2 %, and so is `total_size_in_bytes`, their sum. They leave out
    the workspace of library calls: sorting takes three to eight times its operand, singular values about their operand,
    products of matrices a few megabytes. The peak is not reliable: it leaves out temporaries (it is None where this
    jaxlib does not have it); nor is generated code, which is always 0. Other platforms were not measured.
    """

    platform: str
    generated_code_size_in_bytes: int
    argument_size_in_bytes: int
    output_size_in_bytes: int
    alias_size_in_bytes: int
    temp_size_in_bytes: int
    peak_memory_in_bytes: int | None

    @property
    def total_size_in_bytes(self) -> int:
        """The bytes of arguments, results and temporaries; shared memory (aliases) is counted once."""
        return (
            self.argument_size_in_bytes + self.output_size_in_bytes - self.alias_size_in_bytes + self.temp_size_in_bytes
        )

    def __str__(self) -> str:
        names = [*[name for name in MEMORY_FIELDS if name not in _NOT_HOLDING], "total_size_in_bytes", *_NOT_HOLDING]
        rows = [(name, getattr(self, name)) for name in names]
        written = [(name, f"{n:,}" if n is not None else "unknown") for name, n in rows]
        widths = [max(map(len, column)) for column in zip(*written, strict=True)]
        lines = [f"{name:{widths[0]}}  {n:>{widths[1]}}  {self._reliability(name)}".rstrip() for name, n in written]
        return "\n".join([f"memory of a run on {self.platform}", *lines])

    __repr__ = __str__

    def _reliability(self, name: str) -> str:
        """Say why a figure is not reliable, or that it was not measured; "" for the others."""
        if self.platform != "cpu":
            return "was not measured on this platform" if name == "total_size_in_bytes" else ""
        return f"does not hold: {_NOT_HOLDING[name]}" if name in _NOT_HOLDING else ""


MEMORY_FIELDS = tuple(name for name in MemoryAnalysis.__annotations__ if name != "platform")
_NOT_HOLDING = {  # on CPU
    "generated_code_size_in_bytes": "machine code is not counted",
    "peak_memory_in_bytes": "temporaries are left out; see the total",
}


# ---- from a module to jaxlib's executable


def _load_or_compile(
    text: str | bytes, device: Device, given: Options, callbacks: Sequence[Any], use_cache: bool
) -> tuple[Any, bool]:
    """Return jaxlib's executable, and whether it was found in the cache on disk."""
    if config.dump_ir_to:
        _dump(text, Path(config.dump_ir_to))
    cache = default_cache() if use_cache else None
    if cache is None:
        return _compile(text, device, given, callbacks), False
    key = program_key(text, device, compile_options(device, given, text))
    blob = cache.get(key)
    if blob is not None:
        try:
            return call_uninterrupted(compat.deserialize, device.client, blob, device.list, callbacks), True
        except Exception:  # jaxlib refuses the blob although its checksum is right: compile anew, whatever the error
            cache.remove(key)
    loaded = _compile(text, device, given, callbacks)
    with suppress(xc.XlaRuntimeError):  # not every platform can serialise
        cache.put(key, loaded.serialize())
    return loaded, False


def _dump(text: str | bytes, directory: Path) -> None:
    """Write a module to a new file, named after it."""
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / f"{next(_dumped):04}-{re.sub(r'[^.0-9A-Za-z_-]', '_', _name_of(text))}.mlir"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())


_dumped = itertools.count()


def _compile(text: str | bytes, device: Device, given: Options, callbacks: Sequence[Any]) -> Any:
    """Compile; try again without those of our defaults that this jaxlib does not know, as options come and go."""
    try:
        return _compile_once(text, device, compile_options(device, given, text), callbacks)
    except xc.XlaRuntimeError as error:
        name = _option_named(str(error))
        if name is None:
            raise type(error)(clean_message(str(error))) from None
        if name in given:
            raise ValueError(_option_message(name, given[name], str(error))) from None
        if name in _unknown_defaults:
            raise
        _unknown_defaults.add(name)
    return _compile(text, device, given, callbacks)


def _compile_once(text: str | bytes, device: Device, options: Any, callbacks: Sequence[Any]) -> Any:
    compile = partial(call_uninterrupted, device.client.compile_and_load, when_late=_progress(text, device))
    if callbacks:  # only this form of the call takes them
        return compile(parse(text), device.list, options, host_callbacks=list(callbacks))
    return compile(text, device.list, options)


def _progress(text: str | bytes, device: Device) -> Callable[[], None] | None:
    """Return a function that logs what is being compiled, and since when; None if `config.progress` is off."""
    if not config.progress:
        return None
    began = time.time()

    def tell() -> None:
        since = time.strftime("%H:%M:%S", time.localtime(began))
        logs.warn(f"Compiling {_name_of(text)} for {device} since {since}. (config.progress = False silences this.)")

    return tell


def parse(text: str | bytes, within: Any = None) -> Any:
    """Parse a module to an MLIR object, in a context of its own if none is given."""
    ir: Any = importlib.import_module("jaxlib.mlir.ir")
    with within or context():
        return ir.Module.parse(text)


def context() -> Any:
    """Make an MLIR context. The first use loads the MLIR bindings, which nothing else needs."""
    ir: Any = importlib.import_module("jaxlib.mlir.ir")
    made = ir.Context()
    registry = ir.DialectRegistry()
    importlib.import_module("jaxlib.mlir._mlir_libs._jax_mlir_ext").register_dialects(registry)
    made.append_dialect_registry(registry)
    made.load_all_available_dialects()
    for name in ("stablehlo", "chlo", "sdy"):
        importlib.import_module(f"jaxlib.mlir.dialects.{name}").register_dialect(made)
    return made


# ---- options


def compile_options(device: Device, given: Options, text: str | bytes = "") -> Any:
    """Return XLA's compile options for a device and a module: our defaults, overridden by `given`."""
    options = xc.CompileOptions()
    options.device_assignment = xc.DeviceAssignment.create(np.array([[device.id]]))
    options.env_option_overrides = list({**_defaults(device.platform, text), **given}.items())
    extra = EXTRA.get(device.platform, {})
    flags = os.environ.get("XLA_FLAGS", "")
    return compat.with_extra_options(options, {name: value for name, value in extra.items() if name not in flags})


def _defaults(platform: str, text: str | bytes) -> Options:
    flags = os.environ.get("XLA_FLAGS", "")
    ours = DEFAULTS.get(platform, {})
    has_barrier = _names(text, "optimization_barrier")
    if any(_names(text, word) for word in _NEED_SEPARATE_KERNELS) or (has_barrier and has_barrier_in_loop(text)):
        ours = {**ours, **SEPARATE_KERNELS.get(platform, {})}
    return {name: value for name, value in ours.items() if name not in flags and name not in _unknown_defaults}


def _names(text: str | bytes, word: str) -> bool:
    return word.encode() in text if isinstance(text, bytes) else word in text


def _option_value(value: Any) -> Any:
    """Convert the value of a compiler option: the texts "true" and "false" to booleans."""
    return {"true": True, "false": False}.get(value.lower(), value) if isinstance(value, str) else value


_UNKNOWN_OPTION = re.compile(r"No such compile option: '([^']*)'")
_REFUSED_VALUE = re.compile(r"While setting option ([^,\s]+),")


def _option_named(message: str) -> str | None:
    """Parse the compiler's message for the option that it rejects; None if there is none."""
    found = _UNKNOWN_OPTION.search(message) or _REFUSED_VALUE.search(message)
    return found[1] if found else None


def _option_message(name: str, value: Any, message: str) -> str:
    if _UNKNOWN_OPTION.search(message):
        return f"compiler_options: XLA (jaxlib {compat.jaxlib_version()}) has no option {name!r}. Check its spelling."
    return f"compiler_options: XLA refuses {name} = {value!r}: {clean_message(message)}"


_MISLEADING = re.compile(r"\n?[^\n]*Failed to parse using StableHLO v[^\n]*\n?")


def clean_message(message: str) -> str:
    """Remove from a compiler's message the line that blames versions for every error."""
    return _MISLEADING.sub("", message).strip()
