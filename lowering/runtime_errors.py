"""The exception that jaxlib raises, in a module of its own, because importing it loads jaxlib."""

from tapeless.lowering.xla_workarounds.compat import xc

JaxRuntimeError: type[RuntimeError] = xc.XlaRuntimeError
