"""Tests of `tapeless.interpreters.index`."""
