"""Tests of `tapeless.index`."""
