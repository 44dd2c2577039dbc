"""Tests of `tapeless.tracer.advice`."""
