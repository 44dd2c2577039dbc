"""The settings: `config`, its scopes, and `enable_x64`.

A field has one value for the process (`config.update`, or assignment) and may have another for a scope (`with
config.scope(...)`), which belongs to the current thread or task and goes before the value of the process.
"""

import functools
import importlib
import os
import warnings
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any, Final, Generic, ParamSpec, TypeVar

from tapeless.tracer import axes

T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")


_UNSET: Any = object()
# Names of DotAlgorithmPreset, which is loaded when one of them is used.
_DOT_ALGORITHMS = """
ANY_F8_ANY_F8_F32 ANY_F8_ANY_F8_F32_FAST_ACCUM ANY_F8_ANY_F8_ANY ANY_F8_ANY_F8_ANY_FAST_ACCUM F16_F16_F16 F16_F16_F32
BF16_BF16_BF16 BF16_BF16_F32 BF16_BF16_F32_X3 BF16_BF16_F32_X6 BF16_BF16_F32_X9 TF32_TF32_F32 TF32_TF32_F32_X3
F32_F32_F32 F64_F64_F64
""".split()


class Field(Generic[T]):
    """One setting: its name, its allowed values, its value for the process and for the current scope.

    `allowed` is None for any string; then `check`, which a layer above may set, raises for wrong ones. A field that is
    not `keyed` does not affect programs: those traced under another value of it are used again.
    """

    def __init__(self, default: T, allowed: tuple[T, ...] | None, keyed: bool = True) -> None:
        self.everywhere: T = default
        self.allowed: Final = allowed
        self.keyed: Final = keyed
        self.check: Callable[[T], object] | None = None

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        self.scoped: ContextVar[T] = ContextVar(name, default=_UNSET)

    def __get__(self, instance: Any, owner: type | None = None) -> T:
        value = self.scoped.get()
        return self.everywhere if value is _UNSET else value

    def __set__(self, instance: Any, value: T) -> None:
        self.everywhere = self.checked(value)
        _process[0] = _settings([field.everywhere for field in list(_fields.values()) if field.keyed])
        if _scope.get() is not None:
            _scope.set(_settings_now())

    def checked(self, value: Any) -> T:
        """Return the allowed value equal to `value`. Raises: ValueError if there is none."""
        if self.allowed is None:
            return self._checked_name(value)
        for known in self.allowed:
            if value == known and isinstance(value, bool) == isinstance(known, bool):
                return known
        allowed = " or ".join(map(repr, self.allowed))
        raise ValueError(f"config.{self.name} must be {allowed}, not {value!r}.")

    def _checked_name(self, value: Any) -> T:
        if value is None:
            value = ""  # as JAX spells it
        if not isinstance(value, str):
            raise ValueError(f"config.{self.name} must be a string, not {value!r}.")
        if self.check is not None and value:
            self.check(value)  # type: ignore[arg-type]  # T is str where any is allowed
        return value  # type: ignore[return-value]

    @contextmanager
    def scope(self, value: T) -> Generator[None]:
        """Set the field to `value` within a with block; if it is keyed, the caller has to renew the trace key."""
        value, before = self.checked(value), self.scoped.get()
        try:
            self.scoped.set(value)
            yield
        finally:
            self.scoped.set(before)


class Guard(Field[str]):
    """A setting that allows something unless it is set: `was_set` tells whether it ever was to another value.

    It is for what happens at every call, where reading a setting would take a good part of the time.
    """

    was_set: bool = False

    def checked(self, value: Any) -> str:
        """Return the allowed value equal to `value`, and note whether it is another one than `allow`."""
        found = super().checked(value)
        self.was_set |= found != "allow"
        return found


class ReadAbove(Field[Any]):
    """A setting whose values a layer above reads: None, or what `check`, which that layer sets, makes of them."""

    def checked(self, value: Any) -> Any:
        """Return what a value is read as. Raises: what `check` does."""
        return value if value is None or self.check is None else self.check(value)


