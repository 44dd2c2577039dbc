"""Tests of `tapeless.tracer.keys`."""
