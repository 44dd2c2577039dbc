"""Tests of `tapeless.scipy.signal`."""
