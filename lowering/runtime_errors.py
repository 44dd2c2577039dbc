"""The exception that jaxlib raises, in a module of its own: who names it loads jaxlib."""

from tapeless.lowering.compat import xc

JaxRuntimeError: type[RuntimeError] = xc.XlaRuntimeError
