"""Tests of `tapeless.scipy.special_functions`."""