def _bits_in_environment(variable: str, default: int) -> int:
    """Read a width from an environment variable. Raises: ValueError if it is neither 32 nor 64."""
    given = os.environ.get(variable, str(default)).strip()
    if given not in ("32", "64"):
        raise ValueError(f"the environment variable {variable} must be 32 or 64, not {given!r}.")
    return int(given)


_LEVELS = ("allow", "log", "disallow", "log_explicit", "disallow_explicit")  # of guards of transfers


class Config:
    """The settings of Tapeless.

    default_bits: width of Python scalars, random numbers and what `zeros`, `arange`, ... create: 32 or 64.
    numpy_bits: the width of NumPy arrays of 64 bits: theirs, or 32 for programs that come from JAX. TAPELESS_NUMPY_BITS
      in the environment sets it, too.
    debug_nans, debug_infs: whether a result with a NaN, or an infinity, is an error that names the operation.
    numpy_dtype_promotion: "standard", or "strict": operands of different dtypes are a TypePromotionError, unless all
      but one are numbers, or weakly typed, of the same kind or a lower one.
    numpy_rank_promotion: "allow", "warn" or "raise", where operands of different numbers of axes, not counting
      numbers, are broadcast against one another.
    default_matmul_precision: the precision of products and convolutions without one of their own: None or a name.
    memory_budget: the limit on the live bytes of each gradient that has no `memory_budget` of its own, as `grad` takes
      it; None for no limit. Of a part, from 0.0 to 1.0, as nearly as each can; one that is given to a gradient, or to
      `jit(f, memory_budget=...)`, which sets it for the gradients in f, is an error where it cannot be kept.
    disable_jit: whether jitted functions, branches and loops run as the Python that they are written in.
    platform_name: the platform to compute on, as "cpu" or "gpu"; "" for the best that there is.
    check_programs: whether every program that is built is type-checked; the tests do.
    check_linear_rules: whether rules of custom_jvp and custom_vjp are checked to be linear, unless they say that they
      are not meant to be, as by `defvjp(..., check_linear=False)`.
    check_tracer_leaks: whether traced arrays that outlive their function are searched for: an error names the holder.
    no_tracing, no_execution: whether tracing for `jit`, or running anything, is an error.
    log_compiles, explain_cache_misses: whether each compilation, or the reason why a function is traced again, is
      logged as a warning of the logger "tapeless".
    default_prng_impl: the generator of keys that are made without naming one, and of bare words: threefry2x32, rbg or
      unsafe_rbg. threefry_partitionable: whether threefry2x32 counts each element by itself, or a stream as a whole,
      as JAX did before its version 0.5: then the numbers are others, and depend on how many are drawn.
    debug_key_reuse: whether using a random key twice is an error that names both lines.
    enable_custom_prng: whether `random.PRNGKey` makes keys, as `random.key` does, not bare words.
    legacy_prng_key: "allow", "warn" or "error", where bare words are used as a key.
    transfer_guard_host_to_device, transfer_guard_device_to_device, transfer_guard_device_to_host: treatment of
      transfers: "allow"; "log" or "disallow" those not requested by `device_put` or `device_get`; "log_explicit" or
      "disallow_explicit" all. `transfer_guard` sets the three.
    enable_compilation_cache, compilation_cache_dir: whether compiled programs are kept on disk, and where; "" is for
      the directory that the environment names.
    dump_ir_to: a directory that the StableHLO of each program is written to before it is compiled; "" for none.
    default_device: the device for values that are on none yet; None for the first one.
    num_cpu_devices: as how many devices the CPU counts, to be set before it is used; -1 for one, or what
      TAPELESS_NUM_CPU_DEVICES, or XLA_FLAGS, says in the environment.
    high_dynamic_range_gumbel: whether `random.gumbel`, and samplers that use it, have the mode "high" by default.
    allow_f16_reductions: whether `lax.reduce_sum` takes numbers of 16 bits, or that is an error.
    softmax_custom_jvp: the derivative of softmax; there is one, the accurate. array_garbage_collection_guard:
      treatment of unreachable arrays, "allow": they are freed.
    progress: whether a compilation that takes longer than five seconds is logged while it runs.
    traceback_filtering: whether tracebacks that Python or IPython prints leave our frames out: "auto" and
      "remove_frames" add a note that they do, "quiet_remove_frames" adds none, "off" shows every frame.
    JAX's names are understood, too: `jax_enable_x64` for the widths (and `x64_enabled`, to read), `jax_enable_checks`
    for `check_programs`, `jax_platforms` for `platform_name`, for the others "jax_" and the name.
    """

    __slots__ = ()

    default_bits: Field[int] = Field(32, (32, 64))
    numpy_bits: Field[int] = Field(_bits_in_environment("TAPELESS_NUMPY_BITS", 64), (32, 64))
    debug_nans: Field[bool] = Field(False, (False, True))
    debug_infs: Field[bool] = Field(False, (False, True))
    numpy_dtype_promotion: Field[str] = Field("standard", ("standard", "strict"))
    numpy_rank_promotion: Field[str] = Field("allow", ("allow", "warn", "raise"))
    default_matmul_precision: Field[Any] = Field(
        None,
        (None, "default", "high", "highest", "fastest", "bfloat16", "tensorfloat32", "float32", *_DOT_ALGORITHMS),
    )
    memory_budget: Field[Any] = ReadAbove(None, None)
    disable_jit: Field[bool] = Field(False, (False, True))
    platform_name: Field[str] = Field("", None)
    check_programs: Field[bool] = Field(False, (False, True))
    check_linear_rules: Field[bool] = Field(True, (False, True), keyed=False)
    check_tracer_leaks: Field[bool] = Field(False, (False, True))
    no_tracing: Field[bool] = Field(False, (False, True), keyed=False)
    no_execution: Field[bool] = Field(False, (False, True))
    log_compiles: Field[bool] = Field(False, (False, True), keyed=False)
    explain_cache_misses: Field[bool] = Field(False, (False, True), keyed=False)
    enable_compilation_cache: Field[bool] = Field(True, (False, True), keyed=False)
    compilation_cache_dir: Field[str] = Field("", None, keyed=False)
    dump_ir_to: Field[str] = Field("", None, keyed=False)
    high_dynamic_range_gumbel: Field[bool] = Field(False, (False, True))
    allow_f16_reductions: Field[bool] = Field(True, (False, True))
    softmax_custom_jvp: Field[bool] = Field(True, (True,))
    array_garbage_collection_guard: Field[str] = Field("allow", ("allow",))
    progress: Field[bool] = Field(True, (False, True), keyed=False)
    traceback_filtering: Field[str] = Field(
        "auto", ("auto", "off", "remove_frames", "quiet_remove_frames"), keyed=False
    )
    default_prng_impl: Field[str] = Field("threefry2x32", ("threefry2x32", "rbg", "unsafe_rbg"))
    threefry_partitionable: Field[bool] = Field(True, (False, True))
    debug_key_reuse: Field[bool] = Field(False, (False, True))
    enable_custom_prng: Field[bool] = Field(False, (False, True))
    legacy_prng_key: Field[str] = Field("allow", ("allow", "warn", "error"))
    transfer_guard_host_to_device: Field[str] = Guard("allow", _LEVELS, keyed=False)
    transfer_guard_device_to_device: Field[str] = Guard("allow", _LEVELS, keyed=False)
    transfer_guard_device_to_host: Field[str] = Guard("allow", _LEVELS, keyed=False)

    def update(self, name: str, value: Any) -> None:
        """Set a field for the process, by its name or by JAX's.

        Raises: AttributeError for another name; ValueError for a value that is not allowed; RuntimeError for a platform
          that is not there.

        >>> config.update("default_bits", 64)
        >>> config.default_bits
        64
        >>> config.update("jax_enable_x64", False)
        >>> config.default_bits
        32
        """
        if name == "jax_enable_x64":
            name, value = "default_bits", _bits(value)
        for field in _meant_by(name):
            field.__set__(self, value)

    def read(self, name: str) -> Any:
        """Return the value of a field, by its name or by JAX's. Raises: AttributeError for another name."""
        return self.__getattr__(name)

    def scope(self, **values: Any) -> "Scope":
        """Set fields for a with block, or the calls of a decorated function, in the current thread or task only.

        Raises: what `update` does, when the block begins.

        >>> with config.scope(default_bits=64):
        ...     config.default_bits
        64
        """
        return Scope(values)

    @property
    def x64_enabled(self) -> bool:
        """Tell whether the default width is 64 bits, by JAX's name."""
        return self.default_bits == 64

    @staticmethod
    def trace_key() -> object:
        """Return the cache key of traced programs for the settings: one object for each combination of values,
        and the named axes around.

        It is read at every call of a jitted function, and must be cheap.
        """
        settings, named = _scope.get() or _process[0], axes.bound()
        return (settings, named) if named else settings

    @staticmethod
    def is_plain() -> bool:
        """Tell whether the settings leave eager calls be: nothing is watched, refused or computed step by step."""
        return (_scope.get() or _process[0]).plain

    def __getattr__(self, name: str) -> Any:
        """Return the value of a field by JAX's name."""
        if name == "jax_enable_x64":
            return self.x64_enabled
        return _meant_by(name)[0].__get__(self)

    def __setattr__(self, name: str, value: Any) -> None:
        self.update(name, value)

    def watch(self, name: str, check: Callable[[Any], object]) -> None:
        """Set `check` to be called with new values of a field; it raises for those that are not allowed."""
        _field(name).check = check

    def config_with_absl(self) -> None:
        """Define settings as flags of absl, by JAX's names, which its `app.run` then sets from the command line.

        Raises: ModuleNotFoundError if absl-py is not installed.
        """
        _by_text().define_flags(NAMES_OF_JAX, self.__getattr__, self.update)

    def parse_flags_with_absl(self) -> None:
        """Set fields by flags of the command line: `--jax_enable_x64`, `--nojax_debug_nans`, `--jax_platforms=cpu`.

        Other flags, and those behind `--`, are left alone.
        Raises: ModuleNotFoundError if absl-py is not installed; as `update` for values that are not allowed.
        """
        _by_text().parse_flags(NAMES_OF_JAX, self.__getattr__, self.update)

    def __repr__(self) -> str:
        return f"config({', '.join(f'{name}={getattr(self, name)!r}' for name in _NAMES)})"


