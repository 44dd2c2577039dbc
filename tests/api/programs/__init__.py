"""Tests of `tapeless.programs`."""
