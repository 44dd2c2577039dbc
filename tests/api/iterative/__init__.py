"""Tests of `tapeless.iterative`."""
