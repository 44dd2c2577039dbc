"""Tests of `tapeless.lowering.xla_workarounds`."""
