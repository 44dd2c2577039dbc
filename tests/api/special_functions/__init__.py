"""Tests of `tapeless.special_functions`."""
