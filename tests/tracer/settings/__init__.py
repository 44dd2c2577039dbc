"""Tests of `tapeless.tracer.settings`."""
