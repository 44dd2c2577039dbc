"""Context managers and decorators for single settings: `with debug_nans(True):`, or `@debug_nans(True)`."""

import itertools
from contextlib import AbstractContextManager
from typing import Any

from tapeless.tracer.settings.config import Field, Scope, add_field, config


def debug_nans(new_val: bool = True) -> Scope:
    """Make a NaN in a result an error that names the operation, in a with block or a decorated function."""
    return config.scope(debug_nans=new_val)


def disable_jit(disable: bool = True) -> Scope:
    """Run jitted functions, branches and loops as the Python they are written in, in a with block or a decorated
    function: values are known, and can be printed."""
    return config.scope(disable_jit=disable)


def numpy_dtype_promotion(new_val: str) -> Scope:
    """Let operands of different dtypes be promoted ("standard") or refused ("strict"), in a with block or a decorated
    function. Raises: there, TypePromotionError."""
    return config.scope(numpy_dtype_promotion=new_val)


def numpy_rank_promotion(new_val: str) -> Scope:
    """Allow operands of different numbers of axes ("allow"), warn of them ("warn"), or refuse them ("raise"), in a with
    block or a decorated function. Raises: there, ValueError."""
    return config.scope(numpy_rank_promotion=new_val)


def default_matmul_precision(new_val: str | None) -> Scope:
    """Set the default precision of products and convolutions, in a with block or a decorated function."""
    return config.scope(default_matmul_precision=new_val)


def debug_infs(new_val: bool = True) -> Scope:
    """Make an infinity in a result an error that names the operation, in a with block or a decorated function."""
    return config.scope(debug_infs=new_val)


def debug_key_reuse(new_val: bool = True) -> Scope:
    """Make it an error to use a random key twice, in a with block or a decorated function.

    Drawing numbers and `random.split` use a key up, `random.fold_in` does not; bare words are not checked. Keys are
    followed through `jit`, `scan`, `cond`, `vmap` and the like. Raises: there, KeyReuseError naming both lines.

    >>> import tapeless as tl
    >>> with debug_key_reuse(True):
    ...     key, subkey = tl.random.split(tl.random.key(0))
    ...     x, y = tl.random.normal(key), tl.random.normal(subkey)
    """
    return config.scope(debug_key_reuse=new_val)


def enable_checks(new_val: bool = True) -> Scope:
    """Type-check every program that is built, in a with block or a decorated function."""
    return config.scope(check_programs=new_val)


def check_tracer_leaks(new_val: bool = True) -> Scope:
    """Look for traced arrays that outlive their function, in a with block or a decorated function.
    Raises: there, UnexpectedTracerError naming the holder. Slow: garbage is collected after each tracing."""
    return config.scope(check_tracer_leaks=new_val)


def checking_leaks() -> Scope:
    """Look for traced arrays that outlive their function: `check_tracer_leaks(True)`."""
    return check_tracer_leaks(True)


def no_tracing(new_val: bool = True) -> Scope:
    """Refuse to trace functions for `jit` in a with block or a decorated function: only programs traced before run.
    Raises: there, RuntimeError."""
    return config.scope(no_tracing=new_val)


def no_execution(new_val: bool = True) -> Scope:
    """Refuse to run anything in a with block or a decorated function: programs are only traced, by `jit(f).trace`.
    Raises: there, RuntimeError."""
    return config.scope(no_execution=new_val)


def log_compiles(new_val: bool = True) -> Scope:
    """Log a warning whenever something is traced for `jit` or compiled, in a with block or a decorated function."""
    return config.scope(log_compiles=new_val)


def explain_cache_misses(new_val: bool = True) -> Scope:
    """Log the reason whenever a function is traced again, in a with block or a decorated function."""
    return config.scope(explain_cache_misses=new_val)


def default_prng_impl(new_val: str) -> Scope:
    """Choose the generator of random numbers, in a with block or a decorated function: "threefry2x32", "rbg" or
    "unsafe_rbg". Raises: ValueError for another, when the block begins."""
    return config.scope(default_prng_impl=new_val)


def threefry_partitionable(new_val: bool = True) -> Scope:
    """Choose how threefry counts, in a with block or a decorated function: True, each element by itself; False, the
    elements of an array together, for the numbers of older programs."""
    return config.scope(threefry_partitionable=new_val)


