"""Compilation of modules by XLA, and the executables.

`compile_module` gives an `Executable`. Its `call` is the fast path, for callers who know what the buffers are; calling
the object checks first, because XLA compares sizes in bytes and nothing else.
"""

import importlib
import itertools
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np

from tapeless.lowering import compat, forking, host
from tapeless.lowering.argument_errors import DeletedArgument, SharedArgument
from tapeless.lowering.array import DeviceArray
from tapeless.lowering.compat import xc
from tapeless.lowering.compilation_cache import default_cache, program_key
from tapeless.lowering.devices import Device
from tapeless.lowering.key_array import KeyArray
from tapeless.lowering.uninterrupted import uninterrupted
from tapeless.tracer import dtypes, logs
from tapeless.tracer.config import config
from tapeless.tracer.errors import InternalError
from tapeless.tracer.types import ShapedArray, holds_keys, physical

Options = Mapping[str, Any]

# What we set differently from XLA. An option that the user sets, here or in XLA_FLAGS, is the user's. Never to be among
# them: xla_cpu_copy_insertion_use_region_analysis, which miscompiles loops in loops (docs/decisions/0008).
DEFAULTS: dict[str, dict[str, Any]] = {
    "cpu": {
        # Merges what an optimization barrier keeps apart, and with it the recomputation of `checkpoint`.
        "xla_disable_hlo_passes": "cse_barrier_expander",
    }
}
# What we set differently for modules that hold an optimization barrier: XLA makes one kernel of a small loop, and ends
# the process where it meets a barrier in it (jaxlib 0.10.2 to 0.11.2, CPU).
WITH_BARRIERS: dict[str, dict[str, Any]] = {
    "cpu": {"xla_disable_hlo_passes": "cse_barrier_expander,small-while-loop-hoisting"}
}
# Options of one backend, which XLA takes as texts and ignores if it does not know them; with a dash, those of LLVM.
EXTRA: dict[str, dict[str, str]] = {
    # Loops whose steps touch less than that are one kernel. XLA says 1,024, which gradients and tangents of a few
    # elements exceed, and then each of their operations is started by itself: six times the time.
    "cpu": {
        "xla_cpu_small_while_loop_byte_threshold": "4096",
        # LLVM's, for which XLA's exponentials of 32 bits are undefined where their argument is the constant nan. It is
        # where a loop is written twice, once for each case of a choice by a number: docs/xla_defects.md.
        "-unswitch-threshold": "0",
    }
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
      out_avals: types of the results, which they carry from then on.
      device: where it will run.
      in_avals: types of the arguments, for calls that check.
      options: XLA's compiler options by name, such as {"xla_cpu_enable_fast_math": True}.
      callbacks: functions on the host, which the module refers to by index.
      use_cache: whether the cache on disk may be asked, and given the result.
    Raises: ValueError for an option that XLA does not have or a value that it refuses; XlaRuntimeError, a
      RuntimeError, for a module that it does.
    """
    forking.check()
    given = {} if options is None else {name: _option_value(value) for name, value in options.items()}
    if callbacks and device.platform != "cpu":
        raise NotImplementedError(f"a program for {device} cannot call functions on the host: only the CPU's can.")
    loaded, restored = logs.timed(
        lambda: ("compiled", _name_of(text), str(device)),
        lambda: _load_or_compile(text, device, given, callbacks, use_cache),
        lambda done: f"{'found in the cache on disk' if done[1] else 'by XLA'}, {_types_of(text)}",
    )
    executable = (CallingExecutable if callbacks else Executable)(loaded, device, out_avals, in_avals)
    executable.restored = restored
    return executable


def _name_of(text: str | bytes) -> str:
    """The name of a module, as its text begins."""
    found = re.search(r"module @(\S+)", (text if isinstance(text, str) else text.decode(errors="replace"))[:1000])
    return found[1] if found else "a module"


def _types_of(text: str | bytes) -> str:
    """The types of a module's arguments and results: `(tensor<3xf32>) -> tensor<3xf32>`."""
    words = text if isinstance(text, str) else text.decode(errors="replace")
    found = re.search(r"public @main(\(.*?\) -> .*?) \{$", words, re.MULTILINE)
    return re.sub(r"%\w+: ", "", found[1])[:200] if found else "a serialised module"


class Executable:
    """A compiled program on one device. One that is `restored` from bytes cannot be made bytes again by jaxlib."""

    __slots__ = ("__weakref__", "_execute", "_handlers", "device", "in_avals", "loaded", "out_avals", "restored")

    def __init__(
        self, loaded: Any, device: Device, out_avals: Sequence[ShapedArray], in_avals: Sequence[ShapedArray] | None
    ) -> None:
        self.loaded: Final = loaded
        self.device: Final = device
        self.out_avals: Final = tuple(out_avals)
        self.in_avals: Final = None if in_avals is None else tuple(in_avals)
        self.restored: bool = False
        self._execute = loaded.execute_sharded
        forking.refuse_in_children(self)
        self._handlers = [_handler(aval, device) for aval in self.out_avals]

    def refuse(self) -> None:
        """Raise RuntimeError whenever it is called from now on: this process is a fork of the one that compiled it."""
        self._execute = forking.refuse

    def call(self, bufs: Sequence[Any]) -> list[DeviceArray]:
        """Run on buffers, whose types are not checked: a wrong one of the same size gives nonsense."""
        if _donating:
            check_live(bufs)
        try:
            return self._execute(bufs).consume_with_handlers(self._handlers)
        except (xc.XlaRuntimeError, TypeError) as error:
            self._explain(bufs, error)

    def call_single(self, bufs: Sequence[Any]) -> DeviceArray:
        """`call` for a program of one result."""
        if _donating:
            check_live(bufs)
        try:
            return self._execute(bufs).consume_with_handlers(self._handlers)[0]
        except (xc.XlaRuntimeError, TypeError) as error:
            self._explain(bufs, error)

    def __call__(self, *arrays: DeviceArray) -> list[DeviceArray]:
        """Run on arrays. Raises: TypeError or ValueError if they are not what was compiled for."""
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
        raise type(error)(clean_message(str(error))) from None

    # ---- what it is

    def as_text(self) -> str:
        """The program that XLA made of the module: optimised HLO."""
        return self.loaded.hlo_modules()[0].to_string()

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimates by name: "flops", "bytes accessed", "transcendentals", ..."""
        return dict(self.loaded.cost_analysis())

    def memory_analysis(self) -> "MemoryAnalysis":
        """The memory that running it takes."""
        stats = self.loaded.get_compiled_memory_stats()
        return MemoryAnalysis(self.device.platform, *[compat.memory_field(stats, name) for name in MEMORY_FIELDS])

    def serialize(self) -> bytes:
        """The compiled program, for this build of jaxlib and this kind of device only.

        Raises: InternalError if it is restored: its bytes would lack the machine code (jaxlib 0.10.2, CPU).
        """
        if self.restored:
            raise InternalError("a compiled program that was restored from bytes cannot be serialised again")
        return self.loaded.serialize()


class CallingExecutable(Executable):
    """A compiled program that calls functions on the host: what they raise, calling it raises."""

    __slots__ = ()

    def __init__(self, loaded: Any, *args: Any) -> None:
        super().__init__(loaded, *args)
        self._execute = self._execute_noted

    def call(self, bufs: Sequence[Any]) -> list[DeviceArray]:
        return _raising(super().call, bufs)

    def call_single(self, bufs: Sequence[Any]) -> DeviceArray:
        return _raising(super().call_single, bufs)

    def _execute_noted(self, bufs: Sequence[Any]) -> Any:
        results = self.loaded.execute_sharded(bufs, with_tokens=True)
        host.await_later(self.device, results.consume_token())
        return results


def _raising(run: Callable[[Sequence[Any]], Any], bufs: Sequence[Any]) -> Any:
    """Run a program; raise the exception of a callback as it was raised, not as jaxlib wraps it."""
    try:
        return run(bufs)
    except xc.XlaRuntimeError as error:
        raised = host.raised(error)
        if raised is None:
            raise
    raise raised


_donating = False  # has a program been given the memory of its arguments? They may be used again by mistake.


def note_donation() -> None:
    """Look for donated buffers among arguments from now on, before jaxlib does, which prints a line on stderr."""
    global _donating
    _donating = True


def check_live(bufs: Sequence[Any]) -> None:
    """Raise RuntimeError for a buffer that was deleted or donated. jaxlib does too, after a line on stderr."""
    for i, buf in enumerate(bufs):
        if buf.is_deleted():
            raise DeletedArgument(buf.aval, i) from None


def check_distinct(bufs: Sequence[Any], donated: Sequence[int]) -> None:
    """Raise ValueError for a buffer that is donated and an argument besides."""
    if len(set(map(id, bufs))) == len(bufs):
        return
    first: dict[int, int] = {}
    for i, buf in enumerate(bufs):
        j = first.setdefault(id(buf), i)
        if j < i and not {i, j}.isdisjoint(donated):
            raise SharedArgument(buf.aval, j, i) from None


def _handler(aval: ShapedArray, device: Device) -> Any:
    """Make the function that turns a raw result into an array.

    Keys are made of their words; tangents of integers (float0), which travel as booleans, are NumPy's.
    """
    if aval.dtype == dtypes.float0:
        travelled = aval.update(dtype=np.dtype(bool))
        return compat.result_handler(travelled, device.sharding).wrap(lambda _: np.zeros(aval.shape, dtypes.float0))
    kind = partial(KeyArray, dtype=aval.dtype) if holds_keys(aval) else DeviceArray
    return compat.result_handler(physical(aval), device.sharding).wrap(kind)


@dataclass(frozen=True)
class MemoryAnalysis:
    """The memory that a run takes, in bytes, by XLA's figures, whose names are JAX's; they print with what holds.

    Measured on CPU as the growth of the process (jaxlib 0.10.2): arguments, results, aliases (results in the memory of
    donated arguments) and temporaries hold to 2 %, and so does `total_size_in_bytes`, made of them. They do not know of
    what library calls take while they run: sorting three to eight times its operand, singular values about their
    operand, products of matrices a few megabytes. The peak does not hold: it leaves the temporaries out (it is None
    where this jaxlib does not tell it); nor does generated code, which is always 0. Other platforms were not measured.
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
        """Arguments, results and temporaries, with what they share counted once."""
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
        """Say of a figure that does not hold why, or that it is not known to."""
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
    """jaxlib's executable, and whether it was found in the cache on disk."""
    if config.dump_ir_to:
        _dump(text, Path(config.dump_ir_to))
    cache = default_cache() if use_cache else None
    if cache is None:
        return _compile(text, device, given, callbacks), False
    key = program_key(text, device, compile_options(device, given, text))
    blob = cache.get(key)
    if blob is not None:
        try:
            return uninterrupted(compat.deserialize, device.client, blob, device.list, callbacks), True
        except Exception:  # a blob that its checksum vouches for and jaxlib refuses: of no use, whatever it says
            cache.remove(key)
    loaded = _compile(text, device, given, callbacks)
    with suppress(xc.XlaRuntimeError):  # not every platform can serialise
        cache.put(key, loaded.serialize())
    return loaded, False


def _dump(text: str | bytes, directory: Path) -> None:
    """Write a module to a file of its own, named after it."""
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / f"{next(_dumped):04}-{re.sub(r'[^.0-9A-Za-z_-]', '_', _name_of(text))}.mlir"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())