_fields: dict[str, Field[Any]] = {name: field for name, field in vars(Config).items() if isinstance(field, Field)}
_NAMES = tuple(_fields)  # without those of users, which come later
_known_settings: dict[tuple[Any, ...], "Settings"] = {}
_scope: ContextVar["Settings | None"] = ContextVar("settings", default=None)


class Settings:
    """A combination of values of the keyed settings: one object for each combination.

    `plain`: do they leave eager calls alone? Under others these are watched, refused or computed step by step.
    """

    __slots__ = ("plain",)

    def __init__(self, values: dict[str, Any]) -> None:
        self.plain: Final = all(values[name] == usual for name, usual in _PLAIN.items())


_PLAIN = {
    **dict.fromkeys(("no_execution", "disable_jit", "debug_nans", "debug_infs", "debug_key_reuse"), False),
    "numpy_dtype_promotion": "standard",
    "numpy_rank_promotion": "allow",
}


def add_field(name: str, field: Field[Any]) -> Field[Any]:
    """Add a user's field, and return it. Raises: as its `checked`, if its value is not allowed."""
    field.__set_name__(Config, name)
    field.checked(field.everywhere)
    _fields[name] = field
    _process[0] = _settings([each.everywhere for each in list(_fields.values()) if each.keyed])
    if _scope.get() is not None:
        _scope.set(_settings_now())
    return field