def allow_f16_reductions(new_val: bool = True) -> Scope:
    """Let `lax.reduce_sum` take numbers of 16 bits, or refuse them, in a with block or a decorated function.
    `numpy.sum` converts them first. Raises: there, ValueError."""
    return config.scope(allow_f16_reductions=new_val)


def softmax_custom_jvp(new_val: bool = True) -> Scope:
    """Choose the derivative of softmax, in a with block or a decorated function: True, the accurate one, is the only.
    Raises: ValueError for False, when the block begins."""
    return config.scope(softmax_custom_jvp=new_val)


def array_garbage_collection_guard(new_val: str) -> Scope:
    """Choose the treatment of arrays that only Python's garbage collector finds, in a with block or a decorated
    function: "allow", they are freed, is the only way. Raises: ValueError for another, when the block begins."""
    return config.scope(array_garbage_collection_guard=new_val)


def enable_custom_prng(new_val: bool = True) -> Scope:
    """Let `random.PRNGKey` make keys, as `random.key` does, in a with block or a decorated function."""
    return config.scope(enable_custom_prng=new_val)


def legacy_prng_key(new_val: str) -> Scope:
    """Allow bare words as keys ("allow"), warn of them ("warn"), or refuse them ("error"), in a with block or a
    decorated function. Raises: there, ValueError."""
    return config.scope(legacy_prng_key=new_val)


def transfer_guard(new_val: str) -> Scope:
    """Watch all transfers between host and devices, in a with block or a decorated function.

    Args:
      new_val: "allow"; "log" or "disallow" transfers that are not requested by `device_put` or `device_get`;
        "log_explicit" or "disallow_explicit" all.
    Raises: there, RuntimeError for transfers that are not allowed.

    >>> import tapeless as tl, numpy as np
    >>> with transfer_guard("disallow"):
    ...     x = tl.device_put(np.ones(3, np.float32))
    """
    return config.scope(transfer_guard=new_val)


def transfer_guard_host_to_device(new_val: str) -> Scope:
    """Watch transfers from the host to devices: see `transfer_guard`."""
    return config.scope(transfer_guard_host_to_device=new_val)


def transfer_guard_device_to_device(new_val: str) -> Scope:
    """Watch transfers from one device to another: see `transfer_guard`."""
    return config.scope(transfer_guard_device_to_device=new_val)


def transfer_guard_device_to_host(new_val: str) -> Scope:
    """Watch transfers from devices to the host: see `transfer_guard`. A CPU's memory is the host's, and nothing is
    moved."""
    return config.scope(transfer_guard_device_to_host=new_val)


# ---- contexts of users ---------------------------------------------------------------------------------------
# Settings defined by users: values that functions read while they are traced, so that programs depend on them.


class UserContext:
    """A setting defined by a user. `value` is its present value; calling it sets another value in a with block.

    Jitted functions are traced anew for each value.
    """

    def __init__(self, field: Field[Any]) -> None:
        self._field = field

    @property
    def value(self) -> Any:
        """Return the present value."""
        return self._field.__get__(None)

    def __call__(self, new_val: Any) -> AbstractContextManager[None]:
        """Set the value in a with block, or a decorated function. Raises: TypeError if it is not hashable."""
        return config.scope(**{self._field.name: new_val})


def make_user_context(default_value: Any = None) -> UserContext:
    """Make a setting like those of `tl.config`: programs are traced again when it changes.

    Args:
      default_value: its value outside of any with block, hashable, as all of its values.
    Raises: TypeError if it is not hashable.

    >>> import tapeless as tl
    >>> factor = make_user_context(2.0)
    >>> f = tl.jit(lambda x: x * factor.value)
    >>> with factor(3.0):
    ...     f(1.0)
    Array(3., dtype=float32, weak_type=True)
    >>> f(1.0)
    Array(2., dtype=float32, weak_type=True)
    """
    return UserContext(add_field(f"user_context_{next(_numbers)}", _AnyField(default_value, None)))


class _AnyField(Field[Any]):
    """A field that allows any hashable value."""

    def checked(self, value: Any) -> Any:
        hash(value)
        return value


_numbers = itertools.count()