_dumped = itertools.count()


def _compile(text: str | bytes, device: Device, given: Options, callbacks: Sequence[Any]) -> Any:
    """Compile, without the defaults that turn out to be unknown to this jaxlib: options come and go."""
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
    compile = partial(uninterrupted, device.client.compile_and_load, when_late=_progress(text, device))
    if callbacks:  # only this form of the call takes them
        return compile(parse(text), device.list, options, host_callbacks=list(callbacks))
    return compile(text, device.list, options)


def _progress(text: str | bytes, device: Device) -> Callable[[], None] | None:
    """A function that logs what is being compiled, and since when; None if `config.progress` is off."""
    if not config.progress:
        return None
    began = time.time()

    def tell() -> None:
        since = time.strftime("%H:%M:%S", time.localtime(began))
        logs.warn(f"compiling {_name_of(text)} for {device} since {since} (config.progress = False silences this)")

    return tell


def parse(text: str | bytes) -> Any:
    """The module as MLIR's object. Loads the MLIR bindings, which nothing else needs, on first use."""
    ir: Any = importlib.import_module("jaxlib.mlir.ir")
    context = ir.Context()
    registry = ir.DialectRegistry()
    importlib.import_module("jaxlib.mlir._mlir_libs._jax_mlir_ext").register_dialects(registry)
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    for name in ("stablehlo", "chlo", "sdy"):
        importlib.import_module(f"jaxlib.mlir.dialects.{name}").register_dialect(context)
    with context:
        return ir.Module.parse(text)


