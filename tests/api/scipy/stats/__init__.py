"""Tests of `tapeless.scipy.stats`."""
