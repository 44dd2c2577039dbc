"""Tests of `tapeless.scipy.iterative`."""
