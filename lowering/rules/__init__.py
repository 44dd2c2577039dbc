"""Lowering rules of primitives, by family: importing this package fills the table of `tapeless.lowering.emit`."""

from tapeless.tracer.rules import fill

fill(__name__)
