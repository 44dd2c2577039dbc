"""Environment variables and flags, by JAX's names; what is before a with block is back after it."""

import os
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from absl import app, flags

import tapeless as tl
from tapeless.tracer.settings.config import NAMES_OF_JAX
from tests.as_jax.facts import Fact, refusal


def facts() -> Iterator[Fact]:
    tl.config.debug_infs = True
    os.environ.update(JAX_ENABLE_X64="1", JAX_DEBUG_INFS="off", JAX_DEFAULT_MATMUL_PRECISION="highest")
    sys.argv[1:] = ["x", "--jax_disable_jit", "--nojax_enable_x64", "--other=3", "--", "--jax_debug_nans"]
    with tl.as_jax():
        config = import_module("jax").config
        yield "JAX_ENABLE_X64=1", config.jax_enable_x64, True
        yield "JAX_DEBUG_INFS=off", config.jax_debug_infs, False
        yield "JAX_DEFAULT_MATMUL_PRECISION", config.jax_default_matmul_precision, "highest"
        config.parse_flags_with_absl()
        yield "--jax_disable_jit", config.jax_disable_jit, True
        yield "--nojax_enable_x64", config.jax_enable_x64, False
        yield "a flag behind --", config.jax_debug_nans, False
    yield "widths afterwards", (tl.config.default_bits, tl.config.numpy_bits), (32, 64)
    yield "disable_jit afterwards", tl.config.disable_jit, False
    yield "debug_infs afterwards", tl.config.debug_infs, True
    yield "default_matmul_precision afterwards", tl.config.default_matmul_precision, None
    yield from flags_of_a_program()
    for name in NAMES_OF_JAX:
        yield name, hasattr(tl.config, name), True
    os.environ["JAX_DEBUG_NANS"] = "maybe"
    text = "the environment variable JAX_DEBUG_NANS must be true or false, not 'maybe'."
    yield "JAX_DEBUG_NANS=maybe", refusal(ValueError, tl.as_jax().__enter__), text


def flags_of_a_program() -> Iterator[Fact]:
    flags.DEFINE_integer("other", 0, "a flag of the program's own")
    tl.config.config_with_absl()
    sys.argv[1:] = ["--jax_numpy_rank_promotion=warn", "--other=3", "y"]
    found: list[Any] = []

    def main(argv: list[str]) -> None:
        found.extend((argv[1:], flags.FLAGS.other, tl.config.jax_numpy_rank_promotion, tl.config.debug_nans))

    try:
        app.run(main)
    except SystemExit as done:
        yield "app.run ends the program", done.code, None
    yield "flags that app.run reads", found, [["y"], 3, "warn", False]