def _settings_now() -> Settings:
    """Return the interned object for the present values of all keyed fields."""
    return _settings([field.__get__(None) for field in list(_fields.values()) if field.keyed])


def _settings(values: list[Any]) -> Settings:
    found = _known_settings.get(key := tuple(values))
    if found is None:
        keyed = [name for name, field in list(_fields.items()) if field.keyed]
        found = _known_settings.setdefault(key, Settings(dict(zip(keyed, values, strict=True))))
    return found


def differing_settings(now: Any, before: Any) -> Generator[tuple[str, Any, Any]]:
    """Yield the names of settings that differ between two keys of `config.trace_key`, with both values."""
    (settings, named), (others, others_named) = [key if isinstance(key, tuple) else (key, ()) for key in (now, before)]
    values = {known: combination for combination, known in list(_known_settings.items())}
    keyed = [name for name, field in list(_fields.items()) if field.keyed]
    for name, value, other in zip(keyed, values[settings], values[others], strict=False):
        if value != other:
            yield f"config.{name}", value, other
    if named != others_named:
        yield "the environment of named axes", named, others_named


_process = [_settings_now()]
config: Final = Config()


class Scope(AbstractContextManager[None]):
    """Values of settings for a with block, or for the calls of a decorated function, in the current thread or task."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values, self._used = values, False

    def __enter__(self) -> None:
        self._used = True
        with ExitStack() as scopes:
            for name, value in self._values.items():
                for field in _meant_by(name):
                    scopes.enter_context(field.scope(value))
            scopes.callback(_scope.set, _scope.get())
            _scope.set(_settings_now())
            self._end = scopes.pop_all()

    def __exit__(self, *error: Any) -> None:
        self._end.__exit__(*error)

    def __call__(self, f: Callable[P, R]) -> Callable[P, R]:
        """Decorate f, so that each call runs with these values."""
        self._used = True

        @functools.wraps(f)
        def run(*args: P.args, **kwargs: P.kwargs) -> R:
            with Scope(self._values):
                return f(*args, **kwargs)

        return run

    def __del__(self) -> None:
        if not self._used:
            given = ", ".join(f"{name}={value!r}" for name, value in self._values.items())
            message = f"{given} was set for a with block that never began; config.update sets it for the whole process."
            warnings.warn(message, RuntimeWarning, stacklevel=2)


def enable_x64(new_val: bool = True) -> Scope:
    """Make 64 bits (32 if `new_val` is false) the default width, in a with block or a decorated function.

    It is about defaults only: an array of an explicit 64-bit dtype has 64 bits whatever the setting. Without a with
    block nothing is set, and a RuntimeWarning says so: `config.update("default_bits", 64)` is for the whole process.

    >>> with enable_x64():
    ...     config.default_bits
    64
    >>> config.default_bits
    32
    """
    return config.scope(default_bits=_bits(new_val))


def _by_text() -> Any:
    """Return the module that reads flags, loaded when it is used."""
    return importlib.import_module("tapeless.tracer.settings.settings_by_text")


def _bits(x64: bool) -> int:
    return 64 if x64 else 32


def _meant_by(name: str) -> list[Field[Any]]:
    """Return the fields that a name sets, by our name or JAX's: one, but three for `transfer_guard`."""
    ours = name.removeprefix("jax_")
    return [_field(each) for each in _fields if each.startswith(_GUARD)] if ours == _GUARD else [_field(name)]


def _field(name: str) -> Field[Any]:
    ours = name.removeprefix("jax_")
    field = _fields.get(_OF_JAX.get(ours, ours))
    if field is None:
        raise AttributeError(f"config has no field {name!r}; it has {', '.join(_NAMES)}.")
    return field


# The settings that are set by flags and environment variables of JAX's names.
_GIVEN_OTHERWISE = frozenset(
    "default_bits numpy_bits check_programs check_linear_rules platform_name memory_budget".split()
)
NAMES_OF_JAX = (
    *("jax_enable_x64", "jax_enable_checks", "jax_platforms"),
    *[f"jax_{name}" for name in _NAMES if name not in _GIVEN_OTHERWISE],
)
_GUARD, _OF_JAX = "transfer_guard", {"enable_checks": "check_programs", "platforms": "platform_name"}
