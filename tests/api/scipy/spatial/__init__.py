"""Tests of `tapeless.scipy.spatial`."""