# ---- options


def compile_options(device: Device, given: Options, text: str | bytes = "") -> Any:
    """The compiler's options: for this device and module, with our defaults and on top of them `given`."""
    options = xc.CompileOptions()
    options.device_assignment = xc.DeviceAssignment.create(np.array([[device.id]]))
    options.env_option_overrides = list({**_defaults(device.platform, text), **given}.items())
    extra = EXTRA.get(device.platform, {})
    flags = os.environ.get("XLA_FLAGS", "")
    return compat.with_extra_options(options, {name: value for name, value in extra.items() if name not in flags})


def _defaults(platform: str, text: str | bytes) -> Options:
    flags = os.environ.get("XLA_FLAGS", "")
    ours = DEFAULTS.get(platform, {})
    if _names(text, "optimization_barrier"):
        ours = {**ours, **WITH_BARRIERS.get(platform, {})}
    return {name: value for name, value in ours.items() if name not in flags and name not in _unknown_defaults}


def _names(text: str | bytes, operation: str) -> bool:
    return operation.encode() in text if isinstance(text, bytes) else operation in text


def _option_value(value: Any) -> Any:
    """Convert the value of a compiler option: words of command lines to booleans."""
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
    """The compiler's message without the line that blames versions for every error there is."""
    return _MISLEADING.sub("", message).strip()
